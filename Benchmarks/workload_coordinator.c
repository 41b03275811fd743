/* Compares saves through a coordinator, which also writes its position, with versions that are made in a store of the same values, in
   turns, in one run. Reports the median, over all turns, of the ratio of the two times. */
#include "data.h"
#include "ours.h"
#include "workload.h"
#include <stdlib.h>

/* Rounds of a third of a millisecond: another program takes a processor for longer than that, and so disturbs few of them. */
enum { ROUNDS = 400, SAVES = 25 };

/* Opens a coordinator with a store of its own, in which all values are saved as one version. */
static llvs_coordinator *open_coordinator(const setting *setting, const char *ids) {
    char *path = path_in(setting, "coordinated");
    llvs_store_options store = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_change *changes = allocate(setting->count, sizeof *changes);
    uint8_t *values = allocate(setting->count, setting->value_size);
    llvs_coordinator *coordinator;
    llvs_error *error;
    size_t i;
    store.durability = LLVS_DURABILITY_NORMAL;
    options.store = &store;
    for (i = 0; i < setting->count; i++) {
        uint8_t *value = values + i * setting->value_size;
        data_value(value, setting->value_size, i, 0);
        changes[i].kind = LLVS_CHANGE_INSERT;
        changes[i].id = llvs_str(data_id(ids, i));
        changes[i].data = llvs_bytes_make(value, setting->value_size);
    }
    must(llvs_coordinator_open(llvs_str(path), &options, &coordinator, &error), error);
    must(llvs_coordinator_save(coordinator, changes, setting->count, sizeof *changes, NULL, NULL, NULL, NULL, &error), error);
    free(values);
    free(changes);
    free(path);
    return coordinator;
}

/* Does the same as save_updates through a coordinator. Returns the seconds. */
static double save_coordinated(const setting *setting, llvs_coordinator *coordinator, const char *ids, uint8_t *value,
                               size_t first_update) {
    double start = now();
    size_t update;
    for (update = first_update; update < first_update + SAVES; update++) {
        size_t i = data_updated(update, setting->count);
        llvs_change change = LLVS_CHANGE_INIT;
        llvs_version_id made;
        llvs_error *error;
        data_value(value, setting->value_size, i, update);
        change.kind = LLVS_CHANGE_UPDATE;
        change.id = llvs_str(data_id(ids, i));
        change.data = llvs_bytes_make(value, setting->value_size);
        must(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, &made, NULL, NULL, &error), error);
    }
    return now() - start;
}

void run_coordinated(const setting *given) {
    setting setting = *given;
    char *ids = data_ids(setting.count, setting.prefix);
    uint8_t *value = allocate(1, setting.value_size);
    version head = read_notes(&setting).head;
    double times[ROUNDS], saves[ROUNDS];
    llvs_coordinator *coordinator;
    llvs_error *error;
    void *database;
    size_t round, rounds = setting.quick ? ROUNDS / 10 : ROUNDS;

    setting.how.is_full = 0;
    coordinator = open_coordinator(&setting, ids);
    report_ready();
    database = open_database(&setting);
    /* The first saves of both open files and fill caches. After that, the two take turns at being first. */
    head = save_updates(&setting, database, ids, head, 1000000, SAVES);
    save_coordinated(&setting, coordinator, ids, value, 1000000);
    for (round = 0; round < rounds; round++) {
        size_t update = 2000000 + round * SAVES;
        double made = 0, saved = 0;
        int turn;
        for (turn = 0; turn < 2; turn++) {
            if ((turn + round) % 2) {
                saved = save_coordinated(&setting, coordinator, ids, value, update);
            } else {
                double start = now();
                head = save_updates(&setting, database, ids, head, update, SAVES);
                made = now() - start;
            }
        }
        times[round] = saved / made;
        saves[round] = SAVES / saved;
    }
    setting.side->close(database);
    must(llvs_coordinator_close(coordinator, &error), error);
    llvs_coordinator_free(coordinator);
    report("per_second", median(saves, rounds));
    report("times", median(times, rounds));
    free(value);
    free(ids);
}

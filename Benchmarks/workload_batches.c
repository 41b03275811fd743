/*
 * Saves all values as ten successive versions. The cost of a version should depend on its own size, not on the values that the store has
 * already.
 */
#include "data.h"
#include "ours.h"
#include "workload.h"
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 10, SIDE = 3 };

void run_batches(const setting *setting) {
    char *ids = data_ids(setting->count, setting->prefix);
    size_t count = setting->count / BATCHES, batch, i;
    llvs_change *changes = allocate(count, sizeof *changes);
    uint8_t *values = allocate(count, setting->value_size);
    llvs_version_id last = { 0, "" }, made;
    double first = 0, newest = 0, start, taken, first_computed = 0, newest_computed = 0, computed;
    llvs_store *store;
    llvs_error *error;
    long before;
    if (count == 0) fail("there are fewer than %d ids", BATCHES);
    /* Make the data in memory before anything is measured. */
    memset(changes, 0, count * sizeof *changes);
    memset(values, 0, count * setting->value_size);
    report_ready();
    before = own_memory();
    store = open_database(setting);
    for (batch = 0; batch < BATCHES; batch++) {
        for (i = 0; i < count; i++) {
            llvs_change change = LLVS_CHANGE_INIT;
            uint8_t *value = values + i * setting->value_size;
            data_value(value, setting->value_size, batch * count + i, 0);
            change.kind = LLVS_CHANGE_INSERT;
            change.id = llvs_str(data_id(ids, batch * count + i));
            change.data = llvs_bytes_make(value, setting->value_size);
            changes[i] = change;
        }
        start = now();
        computed = (double)clock();
        must(llvs_store_make_version(store, batch ? llvs_id(&last) : LLVS_NONE, changes, count, sizeof *changes, NULL, &made, NULL, &error),
             error);
        taken = now() - start;
        computed = (double)clock() - computed;
        last = made;
        if (batch == 0) report("first_ms", taken * 1e3);
        /* Add up several batches, since other programs may disturb one. */
        if (batch < SIDE) first += taken, first_computed += computed;
        if (batch >= BATCHES - SIDE) newest += taken, newest_computed += computed;
    }
    report("last", newest / first);
    /* Do not wait for the disk, which is still writing what was loaded before. */
    report("last_computed", newest_computed / first_computed);
    report("kept", (double)(own_memory() - before) / 1024);
    start = now();
    setting->side->close(store);
    report("close_ms", (now() - start) * 1e3);
    report("versions", BATCHES);
    free(changes);
    free(values);
    free(ids);
}

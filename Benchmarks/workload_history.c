/* Merges, merge bases and differences. */
#include "data.h"
#include "ours.h"
#include "workload.h"
#include <stdlib.h>

enum { CHANGED = 100, PAIRS = 200 };

static version save_one(const setting *setting, void *database, const char *ids, version at, size_t i, size_t update) {
    uint8_t *value = allocate(1, setting->value_size);
    item item;
    data_value(value, setting->value_size, i % setting->count, update);
    item.id = data_id(ids, i % setting->count);
    item.data = value;
    item.size = setting->value_size;
    at = setting->side->save(database, &at, &item, 1);
    free(value);
    return at;
}

/* Makes two branches of 100 one-value versions each, in turns, and merges them. The next two branches begin at the merge. */
static void run_merges(const setting *setting, int is_same) {
    size_t rounds = setting->quick ? 2 : 7, round, i;
    char *ids = data_ids(setting->count, setting->prefix);
    version base = read_notes(setting).head;
    double figures[7], start;
    counts before, after;
    uint8_t *copy = allocate(1, setting->value_size);
    uint64_t state = 7, sum = 0;
    double written = 0, syncs = 0;
    void *database;
    report_ready();
    database = open_database(setting);
    for (round = 0; round < rounds; round++) {
        version a = base, b = base;
        size_t first = (size_t)(draw(&state) % setting->count);
        for (i = 0; i < CHANGED; i++) {
            a = save_one(setting, database, ids, a, first + i, 3000000 + round * 1000 + i);
            /* Make the other half in the opposite order, so that each side is the later one for half of the conflicts. */
            b = save_one(setting, database, ids, b, first + (is_same ? CHANGED - 1 - i : CHANGED + i), 4000000 + round * 1000 + i);
        }
        before = counts_now();
        start = now();
        base = setting->side->merge(database, &a, &b);
        figures[round] = (now() - start) * 1e3;
        after = counts_now();
        written += after.bytes_written - before.bytes_written;
        syncs += after.syncs - before.syncs;
        /* The changes of both sides must be present. */
        for (i = 0; i < 2 * CHANGED; i++) {
            setting->side->fetch(database, data_id(ids, (first + i) % setting->count), &base, copy, setting->value_size);
            sum += copy[0];
        }
    }
    setting->side->close(database);
    report("first_ms", figures[0]);
    report("ms", median(figures, rounds));
    report("written", written / (double)rounds);
    report("syncs", syncs / (double)rounds);
    report("versions", 10001.0 + (double)rounds * 201);
    report("check", (double)sum);
    free(ids);
}

void run_merge(const setting *setting) { run_merges(setting, 0); }
void run_merge_same(const setting *setting) { run_merges(setting, 1); }

void run_differences(const setting *setting) {
    enum { BACK = 10 };
    version versions[PAIRS + BACK];
    double figures[PAIRS], start;
    size_t i, found = 0;
    void *database = open_database(setting);
    setting->side->newest(database, versions, PAIRS + BACK);
    for (i = 0; i < PAIRS; i++) {
        start = now();
        found += setting->side->differences(database, &versions[i + BACK], &versions[i], NULL);
        figures[i] = (now() - start) * 1e3;
    }
    setting->side->close(database);
    report("first_ms", figures[0]);
    report("ms", median(figures, PAIRS));
    report("check", (double)found);
}

/* Reads everything that the 10,000 versions changed, with the bytes, in the order of the ids. */
void run_differences_data(const setting *setting) {
    notes notes = read_notes(setting);
    void *database = open_database(setting);
    double figures[5], start;
    uint64_t sum = 0;
    size_t i, found = 0;
    for (i = 0; i < 5; i++) {
        start = now();
        found = setting->side->differences(database, &notes.first, &notes.head, &sum);
        figures[i] = (now() - start) * 1e6 / (double)found;
    }
    setting->side->close(database);
    report("first_us", figures[0]);
    report("us", median(figures, 5));
    report("check", (double)sum + (double)found);
}

static version save_many(const setting *setting, void *database, const char *ids, const version *at, size_t first, size_t count,
                         size_t update) {
    item *items = allocate(count, sizeof *items);
    uint8_t *data = allocate(count, setting->value_size);
    version made;
    size_t i;
    for (i = 0; i < count; i++) {
        uint8_t *value = data + i * setting->value_size;
        data_value(value, setting->value_size, first + i, update);
        items[i].id = data_id(ids, first + i);
        items[i].data = value;
        items[i].size = setting->value_size;
    }
    made = setting->side->save(database, at, items, count);
    free(data);
    free(items);
    return made;
}

/* Makes three heads of one version each. Each changes another three tenths of the values, 40,000 at most. The third head is merged into the
   merge of the other two. */
void run_merge_large(const setting *setting) {
    size_t changed = scaled(setting, setting->count * 3 / 10 < 40000 ? setting->count * 3 / 10 : 40000), i;
    char *ids = data_ids(setting->count, setting->prefix);
    version base = read_notes(setting).head, heads[3], merged;
    uint8_t *copy = allocate(1, setting->value_size);
    uint64_t sum = 0;
    double start, first;
    void *database;
    database = open_database(setting);
    for (i = 0; i < 3; i++) heads[i] = save_many(setting, database, ids, &base, i * changed, changed, 9500000 + i);
    report_ready();
    start = now();
    merged = setting->side->merge(database, &heads[0], &heads[1]);
    first = now();
    merged = setting->side->merge(database, &merged, &heads[2]);
    report("first_us", (first - start) * 1e6 / (double)changed);
    report("us", (now() - first) * 1e6 / (double)changed);
    for (i = 0; i < 3 * changed; i++) {
        setting->side->fetch(database, data_id(ids, i), &merged, copy, setting->value_size);
        sum += copy[0];
    }
    setting->side->close(database);
    report("check", (double)sum);
    free(copy);
    free(ids);
}

void run_merge_base(const setting *setting) {
    enum { NEAR = 50, FAR = 9 };
    char *ids = data_ids(setting->count, setting->prefix);
    notes notes = read_notes(setting);
    version versions[NEAR], branches[NEAR], far;
    double figures[NEAR], start;
    void *database = open_database(setting);
    size_t i;
    setting->side->newest(database, versions, NEAR);
    for (i = 1; i < NEAR; i++) branches[i] = save_one(setting, database, ids, versions[i], i, 5000000 + i);
    far = save_one(setting, database, ids, notes.first, 0, 5001000);
    for (i = 1; i < NEAR; i++) {
        version base;
        start = now();
        base = setting->side->merge_base(database, &versions[0], &branches[i]);
        figures[i] = (now() - start) * 1e3;
        if (base.number != versions[i].number || strcmp(base.id.text, versions[i].id.text) != 0) fail("the merge base is wrong");
    }
    report("near_ms", median(figures + 1, NEAR - 1));
    for (i = 0; i < FAR; i++) {
        version base;
        start = now();
        base = setting->side->merge_base(database, &versions[i], &far);
        figures[i] = (now() - start) * 1e3;
        if (base.number != notes.first.number || strcmp(base.id.text, notes.first.id.text) != 0) fail("the merge base is wrong");
    }
    report("root_ms", median(figures, FAR));
    setting->side->close(database);
}

/* Makes two lines that merge each other again and again, and measures the merge of their ends. */
void run_ladder(const setting *setting) {
    size_t rungs = setting->quick ? 100 : 10000, i;
    char *ids = data_ids(setting->count, setting->prefix);
    version left = read_notes(setting).head, right = left;
    double start;
    void *database = open_database(setting);
    for (i = 0; i < rungs; i++) {
        version new_left = save_one(setting, database, ids, left, 2 * i, 6000000 + i);
        version new_right = save_one(setting, database, ids, right, 2 * i + 1, 7000000 + i);
        left = setting->side->merge(database, &new_left, &new_right);
        /* Merging the same two again would give the same version. */
        right = save_one(setting, database, ids, new_right, 2 * i + 1, 7500000 + i);
        right = setting->side->merge(database, &right, &new_left);
    }
    left = save_one(setting, database, ids, left, 1, 8000000);
    right = save_one(setting, database, ids, right, 2, 8000001);
    start = now();
    setting->side->merge(database, &left, &right);
    report("ms", (now() - start) * 1e3);
    setting->side->close(database);
}

/* Makes a line of 1,000 versions with a branch of 99 versions at each, in turns, with one value in each version. A process that opens the
   store then folds the 1,000 heads into one. */
void run_heads(const setting *setting) {
    size_t heads = setting->quick ? 50 : 1000, length = setting->quick ? 4 : 99, i, j;
    char *ids = data_ids(setting->count, setting->prefix);
    version *tips = allocate(heads, sizeof *tips), head = read_notes(setting).head;
    llvs_version_list *merged, *left;
    llvs_error *error;
    uint64_t state = 9;
    uint8_t *copy = allocate(1, setting->value_size);
    double start;
    void *database = open_database(setting);
    for (i = 0; i < heads; i++) tips[i] = head = save_one(setting, database, ids, head, draw(&state) % setting->count, 9000000 + i);
    for (j = 0; j < length; j++)
        for (i = 0; i < heads; i++)
            tips[i] = save_one(setting, database, ids, tips[i], draw(&state) % setting->count, 9100000 + j * heads + i);
    setting->side->close(database);
    database = open_database(setting);
    start = now();
    must(llvs_store_merge_heads(database, llvs_id(&tips[0].id), NULL, NULL, &merged, &error), error);
    report("ms", (now() - start) * 1e3);
    memset(&head, 0, sizeof head);
    head.id.size = (uint32_t)merged->items[0]->id.size;
    memcpy(head.id.text, merged->items[0]->id.data, head.id.size);
    start = now();
    setting->side->fetch(database, data_id(ids, 0), &head, copy, setting->value_size);
    report("fetch_ms", (now() - start) * 1e3);
    must(llvs_store_heads(database, NULL, &left, &error), error);
    if (left->count != 1) fail("%zu heads are left", left->count);
    llvs_version_list_free(left);
    llvs_version_list_free(merged);
    setting->side->close(database);
    free(tips);
}

/* Folds many heads of one value each, all based on one version. */
void run_fold(const setting *setting) {
    size_t heads = setting->quick ? 200 : 20000, i;
    char *ids = data_ids(setting->count, setting->prefix);
    version base = read_notes(setting).head, tip = base;
    llvs_version_list *merged;
    llvs_error *error;
    double start;
    void *database = open_database(setting);
    for (i = 0; i < heads; i++) tip = save_one(setting, database, ids, base, i, 9700000 + i);
    report_ready();
    start = now();
    must(llvs_store_merge_heads(database, llvs_id(&tip.id), NULL, NULL, &merged, &error), error);
    report("ms", (now() - start) * 1e3);
    llvs_version_list_free(merged);
    setting->side->close(database);
    free(ids);
}

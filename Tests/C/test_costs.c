/*
 * The costs of operations for fixed workloads: allocations, opened files, reads, writes, bytes and syncs, compared with the table in
 * costs.txt. These counts do not depend on the speed of the machine, so they reveal what would make the store slower, and no time is
 * measured. After an intended change of costs, write the table again:
 *
 *     LLVS_PRINT_COSTS=1 build/tests/test_costs_c > Tests/C/costs.txt
 */
#include "support.h"
#include "counting/allocations.h"
#include "counting/calls.h"

/* ---- costs ---- */

typedef enum column { ALLOCATIONS, OPENS, MAPPINGS, READS, BYTES_READ, WRITES, BYTES_WRITTEN, SYNCS, COLUMNS } column;
static const char *const column_names[COLUMNS] = { "allocations", "opens",  "mappings",      "reads",
                                                   "bytes-read",  "writes", "bytes-written", "syncs" };
/*
 * How far a cost may exceed the table: by a share of it, and by an amount for each operation. A store that was opened 300 times now and
 * then has one file more to open, of 54.
 */
static const double share_allowed[COLUMNS] = { 0.05, 0.02, 0, 0.05, 0.05, 0, 0.03, 0 };
static const double more_allowed[COLUMNS] = { 0.3, 0.05, 0.05, 0.1, 64, 0.05, 8, 0.02 };

enum { ROWS_MAX = 120 };
typedef struct row {
    char name[48];
    double costs[COLUMNS]; /* for each operation */
} row;
static row measured[ROWS_MAX], expected[ROWS_MAX];
static size_t measured_count, expected_count;

static double before[COLUMNS];

static void count_now(double counts[COLUMNS]) {
    call_counts calls = calls_counted();
    counts[ALLOCATIONS] = (double)allocations_counted();
    counts[OPENS] = (double)calls.opens;
    counts[MAPPINGS] = (double)calls.mappings;
    counts[READS] = (double)calls.reads;
    counts[BYTES_READ] = (double)calls.bytes_read;
    counts[WRITES] = (double)calls.writes;
    counts[BYTES_WRITTEN] = (double)calls.bytes_written;
    counts[SYNCS] = (double)calls.syncs;
}

static void begin(void) { count_now(before); }

/* Records the costs since `begin`, divided by the number of operations. */
static void end(const char *name, const char *group, size_t operations) {
    double after[COLUMNS];
    row *row = &measured[measured_count++];
    int i;
    count_now(after);
    assert_true(measured_count <= ROWS_MAX);
    snprintf(row->name, sizeof row->name, "%s/%s", group, name);
    for (i = 0; i < COLUMNS; i++) row->costs[i] = (after[i] - before[i]) / (double)operations;
}

static int is_worse(double cost, double than, column column) {
    return cost > than * (1 + share_allowed[column]) + more_allowed[column];
}

static const row *row_named(const row *rows, size_t count, const char *name) {
    size_t i;
    for (i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

/* ---- the table ---- */

static void read_table(void) {
    char line[512];
    FILE *file = fopen(LLVS_SOURCE_DIR "/Tests/C/costs.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        row *row = &expected[expected_count];
        double *c = row->costs;
        if (line[0] == '#' || line[0] == '\n') continue;
        assert_true(expected_count < ROWS_MAX);
        assert_int_equal(
            sscanf(line, "%47s %lf %lf %lf %lf %lf %lf %lf %lf", row->name, &c[0], &c[1], &c[2], &c[3], &c[4], &c[5], &c[6], &c[7]),
            1 + COLUMNS);
        expected_count++;
    }
    fclose(file);
}

static void print_table(void) {
    size_t i;
    int column;
    printf("# What one operation costs: see test_costs.c, which compares and which writes this table.\n#\n# %-36s", "");
    for (column = 0; column < COLUMNS; column++) printf(" %14s", column_names[column]);
    printf("\n");
    for (i = 0; i < measured_count; i++) {
        printf("%-38s", measured[i].name);
        for (column = 0; column < COLUMNS; column++) printf(" %14.*f", measured[i].costs[column] < 1000 ? 2 : 0, measured[i].costs[column]);
        printf("\n");
    }
}

/* ---- data ---- */

enum { VALUE_SIZE = 100, UPDATES = 1000 };
typedef struct dataset {
    size_t count;
    char (*ids)[40];
    uint8_t (*values)[VALUE_SIZE];
} dataset;

static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static dataset make_data(size_t count) {
    dataset data;
    uint64_t state = 1;
    size_t i, at;
    data.count = count;
    data.ids = calloc(count, sizeof *data.ids);
    data.values = calloc(count, sizeof *data.values);
    assert_true(data.ids && data.values);
    for (i = 0; i < count; i++) {
        uint64_t a = draw(&state), b = draw(&state);
        snprintf(data.ids[i], sizeof data.ids[i], "%08X-%04X-4%03X-A%03X-%012llX", (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xFFFF),
                 (unsigned)(a & 0xFFF), (unsigned)(b >> 52), (unsigned long long)(b & 0xFFFFFFFFFFFFu));
        for (at = 0; at < VALUE_SIZE; at++) data.values[i][at] = (uint8_t)draw(&state);
    }
    return data;
}

static void free_data(dataset *data) {
    free(data->ids);
    free(data->values);
}

static llvs_store *open_kind(const char *path, llvs_storage_kind kind, llvs_durability durability) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    options.storage = kind;
    options.durability = durability;
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    return store;
}

static void close_store(llvs_store *store) {
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}

static llvs_change change_of(const dataset *data, size_t i, llvs_change_kind kind) {
    llvs_change change = LLVS_CHANGE_INIT;
    change.kind = kind;
    change.id = llvs_str(data->ids[i % data->count]);
    change.data = llvs_bytes_make(data->values[i % data->count], VALUE_SIZE);
    return change;
}

static llvs_version_id load(llvs_store *store, const dataset *data) {
    llvs_change *changes = calloc(data->count, sizeof *changes);
    llvs_version_id id;
    size_t i;
    assert_non_null(changes);
    for (i = 0; i < data->count; i++) changes[i] = change_of(data, i, LLVS_CHANGE_INSERT);
    OK(llvs_store_make_version(store, LLVS_NONE, changes, data->count, sizeof *changes, NULL, &id, NULL, &error));
    free(changes);
    return id;
}

/* Saves versions that change one value each. The number of a version determines which value. */
static llvs_version_id save_updates(llvs_store *store, const dataset *data, llvs_version_id at, size_t first, size_t count) {
    size_t i;
    for (i = first; i < first + count; i++) {
        uint64_t state = i;
        size_t which = (size_t)draw(&state) % data->count;
        llvs_change change = change_of(data, which, LLVS_CHANGE_UPDATE);
        llvs_version_id id;
        data->values[which][0]++;
        OK(llvs_store_make_version(store, llvs_id(&at), &change, 1, sizeof change, NULL, &id, NULL, &error));
        at = id;
    }
    return at;
}

static void fetch(llvs_store *store, const dataset *data, llvs_version_id at, size_t first, size_t count) {
    size_t i;
    for (i = first; i < first + count; i++) {
        uint64_t state = i;
        llvs_buffer buffer;
        OK(llvs_store_value(store, llvs_str(data->ids[(size_t)draw(&state) % data->count]), llvs_id(&at), &buffer, NULL, &error));
        assert_int_equal(buffer.size, VALUE_SIZE);
        llvs_buffer_dispose(&buffer);
    }
}

/* Reads one value at each of several versions, which are far apart and have no maps in memory. */
static void fetch_here_and_there(llvs_store *store, const dataset *data, const llvs_version_list *versions, size_t first, size_t count) {
    size_t i;
    for (i = first; i < first + count; i++) {
        uint64_t state = i;
        const llvs_version_info *at = versions->items[(size_t)draw(&state) % versions->count];
        llvs_version_id id = { 0, "" };
        memcpy(id.text, at->id.data, id.size = (uint32_t)at->id.size);
        fetch(store, data, id, i, 1);
    }
}

static size_t enumerate(llvs_store *store, llvs_version_id at, const char *prefix, size_t limit) {
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_list *page = NULL, *next;
    size_t count = 0;
    range.prefix = llvs_str(prefix);
    range.limit = limit;
    for (;;) {
        OK(llvs_store_enumerate(store, llvs_id(&at), &range, &next, &error));
        llvs_value_list_free(page);
        page = next;
        if (!page) return count;
        count += page->count;
        if (limit && count >= limit) break;
        range.after = page->items[page->count - 1]->id;
    }
    llvs_value_list_free(page);
    return count;
}

static size_t differences(llvs_store *store, llvs_version_id from, llvs_version_id to, uint32_t with_data) {
    llvs_change_cursor *cursor;
    llvs_change_list *page;
    size_t count = 0;
    OK(llvs_store_differences(store, llvs_id(&from), llvs_id(&to), NULL, NULL, &cursor, &error));
    for (;;) {
        OK(llvs_change_cursor_next(cursor, 0, with_data, &page, &error));
        if (!page) break;
        count += page->count;
        llvs_change_list_free(page);
    }
    llvs_change_cursor_free(cursor);
    return count;
}

static llvs_version_id merge(llvs_store *store, llvs_version_id a, llvs_version_id b) {
    llvs_version_list *merged;
    llvs_version_id id;
    memset(&id, 0, sizeof id);
    OK(llvs_store_merge(store, llvs_id(&a), llvs_id(&b), NULL, NULL, &merged, &error));
    assert_int_equal(merged->count, 1);
    id.size = (uint32_t)merged->items[0]->id.size;
    memcpy(id.text, merged->items[0]->id.data, id.size);
    llvs_version_list_free(merged);
    return id;
}

/* ---- workloads ---- */

typedef struct subject {
    llvs_storage_kind kind;
    const char *group;
    size_t count;
} subject;

static void measure_merges(llvs_store *store, const dataset *data, llvs_version_id base, const subject *subject, size_t changed,
                           int is_same) {
    enum { ROUNDS = 5 };
    double sum[COLUMNS] = { 0 }, after[COLUMNS];
    size_t round, i;
    int column;
    for (round = 0; round < ROUNDS + 1; round++) {
        llvs_version_id a, b;
        size_t first = round * 1000;
        a = save_updates(store, data, base, first, changed);
        b = save_updates(store, data, base, is_same ? first : first + changed, changed);
        begin();
        base = merge(store, a, b);
        count_now(after);
        /* The first round fills caches. */
        for (i = 0; round > 0 && i < COLUMNS; i++) sum[i] += after[i] - before[i];
    }
    begin();
    end(is_same ? "merge-same-100" : "merge-100+100", subject->group, 1);
    for (column = 0; column < COLUMNS; column++) measured[measured_count - 1].costs[column] = sum[column] / ROUNDS;
}

static void measure_saving_and_reading(const subject *subject) {
    char *directory = new_directory(), *path = join(directory, "store");
    dataset data = make_data(subject->count);
    llvs_version_id first, head, ten_back;
    llvs_history_cursor *cursor;
    llvs_version_list *versions;
    llvs_store *store = open_kind(path, subject->kind, LLVS_DURABILITY_NORMAL);

    begin();
    first = load(store, &data);
    end("load", subject->group, 1);
    begin();
    close_store(store);
    end("close-after-load", subject->group, 1);

    store = open_kind(path, subject->kind, LLVS_DURABILITY_NORMAL);
    head = save_updates(store, &data, first, 0, 10);
    begin();
    head = save_updates(store, &data, head, 10, UPDATES);
    end("save-one-value,-normal", subject->group, UPDATES);
    begin();
    close_store(store);
    end("close-after-saving", subject->group, 1);

    store = open_kind(path, subject->kind, LLVS_DURABILITY_FULL);
    head = save_updates(store, &data, head, 10 + UPDATES, 10);
    begin();
    head = save_updates(store, &data, head, 20 + UPDATES, 50);
    end("save-one-value,-full", subject->group, 50);
    close_store(store);

    begin();
    store = open_kind(path, subject->kind, LLVS_DURABILITY_NORMAL);
    fetch(store, &data, head, 0, 1);
    end("open-and-fetch", subject->group, 1);
    fetch(store, &data, head, 0, 5000);
    begin();
    fetch(store, &data, head, 2500, 5000);
    end("fetch-at-the-head", subject->group, 5000);
    begin();
    fetch(store, &data, first, 0, 1);
    end("fetch-at-the-first,-once", subject->group, 1);
    fetch(store, &data, first, 0, 5000);
    begin();
    fetch(store, &data, first, 2500, 5000);
    end("fetch-at-the-first", subject->group, 5000);
    close_store(store);
    store = open_kind(path, subject->kind, LLVS_DURABILITY_NORMAL);
    OK(llvs_store_history(store, NULL, NULL, &cursor, &error));
    OK(llvs_history_cursor_next(cursor, UPDATES, NULL, &versions, &error));
    llvs_history_cursor_free(cursor);
    fetch_here_and_there(store, &data, versions, 0, 500);
    begin();
    fetch_here_and_there(store, &data, versions, 500, 1000);
    end("fetch-here-and-there", subject->group, 1000);
    llvs_version_list_free(versions);
    fetch(store, &data, head, 0, 5000);
    assert_int_equal(enumerate(store, head, "", 0), subject->count);
    begin();
    assert_int_equal(enumerate(store, head, "", 0), subject->count);
    end("enumerate", subject->group, 1);
    enumerate(store, head, "7", 50);
    begin();
    assert_int_equal(enumerate(store, head, "7", 50), 50);
    end("prefix-scan-of-50", subject->group, 1);
    ten_back = head;
    head = save_updates(store, &data, head, 5000, 10);
    differences(store, ten_back, head, 0);
    begin();
    assert_int_equal(differences(store, ten_back, head, 0), 10);
    end("differences-of-10", subject->group, 1);
    measure_merges(store, &data, head, subject, 100, 0);
    measure_merges(store, &data, head, subject, 100, 1);
    close_store(store);
    free_data(&data);
    free(path);
    remove_directory(directory);
}

/* Walks through the history, and a value too large for a record. */
static void measure_history_and_large_values(void) {
    enum { LARGE = 4 << 20, BRANCH = 500 };
    char *directory = new_directory(), *path = join(directory, "store");
    dataset data = make_data(1000);
    llvs_store *store = open_kind(path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL);
    llvs_version_id base = load(store, &data), a = save_updates(store, &data, base, 0, BRANCH),
                    b = save_updates(store, &data, base, BRANCH, BRANCH);
    uint8_t *large = malloc(LARGE);
    llvs_version_list *list;
    llvs_history_cursor *cursor;
    llvs_history_options history = LLVS_HISTORY_OPTIONS_INIT;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_buffer buffer;
    uint64_t state = 3;
    int i;
    for (i = 0; i < 2; i++) {
        begin();
        OK(llvs_store_merge_bases(store, llvs_id(&a), llvs_id(&b), NULL, &list, &error));
        llvs_version_list_free(list);
    }
    end("merge-base-500-back", "history", 1);
    for (i = 0; i < 2; i++) {
        begin();
        OK(llvs_store_history(store, NULL, NULL, &cursor, &error));
        OK(llvs_history_cursor_next(cursor, 100, NULL, &list, &error));
        llvs_version_list_free(list);
        llvs_history_cursor_free(cursor);
    }
    end("newest-100", "history", 1);
    /* The sizes of 1,001 versions, by kind, prefix, month and version. */
    for (i = 0; i < 2; i++) {
        llvs_size_report *report;
        begin();
        OK(llvs_store_size(store, NULL, &report, &error));
        assert_int_equal(report->versions, 2 * BRANCH + 1);
        llvs_size_report_free(report);
    }
    end("sizes,-for-each-version", "history", 2 * BRANCH + 1);
    /* One value among a thousand versions, changed three times. */
    history.value_id = llvs_str("rare");
    a = save(store, &a, update("rare", "1"));
    a = save_updates(store, &data, a, 2 * BRANCH, BRANCH);
    a = save(store, &a, update("rare", "2"));
    a = save_updates(store, &data, a, 3 * BRANCH, BRANCH);
    change.kind = LLVS_CHANGE_REMOVE;
    change.id = history.value_id;
    a = save(store, &a, change);
    for (i = 0; i < 2; i++) {
        begin();
        OK(llvs_store_history(store, &history, NULL, &cursor, &error));
        OK(llvs_history_cursor_next(cursor, 100, NULL, &list, &error));
        assert_int_equal(list->count, 3);
        llvs_version_list_free(list);
        llvs_history_cursor_free(cursor);
    }
    end("of-one-value,-3-changes", "history", 1);
    assert_non_null(large);
    for (i = 0; i < LARGE; i++) large[i] = (uint8_t)draw(&state);
    change.kind = LLVS_CHANGE_INSERT;
    change.id = llvs_str("large");
    change.data = llvs_bytes_make(large, LARGE);
    begin();
    a = save(store, &a, change);
    end("save-4-MiB", "large", 1);
    for (i = 0; i < 2; i++) {
        begin();
        OK(llvs_store_value(store, llvs_str("large"), llvs_id(&a), &buffer, NULL, &error));
        assert_int_equal(buffer.size, LARGE);
        llvs_buffer_dispose(&buffer);
    }
    end("fetch-4-MiB", "large", 1);
    free(large);
    close_store(store);
    free_data(&data);
    free(path);
    remove_directory(directory);
}

static llvs_version_id save_many(llvs_store *store, const dataset *data, const llvs_version_id *at, size_t first, size_t count) {
    llvs_change *changes = calloc(count, sizeof *changes);
    llvs_version_id id;
    size_t i;
    assert_non_null(changes);
    for (i = 0; i < count; i++) {
        data->values[(first + i) % data->count][0]++;
        changes[i] = change_of(data, first + i, LLVS_CHANGE_UPDATE);
    }
    OK(llvs_store_make_version(store, llvs_id(at), changes, count, sizeof *changes, NULL, &id, NULL, &error));
    free(changes);
    return id;
}

/* Merges of many changes, folds of many heads, and values by reference. */
static void measure_much_at_once(llvs_storage_kind kind, const char *group) {
    enum { CHANGED = 5000, HEADS = 1000, REFERENCES = 1000 };
    char *directory = new_directory(), *path = join(directory, "store");
    dataset data = make_data(20000);
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_version_id base, branches[3], head, tip = { 0, "" };
    llvs_version_list *folded;
    llvs_buffer buffer;
    uint64_t state = 7;
    size_t i;
    options.storage = kind;
    options.durability = LLVS_DURABILITY_NORMAL;
    options.memory_budget = 1 << 20;
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    base = load(store, &data);
    fetch(store, &data, base, 0, 1);
    for (i = 0; i < 3; i++) branches[i] = save_many(store, &data, &base, i * CHANGED, CHANGED);
    head = merge(store, branches[0], branches[1]);
    begin();
    head = merge(store, head, branches[2]);
    end("merge-a-third-of-5000", group, CHANGED);
    begin();
    assert_int_equal(differences(store, base, head, 1), 3 * CHANGED);
    end("differences-with-data", group, 3 * CHANGED);
    for (i = 0; i < HEADS; i++) tip = save_many(store, &data, &head, i, 1);
    begin();
    OK(llvs_store_merge_heads(store, llvs_id(&tip), NULL, NULL, &folded, &error));
    end("fold-1000-heads", group, HEADS);
    llvs_version_list_free(folded);
    close_store(store);
    /* The memory holds no block, so every read counts. */
    options.memory_budget = 64 << 10;
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    begin();
    for (i = 0; i < REFERENCES; i++) {
        OK(llvs_store_value(store, llvs_str(data.ids[(size_t)draw(&state) % CHANGED]), llvs_id(&branches[0]), &buffer, NULL, &error));
        assert_int_equal(buffer.size, VALUE_SIZE);
        llvs_buffer_dispose(&buffer);
    }
    end("value-by-reference", group, REFERENCES);
    close_store(store);
    free_data(&data);
    free(path);
    remove_directory(directory);
}

/* A store that was opened again for each version, and one in which all versions were made at once: the cost of the next opening. */
static void measure_openings(llvs_storage_kind kind, const char *group) {
    enum { OPENINGS = 300 };
    int opens_for_each;
    for (opens_for_each = 0; opens_for_each < 2; opens_for_each++) {
        char *directory = new_directory(), *path = join(directory, "store");
        dataset data = make_data(100);
        llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
        llvs_store *store = open_kind(path, kind, LLVS_DURABILITY_NORMAL);
        llvs_version_id head = load(store, &data);
        int i;
        /* Compacted files are deleted by the next handle that closes. */
        options.compaction_grace = 1e-9;
        options.storage = kind;
        options.durability = LLVS_DURABILITY_NORMAL;
        for (i = 0; i < OPENINGS; i++) {
            if (opens_for_each) {
                close_store(store);
                OK(llvs_store_open(llvs_str(path), &options, &store, &error));
            }
            head = save_updates(store, &data, head, (size_t)i, 1);
        }
        close_store(store);
        begin();
        store = open_kind(path, kind, LLVS_DURABILITY_NORMAL);
        fetch(store, &data, head, 0, 1);
        end(opens_for_each ? "open-after-300-openings" : "open-after-one-opening", group, 1);
        close_store(store);
        free_data(&data);
        free(path);
        remove_directory(directory);
    }
}

static void send_and_retrieve(const char *group, const char *directory, const char *name, const char *url) {
    enum { VERSIONS = 200 };
    dataset data = make_data(1000);
    char *from_path = join(directory, name), *to_path = malloc(strlen(from_path) + 4);
    llvs_store *from, *to;
    llvs_exchange *out, *in;
    llvs_exchange_result *result;
    llvs_version_id head;
    sprintf(to_path, "%s-to", from_path);
    from = open_kind(from_path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL);
    to = open_kind(to_path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL);
    head = load(from, &data);
    OK(llvs_exchange_open(from, llvs_str(url), NULL, &out, &error));
    OK(llvs_exchange_open(to, llvs_str(url), NULL, &in, &error));
    OK(llvs_exchange_send(out, NULL, &result, &error));
    llvs_exchange_result_free(result);
    OK(llvs_exchange_retrieve(in, NULL, &result, &error));
    llvs_exchange_result_free(result);
    save_updates(from, &data, head, 0, VERSIONS);
    begin();
    OK(llvs_exchange_send(out, NULL, &result, &error));
    end("send-200", group, 1);
    llvs_exchange_result_free(result);
    begin();
    OK(llvs_exchange_retrieve(in, NULL, &result, &error));
    end("retrieve-200", group, 1);
    llvs_exchange_result_free(result);
    begin();
    OK(llvs_exchange_retrieve(in, NULL, &result, &error));
    end("retrieve-nothing-new", group, 1);
    llvs_exchange_result_free(result);
    assert_int_equal(version_count(to), VERSIONS + 1);
    llvs_exchange_free(out);
    llvs_exchange_free(in);
    close_store(from);
    close_store(to);
    free(from_path);
    free(to_path);
    free_data(&data);
}

static void measure_exchanges(void) {
    char *directory = new_directory(), *folder = join(directory, "folder"), *url = malloc(strlen(folder) + 16);
    sprintf(url, "file://%s", folder);
    send_and_retrieve("exchange-in-memory", directory, "memory", "memory:costs");
    send_and_retrieve("exchange-in-folder", directory, "files", url);
    free(url);
    free(folder);
    remove_directory(directory);
}

/* ---- values as differences ---- */

/* Carries the waiting bytes between both ends. Returns their number. */
static size_t carry(llvs_peer *one, llvs_peer *two) {
    uint8_t data[4096];
    size_t size, all = 0, idle = 0;
    llvs_peer *from = one, *to = two, *other;
    while (idle < 2) {
        OK(llvs_peer_send(from, data, sizeof data, &size, &error));
        if (size > 0) {
            OK(llvs_peer_receive(to, llvs_bytes_make(data, size), &error));
            all += size;
            idle = 0;
            continue;
        }
        idle++;
        other = from;
        from = to;
        to = other;
    }
    return all;
}

/* Edits of a long value, in a store and over a link. */
static void measure_value_differences(void) {
    enum { SIZE = 40000, EDITS = 40, LONGEST = 4, OTHER_LONGEST = 8, FETCHES = 20 };
    static const char secret[LLVS_PAIRING_SIZE] = "a pairing of forty-eight bytes, both sides know";
    char *directory = new_directory(), *from_path = join(directory, "from"), *to_path = join(directory, "to");
    uint8_t *text = malloc(SIZE);
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_peer_options peer = LLVS_PEER_OPTIONS_INIT;
    llvs_store *from, *to;
    llvs_peer *one, *two;
    llvs_version_id made[EDITS + 1], at;
    llvs_change change = insert("note", "");
    llvs_buffer buffer;
    uint64_t state = 3;
    size_t i, carried = 0;
    assert_non_null(text);
    for (i = 0; i < SIZE; i++) text[i] = (uint8_t)draw(&state);
    options.durability = LLVS_DURABILITY_NORMAL;
    OK(llvs_store_open(llvs_str(from_path), &options, &from, &error));
    change.data = llvs_bytes_make(text, SIZE);
    made[0] = save(from, NULL, change);
    change.kind = LLVS_CHANGE_UPDATE;
    begin();
    for (i = 1; i <= EDITS; i++) {
        text[i * 7919 % SIZE] ^= 1;
        made[i] = save(from, &made[i - 1], change);
    }
    end("save-an-edit", "value-differences", EDITS);
    close_store(from);
    /* With so little memory no base is cached, so each one is read. */
    options.memory_budget = 64 << 10;
    OK(llvs_store_open(llvs_str(from_path), &options, &from, &error));
    begin();
    for (i = 0; i < FETCHES; i++) {
        OK(llvs_store_value(from, llvs_str("note"), llvs_id(&made[i % 2 ? LONGEST : OTHER_LONGEST]), &buffer, NULL, &error));
        assert_int_equal(buffer.size, SIZE);
        llvs_buffer_dispose(&buffer);
    }
    end("fetch-after-4-steps", "value-differences", FETCHES);

    OK(llvs_store_open(llvs_str(to_path), &options, &to, &error));
    peer.pairing = llvs_bytes_make(secret, sizeof secret);
    OK(llvs_peer_open(to, &peer, &two, &error));
    peer.initiator = 1;
    OK(llvs_peer_open(from, &peer, &one, &error));
    begin();
    carry(one, two);
    end("link-40-edits", "value-differences", EDITS);
    assert_int_equal(version_count(to), EDITS + 1);
    at = made[EDITS];
    begin();
    for (i = 1; i <= EDITS; i++) {
        text[i * 6007 % SIZE] ^= 1;
        at = save(from, &at, change);
        OK(llvs_peer_store_changed(one, &error));
        carried += carry(one, two);
    }
    end("link-an-edit", "value-differences", EDITS);
    assert_true(carried < EDITS * 1000);
    /* No base may have more than twice the size of its value. */
    change.data.size = SIZE / 2;
    save(from, &at, change);
    OK(llvs_peer_store_changed(one, &error));
    begin();
    assert_true(carry(one, two) < 1000);
    end("link-the-widest-base", "value-differences", 1);
    assert_int_equal(version_count(to), 2 * EDITS + 2);
    llvs_peer_free(one);
    llvs_peer_free(two);
    close_store(from);
    close_store(to);
    free(text);
    free(from_path);
    free(to_path);
    remove_directory(directory);
}

/* ---- costs that others can cause ---- */

static llvs_version_id set(llvs_store *store, llvs_version_id at, const char *id, const char *data) {
    return save(store, &at, update(id, data));
}

/* Makes two lines that are merged with each other at each step. */
static llvs_version_id climb(llvs_store *store, llvs_version_id at, int rungs) {
    llvs_version_id a = set(store, at, "left", "0"), b = set(store, at, "right", "0");
    int rung;
    for (rung = 0; rung < rungs; rung++) {
        char text[20];
        llvs_version_id x, y;
        snprintf(text, sizeof text, "%d", rung);
        x = set(store, a, "left", text);
        y = set(store, b, "right", text);
        a = merge(store, x, b);
        b = merge(store, y, x);
    }
    return merge(store, a, b);
}

/* Versions of other devices that preserve many values of old versions. */
static void measure_preserves(void) {
    enum { RUNGS = 200, PRESERVES = 300 };
    dataset data = make_data(PRESERVES);
    llvs_store *from = memory_store(), *to = memory_store();
    llvs_exchange *out, *in;
    llvs_exchange_result *result;
    llvs_version_id root = save(from, NULL, insert("root", "")), side, other;
    OK(llvs_exchange_open(from, llvs_str("memory:preserves"), NULL, &out, &error));
    OK(llvs_exchange_open(to, llvs_str("memory:preserves"), NULL, &in, &error));
    side = climb(from, save_many(from, &data, &root, 0, PRESERVES), RUNGS);
    /* The newer side comes first, so the values below the ladder are preserved. */
    other = set(from, root, "other", "");
    OK(llvs_exchange_send(out, NULL, NULL, &error));
    OK(llvs_exchange_retrieve(in, NULL, NULL, &error));
    merge(from, side, other);
    OK(llvs_exchange_send(out, NULL, NULL, &error));
    begin();
    OK(llvs_exchange_retrieve(in, NULL, &result, &error));
    end("preserve-under-a-ladder-of-200", "hostile", PRESERVES);
    assert_int_equal(result->retrieved_count, 1);
    llvs_exchange_result_free(result);
    llvs_exchange_free(out);
    llvs_exchange_free(in);
    close_store(from);
    close_store(to);
    free_data(&data);
}

/* Versions side by side, merged one after the other in two orders. They are the common ancestors of the two results. */
static void measure_common_bases(void) {
    enum { BASES = 200 };
    llvs_store *store = memory_store();
    llvs_version_id root = save(store, NULL, insert("x", "")), bases[BASES], a, b;
    int i;
    for (i = 0; i < BASES; i++) {
        char text[20];
        snprintf(text, sizeof text, "%d", i);
        /* The newest one differs from all others, which keep the value of the root. */
        bases[i] = set(store, root, i == BASES - 1 ? "x" : text, text);
    }
    a = bases[0];
    b = bases[BASES - 1];
    for (i = 1; i < BASES; i++) {
        a = merge(store, a, bases[i]);
        b = merge(store, b, bases[BASES - 1 - i]);
    }
    a = set(store, a, "x", "a");
    b = set(store, b, "x", "b");
    begin();
    merge(store, a, b);
    end("base-of-200-of-a-merge", "hostile", BASES);
    close_store(store);
}

/* Heads, each of which merges a version of a line with a version beside the line. */
static void measure_heads_on_a_line(void) {
    enum { HEADS = 300 };
    llvs_store *store = memory_store();
    llvs_version_id root = save(store, NULL, insert("x", "")), side = set(store, root, "side", ""), line[HEADS], at = root;
    llvs_version_list *folded;
    int i;
    for (i = 0; i < HEADS; i++) {
        char text[20];
        snprintf(text, sizeof text, "%d", i);
        at = line[i] = set(store, at, "x", text);
    }
    for (i = 0; i < HEADS; i++) merge(store, line[i], side);
    begin();
    OK(llvs_store_merge_heads(store, llvs_id(&at), NULL, NULL, &folded, &error));
    end("head-of-300-on-a-line", "hostile", HEADS);
    llvs_version_list_free(folded);
    close_store(store);
}

/* Unknown ids, while versions wait for missing large values. */
static void measure_waiting(void) {
    enum { WAITING = 20, ASKED = 100 };
    char *directory = new_directory(), *path = join(directory, "store"), command[2000];
    llvs_store *store = open_kind(path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL);
    llvs_change change = insert("large", "");
    llvs_version_id root = save(store, NULL, insert("x", ""));
    llvs_version_list *found;
    uint8_t *large = calloc(1, (1 << 20) + 1);
    int i;
    assert_non_null(large);
    assert_true(strlen(path) < 900);
    change.data = llvs_bytes_make(large, (1 << 20) + 1);
    for (i = 0; i < WAITING; i++) {
        large[0] = (uint8_t)i;
        save(store, &root, change);
    }
    close_store(store);
    sprintf(command, "rm -rf '%s/blobs' '%s/cache'", path, path);
    assert_int_equal(system(command), 0);
    store = open_kind(path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL);
    begin();
    for (i = 0; i < ASKED; i++) {
        char id[20];
        snprintf(id, sizeof id, "nobody-%d", i);
        OK(llvs_store_version(store, llvs_str(id), &found, &error));
        llvs_version_list_free(found);
    }
    end("unknown-id-while-20-wait", "hostile", ASKED);
    close_store(store);
    free(large);
    free(path);
    remove_directory(directory);
}

/* A folder full of empty files with such names, and a retrieve from it; then a second retrieve. */
static void measure_names(const char *format, const char *first, const char *again) {
    enum { NAMES = 5000 };
    char *directory = new_directory(), *folder = join(directory, "folder"), *url = malloc(strlen(folder) + 16),
         *name = malloc(strlen(folder) + 64);
    llvs_store *store = memory_store();
    llvs_exchange *exchange;
    llvs_exchange_result *result;
    int i;
    assert_true(url && name);
    sprintf(url, "file://%s", folder);
    save(store, NULL, insert("x", ""));
    OK(llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error));
    OK(llvs_exchange_send(exchange, NULL, NULL, &error));
    for (i = 0; i < NAMES; i++) {
        FILE *file;
        sprintf(name + sprintf(name, "%s/versions/", folder), format, i);
        file = fopen(name, "w");
        assert_non_null(file);
        fclose(file);
    }
    begin();
    OK(llvs_exchange_retrieve(exchange, NULL, &result, &error));
    end(first, "hostile", NAMES);
    llvs_exchange_result_free(result);
    if (again) {
        begin();
        OK(llvs_exchange_retrieve(exchange, NULL, &result, &error));
        end(again, "hostile", NAMES);
        llvs_exchange_result_free(result);
    }
    llvs_exchange_free(exchange);
    close_store(store);
    free(url);
    free(name);
    free(folder);
    remove_directory(directory);
}

/* ---- merging inside values ---- */

/* A document of 4,000 parts. Each of two sides changed 40 of them. */
static llvs_bytes document(const char *begin, const char *part, const char *between, const char *end, int side) {
    enum { PARTS = 4000, PART = 64 };
    char *text = malloc(PARTS * PART), *at = text;
    llvs_bytes bytes;
    int i;
    assert_non_null(text);
    at += sprintf(at, "%s", begin);
    for (i = 0; i < PARTS; i++) {
        if (i > 0) at += sprintf(at, "%s", between);
        at += sprintf(at, part, i, side && i % 100 == 7 * side ? side : 0);
    }
    sprintf(at, "%s", end);
    bytes.data = (const uint8_t *)text;
    bytes.size = strlen(text);
    return bytes;
}

static void measure_documents(void) {
    static const char *const subjects[][6] = {
        { "merge-object-of-4000", "\"auto\"", "{", "\"member %05d\":\"value %d\"", ",", "}" },
        { "merge-list-of-4000", "{\"\":{\"as\":\"list\",\"key\":[\"/id\"]}}", "[", "{\"id\":%d,\"n\":\"value %d\"}", ",", "]" },
        { "merge-set-of-4000", "\"set\"", "[", "\"element %d %d\"", ",", "]" },
        { "merge-text-of-4000-lines", "\"text\"", "", "the line number %d is %d", "\n", "" },
        { "merge-text-of-one-line", "\"text\"", "", "part %d is %d", " ", "" },
    };
    size_t i;
    int side;
    for (i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        llvs_bytes sides[3];
        llvs_merged_value *merged;
        for (side = 0; side < 3; side++) sides[side] = document(subjects[i][2], subjects[i][3], subjects[i][4], subjects[i][5], side);
        begin();
        OK(llvs_merge_values(llvs_str(subjects[i][1]), &sides[0], &sides[1], &sides[2], NULL, &merged, &error));
        assert_int_equal(merged->source, LLVS_MERGED_COMPUTED);
        llvs_merged_value_free(merged);
        end(subjects[i][0], "documents", 1);
        for (side = 0; side < 3; side++) free((void *)(uintptr_t)sides[side].data);
    }
}

/* ---- finding ---- */

static size_t found(llvs_index *index, llvs_version_id at, const char *equal, uint32_t want, uint64_t limit) {
    llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
    llvs_index_page *page;
    size_t count;
    question.equal = llvs_str(equal);
    question.want = want;
    question.limit = limit;
    OK(llvs_index_find(index, llvs_id(&at), &question, NULL, &page, &error));
    count = want == LLVS_INDEX_COUNT ? (size_t)page->total : page->count;
    llvs_index_page_free(page);
    return count;
}

static void measure_indexes(void) {
    enum { VALUES = 4000, VERSIONS = 100 };
    char *directory = new_directory(), *path = join(directory, "store"), (*texts)[64] = calloc(VALUES, sizeof *texts),
         (*ids)[16] = calloc(VALUES, sizeof *ids);
    llvs_store *store = open_kind(path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL);
    llvs_index_options options = LLVS_INDEX_OPTIONS_INIT;
    llvs_index *index;
    llvs_change *changes = calloc(VALUES, sizeof *changes);
    llvs_version_id first, at;
    int i;
    assert_true(texts && ids && changes);
    for (i = 0; i < VALUES; i++) {
        const llvs_change none = LLVS_CHANGE_INIT;
        snprintf(ids[i], sizeof ids[i], "p/%05d", i);
        snprintf(texts[i], sizeof texts[i], "{\"last\":\"name %d\",\"age\":%d}", i % 40, i % 90);
        changes[i] = none;
        changes[i].id = llvs_str(ids[i]);
        changes[i].kind = LLVS_CHANGE_INSERT;
        changes[i].data = llvs_str(texts[i]);
    }
    OK(llvs_store_make_version(store, LLVS_NONE, changes, VALUES, sizeof *changes, NULL, &first, NULL, &error));
    options.definition = llvs_str("{\"prefix\":\"p/\",\"on\":[\"/last\"]}");
    OK(llvs_index_open(store, &options, &index, &error));
    begin();
    assert_int_equal(found(index, first, "[]", LLVS_INDEX_COUNT, 0), VALUES);
    end("make-4000", "index", 1);
    begin();
    assert_int_equal(found(index, first, "[\"name 7\"]", 0, 100), 100);
    end("page-of-100", "index", 1);
    begin();
    assert_int_equal(found(index, first, "[\"name 7\"]", LLVS_INDEX_COUNT, 0), VALUES / 40);
    end("count", "index", 1);
    begin();
    for (at = first, i = 0; i < VERSIONS; i++) at = set(store, at, ids[i], "{\"last\":\"other\"}");
    end("save-one-value", "index", VERSIONS);
    begin();
    assert_int_equal(found(index, at, "[\"other\"]", LLVS_INDEX_COUNT, 0), VERSIONS);
    end("after-100-versions", "index", VERSIONS);
    llvs_index_free(index);
    close_store(store);
    free(changes);
    free(texts);
    free(ids);
    free(path);
    remove_directory(directory);
}

/* Sets values with these ids, each to the same bytes. */
static llvs_version_id set_all(llvs_coordinator *c, char (*ids)[20], int count, const char *data) {
    llvs_change *changes = calloc((size_t)count, sizeof *changes);
    llvs_version_id id;
    int i;
    assert_non_null(changes);
    for (i = 0; i < count; i++) changes[i] = update(ids[i], data);
    OK(llvs_coordinator_save(c, changes, (size_t)count, sizeof *changes, NULL, &id, NULL, NULL, &error));
    free(changes);
    return id;
}

/*
 * The undo of a save of many values, beside as many saves of other devices, and its redo; and a merge with forged undos, each of which
 * names an old version. Each is measured with two sizes. The cost of one value, or of one undo, is the same with both.
 */
static void measure_undos(int count) {
    static const char rules[] = "{\"merge\":1,\"ids\":{\"a*\":\"auto\",\"v*\":\"auto\"}}";
    llvs_store *store;
    llvs_store_options memory = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_coordinator *c;
    llvs_version_id *old = calloc((size_t)count, sizeof *old), at, other, merged;
    char(*ids)[20] = calloc((size_t)count, sizeof *ids), name[40];
    llvs_revert_result *result;
    int i;
    assert_true(old && ids);
    for (i = 0; i < count; i++) snprintf(ids[i], sizeof ids[i], "v%d", i);
    memory.storage = LLVS_STORAGE_MEMORY;
    options.store = &memory;
    options.device = llvs_str("a");
    OK(llvs_coordinator_open(LLVS_NONE, &options, &c, &error));
    OK(llvs_coordinator_store(c, &store, &error));
    OK(llvs_coordinator_register_schema(c, llvs_str(rules), NULL, NULL, &error));
    other = set_all(c, ids, count, "{\"m\":0,\"n\":0}");
    for (i = 0; i < count; i++) other = set(store, other, ids[i], "{\"m\":1,\"n\":0}");
    at = set_all(c, ids, count, "{\"m\":0,\"n\":1}");
    merged = merge(store, at, other);
    OK(llvs_coordinator_set_current_version(c, llvs_id(&merged), &error));
    begin();
    OK(llvs_coordinator_undo(c, 0, NULL, NULL, &result, &error));
    snprintf(name, sizeof name, "undo-of-%d", count);
    end(name, "undos", (size_t)count);
    assert_int_equal(result->undone_count, count);
    llvs_revert_result_free(result);
    begin();
    OK(llvs_coordinator_redo(c, 0, NULL, NULL, &result, &error));
    snprintf(name, sizeof name, "redo-of-%d", count);
    end(name, "undos", (size_t)count);
    assert_int_equal(result->undone_count, count);
    llvs_revert_result_free(result);
    OK(llvs_coordinator_current_version(c, &at, &error));
    for (i = 0; i < count; i++) {
        snprintf(ids[i], sizeof ids[i], "a%d", i);
        at = old[i] = set(store, at, ids[i], "{\"n\":0}");
    }
    other = set(store, at, ids[0], "{\"n\":1}");
    for (i = 0; i < count; i++) {
        llvs_version_options how = LLVS_VERSION_OPTIONS_INIT;
        llvs_metadata_entry mark;
        llvs_change change = update(ids[i ? 1 : 0], "");
        char named[80];
        change.kind = LLVS_CHANGE_REMOVE;
        mark.key = llvs_str("__llvs_undo");
        snprintf(named, sizeof named, "[\"%.*s\"]", (int)old[i].size, old[i].text);
        mark.value = llvs_str(named);
        how.metadata = &mark;
        how.metadata_count = 1;
        OK(llvs_store_make_version(store, llvs_id(&at), &change, 1, sizeof change, &how, &at, NULL, &error));
    }
    begin();
    merge(store, other, at);
    snprintf(name, sizeof name, "forged-undo-of-%d", count);
    end(name, "undos", (size_t)count);
    llvs_store_free(store);
    OK(llvs_coordinator_close(c, &error));
    llvs_coordinator_free(c);
    free(old);
    free(ids);
}

/* ---- erasing ---- */

enum { SEGMENTS = 16, OF_A_SEGMENT = 4, ERASED_SIZE = 64 << 10, ORDERS = 50 };

static void erase_one(llvs_store *store, const char *id) {
    llvs_erase_options options = LLVS_ERASE_OPTIONS_INIT;
    llvs_erase_report *report;
    llvs_bytes name = llvs_str(id);
    options.ids = &name;
    options.id_count = 1;
    OK(llvs_store_erase(store, &options, NULL, &report, &error));
    assert_int_equal(report->values, 1);
    assert_int_equal(report->waiting_count, 0);
    llvs_erase_report_free(report);
}

static void open_and_fetch_erased(const char *path, const char *row) {
    llvs_store *store;
    llvs_version_list *heads;
    llvs_buffer buffer;
    int i;
    for (i = 0; i < 2; i++) {
        begin();
        store = open_kind(path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL);
        OK(llvs_store_heads(store, NULL, &heads, &error));
        OK(llvs_store_value(store, llvs_str("large 0 1"), heads->items[0]->id, &buffer, NULL, &error));
        assert_int_equal(buffer.size, ERASED_SIZE);
        llvs_buffer_dispose(&buffer);
        llvs_version_list_free(heads);
        end(row, "erasing", 1);
        measured_count -= i == 0;
        close_store(store);
    }
}

/* A store of 16 segments of 256 KiB: erasing a value writes one of them anew, and orders cost the next opening next to nothing. */
static void measure_erasing(void) {
    char *directory = new_directory(), *path = join(directory, "store");
    uint8_t *bytes = malloc(ERASED_SIZE);
    uint64_t state = 7;
    llvs_version_id at = { 0, "" };
    llvs_store *store;
    int segment, i, turn;
    assert_non_null(bytes);
    for (segment = 0; segment < SEGMENTS; segment++) {
        store = open_kind(path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL);
        for (i = 0; i < OF_A_SEGMENT; i++) {
            char id[32];
            llvs_change change = LLVS_CHANGE_INIT;
            size_t j;
            snprintf(id, sizeof id, "large %d %d", segment, i);
            for (j = 0; j < ERASED_SIZE; j++) bytes[j] = (uint8_t)draw(&state);
            change.kind = LLVS_CHANGE_INSERT;
            change.id = llvs_str(id);
            change.data = llvs_bytes_make(bytes, ERASED_SIZE);
            at = save(store, at.size ? &at : NULL, change);
        }
        if (segment == 0) {
            for (i = 0; i < ORDERS; i++) {
                char id[32];
                snprintf(id, sizeof id, "small %d", i);
                at = save(store, &at, insert(id, "small"));
            }
        }
        close_store(store);
    }
    open_and_fetch_erased(path, "open-and-fetch,-no-order");
    store = open_kind(path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL);
    begin();
    erase_one(store, "large 9 2");
    end("one-value-of-64-KiB,-16-segments", "erasing", 1);
    for (turn = 0; turn < ORDERS; turn++) {
        char id[32];
        snprintf(id, sizeof id, "small %d", turn);
        if (turn == 1) begin();
        erase_one(store, id);
    }
    end("values-one-by-one", "erasing", ORDERS - 1);
    close_store(store);
    open_and_fetch_erased(path, "open-and-fetch,-51-orders");
    free(bytes);
    free(path);
    remove_directory(directory);
}

static void measure_all(void) {
    /* Two sizes of a store show which costs grow with it. */
    const subject subjects[] = { { LLVS_STORAGE_FILE, "file-1000", 1000 },
                                 { LLVS_STORAGE_FILE, "file-20000", 20000 },
                                 { LLVS_STORAGE_SQLITE, "sqlite-20000", 20000 } };
    size_t i;
    /* What a process sets up only once is not counted. */
    measure_saving_and_reading(&subjects[0]);
    measured_count = 0;
    for (i = 0; i < sizeof subjects / sizeof *subjects; i++) measure_saving_and_reading(&subjects[i]);
    measure_history_and_large_values();
    measure_much_at_once(LLVS_STORAGE_FILE, "much");
    measure_much_at_once(LLVS_STORAGE_SQLITE, "much-sqlite");
    measure_openings(LLVS_STORAGE_FILE, "openings");
    measure_openings(LLVS_STORAGE_SQLITE, "openings-sqlite");
    measure_exchanges();
    measure_value_differences();
    measure_preserves();
    measure_common_bases();
    measure_heads_on_a_line();
    measure_waiting();
    measure_names("none of ours %d", "foreign-name-of-5000", NULL);
    measure_names("00000000-0000-4000-8000-%012d", "empty-version-of-5000", "empty-version-once-more");
    measure_documents();
    measure_indexes();
    measure_undos(100);
    measure_undos(400);
    measure_erasing();
}

/* ---- tests ---- */

static void costs_are_at_most_those_of_the_table(void **state) {
    size_t i, worse = 0;
    int column;
    (void)state;
    assert_int_equal(measured_count, expected_count);
    for (i = 0; i < measured_count; i++) {
        const row *row = row_named(expected, expected_count, measured[i].name);
        if (!row) fail_msg("the table has no row %s", measured[i].name);
        for (column = ALLOCATIONS_ARE_COUNTED ? 0 : 1; column < COLUMNS; column++)
            if (is_worse(measured[i].costs[column], row->costs[column], column)) {
                print_error("%s: %s of one operation are %.2f, not %.2f\n", row->name, column_names[column], measured[i].costs[column],
                            row->costs[column]);
                worse++;
            } else if (is_worse(row->costs[column], measured[i].costs[column] * 1.2, column))
                print_message("%s: %s of one operation are only %.2f, the table says %.2f\n", row->name, column_names[column],
                              measured[i].costs[column], row->costs[column]);
    }
    if (worse) fail_msg("%lu costs grew", (unsigned long)worse);
}

/*
 * The cost of an undo is proportional to the number of values and of forged undos: the cost for each does not grow with four times as many.
 */
static void undos_cost_in_proportion(void **state) {
    static const char *const names[] = { "undo", "redo", "forged-undo" };
    size_t i;
    int column;
    (void)state;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        char few[48], many[48];
        const row *one, *other;
        snprintf(few, sizeof few, "undos/%s-of-100", names[i]);
        snprintf(many, sizeof many, "undos/%s-of-400", names[i]);
        one = row_named(measured, measured_count, few);
        other = row_named(measured, measured_count, many);
        assert_true(one && other);
        for (column = ALLOCATIONS_ARE_COUNTED ? 0 : 1; column < COLUMNS; column++)
            assert_false(is_worse(other->costs[column], one->costs[column] * 1.1, column));
    }
}

/*
 * The slack is small enough to notice one more file operation or allocation for each operation, and a tenth more of a cost that is large.
 */
static void a_cost_that_grew_is_noticed(void **state) {
    size_t i;
    int column;
    (void)state;
    for (i = 0; i < expected_count; i++)
        for (column = 0; column < COLUMNS; column++) {
            double cost = expected[i].costs[column];
            int is_bytes = column == BYTES_READ || column == BYTES_WRITTEN;
            assert_false(is_worse(cost, cost, column));
            if (!is_bytes || cost > 2000) assert_true(is_worse(cost * 1.1 + 1, cost, column));
            if (is_bytes) assert_true(is_worse(cost * 1.1 + 100, cost, column));
        }
}

static void what_the_store_counts_is_what_reaches_the_system(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    dataset data = make_data(1000);
    llvs_durability levels[] = { LLVS_DURABILITY_NORMAL, LLVS_DURABILITY_FULL };
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        llvs_store *store = open_kind(path, LLVS_STORAGE_FILE, levels[i]);
        llvs_version_id head;
        double after[COLUMNS];
        begin();
        head = i == 0 ? load(store, &data) : save(store, NULL, insert("x", "y"));
        save_updates(store, &data, head, 0, 20);
        count_now(after);
        OK(llvs_store_statistics(store, NULL, &statistics, &error));
        assert_int_equal(statistics.bytes_written, (uint64_t)(after[BYTES_WRITTEN] - before[BYTES_WRITTEN]));
        assert_int_equal(statistics.syncs, (uint64_t)(after[SYNCS] - before[SYNCS]));
        close_store(store);
    }
    free_data(&data);
    free(path);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_at_most_those_of_the_table),
        cmocka_unit_test(undos_cost_in_proportion),
        cmocka_unit_test(a_cost_that_grew_is_noticed),
        cmocka_unit_test(what_the_store_counts_is_what_reaches_the_system),
    };
    measure_all();
    if (getenv("LLVS_PRINT_COSTS")) {
        print_table();
        return 0;
    }
    read_table();
    return cmocka_run_group_tests_name("costs", tests, NULL, NULL);
}

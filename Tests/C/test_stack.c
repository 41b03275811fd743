/* The stack that calls need, compared with what the header requires of a thread. Each operation runs on a painted stack of its own. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "support.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "array_storage.h"
#include "folder_snapshots.h"

/* The size that the header promises to suffice, and the larger size that the threads have here, so that a broken promise is reported
 * instead of crashing. */
enum { ENOUGH = 64 * 1024, ROOM = 1024 * 1024, PAINT = 0xA5 };

static char *directory, *path, *other_path, *folder;
static llvs_storage_kind kind;
static llvs_store *store, *other;
/* The host's storages for the two stores. */
static llvs_storage *hosted, *other_hosted;
static llvs_version_id first, ours, theirs;
static char large[3 << 20];

/*
 * Ids that each begin with the previous one, up to the longest id. Each is one byte longer; from a length at which maps do not become
 * deeper, 64 bytes longer.
 */
enum { NESTED = 600, STEP = 64, LONGEST = 4096, IDS = NESTED + (LONGEST - NESTED) / STEP, MANY = 5000 };
static char nested[LONGEST];
static llvs_change changes[MANY];

static size_t nested_size(size_t i) { return i < NESTED ? i + 1 : NESTED + (i + 1 - NESTED) * STEP; }
static llvs_change nested_change(size_t i, llvs_change_kind change_kind, const char *data) {
    llvs_change change = insert("", data);
    change.kind = change_kind;
    change.id = llvs_bytes_make(nested, nested_size(i));
    if (change_kind == LLVS_CHANGE_REMOVE) change.data = LLVS_NONE;
    return change;
}
static llvs_version_id save_changes(const llvs_version_id *at, size_t count) {
    llvs_version_id id;
    OK(llvs_store_make_version(store, llvs_id(at), changes, count, sizeof *changes, NULL, &id, NULL, &error));
    return id;
}
static llvs_version_id merged(const llvs_version_id *a, const llvs_version_id *b, llvs_arbiter *arbiter) {
    llvs_version_list *list;
    llvs_version_id id = { 0, "" };
    OK(llvs_store_merge(store, llvs_id(a), llvs_id(b), arbiter, NULL, &list, &error));
    assert_int_equal(list->count, 1);
    memcpy(id.text, list->items[0]->id.data, id.size = (uint32_t)list->items[0]->id.size);
    llvs_version_list_free(list);
    return id;
}
static llvs_storage *host_storage(void) {
    llvs_storage_callbacks callbacks = array_storage_callbacks();
    llvs_storage *storage;
    array_storage *array = calloc(1, sizeof *array);
    assert_non_null(array);
    /* Return few records at a time, so that the scan is called many times. */
    array->scan_page = 50;
    OK(llvs_storage_create(LLVS_NONE, &callbacks, array, array_storage_free, &storage, &error));
    return storage;
}
static void open_one(const char *where, llvs_store **opened) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    options.storage = kind;
    if (kind == LLVS_STORAGE_HOST) options.host_storage = opened == &store ? hosted : other_hosted;
    /* A small budget, so that maps are released. */
    options.memory_budget = 1 << 20;
    options.durability = LLVS_DURABILITY_NORMAL;
    OK(llvs_store_open(llvs_str(where), &options, opened, &error));
}

static llvs_status decide(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_change change = update("x", "decided");
    (void)payload;
    (void)merge;
    return llvs_resolution_add(resolution, &change, 1, sizeof change, error);
}

static void opens(void) { open_one(path, &store); }
static void saves(void) {
    llvs_change change = insert("large", "");
    int i;
    first = save(store, NULL, insert("x", "0"));
    ours = save(store, &first, update("x", "1"));
    theirs = save(store, &first, update("x", "2"));
    change.data = llvs_bytes_make(large, sizeof large);
    OK(llvs_store_make_version(store, llvs_id(&theirs), &change, 1, sizeof change, NULL, &theirs, NULL, &error));
    for (i = 0; i < 300; i++) {
        char name[20];
        snprintf(name, sizeof name, "value/%d", i);
        ours = save(store, &ours, insert(name, "something"));
    }
}
static void reads(void) {
    llvs_buffer data;
    llvs_value_list *values;
    llvs_history_cursor *history;
    llvs_change_cursor *changes;
    value_is(store, &ours, "x", "1");
    OK(llvs_store_value(store, llvs_str("large"), llvs_id(&theirs), &data, NULL, &error));
    assert_int_equal(data.size, sizeof large);
    llvs_buffer_dispose(&data);
    OK(llvs_store_enumerate(store, llvs_id(&ours), NULL, &values, &error));
    assert_int_equal(values->count, 301);
    llvs_value_list_free(values);
    OK(llvs_store_history(store, NULL, NULL, &history, &error));
    llvs_history_cursor_free(history);
    OK(llvs_store_differences(store, llvs_id(&ours), llvs_id(&theirs), NULL, NULL, &changes, &error));
    llvs_change_cursor_free(changes);
}
/* Values as differences, the last of which is the longest way from the whole one. */
static void edits(void) {
    enum { SIZE = 6000, EDITS = 8 };
    static char text[SIZE];
    llvs_change change = insert("edited", "");
    llvs_version_id at;
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_buffer data;
    size_t i;
    for (i = 0; i < SIZE; i++) text[i] = (char)(i * i >> 7);
    change.data = llvs_bytes_make(text, SIZE);
    at = save(store, &first, change);
    change.kind = LLVS_CHANGE_UPDATE;
    for (i = 0; i < EDITS; i++) {
        text[i * 700 + 100] ^= 1;
        at = save(store, &at, change);
    }
    OK(llvs_store_statistics(store, NULL, &statistics, &error));
    assert_int_equal(statistics.differences, EDITS);
    if (kind == LLVS_STORAGE_FILE || kind == LLVS_STORAGE_SQLITE) {
        /* Otherwise the bases are in memory. */
        OK(llvs_store_close(store, &error));
        llvs_store_free(store);
        open_one(path, &store);
    }
    OK(llvs_store_value(store, llvs_str("edited"), llvs_id(&at), &data, NULL, &error));
    assert_memory_equal(data.data, text, SIZE);
    llvs_buffer_dispose(&data);
}
static void merges(void) {
    llvs_arbiter *arbiter;
    llvs_version_list *merged;
    OK(llvs_arbiter_create(decide, NULL, NULL, NULL, &arbiter, &error));
    OK(llvs_store_merge(store, llvs_id(&ours), llvs_id(&theirs), arbiter, NULL, &merged, &error));
    assert_int_equal(merged->count, 1);
    llvs_version_list_free(merged);
    llvs_arbiter_free(arbiter);
}
static size_t counted(const llvs_version_id *at, const llvs_range *range) {
    llvs_value_list *values;
    uint64_t count;
    OK(llvs_store_count(store, llvs_id(at), range, &count, &error));
    OK(llvs_store_enumerate(store, llvs_id(at), range, &values, &error));
    llvs_value_list_free(values);
    return (size_t)count;
}
/* Maps of the greatest depth: made, changed at many and at few places, compared, merged, counted and walked in both directions. */
static void nests(void) {
    static char names[MANY][20];
    llvs_version_id base, left, right, deep;
    llvs_range range = LLVS_RANGE_INIT;
    llvs_change_cursor *cursor;
    llvs_change_list *page;
    llvs_arbiter *arbiter;
    size_t round, i, count;
    base = first;
    /* The first version, with enough values for a flat map. */
    for (round = 0; round < 2; round++) {
        for (i = 0; i < IDS; i++) changes[i] = nested_change(i, LLVS_CHANGE_INSERT, "old");
        for (count = i; round > 0 && count < MANY; count++) {
            snprintf(names[count], sizeof names[count], "many/%lu", (unsigned long)count);
            changes[count] = insert(names[count], "something");
        }
        base = save_changes(&base, count);
        for (i = 0; i < IDS; i += 2) changes[i / 2] = nested_change(i, LLVS_CHANGE_UPDATE, "left");
        left = save_changes(&base, i / 2);
        for (i = 1; i < IDS; i += 2) changes[i / 2] = nested_change(i, i % 3 == 0 ? LLVS_CHANGE_REMOVE : LLVS_CHANGE_UPDATE, "right");
        right = save_changes(&base, i / 2);
        deep = save(store, &left, nested_change(IDS - 1, LLVS_CHANGE_REMOVE, ""));
        deep = save(store, &deep, nested_change(IDS - 2, LLVS_CHANGE_UPDATE, "deep"));
        range = (llvs_range)LLVS_RANGE_INIT;
        assert_true(counted(&deep, &range) >= IDS - 1);
        range.prefix = llvs_bytes_make(nested, 300);
        assert_true(counted(&deep, &range) >= IDS - 301);
        range.reverse = 1;
        counted(&right, &range);
        range.prefix = LLVS_NONE;
        range.from = llvs_bytes_make(nested, 200);
        range.to = llvs_bytes_make(nested, 500);
        counted(&left, &range);
        OK(llvs_store_differences(store, llvs_id(&right), llvs_id(&deep), NULL, NULL, &cursor, &error));
        do {
            OK(llvs_change_cursor_next(cursor, 0, 1, &page, &error));
            i = page != NULL;
            llvs_change_list_free(page);
        } while (i);
        llvs_change_cursor_free(cursor);
        OK(llvs_arbiter_create(decide, NULL, NULL, NULL, &arbiter, &error));
        merged(&left, &right, arbiter);
        llvs_arbiter_free(arbiter);
        base = merged(&deep, &right, NULL);
        for (i = 0; i < IDS; i++) changes[i] = nested_change(i, LLVS_CHANGE_REMOVE, "");
        base = save_changes(&base, IDS);
    }
}
/* Versions that are merged with each other again and again, and disagree about one value all the way down. */
static void climbs(void) {
    llvs_version_id a = first, b = save(store, &first, update("x", "other"));
    int rung;
    for (rung = 0; rung < 200; rung++) {
        char text[20];
        llvs_version_id x, y;
        snprintf(text, sizeof text, "%d", rung);
        x = save(store, &a, update("x", text));
        y = save(store, &b, update("x", "the same"));
        a = merged(&x, &b, NULL);
        b = merged(&y, &x, NULL);
    }
    merged(&a, &b, NULL);
}
/* Writes a version file that is nested far too deeply. */
static void write_nested(const char *name) {
    FILE *file = fopen(name, "w");
    int i;
    assert_non_null(file);
    fprintf(file, "{\"id\":");
    for (i = 0; i < 100000; i++) fputs(i % 2 ? "[" : "{\"a\":", file);
    fclose(file);
}
static void write_deep_file(void) {
    char *name = malloc(strlen(folder) + 64);
    assert_non_null(name);
    sprintf(name, "%s/versions/00000000-0000-4000-8000-000000000001", folder);
    write_nested(name);
    free(name);
}
static void salvages(void) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT, targets = LLVS_STORE_OPTIONS_INIT;
    llvs_salvage_report *report;
    char *target;
    if (kind == LLVS_STORAGE_MEMORY) return;
    options.storage = kind;
    targets.storage = kind == LLVS_STORAGE_HOST ? LLVS_STORAGE_FILE : kind;
    options.host_storage = hosted;
    target = join(directory, kind == LLVS_STORAGE_FILE     ? "salvaged"
                             : kind == LLVS_STORAGE_SQLITE ? "salvaged.sqlite"
                                                           : "salvaged-from-host");
    OK(llvs_store_salvage(llvs_str(path), &options, llvs_str(target), &targets, NULL, &report, &error));
    llvs_salvage_report_free(report);
    free(target);
}
static void exchanges(void) {
    llvs_exchange *mine, *yours;
    open_one(other_path, &other);
    assert_int_equal(open_folder(store, folder, 0, &mine, NULL), LLVS_OK);
    assert_int_equal(open_folder(other, folder, 0, &yours, NULL), LLVS_OK);
    OK(llvs_exchange_send(mine, NULL, NULL, &error));
    OK(llvs_exchange_put_snapshot(mine, NULL, NULL, &error));
    OK(llvs_exchange_restore_snapshot(yours, NULL, NULL, &error));
    write_deep_file();
    OK(llvs_exchange_retrieve(yours, NULL, NULL, &error));
    OK(llvs_exchange_verify(yours, NULL, NULL, &error));
    llvs_exchange_free(mine);
    llvs_exchange_free(yours);
}
static void keeps_up(void) {
    llvs_verify_report *report;
    OK(llvs_store_verify(store, NULL, &report, &error));
    assert_int_equal(report->damage_count, 0);
    llvs_verify_report_free(report);
    llvs_size_report *sizes;
    OK(llvs_store_size(store, NULL, &sizes, &error));
    llvs_size_report_free(sizes);
    OK(llvs_store_compact(store, NULL, NULL, &error));
}
static void coordinates(void) {
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_store_options store_options = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator *coordinator;
    llvs_change change = insert("y", "1");
    store_options.storage = kind;
    /* The other storage is open. */
    if (kind == LLVS_STORAGE_HOST) store_options.host_storage = host_storage();
    options.store = &store_options;
    OK(llvs_coordinator_open(llvs_str(other_path), &options, &coordinator, &error));
    OK(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error));
    OK(llvs_coordinator_merge(coordinator, NULL, NULL, &error));
    llvs_coordinator_free(coordinator);
    llvs_storage_free(store_options.host_storage);
}
/* Imports a store of another implementation, and one whose files are nested far too deeply. */
static void imports(void) {
    static const char *const folders[] = { "foreign", "foreign/versions", "foreign/versions/de", "foreign/maps" };
    llvs_exchange_result *result;
    char *name;
    size_t i;
    OK(llvs_store_import(other, llvs_str(LLVS_SOURCE_DIR "/Tests/Vectors/interchange/store"), NULL, NULL, &result, &error));
    assert_int_equal(result->problem_count, 0);
    assert_true(result->retrieved_count > 20);
    llvs_exchange_result_free(result);
    for (i = 0; i < sizeof folders / sizeof *folders; i++) {
        name = join(directory, folders[i]);
        mkdir(name, 0777);
        free(name);
    }
    name = join(directory, "foreign/versions/de/ep.json");
    write_nested(name);
    free(name);
    name = join(directory, "foreign");
    OK(llvs_store_import(other, llvs_str(name), NULL, NULL, &result, &error));
    assert_int_equal(result->problem_count, 1);
    llvs_exchange_result_free(result);
    free(name);
}
static void closes(void) {
    OK(llvs_store_close(store, &error));
    OK(llvs_store_close(other, &error));
    llvs_store_free(store);
    llvs_store_free(other);
}

static const struct operation { const char *name; void (*run)(void);
} operations[] = {
    { "open", opens },
    { "save", saves },
    { "read", reads },
    { "edit", edits },
    { "merge", merges },
    { "nest", nests },
    { "climb", climbs },
    { "exchange", exchanges },
    { "import", imports },
    { "verify and compact", keeps_up },
    { "coordinate", coordinates },
    { "close", closes },
    { "salvage", salvages },
};

static void *run(void *operation) {
    ((const struct operation *)operation)->run();
    return NULL;
}

/* Returns how much of its stack a thread used for an operation. */
static size_t used_by(const struct operation *operation) {
    unsigned char *stack = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    size_t left = 0;
    assert_true(stack != MAP_FAILED);
    memset(stack, PAINT, ROOM);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, ROOM), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run, (void *)operation), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    while (left < ROOM && stack[left] == PAINT) left++;
    munmap(stack, ROOM);
    return ROOM - left;
}

static void calls_need_little_stack(void **state) {
    static const struct { const char *name, *path, *other_path, *folder; llvs_storage_kind kind; } storages[] = {
        { "file", "store", "other", "folder", LLVS_STORAGE_FILE },
        { "SQLite", "store.sqlite", "other.sqlite", "folder-of-sqlite", LLVS_STORAGE_SQLITE },
        { "memory", "", "", "folder-of-memory", LLVS_STORAGE_MEMORY },
        { "host", "", "", "folder-of-host", LLVS_STORAGE_HOST },
    };
    size_t i, j, most = 0;
    (void)state;
    for (i = 0; i < sizeof storages / sizeof *storages; i++) {
        kind = storages[i].kind;
        path = join(directory, storages[i].path);
        other_path = join(directory, storages[i].other_path);
        folder = join(directory, storages[i].folder);
        if (kind == LLVS_STORAGE_HOST) {
            hosted = host_storage();
            other_hosted = host_storage();
        }
        for (j = 0; j < sizeof operations / sizeof *operations; j++) {
            size_t used = used_by(&operations[j]);
            print_message("%s, %s: %lu bytes of stack\n", storages[i].name, operations[j].name, (unsigned long)used);
            if (used > most) most = used;
        }
        free(path);
        free(other_path);
        free(folder);
    }
    llvs_storage_free(hosted);
    llvs_storage_free(other_hosted);
    if (most > ENOUGH) fail_msg("an operation used %lu bytes of stack; the header promises at most %d", (unsigned long)most, ENOUGH);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(calls_need_little_stack) };
    int failed;
    size_t i;
    for (i = 0; i < sizeof large; i++) large[i] = (char)(i * i >> 5);
    memset(nested, 'n', sizeof nested);
    directory = new_directory();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_directory(directory);
    return failed;
}

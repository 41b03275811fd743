#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "subjects.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "book.h"
#include "../C/folder_snapshots.h"

void must(const char *doing, llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return;
    broken("%s: %s", doing, llvs_error_message(error));
}

/* ---- Versions that can be read ---- */

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}
static uint64_t digest_of(uint64_t hash, llvs_bytes bytes) {
    hash = mixed(hash, bytes.size);
    for (size_t i = 0; i < bytes.size; i++) hash = mixed(hash, bytes.data[i]);
    return hash;
}

llvs_status read_state(llvs_store *store, llvs_bytes version, uint64_t *digest, each_value each, void *payload, llvs_error **error) {
    llvs_range range = LLVS_RANGE_INIT;
    char *last = NULL;
    *digest = 1;
    for (;;) {
        llvs_value_list *values;
        llvs_status status = llvs_store_enumerate(store, version, &range, &values, error);
        if (status != LLVS_OK || !values) {
            free(last);
            return status;
        }
        for (size_t i = 0; i < values->count; i++) {
            const llvs_value_info *value = values->items[i];
            uint64_t pair = digest_of(digest_of(2, value->id), value->data);
            *digest = mixed(*digest, pair);
            if (each) each(payload, pair);
            if (i + 1 == values->count) {
                last = realloc(last, value->id.size + 1);
                if (!last) broken("out of memory");
                memcpy(last, value->id.data, value->id.size);
                range.after = llvs_bytes_make(last, value->id.size);
            }
        }
        llvs_value_list_free(values);
    }
}

uint64_t metadata_digest(const llvs_version_info *version) {
    uint64_t hash = 3;
    for (size_t i = 0; i < version->metadata_count; i++)
        hash = digest_of(digest_of(hash, version->metadata[i].key), version->metadata[i].value);
    return hash;
}

static void add_value(void *payload, uint64_t pair) {
    struct truth *truth = payload;
    if ((truth->value_count & (truth->value_count - 1)) == 0) {
        truth->values = realloc(truth->values, sizeof *truth->values * (truth->value_count ? truth->value_count * 2 : 1));
        if (!truth->values) broken("out of memory");
    }
    truth->values[truth->value_count++] = pair;
}
static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}
int is_a_value(const struct truth *truth, uint64_t pair) {
    return bsearch(&pair, truth->values, truth->value_count, sizeof pair, by_value) != NULL;
}

static int by_id(const void *a, const void *b) { return strcmp(((const struct fact *)a)->id, ((const struct fact *)b)->id); }
const struct fact *truth_of(const struct truth *truth, llvs_bytes id) {
    struct fact wanted;
    if (id.size >= NAME_SIZE) return NULL;
    memcpy(wanted.id, id.data, id.size);
    wanted.id[id.size] = 0;
    return bsearch(&wanted, truth->facts, truth->count, sizeof wanted, by_id);
}

static void learn(struct truth *truth, llvs_store *store) {
    llvs_error *error;
    llvs_history_cursor *cursor;
    llvs_version_list *page;
    memset(truth, 0, sizeof *truth);
    must("reading the history", llvs_store_history(store, NULL, NULL, &cursor, &error), error);
    for (;;) {
        must("reading the history", llvs_history_cursor_next(cursor, 0, NULL, &page, &error), error);
        if (!page) break;
        size_t count = page->count;
        truth->facts = realloc(truth->facts, sizeof *truth->facts * (truth->count + count));
        if (!truth->facts) broken("out of memory");
        for (size_t i = 0; i < count; i++) {
            const llvs_version_info *version = page->items[i];
            struct fact *fact = &truth->facts[truth->count++];
            memset(fact, 0, sizeof *fact);
            snprintf(fact->id, NAME_SIZE, "%s", (const char *)version->id.data);
            fact->predecessor_count = version->predecessor_count;
            for (uint32_t p = 0; p < version->predecessor_count; p++)
                snprintf(fact->predecessors[p], NAME_SIZE, "%s", (const char *)version->predecessors[p].data);
            fact->timestamp = version->timestamp;
            fact->metadata = metadata_digest(version);
            must("reading a version", read_state(store, version->id, &fact->state, add_value, truth, &error), error);
        }
        llvs_version_list_free(page);
    }
    llvs_history_cursor_free(cursor);
    qsort(truth->facts, truth->count, sizeof *truth->facts, by_id);
    qsort(truth->values, truth->value_count, sizeof *truth->values, by_value);
}

/* ---- Making stores ---- */

static llvs_store *opened(const char *folder, const char *name, llvs_storage_kind storage, int folds) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_error *error;
    char *path = path_of(folder, name);
    options.storage = storage;
    options.durability = LLVS_DURABILITY_NORMAL;
    options.compaction = folds ? LLVS_COMPACTION_ALWAYS : LLVS_COMPACTION_ON_REQUEST;
    options.compaction_grace = folds ? 1e-9 : 0;
    must("opening", llvs_store_open(llvs_str(path), &options, &store, &error), error);
    free(path);
    return store;
}
static void closed(llvs_store *store) {
    llvs_error *error;
    must("closing", llvs_store_close(store, &error), error);
    llvs_store_free(store);
}

static void make(llvs_store *store, const char *id, const char *predecessor, const char *key, uint32_t size, const char *removed) {
    llvs_change changes[2] = {LLVS_CHANGE_INIT, LLVS_CHANGE_INIT};
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_metadata_entry author;
    llvs_error *error;
    uint64_t seed = 0;
    size_t count = 0;
    for (const char *c = id; *c; c++) seed = seed * 31 + (uint64_t)*c;
    uint8_t *bytes = value_bytes(seed, size);
    /* Half of the value is compressible. */
    memset(bytes, 'x', size / 2);
    if (key) {
        changes[count].kind = LLVS_CHANGE_UPDATE;
        changes[count].id = llvs_str(key);
        changes[count++].data = llvs_bytes_make(bytes, size);
    }
    if (removed) {
        changes[count].kind = LLVS_CHANGE_REMOVE;
        changes[count++].id = llvs_str(removed);
    }
    author.key = llvs_str("author");
    author.value = llvs_str("\"ann\"");
    options.id = llvs_str(id);
    if (id[1] == '2') {
        options.metadata = &author;
        options.metadata_count = 1;
    }
    must("making a version",
         llvs_store_make_version(store, predecessor ? llvs_str(predecessor) : LLVS_NONE, changes, count, sizeof changes[0], &options, NULL,
                                 NULL, &error),
         error);
    free(bytes);
}
/* Saves a text under an id that the store computes, so that differences can build on it. */
static void save_text(llvs_store *store, char *head, const uint8_t *text, uint32_t size, const char *key) {
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_version_list *made;
    llvs_error *error;
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = llvs_str(key);
    change.data = llvs_bytes_make(text, size);
    must("saving a text",
         llvs_store_make_version(store, *head ? llvs_str(head) : LLVS_NONE, &change, 1, sizeof change, NULL, NULL, &made, &error), error);
    snprintf(head, NAME_SIZE, "%s", (const char *)made->items[0]->id.data);
    llvs_version_list_free(made);
}
static void merge(llvs_store *store, const char *ours, const char *theirs) {
    llvs_error *error;
    must("merging", llvs_store_merge(store, llvs_str(ours), llvs_str(theirs), NULL, NULL, NULL, &error), error);
}

/* Two branches and their merge, a removal, a compressed value, an empty version. */
static void fill_first(llvs_store *store) {
    make(store, "R1", NULL, "apple", 9, NULL);
    make(store, "A1", "R1", "pear", 400, NULL);
    make(store, "A2", "A1", "apple", 5, "pear");
}
static void fill_second(llvs_store *store) {
    make(store, "B1", "R1", "fig", 20, NULL);
    make(store, "B2", "B1", "quince", 0, NULL);
    merge(store, "A2", "B2");
}
static void fill_third(llvs_store *store) {
    make(store, "C1", "A2", "plum", 30, NULL);
    make(store, "C2", "C1", NULL, 0, NULL);
}

static void make_closed(const char *folder, uint64_t seed) {
    llvs_store *store = opened(folder, "store", LLVS_STORAGE_FILE, 0);
    (void)seed;
    fill_first(store);
    closed(store);
    fill_second(store = opened(folder, "store", LLVS_STORAGE_FILE, 0));
    fill_third(store);
    closed(store);
}
/* As a killed process leaves it, so the last segment has no seal. */
static void make_open(const char *folder, uint64_t seed) {
    (void)seed;
    fill_first(opened(folder, "store", LLVS_STORAGE_FILE, 0));
    fill_second(opened(folder, "store", LLVS_STORAGE_FILE, 0));
}
/* One frame with several records, as an exchange writes it. */
static void make_batch(const char *folder, uint64_t seed) {
    llvs_store *from = opened(folder, "from", LLVS_STORAGE_MEMORY, 0), *to = opened(folder, "store", LLVS_STORAGE_FILE, 0);
    llvs_exchange *exchange, *other;
    llvs_exchange_result *result;
    llvs_error *error;
    char url[64];
    snprintf(url, sizeof url, "memory:batch-%llu-%d", (unsigned long long)seed, (int)getpid());
    fill_first(from);
    fill_second(from);
    must("an exchange", llvs_exchange_open(from, llvs_str(url), NULL, &exchange, &error), error);
    must("sending", llvs_exchange_send(exchange, NULL, &result, &error), error);
    llvs_exchange_result_free(result);
    must("an exchange", llvs_exchange_open(to, llvs_str(url), NULL, &other, &error), error);
    must("retrieving", llvs_exchange_retrieve(other, NULL, &result, &error), error);
    llvs_exchange_result_free(result);
    llvs_exchange_free(other);
    llvs_exchange_free(exchange);
    closed(from);
    closed(to);
}
/* Segments that were compacted into one and then removed. */
static void make_folded(const char *folder, uint64_t seed) {
    llvs_error *error;
    llvs_store *store;
    make_closed(folder, seed);
    store = opened(folder, "store", LLVS_STORAGE_FILE, 1);
    must("compacting", llvs_store_compact(store, NULL, NULL, &error), error);
    must("compacting", llvs_store_compact(store, NULL, NULL, &error), error);
    closed(store);
}
static void make_blob(const char *folder, uint64_t seed) {
    llvs_store *store = opened(folder, "store", LLVS_STORAGE_FILE, 0);
    (void)seed;
    make(store, "R1", NULL, "apple", 9, NULL);
    make(store, "L1", "R1", "large", (1 << 20) + 70000, NULL);
    make(store, "L2", "L1", "pear", 20, NULL);
    closed(store);
}

/* A database with the smallest possible pages, so that few bytes make many pages. */
static void make_database(const char *folder, int page_size) {
    char *path = path_of(folder, "store"), sql[64];
    sqlite3 *database;
    snprintf(sql, sizeof sql, "PRAGMA page_size=%d; VACUUM", page_size);
    if (sqlite3_open(path, &database) != SQLITE_OK || sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK)
        broken("cannot make a database");
    sqlite3_close(database);
    free(path);
}
/* Edits of a text, most of them stored as differences, with a small value between two of them, and a branch. */
static void fill_texts(llvs_store *store, char *head, int count, uint64_t seed) {
    enum { SIZE = 1100 };
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_error *error;
    uint8_t *text = value_bytes(77, SIZE);
    char before[NAME_SIZE];
    for (int i = 0; i < count; i++) {
        memcpy(text + 100 + (uint64_t)i * 90 % 900, &seed, 8);
        text[200 + i]++;
        memcpy(before, head, NAME_SIZE);
        save_text(store, head, text, SIZE, "text");
        if (i == 2) save_text(store, head, (const uint8_t *)"note", 4, "note");
        if (i == 4) save_text(store, before, text, SIZE - 50, "text");
    }
    must("statistics", llvs_store_statistics(store, NULL, &statistics, &error), error);
    if (statistics.differences < (uint64_t)count - 1) broken("only %llu differences", (unsigned long long)statistics.differences);
    free(text);
}
static void make_differences(const char *folder, uint64_t seed) {
    char head[NAME_SIZE] = "";
    llvs_store *store = opened(folder, "store", LLVS_STORAGE_FILE, 0);
    fill_texts(store, head, 6, seed);
    closed(store);
    fill_texts(store = opened(folder, "store", LLVS_STORAGE_FILE, 0), head, 3, seed + 1);
    closed(store);
}
static void make_sqlite_differences(const char *folder, uint64_t seed) {
    char head[NAME_SIZE] = "";
    make_database(folder, 512);
    llvs_store *store = opened(folder, "store", LLVS_STORAGE_SQLITE, 0);
    fill_texts(store, head, 6, seed);
    closed(store);
}
static void fill_many(llvs_store *store, uint64_t seed, int versions, int keys) {
    char id[16], before[16] = "", key[16];
    for (int i = 0; i < versions; i++) {
        snprintf(id, sizeof id, "V%06d", i);
        snprintf(key, sizeof key, "key/%d", (int)((seed + (uint64_t)i * 7919) % (uint64_t)keys));
        make(store, id, *before ? before : NULL, key, (uint32_t)(i % 61), NULL);
        memcpy(before, id, sizeof before);
    }
}
static void make_cached(const char *folder, uint64_t seed) {
    llvs_store *store = opened(folder, "store", LLVS_STORAGE_FILE, 0);
    fill_many(store, seed, 1100, 40);
    closed(store);
}
static void make_large(const char *folder, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        llvs_store *store = opened(folder, "store", LLVS_STORAGE_FILE, 0);
        char id[16], before[16] = "", key[16];
        for (int n = 0; n < 400; n++) {
            snprintf(id, sizeof id, "S%d-%06d", i, n);
            snprintf(key, sizeof key, "key/%d", (int)((seed + (uint64_t)n * 7919) % 100));
            make(store, id, *before ? before : NULL, key, (uint32_t)(n % 50 == 0 ? 80000 : n % 200), NULL);
            memcpy(before, id, sizeof before);
        }
        closed(store);
    }
}

static void make_sqlite(const char *folder, uint64_t seed) {
    (void)seed;
    make_database(folder, 512);
    llvs_store *store = opened(folder, "store", LLVS_STORAGE_SQLITE, 0);
    fill_first(store);
    fill_second(store);
    make(store, "D1", "A2", "long", 1500, NULL); /* takes several pages */
    closed(store);
}
/* As a killed process leaves it, so everything is in the log. */
static void make_sqlite_log(const char *folder, uint64_t seed) {
    int status;
    pid_t pid;
    (void)seed;
    make_database(folder, 512);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        fill_first(opened(folder, "store", LLVS_STORAGE_SQLITE, 0));
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) broken("cannot make a database that is left open");
}
static void make_sqlite_large(const char *folder, uint64_t seed) {
    llvs_store *store = opened(folder, "store", LLVS_STORAGE_SQLITE, 0);
    fill_many(store, seed, 1000, 100);
    make(store, "H1", "V000999", "huge", 300000, NULL);
    closed(store);
}

static void make_exchange(const char *folder, uint64_t seed) {
    llvs_store *store = opened(folder, "source", LLVS_STORAGE_FILE, 0);
    llvs_exchange *exchange;
    llvs_exchange_result *result;
    llvs_error *error;
    char *path = path_of(folder, "shared"), url[4200];
    (void)seed;
    snprintf(url, sizeof url, "file://%s", path);
    fill_first(store);
    fill_second(store);
    must("an exchange", llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error), error);
    must("sending", llvs_exchange_send(exchange, NULL, &result, &error), error);
    llvs_exchange_result_free(result);
    llvs_exchange_free(exchange);
    closed(store);
    free(path);
}
static void make_snapshot(const char *folder, uint64_t seed) {
    llvs_store *store = opened(folder, "source", LLVS_STORAGE_FILE, 0);
    llvs_error *error;
    char *path = path_of(folder, "dump");
    (void)seed;
    fill_first(store);
    fill_second(store);
    must("a snapshot", write_snapshot_into(store, path, NULL, &error), error);
    closed(store);
    free(path);
}

struct subject subjects[] = {
    {"file store, closed", A_STORE, LLVS_STORAGE_FILE, NULL, 0, 0, 1, 0, make_closed, {0}, {0}},
    {"file store, left open", A_STORE, LLVS_STORAGE_FILE, NULL, 0, 0, 1, 0, make_open, {0}, {0}},
    {"file store, one batch", A_STORE, LLVS_STORAGE_FILE, NULL, 0, 0, 1, 0, make_batch, {0}, {0}},
    {"file store, folded", A_STORE, LLVS_STORAGE_FILE, NULL, 0, 0, 1, 0, make_folded, {0}, {0}},
    {"file store, a blob", A_STORE, LLVS_STORAGE_FILE, "blobs/", 0, 100, 60013, 0, make_blob, {0}, {0}},
    {"file store, caches", A_STORE, LLVS_STORAGE_FILE, "cache/", 1, 64, 3001, 0, make_cached, {0}, {0}},
    {"SQLite store, closed", A_STORE, LLVS_STORAGE_SQLITE, NULL, 0, 0, 1, 0, make_sqlite, {0}, {0}},
    {"SQLite store, log", A_STORE, LLVS_STORAGE_SQLITE, NULL, 0, 0, 1, 0, make_sqlite_log, {0}, {0}},
    {"file store, differences", A_STORE, LLVS_STORAGE_FILE, NULL, 0, 0, 1, 0, make_differences, {0}, {0}},
    {"SQLite store, differences", A_STORE, LLVS_STORAGE_SQLITE, NULL, 0, 0, 1, 0, make_sqlite_differences, {0}, {0}},
    {"exchange folder", AN_EXCHANGE, 0, "shared/", 0, 0, 1, 0, make_exchange, {0}, {0}},
    {"snapshot", A_SNAPSHOT, 0, "dump/", 0, 0, 1, 0, make_snapshot, {0}, {0}},
    {"large file store", A_STORE, LLVS_STORAGE_FILE, "segments/", 0, 64, 0, 1, make_large, {0}, {0}},
    {"large SQLite store", A_STORE, LLVS_STORAGE_SQLITE, NULL, 0, 64, 0, 1, make_sqlite_large, {0}, {0}},
};
const int subject_count = (int)(sizeof subjects / sizeof subjects[0]);

/* ---- Preparing ---- */

void subject_prepare(struct subject *subject, const char *folder, uint64_t seed) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_verify_report *report;
    llvs_store *store;
    llvs_error *error;
    char *copy = path_of(folder, "copy"), *made = path_of(folder, "made");
    make_folder(made);
    subject->make(made, seed);
    subject->tree = read_tree(made);
    copy_tree(made, copy);
    char *path = path_of(copy, subject->kind == A_STORE ? "store" : "source");
    options.storage = subject->storage;
    options.durability = LLVS_DURABILITY_NORMAL;
    must("opening", llvs_store_open(llvs_str(path), &options, &store, &error), error);
    learn(&subject->truth, store);
    must("verifying", llvs_store_verify(store, NULL, &report, &error), error);
    if (subject->truth.count < 3) broken("%s is empty", subject->name);
    if (report->damage_count > 0) broken("%s is damaged to begin with", subject->name);
    llvs_verify_report_free(report);
    llvs_store_free(store);
    remove_tree(copy);
    free(path);
    free(copy);
    free(made);
}

#include "yardstick.h"
#include "side.h"
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT_OF_STATEMENTS = 12 };
typedef enum statement {
    BEGIN, COMMIT, INSERT_VERSION, INSERT_VALUE, GENERATION, VALUE_AT, PRESENT_AT, SCAN, CHANGED_BETWEEN, CHANGED_IN, WALK, TAKE_OVER
} statement;
static const char *const names[COUNT_OF_STATEMENTS] = {
    "begin",      "commit", "insert_version",  "insert_value", "generation", "value_at",
    "present_at", "scan",   "changed_between", "changed_in",   "walk",       "take_over"
};

typedef struct database {
    sqlite3 *connection;
    sqlite3_stmt *statements[COUNT_OF_STATEMENTS];
    pthread_mutex_t writing; /* one writer at a time: waiting for each other beats SQLite's busy handler, which sleeps */
    const char *path;
    sqlite3_int64 last, last_generation; /* the version made last: the next one's parent, mostly */
} database;

/* ---- yardstick.sql ---- */

static char sql[16384];

void yardstick_set_up(void) {
    FILE *file = fopen(LLVS_SOURCE_DIR "/Benchmarks/yardstick.sql", "r");
    size_t size;
    if (!file) fail("cannot read Benchmarks/yardstick.sql");
    size = fread(sql, 1, sizeof sql - 1, file);
    fclose(file);
    sql[size] = 0;
    /* Turns off a lock around every allocation, as a program that knows its memory would do. */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* Returns the text from the line "-- name: <name>" on. Later statements are left to sqlite3_prepare's tail. */
static const char *text_of(const char *name) {
    char line[64];
    const char *found;
    snprintf(line, sizeof line, "\n-- name: %s\n", name);
    found = strstr(sql, line);
    if (!found) fail("yardstick.sql has no %s", name);
    return found + strlen(line);
}

static void check(const database *database, int result) {
    if (result != SQLITE_OK && result != SQLITE_ROW && result != SQLITE_DONE) fail("SQLite: %s", sqlite3_errmsg(database->connection));
}

/* Runs a section of several statements. */
static void run(database *database, const char *name) {
    const char *text = text_of(name), *end = strstr(text, "\n-- name: ");
    char copy[4096];
    snprintf(copy, sizeof copy, "%.*s", (int)(end - text), text);
    check(database, sqlite3_exec(database->connection, copy, NULL, NULL, NULL));
}

/* Prepares the one statement up to the next empty line. */
static sqlite3_stmt *prepare(database *database, const char *name) {
    const char *text = text_of(name), *end = strstr(text, "\n\n");
    sqlite3_stmt *prepared;
    check(database,
          sqlite3_prepare_v3(database->connection, text, end ? (int)(end - text) : -1, SQLITE_PREPARE_PERSISTENT, &prepared, NULL));
    return prepared;
}

/* ---- opening and closing ---- */

static database *connect(const char *path, int is_full) {
    database *database = allocate(1, sizeof *database);
    int i;
    database->path = path;
    pthread_mutex_init(&database->writing, NULL);
    check(database, sqlite3_open_v2(path, &database->connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL));
    run(database, "connection");
    check(database,
          sqlite3_exec(database->connection, is_full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", NULL, NULL, NULL));
    run(database, "schema");
    for (i = 0; i < COUNT_OF_STATEMENTS; i++) database->statements[i] = prepare(database, names[i]);
    return database;
}

static void *open_yardstick(const char *path, const opening *how) { return connect(path, how->is_full); }

static void close_yardstick(void *opaque) {
    database *database = opaque;
    int i;
    for (i = 0; i < COUNT_OF_STATEMENTS; i++) sqlite3_finalize(database->statements[i]);
    sqlite3_exec(database->connection, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    check(database, sqlite3_close(database->connection));
    free(database);
}

static void *open_reader(void *opaque) { return connect(((database *)opaque)->path, 0); }
static void close_reader(void *opaque, void *reader) {
    (void)opaque;
    close_yardstick(reader);
}

/* ---- saving ---- */

static sqlite3_stmt *bound(database *database, statement which, sqlite3_int64 first) {
    check(database, sqlite3_bind_int64(database->statements[which], 1, first));
    return database->statements[which];
}

static sqlite3_stmt *bound_to_key(database *database, statement which, const char *key, sqlite3_int64 version) {
    sqlite3_stmt *prepared = database->statements[which];
    check(database, sqlite3_bind_text(prepared, 1, key, -1, SQLITE_STATIC));
    check(database, sqlite3_bind_int64(prepared, 2, version));
    return prepared;
}

static void step_once(database *database, sqlite3_stmt *prepared) {
    check(database, sqlite3_step(prepared));
    check(database, sqlite3_reset(prepared));
}

static sqlite3_int64 generation_of(database *database, sqlite3_int64 version) {
    sqlite3_stmt *prepared = database->statements[GENERATION];
    sqlite3_int64 generation;
    if (version == database->last) return database->last_generation;
    bound(database, GENERATION, version);
    check(database, sqlite3_step(prepared));
    generation = sqlite3_column_int64(prepared, 0);
    check(database, sqlite3_reset(prepared));
    return generation;
}

/* Writes 36 characters, from a generator that costs next to nothing. */
static void make_uuid(char uuid[37]) {
    static uint64_t state = 0x9E3779B97F4A7C15u;
    uint64_t a, b;
    a = state = state * 6364136223846793005u + 1442695040888963407u;
    b = state = state * 6364136223846793005u + 1442695040888963407u;
    snprintf(uuid, 37, "%08X-%04X-4%03X-A%03X-%012llX", (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xFFFF), (unsigned)(a >> 4 & 0xFFF),
             (unsigned)(b >> 52), (unsigned long long)(b & 0xFFFFFFFFFFFFu));
}

/* Makes a version with 0, 1 or 2 parents (0: none), in a transaction that has begun. */
static sqlite3_int64 insert_version(database *database, sqlite3_int64 parent1, sqlite3_int64 parent2) {
    sqlite3_stmt *insert = database->statements[INSERT_VERSION];
    sqlite3_int64 generation1 = parent1 ? generation_of(database, parent1) : -1,
                  generation2 = parent2 ? generation_of(database, parent2) : -1;
    struct timespec now;
    char uuid[37];
    clock_gettime(CLOCK_REALTIME, &now);
    make_uuid(uuid);
    check(database, sqlite3_bind_text(insert, 1, uuid, 36, SQLITE_STATIC));
    if (parent1) check(database, sqlite3_bind_int64(insert, 2, parent1)); else sqlite3_bind_null(insert, 2);
    if (parent2) check(database, sqlite3_bind_int64(insert, 3, parent2)); else sqlite3_bind_null(insert, 3);
    database->last_generation = (generation1 > generation2 ? generation1 : generation2) + 1;
    check(database, sqlite3_bind_int64(insert, 4, database->last_generation));
    check(database, sqlite3_bind_double(insert, 5, (double)now.tv_sec + (double)now.tv_nsec * 1e-9));
    step_once(database, insert);
    return database->last = sqlite3_last_insert_rowid(database->connection);
}

static sqlite3_int64 insert(database *database, sqlite3_int64 parent, const item *const *items, size_t count) {
    sqlite3_int64 made;
    size_t i;
    pthread_mutex_lock(&database->writing);
    step_once(database, database->statements[BEGIN]);
    made = insert_version(database, parent, 0);
    for (i = 0; i < count; i++) {
        sqlite3_stmt *prepared = bound_to_key(database, INSERT_VALUE, items[i]->id, made);
        check(database, sqlite3_bind_blob64(prepared, 3, items[i]->data, items[i]->size, SQLITE_STATIC));
        step_once(database, prepared);
    }
    step_once(database, database->statements[COMMIT]);
    pthread_mutex_unlock(&database->writing);
    return made;
}

static int by_key(const void *a, const void *b) { return strcmp((*(const item *const *)a)->id, (*(const item *const *)b)->id); }

static void *pack(const item *items, size_t count) {
    (void)count;
    return (void *)(uintptr_t)items;
}

static version load(void *database, void *packed, size_t count) {
    const item **sorted = allocate(count, sizeof *sorted);
    version made = { { 0, "" }, 0 };
    size_t i;
    for (i = 0; i < count; i++) sorted[i] = (const item *)packed + i;
    qsort(sorted, count, sizeof *sorted, by_key);
    made.number = insert(database, 0, sorted, count);
    free(sorted);
    return made;
}

static version save(void *database, const version *at, const item *items, size_t count) {
    version made = { { 0, "" }, 0 };
    const item *few[128], **sorted = count <= sizeof few / sizeof *few ? few : allocate(count, sizeof *sorted);
    size_t i;
    few[0] = items;
    for (i = 0; i < count; i++) sorted[i] = &items[i];
    if (count > 1) qsort(sorted, count, sizeof *sorted, by_key);
    made.number = insert(database, at->number, sorted, count);
    if (sorted != few) free(sorted);
    return made;
}

/* ---- reading ---- */

static size_t fetch(void *opaque, const char *id, const version *at, uint8_t *copy, size_t capacity) {
    database *database = opaque;
    sqlite3_stmt *prepared = bound_to_key(database, VALUE_AT, id, at->number);
    size_t size;
    if (sqlite3_step(prepared) != SQLITE_ROW) fail("the yardstick has no %s", id);
    size = (size_t)sqlite3_column_bytes(prepared, 0);
    if (size > capacity) fail("%s has %zu bytes", id, size);
    memcpy(copy, sqlite3_column_blob(prepared, 0), size);
    check(database, sqlite3_reset(prepared));
    return size;
}

static size_t enumerate(void *opaque, const version *at, const char *prefix, size_t limit, uint64_t *sum) {
    database *database = opaque;
    sqlite3_stmt *prepared = database->statements[SCAN];
    size_t count = 0, prefix_size = strlen(prefix), key_size = 0, size;
    char key[LLVS_VALUE_ID_SIZE_MAX];
    uint64_t first = 0;
    check(database, sqlite3_bind_text(prepared, 1, prefix, -1, SQLITE_STATIC));
    while (sqlite3_step(prepared) == SQLITE_ROW) {
        const char *found = (const char *)sqlite3_column_text(prepared, 0);
        size = (size_t)sqlite3_column_bytes(prepared, 0);
        if (prefix_size && (size < prefix_size || memcmp(found, prefix, prefix_size) != 0)) break;
        if (sqlite3_column_int64(prepared, 1) > at->number) continue;
        if (size != key_size || memcmp(found, key, size) != 0) {
            if (limit && count == limit) break;
            *sum += first;
            memcpy(key, found, size);
            key_size = size;
            count++;
        }
        first = sqlite3_column_bytes(prepared, 2) ? *(const uint8_t *)sqlite3_column_blob(prepared, 2) : 0;
    }
    *sum += first;
    check(database, sqlite3_reset(prepared));
    return count;
}

static size_t differences(void *opaque, const version *from, const version *to, uint64_t *sum) {
    database *database = opaque;
    sqlite3_stmt *changed = bound(database, CHANGED_BETWEEN, from->number);
    size_t updates = 0;
    check(database, sqlite3_bind_int64(changed, 2, to->number));
    while (sqlite3_step(changed) == SQLITE_ROW) {
        sqlite3_stmt *present = bound_to_key(database, PRESENT_AT, (const char *)sqlite3_column_text(changed, 0), from->number);
        updates += sqlite3_step(present) == SQLITE_ROW;
        check(database, sqlite3_reset(present));
        if (sum) {
            sqlite3_stmt *value = bound_to_key(database, VALUE_AT, (const char *)sqlite3_column_text(changed, 0), to->number);
            if (sqlite3_step(value) == SQLITE_ROW && sqlite3_column_bytes(value, 0))
                *sum += *(const uint8_t *)sqlite3_column_blob(value, 0);
            check(database, sqlite3_reset(value));
        }
    }
    check(database, sqlite3_reset(changed));
    return updates;
}

/* ---- merging ---- */

typedef struct row {
    char key[64];
    sqlite3_int64 version;
} row;
typedef struct rows {
    row *at;
    size_t count, capacity;
} rows;

static void add_row(rows *rows, const char *key, sqlite3_int64 version) {
    if (rows->count == rows->capacity) {
        rows->capacity = rows->capacity ? rows->capacity * 2 : 256;
        rows->at = realloc(rows->at, rows->capacity * sizeof *rows->at);
        if (!rows->at) fail("out of memory");
    }
    snprintf(rows->at[rows->count].key, sizeof rows->at->key, "%s", key);
    rows->at[rows->count++].version = version;
}

static int by_key_newest_first(const void *a, const void *b) {
    const row *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->version < y->version) - (x->version > y->version);
}

/* Finds the base. If sides are given, also finds what the versions of each side changed since: the newest change of each key. */
static sqlite3_int64 walk_to_base(database *database, sqlite3_int64 a, sqlite3_int64 b, rows *sides) {
    sqlite3_stmt *walk = bound(database, WALK, a);
    sqlite3_int64 last = 0;
    int last_side = 0, side;
    check(database, sqlite3_bind_int64(walk, 2, b));
    while (sqlite3_step(walk) == SQLITE_ROW) {
        sqlite3_int64 version = sqlite3_column_int64(walk, 0);
        if (version == last) break;
        if (last && sides) {
            sqlite3_stmt *changed = bound(database, CHANGED_IN, last);
            while (sqlite3_step(changed) == SQLITE_ROW) add_row(&sides[last_side - 1], (const char *)sqlite3_column_text(changed, 0), last);
            check(database, sqlite3_reset(changed));
        }
        last = version;
        last_side = sqlite3_column_int(walk, 1);
    }
    check(database, sqlite3_reset(walk));
    for (side = 0; sides && side < 2; side++) {
        size_t i, kept = 0;
        qsort(sides[side].at, sides[side].count, sizeof(row), by_key_newest_first);
        for (i = 0; i < sides[side].count; i++)
            if (kept == 0 || strcmp(sides[side].at[kept - 1].key, sides[side].at[i].key) != 0) sides[side].at[kept++] = sides[side].at[i];
        sides[side].count = kept;
    }
    return last;
}

static version merge_base(void *opaque, const version *a, const version *b) {
    version base = { { 0, "" }, 0 };
    base.number = walk_to_base(opaque, a->number, b->number, NULL);
    return base;
}

/* The newer version is the first parent. If both changed a value, the later change wins. */
static version merge(void *opaque, const version *a, const version *b) {
    database *database = opaque;
    rows sides[2] = { { NULL, 0, 0 }, { NULL, 0, 0 } };
    sqlite3_int64 newer = a->number > b->number ? a->number : b->number, older = a->number > b->number ? b->number : a->number;
    version made = { { 0, "" }, 0 };
    size_t first = 0, second;
    step_once(database, database->statements[BEGIN]);
    walk_to_base(database, newer, older, sides);
    made.number = insert_version(database, newer, older);
    for (second = 0; second < sides[1].count; second++) {
        const row *theirs = &sides[1].at[second];
        int order = 1;
        while (first < sides[0].count && (order = strcmp(sides[0].at[first].key, theirs->key)) < 0) first++;
        if (first == sides[0].count || order > 0 || sides[0].at[first].version < theirs->version) {
            sqlite3_stmt *take_over = bound_to_key(database, TAKE_OVER, theirs->key, theirs->version);
            check(database, sqlite3_bind_int64(take_over, 3, made.number));
            step_once(database, take_over);
        }
    }
    step_once(database, database->statements[COMMIT]);
    free(sides[0].at);
    free(sides[1].at);
    return made;
}

static void newest(void *opaque, version *versions, size_t count) {
    database *database = opaque;
    sqlite3_stmt *prepared;
    size_t i;
    memset(versions, 0, count * sizeof *versions);
    check(database, sqlite3_prepare_v2(database->connection, "SELECT max(id) FROM versions", -1, &prepared, NULL));
    check(database, sqlite3_step(prepared));
    for (i = 0; i < count; i++) versions[i].number = sqlite3_column_int64(prepared, 0) - (sqlite3_int64)i;
    sqlite3_finalize(prepared);
}

const side yardstick = { "yardstick", open_yardstick, close_yardstick, open_reader, close_reader, pack, load, save, fetch,
                         enumerate, differences, merge_base, merge, newest };

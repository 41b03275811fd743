/*
 * Measures what the SQLite extension costs in addition to the library: each query through SQL beside the same query in C, on one store in
 * one process.
 *
 *     bench_sqlite [--quick] [--n <values>] <folder>
 *
 * Uses 100,000 JSON documents of 300 bytes, or with --quick 5,000. Both sides get the id and the bytes of each value, and read the first
 * byte of each. Prints the medians of 11 alternating turns, and their ratio. Works in <folder>/bench_sqlite.llvs, which it removes.
 */
#define _DEFAULT_SOURCE
#include <llvs.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "data.h"
#include "ours.h"
#include "process.h"
#include "workload.h"

enum { TURNS = 11, VALUE_SIZE = 300, LOOK_UPS = 2000 };

typedef struct sides {
    llvs_store *store;
    llvs_version_id head;
    sqlite3 *database;
    const char *path, *ids;
    size_t count;
    /* A sum over the results, so that the compiler leaves nothing out. */
    unsigned long long seen;
} sides;

static void make_store(sides *sides) {
    llvs_change *changes = calloc(sides->count, sizeof *changes);
    char *data = malloc(sides->count * VALUE_SIZE);
    llvs_error *error;
    size_t i;
    if (!changes || !data) fail("no memory");
    for (i = 0; i < sides->count; i++) {
        char *value = data + i * VALUE_SIZE;
        int size = snprintf(value, VALUE_SIZE, "{\"name\":\"%zu\",\"text\":\"", i);
        memset(value + size, 'a' + (int)(i % 26), (size_t)(VALUE_SIZE - size - 2));
        memcpy(value + VALUE_SIZE - 2, "\"}", 2);
        changes[i].kind = LLVS_CHANGE_INSERT;
        changes[i].id = llvs_str(data_id(sides->ids, i));
        changes[i].data = llvs_bytes_make(value, VALUE_SIZE);
    }
    must(llvs_store_open(llvs_str(sides->path), NULL, &sides->store, &error), error);
    must(llvs_store_make_version(sides->store, LLVS_NONE, changes, sides->count, sizeof *changes, NULL, &sides->head, NULL, &error), error);
    must(llvs_store_close(sides->store, &error), error);
    llvs_store_free(sides->store);
    free(changes);
    free(data);
}

static void open_both(sides *sides) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_error *error;
    char *message = NULL;
    options.read_only = 1;
    must(llvs_store_open(llvs_str(sides->path), &options, &sides->store, &error), error);
    if (sqlite3_open(":memory:", &sides->database) != SQLITE_OK) fail("SQLite does not open");
    sqlite3_enable_load_extension(sides->database, 1);
    if (sqlite3_load_extension(sides->database, LLVS_BINARY_DIR "/lib/libllvs_sqlite", NULL, &message) != SQLITE_OK) fail("%s", message);
}

/* ---- the questions ---- */

static size_t scan_c(sides *sides, llvs_bool without_data) {
    llvs_range range = LLVS_RANGE_INIT;
    llvs_error *error;
    char last[LLVS_VALUE_ID_SIZE_MAX];
    size_t rows = 0;
    range.without_data = without_data;
    for (;;) {
        llvs_value_block *block;
        const uint8_t *id, *data;
        size_t i;
        must(llvs_store_enumerate_block(sides->store, llvs_id(&sides->head), &range, &block, &error), error);
        if (!block) return rows;
        id = block->ids.data;
        data = block->data.data;
        for (i = 0; i < block->count; i++) {
            size_t size = (size_t)block->id_sizes[i];
            sides->seen += id[0];
            if (!without_data) {
                sides->seen += data[0];
                data += block->data_sizes[i];
            }
            if (i + 1 == block->count) {
                memcpy(last, id, size);
                range.after = llvs_bytes_make(last, size);
            }
            id += size + 1;
        }
        rows += block->count;
        llvs_value_block_free(block);
    }
}

static size_t ask(sides *sides, sqlite3_stmt *statement, int columns) {
    size_t rows = 0;
    int code, i;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        for (i = 0; i < columns; i++) sides->seen += sqlite3_column_text(statement, i)[0];
        rows++;
    }
    if (code != SQLITE_DONE) fail("%s", sqlite3_errmsg(sides->database));
    sqlite3_reset(statement);
    return rows;
}

static sqlite3_stmt *prepare(sides *sides, const char *text) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(sides->database, text, -1, &statement, NULL) != SQLITE_OK) fail("%s", sqlite3_errmsg(sides->database));
    sqlite3_bind_text(statement, 1, sides->path, -1, SQLITE_STATIC);
    return statement;
}

static size_t all_c(sides *sides) { return scan_c(sides, 0); }
static size_t all_sql(sides *sides) {
    sqlite3_stmt *statement = prepare(sides, "SELECT id, data FROM llvs_values(?)");
    size_t rows = ask(sides, statement, 2);
    sqlite3_finalize(statement);
    return rows;
}

static size_t ids_c(sides *sides) { return scan_c(sides, 1); }
static size_t ids_sql(sides *sides) {
    sqlite3_stmt *statement = prepare(sides, "SELECT id FROM llvs_values(?)");
    size_t rows = ask(sides, statement, 1);
    sqlite3_finalize(statement);
    return rows;
}

static size_t some_c(sides *sides) {
    uint8_t value[VALUE_SIZE];
    llvs_error *error;
    size_t i, size, rows = 0;
    for (i = 0; i < LOOK_UPS; i++, rows += size != SIZE_MAX) {
        llvs_bytes id = llvs_str(data_id(sides->ids, i * 7919 % sides->count));
        must(llvs_store_read_value(sides->store, id, llvs_id(&sides->head), value, sizeof value, &size, NULL, &error), error);
        sides->seen += value[0];
    }
    return rows;
}
static size_t some_sql(sides *sides) {
    sqlite3_stmt *statement = prepare(sides, "SELECT data FROM llvs_values(?) WHERE id = ?");
    size_t i, rows = 0;
    for (i = 0; i < LOOK_UPS; i++) {
        sqlite3_bind_text(statement, 2, data_id(sides->ids, i * 7919 % sides->count), -1, SQLITE_STATIC);
        rows += ask(sides, statement, 1);
    }
    sqlite3_finalize(statement);
    return rows;
}

static const struct {
    const char *name;
    size_t (*in_c)(sides *);
    size_t (*in_sql)(sides *);
    double goal; /* of the ratio; 0: none */
} questions[] = {
    { "all values", all_c, all_sql, 1.5 },
    { "all ids", ids_c, ids_sql, 0 },
    { "2,000 values by id, a statement each", some_c, some_sql, 0 },
};

static void measure(sides *sides, size_t question) {
    double c[TURNS], sql[TURNS];
    char goal[40] = "";
    int turn;
    for (turn = 0; turn < TURNS; turn++) {
        double begun = now();
        size_t rows = questions[question].in_c(sides);
        c[turn] = now() - begun;
        begun = now();
        if (questions[question].in_sql(sides) != rows) fail("%s: not the same rows", questions[question].name);
        sql[turn] = now() - begun;
    }
    if (questions[question].goal > 0) snprintf(goal, sizeof goal, "   (at most %.1f)", questions[question].goal);
    printf("%-38s C %9.2f ms   SQL %9.2f ms   ratio %5.2f%s\n", questions[question].name, median(c, TURNS) * 1e3, median(sql, TURNS) * 1e3,
        median(sql, TURNS) / median(c, TURNS), goal);
}

int main(int count, char **arguments) {
    const char *parent = NULL;
    char path[3000], *absolute, *ids;
    sides sides = { 0 };
    llvs_error *error;
    size_t i;
    int at;
    sides.count = 100000;
    for (at = 1; at < count; at++) {
        if (strcmp(arguments[at], "--quick") == 0) sides.count = 5000;
        else if (strcmp(arguments[at], "--n") == 0 && at + 1 < count) sides.count = (size_t)strtoull(arguments[++at], NULL, 10);
        else parent = arguments[at];
    }
    if (!parent || sides.count == 0) fail("usage: bench_sqlite [--quick] [--n <values>] <folder>");
    absolute = absolute_path(parent);
    snprintf(path, sizeof path, "%s/bench_sqlite.llvs", absolute);
    free(absolute);
    remove_folder(path);
    sides.path = path;
    sides.ids = ids = data_ids(sides.count, "contact/");
    make_store(&sides);
    open_both(&sides);
    for (i = 0; i < sizeof questions / sizeof *questions; i++) measure(&sides, i);
    sqlite3_close(sides.database);
    must(llvs_store_close(sides.store, &error), error);
    llvs_store_free(sides.store);
    remove_folder(path);
    free(ids);
    return sides.seen == 0;
}

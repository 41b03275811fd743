/*
 * The extension in a program under AddressSanitizer. SQLite's allocations fail one after another; connections are used in several threads;
 * and the extension must refuse to load in some cases. Built by scripts/suites/59-sqlite: with SQLITE_CORE the extension is linked in,
 * without it is loaded.
 *
 *     extension <empty folder> [<path of libllvs_sqlite.so>]
 */
#define _POSIX_C_SOURCE 200809L
#include <llvs.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static int passed, failed;
static char store_path[4096];
static const char *extension;

static void check(int is_right, const char *what) {
    if (is_right) {
        passed++;
    } else {
        failed++;
        printf("FAILED  %s\n", what);
    }
}

static void must(llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return;
    printf("%s\n", llvs_error_message(error));
    exit(1);
}

/* ---- allocations that fail ---- */

static sqlite3_mem_methods usual;
/* How many allocations of the thread that set it still succeed; -1: all. */
static long until_failure = -1;

static int fails(void) {
    if (until_failure < 0) return 0;
    if (until_failure == 0) return 1;
    until_failure--;
    return 0;
}
static void *allocate(int size) { return fails() ? NULL : usual.xMalloc(size); }
static void *reallocate(void *old, int size) { return fails() ? NULL : usual.xRealloc(old, size); }

/* ---- a store ---- */

static void make_store(void) {
    static const char rules[] = "{\"merge\":1,\"indexes\":{\"n\":{\"prefix\":\"v\",\"on\":[\"/n\"]}}}";
    llvs_store *store;
    llvs_error *error;
    llvs_version_id version;
    llvs_change changes[200];
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_metadata_entry metadata = { llvs_str("author"), llvs_str("\"ann\"") };
    char ids[200][16], data[200][32];
    int i;
    for (i = 0; i < 200; i++) {
        llvs_change change = LLVS_CHANGE_INIT;
        snprintf(ids[i], sizeof ids[i], "v%03d", i);
        snprintf(data[i], sizeof data[i], "{\"n\":%d}", i % 7);
        change.kind = LLVS_CHANGE_INSERT;
        change.id = llvs_str(i == 0 ? "__llvs_schema" : ids[i]);
        change.data = i == 0 ? llvs_str(rules) : llvs_str(data[i]);
        changes[i] = change;
    }
    options.metadata = &metadata;
    options.metadata_count = 1;
    must(llvs_store_open(llvs_str(store_path), NULL, &store, &error), error);
    must(llvs_store_make_version(store, LLVS_NONE, changes, 200, sizeof *changes, &options, &version, NULL, &error), error);
    changes[1].data = llvs_bytes_make("\xFF\x00x", 3);
    options.branch = llvs_str("draft");
    must(llvs_store_make_version(store, llvs_id(&version), changes + 1, 1, sizeof *changes, &options, &version, NULL, &error), error);
    must(llvs_store_close(store, &error), error);
    llvs_store_free(store);
}

/* ---- connections ---- */

#ifdef SQLITE_CORE
int sqlite3_llvssqlite_init(sqlite3 *db, char **message, const void *api);
static int load(sqlite3 *db, char **message) { return sqlite3_llvssqlite_init(db, message, NULL); }
#else
static int load(sqlite3 *db, char **message) {
    sqlite3_enable_load_extension(db, 1);
    return sqlite3_load_extension(db, extension, NULL, message);
}
#endif

static sqlite3 *connect(void) {
    sqlite3 *db;
    char *message = NULL;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || load(db, &message) != SQLITE_OK) {
        printf("%s\n", message ? message : "the extension cannot be loaded");
        exit(1);
    }
    return db;
}

/* Adds up all columns of all rows into one number. `*code` receives SQLite's result code. */
static unsigned long long sum(sqlite3 *db, const char *statement, int *code, int *rows) {
    sqlite3_stmt *prepared = NULL;
    unsigned long long total = 0;
    char *sql = sqlite3_mprintf(statement, store_path, store_path, store_path);
    *rows = 0;
    *code = sql ? sqlite3_prepare_v2(db, sql, -1, &prepared, NULL) : SQLITE_NOMEM;
    while (*code == SQLITE_OK || *code == SQLITE_ROW) {
        int column;
        *code = sqlite3_step(prepared);
        if (*code != SQLITE_ROW) break;
        ++*rows;
        for (column = 0; column < sqlite3_column_count(prepared); column++) {
            const unsigned char *data = sqlite3_column_blob(prepared, column);
            int size = sqlite3_column_bytes(prepared, column), i;
            for (i = 0; i < size && data; i++) total = total * 31 + data[i];
        }
    }
    sqlite3_finalize(prepared);
    sqlite3_free(sql);
    return total;
}

static const char *const statements[] = {
    "SELECT id, data, stored_version, version, at FROM llvs_values(%Q, 'draft') WHERE rowid <> 0",
    "SELECT id, data FROM llvs_values(%Q) WHERE id LIKE 'V0%%' AND id > 'v01' ORDER BY id DESC LIMIT 5",
    "SELECT id, stored_version FROM llvs_values(%Q) WHERE id IN ('v001', 'v002', 'x')",
    "SELECT data FROM llvs_values(%Q) WHERE id = 'v007' AND at = 'draft'",
    "SELECT id, key, data, stored_version FROM llvs_values(%Q) WHERE index_name = 'n' AND low = json_array(2) AND high = '[3]'",
    "SELECT * FROM llvs_changes(%Q, (SELECT predecessor FROM llvs_heads(%Q)), 'draft') WHERE id GLOB 'v*' AND rowid",
    "SELECT * FROM llvs_versions(%Q) WHERE rowid",
    "SELECT version FROM llvs_versions(%Q, 'draft', (SELECT predecessor FROM llvs_heads(%Q)))",
    "SELECT * FROM llvs_heads(%Q) WHERE branch = 'draft'",
    "SELECT * FROM llvs_history(%Q, 'v001')",
    "SELECT count(*), llvs_close('nowhere') FROM llvs_values(%Q) a JOIN llvs_values(%Q) b ON a.id = b.id",
    "SELECT * FROM llvs_values(%Q, 'nothing\x01')",
    "SELECT * FROM llvs_values('nowhere')",
    "SELECT * FROM llvs_values(%Q) WHERE index_name = 'nothing'",
    "SELECT a.id FROM llvs_values(%Q) a LEFT JOIN llvs_values(%Q) b ON b.id = a.id || 'x' WHERE (a.id = 'v005' OR a.id GLOB 'v06*')",
};
enum { STATEMENT_COUNT = sizeof statements / sizeof *statements };

static void test_statements(void) {
    int i;
    for (i = 0; i < STATEMENT_COUNT; i++) {
        int code, rows;
        sqlite3 *db = connect();
        sum(db, statements[i], &code, &rows);
        if (i >= 11 && i <= 13) check(code != SQLITE_DONE && strlen(sqlite3_errmsg(db)) > 15, statements[i]);
        else check(code == SQLITE_DONE && rows > 0, statements[i]);
        check(sqlite3_close(db) == SQLITE_OK, "the connection closes");
    }
}

/* Each allocation of SQLite fails in turn, once or from then on, while a statement runs. The statement reports it, or returns its usual
 * rows. */
static void test_failing_allocations(void) {
    int i, failures = 0;
    for (i = 0; i < STATEMENT_COUNT; i++) {
        int code, rows, wanted_code, wanted_rows;
        sqlite3 *db = connect();
        unsigned long long wanted = sum(db, statements[i], &wanted_code, &wanted_rows);
        long n;
        sqlite3_close(db);
        for (n = 0;; n++) {
            unsigned long long found;
            int is_over;
            db = connect();
            until_failure = n;
            found = sum(db, statements[i], &code, &rows);
            is_over = until_failure > 0;
            until_failure = -1;
            if (code == wanted_code && code == SQLITE_DONE) check(found == wanted && rows == wanted_rows, statements[i]);
            if (code != wanted_code) {
                failures++;
                check(code == SQLITE_NOMEM || code == SQLITE_IOERR_NOMEM || code == SQLITE_ERROR || code == SQLITE_CANTOPEN, statements[i]);
            }
            /* Afterwards the statement works again. */
            check(sum(db, statements[i], &code, &rows) == wanted && code == wanted_code, "after a failed allocation");
            check(sqlite3_close(db) == SQLITE_OK, "the connection closes after a failed allocation");
            if (is_over) break;
        }
    }
    printf("%d statements failed for lack of memory\n", failures);
    check(failures > 300, "allocations were failed");
    /* Allocations also fail while the extension is loaded. */
    for (i = 0; i < 200; i++) {
        sqlite3 *db;
        char *message = NULL;
        int code;
        if (sqlite3_open(":memory:", &db) != SQLITE_OK) exit(1);
        until_failure = i;
        code = load(db, &message);
        until_failure = -1;
        sqlite3_free(message);
        check(sqlite3_close(db) == SQLITE_OK, "a connection closes into which nothing was loaded");
        if (code == SQLITE_OK) break;
    }
    check(i > 3 && i < 200, "loading fails for lack of memory, and then does not");
}

static void *ask(void *payload) {
    long *wrong = payload;
    int round, code, rows;
    for (round = 0; round < 30; round++) {
        sqlite3 *db = connect();
        sum(db, statements[round % 11], &code, &rows);
        if (code != SQLITE_DONE || rows == 0) ++*wrong;
        sum(db, "SELECT count(*) FROM llvs_values(%Q)", &code, &rows);
        if (code != SQLITE_DONE || rows != 1) ++*wrong;
        sqlite3_close(db);
    }
    return NULL;
}

static void test_threads(void) {
    pthread_t threads[4];
    long wrong[4] = { 0 };
    int i;
    for (i = 0; i < 4; i++) pthread_create(&threads[i], NULL, ask, &wrong[i]);
    for (i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    check(wrong[0] + wrong[1] + wrong[2] + wrong[3] == 0, "connections in threads answer");
}

#ifndef SQLITE_CORE
#include <dlfcn.h>
#include <sqlite3ext.h>
#undef sqlite3_mprintf
#undef sqlite3_libversion_number
#undef sqlite3_libversion
#undef sqlite3_free
#undef sqlite3_open
#undef sqlite3_close

static int is_old(void) { return 3030001; }
static const char *old_name(void) { return "3.30.1"; }

/* The extension calls the SQLite that loaded it first, and would pass connections of another SQLite to that one. */
static void test_other_copies(void) {
    static struct sqlite3_api_routines other;
    int (*init)(sqlite3 *, char **, const struct sqlite3_api_routines *);
    void *library = dlopen(extension, RTLD_NOW);
    char *message = NULL;
    sqlite3 *db;
    *(void **)(&init) = library ? dlsym(library, "sqlite3_llvssqlite_init") : NULL;
    check(init != NULL, "the library has its entry point");
    if (!init || sqlite3_open(":memory:", &db) != SQLITE_OK) return;
    other.mprintf = sqlite3_mprintf;
    other.libversion_number = is_old;
    other.libversion = old_name;
    check(init(db, &message, &other) == SQLITE_ERROR && message && strstr(message, "needs SQLite 3.31 or later, and this is 3.30.1"),
        "an old SQLite");
    sqlite3_free(message);
    message = NULL;
    other.libversion_number = sqlite3_libversion_number;
    {
        sqlite3 *first = connect();
        check(init(db, &message, &other) == SQLITE_ERROR && message && strstr(message, "in use by another copy of SQLite"), "another copy");
        sqlite3_free(message);
        sqlite3_close(first);
    }
    sqlite3_close(db);
    dlclose(library);
}
#endif

int main(int argc, char **argv) {
    sqlite3_mem_methods failing;
    if (argc < 2) return 2;
    extension = argc > 2 ? argv[2] : NULL;
    snprintf(store_path, sizeof store_path, "%s/extension.llvs", argv[1]);
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual);
    failing = usual;
    failing.xMalloc = allocate;
    failing.xRealloc = reallocate;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &failing);
    /* By default SQLite allocates from pools, where nothing fails. */
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
    make_store();
    test_statements();
    test_failing_allocations();
    test_threads();
#ifndef SQLITE_CORE
    test_other_copies();
#endif
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}

/*
 * The figures that the store has to reach, measured through the C API, beside what a hand-written SQLite
 * table (key, version, data) does on the same machine with the same data.
 *
 *     bench_basics [--quick] <folder>
 *
 * Works in <folder>/bench_basics, which it removes before and after. --quick takes a twentieth of the work: whether it runs, not
 * how fast. Every figure comes twice: with UUIDs as ids, and with "Contact/" before each, where none may be
 * more than twice as bad.
 */
#include <llvs.h>
#include <sqlite3.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { VALUES = 10000, VALUE_SIZE = 100, ID_SIZE = 64, OPEN_VERSIONS = 10000, BRANCH_CHANGES = 100, MERGES = 9, OPENS = 9, PATH_SIZE = 4096 };

static char ids[VALUES][ID_SIZE];
static char folder[PATH_SIZE];
static const char *program;
static int quick;

/* ---- small things ---- */

static void must(llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return;
    fprintf(stderr, "bench_basics: %s (%s)\n", llvs_error_message(error), llvs_status_name(status));
    exit(1);
}

static void must_sqlite(int result, sqlite3 *database) {
    if (result == SQLITE_OK || result == SQLITE_DONE || result == SQLITE_ROW) return;
    fprintf(stderr, "bench_basics: SQLite: %s\n", sqlite3_errmsg(database));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* xorshift64*: the same data in every run. */
static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717u;
}

static void draw_value(uint8_t value[VALUE_SIZE]) {
    int i;
    for (i = 0; i < VALUE_SIZE; i++) value[i] = (uint8_t)(draw() >> 56);
}

static void draw_ids(const char *prefix) {
    int i;
    for (i = 0; i < VALUES; i++) {
        uint64_t a = draw(), b = draw();
        snprintf(ids[i], ID_SIZE, "%s%08X-%04X-4%03X-A%03X-%012llX", prefix, (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xFFFF),
                 (unsigned)(a & 0xFFF), (unsigned)(b >> 52), (unsigned long long)(b & 0xFFFFFFFFFFFFu));
    }
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median(double *figures, int count) {
    qsort(figures, (size_t)count, sizeof *figures, by_size);
    return figures[count / 2];
}

static const char *in_folder(const char *name) {
    static char paths[4][PATH_SIZE + 64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void remove_all(const char *path) {
    pid_t child = fork();
    int status;
    if (child == 0) {
        execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) exit(1);
}

static double file_size(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (double)info.st_size : 0;
}

/* What was measured under the first kind of ids, to be compared with the second. */
static double under_uuids[16];
static int figure_count, is_second;

/* A line of the table. `better` is 1 when more is better, -1 when less is; a yardstick of 0: there is none. */
static void print_figure(const char *name, double figure, const char *unit, double goal, int better, double yardstick) {
    const char *verdict = (figure - goal) * better >= 0 ? "reached" : "MISSED";
    printf("  %-44s %10.1f %-11s %s %-9.0f %-8s", name, figure, unit, better > 0 ? ">=" : "<=", goal, quick ? "-" : verdict);
    if (yardstick > 0) printf(" SQLite %10.1f  (%5.2fx)", yardstick, better > 0 ? figure / yardstick : yardstick / figure);
    if (is_second) {
        double ratio = better > 0 ? figure / under_uuids[figure_count] : under_uuids[figure_count] / figure;
        printf("  [%.2f of UUIDs%s]", ratio, ratio >= 0.5 ? "" : ", MISSED");
    } else {
        under_uuids[figure_count] = figure;
    }
    figure_count++;
    printf("\n");
    fflush(stdout);
}

/* ---- the store ---- */

static llvs_store *open_store(const char *path) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_error *error;
    options.durability = LLVS_DURABILITY_NORMAL;
    must(llvs_store_open(llvs_str(path), &options, &store, &error), error);
    return store;
}

static void close_store(llvs_store *store) {
    llvs_error *error;
    must(llvs_store_close(store, &error), error);
    llvs_store_free(store);
}

static uint64_t bytes_of(llvs_store *store) {
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_error *error;
    must(llvs_store_statistics(store, &statistics, &error), error);
    return statistics.bytes;
}

/* All values in one version. */
static llvs_version_id populate(llvs_store *store) {
    llvs_change *changes = calloc(VALUES, sizeof *changes);
    uint8_t *data = malloc((size_t)VALUES * VALUE_SIZE);
    llvs_version_id version;
    llvs_error *error;
    int i;
    if (!changes || !data) exit(1);
    for (i = 0; i < VALUES; i++) {
        draw_value(data + (size_t)i * VALUE_SIZE);
        changes[i].kind = LLVS_CHANGE_INSERT;
        changes[i].id = llvs_str(ids[i]);
        changes[i].data = llvs_bytes_make(data + (size_t)i * VALUE_SIZE, VALUE_SIZE);
    }
    must(llvs_store_make_version(store, LLVS_NONE, changes, VALUES, sizeof *changes, NULL, &version, NULL, &error), error);
    free(changes);
    free(data);
    return version;
}

/* One version that updates one value. */
static llvs_version_id update(llvs_store *store, llvs_version_id at, int which) {
    uint8_t value[VALUE_SIZE];
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_version_id version;
    llvs_error *error;
    draw_value(value);
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = llvs_str(ids[which]);
    change.data = llvs_bytes_make(value, VALUE_SIZE);
    must(llvs_store_make_version(store, llvs_id(&at), &change, 1, sizeof change, NULL, &version, NULL, &error), error);
    return version;
}

static void fetch(llvs_store *store, const char *id, const llvs_version_id *at) {
    llvs_buffer data;
    llvs_error *error;
    must(llvs_store_value(store, llvs_str(id), llvs_id(at), &data, NULL, &error), error);
    if (data.size != VALUE_SIZE) {
        fprintf(stderr, "bench_basics: %s has %zu bytes\n", id, data.size);
        exit(1);
    }
    llvs_buffer_dispose(&data);
}

/* ---- the yardstick ---- */

static sqlite3 *open_sqlite(const char *path) {
    sqlite3 *database;
    must_sqlite(sqlite3_open(path, &database), database);
    must_sqlite(sqlite3_exec(database, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                             "CREATE TABLE IF NOT EXISTS kv (key TEXT, version INTEGER, data BLOB, PRIMARY KEY (key, version)) WITHOUT ROWID;",
                             NULL, NULL, NULL), database);
    return database;
}

static sqlite3_stmt *prepare(sqlite3 *database, const char *text) {
    sqlite3_stmt *statement;
    must_sqlite(sqlite3_prepare_v2(database, text, -1, &statement, NULL), database);
    return statement;
}
static sqlite3_stmt *prepare_insert(sqlite3 *database) { return prepare(database, "INSERT INTO kv VALUES (?, ?, ?)"); }
static sqlite3_stmt *prepare_select(sqlite3 *database) {
    return prepare(database, "SELECT data FROM kv WHERE key = ? AND version <= ? ORDER BY version DESC LIMIT 1");
}

static void insert_row(sqlite3 *database, sqlite3_stmt *insert, const char *id, sqlite3_int64 version) {
    uint8_t value[VALUE_SIZE];
    draw_value(value);
    sqlite3_bind_text(insert, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 2, version);
    sqlite3_bind_blob(insert, 3, value, VALUE_SIZE, SQLITE_STATIC);
    must_sqlite(sqlite3_step(insert), database);
    sqlite3_reset(insert);
}

static void select_row(sqlite3 *database, sqlite3_stmt *select, const char *id, sqlite3_int64 version) {
    char copy[VALUE_SIZE];
    sqlite3_bind_text(select, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(select, 2, version);
    must_sqlite(sqlite3_step(select), database);
    if (sqlite3_column_bytes(select, 0) != VALUE_SIZE) exit(1);
    memcpy(copy, sqlite3_column_blob(select, 0), VALUE_SIZE);
    sqlite3_reset(select);
}

static void populate_sqlite(sqlite3 *database, sqlite3_stmt *insert) {
    int i;
    must_sqlite(sqlite3_exec(database, "BEGIN", NULL, NULL, NULL), database);
    for (i = 0; i < VALUES; i++) insert_row(database, insert, ids[i], 0);
    must_sqlite(sqlite3_exec(database, "COMMIT", NULL, NULL, NULL), database);
}

/* ---- opening, in a new process ---- */

/* Opens and reads one value; prints the seconds that took. The child's side. */
static int open_and_read(const char *kind, const char *path, const char *id, const char *version) {
    double start = now();
    if (strcmp(kind, "--open-store") == 0) {
        llvs_store *store = open_store(path);
        llvs_buffer data;
        llvs_error *error;
        must(llvs_store_value(store, llvs_str(id), llvs_str(version), &data, NULL, &error), error);
        printf("%.9f\n", data.size == VALUE_SIZE ? now() - start : 1e9);
        llvs_buffer_dispose(&data);
        close_store(store);
    } else {
        sqlite3 *database = open_sqlite(path);
        sqlite3_stmt *select = prepare_select(database);
        select_row(database, select, id, 1000000000);
        printf("%.9f\n", now() - start);
        sqlite3_finalize(select);
        sqlite3_close(database);
    }
    return 0;
}

static double open_in_new_process(const char *kind, const char *path, const char *id, const char *version) {
    int pipe_ends[2];
    char text[64] = "";
    ssize_t got;
    int status;
    pid_t child;
    if (pipe(pipe_ends) != 0) exit(1);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], 1);
        close(pipe_ends[0]);
        execl(program, program, kind, path, id, version, (char *)NULL);
        _exit(127);
    }
    close(pipe_ends[1]);
    got = read(pipe_ends[0], text, sizeof text - 1);
    close(pipe_ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || got <= 0) {
        fprintf(stderr, "bench_basics: the process that opens %s failed\n", path);
        exit(1);
    }
    return atof(text);
}

static double median_open(const char *kind, const char *path, const char *version) {
    double figures[OPENS];
    int i;
    for (i = 0; i < OPENS; i++) figures[i] = open_in_new_process(kind, path, ids[draw() % VALUES], version) * 1000;
    return median(figures, OPENS);
}

/* ---- the figures ---- */

static void measure_commits_and_fetches(int scale) {
    int commits = 50000 / scale, fetches = 400000 / scale, i;
    const char *path = in_folder("commits"), *database_path = in_folder("commits.sqlite");
    double start, store_commits, store_fetches, store_bytes, sqlite_commits, sqlite_fetches, sqlite_bytes;
    llvs_store *store = open_store(path);
    llvs_version_id at = populate(store);
    sqlite3 *database = open_sqlite(database_path);
    sqlite3_stmt *insert = prepare_insert(database), *select = prepare_select(database);
    uint64_t before;

    close_store(store);
    store = open_store(path);
    before = bytes_of(store);
    start = now();
    for (i = 0; i < commits; i++) at = update(store, at, (int)(draw() % VALUES));
    store_commits = commits / (now() - start);
    start = now();
    for (i = 0; i < fetches; i++) fetch(store, ids[draw() % VALUES], &at);
    store_fetches = fetches / (now() - start);
    close_store(store);
    store = open_store(path);
    store_bytes = (double)(bytes_of(store) - before) / commits;
    close_store(store);

    populate_sqlite(database, insert);
    sqlite3_exec(database, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    sqlite_bytes = file_size(database_path);
    start = now();
    for (i = 0; i < commits; i++) insert_row(database, insert, ids[draw() % VALUES], i + 1);
    sqlite_commits = commits / (now() - start);
    start = now();
    for (i = 0; i < fetches; i++) select_row(database, select, ids[draw() % VALUES], commits);
    sqlite_fetches = fetches / (now() - start);
    sqlite3_finalize(insert);
    sqlite3_finalize(select);
    sqlite3_exec(database, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    sqlite3_close(database);
    sqlite_bytes = (file_size(database_path) - sqlite_bytes) / commits;

    print_figure("one-value versions (durability normal)", store_commits, "per second", 50000, 1, sqlite_commits);
    print_figure("fetches at the head", store_fetches, "per second", 400000, 1, sqlite_fetches);
    print_figure("disk per one-value version", store_bytes, "bytes", 1000, -1, sqlite_bytes);
}

static void measure_open(int scale) {
    int versions = OPEN_VERSIONS / scale, i;
    const char *path = in_folder("open"), *database_path = in_folder("open.sqlite");
    llvs_store *store = open_store(path);
    llvs_version_id at = populate(store);
    sqlite3 *database = open_sqlite(database_path);
    sqlite3_stmt *insert = prepare_insert(database);
    double milliseconds, yardstick;

    for (i = 1; i < versions; i++) at = update(store, at, (int)(draw() % VALUES));
    close_store(store);
    populate_sqlite(database, insert);
    for (i = 1; i < versions; i++) insert_row(database, insert, ids[draw() % VALUES], i);
    sqlite3_finalize(insert);
    sqlite3_close(database);

    milliseconds = median_open("--open-store", path, at.text);
    yardstick = median_open("--open-sqlite", database_path, "");
    print_figure("open 10,000 versions, read a value", milliseconds, "ms", 30, -1, yardstick);
}

/* Two branches of one-value versions from one version, a tenth of the ids changed by both; merged, repeatedly. */
static void measure_merge(void) {
    llvs_store *store = open_store(in_folder("merge"));
    llvs_version_id base = populate(store);
    double merges[MERGES], differences[MERGES];
    int round, i;
    for (round = 0; round < MERGES; round++) {
        llvs_version_id a = base, b = base;
        llvs_version_list *merged;
        llvs_change_cursor *cursor;
        llvs_error *error;
        int first = (int)(draw() % (VALUES - 2 * BRANCH_CHANGES));
        double start;
        for (i = 0; i < BRANCH_CHANGES; i++) a = update(store, a, first + i);
        for (i = 0; i < BRANCH_CHANGES; i++) b = update(store, b, first + i + BRANCH_CHANGES * 9 / 10);

        start = now();
        must(llvs_store_differences(store, llvs_id(&a), llvs_id(&b), &cursor, &error), error);
        differences[round] = (now() - start) * 1000;
        if (llvs_change_cursor_count(cursor) != BRANCH_CHANGES * 19 / 10) exit(1);
        llvs_change_cursor_free(cursor);

        start = now();
        must(llvs_store_merge(store, llvs_id(&a), llvs_id(&b), NULL, NULL, &merged, &error), error);
        merges[round] = (now() - start) * 1000;
        if (llvs_version_list_count(merged) != 1) exit(1);
        llvs_version_list_free(merged);
    }
    close_store(store);
    print_figure("merge two branches of 100 changed values", median(merges, MERGES), "ms", 10, -1, 0);
    printf("  %-44s %10.1f ms\n", "differences of the two", median(differences, MERGES));
}

static void measure_all(const char *prefix, int scale) {
    draw_ids(prefix);
    figure_count = 0;
    is_second = *prefix != 0;
    printf("\n%d values of %d bytes under ids like %s\n", VALUES, VALUE_SIZE, ids[0]);
    remove_all(folder);
    if (mkdir(folder, 0777) != 0) {
        fprintf(stderr, "bench_basics: cannot make %s: %s\n", folder, strerror(errno));
        exit(1);
    }
    measure_commits_and_fetches(scale);
    measure_open(scale);
    measure_merge();
}

int main(int argc, char **argv) {
    program = argv[0];
    if (argc == 5) return open_and_read(argv[1], argv[2], argv[3], argv[4]);
    quick = argc == 3 && strcmp(argv[1], "--quick") == 0;
    if (argc != 2 + quick || snprintf(folder, sizeof folder, "%s/bench_basics", argv[argc - 1]) >= (int)sizeof folder) {
        fprintf(stderr, "usage: bench_basics [--quick] <folder>\n");
        return 2;
    }
    printf("llvs %s, SQLite %s%s\n", llvs_version_string(), sqlite3_libversion(), quick ? ", quick: the figures mean nothing" : "");
    measure_all("", quick ? 20 : 1);
    measure_all("Contact/", quick ? 20 : 1);
    remove_all(folder);
    return 0;
}

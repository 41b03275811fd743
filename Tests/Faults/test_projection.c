/*
 * The database of a projection, after the process that updated it was killed, or a system call failed.
 *
 * A store has versions, in each of which all values contain one number. A process updates a projection from version to version, with one
 * definition, then with another, and back. It is killed before, within and after every call that changes something in the folder of the
 * database, and each of these calls fails once. Then the database is queried: all rows are those of the recorded version, which is the one
 * acknowledged last or the one requested. The next update continues from there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "files.h"
#include "sample.h"
#include "shim.h"

enum { VERSIONS = 5, VALUES = 60, STEPS = 9 };

/* The short run uses one in EVERY of the calls that are alike. */
enum { EVERY = 25 };
static int is_short;
static uint64_t seed = 1;
static const char *program;
static long taken, all;
/* Faults of a broken projection. Each must be noticed when it is planted. */
static const enum plant plants_of_it[] = {ACKNOWLEDGES_EARLY, LOSES_THE_LAST};

static const char *definitions[2] = {
    "{\"tables\":{\"rows\":{\"prefix\":\"row/\",\"columns\":[{\"name\":\"n\",\"pointer\":\"/n\",\"type\":\"integer\"}]}}}",
    "{\"tables\":{\"rows\":{\"prefix\":\"row/\",\"columns\":[{\"name\":\"n\",\"pointer\":\"/n\",\"type\":\"integer\"},"
    "{\"name\":\"w\",\"pointer\":\"/w\",\"type\":\"text\"}],\"indexes\":[[\"n\"]],"
    "\"search\":{\"name\":\"found\",\"columns\":[\"w\"]}}}}",
};
/* The version and the definition of each step. */
static const struct { int version, definition; } steps[STEPS] = {
    {0, 0}, {0, 0}, {1, 0}, {2, 0}, {2, 1}, {3, 1}, {1, 1}, {4, 0}, {3, 0},
};

struct shared {
    int asked, acknowledged; /* steps; -1: none */
    llvs_version_id versions[VERSIONS];
    char failure[1024];
};
static struct shared *shared;
static long passed, failed;
static char *root, *view_folder, *view;

static void fail(const char *format, long a, long b) {
    if (!shared->failure[0]) snprintf(shared->failure, sizeof shared->failure, format, a, b);
}

static int works(llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return 1;
    if (!shared->failure[0])
        snprintf(shared->failure, sizeof shared->failure, "%s: %s", llvs_status_name(status), llvs_error_message(error));
    llvs_error_free(error);
    return 0;
}

static llvs_store *open_store(void) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = NULL;
    llvs_error *error;
    char *path = path_of(root, "store");
    if (!works(llvs_store_open(llvs_str(path), &options, &store, &error), error)) store = NULL;
    free(path);
    return store;
}

/* ---- in children ---- */

static void prepare(void *payload) {
    llvs_store *store = open_store();
    (void)payload;
    for (int v = 0; store && v < VERSIONS; v++) {
        static char ids[VALUES][32], data[VALUES][64];
        llvs_change changes[VALUES];
        llvs_error *error;
        for (int i = 0; i < VALUES; i++) {
            static const llvs_change blank = LLVS_CHANGE_INIT;
            changes[i] = blank;
            snprintf(ids[i], sizeof ids[i], "row/%d", i);
            snprintf(data[i], sizeof data[i], "{\"n\":%d,\"w\":\"word%d of many words\"}", v, v);
            changes[i].kind = v ? LLVS_CHANGE_UPDATE : LLVS_CHANGE_INSERT;
            changes[i].id = llvs_str(ids[i]);
            changes[i].data = llvs_str(data[i]);
        }
        if (!works(llvs_store_make_version(store, v ? llvs_id(&shared->versions[v - 1]) : LLVS_NONE, changes, VALUES, sizeof *changes, NULL,
                                           &shared->versions[v], NULL, &error), error)) return;
    }
    llvs_store_free(store);
}

/* Continues after the last acknowledged step. If `payload` is 1, failures are expected, and the process stops at the first. */
static void work(void *payload) {
    int may_fail = *(int *)payload;
    llvs_projection *projection = NULL;
    llvs_error *error;
    llvs_store *store = open_store();
    for (int step = shared->acknowledged + 1; store && step < STEPS; step++) {
        llvs_status status = LLVS_OK;
        shared->asked = step;
        if (planted == ACKNOWLEDGES_EARLY) shared->acknowledged = step;
        if (projection && steps[step].definition != steps[step - 1].definition) {
            llvs_projection_free(projection);
            projection = NULL;
        }
        if (!projection)
            status = llvs_projection_open(store, llvs_str(view), llvs_str(definitions[steps[step].definition]), NULL, &projection, &error);
        if (status == LLVS_OK)
            status = llvs_projection_update(projection, llvs_id(&shared->versions[steps[step].version]), NULL, NULL, &error);
        if (status == LLVS_OK) shared->acknowledged = step;
        else if (!may_fail) works(status, error);
        else {
            /* The database is at the requested version, or where it was. */
            llvs_error_free(error);
            break;
        }
    }
    llvs_projection_free(projection);
    llvs_store_free(store);
}

static long number(sqlite3 *database, const char *sql) {
    sqlite3_stmt *statement;
    long found = -1;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        if (!shared->failure[0]) snprintf(shared->failure, sizeof shared->failure, "%s: %s", sql, sqlite3_errmsg(database));
        return -1;
    }
    if (sqlite3_step(statement) == SQLITE_ROW) found = (long)sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return found;
}

/* The step of which the database has the version; -1: none. */
static int where(const char *version, int definition) {
    for (int i = 0; i < 2; i++) {
        int step = i ? shared->asked : shared->acknowledged;
        if (step >= 0 && definition == steps[step].definition && strcmp(version, shared->versions[steps[step].version].text) == 0)
            return step;
    }
    return -1;
}

static void look_at_database(void) {
    sqlite3 *database = NULL;
    sqlite3_stmt *statement;
    char version[LLVS_VERSION_ID_SIZE_MAX + 1] = "", text[256];
    int step;
    if (!is_there(view)) {
        if (shared->acknowledged >= 0) fail("there is no database after step %ld%.0ld", shared->acknowledged, 0);
        return;
    }
    if (sqlite3_open(view, &database) != SQLITE_OK) fail("it cannot be opened%.0ld%.0ld", 0, 0);
    if (number(database, "SELECT count(*) FROM sqlite_master WHERE name = 'llvs_projection'") == 0) {
        if (shared->acknowledged >= 0) fail("it is empty after step %ld%.0ld", shared->acknowledged, 0);
        if (number(database, "SELECT count(*) FROM sqlite_master") != 0) fail("there is a half of it%.0ld%.0ld", 0, 0);
        sqlite3_close(database);
        return;
    }
    if (sqlite3_prepare_v2(database, "SELECT version FROM llvs_projection", -1, &statement, NULL) == SQLITE_OK) {
        if (sqlite3_step(statement) == SQLITE_ROW) snprintf(version, sizeof version, "%s", (const char *)sqlite3_column_text(statement, 0));
        sqlite3_finalize(statement);
    }
    step = where(version, number(database, "SELECT count(*) FROM sqlite_master WHERE name = 'found'") > 0);
    if (step < 0) {
        fail("it is at neither of the steps %ld and %ld", shared->acknowledged, shared->asked);
    } else {
        int n = steps[step].version;
        if (planted == LOSES_THE_LAST) sqlite3_exec(database, "DELETE FROM rows WHERE rowid = 7", NULL, NULL, NULL);
        snprintf(text, sizeof text, "SELECT count(*) = %d AND min(n) = %d AND max(n) = %d FROM rows", VALUES, n, n);
        if (number(database, text) != 1) fail("the rows are not those of the version %ld at step %ld", n, step);
        if (steps[step].definition == 1) {
            snprintf(text, sizeof text, "SELECT count(*) FROM found WHERE found MATCH 'word%d'", n);
            if (number(database, text) != VALUES) fail("the full-text table is not of version %ld at step %ld", n, step);
            if (sqlite3_exec(database, "BEGIN; INSERT INTO found(found) VALUES ('integrity-check'); ROLLBACK", NULL, NULL, NULL))
                fail("FTS5 says that its table is wrong: %ld %ld", n, step);
        }
    }
    if (number(database, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check != 'ok'") != 0)
        fail("SQLite says that it is damaged%.0ld%.0ld", 0, 0);
    sqlite3_close(database);
}

/* Checks where the database is, and that updates continue from there to the end. */
static void look(void *payload) {
    int may_fail = 0;
    (void)payload;
    look_at_database();
    if (shared->failure[0]) return;
    work(&may_fail);
    if (!shared->failure[0] && shared->acknowledged != STEPS - 1) fail("it reached step %ld of %ld", shared->acknowledged, STEPS - 1);
    if (!shared->failure[0]) look_at_database();
}

/* ---- */

static int is_told(const char *doing, long at, int part) {
    if (!shared->failure[0]) {
        passed++;
        return 0;
    }
    if (planted)
        printf("ok      %s is noticed: %s, call %ld: %s\n",
               planted == ACKNOWLEDGES_EARLY ? "a step that is acknowledged before it is done" : "a row that is lost", doing, at,
               shared->failure);
    else
        printf("FAILED  %s: call %ld, part %d (%s of %s): %s\n        again: %s%s --seed %llu\n", doing, at, part,
               call_name(faults->fired_kind), faults->fired_path, shared->failure, program, is_short ? " --sample" : "",
               (unsigned long long)seed);
    shared->failure[0] = 0;
    failed++;
    return 1;
}

static void begin(const char *base, const struct shared *prepared) {
    remove_tree(root);
    copy_tree(base, root);
    make_folder(view_folder);
    *shared = *prepared;
}

/* 1 if the process was killed, 0 if it completed. */
static int was_killed(int status) {
    if (status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return 1;
    if (status != 0) fail("the workload ended with %ld%.0ld", status, 0);
    return 0;
}

static void look_now(void) {
    int status;
    faults_stop();
    if (shared->failure[0]) return;
    status = run_in_child(look, NULL, 120);
    if (status != 0) fail("looking ended with %ld%.0ld", status, 0);
}

/* Runs the whole workload once and traces its calls. */
static struct sample trace(const char *base, const struct shared *prepared, unsigned kinds) {
    int may_fail = 0;
    begin(base, prepared);
    faults_watch(view_folder);
    faults_trace(kinds);
    int status = run_in_child(work, &may_fail, 120);
    faults_stop();
    if (status != 0) broken("the workload ended with %d", status);
    if (faults->trace_count < 50) broken("only %ld calls were seen", faults->trace_count);
    return sample_make(is_short ? EVERY : 1, seed);
}

static void kill_at_every_call(const char *base, const struct shared *prepared) {
    unsigned kinds = CALLS_CHANGING | CALL_LOCK;
    long kills = 0, turn = (long)seed;
    int may_fail = 0;
    struct sample sample = trace(base, prepared, kinds);
    /* Beyond the last call it completes. */
    for (long at = 1; at <= sample.count + 1; at++) {
        int is_write = at <= sample.count && sample.kinds[at] == CALL_WRITE;
        int is_taken = !is_short || at > sample.count || sample.is_taken[at];
        turn += is_taken;
        for (int part = -1; part <= WRITE_PARTS; part++) {
            /* Only a write has parts. There are many pages, so each is tried at one part. */
            if (part >= 0 && (at > sample.count || (part < WRITE_PARTS && !(is_write && part == at % WRITE_PARTS)))) continue;
            all++;
            if (!is_taken || (is_short && at <= sample.count && part != (is_write ? (int)(at % WRITE_PARTS) : turn % 2 ? -1 : WRITE_PARTS)))
                continue;
            taken++;
            begin(base, prepared);
            faults_watch(view_folder);
            faults_plan(part < 0 ? FAULT_KILL_BEFORE : part < WRITE_PARTS ? FAULT_KILL_WITHIN : FAULT_KILL_AFTER, kinds, at);
            faults->part = part < 0 ? 0 : part;
            int killed = was_killed(run_in_child(work, &may_fail, 120));
            if (killed != (at <= sample.count)) fail("the workload does not do the same again: call %ld of %ld", at, sample.count);
            look_now();
            kills += killed;
            if (is_told("killed", at, part)) {
                sample_free(&sample);
                return;
            }
        }
    }
    printf("ok      killed at %ld calls, %ld times\n", sample.count, kills);
    sample_free(&sample);
}

static void fail_every_call(const char *base, const struct shared *prepared) {
    static const int errors[] = {EIO, ENOSPC};
    struct sample sample = trace(base, prepared, CALLS_CHANGING);
    long refused = 0, turn = (long)seed, failures = 0;
    int may_fail = 1;
    for (long at = 1; at <= sample.count; at++) {
        turn += sample.is_taken[at];
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
            all++;
            if (is_short && (!sample.is_taken[at] || i != (size_t)(turn % 2))) continue;
            taken++;
            begin(base, prepared);
            faults_watch(view_folder);
            faults_plan(FAULT_FAIL, CALLS_CHANGING, at);
            faults->error = errors[i];
            faults->times = turn / 2 % 2 ? 1 : 1000000;
            if (run_in_child(work, &may_fail, 120) != 0) fail("the workload ended%.0ld%.0ld", 0, 0);
            failures += faults->fired > 0;
            refused += shared->acknowledged < STEPS - 1;
            look_now();
            if (is_told("failed", at, errors[i])) {
                sample_free(&sample);
                return;
            }
        }
    }
    if (refused == 0) fail("no failure was noticed%.0ld%.0ld", 0, 0);
    if (!is_told("failed", 0, 0))
        printf("ok      failed at %ld calls, %ld times, which ended %ld updates\n", sample.count, failures, refused);
    sample_free(&sample);
}

int main(int argc, char **argv) {
    static struct shared prepared;
    char *top, *base;
    int plants = 0;
    program = argv[0];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--sample") == 0) is_short = 1;
        else if (strcmp(argv[i], "--planted") == 0) is_short = plants = 1;
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[++i], NULL, 10);
        /* There is no longer version. */
        else if (i + 1 < argc && strcmp(argv[i], "--minutes") == 0) i++;
        else broken("usage: %s [--sample] [--planted] [--seed <number>]", program);
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) broken("no memory");
    top = new_root("projection");
    faults_make(0);
    base = path_of(top, "base");
    make_folder(base);
    shared->asked = shared->acknowledged = -1;
    root = base;
    if (run_in_child(prepare, NULL, 120) != 0 || shared->failure[0]) broken("cannot prepare: %s", shared->failure);
    prepared = *shared;
    root = path_of(top, "run");
    view_folder = path_of(root, "view");
    view = path_of(view_folder, "view.sqlite");
    if (plants) {
        long noticed = 0, missed = 0;
        for (int p = 0; p < 2; p++) {
            planted = plants_of_it[p];
            failed = 0;
            kill_at_every_call(base, &prepared);
            if (failed > 0) noticed++;
            else missed++, printf("FAILED  the planted defect %d is not noticed\n", (int)planted);
        }
        passed = noticed, failed = missed;
    } else {
        kill_at_every_call(base, &prepared);
        fail_every_call(base, &prepared);
        if (taken < all)
            printf("a sample: %ld of %ld kills and failures, seed %llu; all of them: scripts/test --deep faults\n", taken, all,
                   (unsigned long long)seed);
    }
    remove_tree(top);
    free(view);
    free(view_folder);
    free(root);
    free(base);
    free(top);
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0 || passed == 0;
}

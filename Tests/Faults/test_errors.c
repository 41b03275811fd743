/*
 * System calls fail.
 *
 * Each workload is run again and again, and one call after another fails: once, or from then on. The result is an error with a message, or
 * no error. Refused versions do not exist, and as soon as the cause is gone the same handle does what it refused (client.h). Afterwards
 * another process finds everything that was acknowledged. A call that was interrupted, or that did a part of its work, causes no error at
 * all.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "check.h"
#include "files.h"
#include "harness.h"
#include "shim.h"

enum { FAULTS, ERRORS, UNKNOWN, REPEATED, CHECKS };

enum { NAMING = CALL_CREATE | CALL_MKDIR | CALL_RENAME | CALL_UNLINK };
struct kind {
    const char *name;
    enum fault_action action;
    unsigned calls;
    int error;
    long times;
    int part;
    int is_harmless; /* for the library; SQLite gives up at some */
};
static const struct kind kinds[] = {
    {"the disk is full", FAULT_FAIL, CALL_CREATE | CALL_MKDIR | CALL_RENAME | CALL_WRITE | CALL_TRUNCATE | CALL_SYNC, ENOSPC, 1, 0, 0},
    {"the disk stays full", FAULT_FAIL, CALL_CREATE | CALL_MKDIR | CALL_RENAME | CALL_WRITE | CALL_TRUNCATE, ENOSPC, LONG_MAX, 0, 0},
    {"the medium fails", FAULT_FAIL, CALLS_ALL & ~CALL_MAP, EIO, 1, 0, 0},
    {"the medium fails for good", FAULT_FAIL, CALL_READ | CALL_WRITE | CALL_SYNC | CALL_LIST | CALL_LOOK, EIO, LONG_MAX, 0, 0},
    {"too many open files", FAULT_FAIL, CALL_OPEN | CALL_CREATE | CALL_LIST, EMFILE, 1, 0, 0},
    {"too many open files for long", FAULT_FAIL, CALL_OPEN | CALL_CREATE | CALL_LIST, EMFILE, LONG_MAX, 0, 0},
    {"not permitted", FAULT_FAIL, NAMING | CALL_OPEN | CALL_LIST, EACCES, 1, 0, 0},
    {"the medium becomes read-only", FAULT_FAIL, NAMING | CALL_WRITE | CALL_TRUNCATE, EROFS, LONG_MAX, 0, 0},
    {"no memory to map", FAULT_FAIL, CALL_MAP, ENOMEM, 1, 0, 0},
    {"no locks", FAULT_FAIL, CALL_LOCK, ENOLCK, 1, 0, 0},
    {"interrupted", FAULT_FAIL, CALL_OPEN | CALL_CREATE | CALL_READ | CALL_WRITE | CALL_SYNC | CALL_LOCK | CALL_TRUNCATE, EINTR, 1, 0, 1},
    {"a part of it", FAULT_SHORT, CALL_READ | CALL_WRITE, 0, 1, 0, 1},
    {"a small part of each", FAULT_SHORT, CALL_READ | CALL_WRITE, 0, LONG_MAX, 1021, 1},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

struct trial {
    const struct unit *unit;
    struct work work;
    char *base;
    struct book *prepared;
};
static void prepare(void *payload) {
    struct trial *trial = payload;
    if (trial->unit->workload->prepare) trial->unit->workload->prepare(&trial->work);
}
static void run(void *payload) {
    struct trial *trial = payload;
    trial->unit->workload->run(&trial->work);
}

/* Runs it with the fault at one call. Returns how often the fault happened. */
static long run_with(struct trial *trial, const struct kind *kind, long at) {
    int status;
    remove_tree(trial->work.root);
    copy_tree(trial->base, trial->work.root);
    memcpy(book, trial->prepared, book_size(trial->prepared));
    faults_watch(trial->work.root);
    if (kind) {
        faults_plan(kind->action, kind->calls, at);
        faults->error = kind->error;
        faults->times = kind->times;
        faults->part = kind->part;
    }
    trial->work.expects_faults = kind && (!kind->is_harmless || trial->unit->storage != LLVS_STORAGE_FILE);
    status = run_in_child(run, trial, 120);
    faults_stop();
    if (status == -1) book_fail("the workload does not come to its end");
    else if (status != 0)
        book_fail("the workload ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return faults->fired;
}

static void add_up(void) {
    for (int i = 0; i < 128; i++) count(ERRORS, book->failed[i]);
    count(UNKNOWN, book->unknown_outcomes);
    count(REPEATED, book->repeated);
}

static int test(const struct unit *unit, const char *folder, uint64_t seed, char *note, size_t note_size, char *message,
                size_t message_size) {
    static struct book *prepared;
    struct trial trial = {unit, {NULL, unit->storage, unit->durability, 0}, path_of(folder, "base"), NULL};
    struct check check = {&trial.work, -1, 1};
    char *root = path_of(folder, "run");
    uint64_t random = seed;
    /* A different choice of calls for each unit. */
    for (const char *c = unit->name; *c; c++) random = random * 31 + (uint64_t)*c;
    long counts[CALL_KINDS], tried = 0, all = 0;
    if (!prepared) prepared = book_make();
    trial.prepared = prepared;
    remove_tree(trial.base);
    make_folder(trial.base);
    memset(book, 0, offsetof(struct book, asked));
    faults_watch(trial.base);
    trial.work.root = trial.base;
    if (run_in_child(prepare, &trial, 300) != 0) book_fail("cannot prepare");
    memcpy(prepared, book, book_size(book));
    trial.work.root = root;
    run_with(&trial, NULL, 0);
    memcpy(counts, faults->count, sizeof counts);
    for (int k = 0; k < KINDS && !book->failure[0]; k++) {
        const struct kind *kind = &kinds[k];
        long calls = 0, step, most = is_thorough ? LONG_MAX : prepared->count > 500 ? 3 : unit->workload->has_large_values ? 6 : 8;
        for (int i = 0; i < CALL_KINDS; i++) if (kind->calls >> i & 1) calls += counts[i];
        if (calls == 0) continue;
        /* Take at most `most` calls, spread over all of them. */
        step = calls > most ? calls / most : 1;
        all += kind->action == FAULT_SHORT && kind->times > 1 ? 1 : (calls + step - 1) / step;
        if (is_short) {
            /* A long history takes time. So each workload with a long history tries only a part of the kinds of faults. */
            int is_long = prepared->count > 500;
            if (is_long && (k + (unit->storage == LLVS_STORAGE_FILE) + (unit->workload->name[0] == 'o')) % 2) continue;
            most = is_long || kind->is_harmless || prepared->count > 60 ? 1 : 2;
            step = calls > most ? (calls + most - 1) / most : 1;
        }
        for (long at = 1 + (long)random_below(&random, (uint64_t)step); at <= calls && !book->failure[0]; at += step) {
            /* A fault may lead to fewer calls, or to other ones. */
            if (run_with(&trial, kind, at) > 0) count(FAULTS, 1);
            add_up();
            tried++;
            if (!book->failure[0]) check_store(&check), count(CHECKS, 1);
            if (book->failure[0])
                snprintf(message, message_size, "%s, %s from call %ld of %ld (%s of %s): %s", kind->name, kind->times == 1 ? "once" : "on",
                         at, calls, call_name(faults->fired_kind), faults->fired_path, book->failure);
            /* If all calls from the first on are affected, one run suffices. */
            if (kind->action == FAULT_SHORT && kind->times > 1) break;
        }
    }
    if (book->failure[0] && !message[0]) snprintf(message, message_size, "%s", book->failure);
    took(tried < all ? tried : all, all);
    snprintf(note, note_size, "%ld runs", tried);
    free(trial.base);
    free(root);
    return book->failure[0] != 0;
}

static int wants(const struct unit *unit) {
    return is_thorough || unit->durability == LLVS_DURABILITY_FULL || strcmp(unit->workload->name, "commit") == 0;
}

int main(int argc, char **argv) {
    static const struct planting plantings[] = {
        {GIVES_NO_REASON, "an error that says nothing", "commit, file, full"},
        {DOES_WHAT_IT_REFUSED, "a version that was refused and is there", "commit, file, full"},
        {DOES_WHAT_IT_REFUSED, "a version that was refused and is there", "commit, SQLite, full"},
        {LOSES_THE_LAST, "a version that is lost", "retrieve, file, full"},
        {SPOILS_A_BYTE, "a byte that is spoiled", "large values, file, full"},
        {TRAPS, "a process that traps at a fault", "create, file, full"},
        {LOOPS, "a process that loops at a fault", "create, file, full"},
        {NO_PLANT, NULL, NULL},
    };
    static const struct test errors = { "Failing calls",
                                        { "faults injected", "errors told", "of these unknown outcomes", "calls repeated",
                                          "stores looked at" },
                                        "runs with a fault",
                                        0,
                                        wants,
                                        test,
                                        plantings };
    return test_main(&errors, argc, argv);
}

/*
 * A process is killed at every call that changes something.
 *
 * Each workload is run again and again in a child. The first time it is killed before its first changing call, then before its second, and
 * so on until it completes. It is also killed after each call, and at four places within each write. Another process checks the store
 * afterwards. Everything that the killed process had acknowledged must exist, at either durability.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "files.h"
#include "harness.h"
#include "sample.h"
#include "shim.h"

enum { KILLS, ACKNOWLEDGED, CHECKS };

/* The short run uses one in EVERY of the calls that are alike. */
enum { EVERY = 40 };

struct trial {
    const struct unit *unit;
    struct work work;
    char *base; /* the prepared folder */
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

/* Runs the workload until it is killed. Returns 1 if it was, 0 if it completed, and a negative number otherwise. */
static int run_until_killed(struct trial *trial, enum fault_action action, unsigned kinds, long at, int part) {
    int status;
    remove_tree(trial->work.root);
    copy_tree(trial->base, trial->work.root);
    memcpy(book, trial->prepared, book_size(trial->prepared));
    faults_watch(trial->work.root);
    faults_plan(action, kinds, at);
    faults->part = part;
    status = run_in_child(run, trial, 120);
    faults_stop();
    if (status == 0 || book->failure[0]) return book->failure[0] ? -1 : 0;
    if (status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && faults->fired) return 1;
    book_fail("the workload ended with %d", status);
    return -1;
}

/* Runs the whole workload once more and traces its calls. */
static struct sample trace(struct trial *trial, unsigned kinds, uint64_t every, uint64_t seed) {
    remove_tree(trial->work.root);
    copy_tree(trial->base, trial->work.root);
    memcpy(book, trial->prepared, book_size(trial->prepared));
    faults_watch(trial->work.root);
    faults_trace(kinds);
    int status = run_in_child(run, trial, 120);
    faults_stop();
    if (status != 0 && !book->failure[0]) book_fail("the workload ended with %d", status);
    return sample_make(every, seed);
}

/* When the process is killed: before a call, after it, or at a place within a write. */
enum { BEFORE = -1, AFTER = WRITE_PARTS };

/* Whether a kill is in the run without samples. `is_long`: a database has many pages, and a long history takes time to check. */
static int is_in_whole_run(unsigned kind, long at, int part, int is_long, uint64_t seed) {
    if (part == BEFORE) return 1;
    if (part == AFTER ? kind == CALL_LOCK : kind != CALL_WRITE) return 0;
    return is_thorough || !is_long || part == (at + (long)seed) % (WRITE_PARTS + 1);
}
/* Returns whether a kill is in the short run. A write is killed at one place within it, other calls before or after them. `turn`: the
 * number of the call in the sample. */
static int is_in_short_run(unsigned kind, int part, long turn) {
    if (kind == CALL_WRITE) return part == turn % WRITE_PARTS || (part == AFTER && turn % 8 == 0);
    return part == (turn % 2 && kind != CALL_LOCK ? AFTER : BEFORE);
}

static int look(struct trial *trial) {
    struct check check = {&trial->work, -1, 1};
    for (int i = 0; i < book->count; i++) count(ACKNOWLEDGED, book->asked[i].acknowledged);
    count(CHECKS, 1);
    return check_store(&check);
}

static int test(const struct unit *unit, const char *folder, uint64_t seed, char *note, size_t note_size, char *message,
                size_t message_size) {
    static struct book *prepared;
    struct trial trial = {unit, {NULL, unit->storage, unit->durability, 0}, path_of(folder, "base"), NULL};
    char *root = path_of(folder, "run");
    unsigned kinds = CALLS_CHANGING | (unit->storage == LLVS_STORAGE_SQLITE ? CALL_LOCK : 0);
    long at = 0, kills = 0, all = 0, turn = (long)seed;
    int touched = unit->workload->must_touch == NULL || unit->storage != LLVS_STORAGE_FILE;
    const char *how = "";
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
    /* A long history takes time to check. */
    int is_long = unit->storage == LLVS_STORAGE_SQLITE || prepared->count > 500;
    long step = !is_thorough && unit->storage == LLVS_STORAGE_SQLITE && prepared->count > 500 ? 7 : 1;
    struct sample sample = trace(&trial, kinds, is_short ? EVERY : 1, seed);
    for (at = 1; at <= sample.count && !book->failure[0]; at++) {
        unsigned kind = sample.kinds[at];
        for (int part = BEFORE; part <= AFTER && !book->failure[0]; part++) {
            if (at % step != (long)seed % step || !is_in_whole_run(kind, at, part, is_long, seed)) continue;
            all++;
            if (is_short && (!sample.is_taken[at] || !is_in_short_run(kind, part, turn))) continue;
            how = part == BEFORE ? "before" : part == AFTER ? "after" : "within";
            int killed = run_until_killed(&trial,
                                          part == BEFORE  ? FAULT_KILL_BEFORE
                                          : part == AFTER ? FAULT_KILL_AFTER
                                                          : FAULT_KILL_WITHIN,
                                          kinds, at, part == BEFORE ? 0 : part);
            if (killed == 0) book_fail("the workload does not do the same again");
            if (killed < 0 || look(&trial)) break;
            kills++;
            if (!touched && faults->fired_kind == unit->workload->must_call)
                touched = strncmp(faults->fired_path, unit->workload->must_touch, strlen(unit->workload->must_touch)) == 0;
        }
        turn += sample.is_taken[at];
    }
    /* Without a kill it completes. */
    if (!book->failure[0]) how = "behind";
    if (!book->failure[0] && run_until_killed(&trial, FAULT_KILL_BEFORE, kinds, sample.count + 1, 0) == 0) look(&trial);
    if (!touched && !book->failure[0]) book_fail("the workload never touched %s", unit->workload->must_touch);
    count(KILLS, kills);
    took(kills, all);
    snprintf(note, note_size, "%ld calls, killed %ld times", sample.count, kills);
    sample_free(&sample);
    if (book->failure[0])
        snprintf(message, message_size, "%s call %ld (%s of %s): %s", how, at, call_name(faults->fired_kind), faults->fired_path,
                 book->failure);
    free(trial.base);
    free(root);
    return book->failure[0] != 0;
}

/* At `normal` a database does much the same. */
static int wants(const struct unit *unit) {
    return is_thorough || unit->storage == LLVS_STORAGE_FILE || unit->durability == LLVS_DURABILITY_FULL ||
           strcmp(unit->workload->name, "commit") == 0;
}

int main(int argc, char **argv) {
    static const struct planting plantings[] = {
        {ACKNOWLEDGES_EARLY, "a version that is acknowledged before it is written", "commit, file, full"},
        {ACKNOWLEDGES_EARLY, "a version that is acknowledged before it is written", "commit, SQLite, full"},
        {LOSES_THE_LAST, "a version that is lost", "merge, file, full"},
        {READS_SOMETHING_ELSE, "a version that reads as another", "large values, file, full"},
        {SPOILS_A_BYTE, "a byte that is spoiled", "commit, file, full"},
        {SPOILS_A_BYTE, "a byte that is spoiled", "commit, SQLite, full"},
        {NO_PLANT, NULL, NULL},
    };
    static const struct test crash = {
        "Killed at every call", { "processes killed", "acknowledged versions looked for", "stores looked at" }, "kills", 0, wants, test,
        plantings
    };
    return test_main(&crash, argc, argv);
}

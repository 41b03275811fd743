/*
 * A process killed at every call that changes something.
 *
 * Each workload is run again and again in a child. The first time it is killed before its first changing call, then before
 * its second, and so on until it comes to its end; and at each call within a write, at four places of it, and after the call. What
 * it leaves is looked at by another process. Whatever the killed one had acknowledged must be there, at either durability.
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
#include "shim.h"

enum { KILLS, ACKNOWLEDGED, CHECKS };

struct trial {
    const struct unit *unit;
    struct work work;
    char *base; /* what was prepared */
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

/* Runs the workload until it is killed; 1 when it was, 0 when it came to its end. Below 0: neither. */
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
    long at, calls = 0, kills = 0;
    int killed = 1, touched = unit->workload->must_touch == NULL || unit->storage != LLVS_STORAGE_FILE;
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
    /* To look through a long history takes its time. */
    long step = !is_thorough && unit->storage == LLVS_STORAGE_SQLITE && prepared->count > 500 ? 7 : 1;
    at = step > 1 ? (long)(seed % 7) : 0;
    while (killed == 1 && !book->failure[0]) {
        at += at ? step : 1;
        how = "before";
        killed = run_until_killed(&trial, FAULT_KILL_BEFORE, kinds, at, 0);
        if (killed < 0 || look(&trial) || !killed) break;
        kills++;
        calls = at;
        if (!touched && faults->fired_kind == unit->workload->must_call)
            touched = strncmp(faults->fired_path, unit->workload->must_touch, strlen(unit->workload->must_touch)) == 0;
        unsigned kind = faults->fired_kind;
        for (int part = 0; part <= WRITE_PARTS && killed == 1; part++) {
            int is_after = part == WRITE_PARTS;
            if (is_after ? kind == CALL_LOCK : kind != CALL_WRITE) continue;
            /* Pages of a database are many, and a long history takes its time: of each write one place. */
            if (!is_thorough && (unit->storage == LLVS_STORAGE_SQLITE || prepared->count > 500) &&
                part != (at + (long)seed) % (WRITE_PARTS + 1))
                continue;
            how = is_after ? "after" : "within";
            killed = run_until_killed(&trial, is_after ? FAULT_KILL_AFTER : FAULT_KILL_WITHIN, kinds, at, part);
            if (killed == 0) book_fail("the workload does not do the same again");
            if (killed < 0 || look(&trial)) break;
            kills++;
        }
    }
    if (!touched) book_fail("the workload never touched %s", unit->workload->must_touch);
    count(KILLS, kills);
    snprintf(note, note_size, "%ld calls, killed %ld times", calls, kills);
    if (book->failure[0])
        snprintf(message, message_size, "%s call %ld (%s of %s): %s", how, at, call_name(faults->fired_kind), faults->fired_path,
                 book->failure);
    free(trial.base);
    free(root);
    return book->failure[0] != 0;
}

/* A database does much the same at `normal`. */
static int wants(const struct unit *unit) {
    return is_thorough || unit->storage == LLVS_STORAGE_FILE || unit->durability == LLVS_DURABILITY_FULL ||
           strcmp(unit->workload->name, "commit") == 0;
}

int main(int argc, char **argv) {
    static const struct test crash = {
        "Killed at every call", { "processes killed", "acknowledged versions looked for", "stores looked at" }, 0, wants, test
    };
    return test_main(&crash, argc, argv);
}

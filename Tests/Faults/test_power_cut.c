/*
 * The power is cut.
 *
 * Each workload is run once and recorded. Then the disks are made that a power cut at some moment could have left (outcomes.h), and a
 * process checks each. At `full`, everything that had been acknowledged by that moment must exist; at `normal`, everything that exists must
 * be whole. Versions that were requested and not acknowledged can be made again.
 *
 * The same with one sync after another failing during the workload; with the process killed at one call after another, and another process
 * acknowledging a version before the cut; and with a disk that lies about syncs. In the last case versions must be missing, or the test
 * would notice nothing.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "check.h"
#include "harness.h"
#include "outcomes.h"

enum { OUTCOMES, RECORDINGS, CUTS, FAILED_SYNCS, KILLS, REPEATED };

/* The short run uses one in this many. */
enum { CUTS_EVERY = 6, SYNCS_EVERY = 5, KILLS_EVERY = 9 };

struct trial {
    const struct unit *unit;
    struct work work;
    char *base, *recorded, *disk;
    struct book *prepared, *after; /* the book as the recorded workload left it */
    uint64_t random;
    /* The outcomes checked so far, by digest. */
    uint64_t *seen;
    size_t seen_count, seen_room;
    long syncs;   /* of the workload without a failure */
    long calls;   /* recorded during that run */
    long moments; /* of the last recording */
    char what[160];
};

/* ---- Running and recording ---- */

static void prepare(void *payload) {
    struct trial *trial = payload;
    if (trial->unit->workload->prepare) trial->unit->workload->prepare(&trial->work);
}
static void run(void *payload) {
    struct trial *trial = payload;
    trial->unit->workload->run(&trial->work);
}
/* The work of another process, after the first one was killed. */
static void survive(void *payload) {
    struct trial *trial = payload;
    struct client client = client_open(&trial->work, "store", LLVS_DURABILITY_FULL);
    client_make(&client, "survivor", NULL, put("s", 91, 100), put("v", 92, trial->unit->workload->has_large_values ? (1 << 20) + 5 : 10),
                no_change);
    client_close(&client);
}

/* Begins a recording with the folder as it was prepared. */
static struct tree begin(struct trial *trial) {
    remove_tree(trial->recorded);
    copy_tree(trial->base, trial->recorded);
    memcpy(book, trial->prepared, book_size(trial->prepared));
    trial->work.root = trial->recorded;
    faults_watch(trial->recorded);
    faults->recording = 1;
    /* Read the tree with the present inodes of the files. */
    return read_tree(trial->recorded);
}

/* ---- Checking outcomes ---- */

static int is_new(struct trial *trial, uint64_t digest) {
    for (size_t i = 0; i < trial->seen_count; i++) if (trial->seen[i] == digest) return 0;
    if (trial->seen_count == trial->seen_room) {
        trial->seen_room = trial->seen_room ? trial->seen_room * 2 : 256;
        trial->seen = realloc(trial->seen, sizeof trial->seen[0] * trial->seen_room);
        if (!trial->seen) broken("out of memory");
    }
    trial->seen[trial->seen_count++] = digest;
    return 1;
}

/* Checks the outcome that was set, unless a later cut led to the same one. Returns 1 if something is wrong. */
static int look(struct trial *trial, struct script *script, long cut) {
    struct work work = trial->work;
    struct check check = {&work, cut, 0};
    if (!is_new(trial, script_digest(script))) return 0;
    remove_tree(trial->disk);
    script_write(script, trial->disk);
    work.root = trial->disk;
    work.expects_faults = 0;
    memcpy(book, trial->after, book_size(trial->after));
    check.goes_on = trial->seen_count % 8 == 1;
    count(OUTCOMES, 1);
    return check_store(&check);
}

struct plan {
    struct trial *trial;
    struct script *script;
    long cut;
    int lies;
    long budget; /* outcomes that may still be checked */
    size_t uncertain;
};

static int tried(struct plan *plan) {
    plan->budget--;
    return look(plan->trial, plan->script, plan->cut);
}
/* Clears the fates of all uncertain calls. */
static void reset(struct plan *plan) { plan->uncertain = script_cut(plan->script, plan->cut, plan->lies); }
static void first(struct plan *plan, size_t how_many) {
    reset(plan);
    for (size_t i = 0; i < how_many; i++) script_set(plan->script, i, FATE_ALL, 0);
}
static int chance(struct plan *plan, size_t wanted, size_t of) { return of <= wanted || random_below(&plan->trial->random, of) < wanted; }

/* Checks the possible outcomes of a cut, as many as the budget allows. Returns 1 if one of them is wrong. */
static int look_at_cut(struct plan *plan) {
    uint64_t *random = &plan->trial->random;
    size_t n, most = is_thorough ? 40 : is_short ? 4 : 10;
    first(plan, 0);
    n = plan->uncertain;
    if (tried(plan)) return 1;
    first(plan, n);
    if (tried(plan)) return 1;
    /* All writes as lengths without contents. */
    for (size_t i = 0; i < n; i++) if (script_is_write(plan->script, i)) script_set(plan->script, i, FATE_LENGTH, 0);
    if (tried(plan)) return 1;
    /* Every subset, if there are few calls. */
    if (n <= 5) for (size_t set = 1; set + 1 < (size_t)1 << n && plan->budget > 0; set++) {
        reset(plan);
        for (size_t i = 0; i < n; i++) script_set(plan->script, i, set >> i & 1 ? FATE_ALL : FATE_NONE, 0);
        if (tried(plan)) return 1;
    }
    for (size_t i = 0; i < n && plan->budget > 0; i++) {
        if (!chance(plan, most, n)) continue;
        /* The last calls missing, and the one before them torn. */
        if (n > 5) {
            first(plan, i);
            if (tried(plan)) return 1;
        }
        if (script_is_write(plan->script, i)) {
            first(plan, i);
            script_set(plan->script, i, FATE_LENGTH, 0);
            if (tried(plan)) return 1;
            script_set(plan->script, i, FATE_SECTORS, random_next(random));
            if (tried(plan)) return 1;
        }
        if (n <= 5) continue;
        /* All calls except one, and only that one. */
        first(plan, n);
        script_set(plan->script, i, FATE_NONE, 0);
        if (tried(plan)) return 1;
        reset(plan);
        script_set(plan->script, i, FATE_ALL, 0);
        if (tried(plan)) return 1;
    }
    for (int sample = 0; sample < (is_thorough ? 25 : is_short ? 3 : 6) && n > 0 && plan->budget > 0; sample++) {
        reset(plan);
        for (size_t i = 0; i < n; i++) {
            uint64_t die = random_below(random, 8);
            script_set(plan->script, i,
                       die < 4   ? FATE_ALL
                       : die < 6 ? FATE_NONE
                       : die < 7 ? FATE_LENGTH
                                 : FATE_SECTORS,
                       random_next(random));
        }
        if (tried(plan)) return 1;
    }
    return 0;
}

/* A cut reveals something new before a sync, just after a version was acknowledged, and at the end. */
static int is_telling(const struct trial *trial, long cut) {
    if (cut == faults->op_count) return 1;
    if (faults->ops[cut].kind == OP_SYNC || faults->ops[cut].kind == OP_SYNC_ALL) return 1;
    for (int i = 0; i < trial->after->count; i++) if (trial->after->asked[i].durable_at - 1 == cut) return 1;
    return 0;
}

/* Checks the cuts from `earliest` on, the last one first, since what must exist only grows. Returns 1 if an outcome is wrong. */
static int look_at_recording(struct trial *trial, const struct tree *base, long earliest, long budget, int lies) {
    struct plan plan = {trial, script_make(base), 0, lies, 0, 0};
    long cuts = 0, left = 0, all = 0, met = 0;
    /* The short run uses the last cut, and one in this many of the others. A lying disk is checked at every cut. */
    long every = is_short && !lies ? CUTS_EVERY * (1 + (trial->prepared->count > 500)) : 1;
    long phase = (long)random_below(&trial->random, (uint64_t)every);
    int is_bad = 0;
    memcpy(trial->after, book, book_size(book));
    trial->seen_count = 0;
    for (long cut = earliest; cut <= faults->op_count; cut++) all += is_telling(trial, cut);
    left = (all + every - 1) / every;
    trial->moments = all;
    for (long cut = faults->op_count; cut >= earliest && !is_bad; cut--) {
        if (!is_telling(trial, cut) || (met++ > 0 && met % every != phase)) continue;
        plan.cut = cut;
        plan.budget = budget / left > 5 ? budget / left : 5;
        cuts++;
        if (look_at_cut(&plan)) {
            is_bad = 1;
            snprintf(trial->what + strlen(trial->what), sizeof trial->what - strlen(trial->what), "cut after call %ld of %ld", cut,
                     faults->op_count);
        }
    }
    if (!lies) count(CUTS, cuts), took(cuts, all);
    script_free(plan.script);
    return is_bad;
}

/* ---- The variants ---- */

static int runs_whole(struct trial *trial) {
    int status = run_in_child(run, trial, 300);
    faults_stop();
    faults->recording = 0;
    if (status != 0) book_fail("the workload ended with %d", status);
    return !book->failure[0];
}

static int plain(struct trial *trial, long budget) {
    struct tree base = begin(trial);
    int is_bad = !runs_whole(trial);
    trial->syncs = 0;
    trial->calls = faults->op_count > 0 ? faults->op_count : 1;
    for (long i = 0; i < faults->op_count; i++) trial->syncs += faults->ops[i].kind == OP_SYNC || faults->ops[i].kind == OP_SYNC_ALL;
    is_bad = is_bad || look_at_recording(trial, &base, 0, budget, 0);
    count(RECORDINGS, 1);
    free_tree(&base);
    return is_bad;
}

/* On a lying disk versions must be missing. */
static int on_a_lying_disk(struct trial *trial, int lies, long budget) {
    struct tree base = begin(trial);
    int is_noticed = runs_whole(trial) && look_at_recording(trial, &base, 0, budget, lies);
    free_tree(&base);
    trial->what[0] = book->failure[0] = 0;
    if (!is_noticed) book_fail("syncs of %s do nothing, and nothing is missed", lies == LIES_OF_FILES ? "files" : "folders");
    return !is_noticed;
}

static int with_failed_syncs(struct trial *trial, long budget) {
    for (long at = 1;; at++) {
        struct tree base;
        int is_bad;
        /* After each failed sync, power can be cut at about as many moments as in the whole recording. */
        if (is_short && at > 1 && at % SYNCS_EVERY != 0) {
            if (at > trial->syncs) break;
            took(0, trial->moments);
            continue;
        }
        base = begin(trial);
        faults_plan(FAULT_FAIL, CALL_SYNC, at);
        faults->error = 5; /* EIO */
        trial->work.expects_faults = 1;
        snprintf(trial->what, sizeof trial->what, "sync %ld fails, ", at);
        is_bad = !runs_whole(trial);
        if (!is_bad && !faults->fired) {
            free_tree(&base);
            break;
        }
        count(FAILED_SYNCS, 1);
        count(RECORDINGS, 1);
        count(REPEATED, book->repeated);
        is_bad = is_bad || look_at_recording(trial, &base, 0, budget, 0);
        free_tree(&base);
        if (is_bad) return 1;
    }
    trial->work.expects_faults = 0;
    trial->what[0] = 0;
    return 0;
}

static int after_a_kill(struct trial *trial, long budget) {
    /* A database makes many calls, which are much alike. */
    long step = trial->unit->storage == LLVS_STORAGE_FILE ? 1 : is_thorough ? 5 : 11;
    if (is_short) step *= KILLS_EVERY;
    /* At least one. */
    for (long at = 1 + (long)random_below(&trial->random, (uint64_t)(step < trial->calls ? step : trial->calls));; at += step) {
        struct tree base = begin(trial);
        int status, is_bad = 0;
        faults_plan(FAULT_KILL_BEFORE, CALLS_CHANGING, at);
        snprintf(trial->what, sizeof trial->what, "killed before call %ld, ", at);
        status = run_in_child(run, trial, 300);
        faults_stop();
        if (status == 0) {
            free_tree(&base);
            break;
        }
        long killed_at = faults->op_count;
        count(KILLS, 1);
        count(RECORDINGS, 1);
        if (run_in_child(survive, trial, 300) != 0) book_fail("the other process did not end well");
        faults->recording = 0;
        is_bad = book->failure[0] || look_at_recording(trial, &base, killed_at, budget, 0);
        /* Kills that a short run leaves out would have about as many cuts each. */
        if (is_short) took(0, (KILLS_EVERY - 1) * trial->moments);
        free_tree(&base);
        if (is_bad) return 1;
    }
    trial->what[0] = 0;
    return 0;
}

/* ---- */

static int wants(const struct unit *unit) { return unit->workload->for_power_cuts; }

static int test(const struct unit *unit, const char *folder, uint64_t seed, char *note, size_t note_size, char *message,
                size_t message_size) {
    static struct book *prepared, *after;
    struct trial trial;
    long before = totals->count[OUTCOMES];
    int is_full = unit->durability == LLVS_DURABILITY_FULL, is_file = unit->storage == LLVS_STORAGE_FILE, is_bad;
    memset(&trial, 0, sizeof trial);
    if (!prepared) prepared = book_make(), after = book_make();
    trial.unit = unit;
    trial.prepared = prepared, trial.after = after;
    trial.work.storage = unit->storage;
    trial.work.durability = unit->durability;
    trial.base = path_of(folder, "base"), trial.recorded = path_of(folder, "recorded"), trial.disk = path_of(folder, "disk");
    trial.random = seed;
    remove_tree(trial.base);
    make_folder(trial.base);
    memset(book, 0, offsetof(struct book, asked));
    faults_watch(trial.base);
    trial.work.root = trial.base;
    if (run_in_child(prepare, &trial, 300) != 0) book_fail("cannot prepare");
    memcpy(prepared, book, book_size(book));
    /* A long history, or large values, take time to check. */
    int is_slow = prepared->count > 500 || unit->workload->has_large_values;
    long budget = is_thorough ? 1500 : is_slow ? 60 : 160;
    long lying = budget;
    if (is_short) budget /= 4;
    is_bad = book->failure[0] || plain(&trial, budget);
    if (!is_bad && is_full && unit->workload->acknowledges) {
        is_bad = on_a_lying_disk(&trial, LIES_OF_FILES, lying);
        if (!is_bad && is_file) is_bad = on_a_lying_disk(&trial, LIES_OF_FOLDERS, lying);
        if (!is_bad) is_bad = with_failed_syncs(&trial, is_thorough ? 150 : is_slow || is_short ? 10 : 30);
    }
    if (!is_bad && unit->workload->for_kills_and_cuts) is_bad = after_a_kill(&trial, is_thorough ? 60 : is_short ? 8 : 16);
    snprintf(note, note_size, "%ld outcomes", totals->count[OUTCOMES] - before);
    if (is_bad) snprintf(message, message_size, "%s: %s", trial.what, book->failure);
    free(trial.base);
    free(trial.recorded);
    free(trial.disk);
    free(trial.seen);
    return is_bad;
}

int main(int argc, char **argv) {
    static const struct test power_cut = { "Power cut",
                                           { "outcomes looked at", "recordings", "cuts", "syncs failed", "kills before the cut",
                                             "versions made again" },
                                           "moments",
                                           1,
                                           wants,
                                           test,
                                           NULL };
    return test_main(&power_cut, argc, argv);
}

/*
 * Synchronized folders.
 *
 * Two real Syncthings synchronize two folders. Each folder has a store, to which processes of its own write: they commit, read, merge,
 * compact, close and open, and some of them are killed. When all have stopped, both folders become equal. Then each is one store with both
 * histories, every version is whole and as it was acknowledged, and no file of a store was written differently on both sides.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../C/child.h"
#include "../../Faults/files.h"
#include "../../Faults/random.h"
#include "../run.h"
#include "syncthing.h"

/* How many seconds pass without a change before the test gives up on folders that differ. */
enum { ROUNDS = 25, OPERATIONS = 12, UNCHANGED_SECONDS = 600 };

static void sleep_for(double seconds) {
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

/* ---- Writing ---- */

/* Starts a process that does a little work again and again, so that the other side receives it in many pieces. */
static pid_t start_writer(const struct place *place, int number, uint32_t base, uint64_t seed, int rounds) {
    struct worker worker = {place, number, NULL, 1, base, seed * 1000003u + (uint64_t)number, 0};
    llvs_error *error;
    pid_t child = fork();
    if (child < 0) broken("cannot fork");
    if (child != 0) return child;
    worker.store = worker_open(place, 0);
    for (int round = 0; round < rounds && worker.store && !ledger_has_failed(); round++) {
        worker.operations = OPERATIONS;
        worker_run(&worker);
        sleep_for(0.2);
    }
    if (worker.store) succeeded("closing the store", llvs_store_close(worker.store, &error), &error);
    llvs_store_free(worker.store);
    _exit(0);
}

static void join_writer(pid_t writer, int is_killed) {
    int status;
    if (wait_for_child(writer, 300, &status, NULL) != writer) broken("cannot wait");
    if (is_killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) tally(KILLS, 1);
    else if (status != 0)
        ledger_fail("a process ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* Writes to both at once. On one side the process is killed in the middle, and another one replaces it. */
static void write_both(struct place places[2], int phase, const uint32_t bases[2], uint64_t seed, int rounds) {
    pid_t writers[2];
    int victim = phase % 2;
    for (int i = 0; i < 2; i++) writers[i] = start_writer(&places[i], phase * 4 + i * 2, bases[i], seed + (uint64_t)phase, rounds);
    sleep_for(0.1 * rounds);
    kill(writers[victim], SIGKILL);
    join_writer(writers[victim], 1);
    writers[victim] = start_writer(&places[victim], phase * 4 + victim * 2 + 1, bases[victim], seed + (uint64_t)phase, rounds / 2);
    for (int i = 0; i < 2; i++) join_writer(writers[i], 0);
}

/* ---- Equal folders ---- */

/* Whether a file belongs to one machine: files that Syncthing has open or uses itself, and derived files. */
static int is_of_no_account(const struct entry *entry) {
    return entry->is_folder || entry->path[0] == '.' || strstr(entry->path, "/.") || strncmp(entry->path, "store/cache/", 12) == 0;
}
static const struct entry *next_file(const struct tree *tree, size_t *at) {
    while (*at < tree->count) if (!is_of_no_account(&tree->entries[(*at)++])) return &tree->entries[*at - 1];
    return NULL;
}
static int compare_paths(const void *a, const void *b) { return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path); }

/* Returns whether both folders have equal files. `what` gets the first file that differs, and the number of files. */
static int are_alike(const struct syncthing pair[2], char *what, size_t size) {
    struct tree trees[2];
    size_t at[2] = {0, 0}, count = 0;
    int alike = 1;
    for (int i = 0; i < 2; i++) {
        trees[i] = read_tree(pair[i].folder);
        qsort(trees[i].entries, trees[i].count, sizeof *trees[i].entries, compare_paths);
    }
    for (; alike; count++) {
        const struct entry *a = next_file(&trees[0], &at[0]), *b = next_file(&trees[1], &at[1]);
        if (!a && !b) break;
        alike = a && b && strcmp(a->path, b->path) == 0 && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
        if (!alike)
            snprintf(what, size, "%s (%llu bytes) and %s (%llu bytes)", a ? a->path : "nothing", (unsigned long long)(a ? a->size : 0),
                     b ? b->path : "nothing", (unsigned long long)(b ? b->size : 0));
    }
    for (int i = 0; i < 2; i++) free_tree(&trees[i]);
    return alike && count > 0;
}

static void wait_until_in_step(struct syncthing pair[2]) {
    char what[2400] = "nothing there", before[2400] = "";
    int times = 0;
    for (int unchanged = 0; unchanged < UNCHANGED_SECONDS * 2 && !ledger_has_failed(); unchanged++) {
        times = are_alike(pair, what, sizeof what) ? times + 1 : 0;
        if (times == 4) return; /* changes on their way, for example removals, would have arrived */
        if (strcmp(what, before) != 0) unchanged = 0;
        memcpy(before, what, sizeof before);
        sleep_for(0.5);
        check_syncthings(pair);
    }
    ledger_fail("for %d s nothing changes, and the folders are not in step: %s", UNCHANGED_SECONDS, what);
}

/* Returns whether one entry begins with the bytes of the other. */
static int are_one_longer(const struct entry *a, const struct entry *b) {
    return memcmp(a->bytes, b->bytes, a->size < b->size ? a->size : b->size) == 0;
}

/*
 * If Syncthing checks at the wrong moment, it mistakes a file that it has just fetched for a change of this machine, and sets one of the
 * two aside. That matters only if two machines wrote different contents: a file set aside must be an earlier or later state of the file
 * with its name. (The name has 15 characters of a time and 7 of a machine: name.sync-conflict-20260101-000000-ABCDEFG.seg)
 */
static void check_conflicts(const struct syncthing *one) {
    static const char mark[] = ".sync-conflict-";
    enum { MARK_AND_STAMP = sizeof mark - 1 + 15 + 1 + 7 };
    struct tree tree = read_tree(one->folder);
    for (size_t at = 0;;) {
        const struct entry *entry = next_file(&tree, &at), *namesake = NULL;
        const char *found;
        char name[1200];
        if (!entry) break;
        tally(COPIES, 1);
        if (!(found = strstr(entry->path, mark))) continue;
        if (strlen(found) < MARK_AND_STAMP) broken("an unknown kind of name: %s", entry->path);
        snprintf(name, sizeof name, "%.*s%s", (int)(found - entry->path), entry->path, found + MARK_AND_STAMP);
        for (size_t i = 0; i < tree.count; i++) if (strcmp(tree.entries[i].path, name) == 0) namesake = &tree.entries[i];
        tally(CONFLICTS, 1);
        if (!namesake || !are_one_longer(entry, namesake)) ledger_fail("%s was written on both sides: %s", name, entry->path);
    }
    free_tree(&tree);
}

static uint64_t count_versions(const struct place *place) {
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_store *store = worker_open(place, 1);
    llvs_error *error;
    if (store) succeeded("asking for counts", llvs_store_statistics(store, NULL, &statistics, &error), &error);
    llvs_store_free(store);
    return statistics.versions;
}

static void check_that_versions_are_the_same(const struct place places[2]) {
    pid_t child = fork();
    if (child < 0) broken("cannot fork");
    if (child == 0) {
        uint64_t a = count_versions(&places[0]), b = count_versions(&places[1]);
        if (a != b)
            ledger_fail("there are %llu versions in one store, and %llu in the other", (unsigned long long)a, (unsigned long long)b);
        _exit(0);
    }
    join_writer(child, 0);
}

/* ---- The test ---- */

static void run(const struct trial *trial, const char *folder, uint64_t seed, double scale) {
    static const char *const names[2][2] = {{"home-a", "a"}, {"home-b", "b"}};
    struct syncthing pair[2] = {{0}};
    struct place places[2];
    uint64_t random = seed;
    uint32_t bases[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        pair[i].home = path_of(folder, names[i][0]);
        pair[i].folder = path_of(folder, names[i][1]);
        struct place place = { path_of(pair[i].folder, "store"), LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL, *(const int *)trial->what,
                               (uint32_t)i + 1 };
        places[i] = place;
    }
    start_syncthings(pair);
    for (int phase = 0; phase < 2 && !ledger_has_failed(); phase++) {
        write_both(places, phase, bases, seed, (int)scaled(ROUNDS, scale));
        wait_until_in_step(pair);
        /* Both sides build on the versions that both have now. */
        for (uint32_t i = 0; i < ledger->acknowledged; i++) ledger->entries[ledger->order[i]].world = 0;
        for (int i = 0; i < 2; i++) bases[i] = ledger_pick(&random, 0);
    }
    stop_syncthings(pair);
    for (int i = 0; i < 2; i++) check_conflicts(&pair[i]);
    ledger->is_united = 1;
    if (!ledger_has_failed()) check_that_versions_are_the_same(places);
    for (int i = 0; i < 2; i++) {
        if (!ledger_has_failed()) judge_in_child(&places[i], JUDGE_WHOLE, 0);
        free(pair[i].home);
        free(pair[i].folder);
        free((char *)places[i].path);
    }
}

static const int compactions[] = {KEEPS_SEGMENTS, FOLDS};
static const struct trial trials[] = {
    {"kept in step while both are written", &compactions[0]},
    {"kept in step while both are written and compacted", &compactions[1]},
};

int main(int argc, char **argv) {
    const char *missing = syncthing_is_missing();
    if (missing) {
        printf("skipped: %s\n", missing);
        return 77;
    }
    return run_trials("Kept in step", trials, (int)(sizeof trials / sizeof trials[0]), run, NULL, argc, argv);
}

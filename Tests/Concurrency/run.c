#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "run.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../C/child.h"
#include "../Faults/files.h"
#include "../Faults/random.h"

/* ---- Crews ---- */

enum { PROCESSES_MAX = 16, THREADS_MAX = 64 };
/* The processor time that each process may use. */
static unsigned long process_seconds = 600;

/* The share of the operations, large enough for all kinds of them to occur. */
#define PLANTED_SCALE 0.1

int crew_size(const struct crew *crew) { return (crew->processes + crew->kills) * crew->handles * crew->threads; }

static void *run_worker(void *payload) {
    worker_run(payload);
    return NULL;
}

/* One process: opens its handles, starts its threads, and closes. `number`: that of its first worker. */
static void run_process(const struct crew *crew, int number, long operations) {
    struct worker workers[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    int count = 0;
    llvs_error *error;
    for (int h = 0; h < crew->handles; h++) {
        llvs_store *store = worker_open(&crew->place, 0);
        for (int t = 0; t < crew->threads; t++, count++) {
            struct worker worker = { &crew->place,       number + count, store,
                                     crew->threads == 1, crew->base,     crew->seed * 1000003u + (uint64_t)(number + count),
                                     operations };
            workers[count] = worker;
        }
    }
    for (int i = 0; i < count; i++) if (pthread_create(&threads[i], NULL, run_worker, &workers[i]) != 0) broken("cannot start a thread");
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i += crew->threads) {
        llvs_store *store = workers[i].store;
        if (!store) continue;
        succeeded("closing the store", llvs_store_close(store, &error), &error);
        llvs_store_free(store);
    }
    _exit(0);
}

static pid_t start(const struct crew *crew, int number, long operations) {
    pid_t child = fork();
    if (child < 0) broken("cannot fork");
    if (child == 0) run_process(crew, number, operations);
    return child;
}

void pause_shortly(void) {
    struct timespec pause = {0, 200000};
    nanosleep(&pause, NULL);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void run_crew(const struct crew *crew, void (*meanwhile)(void *payload), void *payload) {
    pid_t processes[PROCESSES_MAX];
    struct child_watch watches[PROCESSES_MAX];
    double looked = now();
    int step = crew->handles * crew->threads, running = crew->processes, next = crew->first_number + crew->processes * step, killed = 0;
    long all = crew->operations * step * crew->processes, began = ledger->operations;
    uint64_t random = crew->seed;
    if (crew->processes > PROCESSES_MAX || step > THREADS_MAX || crew->first_number + crew_size(crew) > PRIVATE_KEYS)
        broken("too many workers");
    for (int i = 0; i < crew->processes; i++) processes[i] = start(crew, crew->first_number + i * step, crew->operations);
    memset(watches, 0, sizeof watches);
    while (running > 0) {
        int status;
        long done = __atomic_load_n(&ledger->operations, __ATOMIC_SEQ_CST) - began;
        if (killed < crew->kills && done > all * (killed + 1) / (crew->kills + 2)) {
            int victim = (int)random_below(&random, (uint64_t)crew->processes);
            if (processes[victim] && kill(processes[victim], SIGKILL) == 0 && waitpid(processes[victim], &status, 0) == processes[victim]) {
                if (WIFSIGNALED(status)) tally(KILLS, 1);
                /* Another process replaces it, and does the rest. */
                processes[victim] = start(crew, next, crew->operations * (crew->kills - killed) / (crew->kills + 1) + 1);
                memset(&watches[victim], 0, sizeof watches[victim]);
                next += step;
            }
            killed++;
        }
        for (int i = 0; i < crew->processes; i++) {
            if (!processes[i] || waitpid(processes[i], &status, WNOHANG) != processes[i]) continue;
            if (status != 0)
                ledger_fail("a process ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            processes[i] = 0;
            running--;
        }
        if (meanwhile) meanwhile(payload);
        else pause_shortly();
        if (now() - looked < 1) continue;
        /* Processes that loop or hang are ended. */
        for (int i = 0; i < crew->processes; i++) {
            enum child_fate fate;
            if (!processes[i]) continue;
            fate = child_look(&watches[i], processes[i], 1000, process_seconds, CHILD_IDLE_SECONDS);
            if (fate == CHILD_WORKS) continue;
            ledger_fail("a process %s", fate == CHILD_LOOPS ? "loops" : "hangs");
            kill(processes[i], SIGKILL);
        }
        looked = now();
    }
}

/* ---- Trials ---- */

static int is_scaled_down;
long scaled(long whole, double scale) {
    is_scaled_down |= scale < 1;
    return (double)whole * scale < 1 ? 1 : (long)((double)whole * scale);
}

static const char *const tally_names[TALLIES] = { "commits",
                                                  "reads",
                                                  "merges",
                                                  "reloads",
                                                  "handles opened again",
                                                  "compactions",
                                                  "segments folded",
                                                  "of these deleted",
                                                  "verifications",
                                                  "processes killed",
                                                  "files copied",
                                                  "put aside by a conflict",
                                                  "calls refused",
                                                  "versions looked at afterwards" };

/* Runs each defect in its trial. */
static int run_planted(const struct trial *trials, int count, trial_fn run, const struct planting *plantings, const char *only,
                       uint64_t seed, const char *folder, const char *program) {
    long passed = 0, failed = 0;
    process_seconds = 1;
    for (const struct planting *planting = plantings; planting && planting->name; planting++) {
        if (only && !strstr(planting->name, only)) continue;
        for (int i = 0; i < count; i++) {
            if (strcmp(trials[i].name, planting->trial) != 0) continue;
            remove_tree(folder);
            make_folder(folder);
            ledger_clear();
            planted = planting->plant;
            run(&trials[i], folder, seed, PLANTED_SCALE);
            planted = NO_PLANT;
            if (ledger_has_failed()) passed++;
            else failed++;
            printf("%s  %s, %s%s%s\n", ledger_has_failed() ? "ok    " : "FAILED", trials[i].name, planting->name,
                   ledger_has_failed() ? " is noticed: " : " is not noticed", ledger->failure);
            if (!ledger_has_failed())
                printf("        again: %s --planted --only '%s' --seed %llu\n", program, planting->name, (unsigned long long)seed);
            fflush(stdout);
        }
    }
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0 || passed == 0;
}

int run_trials(const char *title, const struct trial *trials, int count, trial_fn run, const struct planting *plantings, int argc,
               char **argv) {
    const char *only = NULL;
    uint64_t seed = 1, first_seed;
    double end = 0, scale = 1;
    long passed = 0, failed = 0, operations = 0, sums[TALLIES] = {0};
    int plants = 0;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--planted") == 0) plants = 1, i--;
        else if (value && strcmp(argv[i], "--only") == 0) only = value;
        else if (value && strcmp(argv[i], "--seed") == 0) seed = strtoull(value, NULL, 10);
        else if (value && strcmp(argv[i], "--scale") == 0) scale = atof(value);
        else if (value && strcmp(argv[i], "--minutes") == 0) end = now() + atof(value) * 60;
        else
            broken("usage: %s [--only <part of a name>] [--seed <number>] [--scale <number>] [--minutes <number>] [--planted]", argv[0]);
    }
    first_seed = seed;
    char *root = new_root("concurrency");
    ledger_make();
    if (plants) {
        char *folder = path_of(root, "trial");
        int status = run_planted(trials, count, run, plantings, only, seed, folder, argv[0]);
        remove_tree(root);
        free(folder);
        free(root);
        return status;
    }
    printf("%s: %d units, seed %llu\n", title, count, (unsigned long long)seed);
    do {
        for (int i = 0; i < count; i++) {
            double began = now();
            if (only && !strstr(trials[i].name, only)) continue;
            if (end > 0 && began >= end && passed + failed > 0) break;
            char *folder = path_of(root, "trial");
            remove_tree(folder);
            make_folder(folder);
            ledger_clear();
            run(&trials[i], folder, seed, scale);
            free(folder);
            if (ledger_has_failed()) failed++;
            else passed++;
            printf("%s  %-44s %5.1f s  %ld operations\n", ledger_has_failed() ? "FAILED" : "ok    ", trials[i].name, now() - began,
                   ledger->operations);
            if (ledger_has_failed())
                printf("        %s\n        again: %s --only '%s' --seed %llu --scale %g\n", ledger->failure, argv[0], trials[i].name,
                       (unsigned long long)seed, scale);
            fflush(stdout);
            operations += ledger->operations;
            for (int t = 0; t < TALLIES; t++) sums[t] += ledger->tallies[t];
        }
        seed++;
    } while (end > 0 && now() < end);
    remove_tree(root);
    free(root);
    if (is_scaled_down)
        printf("a sample: %g of the operations of each unit, seed %llu; all of them: scripts/test --deep concurrency\n", scale,
               (unsigned long long)first_seed);
    printf("operations: %ld", operations);
    for (int t = 0; t < TALLIES; t++) if (sums[t]) printf(", %s: %ld", tally_names[t], sums[t]);
    printf("\n%ld passed, %ld failed\n", passed, failed);
    return failed > 0 || passed == 0;
}

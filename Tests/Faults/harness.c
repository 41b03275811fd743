#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "shim.h"

int is_thorough, is_short;
struct totals *totals;
void count(int total, long by) { __atomic_add_fetch(&totals->count[total], by, __ATOMIC_RELAXED); }

void took(long some, long of) {
    __atomic_add_fetch(&totals->taken, some, __ATOMIC_RELAXED);
    __atomic_add_fetch(&totals->all, of, __ATOMIC_RELAXED);
}

static void make_name(struct unit *unit) {
    snprintf(unit->name, sizeof unit->name, "%s, %s, %s", unit->workload->name, unit->storage == LLVS_STORAGE_SQLITE ? "SQLite" : "file",
             unit->durability == LLVS_DURABILITY_FULL ? "full" : "normal");
}

static struct unit *units_of(const struct test *test, const struct options *options, int *unit_count) {
    struct unit *units = calloc((size_t)workload_count * 4, sizeof *units);
    *unit_count = 0;
    for (int w = 0; w < workload_count; w++) {
        for (int variant = 0; variant < 4; variant++) {
            struct unit unit = { &workloads[w], variant & 1 ? LLVS_STORAGE_SQLITE : LLVS_STORAGE_FILE,
                                 variant & 2 ? LLVS_DURABILITY_NORMAL : LLVS_DURABILITY_FULL, "" };
            if (!(variant & 1 ? unit.workload->on_sqlite : unit.workload->on_file)) continue;
            make_name(&unit);
            if ((options->only && !strstr(unit.name, options->only)) || (test->wants && !test->wants(&unit))) continue;
            units[(*unit_count)++] = unit;
        }
    }
    return units;
}

static void read_options(struct options *options, int argc, char **argv) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    memset(options, 0, sizeof *options);
    options->seed = 1;
    options->jobs = processors > 0 && processors < 64 ? (int)processors : 2;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--sample") == 0) { is_short = 1; continue; }
        if (strcmp(argv[i], "--planted") == 0) { options->planted = is_short = 1; continue; }
        if (value && strcmp(argv[i], "--only") == 0) options->only = value;
        else if (value && strcmp(argv[i], "--seed") == 0) options->seed = strtoull(value, NULL, 10);
        else if (value && strcmp(argv[i], "--minutes") == 0) options->minutes = atof(value);
        else if (value && strcmp(argv[i], "--jobs") == 0) options->jobs = atoi(value);
        else {
            fprintf(stderr,
                    "usage: %s [--sample] [--only <part of a name>] [--seed <number>] [--minutes <number>] [--jobs <number>] | "
                    "--planted\n",
                    argv[0]);
            exit(2);
        }
        i++;
    }
    if (options->jobs < 1) options->jobs = 1;
    is_thorough = options->minutes > 0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* The name by which the program was called. */
static const char *program;

/* One process of the test: runs units until there are no more, or the time is over. */
static void work(const struct test *test, const struct options *options, const struct unit *units, int unit_count, const char *root,
                 int number, double end) {
    char name[32], note[256], message[2400];
    snprintf(name, sizeof name, "worker-%d", number);
    char *folder = path_of(root, name);
    make_folder(folder);
    faults_make(test->recording);
    book = book_make();
    for (;;) {
        long taken = __atomic_fetch_add(&totals->units, 1, __ATOMIC_RELAXED);
        long round = taken / unit_count;
        const struct unit *unit = &units[taken % unit_count];
        uint64_t seed = options->seed + (uint64_t)round;
        double began = now();
        if (end > 0 ? began >= end : round > 0) break;
        note[0] = message[0] = 0;
        int is_failure = test->run(unit, folder, seed, note, sizeof note, message, sizeof message);
        __atomic_add_fetch(is_failure ? &totals->failed : &totals->passed, 1, __ATOMIC_RELAXED);
        printf("%s  %-38s %5.1f s  %s%s%s\n", is_failure ? "FAILED" : "ok    ", unit->name, now() - began, note,
               is_failure ? "\n        " : "", message);
        if (is_failure)
            printf("        again: %s%s --only '%s' --seed %llu%s\n", program, is_short ? " --sample" : "", unit->name,
                   (unsigned long long)seed, is_thorough ? " --minutes 1" : "");
        fflush(stdout);
    }
    free(folder);
}

/* Runs each defect in its unit, in a process of its own. */
static void run_planted(const struct test *test, const struct options *options, const char *root) {
    char *folder = path_of(root, "planted");
    for (const struct planting *planting = test->plantings; planting && planting->name; planting++) {
        struct options one = *options;
        char note[256] = "", message[2400] = "";
        int count, status;
        one.only = planting->unit;
        struct unit *units = units_of(test, &one, &count);
        if (count == 0) broken("nothing is called %s", planting->unit);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            planted = planting->plant;
            make_folder(folder);
            faults_make(test->recording);
            book = book_make();
            int is_noticed = test->run(&units[0], folder, options->seed, note, sizeof note, message, sizeof message);
            printf("%s  %s, %s%s%s\n", is_noticed ? "ok    " : "FAILED", units[0].name, planting->name,
                   is_noticed ? " is noticed: " : " is not noticed", message);
            if (!is_noticed) printf("        again: %s --planted --seed %llu\n", program, (unsigned long long)options->seed);
            remove_tree(folder);
            exit(!is_noticed);
        }
        if (child < 0 || waitpid(child, &status, 0) != child) broken("cannot wait");
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) totals->passed++;
        else totals->failed++;
        free(units);
    }
    free(folder);
}

int test_main(const struct test *test, int argc, char **argv) {
    struct options options;
    int unit_count, status, broke = 0;
    double end;
    program = argv[0];
    read_options(&options, argc, argv);
    totals = mmap(NULL, sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (totals == MAP_FAILED) broken("no memory");
    struct unit *units = units_of(test, &options, &unit_count);
    if (unit_count == 0) broken("nothing is called %s", options.only ? options.only : "so");
    char *root = new_root("faults");
    end = options.minutes > 0 ? now() + options.minutes * 60 : 0;
    if (options.planted) {
        run_planted(test, &options, root);
        remove_tree(root);
        printf("%ld passed, %ld failed\n", totals->passed, totals->failed);
        free(units);
        free(root);
        return totals->failed > 0 || totals->passed == 0;
    }
    printf("%s: %d units, seed %llu\n", test->title, unit_count, (unsigned long long)options.seed);
    fflush(stdout);
    for (int i = 0; i < options.jobs; i++) {
        if (fork() == 0) {
            work(test, &options, units, unit_count, root, i, end);
            exit(0);
        }
    }
    while (wait(&status) > 0 || errno == EINTR) broke |= status != 0;
    remove_tree(root);
    if (broke) {
        printf("FAILED  the test itself\n");
        totals->failed++;
    }
    if (totals->taken < totals->all)
        printf("a sample: %ld of about %ld %s, seed %llu; all of them: scripts/test --deep faults\n", totals->taken, totals->all,
               test->what, (unsigned long long)options.seed);
    for (int i = 0; i < TOTALS; i++) if (test->totals[i]) printf("%s%s: %ld", i ? ", " : "", test->totals[i], totals->count[i]);
    printf("\n%ld passed, %ld failed\n", totals->passed, totals->failed);
    free(units);
    free(root);
    return totals->failed > 0 || totals->passed == 0;
}

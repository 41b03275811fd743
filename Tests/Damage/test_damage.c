/*
 * Damages every byte of small stores, exchange folders and snapshots, one after another and in several ways, and compares what the library
 * makes of each with the truth. Each damage is judged in a process whose end, memory and time are watched.
 *
 *   test_damage [--only <part of a name>] [--seed <number>] [--every <number>] [--minutes <number>] [--jobs <number>]
 *               [--case <number> [--keep <new folder>]]
 *   test_damage --planted
 *
 * With --every: for each kind of damage the first and the last place of each file, and one in this many of the others, which the seed
 * chooses. With --minutes: random places, kinds and seeds, in large stores too, until the time is over. With --planted: the test plays the
 * faults of a broken library (judge.h), and fails unless each of them is noticed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "judge.h"
#include "../C/child.h"

/* A sanitizer reserves more address space than there is memory. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

enum kind { FLIP, ZERO, TRUNCATE, DUPLICATE, KINDS };
static const char *const kind_names[] = {"flipped", "zeroed", "truncated", "duplicated"};
enum { JOBS = 64, FEW = 8, LOOK_EVERY = 500 /* milliseconds */ };

/* The file that is damaged, and how. */
struct damage { size_t file; uint64_t offset; enum kind kind; uint64_t size; };

static struct shared {
    long next;     /* number of the next damage */
    long taken, all; /* damages in the sample, and all damages */
    long failures;
    long first_failure; /* the number of the damage */
    long running[JOBS]; /* numbers */
} *shared;

/* The most processor time for one damage, and the most time without activity, in seconds. Neither depends on the load of the machine. */
static unsigned long most_of_processor = 60, most_idle = CHILD_IDLE_SECONDS;

static struct {
    const char *only;
    uint64_t seed;
    uint64_t every;
    int planted;
    double minutes;
    int jobs;
    long one; /* only this damage */
    const char *keep; /* where to copy the damaged files before they are judged */
} options;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
static uint64_t random_next(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* ---- The damages ---- */

static int is_damaged(const struct subject *subject, const struct entry *entry) {
    return !entry->is_folder && entry->size > 0 && (!subject->damaged || strstr(entry->path, subject->damaged)) &&
           !strstr(entry->path, "-shm");
}
/* The n-th offset of a file that is tried; -1 if there are no more. */
static int64_t offset_at(const struct subject *subject, uint64_t size, uint64_t n) {
    uint64_t dense = subject->dense * 2 < size ? subject->dense : size / 2, middle;
    if (subject->stride == 1) return n < size ? (int64_t)n : -1;
    if (n < dense) return (int64_t)n;
    n -= dense;
    middle = (size - 2 * dense + subject->stride - 1) / subject->stride;
    if (n < middle) return (int64_t)(dense + n * subject->stride);
    n -= middle;
    return n < dense ? (int64_t)(size - dense + n) : -1;
}
static uint64_t offsets_in(const struct subject *subject, uint64_t size) {
    uint64_t dense = subject->dense * 2 < size ? subject->dense : size / 2;
    return subject->stride == 1 ? size : dense * 2 + (size - 2 * dense + subject->stride - 1) / subject->stride;
}
/* Whether a damage is in the sample: for each file and kind the first and the last place, and every n-th of the others, with another
 * offset for each kind. */
static int is_taken(uint64_t n, uint64_t count, enum kind kind) {
    return n == 0 || n + 1 == count || (n + 5 * (uint64_t)kind + options.seed) % options.every == 0;
}
/* Returns 1 if there is a damage of that number, 0 if there is none, and -1 if it is not in the sample. */
static int damage_at(const struct subject *subject, long number, struct damage *damage) {
    if (options.minutes > 0) {
        uint64_t random = options.seed * 1000003u + (uint64_t)number, files = 0, chosen;
        for (size_t i = 0; i < subject->tree.count; i++) files += is_damaged(subject, &subject->tree.entries[i]);
        if (files == 0) return 0;
        chosen = random_next(&random) % files;
        for (damage->file = 0; !is_damaged(subject, &subject->tree.entries[damage->file]) || chosen-- > 0;) damage->file++;
        damage->offset = random_next(&random) % subject->tree.entries[damage->file].size;
        damage->kind = (enum kind)(random_next(&random) % KINDS);
        damage->size = 1 + random_next(&random) % (random_next(&random) % 4 == 0 ? 5000 : 32);
        return 1;
    }
    uint64_t n = (uint64_t)(number / KINDS);
    damage->kind = (enum kind)(number % KINDS);
    for (damage->file = 0; damage->file < subject->tree.count; damage->file++) {
        const struct entry *entry = &subject->tree.entries[damage->file];
        uint64_t count;
        if (!is_damaged(subject, entry)) continue;
        count = offsets_in(subject, entry->size);
        if (n < count) {
            damage->offset = (uint64_t)offset_at(subject, entry->size, n);
            /* The size of a field, or of a few. */
            damage->size = damage->kind == FLIP ? 1 : (uint64_t[]){1, 4, 16, 64}[n % 4];
            return is_taken(n, count, damage->kind) ? 1 : -1;
        }
        n -= count;
    }
    return 0;
}

static void write_damaged(const char *path, const struct entry *entry, const struct damage *damage) {
    uint64_t size = damage->size, left = entry->size - damage->offset;
    uint8_t *bytes = malloc(entry->size + size + 1);
    if (!bytes) broken("out of memory");
    memcpy(bytes, entry->bytes, entry->size);
    switch (damage->kind) {
    case FLIP: bytes[damage->offset] ^= (uint8_t)(1u << ((damage->offset * 5 + damage->offset / 8) % 8)); size = entry->size; break;
    case ZERO: memset(bytes + damage->offset, 0, size < left ? size : left); size = entry->size; break;
    case TRUNCATE: size = damage->offset; break;
    default:
        if (size > left) size = left;
        memmove(bytes + damage->offset + size, bytes + damage->offset, left);
        size += entry->size;
    }
    write_file(path, bytes, size);
    free(bytes);
}
static void describe(const struct subject *subject, long number, char *text, size_t size) {
    struct damage damage;
    if (!damage_at(subject, number, &damage)) snprintf(text, size, "no damage");
    else
        snprintf(text, size, "%s, %llu bytes of %s from %llu on %s", subject->name, (unsigned long long)damage.size,
                 subject->tree.entries[damage.file].path, (unsigned long long)damage.offset, kind_names[damage.kind]);
}

/* ---- Processes that judge ---- */

static void lay_out(const struct subject *subject, const char *folder, const struct damage *damage) {
    remove_tree(folder);
    make_folder(folder);
    for (size_t i = 0; i < subject->tree.count; i++) {
        const struct entry *entry = &subject->tree.entries[i];
        char *path = path_of(folder, entry->path);
        if (i == damage->file) write_damaged(path, entry, damage);
        else if (entry->is_folder) make_folder(path);
        /* Rebuilt when it is needed. */
        else if (!strstr(entry->path, "-shm")) write_file(path, entry->bytes, entry->size);
        free(path);
    }
}
static void failed(const struct subject *subject, long number, const char *what) {
    char text[1024];
    long earlier = __atomic_fetch_add(&shared->failures, 1, __ATOMIC_RELAXED);
    if (earlier == 0) shared->first_failure = number;
    if (earlier >= FEW || options.planted) return;
    describe(subject, number, text, sizeof text);
    printf("FAILED  %s: %s\n       again: --only '%s' --seed %llu%s --case %ld\n", text, what, subject->name,
           (unsigned long long)options.seed, options.minutes > 0 ? " --minutes 1" : "", number);
    fflush(stdout);
}
static void work(const struct subject *subject, const char *root, int job, double end) {
    char name[32], message[2048];
    struct rlimit memory = {3ul << 30, 3ul << 30};
    snprintf(name, sizeof name, "job-%d", job);
    char *folder = path_of(root, name);
    if (!IS_SANITIZED) setrlimit(RLIMIT_AS, &memory);
    for (;;) {
        struct damage damage;
        long number = options.one >= 0 ? options.one : __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);
        int is_there = damage_at(subject, number, &damage);
        if ((end > 0 && now() > end) || !is_there || (options.planted && shared->failures > 0)) break;
        __atomic_add_fetch(&shared->all, 1, __ATOMIC_RELAXED);
        if (is_there < 0 && options.one < 0) continue;
        __atomic_add_fetch(&shared->taken, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&shared->running[job], number, __ATOMIC_SEQ_CST);
        lay_out(subject, folder, &damage);
        if (options.keep) copy_tree(folder, options.keep);
        /* Combines each kind of damage with each turn. */
        uint64_t turn = options.one >= 0 ? 0 : (uint64_t)number / KINDS + (uint64_t)number % KINDS;
        int earlier = damage.kind == TRUNCATE && strstr(subject->tree.entries[damage.file].path, "-wal") != NULL;
        if (judge(subject, folder, turn, earlier, message, sizeof message)) failed(subject, number, message);
        __atomic_store_n(&shared->running[job], -1, __ATOMIC_SEQ_CST);
        if (options.one >= 0) break;
    }
    remove_tree(folder);
    _exit(0);
}
static pid_t start(const struct subject *subject, const char *root, int job, double end) {
    shared->running[job] = -1;
    pid_t pid = fork();
    if (pid < 0) broken("cannot fork");
    if (pid == 0) work(subject, root, job, end);
    return pid;
}

/* If a process ends by a signal, loops or hangs, the damage that it was judging has failed. Another process continues. */
static void judge_all(const struct subject *subject, const char *root, double end) {
    pid_t pids[JOBS];
    struct child_watch watches[JOBS];
    long watched[JOBS]; /* the damage that each was judging when its watch began */
    int running = options.jobs;
    unsigned long passed = 0;
    shared->next = 0;
    for (int i = 0; i < options.jobs; i++) {
        watched[i] = -1;
        pids[i] = start(subject, root, i, end);
    }
    while (running > 0) {
        struct timespec pause = {0, 5000000};
        int looks = (passed += 5) >= LOOK_EVERY;
        nanosleep(&pause, NULL);
        for (int i = 0; i < options.jobs; i++) {
            enum child_fate fate = CHILD_WORKS;
            int status;
            char what[64];
            if (pids[i] == 0) continue;
            long number = __atomic_load_n(&shared->running[i], __ATOMIC_SEQ_CST);
            if (looks && number != watched[i]) memset(&watches[i], 0, sizeof watches[i]), watched[i] = number;
            if (looks && number >= 0) fate = child_look(&watches[i], pids[i], LOOK_EVERY, most_of_processor, most_idle);
            if (fate != CHILD_WORKS) {
                kill(pids[i], SIGKILL);
                waitpid(pids[i], &status, 0);
                if (fate == CHILD_LOOPS) snprintf(what, sizeof what, "used more than %lu seconds of the processor", most_of_processor);
                else snprintf(what, sizeof what, "did nothing for %lu seconds", most_idle);
            } else if (waitpid(pids[i], &status, WNOHANG) == pids[i]) {
                if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
                    pids[i] = 0;
                    running--;
                    continue;
                }
                number = shared->running[i];
                snprintf(what, sizeof what, WIFSIGNALED(status) ? "ended by signal %d" : "ended with %d",
                         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            } else {
                continue;
            }
            failed(subject, number, what);
            watched[i] = -1;
            pids[i] = options.one >= 0 ? 0 : start(subject, root, i, end);
            if (pids[i] == 0) running--;
        }
        if (looks) passed = 0;
    }
}

/* ---- The program ---- */

static void read_options(int argc, char **argv) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    options.seed = 1;
    options.every = 1;
    options.one = -1;
    options.jobs = processors > 0 && processors < JOBS ? (int)processors : 2;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--planted") == 0) options.planted = 1, i--;
        else if (value && strcmp(argv[i], "--only") == 0) options.only = value;
        else if (value && strcmp(argv[i], "--seed") == 0) options.seed = strtoull(value, NULL, 10);
        else if (value && strcmp(argv[i], "--every") == 0) options.every = strtoull(value, NULL, 10);
        else if (value && strcmp(argv[i], "--minutes") == 0) options.minutes = atof(value);
        else if (value && strcmp(argv[i], "--jobs") == 0) options.jobs = atoi(value);
        else if (value && strcmp(argv[i], "--case") == 0) options.one = atol(value);
        else if (value && strcmp(argv[i], "--keep") == 0) options.keep = value;
        else
            broken("usage: %s [--only <part of a name>] [--seed <number>] [--every <number>] [--minutes <number>] [--jobs <number>] "
                   "[--case <number> [--keep <new folder>]] | --planted",
                   argv[0]);
    }
    if (options.every < 1) options.every = 1;
    if (options.jobs < 1 || options.one >= 0) options.jobs = 1;
    if (options.jobs > JOBS) options.jobs = JOBS;
}

/* Runs in a process of its own, whose end releases everything. */
static int run_subject(struct subject *subject, uint64_t seed, double seconds) {
    int status;
    shared->failures = shared->taken = shared->all = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char *root = new_root("damage");
        subject_prepare(subject, root, seed);
        judge_all(subject, root, seconds > 0 ? now() + seconds : 0);
        remove_tree(root);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) broken("cannot wait");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The kinds of subjects, each with all faults that a broken library could show there. */
static int run_planted(void) {
    static const struct { const char *subject; unsigned plants; } all[] = {
        /* (A file store always opens.) */
        {"file store, closed", ~(1u << REFUSES_TO_OPEN)},
        {"SQLite store, closed", 1 << READS_WRONG_BYTES | 1 << TELLS_NOTHING | 1 << LOSES_A_VERSION | 1 << SALVAGES_TOO_LITTLE |
                                     1 << REFUSES_TO_OPEN},
        {"file store, caches", 1 << LOSES_A_VERSION},
        {"exchange folder", 1 << READS_WRONG_BYTES | 1 << TELLS_NOTHING | 1 << LOSES_A_VERSION},
        {"snapshot", 1 << TELLS_NOTHING | 1 << LOSES_A_VERSION},
    };
    int passed = 0, missed = 0;
    most_of_processor = most_idle = 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int s = 0; s < subject_count; s++) {
            if (strcmp(subjects[s].name, all[i].subject) != 0 || (options.only && !strstr(subjects[s].name, options.only))) continue;
            for (plant = NO_PLANT + 1; plant < PLANTS; plant++) {
                if (!(all[i].plants >> plant & 1) || (plant == EATS_MEMORY && IS_SANITIZED)) continue;
                int is_noticed = run_subject(&subjects[s], options.seed, 0) && shared->failures > 0;
                passed += is_noticed;
                missed += !is_noticed;
                printf("%s  %s: %s", is_noticed ? "ok    " : "FAILED", subjects[s].name, plant_names[plant]);
                if (is_noticed) printf(" (noticed at damage %ld)\n", shared->first_failure);
                else printf(" is not noticed by %ld damages\n       again: --planted --only '%s'\n", shared->taken, subjects[s].name);
            }
        }
    }
    printf("%d passed, %d failed\n", passed, missed);
    return missed > 0 || passed == 0;
}

int main(int argc, char **argv) {
    int passed = 0, failures = 0, chosen = 0;
    long taken = 0, all = 0;
    read_options(argc, argv);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    outcomes = mmap(NULL, sizeof *outcomes * OUTCOMES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || outcomes == MAP_FAILED) broken("no memory");
    for (int i = 0; i < subject_count; i++) {
        struct subject *subject = &subjects[i];
        subjects[i].is_large = subject->is_large && options.minutes <= 0;
        chosen += !subject->is_large && (!options.only || strstr(subject->name, options.only));
    }
    if (chosen == 0) broken("nothing is called %s", options.only ? options.only : "so");
    if (options.planted) return run_planted();
    printf("Damage: %d subjects, seed %llu\n", chosen, (unsigned long long)options.seed);
    for (int i = 0; i < subject_count; i++) {
        struct subject *subject = &subjects[i];
        long before[OUTCOMES];
        double began = now();
        if (subject->is_large || (options.only && !strstr(subject->name, options.only))) continue;
        memcpy(before, outcomes, sizeof before);
        int bad = !run_subject(subject, options.seed, options.minutes * 60 / chosen) || shared->failures > 0;
        passed += !bad;
        failures += bad;
        taken += shared->taken;
        all += shared->all;
        printf("%s  %-24s %5.1f s", bad ? "FAILED" : "ok    ", subject->name, now() - began);
        for (int o = 0; o < OUTCOMES; o++)
            if (outcomes[o] > before[o]) printf("%s %ld %s", o ? "," : " ", outcomes[o] - before[o], outcome_names[o]);
        if (shared->failures > 0) printf(" (%ld FAILED)", shared->failures);
        printf("\n");
        fflush(stdout);
    }
    if (taken < all)
        printf("a sample: %ld of %ld damages, one in %llu, seed %llu; all of them: scripts/test --deep damage\n", taken, all,
               (unsigned long long)options.every, (unsigned long long)options.seed);
    for (int o = 0; o < OUTCOMES; o++) printf("%s%s: %ld", o ? ", " : "", outcome_names[o], outcomes[o]);
    printf("\n%d passed, %d failed\n", passed, failures);
    return failures > 0 || passed == 0;
}

/*
 * Damages every byte of small stores, exchange folders and snapshots, one after another and in several ways, and judges what
 * the library makes of each against what is true. Each damage is judged in a process whose end, memory and time are watched.
 *
 *   test_damage [--only <part of a name>] [--seed <number>] [--minutes <number>] [--jobs <number>]
 *               [--case <number> [--keep <new folder>]]
 *
 * With --minutes: places, kinds and seeds at random, large stores too, until the time is over.
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

/* A sanitizer takes more of the address space than there is memory, for itself. */
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
enum { JOBS = 64, LONGEST = 60, FEW = 8 };

/* What is done to which file. */
struct damage { size_t file; uint64_t offset; enum kind kind; uint64_t size; };

static struct shared {
    long next;     /* number of the next damage */
    long failures;
    struct { long number; double began; } running[JOBS];
} *shared;
static struct {
    const char *only;
    uint64_t seed;
    double minutes;
    int jobs;
    long one; /* only this damage */
    const char *keep; /* where to put what was damaged, as it was before it was judged */
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

/* ---- Which damages there are ---- */

static int is_damaged(const struct subject *subject, const struct entry *entry) {
    return !entry->is_folder && entry->size > 0 && (!subject->damaged || strstr(entry->path, subject->damaged)) &&
           !strstr(entry->path, "-shm");
}
/* The n-th offset of a file that has its turn; -1 when there are no more. */
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
        uint64_t count = 0;
        int64_t offset;
        if (!is_damaged(subject, entry)) continue;
        offset = offset_at(subject, entry->size, n);
        if (offset >= 0) {
            damage->offset = (uint64_t)offset;
            /* As much as a field, or a few of them. */
            damage->size = damage->kind == FLIP ? 1 : (uint64_t[]){1, 4, 16, 64}[n % 4];
            return 1;
        }
        while (offset_at(subject, entry->size, count) >= 0) count++;
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
        /* Made anew by who needs it. */
        else if (!strstr(entry->path, "-shm")) write_file(path, entry->bytes, entry->size);
        free(path);
    }
}
static void failed(const struct subject *subject, long number, const char *what) {
    char text[1024];
    if (__atomic_fetch_add(&shared->failures, 1, __ATOMIC_RELAXED) >= FEW) return;
    describe(subject, number, text, sizeof text);
    printf("FAILED %s: %s\n       again: --only '%s' --seed %llu%s --case %ld\n", text, what, subject->name,
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
        if ((end > 0 && now() > end) || !damage_at(subject, number, &damage)) break;
        shared->running[job].began = now();
        __atomic_store_n(&shared->running[job].number, number, __ATOMIC_SEQ_CST);
        lay_out(subject, folder, &damage);
        if (options.keep) copy_tree(folder, options.keep);
        uint64_t turn = options.one >= 0 ? 0 : (uint64_t)number / KINDS + (uint64_t)number;
        int earlier = damage.kind == TRUNCATE && strstr(subject->tree.entries[damage.file].path, "-wal") != NULL;
        if (judge(subject, folder, turn, earlier, message, sizeof message)) failed(subject, number, message);
        __atomic_store_n(&shared->running[job].number, -1, __ATOMIC_SEQ_CST);
        if (options.one >= 0) break;
    }
    remove_tree(folder);
    _exit(0);
}
static pid_t start(const struct subject *subject, const char *root, int job, double end) {
    shared->running[job].number = -1;
    pid_t pid = fork();
    if (pid < 0) broken("cannot fork");
    if (pid == 0) work(subject, root, job, end);
    return pid;
}

/* A process that ends by a signal, or takes too long, failed at what it was judging; another goes on. */
static void judge_all(const struct subject *subject, const char *root, double end) {
    pid_t pids[JOBS];
    int running = options.jobs;
    shared->next = 0;
    for (int i = 0; i < options.jobs; i++) pids[i] = start(subject, root, i, end);
    while (running > 0) {
        struct timespec pause = {0, 20000000};
        nanosleep(&pause, NULL);
        for (int i = 0; i < options.jobs; i++) {
            int status;
            char what[64];
            if (pids[i] == 0) continue;
            long number = __atomic_load_n(&shared->running[i].number, __ATOMIC_SEQ_CST);
            if (number >= 0 && now() - shared->running[i].began > LONGEST) {
                kill(pids[i], SIGKILL);
                waitpid(pids[i], &status, 0);
                snprintf(what, sizeof what, "took more than %d seconds", (int)LONGEST);
            } else if (waitpid(pids[i], &status, WNOHANG) == pids[i]) {
                if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
                    pids[i] = 0;
                    running--;
                    continue;
                }
                number = shared->running[i].number;
                snprintf(what, sizeof what, WIFSIGNALED(status) ? "ended by signal %d" : "ended with %d",
                         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            } else {
                continue;
            }
            failed(subject, number, what);
            pids[i] = options.one >= 0 ? 0 : start(subject, root, i, end);
            if (pids[i] == 0) running--;
        }
    }
}

/* ---- The program ---- */

static void read_options(int argc, char **argv) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    options.seed = 1;
    options.one = -1;
    options.jobs = processors > 0 && processors < JOBS ? (int)processors : 2;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value && strcmp(argv[i], "--only") == 0) options.only = value;
        else if (value && strcmp(argv[i], "--seed") == 0) options.seed = strtoull(value, NULL, 10);
        else if (value && strcmp(argv[i], "--minutes") == 0) options.minutes = atof(value);
        else if (value && strcmp(argv[i], "--jobs") == 0) options.jobs = atoi(value);
        else if (value && strcmp(argv[i], "--case") == 0) options.one = atol(value);
        else if (value && strcmp(argv[i], "--keep") == 0) options.keep = value;
        else
            broken("usage: %s [--only <part of a name>] [--seed <number>] [--minutes <number>] [--jobs <number>] [--case <number> [--keep "
                   "<new folder>]]",
                   argv[0]);
    }
    if (options.jobs < 1 || options.one >= 0) options.jobs = 1;
    if (options.jobs > JOBS) options.jobs = JOBS;
}

/* In a process of its own, which gives back all that it took. */
static void run_subject(struct subject *subject, uint64_t seed, double seconds) {
    char root[256];
    const char *place = getenv("LLVS_FAULTS_DIR");
    if (place == NULL) place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".";
    snprintf(root, sizeof root, "%s/llvs-damage-XXXXXX", place);
    if (!mkdtemp(root)) broken("cannot make %s", root);
    subject_prepare(subject, root, seed);
    judge_all(subject, root, seconds > 0 ? now() + seconds : 0);
    remove_tree(root);
    _exit(0);
}

int main(int argc, char **argv) {
    int passed = 0, failures = 0, chosen = 0;
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
    printf("Damage: %d subjects, seed %llu\n", chosen, (unsigned long long)options.seed);
    for (int i = 0; i < subject_count; i++) {
        struct subject *subject = &subjects[i];
        long before[OUTCOMES];
        double began = now();
        int status;
        if (subject->is_large || (options.only && !strstr(subject->name, options.only))) continue;
        memcpy(before, outcomes, sizeof before);
        shared->failures = 0;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) run_subject(subject, options.seed, options.minutes * 60 / chosen);
        if (pid < 0 || waitpid(pid, &status, 0) != pid) broken("cannot wait");
        int bad = shared->failures > 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        passed += !bad;
        failures += bad;
        printf("%s %-24s %5.1f s", bad ? "FAILED" : "ok    ", subject->name, now() - began);
        for (int o = 0; o < OUTCOMES; o++)
            if (outcomes[o] > before[o]) printf("%s %ld %s", o ? "," : " ", outcomes[o] - before[o], outcome_names[o]);
        if (shared->failures > 0) printf(" (%ld FAILED)", shared->failures);
        printf("\n");
        fflush(stdout);
    }
    for (int o = 0; o < OUTCOMES; o++) printf("%s%s: %ld", o ? ", " : "", outcome_names[o], outcomes[o]);
    printf("\n%d passed, %d failed\n", passed, failures);
    return failures > 0 || passed == 0;
}

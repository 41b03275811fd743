/*
 * The current version of a coordinator, after its process was killed or its note was damaged.
 *
 * A coordinator saves numbers, one after another, and moves back in time in between. Its process is killed before, within and after every
 * call that changes something, and from outside at any moment. At the next opening the current version is the one acknowledged last, or the
 * one that was being made current. Then the two slots of the note are truncated, mixed and overwritten.
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "files.h"
#include "random.h"
#include "sample.h"
#include "shim.h"

/* Every STEPS_BACKth step moves back to the first version, whose number is 0. All others save the number of the step. */
enum { PREPARED = 3, STEPS = 7, STEPS_BACK = 4, SLOT_SIZE = 60, SLOT_DISTANCE = 512 };

/* The short run uses one in EVERY of the calls that are alike, and fewer random moments. */
enum { EVERY = 4, MOMENTS = 25, SHORT_MOMENTS = 5 };
static int is_short;
static uint64_t first_seed = 1;
static const char *program;
static long taken, all;
/* Faults of a broken coordinator. Each must be noticed when it is planted. */
static const enum plant plants_of_it[] = {ACKNOWLEDGES_EARLY, LOSES_THE_LAST};

struct shared {
    long asked, acknowledged; /* steps */
    llvs_version_id first;
    char failure[1024];
};
static struct shared *shared;
static long passed, failed;
static char *root;

static struct place {
    const char *name, *note;
    llvs_storage_kind storage;
    llvs_durability durability;
} places[] = {
    {"file, normal", "store/cache/coordinator-main.note", LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL},
    {"file, full", "store/cache/coordinator-main.note", LLVS_STORAGE_FILE, LLVS_DURABILITY_FULL},
    {"sqlite, normal", "store-coordinator-main.note", LLVS_STORAGE_SQLITE, LLVS_DURABILITY_NORMAL},
};
static const struct place *place;

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

static llvs_coordinator *open_it(void) {
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_store_options store = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator *coordinator = NULL;
    llvs_error *error;
    char *path = path_of(root, "store");
    store.storage = place->storage;
    store.durability = place->durability;
    options.store = &store;
    if (!works(llvs_coordinator_open(llvs_str(path), &options, &coordinator, &error), error)) coordinator = NULL;
    free(path);
    return coordinator;
}

static void close_it(llvs_coordinator *coordinator) {
    llvs_error *error;
    works(llvs_coordinator_close(coordinator, &error), error);
    llvs_coordinator_free(coordinator);
}

static int save(llvs_coordinator *coordinator, long number, llvs_version_id *version) {
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_error *error;
    char text[32];
    snprintf(text, sizeof text, "%ld", number);
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = llvs_str("number");
    change.data = llvs_str(text);
    return works(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, version, NULL, NULL, &error), error);
}

/* The number at the current version; -1 if there is none. */
static long number_of(llvs_coordinator *coordinator) {
    llvs_buffer data;
    llvs_error *error;
    long number = -1;
    if (!works(llvs_coordinator_value(coordinator, llvs_str("number"), &data, NULL, &error), error)) return -1;
    if (data.data) number = atol((const char *)data.data);
    llvs_buffer_dispose(&data);
    return number;
}

static long number_after(long step) { return step > PREPARED && step % STEPS_BACK == 0 ? 0 : step; }

static int go(llvs_coordinator *coordinator, long step) {
    llvs_error *error;
    int worked;
    shared->asked = step;
    if (planted == ACKNOWLEDGES_EARLY) shared->acknowledged = step;
    if (number_after(step) == step) worked = save(coordinator, step, NULL);
    else worked = works(llvs_coordinator_set_current_version(coordinator, llvs_id(&shared->first), &error), error);
    if (worked) shared->acknowledged = step;
    return worked;
}

/* ---- in children ---- */

static void prepare(void *payload) {
    llvs_coordinator *coordinator = open_it();
    (void)payload;
    if (!coordinator || !save(coordinator, 0, &shared->first)) return;
    for (long step = 1; step <= PREPARED; step++) go(coordinator, step);
    close_it(coordinator);
}

static void work(void *payload) {
    long last = *(long *)payload;
    llvs_coordinator *coordinator = open_it();
    for (long step = shared->acknowledged + 1; coordinator && step <= last && go(coordinator, step); step++) { }
    if (coordinator) close_it(coordinator);
}

/* Checks where the coordinator is, and that it continues from there. */
static void look(void *payload) {
    long first = ((long *)payload)[0], second = ((long *)payload)[1];
    llvs_version_id missing;
    llvs_error *error;
    llvs_coordinator *coordinator = open_it();
    if (!coordinator) return;
    long number = number_of(coordinator);
    if (planted == LOSES_THE_LAST) number--;
    if (number != first && number != second) fail("it is at %ld, after %ld was acknowledged", number, first);
    if (works(llvs_coordinator_missing_version(coordinator, &missing, &error), error) && missing.size)
        fail("a version is missing: %ld %ld", first, second);
    if (save(coordinator, 1000, NULL) && number_of(coordinator) != 1000)
        fail("a save after %ld was not current: %ld is", number, number_of(coordinator));
    close_it(coordinator);
    if (!(coordinator = open_it())) return;
    if (number_of(coordinator) != 1000) fail("a save after %ld was current, and after reopening %ld is", number, number_of(coordinator));
    close_it(coordinator);
}

/* ---- */

static int is_told(const char *doing, long at, int part) {
    if (!shared->failure[0]) {
        passed++;
        return 0;
    }
    if (planted) printf("ok      %s, %s is noticed: %s, call %ld: %s\n", place->name,
                        planted == ACKNOWLEDGES_EARLY ? "a step that is acknowledged before it is done" : "a step that is forgotten", doing,
                        at, shared->failure);
    else printf("FAILED  %s: %s, call %ld, part %d: %s\n        again: %s%s --seed %llu\n", place->name, doing, at, part, shared->failure,
                program, is_short ? " --sample" : "", (unsigned long long)first_seed);
    shared->failure[0] = 0;
    failed++;
    return 1;
}

static void look_for(long a, long b) {
    long numbers[2] = {a, b};
    int status = run_in_child(look, numbers, 120);
    if (status != 0) fail("looking ended with %ld%ld", status, 0);
}

static void begin(const char *base, const struct shared *prepared) {
    remove_tree(root);
    copy_tree(base, root);
    *shared = *prepared;
}

/* 1 if the process was killed, 0 if it completed. */
static int was_killed(int status) {
    if (status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return 1;
    if (status != 0) fail("the workload ended with %ld%ld", status, 0);
    return 0;
}

static void kill_at_every_call(const char *base, const struct shared *prepared, uint64_t seed) {
    unsigned kinds = CALLS_CHANGING | CALL_LOCK;
    long last = STEPS, kills = 0, turn = (long)seed;
    begin(base, prepared);
    faults_watch(root);
    faults_trace(kinds);
    int status = run_in_child(work, &last, 120);
    faults_stop();
    if (status != 0) broken("the workload ended with %d", status);
    struct sample sample = sample_make(is_short ? EVERY : 1, seed);
    /* Beyond the last call it completes. */
    for (long at = 1; at <= sample.count + 1; at++) {
        int is_taken = !is_short || at > sample.count || sample.is_taken[at];
        turn += is_taken;
        for (int part = -1; part <= WRITE_PARTS; part++) {
            enum fault_action action = part < 0 ? FAULT_KILL_BEFORE : part < WRITE_PARTS ? FAULT_KILL_WITHIN : FAULT_KILL_AFTER;
            int is_write = at <= sample.count && sample.kinds[at] == CALL_WRITE;
            /* Only a write has parts. */
            if (at > sample.count ? part >= 0 : !is_write && part >= 0 && part < WRITE_PARTS) continue;
            all++;
            if (!is_taken || (is_short && at <= sample.count && part != (is_write ? (int)(turn % (WRITE_PARTS + 2)) - 1
                                                                      : turn % 2 ? -1
                                                                                 : WRITE_PARTS)))
                continue;
            taken++;
            begin(base, prepared);
            faults_watch(root);
            faults_plan(action, kinds, at);
            faults->part = part < 0 ? 0 : part;
            int killed = was_killed(run_in_child(work, &last, 120));
            faults_stop();
            if (killed != (at <= sample.count)) fail("the workload does not do the same again: call %ld of %ld", at, sample.count);
            look_for(number_after(shared->acknowledged), number_after(shared->asked));
            kills += killed;
            if (is_told("killed", at, part)) {
                sample_free(&sample);
                return;
            }
        }
    }
    printf("ok      %s: killed at %ld calls, %ld times\n", place->name, sample.count, kills);
    sample_free(&sample);
}

static void kill_at_any_moment(const char *base, const struct shared *prepared, uint64_t *random) {
    long last = 1000000;
    /* No file is watched, since a process that is killed there may hold the lock of the watch. */
    faults_watch("/none");
    int moments = is_short ? SHORT_MOMENTS : MOMENTS;
    for (int i = 0; i < moments; i++) {
        struct timespec pause = {0, (long)random_below(random, 30000000)};
        int status;
        begin(base, prepared);
        fflush(NULL);
        pid_t child = fork();
        if (child < 0) broken("cannot fork");
        if (child == 0) {
            work(&last);
            _exit(0);
        }
        while (__atomic_load_n(&shared->acknowledged, __ATOMIC_RELAXED) == PREPARED) usleep(200);
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0) if (errno != EINTR) broken("cannot wait");
        if (!was_killed(status)) fail("it was not killed: %ld%ld", status, 0);
        look_for(number_after(shared->acknowledged), number_after(shared->asked));
        if (is_told("killed at any moment", shared->acknowledged, 0)) return;
    }
    taken += moments;
    all += MOMENTS;
    printf("ok      %s: killed at %d moments\n", place->name, moments);
}

/* Replaces bytes of the note after `PREPARED` saves, and checks where the coordinator is. */
static int with_note(const char *base, const struct shared *prepared, const uint8_t *bytes, uint64_t size, long a, long b,
                     const char *doing, long at) {
    char *path;
    begin(base, prepared);
    path = path_of(root, place->note);
    if (size > 0) write_file(path, bytes, size);
    else if (unlink(path) != 0) broken("cannot remove %s", path);
    free(path);
    look_for(a, b);
    return is_told(doing, at, 0);
}

static struct entry *note_in(struct tree *tree) {
    for (size_t i = 0; i < tree->count; i++) if (strcmp(tree->entries[i].path, place->note) == 0) return &tree->entries[i];
    broken("there is no note at %s", place->note);
}

static void damage(const char *base, const struct shared *prepared) {
    struct tree tree = read_tree(base);
    struct entry *note = note_in(&tree);
    uint8_t *whole = note->bytes, bytes[SLOT_DISTANCE + SLOT_SIZE];
    if (note->size != sizeof bytes) broken("the note has %ld bytes", (long)note->size);
    /* The slot with the higher number, in its bytes 8 to 15, is the newer one: it says PREPARED, and the other one a smaller number. */
    int newer = whole[8] > whole[SLOT_DISTANCE + 8] ? 0 : SLOT_DISTANCE, older = SLOT_DISTANCE - newer;
    int told = 0;
    /* A slot is 24 bytes and the id. Torn: writing the newer one stopped halfway, over zeros. */
    for (int size = 0; size < SLOT_SIZE && !told; size += 4) {
        memcpy(bytes, whole, sizeof bytes);
        memset(bytes + newer + size, 0, (size_t)(SLOT_SIZE - size));
        told = with_note(base, prepared, bytes, sizeof bytes, PREPARED - 1, PREPARED - 1, "a torn slot", size);
    }
    for (int at = 0; at < SLOT_SIZE && !told; at += 5) {
        memcpy(bytes, whole, sizeof bytes);
        bytes[newer + at] ^= 0x41;
        told = with_note(base, prepared, bytes, sizeof bytes, PREPARED - 1, PREPARED - 1, "the newer slot damaged", at);
        memcpy(bytes, whole, sizeof bytes);
        bytes[older + at] ^= 0x41;
        told = told || with_note(base, prepared, bytes, sizeof bytes, PREPARED, PREPARED, "the older slot damaged", at);
        bytes[newer + at] ^= 0x41;
        /* Nothing is known, so it begins at the newest head. */
        told = told || with_note(base, prepared, bytes, sizeof bytes, PREPARED, PREPARED, "both slots damaged", at);
    }
    /* The newer slot over the older one, which then has a number that only the other may have. Then the file truncated, and removed. */
    memcpy(bytes, whole, sizeof bytes);
    memcpy(bytes + older, whole + newer, SLOT_SIZE);
    told = told || with_note(base, prepared, bytes, sizeof bytes, PREPARED, PREPARED, "one slot twice", 0);
    for (int size = 0; size <= SLOT_DISTANCE && !told; size += 128) {
        told = with_note(base, prepared, whole, (uint64_t)size, PREPARED - 1, PREPARED, "the file cut short", size);
    }
    if (!told) printf("ok      %s: slots torn and damaged\n", place->name);
    free_tree(&tree);
}

int main(int argc, char **argv) {
    static struct shared prepared;
    double minutes = 0;
    uint64_t seed = 1;
    int plants = 0;
    program = argv[0];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--sample") == 0) is_short = 1;
        else if (strcmp(argv[i], "--planted") == 0) is_short = plants = 1;
        else if (i + 1 < argc && strcmp(argv[i], "--minutes") == 0) minutes = atof(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[++i], NULL, 10);
        else broken("usage: %s [--sample] [--planted] [--seed <number>] [--minutes <number>]", program);
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) broken("no memory");
    char *top = new_root("note");
    faults_make(0);
    time_t end = time(NULL) + (time_t)(minutes * 60);
    long noticed = 0, missed = 0;
    do {
        first_seed = seed;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            place = &places[i];
            char *base = path_of(top, "base");
            remove_tree(base);
            make_folder(base);
            memset(shared, 0, sizeof *shared);
            root = base;
            if (run_in_child(prepare, NULL, 120) != 0 || shared->failure[0] || shared->acknowledged != PREPARED)
                broken("cannot prepare: %s", shared->failure);
            prepared = *shared;
            root = path_of(top, "run");
            if (plants) {
                for (int p = 0; p < 2; p++) {
                    planted = plants_of_it[p];
                    failed = 0;
                    kill_at_every_call(base, &prepared, seed);
                    if (failed > 0) noticed++;
                    else missed++, printf("FAILED  %s: the planted defect %d is not noticed\n", place->name, (int)planted);
                }
                planted = NO_PLANT;
            } else {
                kill_at_every_call(base, &prepared, seed);
                kill_at_any_moment(base, &prepared, &seed);
                damage(base, &prepared);
            }
            free(root);
            free(base);
        }
    } while (!plants && failed == 0 && time(NULL) < end);
    remove_tree(top);
    free(top);
    if (plants) passed = noticed, failed = missed;
    else if (taken < all)
        printf("a sample: %ld of about %ld kills, seed %llu; all of them: scripts/test --deep faults\n", taken, all,
               (unsigned long long)first_seed);
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0 || passed == 0;
}

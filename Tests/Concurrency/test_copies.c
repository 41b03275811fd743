/*
 * Copies and unions.
 *
 * The directory of a store is copied, file by file and in any order, while processes write to it. The copy is a store with everything that
 * was acknowledged before. Then processes write to two copies, and the files of each are copied to the other. Both become one store with
 * both histories, even if that happens again and again while both are written to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../Faults/files.h"
#include "../Faults/random.h"
#include "copying.h"
#include "run.h"

enum { COPIES_MAX = 4 };
struct copier {
    const char *store, *folder;
    uint64_t random;
    long operations;         /* of the crew */
    int wanted, made, how;
    uint32_t must[COPIES_MAX];   /* how many versions had been acknowledged when a copy began */
};

static char *copy_path(const struct copier *copier, int number) {
    char name[32];
    snprintf(name, sizeof name, "copy-%d", number);
    return path_of(copier->folder, name);
}

/* Makes a copy whenever a further part of the work is done. */
static void copy_meanwhile(void *payload) {
    struct copier *copier = payload;
    if (copier->made < copier->wanted && ledger->operations > copier->operations * (copier->made + 1) / (copier->wanted + 1)) {
        char *to = copy_path(copier, copier->made);
        copier->must[copier->made] = __atomic_load_n(&ledger->acknowledged, __ATOMIC_SEQ_CST);
        tally(COPIES, copy_files(copier->store, to, copier->how | (copier->made % 2 ? COPY_CACHES : 0), &copier->random));
        copier->made++;
        free(to);
    }
    pause_shortly();
}

/* Versions that were acknowledged before the copy began are in both. */
static void belongs_to_both(uint32_t acknowledged) {
    for (uint32_t i = 0; i < acknowledged; i++) ledger->entries[ledger->order[i]].world = 0;
}
/* A version from which a crew can continue. */
static uint32_t some_base(uint32_t acknowledged, uint64_t *random) {
    return acknowledged ? ledger->order[random_below(random, acknowledged)] : 0;
}

static void both_ways(const char *a, const char *b, int how, uint64_t *random) {
    tally(COPIES, copy_files(a, b, how | COPY_UNION, random));
    tally(COPIES, copy_files(b, a, how | COPY_UNION, random));
}

static void copied_while_it_is_written(const char *folder, uint64_t seed, double scale, int compaction) {
    char *path = path_of(folder, "store");
    struct crew crew = {{path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL, compaction, 1}, 3, 1, 1, scaled(900, scale), 2, 0, 0, seed};
    struct copier copier = {path, folder, seed, 3 * scaled(900, scale), COPIES_MAX, 0, COPY_IN_PLACE, {0}};
    run_crew(&crew, copy_meanwhile, &copier);
    if (!ledger_has_failed()) judge_in_child(&crew.place, JUDGE_WHOLE, 0);
    for (int i = 0; i < copier.made && !ledger_has_failed(); i++) {
        struct place copy = crew.place;
        char *at = copy_path(&copier, i);
        copy.path = at;
        judge_in_child(&copy, JUDGE_WHAT_IS_THERE, copier.must[i]);
        free(at);
    }
    if (copier.made == 0) ledger_fail("nothing was copied");
    free(path);
}

static void worked_on_in_both(const char *folder, uint64_t seed, double scale, int compaction, int how) {
    char *a = path_of(folder, "store"), *b = path_of(folder, "copy-0");
    struct crew first = { { a, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL, compaction, 1 }, 3, 1, 1, scaled(300, scale), 1, 0, 0, seed },
                second = first, other;
    struct copier copier = {a, folder, seed, 3 * scaled(300, scale), 1, 0, COPY_CACHES, {0}};
    run_crew(&first, copy_meanwhile, &copier);
    if (copier.made == 0) ledger_fail("nothing was copied");
    belongs_to_both(copier.must[0]);
    second.base = some_base(copier.must[0], &copier.random);
    second.first_number = 10;
    other = second;
    other.place.path = b;
    other.place.world = 2;
    other.first_number = 20;
    other.seed += 7;
    if (!ledger_has_failed()) run_crew(&second, NULL, NULL);
    if (!ledger_has_failed()) run_crew(&other, NULL, NULL);
    both_ways(a, b, how, &copier.random);
    ledger->is_united = 1;
    if (!ledger_has_failed()) judge_in_child(&second.place, JUDGE_WHOLE, 0);
    if (!ledger_has_failed()) judge_in_child(&other.place, JUDGE_WHOLE, 0);
    free(a);
    free(b);
}

static void unioned_while_both_are_worked_on(const char *folder, uint64_t seed, double scale, int compaction) {
    char *a = path_of(folder, "a"), *b = path_of(folder, "b");
    struct crew here = {{a, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL, compaction, 1}, 2, 1, 1, scaled(700, scale), 1, 0, 0, seed};
    struct crew there = here;
    uint64_t random = seed;
    pid_t children[2];
    int status;
    there.place.path = b;
    there.place.world = 2;
    there.first_number = 20;
    there.seed += 7;
    for (int i = 0; i < 2; i++) {
        if ((children[i] = fork()) == 0) {
            run_crew(i ? &there : &here, NULL, NULL);
            _exit(0);
        }
    }
    for (int running = 2; running > 0;) {
        if (is_there(a) && is_there(b)) both_ways(a, b, 0, &random);
        pause_shortly();
        for (int i = 0; i < 2; i++) {
            if (!children[i] || waitpid(children[i], &status, WNOHANG) != children[i]) continue;
            if (status != 0) ledger_fail("a crew ended with %d", status);
            children[i] = 0;
            running--;
        }
    }
    both_ways(a, b, 0, &random);
    ledger->is_united = 1;
    if (!ledger_has_failed()) judge_in_child(&here.place, JUDGE_WHOLE, 0);
    if (!ledger_has_failed()) judge_in_child(&there.place, JUDGE_WHOLE, 0);
    free(a);
    free(b);
}

enum { COPIED, COPIED_FOLDING, BOTH, BOTH_FOLDING, BOTH_IN_PLACE, MEANWHILE, MEANWHILE_FOLDING };
static const int kinds[] = {COPIED, COPIED_FOLDING, BOTH, BOTH_FOLDING, BOTH_IN_PLACE, MEANWHILE, MEANWHILE_FOLDING};
static const struct trial trials[] = {
    {"copied while it is written", &kinds[0]},
    {"copied while it is written and compacted", &kinds[1]},
    {"worked on in both copies, unioned", &kinds[2]},
    {"worked on and compacted in both copies, unioned", &kinds[3]},
    {"worked on in both copies, unioned in place, with caches", &kinds[4]},
    {"unioned while both are worked on", &kinds[5]},
    {"unioned while both are worked on and compacted", &kinds[6]},
};

static void run(const struct trial *trial, const char *folder, uint64_t seed, double scale) {
    switch (*(const int *)trial->what) {
    case COPIED: copied_while_it_is_written(folder, seed, scale, KEEPS_SEGMENTS); break;
    case COPIED_FOLDING: copied_while_it_is_written(folder, seed, scale, FOLDS); break;
    case BOTH: worked_on_in_both(folder, seed, scale, KEEPS_SEGMENTS, 0); break;
    case BOTH_FOLDING: worked_on_in_both(folder, seed, scale, FOLDS_AND_DELETES, 0); break;
    case BOTH_IN_PLACE: worked_on_in_both(folder, seed, scale, FOLDS, COPY_IN_PLACE | COPY_CACHES); break;
    case MEANWHILE: unioned_while_both_are_worked_on(folder, seed, scale, KEEPS_SEGMENTS); break;
    default: unioned_while_both_are_worked_on(folder, seed, scale, FOLDS_AND_DELETES); break;
    }
}

int main(int argc, char **argv) {
    static const struct planting plantings[] = {
        {LEAVES_A_FILE_OUT, "a copy without one of the files", "worked on in both copies, unioned"},
        {LEAVES_A_FILE_OUT, "a copy without one of the files", "unioned while both are worked on"},
        {LOSES_A_VERSION, "a version that is lost", "copied while it is written and compacted"},
        {NO_PLANT, NULL, NULL},
    };
    return run_trials("Copies", trials, (int)(sizeof trials / sizeof trials[0]), run, plantings, argc, argv);
}

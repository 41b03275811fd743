/* Runs tests one after another, prints a line for each, what was done in all, and last "<number> passed, <number> failed". */
#ifndef CONCURRENCY_RUN_H
#define CONCURRENCY_RUN_H

#include "judge.h"

struct trial {
    const char *name;
    const void *what;         /* the test's own */
};
/* `folder`: of its own, empty. `scale`: 1, less in a short version, more in a long one. Whatever is wrong goes into the ledger. */
typedef void (*trial_fn)(const struct trial *trial, const char *folder, uint64_t seed, double scale);
/* What is broken on purpose in a trial, which must fail then. */
struct planting {
    enum plant plant;
    const char *name, *trial;
};
/* The main program of a test. Options: --only, --seed, --minutes, --scale, --planted. `plantings` end with one without a name. */
int run_trials(const char *title, const struct trial *trials, int count, trial_fn run, const struct planting *plantings, int argc,
               char **argv);
/* So many operations of `whole` at a scale, and at least one. */
long scaled(long whole, double scale);

struct crew {
    struct place place;
    int processes, handles, threads;   /* threads for each handle, handles in each process */
    long operations;                   /* of each thread */
    int kills;                         /* one process after another is killed, and another one comes for it */
    uint32_t base;                     /* where all begin; 0: with a root each */
    int first_number;                  /* of the workers */
    uint64_t seed;
};
/* How many workers there will have been, killed ones included. */
int crew_size(const struct crew *crew);
/* Starts them, and returns when all have ended. `meanwhile` (may be NULL) is called again and again. */
void run_crew(const struct crew *crew, void (*meanwhile)(void *payload), void *payload);

/* Less than a millisecond. */
void pause_shortly(void);

#endif

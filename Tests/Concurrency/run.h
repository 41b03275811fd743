/* Runs tests one after another. Prints a line for each, all counts, and last "<number> passed, <number> failed". */
#ifndef CONCURRENCY_RUN_H
#define CONCURRENCY_RUN_H

#include "judge.h"

struct trial {
    const char *name;
    const void *what;         /* the test's own */
};
/* `folder`: empty, and the trial's own. `scale`: 1, less in a short version, more in a long one. Failures are recorded in the ledger. */
typedef void (*trial_fn)(const struct trial *trial, const char *folder, uint64_t seed, double scale);
/* A defect of a trial, which must then fail. */
struct planting {
    enum plant plant;
    const char *name, *trial;
};
/* The main program of a test. Options: --only, --seed, --minutes, --scale, --planted. `plantings` end with an entry without a name. */
int run_trials(const char *title, const struct trial *trials, int count, trial_fn run, const struct planting *plantings, int argc,
               char **argv);
/* The number of operations at a scale, and at least one. */
long scaled(long whole, double scale);

struct crew {
    struct place place;
    int processes, handles, threads;   /* threads for each handle, handles in each process */
    long operations;                   /* of each thread */
    int kills;                         /* one process after another is killed and replaced */
    uint32_t base;                     /* the version on which all begin; 0: each begins with a root */
    int first_number;                  /* that of the first worker */
    uint64_t seed;
};
/* The number of workers in the end, including killed ones. */
int crew_size(const struct crew *crew);
/* Starts them, and returns when all have ended. Meanwhile `meanwhile` (may be NULL) is called repeatedly. */
void run_crew(const struct crew *crew, void (*meanwhile)(void *payload), void *payload);

/* Pauses for less than a millisecond. */
void pause_shortly(void);

#endif

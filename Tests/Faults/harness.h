/* Runs workloads under faults, several at once, and counts the results. */
#ifndef FAULTS_HARNESS_H
#define FAULTS_HARNESS_H

#include "random.h"
#include "workloads.h"

enum { TOTALS = 16 };
/* Shared by the processes of a test. */
struct totals {
    long units;
    long passed, failed; /* units: the tests that are counted */
    long taken, all;     /* see `took` */
    long count[TOTALS];  /* as named by the test */
};
extern struct totals *totals;
void count(int total, long by);

/* Set when the test runs its long version, without samples. */
extern int is_thorough;
/* Set by --sample: the short run uses some of the calls of each kind and sort (sample.h). */
extern int is_short;
/* Records how many of all cases a run has tried. */
void took(long some, long of);

struct options {
    const char *only;  /* a part of the name of a unit; NULL: all */
    uint64_t seed;
    double minutes;    /* of the long version; 0: one round */
    int jobs;
    int planted;
};

/* One test: a workload on a storage, at a durability. */
struct unit {
    const struct workload *workload;
    llvs_storage_kind storage;
    llvs_durability durability;
    char name[96];
};

/*
 * The main program of a test. It reads the options, makes the units for which `wants` returns 1, and runs `run` for each in some process,
 * with folders of its own. It prints a line for each, the sums, and last "<number> passed, <number> failed". In the long version the units
 * are run with one seed after another until the time is over. `run` returns 0 if all is well, and 1 with a message in `message`; `note` is
 * printed after the name.
 */
struct test {
    const char *title;
    const char *totals[TOTALS];
    /* The name of the sampled things, and of the program's suite. */
    const char *what;
    int recording;
    int (*wants)(const struct unit *unit);
    int (*run)(const struct unit *unit, const char *folder, uint64_t seed, char *note, size_t note_size, char *message,
               size_t message_size);
    /* For --planted: the defects of units, up to an entry without a name. Each unit must fail. */
    const struct planting *plantings;
};
struct planting {
    enum plant plant;
    const char *name, *unit;
};
int test_main(const struct test *test, int argc, char **argv);

#endif

/* Runs a workload on both sides, in turns, each time in a process of its own. */
#ifndef BENCHMARKS_COMPARE_H
#define BENCHMARKS_COMPARE_H

#include "report.h"
#include "workload.h"

typedef struct comparison {
    const char *program; /* starts itself for each side */
    const char *folder;  /* holds what workloads start from */
    int is_quick;
    FILE *json; /* may be NULL */
} comparison;

void compare(const comparison *comparison, const data_kind *kind, const workload *workload);
/* Removes the fixtures for this kind of data, except those that the next kind needs. `next` may be NULL. */
void remove_fixtures(const comparison *comparison, const data_kind *kind, const data_kind *next);

#endif

/* The rows of the table: which figure of which workload, and what it has to reach. */
#ifndef BENCHMARKS_ROWS_H
#define BENCHMARKS_ROWS_H

#include <stddef.h>

typedef enum goal_kind {
    NO_GOAL,
    RATIO,   /* ours divided by the yardstick's */
    ABSOLUTE /* ours */
} goal_kind;

typedef struct row {
    const char *workload, *metric, *label, *unit;
    int better; /* 1: more is better; -1: less is */
    goal_kind kind;
    double goal;
    double sqlite_goal; /* of a store in SQLite storage, a ratio; 0: none */
    size_t at[2];       /* the numbers of ids that the goal is meant for; 0: any */
    /* When set, the figure is not that of the metric, but how many times the same metric was of fewer ids, or of
       another workload. */
    size_t than_at;
    const char *than_workload;
} row;

extern const row rows[];
extern const size_t row_count;

#endif

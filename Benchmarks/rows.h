/* The rows of the table: the figure, the workload that it is from, and its goal. */
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
    /* If set, the figure is a ratio: the metric divided by the same metric for fewer ids, or of another workload. */
    size_t than_at;
    const char *than_workload;
} row;

extern const row rows[];
extern const size_t row_count;

#endif

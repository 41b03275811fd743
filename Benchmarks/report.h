/* Prints rows of figures, writes them as JSON, and compares them with their goals. */
#ifndef BENCHMARKS_REPORT_H
#define BENCHMARKS_REPORT_H

#include "process.h"
#include "rows.h"
#include <stdio.h>

/* One kind of data, and how the store stores it. */
typedef struct data_kind {
    size_t count;
    const char *ids; /* "uuid" or "contact" */
    size_t value_size;
    size_t budget; /* MiB; 0: the default */
    int is_sqlite, runs;
} data_kind;

typedef struct figures {
    const data_kind *kind;
    metrics (*all)[RUNS_MAX]; /* of both sides, or of ours */
    int sides, is_quick;
    double others;            /* what others took of the processors meanwhile */
} figures;

void print_heading(const data_kind *kind);
/* The rows of a workload that ran. `json` may be NULL. */
void print_rows(const figures *figures, const char *workload, FILE *json);

#endif

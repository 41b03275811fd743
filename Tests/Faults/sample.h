/*
 * The calls of a workload that the short run uses. Calls are alike if they are of one kind, on files of one sort, and write about as much.
 * Of alike calls the first and the last are used, and every n-th of the others.
 */
#ifndef FAULTS_SAMPLE_H
#define FAULTS_SAMPLE_H

#include <stdint.h>

#include "shim.h"

struct sample {
    long count;      /* the number of calls */
    char *is_taken;  /* by the number of the call, from 1 on */
    unsigned *kinds; /* likewise */
    long taken;
};
/* Makes a sample of the calls that the shim traced last (faults_trace). `every`: 1 uses all. The caller frees it. */
struct sample sample_make(uint64_t every, uint64_t seed);
void sample_free(struct sample *sample);

#endif

/*
 * Which calls of a workload are in the short run. Calls are alike if they are of one kind, on files of one sort, and write about as much.
 * Of calls that are alike the first and the last are taken, and one in so many of the others.
 */
#ifndef FAULTS_SAMPLE_H
#define FAULTS_SAMPLE_H

#include <stdint.h>

#include "shim.h"

struct sample {
    long count;      /* calls that there are */
    char *is_taken;  /* by number, from 1 on */
    unsigned *kinds; /* the same */
    long taken;
};
/* Of the calls that the shim traced last (faults_trace). `every`: 1 takes all. To be freed. */
struct sample sample_make(uint64_t every, uint64_t seed);
void sample_free(struct sample *sample);

#endif

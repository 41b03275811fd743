/* For workloads that the store alone does. */
#ifndef BENCHMARKS_OURS_H
#define BENCHMARKS_OURS_H

#include "side.h"

/* Ends the program when a call failed. */
void must(llvs_status status, llvs_error *error);

#endif

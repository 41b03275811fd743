/* For workloads that only the store runs. */
#ifndef BENCHMARKS_OURS_H
#define BENCHMARKS_OURS_H

#include "side.h"

/* Ends the program if a call failed. A macro, since the error is set only after the call. */
#define must(status, error) must_be_ok((status), &(error))
void must_be_ok(llvs_status status, llvs_error **error);

#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "sample.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"

/* Calls that are alike: how many there were, and the number of the last. */
struct alike { unsigned kind; uint32_t sort; uint64_t seen; long last; };

struct sample sample_make(uint64_t every, uint64_t seed) {
    struct sample sample = {faults->trace_count, NULL, NULL, 0};
    struct alike *all = calloc((size_t)sample.count + 1, sizeof *all);
    long count = 0;
    if (faults->trace_count > TRACE_MAX) broken("too many calls to be traced");
    sample.is_taken = calloc((size_t)sample.count + 2, 1);
    sample.kinds = calloc((size_t)sample.count + 2, sizeof *sample.kinds);
    if (!all || !sample.is_taken || !sample.kinds) broken("out of memory");
    for (long at = 1; at <= sample.count; at++) {
        const struct traced *call = &faults->trace[at - 1];
        long i = 0;
        while (i < count && (all[i].kind != call->kind || all[i].sort != call->sort)) i++;
        if (i == count) {
            all[count].kind = call->kind;
            all[count++].sort = call->sort;
        }
        sample.kinds[at] = call->kind;
        sample.is_taken[at] = all[i].seen == 0 || (all[i].seen + seed) % every == 0;
        all[i].seen++;
        all[i].last = at;
    }
    for (long i = 0; i < count; i++) sample.is_taken[all[i].last] = 1;
    for (long at = 1; at <= sample.count; at++) sample.taken += sample.is_taken[at];
    free(all);
    return sample;
}

void sample_free(struct sample *sample) {
    free(sample->is_taken);
    free(sample->kinds);
    sample->is_taken = NULL;
    sample->kinds = NULL;
}

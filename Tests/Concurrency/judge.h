/* Compares a store with the ledger, in a process that did not take part. */
#ifndef CONCURRENCY_JUDGE_H
#define CONCURRENCY_JUDGE_H

#include "worker.h"

enum strictness {
    JUDGE_WHOLE,      /* everything acknowledged exists, with every state and every value, and the store still works */
    JUDGE_HISTORY,    /* everything acknowledged exists */
    JUDGE_WHAT_IS_THERE /* everything that exists is whole; a copy made meanwhile may lack versions */
};
/*
 * Records in the ledger what is wrong. Only reads, except that JUDGE_WHOLE continues to work at the end. `must`: with JUDGE_WHAT_IS_THERE,
 * how many of the first acknowledged versions must exist nevertheless.
 */
void judge(const struct place *place, enum strictness strictness, uint32_t must);
/* Does what `judge` does, in a child process. */
void judge_in_child(const struct place *place, enum strictness strictness, uint32_t must);

#endif

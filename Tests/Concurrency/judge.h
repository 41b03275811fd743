/* Compares a store with the ledger, in a process that had no part in it. */
#ifndef CONCURRENCY_JUDGE_H
#define CONCURRENCY_JUDGE_H

#include "worker.h"

enum strictness {
    JUDGE_WHOLE,      /* all that was acknowledged is there, with every state and every value; and the store can be worked on */
    JUDGE_HISTORY,    /* all that was acknowledged is there */
    JUDGE_WHAT_IS_THERE /* what is there is whole; a copy that was made meanwhile need not have all */
};
/*
 * What is wrong goes into the ledger. Reads only, save where JUDGE_WHOLE goes on working at the end. `must`: with
 * JUDGE_WHAT_IS_THERE how many of those acknowledged first must be there all the same.
 */
void judge(const struct place *place, enum strictness strictness, uint32_t must);
/* The same in a child. */
void judge_in_child(const struct place *place, enum strictness strictness, uint32_t must);

#endif

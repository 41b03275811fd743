/* Checks that a store holds what the book records, after any fault. */
#ifndef FAULTS_CHECK_H
#define FAULTS_CHECK_H

#include "client.h"

struct check {
    const struct work *work;
    /* The number of recorded calls at a power cut; -1: the process was killed, or ended normally. */
    long cut;
    /* Whether to continue afterwards: versions that were requested and not acknowledged are made again, and one more. */
    int goes_on;
};

/*
 * Checks, in a process of its own: the store in the folder "store" opens. Every version that must exist does, and every existing version is
 * whole. The heads are right, and a verification finds nothing. The store can complete the contents of an exchange folder ("folder"), and
 * another store can read them. Returns 0, or 1 with a message in `book->failure`.
 */
int check_store(const struct check *check);

/* Runs `body` in a child. Returns its status, as waitpid does; -1 if it hung, or used more than `seconds` of the processor. */
int run_in_child(void (*body)(void *payload), void *payload, int seconds);

#endif

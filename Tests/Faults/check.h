/* Looks whether a store holds what the book says, after whatever was done to it. */
#ifndef FAULTS_CHECK_H
#define FAULTS_CHECK_H

#include "client.h"

struct check {
    const struct work *work;
    /* A power cut, when so many calls had been recorded; -1: the process was killed, or came to its end. */
    long cut;
    /* Go on working with what was found: what was asked for and not acknowledged is made again, and more. */
    int goes_on;
};

/*
 * The store in the folder "store" opens; every version that must be there is, and whatever is there is whole; heads are
 * what they should be; a verification finds nothing. What an exchange folder ("folder") holds can be completed by the
 * store and read by another. In a process of its own. 0, or 1 with a message in `book->failure`.
 */
int check_store(const struct check *check);

/* Runs `body` in a child. Returns how it ended, as waitpid does; -1 if it hung, or used more than `seconds` of the processor. */
int run_in_child(void (*body)(void *payload), void *payload, int seconds);

#endif

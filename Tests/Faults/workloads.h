/* What is done to a store while calls are killed, failed or recorded. Small, so that every call can have its turn. */
#ifndef FAULTS_WORKLOADS_H
#define FAULTS_WORKLOADS_H

#include "client.h"

struct workload {
    const char *name;
    /* What there is before; never disturbed. May be NULL. */
    void (*prepare)(const struct work *work);
    void (*run)(const struct work *work);
    /* Storages in which it makes sense. */
    int on_file, on_sqlite;
    /* Whether power cuts have something to say of it; whether it acknowledges versions of its own, so that a lie of the disk
       must be noticed; whether another process goes on where it was killed, before the power is cut. */
    int for_power_cuts, acknowledges, for_kills_and_cuts;
    int has_large_values;
    /* In file storage: a call that there must be, lest the workload does something else than it says, and how its path
       begins; or 0 and NULL. */
    unsigned must_call;
    const char *must_touch;
};
extern const struct workload workloads[];
extern const int workload_count;

#endif

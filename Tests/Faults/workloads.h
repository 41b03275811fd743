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
    /* Its acknowledgements differ by durability, and a power cut tells something of it. */
    int for_power_cuts;
    /* In file storage: a call that there must be, lest the workload does something else than it says, and how its path
       begins; or 0 and NULL. */
    unsigned must_call;
    const char *must_touch;
};
extern const struct workload workloads[];
extern const int workload_count;

#endif

/* The workloads during which calls are killed, failed or recorded. They are small, so that every call can be tried. */
#ifndef FAULTS_WORKLOADS_H
#define FAULTS_WORKLOADS_H

#include "client.h"

struct workload {
    const char *name;
    /* Makes what exists before the workload, without faults. May be NULL. */
    void (*prepare)(const struct work *work);
    void (*run)(const struct work *work);
    /* The storages for which the workload makes sense. */
    int on_file, on_sqlite;
    /* Whether it is tried with power cuts; whether it acknowledges versions of its own, so that a lying disk must be noticed; whether
       another process continues after a kill, before the power is cut. */
    int for_power_cuts, acknowledges, for_kills_and_cuts;
    int has_large_values;
    /* In file storage: a call that must occur if the workload does what it claims, and the beginning of its path; or 0 and NULL. */
    unsigned must_call;
    const char *must_touch;
};
extern const struct workload workloads[];
extern const int workload_count;

#endif

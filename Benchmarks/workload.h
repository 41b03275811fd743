/* What is measured. Each workload runs in a process of its own, on one side. */
#ifndef BENCHMARKS_WORKLOAD_H
#define BENCHMARKS_WORKLOAD_H

#include "side.h"

typedef struct setting {
    const side *side;
    opening how;
    size_t count;       /* ids */
    const char *prefix; /* of the ids */
    size_t value_size;
    int quick;
    const char *folder; /* holds the database, "data", and "notes" about it */
} setting;

/* What a workload starts from. */
typedef enum fixture {
    EMPTY,   /* a folder */
    LOADED,  /* one version of all values */
    UPDATED, /* and 10,000 versions that update one value each */
    LONG,    /* and 100,000 of them */
    FIXTURES
} fixture;

typedef struct workload {
    const char *name;
    fixture from;
    int writes;       /* works on a copy of the fixture */
    int ours_only;    /* the yardstick has no such thing */
    int takes_memory; /* its peak of memory is one of the figures */
    void (*run)(const setting *setting);
} workload;

extern const workload workloads[];
extern const size_t workload_count;
const workload *workload_named(const char *name);

/* Makes the fixture in the setting's folder. */
void make_fixture(const setting *setting, fixture which);

/* ---- for workloads ---- */

/* Tells the process that started this one that what is in memory now is the data, not yet the work. */
void report_ready(void);
void report(const char *metric, double figure);
double now(void);
double median(double *figures, size_t count);
/* A file of the setting's folder; the caller frees it. */
char *path_in(const setting *setting, const char *name);
/* The first version and the newest of the fixture. */
typedef struct notes {
    version first, head;
} notes;
notes read_notes(const setting *setting);
void *open_database(const setting *setting);
/* `count` versions on `at`, numbered from `first_update`, of one value each. */
version save_updates(const setting *setting, void *database, const char *ids, version at, size_t first_update, size_t count);

void run_load(const setting *setting);
void run_commits(const setting *setting);
void run_commits_full(const setting *setting);
void run_commits_full_8(const setting *setting);
void run_fetch(const setting *setting);
void run_fetch_8(const setting *setting);
void run_fetch_first(const setting *setting);
void run_enumerate(const setting *setting);
void run_prefix(const setting *setting);
void run_open(const setting *setting);
void run_merge(const setting *setting);
void run_merge_same(const setting *setting);
void run_differences(const setting *setting);
void run_merge_base(const setting *setting);
void run_ladder(const setting *setting);
void run_exchange(const setting *setting);
void run_exchange_idle(const setting *setting);
void run_startup(const setting *setting);

#endif

/* The workloads. Each runs in a process of its own, on one side. */
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

/* The fixture from which a workload starts. */
typedef enum fixture {
    EMPTY,   /* a folder */
    LOADED,  /* one version of all values */
    UPDATED, /* and 10,000 versions that update one value each */
    LONG,    /* and 100,000 of them */
    OPENED,  /* and 10,000 of them, each made after the database was opened again */
    EXCHANGED, /* a LONG one, all of which is in a folder for exchanging, "exchange", as well */
    FIXTURES
} fixture;

enum {
    WRITES = 1,     /* works on a copy of the fixture */
    OURS_ONLY = 2,  /* the yardstick has no such thing */
    MEMORY = 4,     /* its peak of memory is one of the figures, and it is run with other budgets, too */
    UUIDS_ONLY = 8, /* what the ids look like makes no difference */
    LARGE_TOO = 16, /* also with large values */
    SQLITE_TOO = 32 /* also with our SQLite storage */
};

/* The flags, and the number of ids above which a workload is not run (0: none), only apply to runs of everything. A workload that is
   requested by name is run. */
typedef struct workload {
    const char *name;
    fixture from;
    int flags;
    size_t at_most;
    void (*run)(const setting *setting);
} workload;

extern const workload workloads[];
extern const size_t workload_count;
const workload *workload_named(const char *name);

/* Makes the fixture in the setting's folder. */
void make_fixture(const setting *setting, fixture which);

/* ---- for workloads ---- */

/* Reports to the parent process that the memory now in use is the data, before the work begins. */
void report_ready(void);
/* Returns the anonymous memory of this process, in KiB. */
long own_memory(void);
void report(const char *metric, double figure);
double now(void);
/* What this process has written and synced so far, in all its threads and libraries. */
typedef struct counts {
    double bytes_written, syncs;
} counts;
counts counts_now(void);
/* Returns `count`, the number of operations on one value each, or fewer if they would move more than half a GiB. */
size_t scaled(const setting *setting, size_t count);
double median(double *figures, size_t count);
/* Returns the path of a file in the setting's folder; the caller frees it. */
char *path_in(const setting *setting, const char *name);
/* The first version and the newest of the fixture. */
typedef struct notes {
    version first, head;
} notes;
notes read_notes(const setting *setting);
void *open_database(const setting *setting);
/* Makes `count` versions on `at`, one value each, with the updates from number `first_update` on. */
version save_updates(const setting *setting, void *database, const char *ids, version at, size_t first_update, size_t count);

/* Makes the fixture of that kind. */
void fill_exchange_folder(const setting *setting);

void run_load(const setting *setting);
void run_batches(const setting *setting);
void run_commits(const setting *setting);
void run_commits_full(const setting *setting);
void run_commits_full_8(const setting *setting);
void run_coordinated(const setting *setting);
void run_fetch(const setting *setting);
void run_fetch_first(const setting *setting);
void run_past(const setting *setting);
void run_past_long(const setting *setting);
void run_enumerate(const setting *setting);
void run_prefix(const setting *setting);
void run_open(const setting *setting);
void run_merge(const setting *setting);
void run_merge_same(const setting *setting);
void run_differences(const setting *setting);
void run_differences_data(const setting *setting);
void run_merge_large(const setting *setting);
void run_fold(const setting *setting);
void run_merge_base(const setting *setting);
void run_ladder(const setting *setting);
void run_heads(const setting *setting);
void run_exchange(const setting *setting);
void run_exchange_idle(const setting *setting);
void run_startup(const setting *setting);

#endif

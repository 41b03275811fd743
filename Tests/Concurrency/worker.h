/* A user of a store among many: commits, reads, merges, compacts, closes and opens again, and compares all that it is told with the ledger.
 */
#ifndef CONCURRENCY_WORKER_H
#define CONCURRENCY_WORKER_H

#include "ledger.h"

struct place {
    const char *path;
    llvs_storage_kind storage;
    llvs_durability durability;
    enum {
        KEEPS_SEGMENTS,
        FOLDS,
        FOLDS_AND_DELETES
    } compaction; /* file storage: by itself and on request; what was folded is deleted at once */
    uint32_t world;
};
struct worker {
    const struct place *place;
    int number;          /* also that of its own value id, below PRIVATE_KEYS */
    llvs_store *store;
    int owns_store;      /* may close it and open it again */
    uint32_t current;    /* its own last version, or what descends from it */
    uint64_t random;
    long operations;     /* to do */
};

/* NULL after a failure, which is in the ledger. */
llvs_store *worker_open(const struct place *place, int read_only);
/* Performs its operations; stops early if another worker has failed. */
void worker_run(struct worker *worker);

/* The entries that stored what prevails at a version, without reading the values. 0: there was an error, which is in the ledger. */
int read_prevailing(llvs_store *store, llvs_bytes version, uint32_t prevailing[KEYS]);
/* All values, with their bytes, are those of the entry. */
int check_all_values(llvs_store *store, const struct ledger_entry *entry);
/* The call succeeded; else the ledger has what failed. `error` is set by the call that is the argument before it. */
int succeeded(const char *doing, llvs_status status, llvs_error **error);

#endif

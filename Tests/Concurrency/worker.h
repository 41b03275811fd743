/* One of many users of a store. It commits, reads, merges, compacts, closes and opens again, and compares every answer with the ledger.
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
    } compaction; /* file storage: automatically and on request; compacted segments are deleted at once */
    uint32_t world;
};
struct worker {
    const struct place *place;
    int number;          /* also the number of its own value id, below PRIVATE_KEYS */
    llvs_store *store;
    int owns_store;      /* may close it and open it again */
    uint32_t current;    /* its own last version, or a descendant of it */
    uint64_t random;
    long operations;     /* the number of operations to do */
};

/* Returns NULL after a failure, which is recorded in the ledger. */
llvs_store *worker_open(const struct place *place, int read_only);
/* Performs its operations; stops early if another worker has failed. */
void worker_run(struct worker *worker);

/* Finds the entries that stored the values prevailing at a version, without reading these. Returns 0 after an error, which is recorded
 * in the ledger. */
int read_prevailing(llvs_store *store, llvs_bytes version, uint32_t prevailing[KEYS]);
/* Checks that all values and their bytes are those of the entry. */
int check_all_values(llvs_store *store, const struct ledger_entry *entry);
/* Returns whether the call succeeded; otherwise records the failure in the ledger. `error` is set by the call that is the argument
 * before it. */
int succeeded(const char *doing, llvs_status status, llvs_error **error);

#endif

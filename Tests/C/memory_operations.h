/* Every operation of llvs.h that can run short of memory, for test_falling_memory.c. */
#ifndef LLVS_TESTS_MEMORY_OPERATIONS_H
#define LLVS_TESTS_MEMORY_OPERATIONS_H

#include "memory_exchanging.h"
#include "memory_reading.h"
#include "memory_saving.h"

typedef struct operation {
    const char *name;
    /* The kinds of storage for which the operation runs, as bits, and READS. */
    unsigned storages;
    /* Runs with enough memory; may be NULL. */
    void (*prepare)(world *w);
    llvs_status (*run)(world *w, llvs_error **error);
    /* Checks the result, with enough memory again; may be NULL. */
    void (*finish)(world *w);
    /* The version that exists if it succeeded; or NULL. */
    const char *saves;
} operation;

#define F (1u << LLVS_STORAGE_FILE)
#define S (1u << LLVS_STORAGE_SQLITE)
#define M (1u << LLVS_STORAGE_MEMORY)
#define H (1u << LLVS_STORAGE_HOST)
#define ALL (F | S | M | H)
/* The operation stores nothing: all its limits use the same store, one after the other, and the store is verified after the last. */
#define READS 32u

static const operation operations[] = {
    { "open", F | S | READS, before_opening, do_open, NULL, NULL },
    { "open_without_caches", F | S | READS, before_opening_bare, do_open, NULL, NULL },
    { "close", F | S, before_closing, do_close, NULL, "new" },
    { "reload", F | S, before_reloading, do_reload, NULL, NULL },
    { "save_one", ALL, before_saving_one, do_save_one, NULL, "new" },
    { "save_many", ALL, before_saving_many, do_save_many, NULL, "new" },
    { "save_large", ALL, before_saving_large, do_save_one, NULL, "new" },
    { "save_a_row", ALL, before_saving_a_row, do_save_a_row, NULL, "new" },
    { "save_pieces", ALL, NULL, do_save_pieces, NULL, "new" },
    { "value", ALL | READS, NULL, do_value, NULL, NULL },
    { "read_value", ALL | READS, NULL, do_read_value, NULL, NULL },
    { "read_pieces", ALL | READS, NULL, do_read_pieces, NULL, NULL },
    { "values", ALL | READS, before_asking, do_values, NULL, NULL },
    { "values_of_the_past", ALL | READS, before_asking, do_values_of_the_past, NULL, NULL },
    { "value_block", ALL | READS, before_asking_block, do_value_block, NULL, NULL },
    { "enumerate", ALL | READS, NULL, do_enumerate, NULL, NULL },
    { "enumerate_back", ALL | READS, NULL, do_enumerate_back, NULL, NULL },
    { "enumerate_block", ALL | READS, NULL, do_enumerate_block, NULL, NULL },
    { "count", ALL | READS, NULL, do_count, NULL, NULL },
    { "history", ALL | READS, NULL, do_history, NULL, NULL },
    { "history_of_value", ALL | READS, NULL, do_history_of_value, NULL, NULL },
    { "history_of_prefix", ALL | READS, NULL, do_history_of_prefix, NULL, NULL },
    { "versions", ALL | READS, NULL, do_versions, NULL, NULL },
    { "changes", ALL | READS, NULL, do_changes, NULL, NULL },
    { "differences", ALL | READS, NULL, do_differences, NULL, NULL },
    { "merge", ALL, before_merging, do_merge, NULL, NULL },
    { "merge_by_callback", F | M, before_arbitrating, do_merge, NULL, NULL },
    { "merge_heads", ALL, before_merging, do_merge_heads, NULL, NULL },
    { "revert", ALL, NULL, do_revert, NULL, NULL },
    { "send", F | S, before_sending, do_send, NULL, NULL },
    { "send_to_memory", ALL, before_sending_to_memory, do_send, NULL, NULL },
    { "retrieve", F | S, before_retrieving, do_retrieve, after_retrieving, NULL },
    { "retrieve_from_memory", ALL, before_retrieving_from_memory, do_retrieve, after_retrieving, NULL },
    { "verify_exchange", F, before_retrieving, do_verify_exchange, after_retrieving, NULL },
    { "put_snapshot", F | S, before_sending, do_put_snapshot, NULL, NULL },
    { "restore_snapshot", F | S, before_retrieving, do_restore_snapshot, after_restoring, NULL },
    { "import", F | M, NULL, do_import, NULL, NULL },
    { "verify", ALL | READS, NULL, do_verify, NULL, NULL },
    { "size", ALL | READS, NULL, do_size, NULL, NULL },
    { "salvage", F | S, before_salvaging, do_salvage, NULL, NULL },
    { "compact", F, before_compacting, do_compact, NULL, NULL },
    { "coordinator_save", F | S | M, before_coordinating, do_coordinator_save, after_coordinating, NULL },
    { "sync", F | S, before_syncing, do_sync, after_coordinating, NULL },
    { "observe", F | S | M, before_saving_one, do_observe, NULL, NULL },
};
enum { operation_count = sizeof operations / sizeof *operations };

#endif

/*
 * llvs/coordinator.h - the coordinator: a store, its current version, exchanges and merging in one handle; and the syncer.
 *
 * A program opens one coordinator, attaches the places that its devices share, saves, and syncs:
 *
 *     llvs_coordinator *notes;
 *     llvs_error *error;
 *     if (llvs_coordinator_open(llvs_str("notes.llvs"), NULL, &notes, &error) != LLVS_OK ||
 *         llvs_coordinator_attach(notes, llvs_str("file:///home/ann/shared"), NULL, &error) != LLVS_OK ||
 *         llvs_coordinator_put(notes, llvs_str("note/1"), llvs_str("hello"), NULL, &error) != LLVS_OK ||
 *         llvs_coordinator_sync(notes, NULL, NULL, &error) != LLVS_OK) {
 *         fprintf(stderr, "%s\n", llvs_error_message(error));
 *         llvs_error_free(error);
 *     }
 *     llvs_coordinator_free(notes);
 *
 * CAVEATS
 *
 *  - A sync may move the current version: read values again after it. llvs_coordinator_observe reports each move.
 *  - If a save depends on values that were read before, pass their version as `expected`: else the save replaces changes that were made in
 *    between.
 *  - If a sync fails, a part of it may be done: the store is intact, and the next sync continues.
 *  - Two processes that use one store need a coordinator each, with different names.
 *
 * llvs.h has an overview, and llvs/common.h the conventions.
 */
#ifndef LLVS_COORDINATOR_H
#define LLVS_COORDINATOR_H

#include "exchange.h"
#include "merging.h"

LLVS_BEGIN_DECL

/* ------------------------------------------------------------------------------------------------
 * Coordinator
 * ------------------------------------------------------------------------------------------------ */

/**
 * A store, its current version, exchanges and an arbiter in one handle. Most programs need nothing else. Safe from all threads. Since 0.1.
 */
typedef struct llvs_coordinator llvs_coordinator;
/** Whether exchanges keep a snapshot up to date. Since 0.1. */
typedef uint32_t llvs_snapshot_policy;
enum llvs_snapshot_policy_value {
    /** Exchanges write no snapshot. */
    LLVS_SNAPSHOT_OFF = 0,
    /**
     * Writes a snapshot after an exchange if the last one is at least 7 days old (or dated a day in the future, because a clock is wrong)
     * and at least 20 versions behind; at once if it is missing, has a broken manifest, lacks chunks, or llvs_coordinator_bootstrap found
     * it damaged. If it cannot be written, the exchange has a problem named "snapshots".
     */
    LLVS_SNAPSHOT_AUTO = 1
};

/**
 * How a call moved the current version. Set struct_size before the call; no more than that is written. Also valid after a failure: a merge
 * may have moved to the first content of a new store before it failed. (The ids are empty if the call failed earlier.) Since 0.1.
 */
typedef struct llvs_move {
    uint32_t struct_size;
    /** Whether the call moved it. */
    llvs_bool moved;
    /** The current version before and after the call: the same if it did not move. */
    llvs_version_id from;
    llvs_version_id to;
} llvs_move;
#define LLVS_MOVE_INIT { (uint32_t)sizeof(llvs_move), 0, { 0, "" }, { 0, "" } }

/** How to open a coordinator. Since 0.1. */
typedef struct llvs_coordinator_options {
    uint32_t struct_size;
    llvs_snapshot_policy snapshot_policy;
    /** How to open the store; NULL: the defaults. */
    const llvs_store_options *store;
    /**
     * The name under which the current version and the exchanges' states are stored beside the store's caches: 1 to 40 of [a-z0-9._-];
     * empty: "main". Two processes that use one store need different names. A name that is already open on the store is LLVS_ERROR_BUSY,
     * also if another process holds it, or a child made by _Fork or clone (a child made by fork does not hold it). With a storage of the
     * host this is detected only within one handle of the store: the host must keep two handles on one storage, and two processes, apart.
     */
    llvs_bytes name;
    /** Decides conflicts; kept alive; NULL: the rules of the store, or most recent change if it has none (llvs_arbiter_rules). */
    llvs_arbiter *arbiter;
    /** Metadata of every save; entries that a save passes override these. */
    const llvs_metadata_entry *metadata;
    size_t metadata_count;
    /**
     * The name of the device, or of the person at it, whose saves llvs_coordinator_undo reverts, UTF-8: the same each time, and different
     * on each device. Saves carry it under "__llvs_device". Empty: undo needs a version.
     */
    llvs_bytes device;
} llvs_coordinator_options;
#define LLVS_COORDINATOR_OPTIONS_INIT { (uint32_t)sizeof(llvs_coordinator_options), 0, 0, LLVS_NONE_INIT, 0, 0, 0, LLVS_NONE_INIT }

/**
 * Opens a coordinator, and its store; llvs_coordinator_attach adds exchanges.
 * @param path     of the store, as for llvs_store_open
 * @param options  may be NULL
 * Errors: LLVS_ERROR_NOT_FOUND, LLVS_ERROR_NOT_A_STORE, LLVS_ERROR_NOT_A_DIRECTORY, LLVS_ERROR_NEWER_FORMAT, LLVS_ERROR_INVALID_UTF8,
 * LLVS_ERROR_UNSUPPORTED (no SQLite), LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_BUSY (a coordinator of that name is open), storage errors;
 * LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback of the store's options). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_open(llvs_bytes path, LLVS_BORROWED const llvs_coordinator_options *options,
    LLVS_OWNED llvs_coordinator **coordinator, LLVS_OWNED llvs_error **error);
/**
 * Closes the coordinator, its exchanges and its store. Waits for a save or merge of another thread, so that a coordinator that is opened
 * later begins at its version. Later calls return LLVS_ERROR_CLOSED. Errors: storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_close(LLVS_BORROWED llvs_coordinator *coordinator, LLVS_OWNED llvs_error **error);
/** Closes and releases the coordinator. Since 0.1. */
LLVS_API void llvs_coordinator_free(LLVS_OWNED llvs_coordinator *coordinator);
/** Returns the store, as a separate handle that the caller frees; closing it closes the coordinator's store as well. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_store(LLVS_BORROWED llvs_coordinator *coordinator, LLVS_OWNED llvs_store **store,
    LLVS_OWNED llvs_error **error);
/**
 * Returns the version that reads and saves start from. It is never empty: in a new store it is the empty root, which is the same
 * everywhere, and which every store can read as an empty state, even before the first save. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_current_version(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED llvs_version_id *version, LLVS_OWNED llvs_error **error);
/**
 * Returns the version at which the coordinator was when it was last used, if the store did not have that version at opening: it is damaged,
 * lost or pending (llvs_statistics.pending). The coordinator then started at the most recent head without a branch, or at the empty root.
 * Verify the store, and exchange; after the version has arrived, llvs_coordinator_set_current_version returns to it.
 * @param version  size 0 if nothing is missing
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_missing_version(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED llvs_version_id *version, LLVS_OWNED llvs_error **error);
/**
 * Moves the current version, for example back in time or to a branch.
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_set_current_version(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes version,
    LLVS_OWNED llvs_error **error);
/**
 * Saves one value as a new version on top of the current version; the new version becomes current. A version is made even if the value has
 * these bytes already. llvs_coordinator_save saves several values at once and has options.
 * @param id       1 to 4096 bytes of UTF-8
 * @param data     the value, at most 1 GiB
 * @param version  receives the new version; may be NULL
 * Errors: LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_TOO_LARGE, LLVS_ERROR_READ_ONLY, storage errors. Any thread. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_put(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes id, llvs_bytes data,
    LLVS_BORROWED llvs_version_id *version, LLVS_OWNED llvs_error **error);
/**
 * Removes one value in a new version on top of the current version; the new version becomes current. Earlier versions keep the value.
 * @param id       the value id; if there is no such value, nothing is stored
 * @param version  receives the new version; size 0 if nothing was stored; may be NULL
 * Errors: LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_READ_ONLY, storage errors. Any thread. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_remove(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes id,
    LLVS_BORROWED llvs_version_id *version, LLVS_OWNED llvs_error **error);
/**
 * Records changes as a new version on top of the current version; the new version becomes current. With a branch in the options, the new
 * version is on top of the most recent head of that branch (of the current version if the branch has no head yet); it becomes current only
 * if that head was current. Concurrent saves are made one on top of the other. If other heads have the same state as the current version, a
 * save may first make versions that join them, at most one for each such head, and save on the last.
 * @param changes, change_count, change_size  as for llvs_store_make_version
 * @param options  branch, metadata, expected version, whether it merges, and time; its id must be empty; may be NULL
 * @param id       receives the new version; size 0 if nothing was stored (no metadata, and no changes except removals of absent values);
 *                 may be NULL
 * @param version  receives a list of the one version, NULL if nothing was stored; may be NULL
 * @param move     how the current version moved: to the new version, or to a merge of it; may be NULL
 * Errors: LLVS_ERROR_MOVED, LLVS_ERROR_DUPLICATE_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID,
 * LLVS_ERROR_INVALID_REFERENCE, LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_UNKNOWN_PREDECESSOR, LLVS_ERROR_VERSION_MISMATCH,
 * LLVS_ERROR_UNPORTABLE_ID (`no_other_readers` of llvs_exchange_options), storage errors; LLVS_ERROR_USER and other errors of a value's
 * `read`. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_save(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_change *changes, size_t change_count, size_t change_size, LLVS_BORROWED const llvs_version_options *options,
    LLVS_BORROWED llvs_version_id *id, LLVS_OWNED llvs_version_list **version, LLVS_BORROWED llvs_move *move,
    LLVS_OWNED llvs_error **error);
/**
 * Returns the value that prevails at the current version. For everything else, read from the store (llvs_coordinator_store), at the current
 * version or any other.
 * @param id              the value id
 * @param data            receives the bytes; its data is NULL if there is no such value. Release with llvs_buffer_dispose
 * @param stored_version  receives the version that stored them (size 0 if there is no such value); may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_value(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes id,
    LLVS_OWNED llvs_buffer *data, LLVS_BORROWED llvs_version_id *stored_version, LLVS_OWNED llvs_error **error);
/**
 * Adds rules for merging to those of the store, as llvs_store_schema describes. Saves them as a version of their own on top of the current
 * version, which moves there. Rules that the store already has are not saved again, so call this at each start of a program.
 *
 * Before the first save (the current version is the empty root) the rules are held in memory while the coordinator is open. They are
 * written directly before the first save, or when the first content that arrives is merged. So devices that start apart with the same rules
 * make the same first version.
 *
 * The rules are also held in memory while the rules of the store have a version that this library does not know: those stay, and are the
 * `problem` of `schema`. Each merge then ends with LLVS_ERROR_UNSUPPORTED, after all its other work.
 * @param rules   a whole value of the kind that is stored under "__llvs_schema"
 * @param move    how the current version moved; may be NULL
 * @param schema  the rules that are valid now, the contradictions, and the new version; may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (the given rules are invalid: llvs_error_path is the JSON pointer to the mistake),
 * LLVS_ERROR_UNSUPPORTED (the given rules have an unknown version), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_UNKNOWN_VERSION,
 * LLVS_ERROR_INVALID_METADATA, storage errors. Nothing is stored or remembered then. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_register_schema(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes rules,
    LLVS_BORROWED llvs_move *move, LLVS_OWNED llvs_schema **schema, LLVS_OWNED llvs_error **error);
/**
 * Reverts the last save of this device (`device` of llvs_coordinator_options) among the ancestors of the current version that was not
 * undone yet. It makes a new version, as llvs_store_revert does, which becomes current: later changes of other devices stay. The save is
 * found in the history, so undo also works after a restart and after syncs. Consecutive saves with the same JSON string under
 * "__llvs_group" in their metadata count as one. A JSON string under "__llvs_description" is returned as `description`.
 *
 * If nothing of the save is left to revert, nothing is stored, the result has no version, and the next call continues with the save before,
 * also in another process. If the save was merged with changes of other devices, and theirs prevail, the result has no version either. But
 * a version without changes records the undo, and becomes current, so that the save does not return if the other devices undo theirs. If
 * this device and another one made the same change, it stays until both have undone it.
 *
 * With a version in the options it reverts that version, of any device. If that version is an undo of this device, the undone save is
 * restored, and is the next one to be undone.
 * @param only_tell  1: nothing is stored; `versions` and `description` of the result say what would be undone
 * @param options    version, parent, metadata and control; may be NULL
 * @param move       how the current version moved; may be NULL
 * @param result     the values that were undone and those that were not; NULL if there is nothing to undo; may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (the coordinator has no device, and no version is given; or the second predecessor of a version that
 * has none), LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER,
 * storage errors. Nothing is stored then. Cost: the versions since that save, and what it changed. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_undo(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bool only_tell,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_BORROWED llvs_move *move, LLVS_OWNED llvs_revert_result **result,
    LLVS_OWNED llvs_error **error);
/**
 * Reverts the last undo of this device, if it saved nothing since. `versions` of the result is that undo.
 * @param only_tell  1: nothing is stored; `versions` and `description` of the result say what would be redone
 * @param options    metadata and control; may be NULL
 * @param move       how the current version moved; may be NULL
 * @param result     the values that were changed and those that were not; NULL if there is nothing to redo; may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (the coordinator has no device), LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_METADATA,
 * LLVS_ERROR_CANCELLED, LLVS_ERROR_USER, storage errors. Nothing is stored then. Cost: the versions since that save, and what it changed.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_redo(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bool only_tell,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_BORROWED llvs_move *move, LLVS_OWNED llvs_revert_result **result,
    LLVS_OWNED llvs_error **error);
/**
 * Attaches an exchange.
 * @param place    a URL as for llvs_exchange_open, under which the exchange's state is stored; with a `host_transport` a name for its
 *                 state, 1 to 40 of [a-z0-9._-], the same in every process
 * @param options  may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (not a URL, a folder that is the store or is in it, or a name that is attached already),
 * LLVS_ERROR_UNSUPPORTED (scheme), LLVS_ERROR_NOT_A_DIRECTORY, LLVS_ERROR_PERMISSION, LLVS_ERROR_READ_ONLY (a read-only medium),
 * LLVS_ERROR_NO_SPACE, LLVS_ERROR_IO, LLVS_ERROR_TOO_MANY_FILES, LLVS_ERROR_BUSY (a transport that serves another exchange),
 * LLVS_ERROR_NOT_FOUND, LLVS_ERROR_TRANSPORT, LLVS_ERROR_KEY_MISSING (an encrypted folder, without keys). Opening sends nothing to a
 * server: the first exchange shows whether it can be reached, and whether the keys fit. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_attach(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes place,
    LLVS_BORROWED const llvs_exchange_options *options, LLVS_OWNED llvs_error **error);
/**
 * Retrieves, then sends, with each attached exchange in turn. Exchanges that failed to reach their place last time come last. The current
 * version does not move, with one exception: a retrieve before the first save moves it from the empty root to the most recent head without
 * a branch.
 *
 * If one of several exchanges fails, the others run nevertheless. The call then ends with the first failure. The result has the work of all
 * exchanges together and of each (`exchanges`). So there is a result, which the caller releases, also with an error, except with
 * LLVS_ERROR_BUSY, LLVS_ERROR_CLOSED and errors in the arguments.
 * @param control  progress and cancellation; may be NULL
 * @param result   may be NULL
 * Errors: LLVS_ERROR_BUSY (from within a callback of a running exchange), LLVS_ERROR_TRANSPORT, LLVS_ERROR_NOT_FOUND (the place does not
 * exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEY_MISSING, LLVS_ERROR_KEYS_FORKED,
 * LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback), storage errors. Since
 * 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_exchange(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Merges heads into the current version; the result becomes current. If the current version moved, exchange again: other devices then get
 * the result, need not make the same merge, and all converge soon (docs/convergence.md).
 * @param options  selection and metadata; may be NULL
 * @param move     how the current version moved; may be NULL
 * Errors: LLVS_ERROR_BUSY (from within a callback of a running exchange or merge), LLVS_ERROR_UNKNOWN_VERSION,
 * LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_UNRESOLVED_CONFLICT, LLVS_ERROR_NO_COMMON_ANCESTOR, LLVS_ERROR_INVALID_REFERENCE,
 * LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_UNSUPPORTED (rules of an unknown version), LLVS_ERROR_USER (from the arbiter, or the progress
 * callback), LLVS_ERROR_CANCELLED, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_merge(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_BORROWED llvs_move *move, LLVS_OWNED llvs_error **error);
/** The result of a sync; immutable, owned. Since 0.1. */
typedef struct llvs_sync_result {
    uint32_t struct_size;
    /** Whether the sync moved the current version. */
    llvs_bool moved;
    /** The current version before and after the sync. */
    llvs_bytes from;
    llvs_bytes to;
    /** The result of all exchanges before the merge. */
    const llvs_exchange_result *before;
    /** The result of all exchanges after the merge; NULL if the merge changed nothing and there was nothing to send. */
    const llvs_exchange_result *after;
    /** Whether the merge moved the current version. */
    llvs_bool merged;
    uint32_t reserved;
} llvs_sync_result;
/** Releases the result, with what it points to. Since 0.1. */
LLVS_API void llvs_sync_result_free(LLVS_OWNED llvs_sync_result *result);
/**
 * Syncs: exchanges (llvs_coordinator_exchange), merges heads (llvs_coordinator_merge), and exchanges again if the merge changed something,
 * so that other devices get the merge without waiting for the next sync.
 * @param options  selection, metadata, and progress and cancellation of all parts; may be NULL
 * @param result   may be NULL. There is one also with an error, as from llvs_coordinator_exchange: without a connection, versions that are
 *                 in the store are merged nevertheless, and the call ends with the first failure of a part.
 * Errors: LLVS_ERROR_BUSY (from within a callback of a running exchange or merge); from an exchange: LLVS_ERROR_TRANSPORT,
 * LLVS_ERROR_NOT_FOUND (the place does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_WRONG_KEY,
 * LLVS_ERROR_KEY_MISSING, LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place); from the merge:
 * LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_UNRESOLVED_CONFLICT, LLVS_ERROR_NO_COMMON_ANCESTOR, LLVS_ERROR_INVALID_REFERENCE,
 * LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_UNSUPPORTED (rules of an unknown version); from both: LLVS_ERROR_CANCELLED, LLVS_ERROR_USER,
 * storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_sync(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_sync_result **result, LLVS_OWNED llvs_error **error);
/**
 * Called after the current version has moved. Since 0.1.
 *   thread     the one whose call moved it, after the work of that call
 *   re-entry   may call the library, also to save, to merge and to free its own observer; an exchange or bootstrap of the same coordinator
 *              is LLVS_ERROR_BUSY if an exchange or bootstrap moved it
 *   pointers   live for the callback only
 *   result     none
 */
typedef void (*llvs_current_version_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_version_id *version);
/** Registers a callback for moves of the current version. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_observe(LLVS_BORROWED llvs_coordinator *coordinator, llvs_current_version_fn fn,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);
/**
 * Registers a callback for new versions at the places of all exchanges that are attached now: called soon after one of the places may have
 * gained some. Several may cause one call; exchange to get them. Exchanges that cannot report changes are skipped.
 * @param fn, payload, payload_free  see "Callbacks" in common.h
 * @param observer  ends the registration when freed
 * Errors: LLVS_ERROR_UNSUPPORTED if none of the exchanges can report changes, LLVS_ERROR_IO. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_observe_exchanges(LLVS_BORROWED llvs_coordinator *coordinator, llvs_notify_fn fn,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);
/**
 * Restores the first usable snapshot of the attached exchanges into a store that is empty or holds one version. If nothing had been saved
 * yet, the current version moves to the most recent head without a branch. A snapshot that is damaged, cannot be read, or has no usable
 * version is skipped; if there is no other, the call returns that error.
 * @param control   progress and cancellation; may be NULL
 * @param restored  whether a snapshot was restored; may be NULL
 * @param move      how the current version moved; may be NULL
 * Errors: LLVS_ERROR_SNAPSHOT_DAMAGED, LLVS_ERROR_FOREIGN_SNAPSHOT, LLVS_ERROR_STORE_NOT_EMPTY, LLVS_ERROR_TRANSPORT, LLVS_ERROR_BUSY (from
 * within a callback of a running exchange), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_bootstrap(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED llvs_bool *restored, LLVS_BORROWED llvs_move *move,
    LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Syncing in the background
 * ------------------------------------------------------------------------------------------------ */

/**
 * Keeps a coordinator in sync with its exchanges automatically: decides when a round of llvs_coordinator_sync is due, runs it on a thread
 * of its own, and reports the result (docs/background-sync.md). It notices saves by the coordinator, other handles and other processes,
 * exchanges that are attached later, and new versions at places. Versions that arrive over a direct connection, from another process or by
 * an import are merged at once, also if no exchange is attached: that is a round, too, and its result has no exchanges. Safe from all
 * threads. Since 0.1.
 */
typedef struct llvs_syncer llvs_syncer;
/** The state of a syncer. Since 0.1. */
typedef uint32_t llvs_sync_state;
enum llvs_sync_state_value {
    /** The syncer has ended: its coordinator was closed. */
    LLVS_SYNC_OFF = 0,
    /** The syncer waits for the next round, or for an event. */
    LLVS_SYNC_IDLE = 1,
    /** A round is running. */
    LLVS_SYNC_RUNNING = 2,
    /** Every place waits: for the network, or for the end of the pause after a failure. */
    LLVS_SYNC_WAITING = 3,
    /** The host paused it, or every place waits for a person to act. */
    LLVS_SYNC_PAUSED = 4
};
/** Why one place, or every place, is not synced. Since 0.1. */
typedef uint32_t llvs_sync_reason;
enum llvs_sync_reason_value {
    /** Nothing keeps it from being synced. */
    LLVS_SYNC_REASON_NONE = 0,
    /** The host said that there is no network. */
    LLVS_SYNC_REASON_OFFLINE = 1,
    /** The server limits the rate of requests. */
    LLVS_SYNC_REASON_RATE_LIMITED = 2,
    /** The folder or server cannot be reached. */
    LLVS_SYNC_REASON_UNREACHABLE = 3,
    /** Another failure; see the error. */
    LLVS_SYNC_REASON_FAILED = 4,
    /**
     * The user, the password or the permissions are refused. If only a person can resolve it (a password, a consent, a payment), there is
     * no retry until LLVS_SYNC_TRIGGER_USER or _FRONT; otherwise there are timed retries, as for other failures. If only sending is
     * refused, it is retried after an hour.
     */
    LLVS_SYNC_REASON_SIGN_IN = 5,
    /**
     * This device or the place is full. Nothing is sent for an hour, or until triggered. Versions of other devices are received as usual,
     * if this device has space.
     */
    LLVS_SYNC_REASON_NO_SPACE = 6,
    /** The other side was written by a newer version of this library: the application needs an update. */
    LLVS_SYNC_REASON_UPDATE_APP = 7,
    /** The host paused the syncer. */
    LLVS_SYNC_REASON_PAUSED = 8,
    /** The place is encrypted, and the passphrase or the identities do not open it (no retry until triggered), or are missing. */
    LLVS_SYNC_REASON_PASSPHRASE = 9,
    /** A place in the packed layout was emptied, or a place belongs to another store: restore it, or join it (docs/exchanges.md). */
    LLVS_SYNC_REASON_REMOTE_RESET = 10,
    /**
     * Another process exchanges with the place for this store. That is not a failure. The place is tried again in the next round, or after
     * 10 seconds (`after_saves`) if there are saves to send.
     */
    LLVS_SYNC_REASON_ALREADY_RUNNING = 11
};
/** An event after which a round may be due. Since 0.1. */
typedef uint32_t llvs_sync_trigger;
enum llvs_sync_trigger_value {
    /** The user requested a sync: a round begins at once, whatever the conditions. */
    LLVS_SYNC_TRIGGER_USER = 1,
    /**
     * The application came to the front, or the network is back or has changed: a round begins at once, unless there was one in the last 5
     * seconds. Failed places are retried.
     */
    LLVS_SYNC_TRIGGER_FRONT = 2,
    /** The place has new versions, for example as a push notification says. */
    LLVS_SYNC_TRIGGER_NEWS = 3
};
/** The conditions of the device, as the host reports them: bits, joined by |. Since 0.1. */
typedef uint32_t llvs_sync_conditions;
enum llvs_sync_conditions_value {
    /** There is no network: no rounds, except at the user's request. */
    LLVS_SYNC_OFFLINE = 1,
    /**
     * Data transfer costs money: timed rounds are four times less frequent, and values of more than 1 MiB in packs are transferred only at
     * the user's request.
     */
    LLVS_SYNC_METERED = 2,
    /** The battery is low: the same restrictions as with LLVS_SYNC_METERED. */
    LLVS_SYNC_LOW_BATTERY = 4,
    /** The application is not in front: no timed rounds, and no timed retries. */
    LLVS_SYNC_BACKGROUND = 8,
    /** No rounds, except at the user's request. */
    LLVS_SYNC_PAUSE = 16
};

/** The status of one attached exchange. Since 0.1. */
typedef struct llvs_sync_place {
    uint32_t struct_size;
    llvs_sync_reason reason;
    /** The URL or name with which it was attached. */
    llvs_bytes place;
    /** The number of consecutive rounds that failed at this place. */
    uint64_t failures;
    /** When the next timed retry is due, in seconds since 1970-01-01 UTC; 0: no failure, or only a person can resolve it. */
    double retry_at;
    /** When the last exchange without a failure ended, in seconds since 1970-01-01 UTC; 0: never. */
    double last_success;
    /** Why the last round failed at this place; NULL if it did not. Borrowed from the status. */
    const llvs_error *error;
    /** Items that could not be received or sent in the last round. */
    const llvs_problem *const *problems;
    size_t problem_count;
    /** The HTTP status of the request that failed in the last round; 0: no response, or no failure. */
    uint32_t http_status;
    /** 1: the next two fields are valid; 0: they are unknown until a round has ended without a failure at this place. */
    llvs_bool knows_pending;
    /** Versions of the store that were not sent yet (may include some that a round sent before it failed). */
    uint64_t pending_versions;
    /** Bytes of the values that these versions stored, uncompressed. */
    uint64_t pending_bytes;
    /** When retrieving, and sending, last ended without a failure, in seconds since 1970-01-01 UTC; 0: never. */
    double last_retrieve;
    double last_send;
    /** Requests of the last round, and the bytes sent and received; 0 if they are not counted. */
    uint64_t requests;
    uint64_t bytes_up;
    uint64_t bytes_down;
    /** Requests, and bytes sent and received, of all rounds since the start of the day (UTC), or of the syncer if that was later. */
    uint64_t requests_today;
    uint64_t bytes_up_today;
    uint64_t bytes_down_today;
    /**
     * For a place in the packed layout: what this device knows about it, as of the last exchange; NULL: nothing, or another layout.
     * Borrowed from the status.
     */
    const llvs_remote *remote;
    /** 1: a person must act before syncing with this place continues; `reason` says why. */
    llvs_bool needs_user;
    uint32_t reserved;
    /**
     * How many files that the place lists could not be read in the last round. A round with such files may end without a failure although
     * nothing arrives.
     */
    uint64_t unread;
    /** Since when there are such files, in seconds since 1970-01-01 UTC; 0: none. */
    double unread_since;
} llvs_sync_place;

/** The status of a syncer; immutable, owned. Since 0.1. */
typedef struct llvs_sync_status {
    uint32_t struct_size;
    llvs_sync_state state;
    /** Why it waits or is paused: the reason of the first place that waits. */
    llvs_sync_reason reason;
    /** Progress of the running round, as in llvs_progress: stage 0 if none runs. */
    uint32_t stage;
    uint64_t completed;
    uint64_t total;
    /** When the next timed round is due, in seconds since 1970-01-01 UTC; 0 if only an event leads to one. */
    double next_round;
    /** When the last round without any failure ended, in seconds since 1970-01-01 UTC; 0: never. */
    double last_success;
    /** Completed rounds, failed ones included. */
    uint64_t rounds;
    /** Versions received and sent in these rounds. */
    uint64_t retrieved;
    uint64_t sent;
    /** Why the last merge failed; NULL if it did not. Borrowed from the status. */
    const llvs_error *merge_error;
    /** One for each attached exchange, in the order of attaching. */
    const llvs_sync_place *const *places;
    size_t place_count;
    /**
     * While packs are retrieved from or sent to a place: bytes transferred so far, and in total. Both begin at 0 in each part of a round,
     * and do not decrease within it. Received bytes are bytes of files, and a large value counts once the pack that names it has arrived;
     * sent bytes are bytes of values. 0 if they are not counted.
     */
    uint64_t bytes_done;
    uint64_t bytes_total;
    /**
     * The orders to erase that count here, by where they stand (llvs_erasure_state): followed, waiting, announced and held. More that are
     * announced or held, or that were followed, are news for the user; llvs_store_erasures lists them.
     */
    uint64_t erasures_followed;
    uint64_t erasures_waiting;
    uint64_t erasures_announced;
    uint64_t erasures_held;
} llvs_sync_status;
/** Releases the status, with all that it points to. Since 0.1. */
LLVS_API void llvs_sync_status_free(LLVS_OWNED llvs_sync_status *status);

/**
 * Receives the status of a syncer: after each round, when its state changes, and at most ten times a second while a round progresses. Since
 * 0.1.
 *   thread     the syncer's, one call at a time
 *   re-entry   may call the library, also to free the syncer; llvs_syncer_run is LLVS_ERROR_BUSY, and while a round runs (`round` is NULL
 *              and the state LLVS_SYNC_RUNNING) so are exchanges and merges of its coordinator
 *   pointers   live for the callback only
 *   result     none
 * @param status  the present status
 * @param round   the result of a round that has just ended, also of a failed one; else NULL. If its `moved` is set, llvs_store_differences
 *                from its `from` to its `to` lists the values that changed
 */
typedef void (*llvs_sync_event_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_sync_status *status,
    LLVS_BORROWED const llvs_sync_result *round);

/** How a syncer works. A delay of 0 means the default. Since 0.1. */
typedef struct llvs_syncer_options {
    uint32_t struct_size;
    /** The initial conditions. */
    llvs_sync_conditions conditions;
    /** Delay between the last save and sending it; ms, 2,000 by default. */
    uint32_t after_save;
    /** Longest delay between the first of several saves and sending them; ms, 10,000 by default. */
    uint32_t after_saves;
    /** Interval of timed rounds, if versions were received or sent in the last 5 minutes; ms, 30,000 by default. */
    uint32_t poll;
    /** Longest interval of timed rounds, if no versions are transferred; ms, 900,000 by default. */
    uint32_t longest_poll;
    /** Longest backoff after consecutive failures; ms, 900,000 by default. */
    uint32_t longest_pause;
    /** Which heads are merged: LLVS_HEADS_UNBRANCHED or LLVS_HEADS_ALL. */
    llvs_head_selection selection;
} llvs_syncer_options;
/** Everything by default. */
#define LLVS_SYNCER_OPTIONS_INIT { (uint32_t)sizeof(llvs_syncer_options), 0, 0, 0, 0, 0, 0, 0 }

/**
 * Starts a syncer, which begins with a round. Use one syncer for a coordinator.
 * @param coordinator  used until the syncer is freed; if it is closed or freed before, the syncer stops
 * @param options      may be NULL
 * @param fn           may be NULL
 * @param payload, payload_free  see "Callbacks" in common.h
 * Errors: LLVS_ERROR_READ_ONLY (the store was opened read-only), LLVS_ERROR_CLOSED, LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_IO if no thread
 * can be started. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_syncer_start(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_syncer_options *options, llvs_sync_event_fn fn, LLVS_OWNED void *payload, llvs_free_fn payload_free,
    LLVS_OWNED llvs_syncer **syncer, LLVS_OWNED llvs_error **error);
/**
 * Reports an event after which a round may be due. Does not wait for the round.
 * Errors: LLVS_ERROR_CLOSED if the coordinator was closed, LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_syncer_trigger(LLVS_BORROWED llvs_syncer *syncer, llvs_sync_trigger trigger,
    LLVS_OWNED llvs_error **error);
/**
 * Sets the conditions. When the application leaves the background or finds a network, call llvs_syncer_trigger with LLVS_SYNC_TRIGGER_FRONT
 * as well.
 * Errors: LLVS_ERROR_CLOSED if the coordinator was closed, LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_syncer_set_conditions(LLVS_BORROWED llvs_syncer *syncer, llvs_sync_conditions conditions,
    LLVS_OWNED llvs_error **error);
/**
 * Runs a round as for LLVS_SYNC_TRIGGER_USER, and waits for its end. Use it when the system lets an application in the background work for
 * a while.
 * @param deadline  ms after which the round is cancelled; parts that were completed stay; 0: no deadline
 * @param control   its token cancels the round; its progress is called on the calling thread; may be NULL
 * @param done      1 if all was done; 0 if the deadline passed, or a place or the merge failed (see the status); may be NULL
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_CLOSED, LLVS_ERROR_BUSY from within an event, LLVS_ERROR_INVALID_ARGUMENT if no exchange is
 * attached, LLVS_ERROR_USER. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_syncer_run(LLVS_BORROWED llvs_syncer *syncer, uint64_t deadline,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED llvs_bool *done, LLVS_OWNED llvs_error **error);
/** Returns the status; release it with llvs_sync_status_free. At any time, also after the syncer has ended. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_syncer_status(LLVS_BORROWED llvs_syncer *syncer, LLVS_OWNED llvs_sync_status **status,
    LLVS_OWNED llvs_error **error);
/**
 * Ends the syncer. A running round is cancelled; its completed parts stay. Waits until no event callback runs any more. If it is called
 * from within a callback, it does not wait. Hold no lock that the callback takes. NULL is a no-op. Since 0.1.
 */
LLVS_API void llvs_syncer_free(LLVS_OWNED llvs_syncer *syncer);

LLVS_LAYOUT(llvs_move, 280);
LLVS_LAYOUT(llvs_sync_result, 64);
LLVS_LAYOUT(llvs_sync_place, 192);
LLVS_LAYOUT(llvs_sync_status, 144);
LLVS_LAYOUT(llvs_syncer_options, 32);
LLVS_LAYOUT(llvs_coordinator_options, 72);

LLVS_END_DECL

#endif

/*
 * llvs_testing.h - for tests of programs that use libllvs, and of storages and transports written for it.
 *
 * It has two parts. Faults: wrap a storage or a transport, also one of the library's own, in another that fails, delays, loses or changes
 * the n-th operation, the same one each time. Suites: the tests that the library's own storages and transports pass, to run on yours.
 * docs/testing-yours.md shows how to use both.
 *
 *     llvs_storage_subject subject = LLVS_STORAGE_SUBJECT_INIT;
 *     llvs_check_report *report;
 *     llvs_error *error;
 *     subject.make = make_storage;                        // returns a storage of yours for a numbered place
 *     if (llvs_check_storage(&subject, &report, &error) != LLVS_OK) return 1;
 *     printf("%zu of %zu checks failed\n", report->failures, report->check_count);
 *     llvs_check_report_free(report);
 *
 * The conventions and the library are those of llvs.h: nothing else has to be linked. The functions of this header have a symbol version of
 * their own and are not frozen with the rest: they may change with any version, and then tests must be recompiled (docs/abi.md).
 */
#ifndef LLVS_TESTING_H
#define LLVS_TESTING_H

#include "llvs.h"

LLVS_BEGIN_DECL

/* ------------------------------------------------------------------------------------------------
 * Storages and transports of the library, to wrap or check
 * ------------------------------------------------------------------------------------------------ */

/**
 * Makes the storage that llvs_store_open would use with this path and these options, for `host_storage` of other options. It is opened when
 * a store is opened on it, read-only if the store is; the files are the same as without it.
 * @param path     as for llvs_store_open
 * @param options  the kind must not be LLVS_STORAGE_HOST; NULL for the defaults. Give the store the same durability
 * @param storage  serves one open store at a time, as all do: LLVS_ERROR_BUSY
 * Errors: LLVS_ERROR_INVALID_UTF8; opening a store on it reports errors of the path. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_testing_storage(llvs_bytes path, LLVS_BORROWED const llvs_store_options *options,
    LLVS_OWNED llvs_storage **storage, LLVS_OWNED llvs_error **error);
/**
 * Makes the transport that llvs_exchange_open would use with this URL and these options, for the `host_transport` of other options.
 * llvs_transport_set_state is LLVS_ERROR_UNSUPPORTED.
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (not a URL), LLVS_ERROR_UNSUPPORTED (scheme), LLVS_ERROR_INVALID_UTF8; opening an exchange on it
 * reports errors of the place. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_testing_transport(llvs_bytes url, LLVS_BORROWED const llvs_exchange_options *options,
    LLVS_OWNED llvs_transport **transport, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Faults
 * ------------------------------------------------------------------------------------------------ */

/** Operations of storages and transports; a set of these, or 0 for all. Since 0.1. */
typedef uint32_t llvs_operations;
enum llvs_operations_value {
    LLVS_OPERATION_APPEND = 1,
    LLVS_OPERATION_SYNC = 2,
    /** Listing records and verifying them. */
    LLVS_OPERATION_SCAN = 4,
    LLVS_OPERATION_READ = 8,
    LLVS_OPERATION_CACHE_GET = 16,
    LLVS_OPERATION_CACHE_PUT = 32,
    LLVS_OPERATION_CACHE_DELETE = 64,
    /** Large values that the file storage writes outside its records. */
    LLVS_OPERATION_BLOB_WRITE = 128,
    LLVS_OPERATION_BLOB_READ = 256,
    LLVS_OPERATION_OPEN = 512,
    LLVS_OPERATION_CLOSE = 1024,
    /** All operations of storages. */
    LLVS_OPERATIONS_STORAGE = 65535,

    LLVS_OPERATION_LIST = 65536,
    LLVS_OPERATION_FETCH_VERSIONS = 131072,
    LLVS_OPERATION_FETCH_CHANGES = 262144,
    LLVS_OPERATION_SEND = 524288,
    LLVS_OPERATION_SNAPSHOT_LIST = 1048576,
    LLVS_OPERATION_SNAPSHOT_READ = 2097152,
    LLVS_OPERATION_SNAPSHOT_WRITE = 4194304,
    LLVS_OPERATION_SNAPSHOT_DELETE = 8388608,
    /** All operations of transports. */
    LLVS_OPERATIONS_TRANSPORT = 2147418112
};

/**
 * The kind of a fault. If a kind does not apply to an operation, the operation fails as with LLVS_FAULT_FAIL.
 *
 * Storages of the library check what they read. If one of these is wrapped, reading changed, cut short or absent records fails with
 * LLVS_ERROR_DAMAGED, and such caches count as absent. If a storage of the host is wrapped, bytes are really changed, below the checksums
 * of the store. Since 0.1.
 */
typedef uint32_t llvs_fault_kind;
enum llvs_fault_kind_value {
    /** Nothing is done, and the operation fails. */
    LLVS_FAULT_FAIL = 0,
    /** The operation is done, and still fails: the acknowledgement is lost. */
    LLVS_FAULT_LOSE_ACKNOWLEDGEMENT = 1,
    /**
     * A part is done, and the operation fails: half of the records of an append, some of the versions of a send. A fetch returns a part and
     * succeeds, which is allowed.
     */
    LLVS_FAULT_PARTIAL = 2,
    /** A bit of the bytes read or written is changed; a listing contains a name that does not exist. */
    LLVS_FAULT_CORRUPT = 3,
    /** The bytes read or written, or the listing, end too early. */
    LLVS_FAULT_CUT = 4,
    /** Reads find nothing; writes are dropped and report success. A sync does nothing. */
    LLVS_FAULT_ABSENT = 5,
    /** Only the delay. */
    LLVS_FAULT_DELAY = 6
};

/** One rule of a plan. All zero: every operation fails. Since 0.1. */
typedef struct llvs_fault {
    uint32_t struct_size;
    llvs_fault_kind kind;
    /** The operations to which the rule applies; 0: all. */
    llvs_operations operations;
    /**
     * The code of failing operations, below zero; 0: LLVS_ERROR_TRANSPORT for transports, LLVS_ERROR_IO for storages, and
     * LLVS_ERROR_UNKNOWN_OUTCOME for an append whose acknowledgement is lost.
     */
    llvs_status code;
    /** The first operation to which it applies, counted from 1 among `operations` since the plan was made or reset; 0: 1. */
    uint64_t first;
    /** The number of operations to which the rule applies from `first` on; 0: all. With 1, only to operation number `first`. */
    uint64_t count;
    /** The probability with which the rule applies to each of these operations, drawn from the seed of the plan: above 0, up to 1; 0: 1. */
    double probability;
    /** The delay before the operation; at most 3,600,000. */
    uint32_t delay_milliseconds;
    uint32_t reserved;
} llvs_fault;
#define LLVS_FAULT_INIT { (uint32_t)sizeof(llvs_fault), 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * A plan: which operations of the storages and transports that are wrapped with it fail, and how. It counts the operations of all of them
 * together. Safe from all threads; if several threads work, the n-th operation may be of any of them. Since 0.1.
 */
typedef struct llvs_faults llvs_faults;
/** Makes a plan without rules: nothing fails, everything is counted. The same seed makes the same faults. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_faults_create(uint64_t seed, LLVS_OWNED llvs_faults **faults, LLVS_OWNED llvs_error **error);
/** Adds a rule. If several match an operation, the one that was added first applies. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_faults_add(LLVS_BORROWED llvs_faults *faults, LLVS_BORROWED const llvs_fault *fault,
    LLVS_OWNED llvs_error **error);
/** Removes all rules; counting continues. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_faults_clear(LLVS_BORROWED llvs_faults *faults, LLVS_OWNED llvs_error **error);
/** Counts from 0 again; the rules stay. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_faults_reset(LLVS_BORROWED llvs_faults *faults, LLVS_OWNED llvs_error **error);
/** Returns how many of these operations there were since the plan was made or reset; 0 for `operations`: of all. Since 0.1. */
LLVS_API uint64_t llvs_faults_count(LLVS_BORROWED const llvs_faults *faults, llvs_operations operations);
/** Returns how many faults were injected since then. Since 0.1. */
LLVS_API uint64_t llvs_faults_injected(LLVS_BORROWED const llvs_faults *faults);
/** Returns the last fault, for messages: "append 7 of the store at /x: fail"; empty if there was none. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_faults_last(LLVS_BORROWED const llvs_faults *faults, LLVS_OWNED llvs_buffer *text,
    LLVS_OWNED llvs_error **error);
/** Releases the plan; wrapped storages and transports keep it alive. Since 0.1. */
LLVS_API void llvs_faults_free(LLVS_OWNED llvs_faults *faults);

/** Makes a storage that works as `inner` does, which it keeps alive, and fails as planned. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_faults_storage(LLVS_BORROWED llvs_faults *faults, LLVS_BORROWED llvs_storage *inner,
    LLVS_OWNED llvs_storage **storage, LLVS_OWNED llvs_error **error);
/** Makes a transport that works as `inner` does, which it keeps alive, and fails as planned. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_faults_transport(LLVS_BORROWED llvs_faults *faults, LLVS_BORROWED llvs_transport *inner,
    LLVS_OWNED llvs_transport **transport, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Conformance of storages and transports
 * ------------------------------------------------------------------------------------------------ */

/** The outcome of a check. Since 0.1. */
typedef uint32_t llvs_check_outcome;
enum llvs_check_outcome_value {
    /** The storage or transport has the property. */
    LLVS_CHECK_PASSED = 1,
    /** The storage or transport lacks the property, although it promises it. */
    LLVS_CHECK_FAILED = 2,
    /** The storage or transport does not promise this property. */
    LLVS_CHECK_SKIPPED = 3
};
/** One check of a suite. Since 0.1. */
typedef struct llvs_check {
    uint32_t struct_size;
    llvs_check_outcome outcome;
    /** The checked property, as a sentence that is true if it passed: "records are read back". */
    llvs_bytes name;
    /** Why it failed or was skipped; empty if it passed. */
    llvs_bytes message;
} llvs_check;

/** The report of a suite; immutable, owned. Since 0.1. */
typedef struct llvs_check_report {
    uint32_t struct_size;
    uint32_t reserved;
    /** The checks, in the order in which they ran, skipped ones included. */
    const llvs_check *const *checks;
    size_t check_count;
    /** The number of failed checks. */
    size_t failures;
} llvs_check_report;
/** Releases the report. Since 0.1. */
LLVS_API void llvs_check_report_free(LLVS_OWNED llvs_check_report *report);

/**
 * Makes a storage over a place, which is identified by a number. The first time that a number is passed, the place is empty; later it has
 * its contents. Each check has a number of its own, and calls again to reopen the place, or to open it a second time. Since 0.1.
 *   thread     the one that called llvs_check_storage
 *   re-entry   may call the library
 *   result     LLVS_OK with a storage, which the suite closes and releases; all else: the check fails with that
 */
typedef llvs_status (*llvs_make_storage_fn)(LLVS_BORROWED void *payload, uint64_t place, LLVS_OWNED llvs_storage **storage,
    LLVS_OWNED llvs_error **error);
/** Makes a transport to a place, in the same way as llvs_make_storage_fn makes a storage. Called by llvs_check_transport. Since 0.1. */
typedef llvs_status (*llvs_make_transport_fn)(LLVS_BORROWED void *payload, uint64_t place, LLVS_OWNED llvs_transport **transport,
    LLVS_OWNED llvs_error **error);

/** What llvs_disturb_fn does to a place. Since 0.1. */
typedef uint32_t llvs_disturbance;
enum llvs_disturbance_value {
    /** From now on the medium of the place refuses writes, and a transport cannot reach it. */
    LLVS_DISTURBANCE_FAIL = 1,
    /** It works again. */
    LLVS_DISTURBANCE_MEND = 2,
    /** Everything that was not synced is lost. The suite closes the storages that have the place open next. */
    LLVS_DISTURBANCE_POWER_CUT = 3
};
/**
 * Disturbs a place. The layer below the storage or transport under test must fail, not the storage or transport itself: so the suite sees
 * whether it reports the failure. Since 0.1.
 *   thread     the one that called the suite
 *   re-entry   may call the library
 *   result     LLVS_OK; LLVS_ERROR_UNSUPPORTED: the check is skipped; all else: it fails
 */
typedef llvs_status (*llvs_disturb_fn)(LLVS_BORROWED void *payload, uint64_t place, llvs_disturbance disturbance,
    LLVS_OWNED llvs_error **error);
/**
 * Called when a check has ended. Since 0.1.
 *   thread     the one that called the suite
 *   pointers   live for the callback only
 *   result     LLVS_OK: continue; all else: the suite ends with that, as LLVS_ERROR_USER or LLVS_ERROR_CANCELLED
 */
typedef llvs_status (*llvs_check_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_check *check, LLVS_OWNED llvs_error **error);

/** Promises that a storage or transport does not make, or makes in addition; a set of these. Since 0.1. */
typedef uint32_t llvs_traits;
enum llvs_traits_value {
    /** A storage: its contents are lost when it is closed. */
    LLVS_TRAIT_VOLATILE = 1,
    /** A place can be open only once at a time. */
    LLVS_TRAIT_EXCLUSIVE = 2,
    /** A transport: it reports to observers (llvs_transport_notify) that another device sent versions to the place. */
    LLVS_TRAIT_TELLS = 4,
    /** A transport: it does not support snapshots. */
    LLVS_TRAIT_NO_SNAPSHOTS = 8
};

/** A storage to check. Nothing is registered: the caller owns the payload. Since 0.1. */
typedef struct llvs_storage_subject {
    uint32_t struct_size;
    llvs_traits traits;
    llvs_make_storage_fn make;
    /** May be NULL: checks that need it are skipped. */
    llvs_disturb_fn disturb;
    /** May be NULL. */
    llvs_check_fn finished;
    /** Passed to the callbacks. */
    void *payload;
    /** Run only the checks whose names contain this; empty: all. */
    llvs_bytes only;
} llvs_storage_subject;
#define LLVS_STORAGE_SUBJECT_INIT { (uint32_t)sizeof(llvs_storage_subject), 0, 0, 0, 0, 0, LLVS_NONE_INIT }
/**
 * Runs the suite that the storages of the library pass. Failed checks are not errors of this call: see llvs_check_report.failures. (The
 * call waits for a storage that never returns, and is not protected from one that writes to foreign memory.)
 * @param report  may be NULL if `finished` is set
 * Errors: LLVS_ERROR_USER, LLVS_ERROR_CANCELLED (from `finished`). Cost: seconds, and some tens of MiB of records.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_check_storage(LLVS_BORROWED const llvs_storage_subject *subject,
    LLVS_OWNED llvs_check_report **report, LLVS_OWNED llvs_error **error);
/** Returns the name of a check of that suite; NULL beyond the last. Static. Since 0.1. */
LLVS_API const char *llvs_check_storage_name(size_t index);

/** A transport to check. Nothing is registered: the caller owns the payload. Since 0.1. */
typedef struct llvs_transport_subject {
    uint32_t struct_size;
    llvs_traits traits;
    llvs_make_transport_fn make;
    /** May be NULL: checks that need it are skipped. */
    llvs_disturb_fn disturb;
    /** May be NULL. */
    llvs_check_fn finished;
    /** Passed to the callbacks. */
    void *payload;
    /** Run only the checks whose names contain this; empty: all. */
    llvs_bytes only;
} llvs_transport_subject;
#define LLVS_TRANSPORT_SUBJECT_INIT { (uint32_t)sizeof(llvs_transport_subject), 0, 0, 0, 0, 0, LLVS_NONE_INIT }
/**
 * Runs the suite that the transports of the library pass. Failed checks are not errors of this call: see llvs_check_report.failures.
 * @param report  may be NULL if `finished` is set
 * Errors: LLVS_ERROR_USER, LLVS_ERROR_CANCELLED (from `finished`). Cost: seconds, and some 60 MB. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_check_transport(LLVS_BORROWED const llvs_transport_subject *subject,
    LLVS_OWNED llvs_check_report **report, LLVS_OWNED llvs_error **error);
/** Returns the name of a check of that suite; NULL beyond the last. Static. Since 0.1. */
LLVS_API const char *llvs_check_transport_name(size_t index);

/**
 * Runs the suite that all places of named files of the library pass: folders, and servers over WebDAV, S3 and SFTP. `make` returns
 * transports made by llvs_transport_create_on_files, or by llvs_testing_transport with a URL other than memory: (one without files fails
 * each check). Of the traits only LLVS_TRAIT_EXCLUSIVE is used. Failed checks are not errors of this call: see llvs_check_report.failures.
 * @param report  may be NULL if `finished` is set
 * Errors: LLVS_ERROR_USER, LLVS_ERROR_CANCELLED (from `finished`). Cost: seconds, 1,800 files, and some 60 MB. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_check_files(LLVS_BORROWED const llvs_transport_subject *subject,
    LLVS_OWNED llvs_check_report **report, LLVS_OWNED llvs_error **error);
/** Returns the name of a check of that suite; NULL beyond the last. Static. Since 0.1. */
LLVS_API const char *llvs_check_files_name(size_t index);

/* Layouts: no hidden padding, the same everywhere. */
LLVS_LAYOUT(llvs_fault, 48);
LLVS_LAYOUT(llvs_check, 40);
LLVS_LAYOUT(llvs_check_report, 32);
LLVS_LAYOUT(llvs_storage_subject, 56);
LLVS_LAYOUT(llvs_transport_subject, 56);

LLVS_END_DECL

#endif

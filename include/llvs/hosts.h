/*
 * llvs/hosts.h - storages and transports that the host implements.
 *
 * A host implements a set of callbacks, makes a storage or a transport of them, and opens a store or an exchange with that. There are three
 * such sets: llvs_storage_callbacks (where the records of a store are), llvs_files_callbacks (a place that holds named files, such as a
 * service that the library does not support) and llvs_transport_callbacks (a place that holds the files of versions in its own way).
 *
 *     llvs_files_callbacks callbacks = LLVS_FILES_CALLBACKS_INIT;
 *     llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
 *     llvs_exchange *exchange;
 *     llvs_error *error;
 *     callbacks.list = list_files;
 *     callbacks.read = read_file;
 *     callbacks.publish = publish_file;
 *     callbacks.remove = remove_file;
 *     if (llvs_transport_create_on_files(llvs_str("our service"), &callbacks, service, NULL, &options.host_transport, &error) != LLVS_OK ||
 *         llvs_exchange_open(store, LLVS_NONE, &options, &exchange, &error) != LLVS_OK) return 1;
 *     llvs_transport_free(options.host_transport);       // the exchange keeps it alive
 *
 * CAVEATS
 *
 *  - A callback must not report success before its work is done: a store relies on it.
 *  - Callbacks may run on any thread, one at a time for each storage or transport.
 *  - llvs_testing.h has suites that check an implementation.
 *
 * llvs.h has an overview, and llvs/common.h the conventions.
 */
#ifndef LLVS_HOSTS_H
#define LLVS_HOSTS_H

#include "exchange.h"

LLVS_BEGIN_DECL

/* ------------------------------------------------------------------------------------------------
 * Replies of callbacks
 * ------------------------------------------------------------------------------------------------ */

/** Adds an item to a list: a name. Copied. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_reply_add(LLVS_BORROWED llvs_reply *reply, llvs_bytes item, LLVS_OWNED llvs_error **error);
/** Sets the reply to question number `index` (0 if there is only one). A question without a reply counts as absent. Copied. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_reply_set(LLVS_BORROWED llvs_reply *reply, size_t index, llvs_bytes data,
    LLVS_OWNED llvs_error **error);
/**
 * Replies to a question of fetch_changes or fetch_versions with a file that is read in pieces, so that large ones need not be in memory as
 * a whole. It is read later, at most once, while the transport has no other call.
 * @param size  bytes in the file, if known; 0: unknown
 * @param read  supplies the next bytes: as for llvs_value_source, but on the thread of the exchange's call, after the callback has
 *              returned. LLVS_ERROR_IO, _PERMISSION and _NOT_FOUND make a problem of this one version; all else ends the exchange, as if a
 *              callback of the transport had failed
 * @param payload, payload_free  see "Callbacks" in common.h; freed when the file has been read, or is not needed
 * Errors: LLVS_ERROR_INVALID_ARGUMENT for an index without a question. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_reply_set_source(LLVS_BORROWED llvs_reply *reply, size_t index, uint64_t size, llvs_read_fn read,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_error **error);
/**
 * Reports a record to a storage's scan.
 * @param place   the host's number for the record
 * @param size    bytes in the record
 * @param prefix  its first bytes: all if there are at most 65536, else at least 65536. Copied
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_reply_record(LLVS_BORROWED llvs_reply *reply, uint64_t place, uint64_t size, llvs_bytes prefix,
    LLVS_OWNED llvs_error **error);
/** Returns whether the token of the call behind this callback was cancelled: then return LLVS_ERROR_CANCELLED soon. Since 0.1. */
LLVS_API llvs_bool llvs_reply_is_cancelled(LLVS_BORROWED const llvs_reply *reply);

/* ------------------------------------------------------------------------------------------------
 * A storage of the host
 * ------------------------------------------------------------------------------------------------ */

/**
 * Stores the records of a store in any way that the host chooses. A record is opaque bytes under a number, its place, which the host
 * chooses. Since 0.1.
 *   thread     any, one call at a time per storage
 *   re-entry   a call of the store that uses the storage is LLVS_ERROR_BUSY
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK; all else: the call behind this callback fails with LLVS_ERROR_USER and the error in `error` (by llvs_error_create;
 *              optional); LLVS_ERROR_NO_SPACE, _PERMISSION, _IO, _DAMAGED, _READ_ONLY, _NOT_FOUND, _BUSY and _TOO_MANY_FILES keep their
 *              code, and so does LLVS_ERROR_UNKNOWN_OUTCOME, for an append of which it is unknown whether the records are stored
 *   Records contain checksums, and the library checks what it reads: changed bytes are reported as damage, never returned as values. All
 *   callbacks are required, except where a comment says otherwise.
 */
typedef struct llvs_storage_callbacks {
    uint32_t struct_size;
    uint32_t reserved;
    /**
     * Stores `count` records, all or none, also if there is a crash. Sets places[i] for each, to any number except UINT64_MAX. A place that
     * is not set is LLVS_ERROR_UNKNOWN_OUTCOME, since it is unknown what was stored.
     */
    llvs_status (*append)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *records, size_t count,
                          LLVS_BORROWED uint64_t *places, LLVS_OWNED llvs_error **error);
    /**
     * Reports (llvs_reply_record) the records after `*mark`, by whatever process they were appended, in any order, and moves the mark. The
     * host defines the mark; it is 0 the first time. Called again until it reports nothing or does not move the mark: so it may report all
     * at once, or a part of them each time. A record may be reported again.
     */
    llvs_status (*scan)(LLVS_BORROWED void *payload, LLVS_BORROWED uint64_t *mark, LLVS_BORROWED llvs_reply *reply,
        LLVS_OWNED llvs_error **error);
    /** Copies `size` bytes of the record from `offset` on; LLVS_ERROR_DAMAGED if the record is shorter. */
    llvs_status (*read)(LLVS_BORROWED void *payload, uint64_t place, uint64_t offset, LLVS_BORROWED uint8_t *buffer, size_t size,
        LLVS_OWNED llvs_error **error);
    /** Makes appended records safe from a power cut. If it fails in any way, the call returns LLVS_ERROR_UNKNOWN_OUTCOME. May be NULL. */
    llvs_status (*sync)(LLVS_BORROWED void *payload, LLVS_OWNED llvs_error **error);
    /** Called when the store has finished with the storage. A store may be opened with it again. May be NULL. */
    llvs_status (*close)(LLVS_BORROWED void *payload, LLVS_OWNED llvs_error **error);
    /**
     * Replies to question 0 with the cache blob of that name, or not at all if there is none. Give all three cache callbacks, or none;
     * without them cache blobs last as long as the storage is open.
     */
    llvs_status (*cache_get)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_BORROWED llvs_reply *reply,
        LLVS_OWNED llvs_error **error);
    llvs_status (*cache_put)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_BORROWED const llvs_bytes *data,
        LLVS_OWNED llvs_error **error);
    llvs_status (*cache_delete)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_OWNED llvs_error **error);
} llvs_storage_callbacks;
#define LLVS_STORAGE_CALLBACKS_INIT { (uint32_t)sizeof(llvs_storage_callbacks), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/**
 * Makes a storage for llvs_store_options.host_storage. It serves one open store at a time: LLVS_ERROR_BUSY.
 * @param name       for messages: "the storage <name>"; may be empty
 * @param callbacks  copied
 * @param payload, payload_free  see "Callbacks" in common.h
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_storage_create(llvs_bytes name, LLVS_BORROWED const llvs_storage_callbacks *callbacks,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_storage **storage, LLVS_OWNED llvs_error **error);
/** Releases the storage; a store that uses it keeps it alive. Since 0.1. */
LLVS_API void llvs_storage_free(LLVS_OWNED llvs_storage *storage);

/* ------------------------------------------------------------------------------------------------
 * A transport of the host
 * ------------------------------------------------------------------------------------------------ */

/** The two files of one version, to publish. Since 0.1. */
typedef struct llvs_exchange_files {
    uint32_t struct_size;
    uint32_t reserved;
    /** The version id. */
    llvs_bytes name;
    /** The file versions/<name>. */
    llvs_bytes version;
    /** The file changes/<name>. */
    llvs_bytes changes;
} llvs_exchange_files;

/** A large file to publish, made piece by piece; lives for the callback only. Since 0.1. */
typedef struct llvs_outgoing llvs_outgoing;
/** Returns the size of the file in bytes. Since 0.1. */
LLVS_API uint64_t llvs_outgoing_size(LLVS_BORROWED const llvs_outgoing *outgoing);
/**
 * Calls `write` with each piece of the file, in order. May be called again, with the same bytes from the start.
 * Errors: those of `write`; LLVS_ERROR_DAMAGED and other storage errors, which the callback of the transport returns unchanged. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_outgoing_write(LLVS_BORROWED llvs_outgoing *outgoing, llvs_write_fn write,
    LLVS_BORROWED void *payload, LLVS_OWNED llvs_error **error);

/**
 * Moves version files to and from any place of the host. A transport moves bytes and need not interpret them. Since 0.1.
 *   thread     any, one call at a time per transport
 *   re-entry   may call the library, but not the exchange that uses it
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK; all else: the exchange ends with LLVS_ERROR_USER and the error in `error` (by llvs_error_create; optional);
 *              LLVS_ERROR_TRANSPORT, _PERMISSION, _NO_SPACE, _IO, _CANCELLED keep their code. A missing file is not an error
 *   All callbacks are required, except where a comment says otherwise.
 */
typedef struct llvs_transport_callbacks {
    uint32_t struct_size;
    uint32_t reserved;
    /** Adds (llvs_reply_add) the names of all version files on the other side, in any order; foreign names may be among them. */
    llvs_status (*list)(LLVS_BORROWED void *payload, LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /** Replies (llvs_reply_set) to each name with its version file. */
    llvs_status (*fetch_versions)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *names, size_t count,
        LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /** Replies (llvs_reply_set, for large files llvs_reply_set_source) to each name with its changes file. */
    llvs_status (*fetch_changes)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *names, size_t count,
        LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /**
     * Publishes files in order, the changes file of a version before its version file, each whole or not at all; existing ones are
     * replaced. The reply is for llvs_reply_is_cancelled only.
     */
    llvs_status (*send)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_exchange_files *const *files, size_t count,
        LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /**
     * Adds the names of all snapshot files. Give all four snapshot callbacks, or none; without them snapshots are LLVS_ERROR_UNSUPPORTED.
     * Names are like "manifest.json" and "chunk-000", also with one folder in front.
     */
    llvs_status (*snapshot_list)(LLVS_BORROWED void *payload, LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /** Replies to question 0 with the file, or not at all if it is missing. */
    llvs_status (*snapshot_read)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_BORROWED llvs_reply *reply,
        LLVS_OWNED llvs_error **error);
    llvs_status (*snapshot_write)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_BORROWED const llvs_bytes *data,
        LLVS_OWNED llvs_error **error);
    llvs_status (*snapshot_delete)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_OWNED llvs_error **error);
    /** Called when the exchange has finished with the transport. May be NULL. */
    llvs_status (*close)(LLVS_BORROWED void *payload, LLVS_OWNED llvs_error **error);
    /**
     * Publishes the two files of one version whose changes file has more than 1 MiB, as `send` does: reads the changes file with
     * llvs_outgoing_write. May be NULL: then `send` gets it, in memory as a whole.
     */
    llvs_status (*send_large)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_BORROWED const llvs_bytes *version,
                              LLVS_BORROWED llvs_outgoing *changes, LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /**
     * Adds (llvs_reply_add) those of the given names for which the transport knows, without fetching, that one of the two files is missing,
     * empty or cut short. llvs_exchange_send writes them again. It passes up to 1000 of the versions that are listed and in the store;
     * after a retrieve found a version file in the form of earlier builds (docs/interchange.md), it passes all, once, 1000 at a time. Other
     * names in the reply are ignored. May be NULL, for places where a file exists whole or not at all, or that cannot find out: then
     * llvs_exchange_verify finds such files.
     */
    llvs_status (*unusable)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *names, size_t count,
        LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
} llvs_transport_callbacks;
#define LLVS_TRANSPORT_CALLBACKS_INIT { (uint32_t)sizeof(llvs_transport_callbacks), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/**
 * Makes a transport for the `host_transport` of llvs_exchange_options.
 * @param name       for messages: "the transport <name>"; may be empty
 * @param callbacks  copied
 * @param payload, payload_free  see "Callbacks" in common.h
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_transport_create(llvs_bytes name, LLVS_BORROWED const llvs_transport_callbacks *callbacks,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_transport **transport, LLVS_OWNED llvs_error **error);
/**
 * Reports that the other side may have gained versions: calls the observers of the exchange. Any thread, also from a callback. LLVS_OK if
 * there are none. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_transport_notify(LLVS_BORROWED llvs_transport *transport, LLVS_OWNED llvs_error **error);
/**
 * Returns the state that the transport needs in a later process. The host may read and set it at any time; see
 * llvs_exchange_restoration_state. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_transport_state(LLVS_BORROWED llvs_transport *transport, LLVS_OWNED llvs_buffer *state,
    LLVS_OWNED llvs_error **error);
/** Sets that state; copied. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_transport_set_state(LLVS_BORROWED llvs_transport *transport, llvs_bytes state,
    LLVS_OWNED llvs_error **error);
/** Releases the transport; an exchange that uses it keeps it alive. Since 0.1. */
LLVS_API void llvs_transport_free(LLVS_OWNED llvs_transport *transport);

/* ------------------------------------------------------------------------------------------------
 * Files of the host
 * ------------------------------------------------------------------------------------------------ */

/** Limitations of a host's files; a set of these. Since 0.1. */
typedef uint32_t llvs_files_traits;
enum llvs_files_traits_value {
    /** `read` returns whole files only. */
    LLVS_FILES_WITHOUT_RANGES = 1,
    /** If two devices publish one name at once, `publish` may succeed for both. */
    LLVS_FILES_NOT_EXCLUSIVE = 2
};

/**
 * A place of the host that holds named files, such as a service that the library does not support. The library stores versions there as at
 * any server, in packs or in single files (llvs_exchange_options.layout), and encrypted if keys are given (docs/remote-files.md). Since
 * 0.1.
 *
 * A name is a path like "pack1/log/abc": components of letters, digits, '.', '_' and '-', at most 128 bytes each and no dot in front, with
 * '/' between them. A directory is a name without its last component; it exists if it contains a file. A file exists whole or not at all,
 * and is never changed in part.
 *   thread     any, one call at a time per transport
 *   re-entry   may call the library, but not the exchange that uses it
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK; all else: the exchange ends with LLVS_ERROR_USER and the error in `error` (by llvs_error_create; optional);
 *              LLVS_ERROR_TRANSPORT, _PERMISSION, _NO_SPACE, _IO, _BUSY, _CANCELLED keep their code. A missing file is not an error
 *   All callbacks except `close` are required. llvs_check_files (llvs_testing.h) tests them.
 */
typedef struct llvs_files_callbacks {
    uint32_t struct_size;
    llvs_files_traits traits;
    /**
     * Adds (llvs_reply_file) all files of a directory by their last components, in any order; none if there is no such directory.
     * Directories in it may be added, but not their contents. Foreign names may be among them.
     */
    llvs_status (*list)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *directory, LLVS_BORROWED llvs_reply *reply,
        LLVS_OWNED llvs_error **error);
    /**
     * Replies to question 0 (llvs_reply_set, for large files llvs_reply_set_source) with the file, or not at all if it is missing. With a
     * `size` other than 0, replies with that many bytes from `offset` on, or fewer or none if the file ends before. LLVS_ERROR_IO is a
     * problem of that one file.
     */
    llvs_status (*read)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, uint64_t offset, uint64_t size,
        LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /**
     * Makes a file with the bytes of llvs_outgoing_write, and the directories above it, so that readers never see a part of it. `replaces`
     * 1: an existing file of that name is replaced; 0: it stays, and the result is LLVS_PASS. LLVS_ERROR_FOREIGN_FILE: something other than
     * a file has the name, which is a problem of that one file. The reply is for llvs_reply_is_cancelled only.
     */
    llvs_status (*publish)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, llvs_bool replaces,
        LLVS_BORROWED llvs_outgoing *file, LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /** Removes a file; a missing file is not an error. */
    llvs_status (*remove)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_OWNED llvs_error **error);
    /** Called when the exchange has finished with the files. May be NULL. */
    llvs_status (*close)(LLVS_BORROWED void *payload, LLVS_OWNED llvs_error **error);
} llvs_files_callbacks;
#define LLVS_FILES_CALLBACKS_INIT { (uint32_t)sizeof(llvs_files_callbacks), 0, 0, 0, 0, 0, 0 }

/**
 * Adds to a list: a file, or a directory.
 * @param name          its last component; copied
 * @param size          bytes in it; ignored for a directory
 * @param is_directory  1 for a directory
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_reply_file(LLVS_BORROWED llvs_reply *reply, llvs_bytes name, uint64_t size, llvs_bool is_directory,
    LLVS_OWNED llvs_error **error);

/**
 * Makes a transport over such files, for the `host_transport` of llvs_exchange_options, whose `layout` and keys apply.
 * llvs_transport_set_state is LLVS_ERROR_UNSUPPORTED: what the library remembers about the place is stored beside the store.
 * @param name       for messages ("the files <name>"), and to identify what a store remembers about the place: the same in every process,
 *                   and different for each place; not empty
 * @param callbacks  copied
 * @param payload, payload_free  see "Callbacks" in common.h
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (no name, a callback is missing), LLVS_ERROR_INVALID_UTF8. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_transport_create_on_files(llvs_bytes name, LLVS_BORROWED const llvs_files_callbacks *callbacks,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_transport **transport, LLVS_OWNED llvs_error **error);

LLVS_LAYOUT(llvs_storage_callbacks, 72);
LLVS_LAYOUT(llvs_exchange_files, 56);
LLVS_LAYOUT(llvs_transport_callbacks, 96);
LLVS_LAYOUT(llvs_files_callbacks, 48);

LLVS_END_DECL

#endif

/*
 * llvs/store.h - stores: opening, saving versions, reading their history, their values and what changed.
 *
 * Each save names the version that it is made on, and gives a new version. Values are read at a version:
 *
 *     llvs_store *store;
 *     llvs_version_id head = { 0, "" };           // no version yet
 *     llvs_change change = LLVS_CHANGE_INIT;
 *     llvs_buffer text;
 *     llvs_error *error;
 *     change.kind = LLVS_CHANGE_INSERT;
 *     change.id = llvs_str("note/1");
 *     change.data = llvs_str("hello");
 *     if (llvs_store_open(llvs_str("notes.llvs"), NULL, &store, &error) != LLVS_OK ||
 *         llvs_store_make_version(store, llvs_id(&head), &change, 1, sizeof change, NULL, &head, NULL, &error) != LLVS_OK ||
 *         llvs_store_value(store, llvs_str("note/1"), llvs_id(&head), &text, NULL, &error) != LLVS_OK) {
 *         fprintf(stderr, "%s\n", llvs_error_message(error));
 *         llvs_error_free(error);
 *     } else {
 *         printf("%s\n", (const char *)text.data);
 *         llvs_buffer_dispose(&text);
 *     }
 *     llvs_store_free(store);
 *
 * CAVEATS
 *
 *  - A version without a predecessor has an empty state of its own. In a store that has versions, start from one of them: llvs_store_heads.
 *  - A handle sees the versions of other handles and processes after llvs_store_reload, or soon, if llvs_store_observe watches the store.
 *  - A removed value stays readable at earlier versions.
 *
 * llvs.h has an overview, and llvs/common.h the conventions.
 */
#ifndef LLVS_STORE_H
#define LLVS_STORE_H

#include "common.h"

LLVS_BEGIN_DECL

/* ------------------------------------------------------------------------------------------------
 * Changes, versions and values
 * ------------------------------------------------------------------------------------------------ */

/** One entry of a version's metadata. Since 0.1. */
typedef struct llvs_metadata_entry {
    /** UTF-8, 1 to 4096 bytes. "__llvs_branch" holds the name of a branch as a JSON string. */
    llvs_bytes key;
    /** By convention a JSON document; other bytes are kept unchanged. */
    llvs_bytes value;
} llvs_metadata_entry;

/** The kind of change that a version records for one value. Since 0.1. */
typedef uint32_t llvs_change_kind;
enum llvs_change_kind_value {
    /** Sets the value. Insert and update do the same; the record gets the label that is correct. */
    LLVS_CHANGE_INSERT = 1,
    /** As LLVS_CHANGE_INSERT. */
    LLVS_CHANGE_UPDATE = 2,
    /** Removes the value; no effect if it is absent. */
    LLVS_CHANGE_REMOVE = 3,
    /** Keeps bytes that an ancestor stored, without writing them again. Merges use it for a side's value. */
    LLVS_CHANGE_PRESERVE = 4,
    /** Keeps a removal. */
    LLVS_CHANGE_PRESERVE_REMOVAL = 5
};

/** A change to make. Since 0.1. */
typedef struct llvs_change {
    llvs_change_kind kind;
    uint32_t reserved;
    /** The value id: 1 to 4096 bytes of UTF-8. */
    llvs_bytes id;
    /** For insert and update: 0 bytes to 1 GiB, opaque; else empty. */
    llvs_bytes data;
    /** For preserve: the version that stored the bytes; else empty. */
    llvs_bytes stored_version;
} llvs_change;
#define LLVS_CHANGE_INIT { 0, 0, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT }

/** A version. Since 0.1. */
typedef struct llvs_version_info {
    uint32_t struct_size;
    /** 0 to 2. */
    uint32_t predecessor_count;
    llvs_bytes id;
    /** The state at a version is the state at its first predecessor with its own changes applied. */
    llvs_bytes predecessors[2];
    /**
     * Orders versions: seconds since 1970-01-01 UTC, later than the timestamps of all ancestors, even if their makers' clocks were wrong.
     * `made_at` says when the version was made.
     */
    double timestamp;
    /** Bytes of the values that this version stored. */
    uint64_t value_data_size;
    /** Sorted by key bytes. */
    const llvs_metadata_entry *metadata;
    size_t metadata_count;
    /** The branch named in the metadata; its data is NULL if there is none. */
    llvs_bytes branch;
    /**
     * In a walk through the history of one value (llvs_history_options.value_id): the change that this version recorded for that value;
     * otherwise 0.
     */
    llvs_change_kind change;
    uint32_t reserved;
    /**
     * When the version was made, as far as this device knows: seconds since 1970-01-01 UTC. It is the time of its maker's clock, but not
     * before any ancestor, and at most a minute after this device received the version. Other devices may report another time. The last
     * bound has two exceptions, both until a version is saved on this one: a timestamp that the program itself passed, and a version that
     * arrived while the clock of this device showed a time before 2026.
     */
    double made_at;
} llvs_version_info;

/** Versions: an immutable list, owned. Since 0.1. */
typedef struct llvs_version_list {
    uint32_t struct_size;
    uint32_t reserved;
    size_t count;
    const llvs_version_info *const *items;
} llvs_version_list;
/** Releases the list. Since 0.1. */
LLVS_API void llvs_version_list_free(LLVS_OWNED llvs_version_list *list);

/** Whether the bytes of a value are in the store. Since 0.1. */
typedef uint32_t llvs_value_state;
enum llvs_value_state_value {
    /** The bytes are present. An absent value has this state, too, and so does a value whose bytes were not requested. */
    LLVS_VALUE_HERE = 0,
    /** They were erased on this device: reading the value returns LLVS_ERROR_ERASED. Its id, size and digest are still known. */
    LLVS_VALUE_ERASED = 1,
    /** The bytes are gone: reading the value returns LLVS_ERROR_FORGOTTEN. Its id, size and digest are still known. */
    LLVS_VALUE_FORGOTTEN = 2
};

/** A value as it prevails at a version, or its absence. Since 0.1. */
typedef struct llvs_value_info {
    uint32_t struct_size;
    /** 1; or 0 if there is no such value, and then only `id` is set. */
    llvs_bool present;
    llvs_bytes id;
    /** The bytes of the value; the pointer is NULL if they were not requested, or are gone. */
    llvs_bytes data;
    /** The version in which the bytes were stored. */
    llvs_bytes stored_version;
    /** Whether the bytes are present, if they were requested. */
    llvs_value_state state;
    uint32_t reserved;
} llvs_value_info;

/** Values: an immutable list, owned. Since 0.1. */
typedef struct llvs_value_list {
    uint32_t struct_size;
    uint32_t reserved;
    size_t count;
    const llvs_value_info *const *items;
} llvs_value_list;
/** Releases the list. Since 0.1. */
LLVS_API void llvs_value_list_free(LLVS_OWNED llvs_value_list *list);

/**
 * Many values in a few large pieces: cheaper to make and to traverse than a list. Languages with expensive calls into C need no call per
 * value. Immutable, owned. Since 0.1.
 */
typedef struct llvs_value_block {
    uint32_t struct_size;
    /** How many version ids are in `versions`. */
    uint32_t version_count;
    /** How many values were requested or enumerated. */
    size_t count;
    /** The number of these values that exist. */
    size_t present_count;
    /** Of an enumeration: the ids, each followed by a NUL that `id_sizes` does not count; else empty. */
    llvs_bytes ids;
    /** The size of each id; NULL if there are no ids. */
    const uint64_t *id_sizes;
    /** The bytes of the values, one behind the other, with nothing between them. */
    llvs_bytes data;
    /** The size of each value, 0 for an absent one; NULL if the bytes were not requested. */
    const uint64_t *data_sizes;
    /** Ids of the versions that stored them, each followed by a NUL; a version that stored several values may appear several times. */
    llvs_bytes versions;
    /** For each value, the index in `versions` of the version that stored it, from 0; `version_count` for an absent one. */
    const uint32_t *version_indexes;
    /** For each value a llvs_value_state; NULL if all are LLVS_VALUE_HERE. A value whose bytes are gone has the size 0. */
    const uint8_t *states;
} llvs_value_block;
/** Releases the block. Since 0.1. */
LLVS_API void llvs_value_block_free(LLVS_OWNED llvs_value_block *block);

/** A change that a version recorded, or a difference of two versions. Since 0.1. */
typedef struct llvs_change_info {
    uint32_t struct_size;
    llvs_change_kind kind;
    llvs_bytes id;
    /** For insert and update: the bytes, if they were requested and are present; otherwise the data pointer is NULL. */
    llvs_bytes data;
    /** The version that stores the bytes of an insert, update or preserve; else empty. */
    llvs_bytes stored_version;
    /** The size of the value in bytes; 0 for removals. */
    uint64_t data_size;
    /** For insert and update: whether the bytes are present, if they were requested. */
    llvs_value_state state;
    uint32_t reserved;
} llvs_change_info;

/** Changes: an immutable list, owned. Since 0.1. */
typedef struct llvs_change_list {
    uint32_t struct_size;
    uint32_t reserved;
    size_t count;
    const llvs_change_info *const *items;
} llvs_change_list;
/** Releases the list. Since 0.1. */
LLVS_API void llvs_change_list_free(LLVS_OWNED llvs_change_list *list);

/* ------------------------------------------------------------------------------------------------
 * Opening and closing a store
 * ------------------------------------------------------------------------------------------------ */

/** A store: a history of versions, and the values that prevail at each. Safe from all threads. Since 0.1. */
typedef struct llvs_store llvs_store;
/** A storage of the host; see "A storage of the host" below. Since 0.1. */
typedef struct llvs_storage llvs_storage;

/** Where records are stored. Since 0.1. */
typedef uint32_t llvs_storage_kind;
enum llvs_storage_kind_value {
    /** The default: a directory of append-only files, which several processes and a folder sync may share. */
    LLVS_STORAGE_FILE = 0,
    /**
     * One SQLite database in WAL mode. The library loads the system's libsqlite3 (3.20 or later) when the first such store is opened. If it
     * finds no usable one, the message of LLVS_ERROR_UNSUPPORTED says what to do. If the host contains an SQLite of its own, it must not
     * open the database with that while the store is open: two copies of SQLite in one process break each other's locks. While the store is
     * open, no other code of this process may open and close the database or its -shm file, to copy or hash them, say: when a process
     * closes any descriptor of a file, the system drops all its locks on that file, and saves may be lost. If the store is written, none of
     * the files may have a second name (hard link): LLVS_ERROR_PERMISSION.
     */
    LLVS_STORAGE_SQLITE = 1,
    /** In memory, and lost when it is closed; for tests and temporary data. */
    LLVS_STORAGE_MEMORY = 2,
    /** The `host_storage` of the options. */
    LLVS_STORAGE_HOST = 3
};

/** What a power cut can lose. If only the process is killed, neither setting loses anything. Since 0.1. */
typedef uint32_t llvs_durability;
enum llvs_durability_value {
    /** The default: nothing acknowledged is lost. */
    LLVS_DURABILITY_FULL = 0,
    /** The newest versions may be missing; the rest is whole. */
    LLVS_DURABILITY_NORMAL = 1
};

/**
 * When a file store compacts the many small files that many handles wrote into large ones. Then the cost of opening depends on the contents
 * of the store, not on how often it was opened. Readers and other processes continue meanwhile. Since 0.1.
 */
typedef uint32_t llvs_compaction;
enum llvs_compaction_value {
    /**
     * The default: automatically when it is worthwhile (at close, seldom at open), and on request. A store in a folder that a syncing
     * program copies is not compacted at all.
     */
    LLVS_COMPACTION_AUTOMATIC = 0,
    /** Only by llvs_store_compact. A store in a folder that a syncing program copies is not compacted at all. */
    LLVS_COMPACTION_ON_REQUEST = 1,
    /** Automatically when it is worthwhile, and on request, wherever the store is. */
    LLVS_COMPACTION_ALWAYS = 2
};

/**
 * Whether to store values as differences from earlier ones of the same id, if that needs less space: an edit of a long text then takes some
 * hundred bytes. It applies to values of 1 KiB to 4 MiB. Stored differences are read with any setting. For a library from before
 * differences, versions with such values are LLVS_ERROR_NEWER_FORMAT, and their descendants are pending. Since 0.1.
 */
typedef uint32_t llvs_differences;
enum llvs_differences_value {
    /** The default: in new stores, and in stores that have such values. */
    LLVS_DIFFERENCES_AUTO = 0,
    /** Always. */
    LLVS_DIFFERENCES_ON = 1,
    /** Never. */
    LLVS_DIFFERENCES_OFF = 2
};

/** How to open a store. Since 0.1. */
typedef struct llvs_store_options {
    uint32_t struct_size;
    llvs_storage_kind storage;
    llvs_durability durability;
    /** 1: nothing is written, and a store that does not exist is LLVS_ERROR_NOT_FOUND. */
    llvs_bool read_only;
    /** 1: a store that does not exist is LLVS_ERROR_NOT_FOUND; 0: it is created. */
    llvs_bool must_exist;
    /** For file storage. */
    llvs_compaction compaction;
    /** Bytes of caches in memory; 0: 64 MiB. */
    uint64_t memory_budget;
    /**
     * For file storage, a directory for caches outside the store (outside a synced folder, say); empty: inside. UTF-8, without NUL. Use one
     * directory for each store: if two stores share one, each treats the other's files as its own, and a coordinator's name can be open on
     * only one of them.
     */
    llvs_bytes cache_directory;
    /** With LLVS_STORAGE_HOST: the storage; the store keeps it alive. Else NULL. */
    llvs_storage *host_storage;
    /**
     * For file storage, the seconds for which compacted files are kept, so that a program that is copying the store misses nothing; 0: 900.
     * Finite, not negative.
     */
    double compaction_grace;
    /**
     * For SQLite storage, the seconds for which a call waits while another process or connection writes, before it returns LLVS_ERROR_BUSY;
     * 0: 10. Finite, not negative. The file storage never waits: its writers do not exclude each other.
     */
    double busy_timeout;
    /**
     * The permissions of new files, as for chmod, restricted by the process's umask; 0: 0600, for their owner alone. Users who may read may
     * also enter the directories. At most 0777, with 0600 in it. Existing files are not changed, except notes of coordinators. Notes are
     * accessible only to users who may write, since a user who can open a note can lock it. (For a user who may only read, a coordinator
     * starts at the newest version.) Users who may write to the files, or to a directory of the store, are trusted: SECURITY.md.
     */
    uint32_t file_mode;
    /** 0. */
    uint32_t reserved;
    /**
     * Progress (stage LLVS_STAGE_READING, in versions) and cancellation of opening; may be NULL. Not used after opening, nor by
     * llvs_store_salvage, which has a control of its own.
     */
    const llvs_control *control;
    /** Whether to store values as differences from earlier ones. */
    llvs_differences differences;
    /** 0. */
    uint32_t reserved_2;
} llvs_store_options;
#define LLVS_STORE_OPTIONS_INIT { (uint32_t)sizeof(llvs_store_options), 0, 0, 0, 0, 0, 0, LLVS_NONE_INIT, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Opens a store, or creates it.
 * @param path     a directory (file), a database file (SQLite), ignored (memory, host); UTF-8, without NUL
 * @param options  NULL for the defaults
 * @param store    the store; close it with llvs_store_close, release it with llvs_store_free
 * Errors: LLVS_ERROR_NOT_FOUND, LLVS_ERROR_NOT_A_STORE, LLVS_ERROR_NOT_A_DIRECTORY, LLVS_ERROR_NEWER_FORMAT, LLVS_ERROR_INVALID_UTF8,
 * LLVS_ERROR_UNSUPPORTED (no SQLite), storage errors. A damaged record is no error: see llvs_store_verify. LLVS_ERROR_CANCELLED and
 * LLVS_ERROR_USER (from the progress callback of the options): nothing is open then; a new store may have been created. Cost: the size of
 * the history's index, not of the values. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_open(llvs_bytes path, LLVS_BORROWED const llvs_store_options *options,
    LLVS_OWNED llvs_store **store, LLVS_OWNED llvs_error **error);
/**
 * Closes the store: flushes, seals and closes the files. Waits for running calls; later calls on the store, its cursors and exchanges
 * return LLVS_ERROR_CLOSED. Closing again is LLVS_OK. The handle must still be freed.
 * Errors: storage errors; the store is closed nevertheless. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_close(LLVS_BORROWED llvs_store *store, LLVS_OWNED llvs_error **error);
/**
 * Releases the handle. If nothing else (an exchange, a cursor) uses the store any more, closes it first and ignores the result of that. In
 * a forked child it does nothing to the files. Since 0.1.
 */
LLVS_API void llvs_store_free(LLVS_OWNED llvs_store *store);
/** Returns the absolute path of the store; empty for a store in memory or in a storage of the host. Borrowed from the store. Since 0.1. */
LLVS_API llvs_bytes llvs_store_path(LLVS_BORROWED const llvs_store *store);
/**
 * Reads versions that other processes or handles added. Until then a handle has the history as of its opening or last reload, and the
 * versions that were added through itself. (A call for an unknown version reloads by itself.)
 * @param control  progress (stage LLVS_STAGE_READING; reported once, before it begins) and cancellation; may be NULL. Versions that were
 *                 read before a cancellation stay.
 * @param added    receives how many versions were new; may be NULL
 * Errors: LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback), storage errors. Cost: the number of files and of new
 * versions. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_reload(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_control *control,
    LLVS_BORROWED uint64_t *added, LLVS_OWNED llvs_error **error);

/**
 * Registers a callback for versions that enter the store, whether added by other processes and handles, or through this one by saving,
 * merging, retrieving or reloading. It is called soon after they entered the history: there is no need to reload. Versions that arrive
 * close together cause one call. Versions that other handles added before the registration, and that this handle has not read yet, cause
 * the first call.
 *
 * The system reports (inotify) when files of the store are written; nothing is polled. If it does not, as on network file systems, or if no
 * more watches are available, the store is polled every two seconds. For a store in memory or in a storage of the host, only versions
 * through this handle are reported: llvs_store_reload finds versions of other handles.
 *
 * The registration does not keep the store open; after the store is closed, the callback is not called any more.
 * @param fn, payload, payload_free  see "Callbacks" in common.h
 * @param observer  ends the registration when freed
 * Errors: LLVS_ERROR_IO, LLVS_ERROR_BUSY and LLVS_ERROR_TOO_MANY_FILES (no thread or descriptor is available). Cost: a thread, and two to
 * three descriptors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_observe(LLVS_BORROWED llvs_store *store, llvs_notify_fn fn, LLVS_OWNED void *payload,
    llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);

/** Counts of a store. Set struct_size before the call; no more than that is written. Since 0.1. */
typedef struct llvs_statistics {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t versions;
    uint64_t heads;
    /** Versions of which some ancestors are missing: they enter the history when these arrive. */
    uint64_t pending;
    /** Damages found so far. */
    uint64_t damaged;
    /** The bytes on the medium, caches included. */
    uint64_t bytes;
    /** By this handle. */
    uint64_t bytes_written;
    /** By this handle. */
    uint64_t syncs;
    uint64_t segments;
    /** Bytes of memory that the history occupies; caches of values are bounded by the memory budget. */
    uint64_t memory_used;
    /** Values that this handle stored as differences from earlier ones. */
    uint64_t differences;
    /** Bytes that were stored for them. */
    uint64_t difference_bytes;
    /** Bytes that these values have. */
    uint64_t difference_value_bytes;
} llvs_statistics;
#define LLVS_STATISTICS_INIT { (uint32_t)sizeof(llvs_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/**
 * Fills in the counts.
 * @param control     progress (stage LLVS_STAGE_LISTING) and cancellation; may be NULL
 * @param statistics  receives the counts
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback), storage errors. Cost: a stat of each file of a file store.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_statistics(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_control *control,
    LLVS_BORROWED llvs_statistics *statistics, LLVS_OWNED llvs_error **error);

/** How a row of a size report groups bytes. Since 0.1. */
typedef uint32_t llvs_size_group;
enum llvs_size_group_value {
    /**
     * What the bytes are. The rows are "record" (headers and tables of changes), "value" (values within records), "blob" (values in files
     * of their own), "cache" (caches, which can be rebuilt) and "other" (all else: frames, reserved room, records that are stored twice,
     * pending versions, pages of a database). More kinds may be added.
     */
    LLVS_SIZE_BY_KIND = 1,
    /** By the beginning of the ids of values. */
    LLVS_SIZE_BY_PREFIX = 2,
    /** By the month, in UTC, in which the version was made that stored them: "2026-11". */
    LLVS_SIZE_BY_MONTH = 3,
    /** By the version that stored them. */
    LLVS_SIZE_BY_VERSION = 4
};

/** A depth at which each id is a group: llvs_size_options. Since 0.1. */
#define LLVS_SIZE_EACH_ID 4294967295

/** What a size report counts, and how it groups it. Since 0.1. */
typedef struct llvs_size_options {
    uint32_t struct_size;
    /**
     * How many parts of an id name a group by prefix; 0: 1. Each part ends in "/", and `prefix` is not counted. An id with fewer parts
     * belongs to the group that its parts name. LLVS_SIZE_EACH_ID makes a group of each id.
     */
    uint32_t depth;
    /** Only the bytes of values whose ids have this prefix; empty: everything on the medium. */
    llvs_bytes prefix;
    /** The most rows by prefix, and the most by version, the largest ones; 0: 1,000. One more row combines the others. */
    uint64_t limit;
    /** Progress (stage LLVS_STAGE_READING, in versions) and cancellation; may be NULL. */
    const llvs_control *control;
} llvs_size_options;
#define LLVS_SIZE_OPTIONS_INIT { (uint32_t)sizeof(llvs_size_options), 0, LLVS_NONE_INIT, 0, 0 }

/** One group of a size report; immutable, owned by the report. Since 0.1. */
typedef struct llvs_size_row {
    uint32_t struct_size;
    llvs_size_group group;
    /** The kind, the prefix, the month, or the id of the version. Empty for combined groups, and for the ids without a "/". */
    llvs_bytes name;
    /** In the row for the groups beyond the limit: the number of these groups; otherwise 0. */
    uint64_t combined;
    /** Values that are stored; in the row "hollow" values whose bytes are gone. */
    uint64_t values;
    /** Bytes that these values have, or had. */
    uint64_t value_bytes;
    /** Bytes on the medium. */
    uint64_t bytes;
    /** The part of `bytes` that belongs to values that prevail at a head. */
    uint64_t current_bytes;
    /** The part of `bytes` that belongs to values that prevail at no head: only the past holds them. */
    uint64_t past_bytes;
} llvs_size_row;

/** The outcome of llvs_store_size; immutable, owned. Since 0.1. */
typedef struct llvs_size_report {
    uint32_t struct_size;
    uint32_t reserved;
    /** Versions whose changes were counted. */
    uint64_t versions;
    /** Those of the counted versions whose tables of changes are damaged: their unreadable parts count as "record". */
    uint64_t unread;
    /** The totals, as in a row. */
    uint64_t values;
    uint64_t value_bytes;
    uint64_t bytes;
    uint64_t current_bytes;
    uint64_t past_bytes;
    /** By kind, prefix, month and version. Prefixes and versions are sorted by bytes, the largest first; months by time. */
    const llvs_size_row *const *rows;
    size_t row_count;
} llvs_size_report;
/**
 * Reports what takes space in a store: the bytes on the medium by kind, by prefix of ids, by month and by version, and how many of them
 * only the past holds. Reads headers and tables of changes, and no value.
 *
 * - A value counts where it is stored, once, however many versions show it. A value that is stored as a difference counts with the bytes of
 *   the difference; it may be based on a value that only the past holds. If several changes name one file, its bytes count once: for the
 *   first change that prevails at a head, else for the first.
 * - The kinds add up to the total. The prefixes add up to "value" and "blob". The months, and the versions, add up to "value", "blob" and
 *   "record". With a prefix, only values count, and all four add up to the total.
 * - The total is llvs_statistics.bytes. With a storage of the host it is the bytes that the host stores, without caches.
 *
 * @param options  may be NULL
 * @param report   receives the report; free it with llvs_size_report_free
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback), storage errors. Damaged versions are no error. Cost: one or
 * two reads for each version, and memory for each version and group. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_size(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_size_options *options,
    LLVS_OWNED llvs_size_report **report, LLVS_OWNED llvs_error **error);
/** Frees a report, with all that it points to. NULL is a no-op. Any thread. Since 0.1. */
LLVS_API void llvs_size_report_free(LLVS_OWNED llvs_size_report *report);

/** Which values to erase. Since 0.1. */
typedef struct llvs_erase_options {
    uint32_t struct_size;
    /** 1: change nothing, and only report what would be erased. */
    uint32_t dry_run;
    /** The ids of the values; NULL if there are none. */
    const llvs_bytes *ids;
    size_t id_count;
    /**
     * The version at which the values prevail that are erased, with all values that have the same bytes and the same id. Empty: everything
     * that was ever stored under the ids.
     */
    llvs_bytes version;
    /** A run of bytes: all values that contain it are erased, too. Empty: none. */
    llvs_bytes containing;
    /** The bytes that prevail afterwards at heads at which an erased value prevails. NULL: the values are removed there. */
    llvs_bytes replacement;
    /** A text that is stored in the order, UTF-8: every device with the store can read it. */
    llvs_bytes why;
    /**
     * For the mode "stewards" (llvs_store_set_forgetting): the private key of a steward who signs the order, the seed of Ed25519, 32 bytes.
     * Empty: it is not signed, and counts on this device alone.
     */
    llvs_bytes signer;
} llvs_erase_options;
#define LLVS_ERASE_OPTIONS_INIT \
    { (uint32_t)sizeof(llvs_erase_options), 0, 0, 0, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT }

/** Whether bytes that an order to erase names are at a place. Since 0.1. */
typedef uint32_t llvs_erasure_reach;
enum llvs_erasure_reach_value {
    /** This device removed them, or found none. */
    LLVS_ERASURE_GONE = 1,
    /** They may be there until what the reason names has happened. */
    LLVS_ERASURE_PENDING = 2,
    /** They may be there, and nothing that this device does removes them. */
    LLVS_ERASURE_OUT_OF_REACH = 3
};
/** What bytes at a place wait for, or why they are out of reach. Since 0.1. */
typedef uint32_t llvs_erasure_reason;
enum llvs_erasure_reason_value {
    /** They are gone. */
    LLVS_ERASURE_REASON_NONE = 0,
    /** The next exchange of this device with the place removes them. */
    LLVS_ERASURE_REASON_EXCHANGE = 1,
    /** The policy of this device lets the order count for this device alone (llvs_store_set_forgetting). */
    LLVS_ERASURE_REASON_POLICY = 2,
    /**
     * Another device has them until it follows the order: it was not seen since the order was made (pending), or decides by its own policy
     * (out of reach; its own list of orders says what it did).
     */
    LLVS_ERASURE_REASON_DEVICE = 3,
    /** The service may keep deleted files, or old versions of files. */
    LLVS_ERASURE_REASON_BIN = 4,
    /** The file system keeps old contents of files that are overwritten. */
    LLVS_ERASURE_REASON_MEDIUM = 5,
    /** Programs of another kind read the place, and keep what they read. */
    LLVS_ERASURE_REASON_FOREIGN = 6,
    /** Versions were written to streams (llvs_store_pack), of which nothing is known. */
    LLVS_ERASURE_REASON_STREAM = 7,
    /** Backups, exports and copies of the store, of which nothing is known. */
    LLVS_ERASURE_REASON_BACKUP = 8
};
/** Where bytes that an order to erase names may be, beside the store; immutable, owned by the report or list. Since 0.1. */
typedef struct llvs_erasure_place {
    uint32_t struct_size;
    llvs_erasure_reach reach;
    llvs_erasure_reason reason;
    uint32_t reserved;
    /** The place, the device or the store, for people; empty for backups. */
    llvs_bytes name;
    /** When this device last exchanged with it, or saw the other device, in seconds since 1970-01-01 UTC; 0: not known. */
    double last_seen;
} llvs_erasure_place;

/** What was erased, or would be; immutable, owned. Since 0.1. */
typedef struct llvs_erase_report {
    uint32_t struct_size;
    uint32_t reserved;
    /** Values that the call erased, the versions that stored them, and the bytes that they had. */
    uint64_t values;
    uint64_t versions;
    uint64_t bytes;
    /** How many of these values are copies that the store had made itself: choices of conflicts. */
    uint64_t copies;
    /** Other values that were differences from erased values, and are now stored whole. */
    uint64_t rewritten;
    /** Versions whose records cannot be read: it is unknown whether they have the values. */
    uint64_t unread;
    /** The ids of the values whose bytes are the orders; none if nothing was found, or for a dry run. */
    const llvs_bytes *orders;
    size_t order_count;
    /** The versions that were made: the first has the orders, and all of them remove or replace values. */
    const llvs_bytes *made;
    size_t made_count;
    /** Where the bytes still are in the store, and what has to happen so that they go: texts for people. None: they are gone. */
    const llvs_bytes *waiting;
    size_t waiting_count;
    /**
     * Where else the bytes may be, as far as this device knows: places, devices and streams to which it sent versions, the medium, and
     * backups. None if nothing was found.
     */
    const llvs_erasure_place *const *places;
    size_t place_count;
} llvs_erase_report;
/**
 * Erases values on this device: afterwards no file of the store, and no cache in it, has their bytes. Their ids, sizes and digests stay, so
 * that the history can be verified. Reading them returns LLVS_ERROR_ERASED. If an erased value prevails at a head, a new version on that
 * head removes or replaces it. Values that are saved later are not affected, whatever their id.
 *
 * The order to erase is saved as a value under `__llvs_forget/order/` first. If the process or the power fails after that, the next opening
 * follows it. What waits for something is followed by the next opening or closing of the store. See docs/forgetting.md for what is out of
 * reach: places, other devices, backups and copies of the medium keep their bytes.
 *
 * @param options  may not be NULL
 * @param control  progress (stage LLVS_STAGE_WRITING, in versions) and cancellation, until the order is saved; may be NULL
 * @param report   receives the report; free it with llvs_erase_report_free
 * Errors: LLVS_ERROR_UNSUPPORTED if the storage is the host's (nothing is ordered then); LLVS_ERROR_INVALID_ARGUMENT if no value is named,
 * or one under `__llvs_forget/`; LLVS_ERROR_INVALID_VALUE_ID; LLVS_ERROR_UNKNOWN_VERSION; LLVS_ERROR_READ_ONLY; LLVS_ERROR_DAMAGED if a
 * value to erase, or one that is a difference from it, cannot be read; LLVS_ERROR_TOO_LARGE after 65,536 orders, or 64 MiB;
 * LLVS_ERROR_BUSY if another handle changes the orders for seconds; LLVS_ERROR_CANCELLED; LLVS_ERROR_USER (from the progress callback);
 * errors of making versions; storage errors. Cost: reads the tables of changes of the versions that changed the ids and of all after
 * the first merge, with `containing` all tables and values, and the beginnings of all records of the storage; writes the files that have
 * the bytes. SQLite writes the whole database, and needs as much room again for a temporary file (SQLITE_TMPDIR, TMPDIR or /var/tmp) and
 * for the log. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_erase(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_erase_options *options,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_erase_report **report, LLVS_OWNED llvs_error **error);
/** Frees a report, with all that it points to. NULL is a no-op. Any thread. Since 0.1. */
LLVS_API void llvs_erase_report_free(LLVS_OWNED llvs_erase_report *report);

/** Where an order to erase values stands on this device. Since 0.1. */
typedef uint32_t llvs_erasure_state;
enum llvs_erasure_state_value {
    /** Nothing in the store has the bytes any more. */
    LLVS_ERASURE_FOLLOWED = 1,
    /** The bytes are still in the store: the next opening or closing follows the order. */
    LLVS_ERASURE_WAITING = 2,
    /** The order of another device is followed once its delay is over: `due` of llvs_erasure. */
    LLVS_ERASURE_ANNOUNCED = 3,
    /** The order of another device names so much that it waits for llvs_store_decide_erasure. */
    LLVS_ERASURE_HELD = 4,
    /** It was decided here to keep the bytes. */
    LLVS_ERASURE_KEPT = 5,
    /** The policy of this device does not let the order count: it has no effect here. */
    LLVS_ERASURE_NOT_VALID = 6,
    /** It has no effect yet: more stewards must sign it (llvs_store_sign_erasure). */
    LLVS_ERASURE_UNSIGNED = 7
};

/** An order to erase values; immutable, owned by the list. Since 0.1. */
typedef struct llvs_erasure {
    uint32_t struct_size;
    /** 1: nothing in the store has the bytes any more. */
    uint32_t followed;
    /** The id of the value whose bytes are the order. */
    llvs_bytes id;
    /** The version that stored it. */
    llvs_bytes version;
    /** When it was made, in UTC: "2026-11-28T06:00:00Z". */
    llvs_bytes made;
    /** The text of the caller. */
    llvs_bytes why;
    /** The number of values that it names. */
    uint64_t values;
    llvs_erasure_state state;
    /** 1: another device made it. */
    uint32_t of_other;
    /** When an announced order is followed, in seconds since 1970-01-01 UTC; else 0. */
    double due;
    /** Where else the bytes may be, as in llvs_erase_report. None if the order does not count here. */
    const llvs_erasure_place *const *places;
    size_t place_count;
    /** For the mode "stewards": how many stewards signed it, and how many must. Else 0. */
    uint32_t signatures;
    uint32_t needed;
} llvs_erasure;

/**
 * Orders to erase values: first those that count on this device, in the order in which they came, then those at heads that do not count
 * here. Immutable, owned. Since 0.1.
 */
typedef struct llvs_erasure_list {
    uint32_t struct_size;
    uint32_t reserved;
    size_t count;
    const llvs_erasure *const *items;
} llvs_erasure_list;
/**
 * Returns the orders to erase values that are in the store, with the state of each.
 *
 * @param erasures  receives the list; free it with llvs_erasure_list_free
 * Errors: storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_erasures(LLVS_BORROWED llvs_store *store, LLVS_OWNED llvs_erasure_list **erasures,
    LLVS_OWNED llvs_error **error);
/** Frees a list, with all that it points to. NULL is a no-op. Any thread. Since 0.1. */
LLVS_API void llvs_erasure_list_free(LLVS_OWNED llvs_erasure_list *erasures);

/** What to do with an order of another device. Since 0.1. */
typedef uint32_t llvs_erasure_decision;
enum llvs_erasure_decision_value {
    /** Follow it now. */
    LLVS_ERASURE_FOLLOW = 1,
    /** Keep the bytes on this device. They are sent to nobody all the same. */
    LLVS_ERASURE_KEEP = 2
};
/**
 * Follows, or keeps the bytes of, an order of another device that counts here.
 *
 * @param order     the id of the order (`id` of llvs_erasure)
 * @param decision  what to do with it
 * Errors: LLVS_ERROR_NOT_FOUND if no such order counts here; LLVS_ERROR_INVALID_ARGUMENT if it is to be kept and was followed already, or
 * for an unknown decision; LLVS_ERROR_READ_ONLY; LLVS_ERROR_BUSY if another handle changes the orders for seconds; storage errors.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_decide_erasure(LLVS_BORROWED llvs_store *store, llvs_bytes order,
    llvs_erasure_decision decision, LLVS_OWNED llvs_error **error);
/**
 * Sets whose orders to erase count on this device, and what it keeps, from now on and at later openings. Orders that are in the store
 * already and count by the new policy are followed; orders that counted before still count. What is not kept is forgotten by
 * llvs_store_forget, and when the store is compacted. See docs/forgetting.md.
 *
 * @param policy   JSON of at most 64 KiB with `erase` or `keep`, or both. What is left out stays as it is.
 *                 `{"erase":{"mode":"members","delay":3600}}`: The mode is "nobody" (the default: the orders that were made on this
 *                 device), "members" (orders that are signed with a secret of the devices), "stewards" (orders that `need` of the `keys`
 *                 signed: up to 16 public keys of Ed25519 in hexadecimal, as llvs_steward_key returns them) or "anyone" (all orders). The
 *                 delay is the seconds from the first sight of an order of another device until it is followed, 0 by default.
 *                 `{"keep":{"days":30,"daily":90,"weekly":104,"monthly":12,"count":3,"branches":["*"],"ids":{"log/":{"days":7}}}}`: only
 *                 `days` must be there. `{"keep":null}` keeps everything.
 * @param secrets  for "members": what all devices share and nobody can guess, 16 to 4,096 bytes each. Orders made here are signed with the
 *                 first, and those of others are checked with all. A key made of each is stored beside the records
 * @param secret_count  1 to 16 for "members", else 0; 0 without `erase`
 * Errors: LLVS_ERROR_INVALID_ARGUMENT and LLVS_ERROR_TOO_LARGE if the policy or the secrets are not as said; LLVS_ERROR_UNSUPPORTED for
 * members of the policy that a later library has, for the mode "stewards" without libcrypto, and if the storage cannot erase;
 * LLVS_ERROR_READ_ONLY; LLVS_ERROR_BUSY if another handle changes the orders for seconds; storage errors. Cost: reads the tables of changes
 * of all versions. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_set_forgetting(LLVS_BORROWED llvs_store *store, llvs_bytes policy,
    LLVS_BORROWED const llvs_bytes *secrets, size_t secret_count, LLVS_OWNED llvs_error **error);
/**
 * Returns the public key of a steward, 32 bytes.
 *
 * @param seed  the private key: the seed of Ed25519, 32 bytes
 * @param key   receives the key; release with llvs_buffer_dispose
 * Errors: LLVS_ERROR_INVALID_ARGUMENT; LLVS_ERROR_UNSUPPORTED if there is no libcrypto (OpenSSL 3). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_steward_key(llvs_bytes seed, LLVS_OWNED llvs_buffer *key, LLVS_OWNED llvs_error **error);
/**
 * Signs an order to erase, or one that replaces the stewards, as a further steward. The order is saved again with the signatures of all
 * that signed the same before, under another id. If enough signed it, it counts from now on, here and where it comes.
 *
 * @param order    the id of the order (`id` of llvs_erasure)
 * @param signer   the private key of the steward: the seed of Ed25519, 32 bytes
 * @param signed_order  receives the id of the order with the signature; release with llvs_buffer_dispose
 * Errors: LLVS_ERROR_NOT_FOUND if there is no such order; LLVS_ERROR_INVALID_ARGUMENT if the policy of this device has no such steward;
 * LLVS_ERROR_UNSUPPORTED if there is no libcrypto; LLVS_ERROR_TOO_LARGE; LLVS_ERROR_READ_ONLY; LLVS_ERROR_BUSY if another handle changes
 * the orders for seconds; errors of making versions; storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_sign_erasure(LLVS_BORROWED llvs_store *store, llvs_bytes order, llvs_bytes signer,
    LLVS_OWNED llvs_buffer *signed_order, LLVS_OWNED llvs_error **error);
/**
 * Orders that other stewards sign from now on. If enough stewards of now sign that (llvs_store_sign_erasure), the policies of all devices
 * that have the stewards of now change, as the order comes to them. Make one such order at a time.
 *
 * @param policy  JSON as for llvs_store_set_forgetting, of the mode "stewards". Its delay is not used: each device keeps its own
 * @param signer  the private key of a steward of now: the seed of Ed25519, 32 bytes
 * @param order   receives the id of the order; release with llvs_buffer_dispose
 * Errors: as llvs_store_sign_erasure and llvs_store_set_forgetting. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_change_stewards(LLVS_BORROWED llvs_store *store, llvs_bytes policy, llvs_bytes signer,
    LLVS_OWNED llvs_buffer *order, LLVS_OWNED llvs_error **error);
/**
 * Returns the policy of this device, without its secrets.
 *
 * @param policy  receives JSON; release with llvs_buffer_dispose
 * Errors: storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_forgetting(LLVS_BORROWED llvs_store *store, LLVS_OWNED llvs_buffer *policy,
    LLVS_OWNED llvs_error **error);

/** What keeps a value from being forgotten. Since 0.1. */
typedef uint32_t llvs_forget_rule;
enum llvs_forget_rule_value {
    /** It prevails at a head of a kept branch. */
    LLVS_FORGET_HEADS = 1,
    /** It prevails at a version that came to the device in the last `days`. */
    LLVS_FORGET_DAYS = 2,
    /** It prevails at the newest version of one of the last `daily` days. */
    LLVS_FORGET_DAILY = 3,
    /** It prevails at the newest version of one of the last `weekly` weeks. */
    LLVS_FORGET_WEEKLY = 4,
    /** It prevails at the newest version of one of the last `monthly` months. */
    LLVS_FORGET_MONTHLY = 5,
    /** It is one of the newest `count` values of its id. */
    LLVS_FORGET_COUNT = 6,
    /**
     * A merge of heads, or with what other devices made meanwhile, may need it. Or it belongs to a merge with conflicts that came in the
     * last 4 * `days`.
     */
    LLVS_FORGET_MERGES = 7,
    /** No place, and no other device, is known to have the version that stored it. */
    LLVS_FORGET_UNSENT = 8
};

/** How to forget values by a policy. Since 0.1. */
typedef struct llvs_forget_options {
    uint32_t struct_size;
    /** 1: change nothing, and only report what would be forgotten. */
    uint32_t dry_run;
    /**
     * For a dry run: a policy as for llvs_store_set_forgetting, instead of the one of the store. Versions then count as come to the device
     * when they were made. Empty: the one of the store.
     */
    llvs_bytes policy;
    /** Progress (stage LLVS_STAGE_READING, in versions) and cancellation; may be NULL. */
    const llvs_control *control;
} llvs_forget_options;
#define LLVS_FORGET_OPTIONS_INIT { (uint32_t)sizeof(llvs_forget_options), 0, LLVS_NONE_INIT, 0 }

/** What only one rule of a policy keeps; immutable, owned by the report. Since 0.1. */
typedef struct llvs_forget_row {
    uint32_t struct_size;
    llvs_forget_rule rule;
    /** Values that no other rule keeps, and the bytes that they have. */
    uint64_t values;
    uint64_t bytes;
} llvs_forget_row;

/** What was forgotten, or would be; immutable, owned. Since 0.1. */
typedef struct llvs_forget_report {
    uint32_t struct_size;
    uint32_t reserved;
    /** Values that the call forgot, the versions that stored them, and the bytes that they had. */
    uint64_t values;
    uint64_t versions;
    uint64_t bytes;
    /** Other values that were differences from forgotten values, and are now stored whole. */
    uint64_t rewritten;
    /** One for each rule, in their order. */
    const llvs_forget_row *const *rows;
    size_t row_count;
    /** Where bytes still are in the store, and what has to happen so that they go with a later call: texts for people. */
    const llvs_bytes *waiting;
    size_t waiting_count;
} llvs_forget_report;
/**
 * Forgets the values that the policy of the store does not keep (`keep` of llvs_store_set_forgetting): the store has their bytes no more.
 * Ids of versions and values, sizes and digests stay. Reading a forgotten value returns LLVS_ERROR_FORGOTTEN. No version is made, and other
 * devices are not affected. It also happens when the store is compacted, and once a day when it is closed. See docs/forgetting.md.
 *
 * @param options  may be NULL
 * @param report   receives the report; free it with llvs_forget_report_free
 * Errors: LLVS_ERROR_INVALID_ARGUMENT if the policy does not say what to keep, or if one is given and this is no dry run; those of
 * llvs_store_set_forgetting for the given policy; LLVS_ERROR_UNSUPPORTED if the storage is the host's; LLVS_ERROR_DAMAGED if a version
 * cannot be read; LLVS_ERROR_TOO_LARGE for more than 1,024 heads; LLVS_ERROR_READ_ONLY; LLVS_ERROR_BUSY if another handle compacts, or
 * erases values, for seconds; LLVS_ERROR_CANCELLED; LLVS_ERROR_USER (from the progress callback); storage errors. Cost: reads the headers
 * and tables of changes of all versions, and writes the files that have the bytes. SQLite writes the whole database. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_forget(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_forget_options *options,
    LLVS_OWNED llvs_forget_report **report, LLVS_OWNED llvs_error **error);
/** Frees a report, with all that it points to. NULL is a no-op. Any thread. Since 0.1. */
LLVS_API void llvs_forget_report_free(LLVS_OWNED llvs_forget_report *report);

/** What is lost by a damage. Since 0.1. */
typedef uint32_t llvs_loss;
enum llvs_loss_value {
    /** Nothing: the contents are known without it, are rebuilt, or exist in another copy, as after a repair (llvs_exchange_retrieve). */
    LLVS_LOSS_NOTHING = 0,
    /**
     * One or several versions. Their descendants are pending until they are present again; a retrieve from a place that has them restores
     * them.
     */
    LLVS_LOSS_VERSION = 1,
    /**
     * The bytes of a value. The version is present, and its other values can be read; a retrieve from a place that has the version repairs
     * it.
     */
    LLVS_LOSS_VALUE = 2,
    /**
     * Perhaps something: a file ends in bytes that count as never written, or without its seal, and no process of this machine is writing
     * it. A process was killed, another machine has not finished, or the file was cut short or damaged at its end. The killing of a process
     * does not lose acknowledged versions.
     */
    LLVS_LOSS_UNFINISHED = 3
};

/** A damage: stored bytes that differ from the bytes that were written. Since 0.1. */
typedef struct llvs_damage {
    uint32_t struct_size;
    llvs_loss lost;
    /** The file, or its counterpart in other storages. */
    llvs_bytes file;
    /** Where in the file, in bytes; for SQLite storage the number of a row. */
    uint64_t offset;
    llvs_bytes message;
    /** The version concerned, if it is known; else empty. */
    llvs_bytes version;
    /** The value concerned, if there is one and it is known; else empty. */
    llvs_bytes value_id;
    /**
     * Of a report of llvs_store_verify: the version that causes the loss. The value is stored as its difference from a value of that
     * version, which is damaged and has an entry of its own; `file` and `offset` say where the record of `version` is. Repairing that
     * version heals this value. Empty if the damage is the value's own.
     */
    llvs_bytes caused_by;
} llvs_damage;
/** The outcome of llvs_store_verify; immutable, owned. Since 0.1. */
typedef struct llvs_verify_report {
    uint32_t struct_size;
    uint32_t reserved;
    /** Versions read. */
    uint64_t versions;
    /** Values read. */
    uint64_t values;
    /** Versions that wait for missing ancestors. */
    uint64_t pending;
    /** Damaged places. */
    const llvs_damage *const *damages;
    size_t damage_count;
    /** Unfinished files (LLVS_LOSS_UNFINISHED); not among the damages. */
    const llvs_damage *const *unfinished;
    size_t unfinished_count;
    /**
     * How far the history is tamper-evident: how many versions the id of a head vouches for. Such a version, and all versions on a path
     * from a head back to it, have content ids that are right. So none of them was changed since the head was made.
     */
    uint64_t vouched;
    /**
     * All other versions of the history: they, or versions on every path to them, have ids of callers or other implementations, or are
     * damaged.
     */
    uint64_t unvouched;
    /** Values whose bytes are gone by intent (LLVS_ERROR_ERASED, LLVS_ERROR_FORGOTTEN). They are no damage, and not among `values`. */
    uint64_t forgotten;
} llvs_verify_report;
/**
 * Reads everything again and compares it with its checksums. Changes nothing, except that it removes a cache that contradicts the records.
 * The store is complete if each damage in the report is LLVS_LOSS_NOTHING. If, in addition, nothing is unfinished and nothing is pending,
 * nothing can be missing at the end of a file either. The next llvs_exchange_retrieve from a place that has the versions repairs damage;
 * llvs_store_salvage writes what is whole into a new store.
 * @param control  progress and cancellation; may be NULL
 * @param report   the result; damage is not an error of the call
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback), storage errors. Cost: the size of the store.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_verify(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_verify_report **report, LLVS_OWNED llvs_error **error);
/** Releases the report. Since 0.1. */
LLVS_API void llvs_verify_report_free(LLVS_OWNED llvs_verify_report *report);

/** A version that a salvage made. Since 0.1. */
typedef struct llvs_salvaged {
    uint32_t struct_size;
    /**
     * 1: its state is exactly that of `original`. 0: it has the newest values that could be read. Changes of lost versions, and lost
     * values, are missing, or have an earlier state.
     */
    llvs_bool is_complete;
    /** The newest version whose changes it contains. */
    llvs_bytes original;
    /** The new version. */
    llvs_bytes version;
} llvs_salvaged;
/** The outcome of llvs_store_salvage; immutable, owned. Since 0.1. */
typedef struct llvs_salvage_report {
    uint32_t struct_size;
    uint32_t reserved;
    /** Versions that were copied unchanged. */
    uint64_t versions;
    /** Versions that are pending in the new store, since ancestors are lost. */
    uint64_t waiting;
    /** New versions. */
    const llvs_salvaged *const *made;
    size_t made_count;
    /** Damages, unfinished files, and missing versions that others name as predecessors. */
    const llvs_damage *const *damages;
    size_t damage_count;
} llvs_salvage_report;
/**
 * Writes everything that is whole in a damaged store into a new one; the damaged store is only read. Also works for a store that cannot be
 * opened (a database that SQLite refuses). It reads what opening skips, too: versions that are damaged in part, and versions after damage
 * at the end of a file.
 *   - A version that is whole, with all its ancestors, is copied unchanged, under its own id.
 *   - A version that is whole but has a lost ancestor is copied, too. It is pending in the new store (llvs_statistics.pending) until an
 *     exchange brings that ancestor.
 *   - For each line of versions that cannot be copied, a new version is made of what can be read of them, on the last version before the
 *     line that is whole. If lines fork, one version is made of their common part, for all of them. Values of more than 32 MiB together
 *     may take several versions, one after another. The new version has the metadata of the newest one of the line and an entry
 *     "__llvs_salvaged": {"version": "<id of the newest>", "complete": <whether its state is exactly that version's>}.
 * No version in the new store ever shows another state than the version of that id had.
 * @param path, options            the damaged store, as for llvs_store_open; opened for reading only, whatever the options say
 * @param target, target_options   the new store, which is created; it must not contain versions
 * @param control                  progress (LLVS_STAGE_VERIFYING, LLVS_STAGE_ADDING) and cancellation; may be NULL
 * @param report                   the versions that were written, and what is lost
 * The damaged store may be open, except a database that is open in this process: close it first. Versions that other handles write to it
 * meanwhile may be in the new store or not. Errors: LLVS_ERROR_NOT_FOUND (there is nothing to salvage), LLVS_ERROR_NOT_A_STORE,
 * LLVS_ERROR_NOT_A_DIRECTORY, LLVS_ERROR_NEWER_FORMAT, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_UNSUPPORTED (no SQLite), LLVS_ERROR_BUSY (a
 * database that is open in this process), and LLVS_ERROR_INVALID_ARGUMENT (the target is within the damaged store): nothing was created.
 * After LLVS_ERROR_STORE_NOT_EMPTY, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback) and storage errors, delete the new
 * store. Cost: reads the damaged store up to three times; memory for the history and for the ids of the values in new versions. For a
 * database it also needs the database's size on disk, beside the new store, until it ends. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_salvage(llvs_bytes path, LLVS_BORROWED const llvs_store_options *options, llvs_bytes target,
    LLVS_BORROWED const llvs_store_options *target_options, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_salvage_report **report, LLVS_OWNED llvs_error **error);
/** Releases the report. Since 0.1. */
LLVS_API void llvs_salvage_report_free(LLVS_OWNED llvs_salvage_report *report);

/** The result of a compaction. Set struct_size before the call; no more than that is written. Since 0.1. */
typedef struct llvs_compaction_report {
    uint32_t struct_size;
    uint32_t reserved;
    /** Files whose records were copied into others. They stay for the `compaction_grace`. */
    uint64_t folded;
    /** New files with these records. */
    uint64_t made;
    /** Files whose records were copied long enough ago, and that were deleted now. */
    uint64_t deleted;
    /** In new files. */
    uint64_t bytes_written;
    /** In deleted files. */
    uint64_t bytes_deleted;
    /**
     * If nothing was done because a syncing program copies the store: the path of the file that shows this. Else its data is NULL. Owned by
     * the caller: llvs_buffer_dispose(&report.sync_marker).
     */
    llvs_buffer sync_marker;
} llvs_compaction_report;
#define LLVS_COMPACTION_REPORT_INIT { (uint32_t)sizeof(llvs_compaction_report), 0, 0, 0, 0, 0, 0, { 0, 0 } }
/**
 * Compacts small files of the store into large ones, and deletes files that were compacted longer than `compaction_grace` ago. This also
 * happens automatically, as `compaction` of the options says. Storages other than the file storage have nothing to do. Readers and other
 * processes continue meanwhile; if another process is compacting, this call does nothing. A failure, a cancellation or a crash loses
 * nothing: call it again.
 * @param control  progress (stage LLVS_STAGE_WRITING, in bytes written) and cancellation; may be NULL
 * @param report   the result; may be NULL
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback), LLVS_ERROR_BUSY (from within the progress callback of a
 * compaction), storage errors. Cost: reads and writes the contents of small files. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_compact(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_compaction_report *report, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Making versions
 * ------------------------------------------------------------------------------------------------ */

/**
 * Supplies the next bytes of a value, of a file, or of a stream of packs. Since 0.1.
 *   thread     the one that made the call; one value after another, in their order, before anything is stored
 *   re-entry   may call the library, the store included; no lock is held. (To save through the coordinator that is saving
 *              is LLVS_ERROR_BUSY.)
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK, with the first `*size` bytes of `buffer` filled, at least one and at most `capacity`; or LLVS_END at the end, with
 *              `*size` left at 0, its value before the call. LLVS_OK without a byte, LLVS_END with one, and more than `capacity` bytes are
 *              LLVS_ERROR_INVALID_ARGUMENT. All else: the version is not made, and the call returns LLVS_ERROR_USER with the error in
 *              `error` (by llvs_error_create; optional); LLVS_ERROR_IO and LLVS_ERROR_CANCELLED keep their code
 */
typedef llvs_status (*llvs_read_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED uint8_t *buffer, size_t capacity, LLVS_BORROWED size_t *size,
    LLVS_OWNED llvs_error **error);

/**
 * Receives one piece of a file, or of a stream of packs. Since 0.1.
 *   thread     the one that made the call
 *   re-entry   may call the library; for a file of a transport, but not the exchange
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK; all else: llvs_outgoing_write fails as a callback of the transport does, and llvs_store_write_pack returns
 *              LLVS_ERROR_USER with the error in `error` (by llvs_error_create; optional); LLVS_ERROR_IO, LLVS_ERROR_NO_SPACE and
 *              LLVS_ERROR_CANCELLED keep their code
 */
typedef llvs_status (*llvs_write_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *piece, LLVS_OWNED llvs_error **error);

/**
 * A value to set whose bytes are requested piece by piece. With file storage, a value of more than 1 MiB is written directly to a file of
 * its own, so that only a piece of it is in memory; other storages gather it in memory. Since 0.1.
 */
typedef struct llvs_value_source {
    /** The value id. */
    llvs_bytes id;
    /**
     * Bytes in total; 0: not known beforehand, and then a large value is written twice. LLVS_ERROR_INVALID_ARGUMENT if the pieces have
     * another total.
     */
    uint64_t size;
    llvs_read_fn read;
    void *payload;
} llvs_value_source;
#define LLVS_VALUE_SOURCE_INIT { LLVS_NONE_INIT, 0, 0, 0 }

/** What a new version has in addition to its changes. Since 0.1. */
typedef struct llvs_version_options {
    uint32_t struct_size;
    /**
     * For llvs_coordinator_save, without a branch, and with `expected` set to the version at which the values were read. 1: save even if
     * the current version has moved. If one of the saved values has changed since `expected`, the new version is made on `expected` and
     * merged with the current version at once, by the arbiter of the coordinator, as if two devices had saved. So no change is lost. A
     * value that both changed is a conflict; if there are rules for the value, it is reported. If none of the saved values has changed, the
     * new version is made on the current one. If the merge fails, the save is a head of its own, which the next llvs_coordinator_merge
     * merges. LLVS_ERROR_MOVED if the current version does not descend from `expected`. llvs_store_make_version returns
     * LLVS_ERROR_INVALID_ARGUMENT for 1.
     */
    llvs_bool merges;
    /**
     * The id of the new version; empty: the content id, which is computed from the contents of the version (a UUID of version 8,
     * docs/format.md). With a content id other devices can check that the version is unchanged. An id of that form is refused if it is not
     * the content id of this version. Ids of other forms vouch for nothing. Making the same version again under its id is not an error.
     * Exchanges use the id as the name of a file: LLVS_ERROR_INVALID_VERSION_ID for ids that begin with `-`, and for names of devices (CON,
     * PRN, AUX, NUL, COM1 to COM9, LPT1 to LPT9, in any case). Versions that other devices made under such ids are accepted and passed on.
     */
    llvs_bytes id;
    /** The name of its branch, UTF-8, at most 1024 bytes; empty: none. */
    llvs_bytes branch;
    /** If a key is given twice, the last entry counts. */
    const llvs_metadata_entry *metadata;
    size_t metadata_count;
    /** Further values to set, `source_count` structs, `source_size` bytes each; NULL if there are none. */
    const llvs_value_source *sources;
    size_t source_count;
    /** sizeof(llvs_value_source). */
    size_t source_size;
    /**
     * The timestamp of the version, in seconds since 1970-01-01 UTC; 0: now. If the clock is behind the predecessor's timestamp, 0 means a
     * microsecond after that; if it is behind by more than a minute, the metadata also get `__llvs_clock`, the time of the clock in seconds
     * since 2001. Finite, and later than the predecessor's timestamp: else LLVS_ERROR_INVALID_ARGUMENT.
     */
    double timestamp;
    /**
     * For llvs_coordinator_save: the version that is expected to be current (with a branch: to be the newest head of the branch). If
     * another one is, nothing is stored and the call returns LLVS_ERROR_MOVED, unless `merges` is set. Empty: any. For
     * llvs_store_make_version it must be empty: else LLVS_ERROR_INVALID_ARGUMENT.
     */
    llvs_bytes expected;
} llvs_version_options;
#define LLVS_VERSION_OPTIONS_INIT                                                                                                          \
    { (uint32_t)sizeof(llvs_version_options), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, 0, 0, 0, 0, 0, 0, LLVS_NONE_INIT }

/**
 * Records one version: all of it or nothing, also if there is a crash.
 * @param predecessor   the version whose state the new one starts from: the newest head (the first of llvs_store_heads), or the result of
 *                      the last save. LLVS_NONE makes a root, which starts from an *empty* state: use it for the first version of a store.
 *                      In a store that has versions, a root is a separate history: it has none of the existing values, shares no ancestor
 *                      with them, and merges with them two-way. That is not an error, so do not pass LLVS_NONE unless you mean it
 * @param changes       `change_count` structs, `change_size` bytes each; NULL if there are none. Each value id at most once
 * @param change_size   sizeof(llvs_change)
 * @param options       id, branch, metadata, and values that are read in pieces; may be NULL
 * @param id            receives the new version's id; may be NULL. Cheap: no allocation. It may be the variable that `predecessor` points
 *                      to, and then a failed call leaves it unchanged: a loop that saves on `&head` needs only one variable
 * @param version       receives a list of the one version; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_PREDECESSOR, LLVS_ERROR_DUPLICATE_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8,
 * LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_REFERENCE, LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_VERSION_MISMATCH,
 * LLVS_ERROR_UNPORTABLE_ID (`no_other_readers` of llvs_exchange_options), storage errors; LLVS_ERROR_USER and other errors of a value's
 * `read`. Cost: the changes; O(log n) in the number of values. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_make_version(LLVS_BORROWED llvs_store *store, llvs_bytes predecessor,
    LLVS_BORROWED const llvs_change *changes, size_t change_count, size_t change_size, LLVS_BORROWED const llvs_version_options *options,
    LLVS_BORROWED llvs_version_id *id, LLVS_OWNED llvs_version_list **version, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * History
 * ------------------------------------------------------------------------------------------------ */

/**
 * Returns one version, as a list of one; NULL if it is not in the store (after a reload). Errors: LLVS_ERROR_INVALID_VERSION_ID, storage
 * errors. O(1). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_version(LLVS_BORROWED llvs_store *store, llvs_bytes id, LLVS_OWNED llvs_version_list **version,
    LLVS_OWNED llvs_error **error);
/**
 * Returns many versions, in the order of `ids`.
 * Errors: LLVS_ERROR_UNKNOWN_VERSION if one is not in the store, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_versions(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_bytes *ids, size_t count,
    LLVS_OWNED llvs_version_list **versions, LLVS_OWNED llvs_error **error);
/** Which heads to list. Since 0.1. */
typedef struct llvs_heads_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** Only heads that carry this branch name, UTF-8; empty: all. */
    llvs_bytes branch;
    /** At most this many, the newest ones; 0: all. */
    uint64_t limit;
    /** Progress (stage LLVS_STAGE_LISTING) and cancellation; may be NULL. Ignored with a limit of 1 and no branch. */
    const llvs_control *control;
} llvs_heads_options;
#define LLVS_HEADS_OPTIONS_INIT { (uint32_t)sizeof(llvs_heads_options), 0, LLVS_NONE_INIT, 0, 0 }
/**
 * Returns the heads, newest first; with a limit of 1 only the most recent one. To list the branches, take the first head of each branch
 * name: it is the newest of that branch.
 * @param options  may be NULL
 * @param heads    an empty list if there are none
 * Errors: LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback), storage errors. O(heads). Since
 * 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_heads(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_heads_options *options,
    LLVS_OWNED llvs_version_list **heads, LLVS_OWNED llvs_error **error);
/**
 * Returns the versions that have this one as a predecessor, newest first.
 * @param control  progress (stage LLVS_STAGE_LISTING) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback).
 * Cost: the successors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_successors(LLVS_BORROWED llvs_store *store, llvs_bytes id,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_version_list **successors, LLVS_OWNED llvs_error **error);
/**
 * Reports whether `ancestor` is an ancestor of `descendant`. A version is not its own ancestor.
 * @param control  progress (stage LLVS_STAGE_READING) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback).
 * Cost: at most the versions whose generation lies between the two. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_is_ancestor(LLVS_BORROWED llvs_store *store, llvs_bytes ancestor, llvs_bytes descendant,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED llvs_bool *is_ancestor, LLVS_OWNED llvs_error **error);
/**
 * Returns all best common ancestors of two versions, newest first; an empty list if they share none. For a version and its ancestor: the
 * ancestor.
 * @param control  progress (stage LLVS_STAGE_READING) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback).
 * Cost: the versions between the two and their bases. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_merge_bases(LLVS_BORROWED llvs_store *store, llvs_bytes a, llvs_bytes b,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_version_list **bases, LLVS_OWNED llvs_error **error);
/**
 * Returns the version that was current at a time. The candidates are `head` and its ancestors that were made (`made_at`) at or before that
 * time, except those with a descendant among them. The result is the candidate that was made last. (So if two lines were separate at that
 * time and merged afterwards, the line with the later version counts.)
 * @param time     seconds since 1970-01-01 UTC
 * @param head     a version; empty: the most recent head
 * @param control  progress (stage LLVS_STAGE_READING) and cancellation; may be NULL
 * @param version  a list of the one version, or NULL if all are later
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_ARGUMENT (a time that is not a number),
 * LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback). Cost: the versions that are later. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_version_at(LLVS_BORROWED llvs_store *store, double time, llvs_bytes head,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_version_list **version, LLVS_OWNED llvs_error **error);
/**
 * Returns all versions that stored bytes for a value id, newest first.
 * @param control  progress (stage LLVS_STAGE_READING) and cancellation; may be NULL
 * Errors: LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback),
 * storage errors. Cost: as for llvs_store_history of one value. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_versions_of(LLVS_BORROWED llvs_store *store, llvs_bytes value_id,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_version_list **versions, LLVS_OWNED llvs_error **error);

/** Selects the versions to walk through: those that satisfy all given conditions. Since 0.1. */
typedef struct llvs_history_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** These versions and their ancestors; NULL with 0: all versions. */
    const llvs_bytes *from;
    size_t from_count;
    /**
     * Excludes these versions and their ancestors: the rest is new to a device that has them (git's "a..b" is from b, hiding a). NULL with
     * 0: nothing is hidden.
     */
    const llvs_bytes *hiding;
    size_t hiding_count;
    /** Versions that carry this branch name, UTF-8; empty: any. */
    llvs_bytes branch;
    /**
     * The history of one value: versions that recorded a change of it. That is an insert, an update, a removal, or one of these that a
     * merge preserved; `change` of llvs_version_info says which. A revert records the inverse. In received versions LLVS_CHANGE_INSERT and
     * LLVS_CHANGE_UPDATE are the labels of their makers: an id vouches for the bytes that were set, not for the label. Empty: any.
     */
    llvs_bytes value_id;
    /** Versions that recorded a change of a value whose id begins with these bytes; empty: any. Need not be whole UTF-8 characters. */
    llvs_bytes prefix;
} llvs_history_options;
#define LLVS_HISTORY_OPTIONS_INIT \
    { (uint32_t)sizeof(llvs_history_options), 0, 0, 0, 0, 0, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT }

/** A walk through the history, in pages. It shows the history as of its creation. One thread at a time. Since 0.1. */
typedef struct llvs_history_cursor llvs_history_cursor;
/**
 * Begins a walk from the heads back, in topological order: each version comes before its predecessors. Versions with a longer path to a
 * root come first, and among equal ones the newest.
 * @param options  NULL: the whole history
 * @param control  progress (stage LLVS_STAGE_READING) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8,
 * LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback), storage errors. Cost: the heads. For one value: the versions that
 * changed it, and those with more than 1,024 changes; the first time in a process, and after many versions were added, also the number of
 * versions. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_history(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_history_options *options,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_history_cursor **cursor, LLVS_OWNED llvs_error **error);
/**
 * Returns the next page.
 * @param limit     how many versions at most; 0: 1000
 * @param control   as for llvs_store_history; progress counts the versions visited. After LLVS_ERROR_CANCELLED the walk can continue
 * @param versions  the page; NULL at the end of the walk
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_USER, storage errors. Cost: the page, and the versions that are skipped to find it. With
 * `branch` these are versions of other branches; with `prefix`, versions without such values, whose records are read; with `value_id`
 * together with `from` or `hiding`, versions in between. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_history_cursor_next(LLVS_BORROWED llvs_history_cursor *cursor, size_t limit,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_version_list **versions, LLVS_OWNED llvs_error **error);
/** Releases the cursor. Since 0.1. */
LLVS_API void llvs_history_cursor_free(LLVS_OWNED llvs_history_cursor *cursor);

/* ------------------------------------------------------------------------------------------------
 * Reading values
 * ------------------------------------------------------------------------------------------------ */

/**
 * Returns the value that prevails at a version. A value always prevails at the version that stored it. So to read the bytes to which a
 * change, a fork or a value refers by `stored_version` or the like, read at that version.
 * @param id              the value id
 * @param at              the version
 * @param data            receives the bytes; its data is NULL if there is no such value. Release with llvs_buffer_dispose
 * @param stored_version  receives the version that stored them (size 0 if there is no such value); may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID, storage errors;
 * LLVS_ERROR_ERASED or LLVS_ERROR_FORGOTTEN if the bytes of the value are gone.
 * Cost: O(log n) and the value's size.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_value(LLVS_BORROWED llvs_store *store, llvs_bytes id, llvs_bytes at,
    LLVS_OWNED llvs_buffer *data, LLVS_BORROWED llvs_version_id *stored_version, LLVS_OWNED llvs_error **error);
/**
 * Copies the value that prevails at a version into memory of the caller, so that reading many values needs no allocation.
 * @param buffer          receives the bytes if they fit, without a NUL; may be NULL if `capacity` is 0. Its bytes are undefined after a
 *                        failure
 * @param capacity        bytes in `buffer`
 * @param size            receives the size of the value; SIZE_MAX if there is none, 0 after a failure. If it is more than `capacity`,
 *                        nothing was copied: call again with more
 * @param stored_version  as for llvs_store_value
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID, storage errors.
 * Cost: O(log n) and the value's size. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_read_value(LLVS_BORROWED llvs_store *store, llvs_bytes id, llvs_bytes at,
    LLVS_BORROWED void *buffer, size_t capacity, LLVS_BORROWED size_t *size, LLVS_BORROWED llvs_version_id *stored_version,
    LLVS_OWNED llvs_error **error);
/**
 * Reads one value in parts, so that it need not be in memory as a whole. Any thread; the calls of one reader wait for each other. Since
 * 0.1.
 */
typedef struct llvs_value_reader llvs_value_reader;
/**
 * Opens the value that prevails at a version, without reading it; also the way to get its size. The reader keeps reading that value,
 * whatever is saved or compacted meanwhile.
 * @param reader          NULL if there is no such value
 * @param size            receives the size of the value; 0 if there is none; may be NULL
 * @param stored_version  as for llvs_store_value
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID, storage errors.
 * Cost: O(log n). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_open_value(LLVS_BORROWED llvs_store *store, llvs_bytes id, llvs_bytes at,
    LLVS_OWNED llvs_value_reader **reader, LLVS_BORROWED uint64_t *size, LLVS_BORROWED llvs_version_id *stored_version,
    LLVS_OWNED llvs_error **error);
/**
 * Copies the bytes of the value from `offset` on, and checks all of them.
 * @param buffer    receives at most `capacity` bytes, without a NUL; may be NULL if `capacity` is 0. Its bytes are undefined after a
 *                  failure
 * @param size      receives how many: fewer than `capacity` only at the end of the value, 0 at the end and after it
 * Errors: storage errors; LLVS_ERROR_DAMAGED if a block that is read differs from what was written; LLVS_ERROR_ERASED;
 * LLVS_ERROR_FORGOTTEN.
 * Cost: with file storage, a value above 1 MiB is read and checked in the blocks of 64 KiB that are needed; the first call reads a smaller
 * one as a whole and keeps it. With other storages, the first call reads a value above 1 MiB completely, to check it, and keeps checksums
 * of its blocks; if such a value is deflated, reading backwards inflates it from its beginning. A value that is stored as a difference is
 * read as a whole by the first call, and kept. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_value_reader_read(LLVS_BORROWED llvs_value_reader *reader, uint64_t offset,
    LLVS_BORROWED void *buffer, size_t capacity, LLVS_BORROWED size_t *size, LLVS_OWNED llvs_error **error);
/** Releases the reader. Since 0.1. */
LLVS_API void llvs_value_reader_free(LLVS_OWNED llvs_value_reader *reader);
/**
 * Returns which version stored the value that prevails, without reading the value; size 0 if there is no such value. Use it to check
 * whether a value exists.
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID, storage errors.
 * Cost: O(log n). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_reference(LLVS_BORROWED llvs_store *store, llvs_bytes id, llvs_bytes at,
    LLVS_BORROWED llvs_version_id *stored_version, LLVS_OWNED llvs_error **error);
/**
 * Returns many values at one version: an element for each id, in order, `present` or not. Errors: LLVS_ERROR_UNKNOWN_VERSION,
 * LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_values(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_bytes *ids, size_t count,
    llvs_bytes at, LLVS_OWNED llvs_value_list **values, LLVS_OWNED llvs_error **error);
/**
 * Returns many values at one version, in a few large pieces.
 * @param ids       the value ids, one behind the other, with nothing between them
 * @param id_sizes  the size of each, `count` in all
 * @param block     receives the values, in order
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID, storage errors;
 * LLVS_ERROR_INVALID_ARGUMENT if the sizes do not add up. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_value_block(LLVS_BORROWED llvs_store *store, llvs_bytes ids,
    LLVS_BORROWED const uint64_t *id_sizes, size_t count, llvs_bytes at, LLVS_OWNED llvs_value_block **block,
    LLVS_OWNED llvs_error **error);

/** Selects the values to enumerate: those that satisfy all given conditions. Since 0.1. */
typedef struct llvs_range {
    uint32_t struct_size;
    /** 1: ids and references only. */
    llvs_bool without_data;
    /** Ids that begin with these bytes; empty: all. Need not be whole UTF-8 characters. */
    llvs_bytes prefix;
    /** Ids that are not before these bytes; empty: from the first. */
    llvs_bytes from;
    /** Ids that are before these bytes; empty: to the last. */
    llvs_bytes to;
    /** Ids that come after this one: for the next page, the last id of the one before; empty: from the first. */
    llvs_bytes after;
    /** How many values a page holds at most; 0: 1000. */
    uint64_t limit;
    /** A page ends after the value with which its data reaches this many bytes; 0: 16 MiB. */
    uint64_t byte_limit;
    /** Ids that come before this one: for the next page of a reverse enumeration, the last id of the one before; empty: to the last. */
    llvs_bytes before;
    /** 1: from the last id to the first. */
    llvs_bool reverse;
    uint32_t reserved;
} llvs_range;
#define LLVS_RANGE_INIT \
    { (uint32_t)sizeof(llvs_range), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, 0, 0, LLVS_NONE_INIT, 0, 0 }
/**
 * Returns one page of the values at a version, in byte order of their ids, or the reverse. A version never changes, so pages that are
 * requested at different times fit together.
 * @param range   NULL: all, from the first
 * @param values  the page; NULL at the end
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Cost: O(log n) and the page.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_enumerate(LLVS_BORROWED llvs_store *store, llvs_bytes at,
    LLVS_BORROWED const llvs_range *range, LLVS_OWNED llvs_value_list **values, LLVS_OWNED llvs_error **error);
/**
 * Returns one page of the values at a version, as llvs_store_enumerate does, in a few large pieces; NULL at the end. Errors:
 * LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Cost: O(log n) and the page. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_enumerate_block(LLVS_BORROWED llvs_store *store, llvs_bytes at,
    LLVS_BORROWED const llvs_range *range, LLVS_OWNED llvs_value_block **block, LLVS_OWNED llvs_error **error);
/**
 * Returns how many values prevail at a version (`limit`, `byte_limit`, `without_data` and `reverse` of the range are ignored).
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, storage errors. O(log n). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_count(LLVS_BORROWED llvs_store *store, llvs_bytes at, LLVS_BORROWED const llvs_range *range,
    LLVS_BORROWED uint64_t *count, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Changes and differences
 * ------------------------------------------------------------------------------------------------ */

/** Lists changes in byte order of their ids, in pages. One thread at a time. Since 0.1. */
typedef struct llvs_change_cursor llvs_change_cursor;
/**
 * Lists the changes that a version recorded.
 * @param range    only values in it; NULL: all. (Its `limit`, `byte_limit`, `without_data` and `reverse` are ignored.)
 * @param control  progress (stage LLVS_STAGE_READING, in changes) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback),
 * storage errors. Cost: the changes. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_changes(LLVS_BORROWED llvs_store *store, llvs_bytes version,
    LLVS_BORROWED const llvs_range *range, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_change_cursor **cursor,
    LLVS_OWNED llvs_error **error);
/**
 * Lists the changes that lead from the state at `from` to the state at `to`, as insert, update and remove. Any two versions, related or
 * not. Values are compared by the versions that stored them: a value that was stored again is an update, even with the same bytes. So if
 * two versions hold equal values that do not come from a common ancestor, all these values differ. (If the storing versions differ, a merge
 * compares bytes: for a merge, equal bytes are no conflict and no change.)
 * @param range    only values in it; NULL: all. (Its `limit`, `byte_limit`, `without_data` and `reverse` are ignored.)
 * @param control  progress (stage LLVS_STAGE_READING, in changes) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback),
 * storage errors. Cost: the changes recorded between the two, or the values that differ in the range; not the number of values. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_differences(LLVS_BORROWED llvs_store *store, llvs_bytes from, llvs_bytes to,
    LLVS_BORROWED const llvs_range *range, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_change_cursor **cursor,
    LLVS_OWNED llvs_error **error);
/** Returns how many changes there are in total. Since 0.1. */
LLVS_API size_t llvs_change_cursor_count(LLVS_BORROWED const llvs_change_cursor *cursor);
/**
 * Returns the next page.
 * @param limit      how many changes at most; 0: 1000. With data a page also ends after 16 MiB of it
 * @param with_data  1: with the bytes of insert and update; 0: without
 * @param changes    the page; NULL at the end
 * Errors: storage errors. Cost: the page. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_change_cursor_next(LLVS_BORROWED llvs_change_cursor *cursor, size_t limit, llvs_bool with_data,
    LLVS_OWNED llvs_change_list **changes, LLVS_OWNED llvs_error **error);
/** Releases the cursor. Since 0.1. */
LLVS_API void llvs_change_cursor_free(LLVS_OWNED llvs_change_cursor *cursor);

LLVS_LAYOUT(llvs_metadata_entry, 32);
LLVS_LAYOUT(llvs_change, 56);
LLVS_LAYOUT(llvs_version_info, 120);
LLVS_LAYOUT(llvs_value_info, 64);
LLVS_LAYOUT(llvs_version_list, 24);
LLVS_LAYOUT(llvs_value_list, 24);
LLVS_LAYOUT(llvs_value_block, 104);
LLVS_LAYOUT(llvs_change_info, 72);
LLVS_LAYOUT(llvs_change_list, 24);
LLVS_LAYOUT(llvs_store_options, 96);
LLVS_LAYOUT(llvs_statistics, 104);
LLVS_LAYOUT(llvs_size_options, 40);
LLVS_LAYOUT(llvs_size_row, 72);
LLVS_LAYOUT(llvs_size_report, 80);
LLVS_LAYOUT(llvs_erase_options, 104);
LLVS_LAYOUT(llvs_erase_report, 120);
LLVS_LAYOUT(llvs_erasure_place, 40);
LLVS_LAYOUT(llvs_erasure, 120);
LLVS_LAYOUT(llvs_erasure_list, 24);
LLVS_LAYOUT(llvs_forget_options, 32);
LLVS_LAYOUT(llvs_forget_row, 24);
LLVS_LAYOUT(llvs_forget_report, 72);
LLVS_LAYOUT(llvs_damage, 96);
LLVS_LAYOUT(llvs_verify_report, 88);
LLVS_LAYOUT(llvs_salvaged, 40);
LLVS_LAYOUT(llvs_salvage_report, 56);
LLVS_LAYOUT(llvs_compaction_report, 64);
LLVS_LAYOUT(llvs_value_source, 40);
LLVS_LAYOUT(llvs_version_options, 104);
LLVS_LAYOUT(llvs_history_options, 88);
LLVS_LAYOUT(llvs_heads_options, 40);
LLVS_LAYOUT(llvs_range, 112);

LLVS_END_DECL

#endif

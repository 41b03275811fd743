/*
 * llvs/indexes.h - indexes and projections: finding values by their contents, and SQL.
 *
 * An index finds the values whose contents have a key, at any version:
 *
 *     llvs_index_options options = LLVS_INDEX_OPTIONS_INIT;
 *     llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
 *     llvs_index *names;
 *     llvs_index_page *page;
 *     llvs_error *error;
 *     options.definition = llvs_str("{\"prefix\": \"contact/\", \"on\": [\"/lastName\"], \"text\": \"fold\"}");
 *     question.equal = llvs_str("[\"Smith\"]");
 *     if (llvs_index_open(store, &options, &names, &error) != LLVS_OK) return 1;
 *     if (llvs_index_find(names, LLVS_NONE, &question, NULL, &page, &error) == LLVS_OK) {
 *         if (page->count > 0) printf("%s\n", (const char *)page->ids.data);     // the id of the first value found
 *         llvs_index_page_free(page);
 *     } else llvs_error_free(error);
 *     llvs_index_free(names);
 *
 * CAVEATS
 *
 *  - The first query at a version builds the index from the nearest version that has it, so it takes longer than later ones.
 *  - A value that is not JSON, or lacks the first part of the key, is not in an index: llvs_index_explain returns the reason.
 *  - Programs only read the database of a projection. The library writes it, and may rebuild it from the store.
 *
 * llvs.h has an overview, and llvs/common.h the conventions.
 */
#ifndef LLVS_INDEXES_H
#define LLVS_INDEXES_H

#include "coordinator.h"

LLVS_BEGIN_DECL

/* ------------------------------------------------------------------------------------------------
 * Finding values
 * ------------------------------------------------------------------------------------------------ */

/**
 * An index: finds values by keys that are computed from their contents, in sorted order. It works at any version, in every branch: each
 * query names a version, and finds the values that prevail there. The library builds the index at the first query at a version, from the
 * nearest version that has it and the values that differ. It is cached in memory within the store's budget, and on disk, in the store's
 * caches, for one version. An index keeps its store alive. Safe from all threads. Since 0.1.
 *
 * A definition is part of the rules of the store ("__llvs_schema"), under "indexes", or is passed when the index is opened:
 *
 *     {"prefix": "contact/", "on": ["/lastName", "/firstName"], "text": "fold", "where": {"/done": false}}
 *
 *   prefix  the ids of its values begin with this; may be empty
 *   on      1 to 8 JSON pointers to the parts of a key, which are scalars; a segment `*` matches each element or member
 *   text    "bytes": strings by their UTF-8; "fold": without case and diacritics
 *   where   only values that satisfy all of it: from pointers to scalars, or {"present": true} or {"present": false}
 *
 * Parts are in the order missing, null, false, true, numbers by value, strings. A value that is not JSON, or lacks the first part, is not
 * in the index: llvs_index_explain says why. docs/index-keys.md is normative.
 */
typedef struct llvs_index llvs_index;
/** Which index to open: by `name` or by `definition`. Since 0.1. */
typedef struct llvs_index_options {
    uint32_t struct_size;
    /** 1: with a coordinator, a thread of the library builds the index at each new current version, as long as the index is open. */
    llvs_bool warm;
    /** The name of an index that the store's rules define, UTF-8, 1 to 128 bytes; empty: `definition` is given. */
    llvs_bytes name;
    /** A definition, as JSON; empty: `name` is given. */
    llvs_bytes definition;
    /** A coordinator of the store: queries without a version use its current version. NULL: they use the newest head. It is kept alive. */
    llvs_coordinator *coordinator;
} llvs_index_options;
#define LLVS_INDEX_OPTIONS_INIT { (uint32_t)sizeof(llvs_index_options), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, 0 }
/**
 * Opens an index, without building anything yet.
 *
 * A named index looks up its definition at each query: first in the version queried, then in the current version. Names with the same
 * definition share one tree.
 * @param index  the index; release it with llvs_index_free
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (neither a name nor a definition, or both; a coordinator of another store, or none with `warm`; an
 * invalid definition: llvs_error_path is the JSON pointer to the mistake), LLVS_ERROR_CLOSED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_index_open(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_index_options *options,
    LLVS_OWNED llvs_index **index, LLVS_OWNED llvs_error **error);
/** Receives the keys of one value from a callback; lives for the callback only. Since 0.1. */
typedef struct llvs_index_keys llvs_index_keys;
/**
 * Computes the keys of a value and passes each to llvs_index_keys_add: any number, in any order. The keys must depend on the id and the
 * bytes only, and be the same each time. Since 0.1.
 *   thread     the one that queries or builds the index; several at once if several do
 *   re-entry   may call the library, the store included; no lock is held. (To query the index that is being built is LLVS_ERROR_BUSY.)
 *   pointers   live for the callback only
 *   result     LLVS_OK: the added keys are the keys of the value; if there are none, it is not in the index. All else: the query fails,
 *              keeps nothing that it built, and returns LLVS_ERROR_USER with the error in `error` (by llvs_error_create; optional)
 */
typedef llvs_status (*llvs_index_keys_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *id,
                                          LLVS_BORROWED const llvs_bytes *data, LLVS_BORROWED llvs_index_keys *keys,
                                          LLVS_OWNED llvs_error **error);
/**
 * Adds a key; adding it again has no effect. A key of more than 1,024 bytes is found as well, by calling the callback again.
 * @param tuple  a JSON array with as many scalars as the index has parts; `{}` is a missing part, except for the first. Copied
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (not such an array; the 10,001st key of a value); then the query fails with that, whatever the
 * callback returns. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_index_keys_add(LLVS_BORROWED llvs_index_keys *keys, llvs_bytes tuple,
    LLVS_OWNED llvs_error **error);
/** How to open an index whose keys a callback computes. Since 0.1. */
typedef struct llvs_computed_index_options {
    uint32_t struct_size;
    /** As in llvs_index_options; then the callback is also called on a thread of the library. */
    llvs_bool warm;
    /** The ids of its values begin with this, UTF-8; may be empty. */
    llvs_bytes prefix;
    /** With a `callback_version`: a name for the callback, UTF-8, at most 128 bytes; may be empty. */
    llvs_bytes name;
    /** How many parts a key has, 1 to 8; 0: one. */
    uint32_t parts;
    /**
     * Raise this when the callback computes other keys than before. With a name and a number other than 0, the index is stored in the
     * caches of the store, and used by all handles with the same name, number, prefix and parts. Else only this handle has it.
     */
    uint32_t callback_version;
    /** As in llvs_index_options. */
    llvs_coordinator *coordinator;
} llvs_computed_index_options;
#define LLVS_COMPUTED_INDEX_OPTIONS_INIT \
    { (uint32_t)sizeof(llvs_computed_index_options), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, 0, 0, 0 }
/**
 * Opens an index whose keys the host computes, for values of any kind, also values that are not JSON. Builds nothing yet. It is queried as
 * other indexes are; their rules about JSON do not apply to its values.
 * @param options  may be NULL: all values, keys of one part
 * @param keys, payload, payload_free  see "Callbacks" in common.h
 * @param index    the index; release it with llvs_index_free
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (a number of parts or a length out of range; a coordinator as for llvs_index_open),
 * LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_CLOSED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_computed_index_open(LLVS_BORROWED llvs_store *store,
    LLVS_BORROWED const llvs_computed_index_options *options, llvs_index_keys_fn keys, LLVS_OWNED void *payload, llvs_free_fn payload_free,
    LLVS_OWNED llvs_index **index, LLVS_OWNED llvs_error **error);
/** Releases the index. Since 0.1. */
LLVS_API void llvs_index_free(LLVS_OWNED llvs_index *index);
/** What a page of an index contains besides ids: any of these, joined by `|`. Since 0.1. */
typedef uint32_t llvs_index_want;
enum llvs_index_want_value {
    /** The keys. */
    LLVS_INDEX_KEYS = 1,
    /** The values. */
    LLVS_INDEX_VALUES = 2,
    /** How many entries match on all pages. */
    LLVS_INDEX_COUNT = 4
};
/**
 * A query of an index. Without conditions: all entries. Since 0.1.
 *
 * Tuples are JSON arrays of scalars, like `["Smith","Ann"]`, in which `{}` is a missing part. An entry matches if its first parts are
 * `equal`, and if the parts after them have the beginning or are within the bounds. `equal` together with the beginning or a bound must not
 * have more parts than the index. A bound may have fewer parts than remain: then it includes all keys that begin with these parts. With
 * only `low` or only `high` the range runs to the end of the entries that begin with `equal`, and includes values of other types.
 */
typedef struct llvs_index_question {
    uint32_t struct_size;
    llvs_index_want want;
    /** The first parts; empty: none. */
    llvs_bytes equal;
    /** With `has_begin`: the beginning of the string after them, in UTF-8; empty: any string. Not with bounds. */
    llvs_bytes begin;
    /** The lower bound; empty: none. */
    llvs_bytes low;
    /** The upper bound; empty: none. */
    llvs_bytes high;
    /** The cursor of the previous page; empty: from the first. */
    llvs_bytes after;
    /** How many entries a page holds at most; 0: 1000. */
    uint64_t limit;
    /** With values, a page ends after the value with which they reach this many bytes; 0: 16 MiB. */
    uint64_t byte_limit;
    /** 1: use `begin`. */
    llvs_bool has_begin;
    /** 1: exclude `low` itself. */
    llvs_bool low_open;
    /** 1: exclude `high` itself. */
    llvs_bool high_open;
    /** 1: from the last entry to the first. */
    llvs_bool reverse;
    /** 1: if a value matches with several keys, only the first one found. */
    llvs_bool unique;
    uint32_t reserved;
} llvs_index_question;
#define LLVS_INDEX_QUESTION_INIT \
    { (uint32_t)sizeof(llvs_index_question), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, 0, 0, 0, \
      0, 0, 0, 0, 0 }
/** One page of the entries found, in order. Immutable, owned. Since 0.1. */
typedef struct llvs_index_page {
    uint32_t struct_size;
    uint32_t reserved;
    /** With LLVS_INDEX_COUNT: how many entries match on all pages; else 0. */
    uint64_t total;
    /** How many entries the page has. */
    size_t count;
    /** The ids of the values, each followed by a NUL that `id_sizes` does not count. */
    llvs_bytes ids;
    /** The size of each id. */
    const uint64_t *id_sizes;
    /**
     * With LLVS_INDEX_KEYS the tuples, each a JSON array followed by a NUL: strings as spelled in the value, numbers as the shortest
     * decimal, `{}` for a missing part.
     */
    llvs_bytes keys;
    /** The size of each key; NULL if they were not requested. */
    const uint64_t *key_sizes;
    /** With LLVS_INDEX_VALUES the values, one for each entry, with their ids; NULL if they were not requested. Borrowed from the page. */
    const llvs_value_block *values;
    /** Where the next page begins; empty if this is the last. It stays valid at this version for ever. */
    llvs_bytes cursor;
} llvs_index_page;
/** Releases the page with all that it points to. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_index_page_free(LLVS_OWNED llvs_index_page *page);
/**
 * Returns one page of the entries of an index at a version.
 * @param at        the version; empty: the current one
 * @param question  NULL: all entries
 * @param control   progress (stage LLVS_STAGE_READING, in values read) and cancellation; may be NULL. A cancelled call leaves nothing
 *                  partial
 * @param page      the page, which may have no entries
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_NOT_FOUND (no index of that name is defined),
 * LLVS_ERROR_INVALID_ARGUMENT (a malformed tuple, too many parts, a beginning together with bounds, a cursor of another index),
 * LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_DAMAGED (with the id of a value that cannot be read: without it the result would be wrong),
 * LLVS_ERROR_BUSY (from within a callback of the call that builds the index), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress
 * callback, or the one that computes keys), LLVS_ERROR_OUT_OF_MEMORY, storage errors. Cost: O(log n) and the page; the first time at a
 * version, reading the values that differ from the nearest version that has the index, or all under its prefix. `unique` reads the values
 * found; with bounds longer than 1,023 bytes, the values that agree with their first 1,023 bytes are read. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_index_find(LLVS_BORROWED llvs_index *index, llvs_bytes at,
    LLVS_BORROWED const llvs_index_question *question, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_index_page **page,
    LLVS_OWNED llvs_error **error);
/**
 * Returns the keys under which a value is in an index, or why it is not, as JSON:
 *
 *     {"keys":[["Smith","Ann"]],"bytes":["08…"],"why":null,"definition":{…},"from":"<version id>"}
 *
 * `bytes` are the keys as they are compared, in hexadecimal. `why` is set if there are no keys: "prefix", "reserved", "not-json", "where",
 * "too-many-keys", "no-first-part" or "no-keys", as defined in docs/index-keys.md, or "no-value": the value is absent at the version.
 * `from` is the version at which the definition was found, or null.
 * @param at  the version; empty: the current one
 * @param id  the value id
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8,
 * LLVS_ERROR_NOT_FOUND, storage errors. Cost: the size of the value. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_index_explain(LLVS_BORROWED llvs_index *index, llvs_bytes at, llvs_bytes id,
    LLVS_OWNED llvs_buffer *json, LLVS_OWNED llvs_error **error);

/**
 * A SQLite database that mirrors one version of a store in tables. Programs open it with any driver and query it (joins, aggregates, full
 * text); only the library writes it. An update writes what differs, in one transaction that also records the version: readers, also after a
 * crash, always see exactly one version. Everything in it is derived from the store: if it is deleted, it is rebuilt. It is in WAL mode, so
 * readers never wait. A projection keeps its store alive. Safe from all threads; updates run one at a time. Since 0.1.
 *
 * A definition, as JSON, names the tables:
 *
 *     {"tables": {"people": {"prefix": "contact/", "columns": [{"name": "last", "pointer": "/lastName", "type": "text"}],
 *         "id": "id", "indexes": [["last"]], "search": {"name": "people_search", "columns": ["last"], "tokenize": "porter"}}}}
 *
 *   prefix   the ids of the values in the table begin with this; may be empty
 *   columns  1 to 64: a JSON pointer, and "text", "integer", "real", "boolean" (0 or 1) or "json" (anything, as canonical JSON)
 *   id       the name of the column with the value id; default "id"
 *   indexes  indexes of SQLite, each the names of its columns
 *   search   a table of FTS5 over some columns, with the id; "unicode61" (default), "porter" or "trigram"
 *
 * If a value does not fit its column, the column is NULL, and llvs_projection_problems reports it. Names have 1 to 63 letters, digits and
 * underscores, and do not begin with "llvs_" or "sqlite_". If the definition changes, all tables are rebuilt, in one transaction.
 */
typedef struct llvs_projection llvs_projection;
/** How to open a projection. Since 0.1. */
typedef struct llvs_projection_options {
    uint32_t struct_size;
    /** The permissions of a new database, restricted by the process's umask; 0: 0600. */
    uint32_t file_mode;
    /**
     * A coordinator of the store: from opening on, a thread of the library keeps the database at its current version. NULL: only
     * llvs_projection_update updates it. It is kept alive.
     */
    llvs_coordinator *coordinator;
    /** Seconds to wait while other programs write to the database; 0: 5. */
    double busy_timeout;
} llvs_projection_options;
#define LLVS_PROJECTION_OPTIONS_INIT { (uint32_t)sizeof(llvs_projection_options), 0, 0, 0 }
/**
 * Opens the database of a projection, or creates it if it does not exist. The first update makes its tables.
 * @param path        of the database: a file in the file system of this host
 * @param definition  its tables, as JSON
 * @param options     NULL: the defaults
 * @param projection  the projection; release it with llvs_projection_free
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (an invalid definition: llvs_error_path is the JSON pointer to the mistake; a coordinator of another
 * store), LLVS_ERROR_NOT_A_STORE (the file is not a projection; it is left unchanged), LLVS_ERROR_NEWER_FORMAT, LLVS_ERROR_DAMAGED,
 * LLVS_ERROR_BUSY, LLVS_ERROR_UNSUPPORTED (there is no SQLite), LLVS_ERROR_CLOSED, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_projection_open(LLVS_BORROWED llvs_store *store, llvs_bytes path, llvs_bytes definition,
    LLVS_BORROWED const llvs_projection_options *options, LLVS_OWNED llvs_projection **projection, LLVS_OWNED llvs_error **error);
/**
 * Moves the database to a version, by writing what differs from its present version. If its tables do not match the definition, or the
 * store does not have that version any more, it rebuilds them.
 * @param to            the version; empty: the coordinator's current one, or the newest head
 * @param control       progress (stage LLVS_STAGE_READING, in values) and cancellation, which leaves the database unchanged; may be NULL
 * @param rows_changed  how many rows were inserted, changed or deleted; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_DAMAGED (with the id of a value that cannot be read; or the
 * database itself is damaged: delete it), LLVS_ERROR_BUSY (others hold a lock on the database; or called from within the progress callback
 * of the same projection), LLVS_ERROR_INVALID_ARGUMENT (the database has a table with one of the names that the projection did not make),
 * LLVS_ERROR_UNSUPPORTED (an SQLite without FTS5), LLVS_ERROR_NO_SPACE, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER, LLVS_ERROR_CLOSED, storage
 * errors. Cost: reading and writing the values that differ, or all under the prefixes. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_projection_update(LLVS_BORROWED llvs_projection *projection, llvs_bytes to,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED uint64_t *rows_changed, LLVS_OWNED llvs_error **error);
/**
 * Returns the version of the database, and the result of its automatic updates, as JSON:
 *
 *     {"version":"<version id>","failure":{"code":-30,"message":"…"}}
 *
 * `version` is null before the first update, and after the tables were found not to match the definition. `failure` is the error of the
 * last update on the library's thread, which keeps trying; null if it succeeded, and without a coordinator.
 * Errors: LLVS_ERROR_CLOSED, LLVS_ERROR_BUSY, LLVS_ERROR_DAMAGED, storage errors. It waits for a running update. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_projection_status(LLVS_BORROWED llvs_projection *projection, LLVS_OWNED llvs_buffer *json,
    LLVS_OWNED llvs_error **error);
/**
 * Lists the values that did not fit their columns at the version of the database, at most 1,000 per call, as a JSON array:
 *
 *     [{"number":1,"table":"people","id":"contact/1","pointer":"/born","reason":"type"}]
 *
 * `reason`: "type", "range" (a number that SQLite cannot represent), "size" (a row of more than 450 MB), or, with an empty pointer,
 * "not-json".
 * @param after  the number of the last one of the previous page; 0: from the first
 * Errors: LLVS_ERROR_CLOSED, LLVS_ERROR_BUSY, LLVS_ERROR_DAMAGED, storage errors. It waits for a running update. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_projection_problems(LLVS_BORROWED llvs_projection *projection, uint64_t after,
    LLVS_OWNED llvs_buffer *json, LLVS_OWNED llvs_error **error);
/**
 * Closes the database and releases the projection. Waits for a running update; an update on the library's thread is cancelled. If called
 * from within its own progress callback, the database is closed after that call has ended. NULL is a no-op. Since 0.1.
 */
LLVS_API void llvs_projection_free(LLVS_OWNED llvs_projection *projection);

LLVS_LAYOUT(llvs_index_options, 48);
LLVS_LAYOUT(llvs_computed_index_options, 56);
LLVS_LAYOUT(llvs_index_question, 128);
LLVS_LAYOUT(llvs_index_page, 96);
LLVS_LAYOUT(llvs_projection_options, 24);

LLVS_END_DECL

#endif

/*
 * llvs/common.h - what all calls have in common: conventions, status codes, bytes, errors, the log, progress.
 *
 * Calls return a status, and their last parameter receives an error with a message:
 *
 *     llvs_error *error;
 *     if (llvs_store_close(store, &error) != LLVS_OK) {
 *         fprintf(stderr, "%s: %s\n", llvs_status_name(llvs_error_code(error)), llvs_error_message(error));
 *         llvs_error_free(error);
 *     }
 *
 * CONVENTIONS
 *
 * Status. Every call that can fail returns llvs_status: LLVS_OK (0), or a negative code whose number never changes. Its last parameter is
 * `llvs_error **error`. It may be NULL. What it points to need not be initialised: after success it is NULL, after a failure it is an error
 * that the caller releases with llvs_error_free. Unless said otherwise, a call that fails sets its other outputs to NULL or zero. If a
 * value is absent, the call succeeds: LLVS_OK with a NULL (or empty) result. If a version is absent, the call fails with
 * LLVS_ERROR_UNKNOWN_VERSION. Compilers warn if a status is ignored.
 *
 * Any call may return these errors; they are not repeated with each:
 *   LLVS_ERROR_INVALID_ARGUMENT  a NULL where none is allowed, a NULL with a size, an unknown constant, a reserved field that is not zero
 *   LLVS_ERROR_STRUCT_SIZE       a struct_size (or element size) that is too small, or has unknown bytes that are not zero
 *   LLVS_ERROR_TOO_LARGE         a size beyond the limits, SIZE_MAX included
 *   LLVS_ERROR_CLOSED            the store, exchange or coordinator behind the handle has been closed
 *   LLVS_ERROR_FORKED            a parent of this process made the handle; or the call needs SQLite, and a parent had a store in SQLite
 *                                open at the fork
 *   LLVS_ERROR_OUT_OF_MEMORY     nothing was changed, except that parts which long work had already completed stay. Large memory, whose
 *                                size depends on data or arguments, is requested, and if there is none the call returns this error. For
 *                                small objects the library holds a reserve of 4 MiB. When memory runs out, it first drops caches, then uses
 *                                the reserve. From then on all calls except those that close and release return this error, until the
 *                                reserve is whole again. In two cases the process still ends: if several threads together exhaust the
 *                                reserve before they notice (likely only if an address space is limited and full, since the allocator may
 *                                then take a page for each small object), and if a stack has to grow and there is no memory for it.
 *   LLVS_ERROR_INTERNAL          an error in the library; please report it
 * "Storage errors", in the comment of a call, are:
 *   LLVS_ERROR_IO, LLVS_ERROR_PERMISSION, LLVS_ERROR_NO_SPACE, LLVS_ERROR_DAMAGED, LLVS_ERROR_BUSY, LLVS_ERROR_READ_ONLY,
 *   LLVS_ERROR_TOO_MANY_FILES, LLVS_ERROR_UNKNOWN_OUTCOME; and LLVS_ERROR_USER from a storage of the host.
 *
 * Ownership. Every pointer parameter carries a tag.
 *   LLVS_OWNED     ownership crosses: after success an output (`**`, or a struct that the library fills with owned memory) belongs to the
 *                  caller, who releases it with the `_free` of its type (`_dispose` for structs). The argument of a `_free` or `_dispose`,
 *                  and the payload of a callback, belong to the library from then on.
 *   LLVS_BORROWED  the owner stays the same; used during the call only, or as the comment says.
 * A pointer that a function returns without such a tag is borrowed from the object that was asked, and lives as long as that object.
 * `_free` accepts NULL. Handles may be released in any order, also an exchange or a cursor after its store: children keep alive what they
 * need.
 *
 * Bytes. In: llvs_bytes, borrowed for the call; NULL with size 0 is empty. Text is UTF-8 with a length (value ids may contain NUL);
 * llvs_str("...") takes a C string. Out: llvs_buffer, owned. All bytes that the library returns, in structs and lists as well, are
 * followed by one NUL that is not counted. If an argument is optional, LLVS_NONE (empty) means "not given".
 *
 * Flags are llvs_bool, 0 or 1, in structs, parameters and results; anything else is LLVS_ERROR_INVALID_ARGUMENT. Constants are enums. A
 * field or parameter for a constant is an integer of fixed size, whose type is named as the enum is, without `_value`.
 *
 * Structs. Options begin with `struct_size`: sizeof the struct as the caller was compiled. Fields are only ever appended, and the sizes of
 * earlier headers stay valid. Each has an `_INIT` macro, and llvs_struct_init does the same for all of them: every other field is zero, and
 * zero always means the default. An array of input structs is passed with the size of one. Lists, reports and results are structs, too. The
 * library makes them, the caller reads their fields, and a `_free` releases them with all that they point to. Since these structs may grow,
 * they hold arrays of pointers to structs, `list->items[i]->id`, with a NULL after the last. The structs of one array are
 * contiguous, `items[0]->struct_size` bytes apart. llvs_bytes, llvs_buffer, llvs_version_id and llvs_metadata_entry never grow. There is no
 * hidden padding; `reserved` must be zero.
 *
 * Callbacks. A callback is registered as `fn, payload, payload_free`. payload_free (may be NULL) runs exactly once, on the thread that
 * releases the payload last, also if the registering call fails. Callbacks get structs by pointer. A callback with a status returns
 * LLVS_OK, or a code that its comment names. Every other number, also a positive one, is a failure and makes the call fail. The callback
 * may set its `error` to one that llvs_error_create made: the call then returns an error with its user_code. Or it may set it to an error
 * that another call of the library returned: the call then returns that error unchanged. For an error of llvs_error_create, and for a
 * failure without an error, the code is LLVS_ERROR_USER, or the callback's status if the callback's comment says that this status keeps
 * its code.
 * (An error that is set beside LLVS_OK is released and ignored.) Callbacks must return. An exception of C++ that leaves one ends the
 * program (std::terminate), since the library has no tables for unwinding; llvs.hpp catches exceptions of its callbacks. After a longjmp
 * out of a callback, other threads wait or get LLVS_ERROR_BUSY until the same thread calls the library again. That call releases the
 * locks. It does not repair the rest: memory is lost, a payload may never be freed, the interrupted work is done or not, and a store whose
 * storage was storing a version is LLVS_ERROR_CLOSED. On the stack of a coroutine nothing is released.
 *
 * Threads. These handles may be used from any number of threads at once: llvs_store, llvs_exchange, llvs_coordinator, llvs_syncer,
 * llvs_peer, llvs_listener, llvs_index, llvs_projection, llvs_value_reader, llvs_observer, llvs_arbiter, llvs_storage, llvs_transport and
 * llvs_cancel_token. (Two exchanges over one handle wait for each other, and so do two calls of one peer or reader.) Cursors,
 * llvs_history_cursor and llvs_change_cursor, may be used by one thread at a time. Lists, results, reports and errors are immutable and may
 * be read from any thread. No call keeps state in the thread. A thread that calls the library, or on which the library runs a callback,
 * needs 64 KiB of stack, in addition to what the callbacks themselves use.
 *
 * Descriptors. The library's descriptors are 3 or higher, and are closed when the process executes another program. If the host has closed
 * 0, 1 or 2 (standard input, output and error), the library opens these on /dev/null for reading before it opens anything that can be
 * written to, and leaves them open: so the host's output never gets into a file or a connection of the library. The host may replace them
 * (dup2) at any time, but must not close them while another thread is in a call.
 *
 * Systems. Linux on x86-64. The library needs the glibc that it was built with or a later one, and at least 2.35. Nothing of Swift need be
 * installed.
 *
 * Long work takes an llvs_control: a progress callback that can cancel, and a cancel token that any thread may set. Both are checked at
 * least every 100 ms or 1 MiB of data. During one SQLite statement that writes (such as the index of a table of a projection) only the
 * token is checked. After LLVS_ERROR_CANCELLED, completed parts stay, and nothing incomplete does.
 *
 * Accessors that return no status only read memory. They cannot fail, accept NULL (and then return NULL, 0 or empty), and work in a forked
 * child as well.
 */
#ifndef LLVS_COMMON_H
#define LLVS_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define LLVS_API __attribute__((visibility("default")))
#else
#define LLVS_API
#endif

/** The compiler warns if the result of a function with this mark is ignored. */
#if defined(__GNUC__) || defined(__clang__)
#define LLVS_CHECKED __attribute__((warn_unused_result))
#else
#define LLVS_CHECKED
#endif

/*
 * The ownership tags; see "Ownership" above. Programs that read this header through Clang find them as annotations. LLVS_OWNED: ownership
 * crosses with this parameter. LLVS_BORROWED: the owner stays the same.
 */
#if defined(__clang__)
#define LLVS_OWNED __attribute__((annotate("llvs_owned")))
#define LLVS_BORROWED __attribute__((annotate("llvs_borrowed")))
#else
#define LLVS_OWNED
#define LLVS_BORROWED
#endif

/* Around the declarations of each header. */
#ifdef __cplusplus
#define LLVS_BEGIN_DECL extern "C" {
#define LLVS_END_DECL }
#else
#define LLVS_BEGIN_DECL
#define LLVS_END_DECL
#endif

/* Checks that a struct has the same size, without hidden padding, everywhere. For the headers of this library only. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define LLVS_LAYOUT(type, size) static_assert(sizeof(type) == (size), "the layout of " #type)
#elif defined(__GNUC__) && !defined(__cplusplus)
#define LLVS_LAYOUT(type, size) __extension__ _Static_assert(sizeof(type) == (size), "the layout of " #type)
#else
#define LLVS_LAYOUT(type, size) struct llvs_no_check
#endif

LLVS_BEGIN_DECL

/* ------------------------------------------------------------------------------------------------
 * The library
 * ------------------------------------------------------------------------------------------------ */

/** The version of this header. While the major number is 0, the minor number counts incompatible changes. Since 0.1. */
#define LLVS_VERSION_MAJOR 0
#define LLVS_VERSION_MINOR 1
#define LLVS_VERSION_PATCH 0
/** In the form that llvs_version_number() returns: major * 65536 + minor * 256 + patch. Since 0.1. */
#define LLVS_VERSION_NUMBER (LLVS_VERSION_MAJOR * 65536 + LLVS_VERSION_MINOR * 256 + LLVS_VERSION_PATCH)

/** Returns the version of the loaded library, for comparison with LLVS_VERSION_NUMBER. Any thread. Since 0.1. */
LLVS_API uint32_t llvs_version_number(void);
/** Returns the version of the loaded library as text, "0.1.0". Static. Since 0.1. */
LLVS_API const char *llvs_version_string(void);

/** Yes or no: 1 or 0. Since 0.1. */
typedef uint32_t llvs_bool;

/** LLVS_OK, a positive result of a callback, or a negative error code: one of llvs_status_value. Since 0.1. */
typedef int32_t llvs_status;

/* The codes. Their numbers never change; new ones may be added. Since 0.1. */
enum llvs_status_value {
    /** The call did what it was asked to do. */
    LLVS_OK = 0,
    /** From an arbiter's callback: the fallback decides the conflicts that have no change yet. */
    LLVS_PASS = 1,
    /** From an llvs_read_fn: there is nothing more to read. */
    LLVS_END = 2,

    /* Arguments. */

    /** A NULL, an unknown constant, a reserved field that is not zero, a malformed URL. */
    LLVS_ERROR_INVALID_ARGUMENT = -1,
    /** A value id is empty or longer than LLVS_VALUE_ID_SIZE_MAX. */
    LLVS_ERROR_INVALID_VALUE_ID = -2,
    /**
     * A version id is not 1 to 128 of [A-Za-z0-9_-]. For a version that is made here, also: the id differs from a known one only by case;
     * or it has the form of a content id and is not the content id of this version.
     */
    LLVS_ERROR_INVALID_VERSION_ID = -3,
    /** A text is not valid UTF-8. */
    LLVS_ERROR_INVALID_UTF8 = -4,
    /** A size beyond the limits. */
    LLVS_ERROR_TOO_LARGE = -5,
    /** A struct_size too small, or unknown bytes that are not zero. */
    LLVS_ERROR_STRUCT_SIZE = -6,
    /** A call names one value id twice. */
    LLVS_ERROR_DUPLICATE_ID = -7,
    /** No such version in the store. */
    LLVS_ERROR_UNKNOWN_VERSION = -8,
    /** The predecessor of a new version is not in the store. */
    LLVS_ERROR_UNKNOWN_PREDECESSOR = -9,
    /** The store already has another version with this id. */
    LLVS_ERROR_VERSION_MISMATCH = -10,
    /** A change of the kind LLVS_CHANGE_PRESERVE names bytes that no ancestor stored. */
    LLVS_ERROR_INVALID_REFERENCE = -11,
    /**
     * A metadata key is empty, too long or not UTF-8, __llvs_branch is not a JSON string or names a branch in more than 1024 bytes, there
     * are more than 65,536 keys, or the total is over 16 MiB.
     */
    LLVS_ERROR_INVALID_METADATA = -12,
    /** Not possible here: a URL scheme that is not built in, an observation of a transport that does not report changes. */
    LLVS_ERROR_UNSUPPORTED = -13,

    /* Storage. */

    /** No such file or directory; or the file or directory of an open store was deleted, moved or replaced. */
    LLVS_ERROR_NOT_FOUND = -20,
    /** The file or directory at the path is not a store. */
    LLVS_ERROR_NOT_A_STORE = -21,
    /** The store was written by a newer library; update this one. */
    LLVS_ERROR_NEWER_FORMAT = -22,
    /** The store was opened for reading only. */
    LLVS_ERROR_READ_ONLY = -23,
    /** The system denies access. */
    LLVS_ERROR_PERMISSION = -24,
    /** The disk or a quota is full. */
    LLVS_ERROR_NO_SPACE = -25,
    /** A file is where a directory should be. */
    LLVS_ERROR_NOT_A_DIRECTORY = -26,
    /** The medium failed. */
    LLVS_ERROR_IO = -27,
    /** Bytes differ from the bytes that were written. */
    LLVS_ERROR_DAMAGED = -28,
    /**
     * A sync of a file failed after the write: after a power cut the version (llvs_error_version_id) may exist or not. Making it again
     * under its id is harmless.
     */
    LLVS_ERROR_UNKNOWN_OUTCOME = -29,
    /**
     * Another process or handle is using it. A call on a store in SQLite returns this after `busy_timeout` of llvs_store_options (10 s by
     * default); all others at once.
     */
    LLVS_ERROR_BUSY = -30,
    /** The process or the system has too many open files: close some, or raise the limit (ulimit -n). Nothing was changed. */
    LLVS_ERROR_TOO_MANY_FILES = -31,

    /* The life of handles. */

    /** The store, exchange or coordinator behind the handle was closed. */
    LLVS_ERROR_CLOSED = -40,
    /** A parent of this process made the handle; or the call needs SQLite, and a parent had a store in SQLite open at the fork. */
    LLVS_ERROR_FORKED = -41,
    /** The cancel token or the progress callback stopped the call. Completed parts stay. */
    LLVS_ERROR_CANCELLED = -42,
    /** A callback of the host failed: see llvs_error_user_code. */
    LLVS_ERROR_USER = -43,
    /** There is not enough memory for the call; see "Status" above. The store continues to work. */
    LLVS_ERROR_OUT_OF_MEMORY = -44,
    /** An error in the library; please report it. */
    LLVS_ERROR_INTERNAL = -45,

    /* Merging. */

    /** The arbiter left a conflicting fork without a change. */
    LLVS_ERROR_UNRESOLVED_CONFLICT = -50,
    /** The versions share no ancestor, and LLVS_RELATION_RELATED requires one. */
    LLVS_ERROR_NO_COMMON_ANCESTOR = -51,
    /** The current version is not the one that a save expected; nothing was stored. */
    LLVS_ERROR_MOVED = -52,

    /* Exchanges and snapshots; most appear as problems in a result, not as errors of a call. */

    /** The other side cannot be reached, or its response is invalid. */
    LLVS_ERROR_TRANSPORT = -60,
    /** A version file without its changes file. */
    LLVS_ERROR_MISSING_CHANGES = -61,
    /** A predecessor of a version is neither in the store nor at the other side. */
    LLVS_ERROR_MISSING_PREDECESSOR = -62,
    /** A file is not JSON, or does not have the contents of its kind of file. A file that only ends too early is LLVS_ERROR_CUT_SHORT. */
    LLVS_ERROR_INVALID_JSON = -63,
    /** Bytes in a file are not valid base64. */
    LLVS_ERROR_INVALID_BASE64 = -64,
    /** The identifier in a version file is not the name of the file. */
    LLVS_ERROR_IDENTIFIER_MISMATCH = -65,
    /** A changes file without its version file. */
    LLVS_ERROR_MISSING_VERSION = -66,
    /** A snapshot is damaged or incomplete. Nothing of it was restored. */
    LLVS_ERROR_SNAPSHOT_DAMAGED = -67,
    /** There is no snapshot at the place. */
    LLVS_ERROR_SNAPSHOT_MISSING = -68,
    /** A snapshot can be restored only into a store that is empty or holds one version. */
    LLVS_ERROR_STORE_NOT_EMPTY = -69,
    /** The snapshot is in another implementation's format. */
    LLVS_ERROR_FOREIGN_SNAPSHOT = -70,
    /** A file that this library did not write. */
    LLVS_ERROR_FOREIGN_FILE = -71,
    /** A file is empty or ends too early: its transfer is not complete, or it was cut short. */
    LLVS_ERROR_CUT_SHORT = -72,
    /**
     * A value id, or metadata, that another implementation cannot store. As a problem: the version was sent nevertheless. As the error of a
     * save: nothing was saved. See `report_unportable` and `no_other_readers` of llvs_exchange_options.
     */
    LLVS_ERROR_UNPORTABLE_ID = -73,
    /**
     * The contents of a version do not match its content id (a UUID of version 8, in capitals, that is computed from the contents). The
     * version was rejected. The genuine version of that id is accepted when it arrives.
     */
    LLVS_ERROR_CONTENT_MISMATCH = -74,

    /* Encryption. */

    /**
     * The passphrase or identity does not open the encrypted data; or the other side of a direct connection does not know the pairing or
     * invitation, or does not accept this device. Nothing was changed.
     */
    LLVS_ERROR_WRONG_KEY = -75,
    /** The keys of encrypted data are missing, or have not arrived yet. */
    LLVS_ERROR_KEY_MISSING = -76,
    /** Two devices renewed the keys without knowing of each other, or an attacker forged keys: inspect both, then join them. */
    LLVS_ERROR_KEYS_FORKED = -77,

    /* Places in the packed layout: problems of an exchange, which continues (docs/pack-format.md, section 7). */

    /** The place shows less than before: it was reset to an older state, or emptied and refilled. The missing versions are sent again. */
    LLVS_ERROR_ROLLED_BACK = -78,
    /** One writer's packs continue in two different ways: its store was copied, or the place shows two states. */
    LLVS_ERROR_WRITER_FORKED = -79,
    /** The place does not show files that another device saw there more than an hour ago. */
    LLVS_ERROR_WITHHELD = -80,
    /** A device announced that the place has moved: the error's path is the new address (llvs_exchange_announce_move). */
    LLVS_ERROR_PLACE_MOVED = -81,

    /**
     * The clock of a device is far ahead of this device's. The first operation that notices reports this as a problem, once per device
     * while a store is open. The versions were accepted nevertheless, and count as made when they arrived (`made_at`). Changes of that
     * device count as newer than changes of other devices (docs/convergence.md).
     */
    LLVS_ERROR_CLOCK_AHEAD = -82,

    /* Values whose bytes are gone by intent; this is no damage (docs/forgetting.md). */

    /**
     * An order of this device erased the bytes of a value (llvs_store_erase). Its size and digest are still in the store. In all other
     * respects it is like LLVS_ERROR_FORGOTTEN.
     */
    LLVS_ERROR_ERASED = -83,
    /**
     * The store has the size and the digest of a value, but not its bytes: they were removed from the store, or never came. A read of the
     * value and a merge inside of it return this. Exchanges send the version without the bytes; a link to an older release reports it as a
     * problem. Verification, repair and salvage leave such values as they are.
     */
    LLVS_ERROR_FORGOTTEN = -84
};

/** Returns the name of a code, "LLVS_ERROR_IO"; "LLVS_ERROR_UNKNOWN" for an unknown number. Static. Since 0.1. */
LLVS_API const char *llvs_status_name(llvs_status status);

/**
 * Initialises a struct that begins with `struct_size`, as its `_INIT` macro does, for callers that cannot use macros: sets that field, and
 * all others to zero.
 * @param structure    room for `struct_size` bytes
 * @param struct_size  sizeof the struct as the caller knows it, 4 to 4096
 * Errors: LLVS_ERROR_INVALID_ARGUMENT for NULL, LLVS_ERROR_STRUCT_SIZE. Any thread. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_struct_init(LLVS_BORROWED void *structure, size_t struct_size);

/** Bytes in a value id, at most. */
#define LLVS_VALUE_ID_SIZE_MAX 4096
/** Characters in a version id, at most. */
#define LLVS_VERSION_ID_SIZE_MAX 128
/** Bytes in a value, at most: 1 GiB. */
#define LLVS_VALUE_SIZE_MAX 1073741824

/* ------------------------------------------------------------------------------------------------
 * Bytes
 * ------------------------------------------------------------------------------------------------ */

/**
 * Borrowed bytes. As an argument: read during the call only. In a struct that the library hands out: valid as long as the object that they
 * are borrowed from. Since 0.1.
 */
typedef struct llvs_bytes {
    const uint8_t *data;
    size_t size;
} llvs_bytes;

/** Bytes that the holder owns; llvs_buffer_dispose releases them. Since 0.1. */
typedef struct llvs_buffer {
    /** Followed by a NUL that is not counted. NULL if there is no value (which is not the same as 0 bytes). */
    uint8_t *data;
    size_t size;
} llvs_buffer;

/** A version id, held by value. Since 0.1. */
typedef struct llvs_version_id {
    /** Characters in `text`, 1 to 128; 0 if there is no version. */
    uint32_t size;
    /** ASCII, then NULs to the end. */
    char text[132];
} llvs_version_id;

/** Releases the bytes and makes the buffer empty. An empty buffer, or NULL, is a no-op. Any thread. Since 0.1. */
LLVS_API void llvs_buffer_dispose(LLVS_OWNED llvs_buffer *buffer);

/** Returns the bytes of a C string; LLVS_NONE for NULL. */
static inline llvs_bytes llvs_str(LLVS_BORROWED const char *text) {
    llvs_bytes bytes;
    bytes.data = (const uint8_t *)text;
    bytes.size = text ? strlen(text) : 0;
    return bytes;
}
/** Returns `size` bytes at `data`. */
static inline llvs_bytes llvs_bytes_make(LLVS_BORROWED const void *data, size_t size) {
    llvs_bytes bytes;
    bytes.data = (const uint8_t *)data;
    bytes.size = size;
    return bytes;
}
/** Returns the id as an argument; borrowed from `id`. */
static inline llvs_bytes llvs_id(LLVS_BORROWED const llvs_version_id *id) {
    return llvs_bytes_make(id ? id->text : 0, id ? id->size : 0);
}
/** No bytes: "not given" where an argument is optional. */
#define LLVS_NONE (llvs_bytes_make(0, 0))
/** LLVS_NONE as an initialiser, also for constants: `static const llvs_bytes none = LLVS_NONE_INIT;`. */
#define LLVS_NONE_INIT { 0, 0 }

/* ------------------------------------------------------------------------------------------------
 * Errors
 * ------------------------------------------------------------------------------------------------ */

/**
 * An error: a code for programs, a message for people, and what is concerned. Immutable. Messages name ids and paths, never the bytes of
 * values. Since 0.1.
 */
typedef struct llvs_error llvs_error;

/** Returns the code, which is the call's status. LLVS_OK for NULL. Since 0.1. */
LLVS_API llvs_status llvs_error_code(LLVS_BORROWED const llvs_error *error);
/**
 * Returns the message: what was being done to what, and what the user can do; UTF-8, "" for NULL. It is one line: control characters, line
 * separators and direction marks in an id or a path are escaped (`\n`, `\x1B`, `\u{202E}`), as in the messages of reports, problems and the
 * log. Borrowed from the error. Since 0.1.
 */
LLVS_API const char *llvs_error_message(LLVS_BORROWED const llvs_error *error);
/** Returns the value id concerned; empty if there is none. Borrowed from the error. Since 0.1. */
LLVS_API llvs_bytes llvs_error_value_id(LLVS_BORROWED const llvs_error *error);
/** Returns the version id concerned, also an invalid one; empty if there is none. Borrowed from the error. Since 0.1. */
LLVS_API llvs_bytes llvs_error_version_id(LLVS_BORROWED const llvs_error *error);
/**
 * Returns the file or directory concerned; for invalid rules, the JSON pointer to the mistake. Empty if there is none. Borrowed from the
 * error. Since 0.1.
 */
LLVS_API llvs_bytes llvs_error_path(LLVS_BORROWED const llvs_error *error);
/** Returns the system's error number (`errno`) if a system call failed and the number is known; else 0. Since 0.1. */
LLVS_API int32_t llvs_error_system_code(LLVS_BORROWED const llvs_error *error);
/** Returns the number that a callback of the host passed to llvs_error_create; else 0. Since 0.1. */
LLVS_API int64_t llvs_error_user_code(LLVS_BORROWED const llvs_error *error);
/**
 * Makes an error for a callback of the host to put into its `error`. Its code is LLVS_ERROR_USER, or the status that the callback returns
 * if the callback's comment says that this status keeps its code.
 * @param user_code  a number of the host's own; returned unchanged by llvs_error_user_code
 * @param message    UTF-8, copied; invalid UTF-8 is replaced, and control characters are escaped
 * @return  owned by the caller until it is put into `error`; never NULL
 * Since 0.1.
 */
LLVS_API llvs_error *llvs_error_create(int64_t user_code, llvs_bytes message);
/** Releases the error. NULL, and the static error of LLVS_ERROR_OUT_OF_MEMORY, are no-ops. Since 0.1. */
LLVS_API void llvs_error_free(LLVS_OWNED llvs_error *error);

/* ------------------------------------------------------------------------------------------------
 * Registrations, log, progress
 * ------------------------------------------------------------------------------------------------ */

/** Called when the library releases a payload. May be called on any thread; must not call the library. Since 0.1. */
typedef void (*llvs_free_fn)(LLVS_OWNED void *payload);

/** A registration of an unsolicited callback: log or notification. Since 0.1. */
typedef struct llvs_observer llvs_observer;
/**
 * Ends the registration without waiting: no callback begins afterwards, but one on another thread may still be running. The payload is
 * freed when no callback runs any more. The handle stays, for llvs_observer_free. Any thread, under any lock. NULL is a no-op. Since 0.1.
 */
LLVS_API void llvs_observer_cancel(LLVS_BORROWED llvs_observer *observer);
/**
 * Ends the registration, waits for its running callbacks, and releases the handle: afterwards no callback runs. If it is called from within
 * an unsolicited callback, of this registration or of any other, it does not wait, since two callbacks might wait for each other. The same
 * holds for the close or free of an exchange, a coordinator or a store in such a callback. NULL is a no-op.
 *
 * Lock order: hold no lock during this call that a callback of the registration takes, or both wait for ever. If the registration must end
 * under such a lock, call llvs_observer_cancel under the lock, and this afterwards without it. Since 0.1.
 */
LLVS_API void llvs_observer_free(LLVS_OWNED llvs_observer *observer);

/** How important a message is. The texts of messages may change with any version; their levels are as follows. Since 0.1. */
typedef uint32_t llvs_log_level;
enum llvs_log_level_value {
    /** No messages. */
    LLVS_LOG_OFF = 0,
    /** An error that keeps a store or a folder from working. */
    LLVS_LOG_ERROR = 1,
    /** Something is wrong with a store or a folder: damage, a problem of an exchange. */
    LLVS_LOG_WARNING = 2,
    /**
     * A store was opened (what was loaded, from where, and how long it took), could not be opened, or was closed; an exchange, a
     * compaction, a salvage, a repair.
     */
    LLVS_LOG_INFO = 3,
    /** Each merge, with its common ancestors and counts; the steps of an exchange; a compaction without work. */
    LLVS_LOG_DEBUG = 4
};

/**
 * Receives a message of the library. Since 0.1.
 *   thread     any, also several at once
 *   re-entry   may call the library, but not llvs_log_observe
 *   pointers   live for the callback only; the message is UTF-8
 *   result     none
 */
typedef void (*llvs_log_fn)(LLVS_BORROWED void *payload, llvs_log_level level, LLVS_BORROWED const llvs_bytes *message);
/**
 * Registers a receiver of messages up to a level; several may be registered. Without one the library is silent. Messages never contain
 * value bytes or credentials.
 * @param level  the least important level wanted
 * @param fn, payload, payload_free  see "Callbacks" above
 * @param observer  ends the registration when freed
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_log_observe(llvs_log_level level, llvs_log_fn fn, LLVS_OWNED void *payload,
    llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);

/**
 * Called after something may have changed. Since 0.1.
 *   thread     one of the library's threads, one call at a time per registration
 *   re-entry   may call the library, also to free its own observer
 *   result     none
 */
typedef void (*llvs_notify_fn)(LLVS_BORROWED void *payload);
/** Stops long work from any thread. Since 0.1. */
typedef struct llvs_cancel_token llvs_cancel_token;
/** Makes a token that is not set. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_cancel_token_create(LLVS_OWNED llvs_cancel_token **token, LLVS_OWNED llvs_error **error);
/** Sets the token permanently: calls that use it end with LLVS_ERROR_CANCELLED at their next check. Any thread. Since 0.1. */
LLVS_API void llvs_cancel_token_cancel(LLVS_BORROWED llvs_cancel_token *token);
/** Returns whether the token has been set. Any thread. Since 0.1. */
LLVS_API llvs_bool llvs_cancel_token_is_cancelled(LLVS_BORROWED const llvs_cancel_token *token);
/** Releases the token. Running calls that use it are not affected. Since 0.1. */
LLVS_API void llvs_cancel_token_free(LLVS_OWNED llvs_cancel_token *token);

/** The stage of long work. Since 0.1. */
typedef uint32_t llvs_stage;
enum llvs_stage_value {
    /** Asks the other side which versions it has; fetches versions; stores them; writes versions to the other side. */
    LLVS_STAGE_LISTING = 1, LLVS_STAGE_RECEIVING = 2, LLVS_STAGE_ADDING = 3, LLVS_STAGE_SENDING = 4,
    /** Reads a store or a snapshot; writes a snapshot or another file; compares stored bytes with their checksums. */
    LLVS_STAGE_READING = 5, LLVS_STAGE_WRITING = 6, LLVS_STAGE_VERIFYING = 7,
    /** At a place in the packed layout: its keys are read or written; packs are merged; replaced packs are deleted. */
    LLVS_STAGE_KEYS = 8, LLVS_STAGE_MERGING = 9, LLVS_STAGE_DELETING = 10
};
/** The progress of long work. Since 0.1. */
typedef struct llvs_progress {
    uint32_t struct_size;
    llvs_stage stage;
    /** The progress within the stage: versions, files or bytes, depending on the stage. */
    uint64_t completed;
    /** What `completed` is at the end of the stage; 0 while unknown. */
    uint64_t total;
} llvs_progress;
/**
 * Receives the progress of a call, and may stop it. Since 0.1.
 *   thread     the one that made the call
 *   re-entry   may call the library, but not the same exchange or coordinator
 *   pointers   live for the callback only
 *   result     LLVS_OK: continue; LLVS_ERROR_CANCELLED: the call ends with that; all else: the call ends with LLVS_ERROR_USER and the error
 *              in `error` (by llvs_error_create; optional)
 */
typedef llvs_status (*llvs_progress_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_progress *progress,
    LLVS_OWNED llvs_error **error);
/** Progress and cancellation of one call. The library registers nothing: the caller owns the payload. Since 0.1. */
typedef struct llvs_control {
    uint32_t struct_size;
    uint32_t reserved;
    /** May be NULL. */
    llvs_progress_fn progress;
    /** Passed to `progress`. */
    void *payload;
    /** May be NULL. */
    llvs_cancel_token *token;
} llvs_control;
#define LLVS_CONTROL_INIT { (uint32_t)sizeof(llvs_control), 0, 0, 0, 0 }

LLVS_LAYOUT(llvs_bytes, 16);
LLVS_LAYOUT(llvs_buffer, 16);
LLVS_LAYOUT(llvs_version_id, 136);
LLVS_LAYOUT(llvs_progress, 24);
LLVS_LAYOUT(llvs_control, 32);

LLVS_END_DECL

#endif

/*
 * llvs.h - a versioned key-value store, "git for app data": the C interface of libllvs.
 *
 * A store keeps values under ids. Each save makes a version, and earlier versions stay readable. Devices exchange versions through a
 * folder, a server or a direct connection, and merge them.
 *
 *     llvs_coordinator *notes;
 *     llvs_buffer text;
 *     llvs_error *error;
 *     llvs_change change = LLVS_CHANGE_INIT;
 *     change.kind = LLVS_CHANGE_UPDATE;
 *     change.id = llvs_str("note/1");
 *     change.data = llvs_str("hello");
 *     // A coordinator continues where it was: a program that runs again saves on top of its last version.
 *     if (llvs_coordinator_open(llvs_str("notes.llvs"), NULL, &notes, &error) != LLVS_OK ||
 *         llvs_coordinator_save(notes, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error) != LLVS_OK ||
 *         llvs_coordinator_value(notes, llvs_str("note/1"), &text, NULL, &error) != LLVS_OK) {
 *         fprintf(stderr, "%s\n", llvs_error_message(error));
 *         llvs_error_free(error);
 *         llvs_coordinator_free(notes);
 *         return 1;
 *     }
 *     printf("%s\n", (const char *)text.data);
 *     llvs_buffer_dispose(&text);
 *     llvs_coordinator_free(notes);
 *
 * Most programs need only llvs_coordinator: a store, the current version, exchanges with other devices, and merging, in one handle.
 * llvs_store is the layer below: each of its calls names the versions that it works on.
 *
 * IN SHORT
 *
 *  - Calls that can fail return LLVS_OK or an error code. Their last parameter receives an error with a message; free that.
 *  - A value that is absent is not an error: the call returns LLVS_OK and returns NULL.
 *  - Release what you get (parameters marked LLVS_OWNED) with the `_free` or `_dispose` of its type. Arguments stay yours, except the
 *    payload of a callback.
 *  - Text is UTF-8 with a length. All bytes that you get are followed by a NUL as well.
 *  - Handles may be used from several threads at once, except cursors. Do not use a handle after its free, nor in a child of fork().
 *
 * The rest of this comment has the rules in full. This header is the contract and its comments are the reference: anything that is not in
 * it is not published. llvs_testing.h belongs to it (fault injection, and test suites for storages and transports of your own). The header
 * is C99 and C++, includes only standard headers, and serves 64-bit platforms.
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
 *   LLVS_ERROR_INTERNAL          a mistake of the library; please report it
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
 * llvs_str("...") takes a C string. Out: llvs_buffer, owned. All bytes that the library hands out, in structs and lists as well, are
 * followed by one NUL that is not counted. If an argument is optional, LLVS_NONE (empty) means "not given".
 *
 * Flags are llvs_bool, 0 or 1, in structs, parameters and results; anything else is LLVS_ERROR_INVALID_ARGUMENT. Constants are enums. A
 * field or parameter for a constant is an integer of fixed size, whose type is named as the enum is, without `_value`.
 *
 * Structs. Options begin with `struct_size`: sizeof the struct as the caller was compiled. Fields are only ever appended, and the sizes of
 * earlier headers stay valid. Each has an `_INIT` macro, and llvs_struct_init does the same for all of them: every other field is zero, and
 * zero always means the default. An array of input structs is passed with the size of one. Lists, reports and results are structs, too. The
 * library makes them, the caller reads their fields, and a `_free` releases them with all that they point to. Since these structs may grow,
 * they hold arrays of pointers to structs, `list->items[i]->id`, with a NULL after the last. The structs of one array lie one behind the
 * other, `items[0]->struct_size` bytes apart. llvs_bytes, llvs_buffer, llvs_version_id and llvs_metadata_entry never grow. There is no
 * hidden padding; `reserved` must be zero.
 *
 * Callbacks. A callback is registered as `fn, payload, payload_free`. payload_free (may be NULL) runs exactly once, on the thread that
 * releases the payload last, also if the registering call fails. Callbacks get structs by pointer. A callback with a status returns
 * LLVS_OK, or a code that its comment names. Every other number, also a positive one, is a failure and makes the call fail. The callback
 * may set its `error` to one that llvs_error_make made: the call then returns an error with its user_code. Or it may set it to an error
 * that another call of the library returned: the call then returns that error unchanged. For an error of llvs_error_make, and for a failure
 * without an error, the code is LLVS_ERROR_USER, or the callback's status if the callback's comment says that this status keeps its code.
 * (An error that is set beside LLVS_OK is released and ignored.) Callbacks must return: no longjmp, no exception of C++ out of one
 * (llvs.hpp catches exceptions of its callbacks). After a callback that did not return, other threads wait or get LLVS_ERROR_BUSY until the
 * same thread calls the library again. That call releases the locks. It does not repair the rest: memory is lost, a payload may never be
 * freed, the interrupted work is done or not, and a store whose storage was storing a version is LLVS_ERROR_CLOSED. On the stack of a
 * coroutine nothing is released.
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
 * least every 100 ms or MiB. During one SQLite statement that writes (such as the index of a table of a projection) only the token is
 * checked. After LLVS_ERROR_CANCELLED, parts that were completed stay; nothing partial does.
 *
 * Accessors that return no status only read memory. They cannot fail, accept NULL (and then return NULL, 0 or empty), and work in a forked
 * child as well.
 *
 * CAVEATS
 *
 *  - fork(): a store handle does not survive it. In the child every call except a free returns LLVS_ERROR_FORKED. If a callback forks, the
 *    call that runs the callback returns that, too, in the child. Open the store again in the child. SQLite does not survive fork(),
 *    either: if a store in SQLite is open in a process (or is being opened, salvaged or imported), its children cannot open any store in
 *    SQLite: they get LLVS_ERROR_FORKED. Close all of them before the fork, or exec a program. If a callback of an observer calls fork(),
 *    the child has only that thread. Its process ends, with status 0, when the callback returns in the child. After fork() the parent holds
 *    the name of a coordinator. After _Fork or clone the child holds it as well, until the parent closes the coordinator, or both processes
 *    have ended.
 *  - Signals: each observer has a thread, in which all signals are blocked except those of faults (SIGSEGV, SIGBUS, ...). A program that a
 *    callback starts there inherits that. When the limit on the size of files (RLIMIT_FSIZE) is reached, a call returns
 *    LLVS_ERROR_NO_SPACE, and no SIGXFSZ is sent. Writes by SQLite do send it: ignore or block that signal with SQLite storage and with
 *    projections.
 *  - The caches of a store (cache/ in its directory) may be deleted while the store is closed. The notes beside them store where
 *    coordinators are: without its note a coordinator begins at the newest head. At places in the packed layout the device becomes a new
 *    writer. While the store is open cache/ must stay: otherwise others could open a coordinator under a name that is in use.
 *  - Freeing a handle must not race another call on the same handle, and no handle may be used after its free. To end work that other
 *    threads may still be doing, call llvs_store_close.
 *  - Value ids are compared by their bytes. "e" with a combining accent and the composed letter are two ids.
 *  - A file store on a network file system, and an SQLite store anywhere but on a local disk, must be used from one host only.
 */
#ifndef LLVS_H
#define LLVS_H

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

#ifdef __cplusplus
extern "C" {
#endif

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
/** Returns the same as text, "0.1.0". Static. Since 0.1. */
LLVS_API const char *llvs_version_string(void);

/** Yes or no: 1 or 0. Since 0.1. */
typedef uint32_t llvs_bool;

/** LLVS_OK, a positive result of a callback, or a negative error code: one of llvs_status_value. Since 0.1. */
typedef int32_t llvs_status;

/* The codes. Their numbers never change; new ones may be added. Since 0.1. */
enum llvs_status_value {
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
    /** One value id twice in one call. */
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
    /** The path holds something other than a store. */
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

    LLVS_ERROR_CLOSED = -40,
    LLVS_ERROR_FORKED = -41,
    LLVS_ERROR_CANCELLED = -42,
    /** A callback of the host failed: see llvs_error_user_code. */
    LLVS_ERROR_USER = -43,
    LLVS_ERROR_OUT_OF_MEMORY = -44,
    LLVS_ERROR_INTERNAL = -45,

    /* Merging. */

    /** The arbiter left a conflicting fork without a change. */
    LLVS_ERROR_UNRESOLVED_CONFLICT = -50,
    /** The versions share no ancestor, and LLVS_RELATION_RELATED was asked for. */
    LLVS_ERROR_NO_COMMON_ANCESTOR = -51,
    /** The current version is not the one that a save expected; nothing was stored. */
    LLVS_ERROR_MOVED = -52,

    /* Exchanges and snapshots; most appear as problems in a result, not as errors of a call. */

    /** The other side cannot be reached or does not answer as it should. */
    LLVS_ERROR_TRANSPORT = -60,
    LLVS_ERROR_MISSING_CHANGES = -61,
    LLVS_ERROR_MISSING_PREDECESSOR = -62,
    /** A file is not JSON, or does not have the contents of its kind of file. A file that only ends too early is LLVS_ERROR_CUT_SHORT. */
    LLVS_ERROR_INVALID_JSON = -63,
    LLVS_ERROR_INVALID_BASE64 = -64,
    /** The identifier in a version file is not the name of the file. */
    LLVS_ERROR_IDENTIFIER_MISMATCH = -65,
    /** A changes file without its version file. */
    LLVS_ERROR_MISSING_VERSION = -66,
    LLVS_ERROR_SNAPSHOT_DAMAGED = -67,
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
     * device count as newer than those of others (docs/convergence.md).
     */
    LLVS_ERROR_CLOCK_AHEAD = -82
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
/** The same as an initialiser, of constants as well: `static const llvs_bytes none = LLVS_NONE_INIT;`. */
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
/** Returns the number that a callback of the host passed to llvs_error_make; else 0. Since 0.1. */
LLVS_API int64_t llvs_error_user_code(LLVS_BORROWED const llvs_error *error);
/**
 * Makes an error for a callback of the host to put into its `error`. Its code is LLVS_ERROR_USER, or the status that the callback returns
 * if the callback's comment says that this status keeps its code.
 * @param user_code  a number of the host's own; returned unchanged by llvs_error_user_code
 * @param message    UTF-8, copied; invalid UTF-8 is replaced, and control characters are escaped
 * @return  owned by the caller until it is put into `error`; never NULL
 * Since 0.1.
 */
LLVS_API llvs_error *llvs_error_make(int64_t user_code, llvs_bytes message);
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
    LLVS_LOG_OFF = 0,
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
 * Called when something may have changed. Since 0.1.
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
/** Releases the token; running calls that use it keep what they need. Since 0.1. */
LLVS_API void llvs_cancel_token_free(LLVS_OWNED llvs_cancel_token *token);

/** What long work is doing. Since 0.1. */
typedef uint32_t llvs_stage;
enum llvs_stage_value {
    LLVS_STAGE_LISTING = 1, LLVS_STAGE_RECEIVING = 2, LLVS_STAGE_ADDING = 3, LLVS_STAGE_SENDING = 4,
    LLVS_STAGE_READING = 5, LLVS_STAGE_WRITING = 6, LLVS_STAGE_VERIFYING = 7,
    /** At a place in the packed layout: its keys are read or written; packs are merged; packs that others replace are deleted. */
    LLVS_STAGE_KEYS = 8, LLVS_STAGE_FOLDING = 9, LLVS_STAGE_DELETING = 10
};
/** How far long work has come. Since 0.1. */
typedef struct llvs_progress {
    uint32_t struct_size;
    llvs_stage stage;
    /** Of the stage; in versions, files or bytes, depending on the stage. */
    uint64_t completed;
    /** 0 while unknown. */
    uint64_t total;
} llvs_progress;
/**
 * Receives the progress of a call, and may stop it. Since 0.1.
 *   thread     the one that made the call
 *   re-entry   may call the library, but not the same exchange or coordinator
 *   pointers   live for the callback only
 *   result     LLVS_OK: continue; LLVS_ERROR_CANCELLED: the call ends with that; all else: the call ends with LLVS_ERROR_USER and the error
 *              in `error` (by llvs_error_make; optional)
 */
typedef llvs_status (*llvs_progress_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_progress *progress,
    LLVS_OWNED llvs_error **error);
/** Progress and cancellation of one call. Nothing is registered: the caller owns the payload. Since 0.1. */
typedef struct llvs_control {
    uint32_t struct_size;
    uint32_t reserved;
    /** May be NULL. */
    llvs_progress_fn progress;
    /** Handed to `progress`. */
    void *payload;
    /** May be NULL. */
    llvs_cancel_token *token;
} llvs_control;
#define LLVS_CONTROL_INIT { (uint32_t)sizeof(llvs_control), 0, 0, 0, 0 }

/* ------------------------------------------------------------------------------------------------
 * What the store is made of
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
    /** In a walk through the history of one value (llvs_history_options.value_id): the change that this version recorded for it; else 0. */
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

/** A value as it prevails at a version, or its absence. Since 0.1. */
typedef struct llvs_value_info {
    uint32_t struct_size;
    /** 1; or 0 if there is no such value, and then only `id` is set. */
    llvs_bool present;
    llvs_bytes id;
    /** Its data pointer is NULL if the bytes were not requested. */
    llvs_bytes data;
    /** The version in which the bytes were stored. */
    llvs_bytes stored_version;
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
    /** How many of them exist. */
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
} llvs_value_block;
/** Releases the block. Since 0.1. */
LLVS_API void llvs_value_block_free(LLVS_OWNED llvs_value_block *block);

/** A change that a version recorded, or a difference of two versions. Since 0.1. */
typedef struct llvs_change_info {
    uint32_t struct_size;
    llvs_change_kind kind;
    llvs_bytes id;
    /** Of insert and update, if the bytes were requested; else its data pointer is NULL. */
    llvs_bytes data;
    /** The version that stores the bytes of an insert, update or preserve; else empty. */
    llvs_bytes stored_version;
    /** The size of the value in bytes; 0 for removals. */
    uint64_t data_size;
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
    /** Gone when closed; for tests and scratch. */
    LLVS_STORAGE_MEMORY = 2,
    /** The `host_storage` of the options. */
    LLVS_STORAGE_HOST = 3
};

/** What a power cut can lose. If only the process is killed, nothing is lost with either. Since 0.1. */
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
     * The default: automatically when it is worthwhile (at close, seldom at open), and on request; neither in a folder that a syncing
     * program copies.
     */
    LLVS_COMPACTION_AUTOMATIC = 0,
    /** By llvs_store_compact only, and not in a folder that a syncing program copies. */
    LLVS_COMPACTION_ON_REQUEST = 1,
    /** Automatically when it is worthwhile, and on request, wherever the store is. */
    LLVS_COMPACTION_ALWAYS = 2
};

/**
 * Whether to store values as differences from earlier ones of the same id, if that needs less space: an edit of a long text then takes some
 * hundred bytes. It applies to values of 1 KiB to 1 MiB. Stored differences are read with any setting. For a library from before
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
     * directory for each store: if two stores share one, each takes the other's files for its own, and a coordinator's name can be open on
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
 * close together cause one call. Versions that others added before the registration, and that this handle has not read yet, cause the first
 * call.
 *
 * The system reports (inotify) when files of the store are written; nothing is polled. If it does not, as on network file systems, or if no
 * more watches are available, the store is polled every two seconds. For a store in memory or in a storage of the host, only versions
 * through this handle are reported: llvs_store_reload finds those of others.
 *
 * The registration does not keep the store open; after the store is closed, the callback is not called any more.
 * @param fn, payload, payload_free  see "Callbacks" above
 * @param observer  ends the registration when freed
 * Errors: LLVS_ERROR_IO and others, if there are no more threads or descriptors. Cost: a thread, and two to three descriptors. Since 0.1.
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
    /** On the medium, caches included. */
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

/** What a damage costs. Since 0.1. */
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
 * The damaged store may be open, except a database that is open in this process: LLVS_ERROR_BUSY, close it first. Versions that others
 * write to it meanwhile may be in the new store or not.
 * Errors: those of llvs_store_open (LLVS_ERROR_NOT_FOUND: there is nothing to salvage) and LLVS_ERROR_INVALID_ARGUMENT (the target is
 * within the damaged store): nothing was created. After LLVS_ERROR_STORE_NOT_EMPTY, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the
 * progress callback) and storage errors, delete the new store. Cost: reads the damaged store up to three times; memory for the history and
 * for the ids of the values in new versions. For a database it also needs the database's size on disk, beside the new store, until it ends.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_salvage(llvs_bytes path, LLVS_BORROWED const llvs_store_options *options, llvs_bytes target,
    LLVS_BORROWED const llvs_store_options *target_options, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_salvage_report **report, LLVS_OWNED llvs_error **error);
/** Releases the report. Since 0.1. */
LLVS_API void llvs_salvage_report_free(LLVS_OWNED llvs_salvage_report *report);

/** What a compaction did. Set struct_size before the call; no more than that is written. Since 0.1. */
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
 *              `error` (by llvs_error_make; optional); LLVS_ERROR_IO and LLVS_ERROR_CANCELLED keep their code
 */
typedef llvs_status (*llvs_read_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED uint8_t *buffer, size_t capacity, LLVS_BORROWED size_t *size,
    LLVS_OWNED llvs_error **error);

/**
 * Receives one piece of a file, or of a stream of packs. Since 0.1.
 *   thread     the one that made the call
 *   re-entry   may call the library; for a file of a transport, but not the exchange
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK; all else: llvs_outgoing_write fails as a callback of the transport does, and llvs_store_write_pack returns
 *              LLVS_ERROR_USER with the error in `error` (by llvs_error_make; optional); LLVS_ERROR_IO, LLVS_ERROR_NO_SPACE and
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
     * merges. LLVS_ERROR_MOVED if the current version does not descend from `expected`. For llvs_store_make_version it is
     * LLVS_ERROR_INVALID_ARGUMENT.
     */
    llvs_bool merges;
    /**
     * The id of the new version; empty: the content id, which is computed from the contents of the version (a UUID of version 8,
     * docs/format.md). With a content id others can check that the version is unchanged. An id of that form is refused if it is not the
     * content id; other ids vouch for nothing. Making the same version again under its id is not an error. Exchanges use the id as the name
     * of a file: LLVS_ERROR_INVALID_VERSION_ID for ids that begin with `-`, and for names of devices (CON, PRN, AUX, NUL, COM1 to COM9,
     * LPT1 to LPT9, in any case). Versions that others made under such ids are accepted and passed on.
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

/** Which versions to walk through: those that satisfy all conditions given. Since 0.1. */
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
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_USER, storage errors. Cost: the page, and the versions that are skipped to find it: with
 * `branch` those of other branches; with `prefix` others, whose records are read; with `value_id` together with `from` or `hiding` those
 * between. Since 0.1.
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
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID, storage errors.
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
 * Errors, cost: as llvs_store_value. Since 0.1.
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
 * Errors: as llvs_store_value. Cost: O(log n). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_open_value(LLVS_BORROWED llvs_store *store, llvs_bytes id, llvs_bytes at,
    LLVS_OWNED llvs_value_reader **reader, LLVS_BORROWED uint64_t *size, LLVS_BORROWED llvs_version_id *stored_version,
    LLVS_OWNED llvs_error **error);
/**
 * Copies the bytes of the value from `offset` on, and checks all of them.
 * @param buffer    receives at most `capacity` bytes, without a NUL; may be NULL if `capacity` is 0. Its bytes are undefined after a
 *                  failure
 * @param size      receives how many: fewer than `capacity` only at the end of the value, 0 at the end and after it
 * Errors: storage errors; LLVS_ERROR_DAMAGED if a block that is read differs from what was written. Cost: with file storage, a value above
 * 1 MiB is read and checked in the blocks of 64 KiB that are needed; the first call reads a smaller one as a whole and keeps it. With other
 * storages, the first call reads a value above 1 MiB completely, to check it, and keeps checksums of its blocks; if such a value is
 * deflated, reading backwards inflates it from its beginning. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_value_reader_read(LLVS_BORROWED llvs_value_reader *reader, uint64_t offset,
    LLVS_BORROWED void *buffer, size_t capacity, LLVS_BORROWED size_t *size, LLVS_OWNED llvs_error **error);
/** Releases the reader. Since 0.1. */
LLVS_API void llvs_value_reader_free(LLVS_OWNED llvs_value_reader *reader);
/**
 * Returns which version stored the value that prevails, without reading the value; size 0 if there is no such value. Use it to check
 * whether a value exists.
 * Errors: as llvs_store_value. O(log n). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_reference(LLVS_BORROWED llvs_store *store, llvs_bytes id, llvs_bytes at,
    LLVS_BORROWED llvs_version_id *stored_version, LLVS_OWNED llvs_error **error);
/** Returns many values at one version: an element for each id, in order, `present` or not. Errors: as llvs_store_value. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_store_values(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_bytes *ids, size_t count,
    llvs_bytes at, LLVS_OWNED llvs_value_list **values, LLVS_OWNED llvs_error **error);
/**
 * Returns many values at one version, in a few large pieces.
 * @param ids       the value ids, one behind the other, with nothing between them
 * @param id_sizes  the size of each, `count` in all
 * @param block     receives the values, in order
 * Errors: as llvs_store_value; LLVS_ERROR_INVALID_ARGUMENT if the sizes do not add up. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_value_block(LLVS_BORROWED llvs_store *store, llvs_bytes ids,
    LLVS_BORROWED const uint64_t *id_sizes, size_t count, llvs_bytes at, LLVS_OWNED llvs_value_block **block,
    LLVS_OWNED llvs_error **error);

/** Which values to enumerate: those that satisfy all conditions given. Since 0.1. */
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
/** As llvs_store_enumerate, with the page in a few large pieces; NULL at the end. Since 0.1. */
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
 * @param range, control  as for llvs_store_changes
 * Errors: as llvs_store_changes. Cost: the changes recorded between the two, or the values that differ in the range; not the number of
 * values. Since 0.1.
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

/* ------------------------------------------------------------------------------------------------
 * Merging
 * ------------------------------------------------------------------------------------------------ */

/** How one value differs between two versions and their common ancestor. Since 0.1. */
typedef uint32_t llvs_fork_kind;
enum llvs_fork_kind_value {
    /** Absent at the ancestor, present on one side. */
    LLVS_FORK_INSERTED = 1,
    /** Absent at the ancestor, different on both sides. Conflicting. */
    LLVS_FORK_TWICE_INSERTED = 2,
    /** Changed on one side. */
    LLVS_FORK_UPDATED = 3,
    /** Changed on both sides, differently. Conflicting. */
    LLVS_FORK_TWICE_UPDATED = 4,
    /** Removed on one side. */
    LLVS_FORK_REMOVED = 5,
    /** Removed on both sides. */
    LLVS_FORK_TWICE_REMOVED = 6,
    /** Removed on one side (`side`), changed on the other. Conflicting. */
    LLVS_FORK_REMOVED_AND_UPDATED = 7
};
/** A side of a merge. Since 0.1. */
typedef uint32_t llvs_side;
enum llvs_side_value { LLVS_SIDE_NONE = 0, LLVS_SIDE_FIRST = 1, LLVS_SIDE_SECOND = 2 };

/** One fork of a merge. Since 0.1. */
typedef struct llvs_fork {
    uint32_t struct_size;
    llvs_fork_kind kind;
    /** The side of the change, for inserted, updated and removed; the side of the removal, for removed-and-updated; else none. */
    llvs_side side;
    /** 1 if an arbiter must decide. */
    llvs_bool conflicting;
    /** The value id. */
    llvs_bytes id;
    /**
     * The versions that stored the value that prevails at the first version, the second and their ancestor; empty if it is absent there.
     */
    llvs_bytes first;
    llvs_bytes second;
    llvs_bytes ancestor;
    /**
     * The versions that stored the values at the best common ancestors, each once. Usually that is `ancestor` alone. If versions were
     * merged across each other, there may be several ancestors with different values. Then a part of a value counts as changed on a side
     * only if it differs from that part in all of these values: an arbiter that treats an empty `ancestor` as an absent value loses edits.
     */
    const llvs_bytes *ancestors;
    size_t ancestor_count;
} llvs_fork;

/** One merge, as an arbiter sees it; lives for the callback only. Since 0.1. */
typedef struct llvs_merge {
    uint32_t struct_size;
    uint32_t reserved;
    /** The newer version: the merge's first predecessor. */
    const llvs_version_info *first;
    /** The older version. */
    const llvs_version_info *second;
    /** The first argument of the merge as it was called: `first` or `second`. */
    const llvs_version_info *ours;
    /** The second argument of the merge as it was called. */
    const llvs_version_info *theirs;
    /** The best common ancestors, newest first; empty when there are none. */
    const llvs_version_list *bases;
    /** The store, to read values at any version; making versions in it is allowed as well. Must not be freed. */
    llvs_store *store;
    /** The forks, conflicting or not, in byte order of their ids: llvs_merge_fork finds one. */
    const llvs_fork *const *forks;
    size_t fork_count;
} llvs_merge;
/** Returns the fork of a value id; NULL if there is none. O(log n). */
static inline const llvs_fork *llvs_merge_fork(LLVS_BORROWED const llvs_merge *merge, llvs_bytes id) {
    size_t low = 0, high = merge ? merge->fork_count : 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const llvs_bytes other = merge->forks[middle]->id;
        const size_t shorter = id.size < other.size ? id.size : other.size;
        const int order = shorter ? memcmp(other.data, id.data, shorter) : 0;
        if (order == 0 && other.size == id.size) return merge->forks[middle];
        if (order < 0 || (order == 0 && other.size < id.size)) low = middle + 1;
        else high = middle;
    }
    return 0;
}

/** The decisions of an arbiter; lives for the callback only. Since 0.1. */
typedef struct llvs_resolution llvs_resolution;
/**
 * Adds changes to the decisions of the arbiter; bytes are copied. Every conflicting fork needs one. Other ids may be changed, too. For
 * forks without a change, the store uses the value of the side that changed it. A second change of one id replaces the first.
 * @param changes, change_count, change_size  as for llvs_store_make_version
 * Errors: LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID; nothing was added.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_resolution_add(LLVS_BORROWED llvs_resolution *resolution, LLVS_BORROWED const llvs_change *changes,
    size_t change_count, size_t change_size, LLVS_OWNED llvs_error **error);

/**
 * Decides the conflicts of merges. Safe from all threads. Since 0.1.
 *
 * There may be several common ancestors. If two devices merge the same two versions with different results, or put their names into the
 * metadata, they leave a criss-cross: both merges are built on both versions, and neither of these is *the* ancestor of later saves. For a
 * value that differs between the ancestors, `ancestor` of its fork is empty, as it is for an absent value; `ancestors` has the value of
 * each. So an arbiter that compares parts of values (fields of a record, lines of a text) must compare with all of them:
 *
 *     a side changed a part if the part on that side differs from the part in each of `ancestors`
 *
 * It takes the part from the side that changed it; if both or neither did, from `first`, say. An arbiter that compares with `ancestor`
 * alone sees changes where there are none, and loses edits. The arbiter in examples/c/branch_and_merge.c shows how.
 *
 * Devices that resolve alike make the same merge version, and have nothing left to exchange. So an arbiter must decide from the merge and
 * the store alone, never from a clock, a random number or the device that it runs on, and must write its bytes in one form.
 */
typedef struct llvs_arbiter llvs_arbiter;
/** The built-in arbiters. Since 0.1. */
typedef uint32_t llvs_arbiter_kind;
enum llvs_arbiter_kind_value {
    /** In each conflict the change that was stored in the later version wins; an update beats a removal. */
    LLVS_ARBITER_MOST_RECENT_CHANGE = 1,
    /** In every conflict the newer of the two versions wins, removals included. */
    LLVS_ARBITER_MOST_RECENT_BRANCH = 2,
    /** The first argument's side wins. Such merges depend on who makes them. */
    LLVS_ARBITER_OURS = 3,
    /** The second argument's side wins. */
    LLVS_ARBITER_THEIRS = 4
};
/** Makes a built-in arbiter. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_arbiter_builtin(llvs_arbiter_kind kind, LLVS_OWNED llvs_arbiter **arbiter,
    LLVS_OWNED llvs_error **error);
/**
 * Makes an arbiter that merges inside values, by rules: it keeps the changes of both sides. If it has to decide conflicts nevertheless, it
 * records their number in the metadata of the merge version, under "__llvs_conflicts": `{"hash":"<SHA-256 of the conflicts as
 * JSON>","ids":[<the first 64>],"n": <count>}`; such a version also has `"rules"` under "__llvs_arbiter". Values without rules are decided
 * as by LLVS_ARBITER_MOST_RECENT_CHANGE. NULL in place of an arbiter is the same as this one with empty rules.
 *
 * The rules of a store are its value "__llvs_schema", which is saved, exchanged and merged like others: `{"merge":1,"ids":{"contact/":
 * {"/visits":"counter","/tags":"set"}}}`. Check it with llvs_schema_check before saving it: invalid rules are ignored, and the newest valid
 * ones before them are used. With a rule that counts (`"counter"`), the same bytes stored by two devices are two events, and heads that
 * hold them are not equal.
 * @param rules    as for llvs_merge_values: each merge uses these instead of the store's; all devices should pass the same. Empty: the
 *                 rules of the store
 * @param arbiter  the arbiter; owned by the caller
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (invalid rules: llvs_error_path is the JSON pointer to the mistake), LLVS_ERROR_UNSUPPORTED (rules of
 * a version that this library does not know), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_OUT_OF_MEMORY. A merge with it fails with
 * LLVS_ERROR_UNSUPPORTED while one of the two versions holds rules of an unknown version. Any thread. Cost of a merge: what differs, and
 * the size of the values that both sides changed; without rules, as with LLVS_ARBITER_MOST_RECENT_CHANGE. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_arbiter_rules(llvs_bytes rules, LLVS_OWNED llvs_arbiter **arbiter, LLVS_OWNED llvs_error **error);
/**
 * Resolves one merge. Since 0.1.
 *   thread     the one that merges; several at once when several merge
 *   re-entry   may call the library, the store included; no lock is held. (To save or merge through the coordinator that is
 *              merging is LLVS_ERROR_BUSY.)
 *   pointers   live for the callback only
 *   result     LLVS_OK: resolved; LLVS_PASS: the fallback decides the conflicts that have no change yet; all else: the merge fails, stores
 *              nothing, and returns LLVS_ERROR_USER with the error in `error` (by llvs_error_make; optional)
 */
typedef llvs_status (*llvs_resolve_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_merge *merge,
                                       LLVS_BORROWED llvs_resolution *resolution, LLVS_OWNED llvs_error **error);
/**
 * Makes an arbiter of the host.
 * @param fallback  the arbiter that decides after LLVS_PASS; kept alive; NULL: none, so that conflicts without a change fail the merge
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_arbiter_create(llvs_resolve_fn resolve, LLVS_OWNED void *payload, llvs_free_fn payload_free,
    LLVS_BORROWED llvs_arbiter *fallback, LLVS_OWNED llvs_arbiter **arbiter, LLVS_OWNED llvs_error **error);
/** A question to a value merger; lives for the callback only. Since 0.1. */
typedef struct llvs_value_question {
    uint32_t struct_size;
    uint32_t reserved;
    /** The id of the value. */
    llvs_bytes id;
    /**
     * The place in the value, as a JSON array: names of members, `{"key":...}` for elements that have a key, `{"index":n}` for others.
     * `[]`: the value as a whole.
     */
    llvs_bytes path;
    /** The former content: the bytes of a whole value, or a part as JSON; NULL data if it was absent. */
    llvs_bytes base;
    /** The content on the side with the more recent value; as `base`. A side on which it is absent is the older. */
    llvs_bytes newer;
    /** The content on the other side; as `base`. */
    llvs_bytes older;
} llvs_value_question;
/**
 * Merges two sides of a value, or of a place in it. Since 0.1.
 *   thread     the one that merges; several at once when several merge
 *   re-entry   may call the library, the store included; no lock is held. (To save or merge through the coordinator that is
 *              merging is LLVS_ERROR_BUSY.)
 *   pointers   live for the callback only
 *   result     LLVS_OK: one change of this id was added to the resolution (llvs_resolution_add): an insert or update with the bytes of the
 *              value, or with the JSON of the place; or a remove, for no value. LLVS_PASS, without a change: decided as if there were no
 *              callback. All else: the merge fails, stores nothing, and returns LLVS_ERROR_USER with the error in `error` (by
 *              llvs_error_make; optional)
 */
typedef llvs_status (*llvs_merge_value_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_value_question *question,
                                           LLVS_BORROWED llvs_resolution *resolution, LLVS_OWNED llvs_error **error);
/**
 * Makes an arbiter that merges as llvs_arbiter_rules does, and asks the host about one value at a time: about each value without rules that
 * both sides changed, or that one changed and the other removed; and about each place that both sides changed and for which the rules say
 * so (`{"pick":"arbiter"}`). So values that are not JSON can be merged by their contents.
 *
 * If versions were merged across each other and have several common ancestors, the library first merges the ancestors' values, and may ask
 * the callback about these, too. So the callback need not handle such histories. It must decide from the question alone, give the same
 * result on all devices and each time, and write its bytes in one form. A merge that it decided in a store with rules has `"host"` under
 * "__llvs_arbiter". If devices decide differently nevertheless, one result prevails in the end (llvs_store_merge).
 * @param rules    as for llvs_arbiter_rules
 * @param arbiter  the arbiter; owned by the caller; released by llvs_arbiter_free
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED, LLVS_ERROR_TOO_LARGE, as llvs_arbiter_rules. A merge with it also gives
 * LLVS_ERROR_UNRESOLVED_CONFLICT (LLVS_OK without one change of the id), and LLVS_ERROR_INVALID_ARGUMENT (a result for a place that is not
 * JSON). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_value_merger_create(llvs_merge_value_fn merge, LLVS_OWNED void *payload, llvs_free_fn payload_free,
    llvs_bytes rules, LLVS_OWNED llvs_arbiter **arbiter, LLVS_OWNED llvs_error **error);
/** Releases the arbiter. Since 0.1. */
LLVS_API void llvs_arbiter_free(LLVS_OWNED llvs_arbiter *arbiter);

/** Whether versions without a common ancestor may be merged. Since 0.1. */
typedef uint32_t llvs_relation;
enum llvs_relation_value {
    /** The default: three-way if there is a common ancestor, else two-way. */
    LLVS_RELATION_ANY = 0,
    /** LLVS_ERROR_NO_COMMON_ANCESTOR if there is none. */
    LLVS_RELATION_RELATED = 1,
    /** Always two-way, as if the ancestor were empty. */
    LLVS_RELATION_UNRELATED = 2
};
/** Which heads to merge. Since 0.1. */
typedef uint32_t llvs_head_selection;
enum llvs_head_selection_value {
    /**
     * The default: all heads without a branch. These are the versions without a branch that are not ancestors of other versions without a
     * branch. So a version on a branch does not hide the version that it was made from.
     */
    LLVS_HEADS_UNBRANCHED = 0,
    LLVS_HEADS_ALL = 1,
    /** Those without a branch, and those on `branches`. */
    LLVS_HEADS_UNBRANCHED_AND_BRANCHES = 2,
    /** Those on `branches` only. */
    LLVS_HEADS_BRANCHES = 3
};
/** How to merge or revert. Since 0.1. */
typedef struct llvs_merge_options {
    uint32_t struct_size;
    /** For llvs_store_merge. */
    llvs_relation relation;
    /** For llvs_store_merge_heads and llvs_coordinator_merge. */
    llvs_head_selection selection;
    /**
     * For llvs_store_revert and llvs_store_cherry_pick of a merge: the predecessor with which the merge is compared; LLVS_SIDE_NONE: the
     * first.
     */
    llvs_side parent;
    /** Names for the selection, UTF-8. */
    const llvs_bytes *branches;
    size_t branch_count;
    /** Of the new version. */
    const llvs_metadata_entry *metadata;
    size_t metadata_count;
    /**
     * Progress and cancellation; may be NULL. When heads are merged, progress counts heads (LLVS_STAGE_ADDING); when two versions are
     * merged, or one is undone, it counts values examined (LLVS_STAGE_READING). After a cancellation nothing is stored.
     */
    const llvs_control *control;
    /** For llvs_coordinator_undo: the version to undo, by whatever device; empty: the last save of this device. */
    llvs_bytes version;
} llvs_merge_options;
#define LLVS_MERGE_OPTIONS_INIT { (uint32_t)sizeof(llvs_merge_options), 0, 0, 0, 0, 0, 0, 0, 0, LLVS_NONE_INIT }

/**
 * Merges two versions. If one is an ancestor of the other, or both are the same, nothing is stored and the descendant is the result. The
 * result does not depend on the order of the arguments (unless the arbiter uses ours and theirs).
 *
 * A side changed a value if the value's bytes on that side differ from those at the common ancestor. A side that stored the same bytes
 * again, or changed a value and restored the bytes, changed nothing: the change of the other side prevails, however old it is. A value with
 * the same bytes on both sides is not a fork, although llvs_store_differences lists it if each side stored it. The exception is a value
 * that rules of the store count (llvs_arbiter_rules).
 *
 * In two cases the arbiter is not asked, and the new version has no metadata except "__llvs_arbiter": if both versions hold the same bytes
 * under each id, and if both contain only merges since their common ancestors, of all that was saved on both sides. Then one of the two
 * states prevails as a whole. A version with `"host"` under "__llvs_arbiter" (an arbiter of the host decided, in a store with rules) wins
 * over one with `"rules"`, and that over one without the entry. If both have the same, take the first id, in byte order, at which they
 * differ: the version whose value was stored later wins, and a value wins over none.
 * @param arbiter  decides conflicts; NULL: the rules of the store, or most recent change if it has none (llvs_arbiter_rules)
 * @param options  may be NULL
 * @param version  a list of the one resulting version; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_UNRESOLVED_CONFLICT, LLVS_ERROR_NO_COMMON_ANCESTOR,
 * LLVS_ERROR_INVALID_REFERENCE, LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_USER (from the arbiter, or the progress callback),
 * LLVS_ERROR_CANCELLED, storage errors. Nothing is stored then.
 * Cost: what differs, times log n.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_merge(LLVS_BORROWED llvs_store *store, llvs_bytes ours, llvs_bytes theirs,
    LLVS_BORROWED llvs_arbiter *arbiter, LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_version_list **version,
    LLVS_OWNED llvs_error **error);
/**
 * Merges a version and the selected heads, all of them or none. If a head cannot be merged because it or an ancestor is damaged in this
 * store, it is skipped: it stays a head, the log has a warning, and it is merged after a retrieve has repaired it. If `into` or an ancestor
 * of it is damaged: LLVS_ERROR_DAMAGED.
 * @param into     a version to which the heads are added
 * @param version  a list of the one resulting version; NULL if nothing changed; may be NULL
 * Errors: as llvs_store_merge. Cost: with a built-in arbiter, the changes of each head since it forked off, and the number of versions
 * once. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_merge_heads(LLVS_BORROWED llvs_store *store, llvs_bytes into,
    LLVS_BORROWED llvs_arbiter *arbiter, LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_version_list **version,
    LLVS_OWNED llvs_error **error);
/** What a conflict was about. Since 0.1. */
typedef uint32_t llvs_conflict_kind;
enum llvs_conflict_kind_value {
    /** Both sides changed a value that is not merged inside: one of them prevails. */
    LLVS_CONFLICT_PICK = 1,
    /**
     * One side removed what the other changed. For a value, one side is absent. For lines of a text, both sides are JSON strings with whole
     * lines, and one of them may be empty; the changed lines stay.
     */
    LLVS_CONFLICT_DELETE_EDIT = 2,
    /** The sides have different types, or a type that the rule does not apply to. */
    LLVS_CONFLICT_TYPE = 3,
    /** A side is not JSON that can be merged. */
    LLVS_CONFLICT_NOT_JSON = 4,
    /** Both sides changed the same lines of a text differently. The conflict's values are these lines, whole, as JSON strings. */
    LLVS_CONFLICT_OVERLAP = 5,
    /**
     * Both sides moved an element of a list to different positions. If there are more than 64 in one list, there is one conflict for the
     * list.
     */
    LLVS_CONFLICT_MOVE_MOVE = 6,
    /** The sides hold two values between which an earlier merge had to choose. */
    LLVS_CONFLICT_CONTESTED = 7,
    /** A counter is outside of the bounds that its rule gives. For information only: the result contains both sides. */
    LLVS_CONFLICT_BOUND = 8,
    /**
     * A limit was reached. For a text: it was compared in less detail, since the sides differ too much; or it has too many parts, and one
     * side prevails. For a counter: the sum has too many digits, and one side prevails. For the whole value (the path is []), one of two
     * things:
     *
     * - The merged value would be too large, or could not be merged again. The newer side prevails; if the newer side removed the value,
     *   the older one.
     * - The value is merged, and has too many conflicts: they exceed four times the three inputs plus 1 MiB. They are not reported one by
     *   one, neither by the merge nor by llvs_store_explain and llvs_store_open_conflicts. This one conflict replaces them, also in the
     *   digest of the merge version. It has the whole values, which the caller can compare.
     */
    LLVS_CONFLICT_LIMIT = 9,
    /** Both sides changed a place that the rules leave to a value merger of the host; without one, the newer prevails. */
    LLVS_CONFLICT_ARBITER = 10
};
/** A decision of a merge where both sides had changed the same. Borrowed from the object that reported it. Since 0.1. */
typedef struct llvs_conflict {
    uint32_t struct_size;
    llvs_conflict_kind kind;
    /** The place in the value, as a JSON array: names of members, `{"key":...}` for elements that have a key, `{"index":n}` for others. */
    llvs_bytes path;
    /** The former content, as JSON; NULL data if it was absent. Bytes that are not JSON are `{"sha256":"...","size":n}`. */
    llvs_bytes base;
    /** The content on the newer side; as `base`. */
    llvs_bytes newer;
    /** The content on the older side; as `base`. */
    llvs_bytes older;
    /** The result of the merge; as `base`. */
    llvs_bytes result;
    /** The id prefix under which the rule for this place is registered; NULL data if there is none. */
    llvs_bytes rule_prefix;
    /** The pattern of the rule; NULL data if there is none. */
    llvs_bytes rule_pattern;
    /** The id of the value; empty from llvs_merge_values without an id. */
    llvs_bytes id;
    /** The merge version that decided it; empty if there is none. */
    llvs_bytes version;
} llvs_conflict;
/** The result of undoing or picking a version; immutable, owned. Since 0.1. */
typedef struct llvs_revert_result {
    uint32_t struct_size;
    /**
     * From llvs_store_cherry_pick: 1 if some of the picked values have rules that count; after a merge of both lines, their changes count
     * twice.
     */
    llvs_bool counts;
    /** The new version; NULL if there was nothing left to undo, and nothing was stored. */
    const llvs_version_info *version;
    /**
     * The ids of the values that were changed, in byte order: values of which something, or all, is as it was before the version; for a
     * pick, values that took something from it.
     */
    const llvs_bytes *undone;
    size_t undone_count;
    /**
     * The ids of values that keep something which the version changed, in byte order. Something stays if it was changed again later, to
     * other contents than before the version. If rules merge inside a value, the value may be in both lists. Also listed are values to
     * which an undone version added members while it converted them to a later form: these members stay. And values for which it is unknown
     * what lost against the version in a merge, because a host decided.
     */
    const llvs_bytes *superseded;
    size_t superseded_count;
    /** The conflicts that were decided, in byte order of the ids; NULL after the last. */
    const llvs_conflict *const *conflicts;
    size_t conflict_count;
    /** The versions that were undone, newest first. */
    const llvs_bytes *versions;
    size_t version_count;
    /** From llvs_coordinator_undo and llvs_coordinator_redo: the description of the save; empty if it has none. */
    llvs_bytes description;
} llvs_revert_result;
/** Releases the result. Since 0.1. */
LLVS_API void llvs_revert_result_free(LLVS_OWNED llvs_revert_result *result);
/**
 * Records the inverse of a version's changes on top of a head: undoes the version without losing later changes. It is a merge with the
 * version as the base, the head as the newer side and the version's predecessor as the older. Values with rules are merged inside, so later
 * changes stay, member by member; other values are undone as a whole or not at all. Values that were removed later stay removed. If the
 * version won a conflict in a later merge, the change that lost is restored.
 * @param version   the version whose changes to undo
 * @param at        the new version's predecessor
 * @param options   parent, metadata and control; may be NULL
 * @param result    the new version, and the values that were undone and those that were not; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_UNKNOWN_PREDECESSOR, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_METADATA,
 * LLVS_ERROR_INVALID_ARGUMENT (the second predecessor of a version that has none), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress
 * callback), storage errors. Nothing is stored then. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_revert(LLVS_BORROWED llvs_store *store, llvs_bytes version, llvs_bytes at,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_revert_result **result, LLVS_OWNED llvs_error **error);
/**
 * Applies a version's changes again on top of a head: a merge with the version's predecessor as the base and the version as the newer side.
 * If the two lines are merged later, changes of counters count twice (`counts`): pick only between lines that will not be merged, or pick
 * no counters.
 * @param onto      the new version's predecessor
 * @param result    the new version, the ids of values that took something from it, those of values that kept other contents, and conflicts;
 *                  may be NULL
 * Other parameters and errors: as llvs_store_revert. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_cherry_pick(LLVS_BORROWED llvs_store *store, llvs_bytes version, llvs_bytes onto,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_revert_result **result, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Merging inside values
 * ------------------------------------------------------------------------------------------------ */

/** Where the bytes of a merged value come from. Since 0.1. */
typedef uint32_t llvs_merged_source;
enum llvs_merged_source_value {
    /** The merged value is absent. */
    LLVS_MERGED_ABSENT = 0,
    /** They are the newer side's, byte for byte. */
    LLVS_MERGED_NEWER = 1,
    /** They are the older side's, byte for byte. */
    LLVS_MERGED_OLDER = 2,
    /** They are new. */
    LLVS_MERGED_COMPUTED = 3
};
/** The result of merging a value. Released by llvs_merged_value_free. Since 0.1. */
typedef struct llvs_merged_value {
    uint32_t struct_size;
    llvs_merged_source source;
    /** The bytes; NULL data if there is no value. */
    llvs_bytes data;
    /** In the order in which they were found; NULL after the last. */
    const llvs_conflict *const *conflicts;
    size_t conflict_count;
    /** SHA-256 of the conflicts as canonical JSON, 64 hexadecimal digits; empty if there are none. */
    llvs_bytes digest;
} llvs_merged_value;
/** How to merge a value. Since 0.1. */
typedef struct llvs_merge_values_options {
    uint32_t struct_size;
    /**
     * 1: merge for saving. The older side is the value that the application read, as stored; the base is the application's own form of that
     * value, unchanged; the newer side is what it wants to save. So members that the application does not know are kept, members that it
     * removed are gone, and its changes win.
     */
    llvs_bool saving;
    /** The id of the value: it selects the rules, and is the `id` in the JSON that `digest` is computed from. May be empty. */
    llvs_bytes id;
    /** Progress (LLVS_STAGE_READING) and cancellation; may be NULL. */
    const llvs_control *control;
} llvs_merge_values_options;
#define LLVS_MERGE_VALUES_OPTIONS_INIT { (uint32_t)sizeof(llvs_merge_values_options), 0, LLVS_NONE_INIT, 0 }
/**
 * Merges two sides of a value: inside it, if it is JSON or the rules say that it is text. Needs no store. The same arguments give the same
 * bytes on every machine. There is always a result; decisions are reported as conflicts.
 * @param rules    JSON: a rule (`"auto"`, `{"as":"counter"}`), patterns with rules (`{"/tags":"set"}`), or a whole value of the kind that
 *                 is stored under "__llvs_schema" (`{"merge":1,"ids":{...}}`), of which the rules for the options' id apply; empty:
 *                 `"auto"`
 * @param base     the value that both sides had; NULL if it was absent
 * @param newer    the value on the side with the more recent change; NULL if it is absent
 * @param older    the value on the other side; NULL if it is absent
 * @param options  may be NULL
 * @param merged   the result; owned by the caller
 * Any thread. Errors: LLVS_ERROR_INVALID_ARGUMENT (invalid rules: llvs_error_path is the JSON pointer to the mistake),
 * LLVS_ERROR_UNSUPPORTED (rules of a version that this library does not know), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER
 * (from the progress callback), LLVS_ERROR_OUT_OF_MEMORY. Cost: the size of the values; a value that only one side changed is not parsed.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_merge_values(llvs_bytes rules, LLVS_BORROWED const llvs_bytes *base,
    LLVS_BORROWED const llvs_bytes *newer, LLVS_BORROWED const llvs_bytes *older,
    LLVS_BORROWED const llvs_merge_values_options *options, LLVS_OWNED llvs_merged_value **merged, LLVS_OWNED llvs_error **error);
/** Conflicts of a merge; immutable, owned. Since 0.1. */
typedef struct llvs_conflict_list {
    uint32_t struct_size;
    /**
     * From llvs_store_explain: whether these are the conflicts that the merge version recorded. If not, it was made with other rules than
     * those of the store, or by an arbiter of the host. From other calls: 1.
     */
    llvs_bool recorded;
    size_t count;
    /** In byte order of the value ids, and for each value in the order in which they were found; NULL after the last. */
    const llvs_conflict *const *items;
    /** SHA-256 of the conflicts that rules decided, 64 hexadecimal digits, as merge versions record it; empty if there are none. */
    llvs_bytes digest;
} llvs_conflict_list;
/** Releases the list. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_conflict_list_free(LLVS_OWNED llvs_conflict_list *list);
/** Releases a merged value with all that it points to. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_merged_value_free(LLVS_OWNED llvs_merged_value *merged);
/**
 * Checks rules as they are stored under "__llvs_schema".
 * @param rules  a whole value: `{"merge":1,"ids":{...}}`
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED (the rules have an unknown version), each with the JSON pointer to the
 * mistake as llvs_error_path, and the reason as its message; LLVS_ERROR_TOO_LARGE, LLVS_ERROR_OUT_OF_MEMORY. Any thread. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_schema_check(llvs_bytes rules, LLVS_OWNED llvs_error **error);
/** Which conflicts to list, and how. Since 0.1. */
typedef struct llvs_conflict_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** Only the conflicts of this value; empty: of all. */
    llvs_bytes value_id;
    /** An arbiter of llvs_arbiter_rules, whose rules are used instead of the store's; NULL: the store's. */
    llvs_arbiter *arbiter;
    /** Progress (LLVS_STAGE_READING, in values examined) and cancellation; may be NULL. */
    const llvs_control *control;
} llvs_conflict_options;
#define LLVS_CONFLICT_OPTIONS_INIT { (uint32_t)sizeof(llvs_conflict_options), 0, LLVS_NONE_INIT, 0, 0 }
/**
 * Lists the conflicts that a merge of two versions by rules would have to decide, with the decisions. Nothing is stored. Conflicts of
 * values without rules are included: their path is `[]`, and their kind is LLVS_CONFLICT_PICK or LLVS_CONFLICT_DELETE_EDIT.
 *
 * There are none if one version is an ancestor of the other, if both hold the same values, and if the arbiter would not be asked
 * (llvs_store_merge).
 * @param options    may be NULL
 * @param conflicts  the list; owned by the caller
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_ARGUMENT (another
 * arbiter), LLVS_ERROR_UNSUPPORTED (rules of an unknown version), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback),
 * storage errors. Any thread. Cost: that of the merge, and the values that both sides changed. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_conflicts(LLVS_BORROWED llvs_store *store, llvs_bytes ours, llvs_bytes theirs,
    LLVS_BORROWED const llvs_conflict_options *options, LLVS_OWNED llvs_conflict_list **conflicts, LLVS_OWNED llvs_error **error);
/**
 * Lists the decisions of a merge version, by merging its two predecessors again. If rules did not decide, `result` is the content at the
 * version. For a version that is not a merge the list is empty. Parameters, errors and cost: as llvs_store_conflicts. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_explain(LLVS_BORROWED llvs_store *store, llvs_bytes version,
    LLVS_BORROWED const llvs_conflict_options *options, LLVS_OWNED llvs_conflict_list **conflicts, LLVS_OWNED llvs_error **error);
/**
 * Lists the conflicts that are open at a version, to show them to a person. A conflict is open if the version or an ancestor is a merge
 * that decided it by rules, its result still prevails, and no later edit or choice (llvs_store_choose) replaced it. Oldest merge first; a
 * conflict that several merges decided is listed once. Parameters and errors: as llvs_store_conflicts. Cost: the merges among the
 * ancestors, merging those again that recorded conflicts, and reading the later versions of the values in which such results still prevail:
 * once for each 64 such merges, with a check of each remaining place. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_open_conflicts(LLVS_BORROWED llvs_store *store, llvs_bytes at,
    LLVS_BORROWED const llvs_conflict_options *options, LLVS_OWNED llvs_conflict_list **conflicts, LLVS_OWNED llvs_error **error);
/** How a person decides an open conflict. Since 0.1. */
typedef uint32_t llvs_choice;
enum llvs_choice_value {
    /** The newer side. */
    LLVS_CHOICE_NEWER = 1,
    /** The older side. */
    LLVS_CHOICE_OLDER = 2,
    /** The result of the merge. */
    LLVS_CHOICE_RESULT = 3
};
/**
 * Makes the changes that close an open conflict. Nothing is stored: save them on `at`, with llvs_store_make_version, or with
 * llvs_coordinator_save and `at` as `expected`. If a side is chosen that differs from the result, the change is the value with that side in
 * its place. If the result is chosen, the change is a value under an id that begins with "__llvs_chosen/": it tells all devices that a
 * person chose. For a part of a text it is both, if the earlier result is a part of what was chosen. For the kinds LLVS_CONFLICT_MOVE_MOVE
 * and LLVS_CONFLICT_BOUND, and for LLVS_CONFLICT_DELETE_EDIT at a counter, only the result can be chosen: to change it, save the list or
 * the number that is wanted.
 * @param at        a version, usually the current one
 * @param conflict  as llvs_store_explain or llvs_store_open_conflicts reported it: `id`, `version`, `kind`, `path`, `base`, `newer`,
 *                  `older`, `result` and the rule
 * @param changes   the list of changes; owned by the caller
 * Errors: LLVS_ERROR_MOVED (at that version the place has other contents by now, or a side of a part of a text was chosen),
 * LLVS_ERROR_INVALID_ARGUMENT (a conflict without a version, or without the sides that its kind has; a side of a kind that has no sides to
 * choose; an ambiguous choice), LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Any thread. Cost: the size of
 * the value. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_choose(LLVS_BORROWED llvs_store *store, llvs_bytes at,
    LLVS_BORROWED const llvs_conflict *conflict, llvs_choice choice, LLVS_OWNED llvs_change_list **changes, LLVS_OWNED llvs_error **error);
/** The rules of a store, or the result of registering more; immutable, owned. Since 0.1. */
typedef struct llvs_schema {
    uint32_t struct_size;
    /** Whether `data` differs from the value that prevails under "__llvs_schema": it has to be saved, or was saved. */
    llvs_bool changed;
    /** The valid rules, with the given ones added, as JSON; NULL data if there are none. */
    llvs_bytes data;
    /** The version that stored the rules that were valid before; empty if there were none. */
    llvs_bytes stored_version;
    /**
     * Why the rules that prevail are invalid; empty if they are valid, or there are none. If they are invalid, `data` is based on the
     * newest valid value before them.
     */
    llvs_bytes problem;
    /** Where the mistake is, as a JSON pointer. */
    llvs_bytes problem_path;
    /**
     * Places where the given rules contradict those of the store: `path` is the place, `newer` and `result` are the store's rule, which
     * stays, and `older` is the given one. NULL after the last.
     */
    const llvs_conflict *const *contradictions;
    size_t contradiction_count;
    /** The new version, from llvs_coordinator_register_schema only; NULL if none was made. */
    const llvs_version_info *version;
} llvs_schema;
/** Releases the schema with all that it points to. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_schema_free(LLVS_OWNED llvs_schema *schema);
/**
 * Returns the rules of a store at a version, with others added to them. Nothing is stored.
 *
 * Adds prefixes and patterns that the store does not have, and members of other sections (`"models"`, `"indexes"`). If both have a rule for
 * one pattern and the two differ in meaning, the store's stays, and the contradiction is reported. To change it nevertheless, save the
 * value "__llvs_schema" with the new rule.
 * @param at      a version
 * @param rules   the rules to add: a whole value of the kind that is stored under "__llvs_schema"; empty: none
 * @param schema  the result; owned by the caller
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_ARGUMENT (invalid rules: llvs_error_path is the
 * JSON pointer to the mistake), LLVS_ERROR_UNSUPPORTED (the given rules have an unknown version; or some are given, and the store's have
 * one), storage errors. Any thread. Cost: the size of the rules. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_schema(LLVS_BORROWED llvs_store *store, llvs_bytes at, llvs_bytes rules,
    LLVS_OWNED llvs_schema **schema, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Exchange
 * ------------------------------------------------------------------------------------------------ */

/**
 * Moves versions between a store and a place that other devices reach, in both directions. It never merges. Safe from all threads. Since
 * 0.1.
 */
typedef struct llvs_exchange llvs_exchange;
/** A transport of the host; see "A transport of the host" below. Since 0.1. */
typedef struct llvs_transport llvs_transport;

/** Receives the results of a callback of a storage, a transport or a decoder; lives for the callback only. Since 0.1. */
typedef struct llvs_reply llvs_reply;

/**
 * Decompresses values that another implementation compressed on Apple systems ("LLZF", then LZFSE).
 * @param data   the bytes after "LLZF"
 * @param reply  receives the decompressed bytes (llvs_reply_set, question 0)
 *
 *   thread     the one that imports or restores
 *   re-entry   may call the library, but not close the store or the exchange
 *   pointers   live for the callback only
 *   result     LLVS_OK, with the bytes. LLVS_PASS: the data is not compressed (for example, there are bytes after its end, or its end is
 *              missing); it is used unchanged, with its "LLZF". All else, also LLVS_OK without bytes: the call fails with LLVS_ERROR_USER
 *              and the error in `error`. Since 0.1.
 */
typedef llvs_status (*llvs_decode_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *data, LLVS_BORROWED llvs_reply *reply,
    LLVS_OWNED llvs_error **error);

/**
 * Supplies the credentials of the exchange, so that they can stay in a key store of the host. Called before the first request to a server,
 * and once more if the server refused the credentials.
 * @param place  the address, without a query, for a message or to look up the credentials
 * @param again  0: first call; 1: the server refused the credentials, or does not accept them any more: supply others, such as a refreshed
 *               token, or none
 * @param reply  receives the user (question 0) and the password (1), or a token (2), in UTF-8 without control characters; copied. If it is
 *               not set, the exchange continues without credentials
 *
 *   thread     the one that exchanges
 *   re-entry   may call the library, but not the exchange
 *   pointers   live for the callback only
 *   result     LLVS_OK; all else: the call fails with LLVS_ERROR_USER and the error in `error`. Since 0.1.
 */
typedef llvs_status (*llvs_credentials_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *place, llvs_bool again,
    LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);

/** The step for which a tokens callback is called. Since 0.1. */
typedef uint32_t llvs_tokens_step;
enum llvs_tokens_step_value {
    /** Supply the tokens (llvs_reply_set, question 0): JSON with the members of a `token_file`. If the reply is not set, there are none. */
    LLVS_TOKENS_READ = 0,
    /** Replace the stored tokens by these, durably: they are used after this has returned LLVS_OK. */
    LLVS_TOKENS_KEEP = 1,
    /**
     * Lock the tokens for a renewal, without waiting. LLVS_PASS: another thread or process with the same tokens is renewing them; the
     * library then calls again every 20 milliseconds, until it is cancelled, or 300 seconds have passed (LLVS_ERROR_BUSY).
     */
    LLVS_TOKENS_LOCK = 2,
    /** The renewal has ended: unlock. The returned status is ignored. */
    LLVS_TOKENS_UNLOCK = 3
};
/**
 * Stores the tokens of an account at a cloud drive, or of CloudKit, in a key store of the host, instead of a `token_file`. The library
 * renews the tokens, and uses new ones only after the host has stored them. Single-use tokens would be lost if two renewed them at once:
 * the lock prevents that.
 * @param step    one of llvs_tokens_step_value
 * @param tokens  with LLVS_TOKENS_KEEP: JSON, a secret; else NULL
 * @param reply   receives the tokens for LLVS_TOKENS_READ
 *
 *   thread     the one that exchanges
 *   re-entry   may call the library, but not the exchange
 *   pointers   live for the callback only
 *   result     LLVS_OK; LLVS_PASS as said; all else: the call fails with LLVS_ERROR_USER and the error in `error`. Since 0.1.
 */
typedef llvs_status (*llvs_tokens_fn)(LLVS_BORROWED void *payload, llvs_tokens_step step, LLVS_BORROWED const llvs_bytes *tokens,
    LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);

/** How versions are stored at the place of an exchange. Since 0.1. */
typedef uint32_t llvs_layout;
enum llvs_layout_value {
    /** As the URL says. If it does not say: a folder is interchange; a server has the layout of its contents, or packed if it is empty. */
    LLVS_LAYOUT_AUTOMATIC = 0,
    /** Two files for each version, which other implementations read (docs/interchange.md). */
    LLVS_LAYOUT_INTERCHANGE = 1,
    /** Many versions to a file, for few requests (docs/pack-format.md). */
    LLVS_LAYOUT_PACKED = 2,
    /**
     * Both, so that devices with packs and other implementations can share a place; for a place that is empty or has single files. Not with
     * keys.
     */
    LLVS_LAYOUT_BRIDGED = 3
};

/** How to open an exchange. Since 0.1. */
typedef struct llvs_exchange_options {
    uint32_t struct_size;
    /**
     * For files that a file: exchange writes. LLVS_DURABILITY_FULL: a file is on disk before others see it. LLVS_DURABILITY_NORMAL: faster;
     * a power cut may leave files without their bytes. Others report these as problems, and a device that has the version writes them
     * again.
     */
    llvs_durability durability;
    /**
     * A transport of the host instead of a URL; the exchange keeps it alive. Else NULL. It serves one exchange at a time. For one made by
     * llvs_transport_create_on_files, `layout` and the keys below apply, too.
     */
    llvs_transport *host_transport;
    /** 1: a folder that does not exist is LLVS_ERROR_NOT_FOUND (over a network when it is first listed); 0: it is created. */
    llvs_bool must_exist;
    /**
     * 1: llvs_exchange_send lists value ids that another implementation cannot store or distinguish (docs/interchange.md) as problems with
     * LLVS_ERROR_UNPORTABLE_ID, each once per exchange, named by the version; the versions are sent nevertheless. Cost: reading the changes
     * of the versions sent, and once, if an id is not ASCII, the ids of all heads.
     */
    llvs_bool report_unportable;
    /** For llvs_exchange_restore_snapshot, if another implementation's snapshot contains compressed values; may be NULL. */
    llvs_decode_fn decode;
    /** See "Callbacks" above; freed with the exchange, or when it cannot be opened. */
    void *decode_payload;
    llvs_free_fn decode_free;
    /**
     * For servers: a user and a password, or a token ("Authorization: Bearer"). For s3: the id of a key, the secret key, and the token of a
     * session if there is one; all empty: those of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), else of
     * the shared credentials file (~/.aws/credentials, AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE). Empty: none. Copied; never in a message
     * or a log. They are sent to the host of the URL only, and encrypted unless that is this machine.
     */
    llvs_bytes user;
    llvs_bytes password;
    llvs_bytes token;
    /** The path of a file with certificates (PEM) of the authorities that are trusted; empty: the system's. */
    llvs_bytes ca_file;
    /** The URL of a proxy; empty: from the environment (https_proxy, http_proxy, no_proxy), and none for this machine. */
    llvs_bytes proxy;
    /** Milliseconds without a byte after which a transfer fails, in whole seconds; 0: 30,000. */
    uint32_t timeout;
    /** How versions are stored there, if the URL does not say so. */
    llvs_layout layout;
    /** Instead of `user`, `password` and `token`; may be NULL. */
    llvs_credentials_fn credentials;
    /** See "Callbacks" above; freed with the exchange, or when it cannot be opened. */
    void *credentials_payload;
    llvs_free_fn credentials_free;
    /**
     * For a cloud drive (gdrive:, onedrive:, box:, pcloud:), instead of all credentials above: the path of a file with OAuth tokens in JSON
     * (`access_token`, `refresh_token`, `client_id`, `client_secret`, `token_uri`). A refused access token is renewed, by one thread of all
     * processes at a time, and written to the file before it is used: docs/cloud-drives.md. For CloudKit (cloudkit:) a file with `key_id`
     * and `private_key`, or `api_token` and `web_auth_token`. Empty: none.
     */
    llvs_bytes token_file;
    /**
     * Recipients: "age1...", 0 to 250; ASCII. NULL if there are none.
     *
     * If `passphrase` or `identities` are given, the place is encrypted (docs/encryption.md), they open it, and its layout is packed. The
     * first llvs_exchange_send with something to send encrypts an empty place, to the passphrase, the identities and these recipients; it
     * waits 10 seconds first. At a place that has keys, the recipients are ignored. With keys, an unencrypted place is refused. Without
     * keys, an encrypted place is refused (LLVS_ERROR_KEY_MISSING): nothing is ever sent unencrypted to a place that has keys. All keys are
     * read when the exchange is opened, held in memory that is wiped, and appear in no message and no log.
     */
    const llvs_bytes *recipients;
    size_t recipient_count;
    /** "AGE-SECRET-KEY-1...", 0 to 512; ASCII. NULL if there are none. */
    const llvs_bytes *identities;
    size_t identity_count;
    /** 1 to 1024 bytes, UTF-8 as it is given (normalise it before); empty: none. Opening needs 64 MiB of memory for a moment. */
    llvs_bytes passphrase;
    /** Instead of `token_file`: the host stores the tokens, and the library renews them there; may be NULL. */
    llvs_tokens_fn tokens;
    /** See "Callbacks" above; freed with the exchange, or when it cannot be opened. */
    void *tokens_payload;
    llvs_free_fn tokens_free;
    /**
     * For sftp: the path of the file with the user's private key. If the key has a passphrase, `password` is that. Empty: `password` is the
     * user's; if that is empty, too, the keys of the ssh-agent are offered.
     */
    llvs_bytes key_file;
    /** For sftp: the path of the file with the keys of hosts that are trusted; empty: ~/.ssh/known_hosts. Other hosts are refused. */
    llvs_bytes known_hosts;
    /**
     * The name of this device, for people who list the writers of a place in the packed layout (llvs_remote_writer): 1 to 128 bytes of
     * UTF-8 without control characters and direction marks. It is sent with the next send that has something to send. Every device that can
     * read the place can read it. Empty: none.
     */
    llvs_bytes device_name;
    /**
     * 1: the caller knows that no other implementation reads the place. 0: while the exchange is open, and the place has two files for each
     * version (LLVS_LAYOUT_INTERCHANGE, LLVS_LAYOUT_BRIDGED), a save is LLVS_ERROR_UNPORTABLE_ID if it would make another implementation
     * fail permanently: a new value id that needs more than 255 bytes in file names or contains a NUL, or metadata with two keys that
     * differ only in Unicode normalization (docs/interchange.md). Versions from elsewhere are sent nevertheless. A place of a
     * `host_transport` that transports versions, and one in memory, refuse nothing.
     */
    llvs_bool no_other_readers;
    uint32_t reserved;
} llvs_exchange_options;
#define LLVS_EXCHANGE_OPTIONS_INIT                                                                                                      \
    { (uint32_t)sizeof(llvs_exchange_options), 0, 0, 0, 0, 0, 0, 0, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT,      \
      LLVS_NONE_INIT, 0, 0, 0, 0, 0, LLVS_NONE_INIT, 0, 0, 0, 0, LLVS_NONE_INIT, 0, 0, 0, LLVS_NONE_INIT,              \
      LLVS_NONE_INIT, LLVS_NONE_INIT, 0, 0 }

/**
 * Opens an exchange with the place that a URL names, or through a transport of the host.
 * @param url      "file:///absolute/path": a shared folder (created if it does not exist); "memory:name": a place in this process, shared
 *                 by all exchanges with that name; "https+webdav://host/path/": a folder on a WebDAV server, created if it does not exist
 *                 ("http+webdav:" on this machine only); "s3://bucket/prefix?endpoint=https://host&region=eu-west-1&addressing=path":
 *                 objects of an S3-compatible service; without an endpoint Amazon's, without a region AWS_REGION, AWS_DEFAULT_REGION or
 *                 us-east-1; addressing is by default "path" with an endpoint, "virtual" without; "sftp://host/path/": a folder on an SSH
 *                 server, by a `user` and a `key_file`, a `password` or the ssh-agent, created if it does not exist ("sftp://host/~/path/":
 *                 below the user's own); "gdrive:///path/to/folder", "onedrive:///path/to/folder", "box:///path/to/folder",
 *                 "pcloud:///path/to/folder?region=eu": a folder of Google Drive, OneDrive, Box or pCloud, by a `token_file`, `tokens`, a
 *                 `token` or `credentials`, created if it does not exist (docs/cloud-drives.md);
 *                 "cloudkit://container/production/private?store=ID&zone=name": records of CloudKit, by a `token_file` or `tokens`. A query
 *                 of all except "memory:" may say layout=packed (many versions to a file, docs/sync.md) or layout=interchange (two files
 *                 for each, which other implementations read). If it does not, a folder is interchange; a server has the layout of its
 *                 contents, or packed if it is empty. UTF-8; %XX is a byte. No user and no password: these are options. Empty with a
 *                 `host_transport`
 * @param options  may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (not a URL, or a folder that is the store or is in it), LLVS_ERROR_UNSUPPORTED (scheme),
 * LLVS_ERROR_NOT_A_DIRECTORY, LLVS_ERROR_PERMISSION, LLVS_ERROR_READ_ONLY (a read-only medium), LLVS_ERROR_NO_SPACE, LLVS_ERROR_IO,
 * LLVS_ERROR_TOO_MANY_FILES, LLVS_ERROR_BUSY (a transport that serves another exchange), LLVS_ERROR_NOT_FOUND, LLVS_ERROR_TRANSPORT,
 * LLVS_ERROR_KEY_MISSING (an encrypted folder, without keys). Opening sends nothing to a server: the first exchange shows whether it can be
 * reached, and whether the keys fit: LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEY_MISSING, LLVS_ERROR_KEYS_FORKED (docs/encryption.md). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_open(LLVS_BORROWED llvs_store *store, llvs_bytes url,
    LLVS_BORROWED const llvs_exchange_options *options, LLVS_OWNED llvs_exchange **exchange, LLVS_OWNED llvs_error **error);
/** Returns the URL that the exchange was opened with; empty with a `host_transport`. Borrowed from the exchange. Since 0.1. */
LLVS_API llvs_bytes llvs_exchange_url(LLVS_BORROWED const llvs_exchange *exchange);
/** Ends the exchange and its observations; later calls return LLVS_ERROR_CLOSED. Closing again is LLVS_OK. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_close(LLVS_BORROWED llvs_exchange *exchange, LLVS_OWNED llvs_error **error);
/** Closes and releases the exchange. Since 0.1. */
LLVS_API void llvs_exchange_free(LLVS_OWNED llvs_exchange *exchange);

/** An item that could not be exchanged, and why. Only versions that depend on it were held back. Since 0.1. */
typedef struct llvs_problem {
    uint32_t struct_size;
    llvs_status code;
    /** The version id or file name. */
    llvs_bytes name;
    llvs_bytes message;
} llvs_problem;
/** The result of one of the exchanges of a coordinator. Since 0.1. */
typedef struct llvs_exchanged {
    uint32_t struct_size;
    uint32_t reserved;
    /** As passed to llvs_coordinator_attach: its URL or name. */
    llvs_bytes place;
    /** What it did, also if it failed in the end. */
    const struct llvs_exchange_result *result;
    /** The error that ended it; NULL if there was none. Borrowed from the result. */
    const llvs_error *error;
} llvs_exchanged;
/** What an exchange did; immutable, owned. Since 0.1. */
typedef struct llvs_exchange_result {
    uint32_t struct_size;
    /** Of a coordinator: whether the call moved the current version. */
    llvs_bool moved;
    /** The ids of the versions that were added to the store. */
    const llvs_bytes *retrieved;
    size_t retrieved_count;
    /** The ids of the versions that were sent. */
    const llvs_bytes *sent;
    size_t sent_count;
    /** The ids of the damaged versions that were repaired: see llvs_exchange_retrieve. */
    const llvs_bytes *repaired;
    size_t repaired_count;
    /** The items that could not be exchanged. */
    const llvs_problem *const *problems;
    size_t problem_count;
    /** Of a coordinator: the current version before the exchange and after it; else empty. */
    llvs_bytes from;
    llvs_bytes to;
    /** Of a coordinator: the result of each exchange that ran, in the order of attaching; else NULL. */
    const llvs_exchanged *const *exchanges;
    size_t exchange_count;
} llvs_exchange_result;
/** Releases the result. Since 0.1. */
LLVS_API void llvs_exchange_result_free(LLVS_OWNED llvs_exchange_result *result);

/**
 * Adds to the store the versions that the other side has and the store lacks. An item that cannot be added (damaged, incomplete, foreign)
 * is a problem in the result, not an error. May be interrupted and run again at any time.
 *
 * It also repairs. If reading through this store handle, or llvs_store_verify, found damage in versions, these are fetched as well, and
 * their damaged parts are written again. The undamaged parts of such a version must be the same at the other side: else there is a problem
 * (LLVS_ERROR_VERSION_MISMATCH), and the version is left unchanged. If something prevents a repair, such as a folder in place of a value's
 * file, or a file without read permission, there is a problem, too (LLVS_ERROR_DAMAGED).
 * @param control  progress and cancellation; may be NULL
 * @param result   may be NULL
 * Errors: LLVS_ERROR_TRANSPORT, LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback), storage
 * errors.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_retrieve(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Retrieves as llvs_exchange_retrieve does, and also fetches versions that the store already has, to compare them. A damaged file at the
 * other side is a problem in the result, and the next llvs_exchange_send of this exchange writes the two files of that version again. If
 * the files are undamaged, but the version differs from the store's, there is a problem with LLVS_ERROR_VERSION_MISMATCH: both stay
 * unchanged. Versions that are damaged in the store are repaired, as by llvs_exchange_retrieve, even if the damage was not found before.
 * Cost: reads everything that the other side has, and the same in the store. Parameters and errors: as llvs_exchange_retrieve. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_verify(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Sends the versions that the store has and the other side lacks. It also checks files of versions that both have, and writes them again if
 * one is missing, cut short or not the version that its name says. Each call checks the newest 500 such versions and 500 others in turn,
 * and reads only files that are new or changed since its last check. With a transport of the host it checks versions that entered the store
 * since the exchange was opened, and those that `unusable` returns. llvs_exchange_verify checks all. Parameters and errors: as
 * llvs_exchange_retrieve, and LLVS_ERROR_NO_SPACE. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_send(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);

/** The kind of a member: what opens the keys of an encrypted place. Since 0.1. */
typedef uint32_t llvs_member_kind;
enum llvs_member_kind_value {
    /** The passphrase. */
    LLVS_MEMBER_PASSPHRASE = 0,
    /** A key on paper. */
    LLVS_MEMBER_RECOVERY = 1,
    /** An identity that a device stores. */
    LLVS_MEMBER_DEVICE = 2,
    /** An identity that a program on a server stores. */
    LLVS_MEMBER_HOST = 3
};

/** A member: a holder of the keys of an encrypted place. Since 0.1. */
typedef struct llvs_member {
    uint32_t struct_size;
    llvs_member_kind kind;
    /** For people. */
    llvs_bytes name;
    /** The public half of its identity: "age1...". */
    llvs_bytes recipient;
    /** When it was added, for people: "2026-11-22T20:00:00Z". */
    llvs_bytes added;
} llvs_member;
/** Members. Since 0.1. */
typedef struct llvs_member_list {
    uint32_t struct_size;
    uint32_t reserved;
    const llvs_member *const *members;
    size_t member_count;
} llvs_member_list;
/** Since 0.1. */
LLVS_API void llvs_member_list_free(LLVS_OWNED llvs_member_list *list);

/**
 * Lists the members of the place of an exchange that was opened with keys.
 * Errors: LLVS_ERROR_UNSUPPORTED (opened without keys), LLVS_ERROR_KEY_MISSING (the place has none yet, or they are lost),
 * LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEYS_FORKED, and as llvs_exchange_retrieve. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_members(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_member_list **members, LLVS_OWNED llvs_error **error);
/**
 * Adds a member, who can read everything that was and will be written. LLVS_OK if it is a member already.
 * @param recipient  "age1..."; ASCII
 * @param name       for people; UTF-8, at most 256 bytes; may be empty
 * @param kind       for people; not LLVS_MEMBER_PASSPHRASE, which a place gets when it is made with a passphrase
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (not a recipient, or one that was removed), LLVS_ERROR_TOO_LARGE, and as llvs_exchange_members. Since
 * 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_add_member(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes recipient, llvs_bytes name,
    llvs_member_kind kind, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_error **error);
/**
 * Removes a member: it does not get the keys of anything that is written from now on. If it still reaches the place, it can read the
 * existing contents for ever: revoke its access to the place first. Other devices switch to the new keys with their next exchanges, within
 * 10 minutes. A former member cannot be added again: the device makes a new identity.
 * @param recipient  as llvs_exchange_members returns it
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (not a member, or the last one), and as llvs_exchange_members. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_remove_member(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes recipient,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_error **error);
/**
 * Sets another passphrase. The members and their keys stay; the file that the old passphrase opened is removed from the place. This
 * exchange continues with the new one. Exchanges that were opened with the old one get LLVS_ERROR_WRONG_KEY within 10 minutes: open them
 * again with the new one. If the call is interrupted, both may open the place: call it again.
 * @param passphrase  the new one; 1 to 1,024 bytes of UTF-8, copied into memory that is wiped
 * @param leaked      whether another person knows the old one, with which a copy of its file can still be opened. The member "passphrase"
 *                    gets another identity, and a new epoch begins, as by llvs_exchange_remove_member. A place without that member gets it.
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (not a passphrase; without `leaked`, the exchange was opened without the old one), and as
 * llvs_exchange_members. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_change_passphrase(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes passphrase,
    llvs_bool leaked, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_error **error);
/**
 * Returns the pairing of an encrypted place, with which its members make direct connections without pairing devices: LLVS_PAIRING_SIZE
 * bytes, derived from the newest keys, the same for all members. It changes when the keys are renewed (llvs_exchange_remove_member). It is
 * a secret. A device that has to connect while the place cannot be reached stores it as it stores a pairing, and calls this again after
 * each exchange.
 * @param read_anew  1: reads the keys from the place; 0: uses the keys that the exchange read last, without a request
 * @param pairing    owned by the caller, who wipes it
 * Errors: LLVS_ERROR_KEY_MISSING (also if no keys were read yet), and as llvs_exchange_members. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_pairing(LLVS_BORROWED llvs_exchange *exchange, llvs_bool read_anew,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_buffer *pairing, LLVS_OWNED llvs_error **error);
/**
 * Joins competing keys, which an exchange reports as a problem LLVS_ERROR_KEYS_FORKED. A new epoch begins, with the members of both sides
 * except those that one side removed. Check llvs_exchange_members first: all of them are trusted. Does nothing if no keys compete.
 * Errors: as llvs_exchange_members. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_join_keys(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_error **error);
/**
 * Sends the whole contents of the place again, encrypted with the newest keys, and removes the copies with older keys. Use it after a
 * device or a key was lost: the finder of it then cannot read anything any more. (What was read before remains readable.) It sends as many
 * bytes as the place contains. Later exchanges of this device delete the replaced files, packs after a day, large values after one more;
 * other devices continue meanwhile. If it is interrupted, the full listing that exchanges make each day continues it; or call it again.
 * @param renew  whether to make new keys first, which only the present members get. Not needed after llvs_exchange_remove_member, nor after
 *               llvs_exchange_change_passphrase with `leaked`
 * @param left   receives how many packs with older keys remain: those that will be deleted, and those that this device cannot read. May be
 *               NULL
 * Errors: as llvs_exchange_members, and llvs_exchange_send. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_rekey(LLVS_BORROWED llvs_exchange *exchange, llvs_bool renew,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED uint64_t *left, LLVS_OWNED llvs_error **error);
/**
 * Retires this device as a writer of a place in the packed layout: sends what is left, and announces that it is done. The other devices
 * then merge its packs at once, instead of after 30 days. Nothing is removed from the store. If the device sends again later, it does so as
 * a new writer.
 * @param result  as llvs_exchange_send returns it; may be NULL
 * Errors: LLVS_ERROR_UNSUPPORTED (a place without packs), and as llvs_exchange_send. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_retire(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Announces to the other devices that the place has moved, after sending what is left. From then on their exchanges with the old place have
 * the problem LLVS_ERROR_PLACE_MOVED, with the address as its path. Nothing else changes, and nothing is removed.
 * @param address  the new address, for people and programs: UTF-8, 1 to 1,024 bytes, no control characters. No secrets: every device that
 *                 reads the place can read it
 * @param result   as llvs_exchange_send returns it; may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED (a place without packs), and as llvs_exchange_send. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_announce_move(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes address,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/** A writer of a place in the packed layout. Since 0.1. */
typedef struct llvs_remote_writer {
    uint32_t struct_size;
    /** The number of its newest pack. */
    uint32_t number;
    /**
     * The random number that identifies a writer at the place, in 13 characters. A device that lost its memory of the place gets another
     * one.
     */
    llvs_bytes id;
    /** When this device last saw a new pack of that writer, in seconds since 1970-01-01 UTC; 0 for this device. */
    double last_seen;
    /** 1: it is this device. */
    llvs_bool here;
    uint32_t reserved;
    /** The name that it gave itself (`device_name` of llvs_exchange_options); empty: none. */
    llvs_bytes name;
} llvs_remote_writer;
/** What this device knows about a place in the packed layout, as of its last exchange there; immutable. Since 0.1. */
typedef struct llvs_remote {
    uint32_t struct_size;
    /** LLVS_LAYOUT_PACKED or LLVS_LAYOUT_BRIDGED. */
    llvs_layout layout;
    /** The number of the newest keys; 0: it is not encrypted. */
    uint32_t epoch;
    uint32_t reserved;
    /**
     * Six words that identify the newest packs of all writers, for people to compare: if two devices have read the same packs, they have
     * the same words. Empty if there are no packs.
     */
    llvs_bytes fingerprint;
    /** How many packs there were at the last full listing, and their bytes, without large values. */
    uint64_t packs;
    uint64_t bytes;
    /** When that was, in seconds since 1970-01-01 UTC; 0: not yet. */
    double listed;
    /** All writers whose newest pack is there, in order of their ids. */
    const llvs_remote_writer *const *writers;
    size_t writer_count;
} llvs_remote;
/** Releases the struct, with all that it points to. Since 0.1. */
LLVS_API void llvs_remote_free(LLVS_OWNED llvs_remote *remote);
/**
 * Returns what this device knows about the place, as of the last exchange of its store there. Sends no requests.
 * @param remote  NULL if there was no exchange, or the place has no packs; released with llvs_remote_free
 * Errors: LLVS_ERROR_CLOSED, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_remote(LLVS_BORROWED llvs_exchange *exchange, LLVS_OWNED llvs_remote **remote,
    LLVS_OWNED llvs_error **error);
/**
 * Makes a random identity of age, for a device to store, or as a recovery key to write on paper.
 * @param identity   the secret half, "AGE-SECRET-KEY-1..."; owned by the caller, who wipes it
 * @param recipient  the public half, "age1..."
 * Errors: LLVS_ERROR_UNSUPPORTED (there is no libcrypto). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_identity_create(LLVS_OWNED llvs_buffer *identity, LLVS_OWNED llvs_buffer *recipient,
    LLVS_OWNED llvs_error **error);

/**
 * The keys of an encrypted stream of packs. It is a file of age (https://age-encryption.org/v1), which the tool of that name can make and
 * open (docs/encryption.md). If all fields are zero, the stream is not encrypted. Identities and passphrases are read during the call, held
 * in memory that is wiped, and appear in no message. Needs libcrypto of OpenSSL 3 on the machine. Since 0.1.
 */
typedef struct llvs_pack_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** For writing: the recipients that can open it, "age1...", 1 to 512; ASCII. NULL if there are none. */
    const llvs_bytes *recipients;
    size_t recipient_count;
    /** For reading: identities, of which one opens it, "AGE-SECRET-KEY-1...", 1 to 512; ASCII. NULL if there are none. */
    const llvs_bytes *identities;
    size_t identity_count;
    /** Instead of these, for both: 1 to 1024 bytes, UTF-8 as it is given (normalise it before). Needs 64 MiB of memory for a moment. */
    llvs_bytes passphrase;
} llvs_pack_options;
#define LLVS_PACK_OPTIONS_INIT { (uint32_t)sizeof(llvs_pack_options), 0, 0, 0, 0, 0, LLVS_NONE_INIT }

/**
 * Writes the versions that another store lacks as one stream of bytes. The host carries it there by any means: a socket, a file, an e-mail.
 * llvs_store_read_pack reads it. The stream has an end mark, so a truncated one is detected. Its format: docs/pack-format.md.
 * @param have        ids of versions that the other store has, with all their ancestors: its heads. Ids that are not in this store are
 *                    ignored; none: all versions are written. A malformed id is LLVS_ERROR_INVALID_VERSION_ID
 * @param have_count  how many there are; `have` may be NULL if it is 0
 * @param options     the keys that encrypt it: `recipients`, or `passphrase`; NULL: it is not encrypted. LLVS_ERROR_INVALID_ARGUMENT if
 *                    both are given, or `identities`, or a malformed recipient
 * @param write       called with the bytes from front to back, in pieces of any size, on this thread, with no lock held
 * @param payload     for `write`
 * @param control     progress (LLVS_STAGE_SENDING, in versions) and cancellation; may be NULL
 * @param result      the versions written (`sent`) and those that could not be read or are too large (`problems`), which hold back their
 *                    descendants; may be NULL
 * If the call fails, discard what was written.
 * Errors: LLVS_ERROR_USER and others from `write`, LLVS_ERROR_CANCELLED, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_ARGUMENT,
 * LLVS_ERROR_UNSUPPORTED (there is no libcrypto to encrypt with), storage errors. Cost: reads what it writes; with storages other than the
 * file storage, reads values of more than 1 MiB twice. About one pack of at most 16 MiB is in memory. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_write_pack(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_bytes *have,
    size_t have_count, LLVS_BORROWED const llvs_pack_options *options, llvs_write_fn write, LLVS_BORROWED void *payload,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Adds the versions of a stream that llvs_store_write_pack wrote. Versions that the store has are skipped; those that are damaged in the
 * store are repaired. Each version is added whole or not at all. If the call fails, the versions added before stay: the same stream may be
 * read again. Bytes after the end of the stream are not read; of an encrypted stream, all bytes up to LLVS_END are.
 * @param options  the keys that open it: `identities`, or `passphrase`; then it must be encrypted. NULL: it is not
 * @param read     supplies the bytes from front to back, on this thread, with no lock held; LLVS_END: there are no more
 * @param payload  for `read`
 * @param control  progress (LLVS_STAGE_RECEIVING, LLVS_STAGE_ADDING) and cancellation; may be NULL
 * @param result   the versions added (`retrieved`) and repaired (`repaired`), and those that could not be added (`problems`): damaged, made
 *                 by a newer library (LLVS_ERROR_NEWER_FORMAT), or with predecessors that are neither in the store nor in the stream
 *                 (LLVS_ERROR_MISSING_PREDECESSOR). May be NULL
 * Errors: LLVS_ERROR_FOREIGN_FILE (the bytes are not such a stream), LLVS_ERROR_CUT_SHORT, LLVS_ERROR_DAMAGED (it differs from what was
 * written), LLVS_ERROR_IDENTIFIER_MISMATCH (it contains a part of another stream), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_NEWER_FORMAT,
 * LLVS_ERROR_WRONG_KEY (it is encrypted for others, or no keys were given to open it), LLVS_ERROR_UNSUPPORTED (there is no libcrypto to
 * open it with), LLVS_ERROR_USER and others from `read`, LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_READ_ONLY, LLVS_ERROR_CANCELLED, storage
 * errors. Cost: at most one pack of 16 MiB, and about as much of its contents, is in memory; if the storage has no files for large values
 * (`llvs_storage_kind`: all except files), these as well. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_read_pack(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_pack_options *options,
    llvs_read_fn read, LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result,
    LLVS_OWNED llvs_error **error);

/**
 * Registers a callback for new versions at the other side: called soon after it may have gained some. Several may cause one call; retrieve
 * to get them. Versions that this exchange sent itself cause no call; a transport of the host is trusted in that.
 * Errors: LLVS_ERROR_UNSUPPORTED if the transport cannot report changes, LLVS_ERROR_IO. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_observe(LLVS_BORROWED llvs_exchange *exchange, llvs_notify_fn fn, LLVS_OWNED void *payload,
    llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);
/** Returns the state that the exchange needs in a later process, to pass to the exchange there; opaque; may be 0 bytes. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_restoration_state(LLVS_BORROWED llvs_exchange *exchange, LLVS_OWNED llvs_buffer *state,
    LLVS_OWNED llvs_error **error);
/**
 * Restores that state. Unusable state is ignored, at the cost of a full listing. The three bytes "new" make the exchange forget which place
 * its store knows at this address: the next call joins the place that is there now, permanently. Use that after LLVS_ERROR_NOT_FOUND, if a
 * place was emptied and should be filled again, or if the place of another store should be merged with this one. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_set_restoration_state(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes state,
    LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Snapshots and import
 * ------------------------------------------------------------------------------------------------ */

/** The manifest of a snapshot; immutable, owned. Since 0.1. */
typedef struct llvs_snapshot {
    uint32_t struct_size;
    uint32_t chunk_count;
    llvs_bytes id;
    llvs_bytes format;
    llvs_bytes latest_version;
    /** Seconds since 1970-01-01 UTC. */
    double created_at;
    uint64_t version_count;
    /** Bytes of all chunks. */
    uint64_t total_size;
    /**
     * Of a restored snapshot: versions that do not match their content ids (LLVS_ERROR_CONTENT_MISMATCH), and their descendants. These were
     * not added; an exchange brings the genuine ones. Up to 10,000 one by one, then one entry that says how many more.
     */
    const llvs_problem *const *problems;
    size_t problem_count;
} llvs_snapshot;
/** Releases the manifest; the snapshot itself stays. Since 0.1. */
LLVS_API void llvs_snapshot_free(LLVS_OWNED llvs_snapshot *snapshot);

/**
 * Writes a snapshot of the whole store to the place of the exchange, replacing an older one that this library wrote. (An exchange with a
 * file: URL writes it into the folder, which need not be shared: chunks of at most 5 MB in snapshots/llvs-v1/, and last manifest.json.)
 * @param control    progress and cancellation; may be NULL
 * @param snapshot   its manifest; may be NULL
 * Errors: LLVS_ERROR_TRANSPORT, LLVS_ERROR_UNSUPPORTED, LLVS_ERROR_PERMISSION, LLVS_ERROR_NO_SPACE, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER,
 * storage errors. Cost: the size of the store. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_put_snapshot(LLVS_BORROWED llvs_exchange *exchange,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_snapshot **snapshot, LLVS_OWNED llvs_error **error);
/**
 * Restores the snapshot at the place into a store that is empty, holds one version, or holds a part of this snapshot. The whole snapshot is
 * verified first: if it is refused, the store is unchanged. A version that does not match its content id is skipped, with its descendants,
 * and reported in `problems`. If a restore is cancelled or fails while it adds, the versions added so far stay; restoring again, or an
 * exchange, brings the rest.
 * @param control    progress and cancellation; may be NULL
 * @param snapshot   its manifest, and the skipped versions; may be NULL
 * Errors: LLVS_ERROR_SNAPSHOT_MISSING, LLVS_ERROR_SNAPSHOT_DAMAGED, LLVS_ERROR_FOREIGN_SNAPSHOT, LLVS_ERROR_STORE_NOT_EMPTY,
 * LLVS_ERROR_TRANSPORT, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_restore_snapshot(LLVS_BORROWED llvs_exchange *exchange,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_snapshot **snapshot, LLVS_OWNED llvs_error **error);
/**
 * Returns the manifest of the snapshot at the place, of any format; NULL if there is none. Errors: LLVS_ERROR_SNAPSHOT_DAMAGED,
 * LLVS_ERROR_TRANSPORT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_snapshot(LLVS_BORROWED llvs_exchange *exchange, LLVS_OWNED llvs_snapshot **snapshot,
    LLVS_OWNED llvs_error **error);
/** How to import a store. Since 0.1. */
typedef struct llvs_import_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** For compressed values; NULL: such values are problems with LLVS_ERROR_UNSUPPORTED. */
    llvs_decode_fn decode;
    /** See "Callbacks" above; freed when the call returns. */
    void *decode_payload;
    llvs_free_fn decode_free;
} llvs_import_options;
#define LLVS_IMPORT_OPTIONS_INIT { (uint32_t)sizeof(llvs_import_options), 0, 0, 0, 0 }

/**
 * Adds the versions of a store directory of another implementation of this design, whose values are in files or in SQLite databases. The
 * directory is only read. Its databases are copied first, into a folder beside the store, else in TMPDIR (/tmp), which is deleted before
 * the call returns; they may be open in other programs, but not in this process.
 * @param directory  UTF-8, without NUL
 * @param options    may be NULL
 * @param control    progress and cancellation; may be NULL
 * @param result     the versions added (`retrieved`), and problems; may be NULL
 * Errors: LLVS_ERROR_NOT_FOUND, LLVS_ERROR_NOT_A_DIRECTORY, LLVS_ERROR_NOT_A_STORE, LLVS_ERROR_UNSUPPORTED
 * (one SQLite database of another form), LLVS_ERROR_BUSY (a database is open in this process, written to all the time, or another
 * program holds a lease on it), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_import(LLVS_BORROWED llvs_store *store, llvs_bytes directory,
                                                    LLVS_BORROWED const llvs_import_options *options,
                                                    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result,
                                                    LLVS_OWNED llvs_error **error);

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
     * empty: "main". Two processes that use one store need a name each. A name that is already open on the store is LLVS_ERROR_BUSY, also
     * if another process holds it, or a child made by _Fork or clone (a child made by fork does not hold it). With a storage of the host
     * this is detected only within one handle of the store: the host must keep two handles on one storage, and two processes, apart.
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
 * Errors: those of llvs_store_open, LLVS_ERROR_INVALID_METADATA.
 * Since 0.1.
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
 * Records changes on top of the current version, which moves to the new one. With a branch in the options, it records them on top of the
 * most recent head of that branch (of the current version if the branch has none yet); then the current version moves only if it was that
 * head. Concurrent saves are made one on top of the other. If other heads have the same state as the current version, a save may first make
 * versions that join them, at most one for each such head, and save on the last.
 * @param changes, change_count, change_size  as for llvs_store_make_version
 * @param options  branch, metadata, expected version, whether it merges, and time; its id must be empty; may be NULL
 * @param id       receives the new version; size 0 if nothing was stored (no metadata, and no changes except removals of absent values);
 *                 may be NULL
 * @param version  receives a list of the one version, NULL if nothing was stored; may be NULL
 * @param move     how the current version moved: to the new version, or to a merge of it; may be NULL
 * Errors: as llvs_store_make_version; LLVS_ERROR_MOVED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_save(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_change *changes, size_t change_count, size_t change_size, LLVS_BORROWED const llvs_version_options *options,
    LLVS_BORROWED llvs_version_id *id, LLVS_OWNED llvs_version_list **version, LLVS_BORROWED llvs_move *move,
    LLVS_OWNED llvs_error **error);
/**
 * Returns the value that prevails at the current version. For everything else, read from the store (llvs_coordinator_store), at the current
 * version or any other. Parameters and errors: as llvs_store_value. Since 0.1.
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
 * Errors: as llvs_store_schema (for the given rules) and llvs_store_make_version; nothing is stored or remembered then. Since 0.1.
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
 * also in another process. If the save was merged with changes of others, and theirs prevail, the result has no version either, but a
 * version without changes records the undo, and becomes current, so that the save does not return if the others undo theirs. If this
 * device and another one made the same change, it stays until both have undone it.
 *
 * With a version in the options it reverts that version, by whatever device. If that version is an undo of this device, the undone save is
 * restored, and is the next one to be undone.
 * @param only_tell  1: nothing is stored; `versions` and `description` of the result say what would be undone
 * @param options    version, parent, metadata and control; may be NULL
 * @param move       how the current version moved; may be NULL
 * @param result     the values that were undone and those that were not; NULL if there is nothing to undo; may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (the coordinator has no device, and no version is given), LLVS_ERROR_UNKNOWN_VERSION,
 * LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER,
 * storage errors. Nothing is stored then. Cost: the versions since that save, and what it changed. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_undo(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bool only_tell,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_BORROWED llvs_move *move, LLVS_OWNED llvs_revert_result **result,
    LLVS_OWNED llvs_error **error);
/**
 * Reverts the last undo of this device, if it saved nothing since. `versions` of the result is that undo. Parameters and errors: as
 * llvs_coordinator_undo. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_redo(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bool only_tell,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_BORROWED llvs_move *move, LLVS_OWNED llvs_revert_result **result,
    LLVS_OWNED llvs_error **error);
/**
 * Attaches an exchange.
 * @param place    a URL as for llvs_exchange_open, under which the exchange's state is stored; with a `host_transport` a name for its
 *                 state, 1 to 40 of [a-z0-9._-], the same in every process
 * @param options  may be NULL
 * Errors: as llvs_exchange_open; LLVS_ERROR_INVALID_ARGUMENT also for a name that is attached already. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_attach(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes place,
    LLVS_BORROWED const llvs_exchange_options *options, LLVS_OWNED llvs_error **error);
/**
 * Retrieves, then sends, with each attached exchange in turn; exchanges that failed to reach their place last time come last. The current
 * version does not move, except that a retrieve before the first save moves it from the empty root to the most recent head without a
 * branch.
 *
 * If one of several exchanges fails, the others run nevertheless. The call then ends with the first failure, and the result has the work of
 * all exchanges together and of each (`exchanges`). So there is a result, which the caller releases, also with an error, except with
 * LLVS_ERROR_BUSY, LLVS_ERROR_CLOSED and errors in the arguments. Parameters and errors: as llvs_exchange_retrieve. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_exchange(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Merges heads into the current version, which moves to the result. If it moved, exchange again: other devices that get the result need not
 * make the same merge, and all converge soon (docs/convergence.md).
 * @param options  selection and metadata; may be NULL
 * @param move     how the current version moved; may be NULL
 * Errors: as llvs_store_merge. Since 0.1.
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
    /** What all exchanges did before the merge. */
    const llvs_exchange_result *before;
    /** What they did after it; NULL if the merge changed nothing and there was nothing to pass on. */
    const llvs_exchange_result *after;
    /** Whether the merge moved the current version. */
    llvs_bool merged;
    uint32_t reserved;
} llvs_sync_result;
/** Releases the result, with what it points to. Since 0.1. */
LLVS_API void llvs_sync_result_free(LLVS_OWNED llvs_sync_result *result);
/**
 * Syncs: exchanges (llvs_coordinator_exchange), merges what arrived (llvs_coordinator_merge), and exchanges again if the merge changed
 * something, so that others get the merge without waiting for the next sync.
 * @param options  selection, metadata, and progress and cancellation of all parts; may be NULL
 * @param result   may be NULL. There is one also with an error, as from llvs_coordinator_exchange: without a connection, versions that are
 *                 in the store are merged nevertheless, and the call ends with the first failure of a part.
 * Errors: as llvs_coordinator_exchange and llvs_coordinator_merge. Since 0.1.
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
 * Registers a callback for new versions at the places of all exchanges that are attached now; exchanges that cannot report changes are
 * skipped. As llvs_exchange_observe. Since 0.1.
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
 * Errors: as llvs_exchange_restore_snapshot (except LLVS_ERROR_SNAPSHOT_MISSING). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_bootstrap(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED llvs_bool *restored, LLVS_BORROWED llvs_move *move,
    LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Finding values
 * ------------------------------------------------------------------------------------------------ */

/**
 * An index: finds values by keys that are computed from their contents, in sorted order. It works at any version, in every branch: a query
 * names a version and is answered for that version. The library builds the index at the first query at a version, from the nearest version
 * that has it and the values that differ. It is cached in memory within the store's budget, and on disk, in the store's caches, for one
 * version. An index keeps its store alive. Safe from all threads. Since 0.1.
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
 *              keeps nothing that it built, and returns LLVS_ERROR_USER with the error in `error` (by llvs_error_make; optional)
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
 * @param keys, payload, payload_free  see "Callbacks" above
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
    /** Not below; empty: no bound. */
    llvs_bytes low;
    /** Not above; empty: no bound. */
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
    /** Seconds to wait while others write to the database; 0: 5. */
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
 * Errors: as llvs_projection_status. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_projection_problems(LLVS_BORROWED llvs_projection *projection, uint64_t after,
    LLVS_OWNED llvs_buffer *json, LLVS_OWNED llvs_error **error);
/**
 * Closes the database and releases the projection. Waits for a running update; an update on the library's thread is cancelled. If called
 * from within its own progress callback, the database is closed after that call has ended. NULL is a no-op. Since 0.1.
 */
LLVS_API void llvs_projection_free(LLVS_OWNED llvs_projection *projection);

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
    /** It has ended: its coordinator was closed. */
    LLVS_SYNC_OFF = 0,
    /** It waits for the next round, or for something to do. */
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
     * This device or the place is full. Nothing is sent for an hour, or until triggered. Versions of others are received as usual, if this
     * device has space.
     */
    LLVS_SYNC_REASON_NO_SPACE = 6,
    /** The other side was written by a newer version of this library. */
    LLVS_SYNC_REASON_UPDATE_APP = 7,
    /** The host paused the syncer. */
    LLVS_SYNC_REASON_PAUSED = 8,
    /** The place is encrypted, and the passphrase or the identities do not open it (no retry until triggered), or are missing. */
    LLVS_SYNC_REASON_PASSPHRASE = 9,
    /** A place in the packed layout was emptied, or a place belongs to another store: restore it, or join it (docs/exchanges.md). */
    LLVS_SYNC_REASON_REMOTE_RESET = 10,
    /**
     * Another process exchanges with the place for this store. That is not a failure. The place is tried again in the next round; if there
     * are saves to send, after 10 seconds (`after_saves`).
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
    /** The same. */
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
    /** The number of consecutive rounds that failed there. */
    uint64_t failures;
    /** When the next timed retry is due, in seconds since 1970-01-01 UTC; 0: no failure, or only a person can resolve it. */
    double retry_at;
    /** When the last exchange without a failure ended, in seconds since 1970-01-01 UTC; 0: never. */
    double last_success;
    /** Why the last round failed there; NULL if it did not. Borrowed from the status. */
    const llvs_error *error;
    /** Items that could not be received or sent in the last round. */
    const llvs_problem *const *problems;
    size_t problem_count;
    /** The HTTP status of the request that failed in the last round; 0: no response, or no failure. */
    uint32_t http_status;
    /** 1: the next two fields are valid; 0: unknown until a round there has ended without a failure. */
    llvs_bool knows_pending;
    /** Versions of the store that were not sent yet (may include some that a round sent before it failed). */
    uint64_t pending_versions;
    /** Bytes of the values that these versions stored, uncompressed. */
    uint64_t pending_bytes;
    /** When the last retrieve, and the last send, without a failure ended, in seconds since 1970-01-01 UTC; 0: never. */
    double last_retrieve;
    double last_send;
    /** Requests of the last round, and the bytes sent and received; 0 if they are not counted. */
    uint64_t requests;
    uint64_t bytes_up;
    uint64_t bytes_down;
    /** The same for all rounds since the start of the day (UTC), or of the syncer. */
    uint64_t requests_today;
    uint64_t bytes_up_today;
    uint64_t bytes_down_today;
    /**
     * For a place in the packed layout: what this device knows about it, as of the last exchange; NULL: nothing, or another layout.
     * Borrowed from the status.
     */
    const llvs_remote *remote;
    /** 1: a person has to act before syncing continues there; `reason` says why. */
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
     * While packs are retrieved from or sent to a place: bytes transferred so far, and in total. Each part of a round begins again at 0,
     * and within it neither decreases. Received bytes are bytes of files, and a large value counts once the pack that names it has arrived;
     * sent bytes are bytes of values. 0 if they are not counted.
     */
    uint64_t bytes_done;
    uint64_t bytes_total;
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
 * @param payload, payload_free  see "Callbacks" above
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
 * Errors: as llvs_syncer_trigger. Since 0.1.
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
 * Ends the syncer. A running round is cancelled; its completed parts stay. Waits until no event callback runs any more, except from within
 * a callback, as llvs_observer_free does; hold no lock that the callback takes. NULL is a no-op. Since 0.1.
 */
LLVS_API void llvs_syncer_free(LLVS_OWNED llvs_syncer *syncer);

/* ------------------------------------------------------------------------------------------------
 * Direct connections
 * ------------------------------------------------------------------------------------------------ */

/** Bytes of a pairing: the secret that all devices of a store share for direct connections. */
#define LLVS_PAIRING_SIZE 48
/** Bytes of a device key, of either half. */
#define LLVS_DEVICE_KEY_SIZE 32
/** The first bytes of a connection: enough for llvs_pairing_matches to find out which store it is for. */
#define LLVS_PEER_BEGINNING 66

/**
 * One end of a direct connection between two stores (docs/live-protocol.md). The host carries the bytes between the two ends, over TCP, a
 * WebSocket, Bluetooth, or anything else. Both stores receive the versions that they lack, and then each new save of the other, as long as
 * the connection lasts. All bytes are encrypted, and only devices with the pairing are admitted. Needs libcrypto of OpenSSL 3.
 *
 *     after each llvs_peer_receive, llvs_peer_store_changed, llvs_peer_tick and llvs_peer_close:
 *         while (llvs_peer_send(peer, buffer, sizeof buffer, &size, &error) == LLVS_OK && size > 0) write(connection, buffer, size);
 *
 * Safe from all threads; the calls of one peer wait for each other. Must not be called from within callbacks of its store. Since 0.1.
 */
typedef struct llvs_peer llvs_peer;
/** The phase of a direct connection. Since 0.1. */
typedef uint32_t llvs_peer_phase;
enum llvs_peer_phase_value {
    /** The other side is not yet identified. */
    LLVS_PEER_CONNECTING = 0,
    /** The sides find out what each lacks. */
    LLVS_PEER_NEGOTIATING = 1,
    /** Versions are being transferred. */
    LLVS_PEER_EXCHANGING = 2,
    /** Each side has all versions of the other. */
    LLVS_PEER_IN_STEP = 3,
    /** The connection has ended: both sides said goodbye, or it failed. */
    LLVS_PEER_ENDED = 4
};

/**
 * Called before bytes of the other side are requested or stored, so that a host can limit the disk space that a peer uses.
 * @param bytes  how many more bytes, at most
 *
 *   thread     the one that calls the peer; a thread of the library if the library carries the connection
 *   re-entry   may call the library, but neither the peer nor its store
 *   result     LLVS_OK; all else: the bytes are not stored, and the connection ends with LLVS_ERROR_USER (LLVS_ERROR_NO_SPACE if that was
 *              returned) and the error in `error`. Since 0.1.
 */
typedef llvs_status (*llvs_quota_fn)(LLVS_BORROWED void *payload, uint64_t bytes, LLVS_OWNED llvs_error **error);

/** How to open an end of a direct connection. Since 0.1. */
typedef struct llvs_peer_options {
    uint32_t struct_size;
    /** 1: this side made the connection, and begins. */
    llvs_bool initiator;
    /** LLVS_PAIRING_SIZE bytes, the same on both sides; empty: this side gets it through `invitation`. */
    llvs_bytes pairing;
    /**
     * The secret half of this device's key, LLVS_DEVICE_KEY_SIZE bytes; empty: a new key for this connection only. Then others do not
     * recognise the device, and each connection begins by comparing what both have.
     */
    llvs_bytes identity;
    /** The name of this device, which is sent to the other side; UTF-8, at most 255 bytes; may be empty. */
    llvs_bytes device;
    /**
     * The public halves of the device keys that are accepted; NULL and 0: all devices that have the pairing. A device that gets the pairing
     * through an invitation or by comparing digits is accepted as well, for that connection and, at a listener, for later ones.
     */
    const llvs_bytes *accepted;
    size_t accepted_count;
    /**
     * The code of an invitation, used for this connection instead of the pairing; empty: the pairing is used. The side that has a pairing
     * sends it to the other one, which has none. See llvs_invitation_make.
     */
    llvs_bytes invitation;
    /**
     * 1: neither is used: people compare the digits of llvs_peer_state on both sides, and each side confirms with llvs_peer_confirm. Then
     * the side that has a `pairing` sends it to the other one, which has none.
     */
    llvs_bool compares_digits;
    uint32_t reserved;
    /** Limits the bytes that are stored; may be NULL. */
    llvs_quota_fn quota;
    /** See "Callbacks" above; freed with the peer, or when it cannot be opened. */
    void *quota_payload;
    llvs_free_fn quota_free;
    /**
     * Instead of `pairing`: an exchange with an encrypted place. The pairing is derived from the newest keys that the exchange has read
     * (llvs_exchange_pairing). When the exchange reads newer keys, the connection ends with LLVS_ERROR_WRONG_KEY, since the other device
     * may have been removed. Not with `invitation` and `compares_digits`; LLVS_ERROR_KEY_MISSING if the exchange has read no keys yet. Used
     * during the call only; the peer keeps what it needs. NULL: `pairing` is used.
     */
    llvs_exchange *exchange;
    /**
     * The address of the other side, such as "192.0.2.7", for a host that carries the bytes and accepts all devices with the pairing. It
     * limits how much of the store one address may have compared, whatever device keys it uses. Empty, or with `accepted`: no limit.
     * Connections that the library carries do not need it.
     */
    llvs_bytes place;
    /**
     * For a host that carries the bytes within TLS: the channel binding of that TLS connection (RFC 9266: "EXPORTER-Channel-Binding", 32
     * bytes), 16 to 255 bytes that only its two ends know. If it is given, the other side must give the same. Otherwise an attacker between
     * the two holds two TLS connections, and this connection ends with LLVS_ERROR_WRONG_KEY. Empty: the outer connection is not checked;
     * all bytes are encrypted from end to end in any case.
     */
    llvs_bytes outer;
} llvs_peer_options;
#define LLVS_PEER_OPTIONS_INIT \
    { (uint32_t)sizeof(llvs_peer_options), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, 0, 0, LLVS_NONE_INIT, 0, 0, 0, 0, 0, 0, \
      LLVS_NONE_INIT, LLVS_NONE_INIT }

/** The state of a direct connection. Since 0.1. */
typedef struct llvs_peer_state {
    uint32_t struct_size;
    llvs_peer_phase phase;
    /** The name that the other side gave itself; empty before it is known. */
    llvs_bytes device;
    /** The public half of its device key; empty before it is known. */
    llvs_bytes key;
    /** Versions that were sent, and versions that were received and added to the store. */
    uint64_t sent;
    uint64_t received;
    /** Versions that could not be sent or received since the last call for the state; their descendants wait for them. */
    const llvs_problem *const *problems;
    size_t problem_count;
    /**
     * The pairing that this side received through an invitation; store it as a secret for all further connections. Empty before it has
     * arrived, and if there is none to receive.
     */
    llvs_bytes pairing;
    /** With `compares_digits`: six digits for people to compare; empty before they are known. */
    llvs_bytes digits;
} llvs_peer_state;
/** Releases the state, with all that it points to. Since 0.1. */
LLVS_API void llvs_peer_state_free(LLVS_OWNED llvs_peer_state *state);

/** Makes a random pairing for a store, on one of its devices; give the bytes to the others, in secret. Errors: LLVS_ERROR_IO. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_pairing_make(LLVS_OWNED llvs_buffer *pairing, LLVS_OWNED llvs_error **error);
/**
 * Makes the random code of an invitation: 26 digits and letters, which people pass to a device that has no pairing yet, as text, a link or
 * a QR code. Both sides pass it in llvs_peer_options.invitation; the side that has the pairing sends it over the connection. An invitation
 * is valid for one connection. The program that made it should discard it after some minutes.
 * Errors: LLVS_ERROR_IO. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_invitation_make(LLVS_OWNED llvs_buffer *code, LLVS_OWNED llvs_error **error);
/**
 * Checks whether a connection was made with a pairing or an invitation, for hosts that listen for several stores.
 * @param pairing    LLVS_PAIRING_SIZE bytes, or the code of an invitation; empty: checks whether people compare digits
 * @param beginning  the first LLVS_PEER_BEGINNING bytes received; pass them to llvs_peer_receive as well
 * @param matches    0 or 1; if no pairing matches, close the connection without sending a byte
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED (there is no libcrypto). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_pairing_matches(llvs_bytes pairing, llvs_bytes beginning, LLVS_BORROWED llvs_bool *matches,
    LLVS_OWNED llvs_error **error);
/**
 * Returns the public half of a device key, by which other devices accept this one.
 * @param identity  the secret half: LLVS_DEVICE_KEY_SIZE random bytes
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_device_key(llvs_bytes identity, LLVS_OWNED llvs_buffer *key, LLVS_OWNED llvs_error **error);

/**
 * Opens an end of a direct connection, without sending anything yet. It keeps the store open.
 * @param options  copied; secrets are held in memory that is wiped
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_READ_ONLY, LLVS_ERROR_CLOSED, LLVS_ERROR_UNSUPPORTED (there is no libcrypto).
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_open(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_peer_options *options,
    LLVS_OWNED llvs_peer **peer, LLVS_OWNED llvs_error **error);
/**
 * Passes received bytes to the peer, in pieces of any size; it stores the versions that are complete. Errors end the connection. Stored
 * versions stay, and the bytes that llvs_peer_send returns then tell the other side. LLVS_ERROR_WRONG_KEY (the other side is not paired, or
 * does not accept this device), LLVS_ERROR_DAMAGED and LLVS_ERROR_TOO_LARGE (the other side broke a rule or a limit, or its bytes were
 * changed on the way; the message says which), LLVS_ERROR_NEWER_FORMAT, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_receive(LLVS_BORROWED llvs_peer *peer, llvs_bytes data, LLVS_OWNED llvs_error **error);
/**
 * Tells the peer that the connection delivers no more bytes.
 * Errors: LLVS_ERROR_WRONG_KEY if the other side closed the connection before it identified itself, as it does for unknown devices: the
 * message says what to do. LLVS_ERROR_CUT_SHORT if it had not said goodbye. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_receive_end(LLVS_BORROWED llvs_peer *peer, LLVS_OWNED llvs_error **error);
/**
 * Returns the next bytes to send.
 * @param buffer    filled from its start
 * @param capacity  its size
 * @param size      how many bytes were filled; 0: nothing to send, until bytes are received or versions saved
 * Errors: storage errors, which end the connection. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_send(LLVS_BORROWED llvs_peer *peer, LLVS_BORROWED void *buffer, size_t capacity,
    LLVS_BORROWED size_t *size, LLVS_OWNED llvs_error **error);
/** Checks the store for new versions to send: call this when the store reports some. Errors: storage errors. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_store_changed(LLVS_BORROWED llvs_peer *peer, LLVS_OWNED llvs_error **error);
/**
 * Tells the peer the time; call it every few seconds. If the other side is silent, it is sent a request after 30 seconds, and the
 * connection ends after 90; after 10 if it has not identified itself.
 * @param seconds  of any monotonic clock
 * Errors: LLVS_ERROR_CUT_SHORT, LLVS_ERROR_INVALID_ARGUMENT if it is not finite. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_tick(LLVS_BORROWED llvs_peer *peer, double seconds, LLVS_OWNED llvs_error **error);
/**
 * Confirms that the person on this side sees the same digits on both (`digits` of llvs_peer_state). After both sides have confirmed, the
 * side without a pairing receives it. If the digits differ, close the connection.
 * Errors: LLVS_ERROR_INVALID_ARGUMENT if there are no digits (yet). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_confirm(LLVS_BORROWED llvs_peer *peer, LLVS_OWNED llvs_error **error);
/**
 * Sets whether the program is in the background. In the background the peer says goodbye, at an llvs_peer_tick, if no version was
 * transferred for 20 minutes.
 * Errors: LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_set_background(LLVS_BORROWED llvs_peer *peer, llvs_bool is_in_background,
    LLVS_OWNED llvs_error **error);
/**
 * Says goodbye after everything has been sent and stored; the connection ends when the other side has said goodbye, too. Errors: storage
 * errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_close(LLVS_BORROWED llvs_peer *peer, LLVS_OWNED llvs_error **error);
/** Returns the state; release it with llvs_peer_state_free. Errors: LLVS_ERROR_OUT_OF_MEMORY. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_get_state(LLVS_BORROWED llvs_peer *peer, LLVS_OWNED llvs_peer_state **state,
    LLVS_OWNED llvs_error **error);
/** Releases the peer. If it has not ended, the connection is cut for the other side. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_peer_free(LLVS_OWNED llvs_peer *peer);

/**
 * Connects a store to the one that a listener offers at an address, and keeps both in sync, on a thread of the library, until the peer is
 * closed or freed, or the connection is cut. Each save on either side is sent to the other at once. The library carries the bytes:
 * llvs_peer_receive, llvs_peer_send and llvs_peer_tick refuse.
 * @param options  `initiator` is assumed to be 1
 * @param address  "host:port", "[host]:port", or "unix:" and a path
 * @param seconds  timeout for connecting
 * Errors: LLVS_ERROR_TRANSPORT (no listener at the address), LLVS_ERROR_IO, and those of llvs_peer_open. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_connect(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_peer_options *options,
    llvs_bytes address, double seconds, LLVS_OWNED llvs_peer **peer, LLVS_OWNED llvs_error **error);
/**
 * Lets the library carry an end over a connected socket of the host, as llvs_peer_connect does.
 * @param peer        no bytes of it were carried yet
 * @param descriptor  belongs to the library from then on, which closes it, also if this call fails
 * Errors: LLVS_ERROR_INVALID_ARGUMENT if the peer is carried already, LLVS_ERROR_IO, LLVS_ERROR_CLOSED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_carry(LLVS_BORROWED llvs_peer *peer, int32_t descriptor, LLVS_OWNED llvs_error **error);
/**
 * Waits until both stores are in sync, including all that this store has now, or the connection has ended. For peers that the library
 * carries.
 * @param seconds  how long at most
 * @param in_step  whether the stores are in sync
 * Errors: why the connection ended, as of llvs_peer_receive; LLVS_ERROR_WRONG_KEY if the other side does not know the pairing or the
 * invitation, or does not accept this device; LLVS_ERROR_CUT_SHORT, LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_wait(LLVS_BORROWED llvs_peer *peer, double seconds, LLVS_BORROWED llvs_bool *in_step,
    LLVS_OWNED llvs_error **error);

/**
 * Offers stores to direct connections, each to the devices that have its pairing, and keeps them in sync, on threads of the library. A
 * device without the pairing gets no response. At most 32 connections at once may be unidentified, each for 10 seconds. Connections from an
 * address that failed five times within a minute are ignored. Safe from all threads. Since 0.1.
 */
typedef struct llvs_listener llvs_listener;
/**
 * Listens at an address.
 * @param address  as for llvs_peer_connect; port 0 lets the system choose one. A Unix socket is accessible to its owner only
 * @param options  this side: identity, device, accepted, quota; the other fields stay empty
 * Errors: LLVS_ERROR_TRANSPORT (the address is in use, or not one of this machine), LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_IO. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_open(llvs_bytes address, LLVS_BORROWED const llvs_peer_options *options,
    LLVS_OWNED llvs_listener **listener, LLVS_OWNED llvs_error **error);
/**
 * Offers a store, also in addition to others; the listener keeps it open.
 * @param pairing  LLVS_PAIRING_SIZE bytes; replaces a store that was offered with the same pairing
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_READ_ONLY, LLVS_ERROR_CLOSED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_offer(LLVS_BORROWED llvs_listener *listener, LLVS_BORROWED llvs_store *store,
    llvs_bytes pairing, LLVS_OWNED llvs_error **error);
/**
 * Offers a store to the members of an encrypted place, who need no other pairing. They need the newest keys that the exchange has read
 * (each exchange reads them, at most every 10 minutes). A device that has only former keys gets no response: it must exchange with the
 * place first. When newer keys are read, connections made with former ones end. There are no invitations to such a store.
 * @param store     kept open; the exchange may belong to another handle
 * @param exchange  used during the call only; the listener keeps what it needs
 * Errors: LLVS_ERROR_UNSUPPORTED (opened without keys), LLVS_ERROR_KEY_MISSING (it has read no keys yet: call llvs_exchange_pairing),
 * LLVS_ERROR_READ_ONLY, LLVS_ERROR_CLOSED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_offer_members(LLVS_BORROWED llvs_listener *listener, LLVS_BORROWED llvs_store *store,
    LLVS_BORROWED llvs_exchange *exchange, LLVS_OWNED llvs_error **error);
/**
 * Returns the address at which it listens, with the port that the system chose: pass it to llvs_peer_connect on other devices. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_address(LLVS_BORROWED llvs_listener *listener, LLVS_OWNED llvs_buffer *address,
    LLVS_OWNED llvs_error **error);
/**
 * Makes the code of an invitation to a store, as llvs_invitation_make does: a device that connects with it receives the store's pairing. It
 * is valid for one device. If the connection of that device is cut before it is certain that it has the pairing, it may try again, with the
 * same `identity`.
 * @param pairing  of a store that is offered
 * @param seconds  how long it is valid
 * Errors: LLVS_ERROR_NOT_FOUND (no store is offered with that pairing), LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_IO. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_invite(LLVS_BORROWED llvs_listener *listener, llvs_bytes pairing, double seconds,
    LLVS_OWNED llvs_buffer *code, LLVS_OWNED llvs_error **error);
/**
 * Admits one device after people have compared digits. llvs_listener_accept returns its peer, whose state has the digits; llvs_peer_confirm
 * confirms that they are the same.
 * @param pairing  of a store that is offered
 * @param seconds  how long to wait for the device
 * Errors: LLVS_ERROR_NOT_FOUND, LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_BUSY if the listener is waiting for another device. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_compare(LLVS_BORROWED llvs_listener *listener, llvs_bytes pairing, double seconds,
    LLVS_OWNED llvs_error **error);
/**
 * Returns the next connection that was not returned yet, so that the host can read its state. Connections work whether or not the host
 * calls this.
 * @param seconds  how long to wait
 * @param peer     NULL if there was none. Freeing it ends the connection.
 * Errors: LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_accept(LLVS_BORROWED llvs_listener *listener, double seconds,
    LLVS_OWNED llvs_peer **peer, LLVS_OWNED llvs_error **error);
/**
 * Stops listening, says goodbye on all connections, waits at most 10 seconds for the other sides to do so, and releases the listener. NULL
 * is a no-op. Since 0.1.
 */
LLVS_API void llvs_listener_free(LLVS_OWNED llvs_listener *listener);

/** An event about devices on the local network. Since 0.1. */
typedef uint32_t llvs_nearby_event;
enum llvs_nearby_event_value {
    /** A device of that name listens at an address: one event for each of its addresses. */
    LLVS_NEARBY_FOUND = 0,
    /** The device of that name does not listen any more. */
    LLVS_NEARBY_GONE = 1,
    /** This device now has that name, since another device has its former name; no address. */
    LLVS_NEARBY_NAMED = 2
};
/**
 * Called for a device on the local network. Since 0.1.
 *   thread     one of the library's threads, which waits for the callback; one call at a time
 *   re-entry   may call the library, also to free its own observer
 *   pointers   live for the callback only. Both are UTF-8. The name is untrusted: its device chose it. The address is numeric; if it is
 *              valid on one interface only, `%` and the interface follow
 *   result     none
 */
typedef void (*llvs_nearby_fn)(LLVS_BORROWED void *payload, llvs_nearby_event event, LLVS_BORROWED const llvs_bytes *name,
    LLVS_BORROWED const llvs_bytes *address, uint32_t port);
/**
 * Finds devices on the local network that offer stores to direct connections, and announces this one, by DNS-SD (RFC 6763) through the
 * Avahi daemon. A found device may be any device: the pairing decides which devices are admitted. Every device on the network sees the
 * names, but not which stores there are. After a restart of the daemon, announcing and searching continue. Without the daemon, a program
 * has to find devices in another way; a direct connection works over any stream of bytes.
 * @param name  the announced name of this device, at most 63 bytes of UTF-8; empty: the host's name. If another device has it, a number is
 *              added
 * @param port  the port at which this device listens; 0: it is not announced
 * @param fn, payload, payload_free  see "Callbacks" above; not called for this program's own announcement
 * @param observer  ends both when freed
 * Errors: LLVS_ERROR_UNSUPPORTED (Avahi is not installed, or its daemon does not run), LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_nearby_observe(llvs_bytes name, uint32_t port, llvs_nearby_fn fn, LLVS_OWNED void *payload,
    llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);

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
 *              @param payload, payload_free  see "Callbacks" above; freed when the file has been read, or is not needed
 *              Errors: LLVS_ERROR_INVALID_ARGUMENT for an index without a question. Since 0.1.
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
 *   result     LLVS_OK; all else: the call behind this callback fails with LLVS_ERROR_USER and the error in `error` (by llvs_error_make;
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
 * @param payload, payload_free  see "Callbacks" above
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
 *   result     LLVS_OK; all else: the exchange ends with LLVS_ERROR_USER and the error in `error` (by llvs_error_make; optional);
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
 * @param payload, payload_free  see "Callbacks" above
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
 *   result     LLVS_OK; all else: the exchange ends with LLVS_ERROR_USER and the error in `error` (by llvs_error_make; optional);
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
 * @param payload, payload_free  see "Callbacks" above
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (no name, a callback is missing), LLVS_ERROR_INVALID_UTF8. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_transport_create_on_files(llvs_bytes name, LLVS_BORROWED const llvs_files_callbacks *callbacks,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_transport **transport, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Layouts: no hidden padding, the same everywhere
 * ------------------------------------------------------------------------------------------------ */

/* For the headers of this library only. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define LLVS_LAYOUT(type, size) static_assert(sizeof(type) == (size), "the layout of " #type)
#elif defined(__GNUC__) && !defined(__cplusplus)
#define LLVS_LAYOUT(type, size) __extension__ _Static_assert(sizeof(type) == (size), "the layout of " #type)
#else
#define LLVS_LAYOUT(type, size) struct llvs_no_check
#endif
LLVS_LAYOUT(llvs_bytes, 16);
LLVS_LAYOUT(llvs_buffer, 16);
LLVS_LAYOUT(llvs_version_id, 136);
LLVS_LAYOUT(llvs_progress, 24);
LLVS_LAYOUT(llvs_control, 32);
LLVS_LAYOUT(llvs_pack_options, 56);
LLVS_LAYOUT(llvs_peer_options, 160);
LLVS_LAYOUT(llvs_peer_state, 104);
LLVS_LAYOUT(llvs_metadata_entry, 32);
LLVS_LAYOUT(llvs_change, 56);
LLVS_LAYOUT(llvs_version_info, 120);
LLVS_LAYOUT(llvs_value_info, 56);
LLVS_LAYOUT(llvs_version_list, 24);
LLVS_LAYOUT(llvs_value_list, 24);
LLVS_LAYOUT(llvs_value_block, 96);
LLVS_LAYOUT(llvs_change_info, 64);
LLVS_LAYOUT(llvs_change_list, 24);
LLVS_LAYOUT(llvs_store_options, 96);
LLVS_LAYOUT(llvs_statistics, 104);
LLVS_LAYOUT(llvs_damage, 96);
LLVS_LAYOUT(llvs_verify_report, 80);
LLVS_LAYOUT(llvs_salvaged, 40);
LLVS_LAYOUT(llvs_salvage_report, 56);
LLVS_LAYOUT(llvs_compaction_report, 64);
LLVS_LAYOUT(llvs_value_source, 40);
LLVS_LAYOUT(llvs_version_options, 104);
LLVS_LAYOUT(llvs_history_options, 88);
LLVS_LAYOUT(llvs_heads_options, 40);
LLVS_LAYOUT(llvs_range, 112);
LLVS_LAYOUT(llvs_fork, 96);
LLVS_LAYOUT(llvs_merge, 72);
LLVS_LAYOUT(llvs_merge_options, 72);
LLVS_LAYOUT(llvs_conflict, 152);
LLVS_LAYOUT(llvs_merged_value, 56);
LLVS_LAYOUT(llvs_merge_values_options, 32);
LLVS_LAYOUT(llvs_exchange_options, 304);
LLVS_LAYOUT(llvs_problem, 40);
LLVS_LAYOUT(llvs_member, 56);
LLVS_LAYOUT(llvs_member_list, 24);
LLVS_LAYOUT(llvs_import_options, 32);
LLVS_LAYOUT(llvs_schema, 96);
LLVS_LAYOUT(llvs_conflict_list, 40);
LLVS_LAYOUT(llvs_conflict_options, 40);
LLVS_LAYOUT(llvs_value_question, 88);
LLVS_LAYOUT(llvs_revert_result, 96);
LLVS_LAYOUT(llvs_exchange_result, 120);
LLVS_LAYOUT(llvs_exchanged, 40);
LLVS_LAYOUT(llvs_move, 280);
LLVS_LAYOUT(llvs_sync_result, 64);
LLVS_LAYOUT(llvs_remote_writer, 56);
LLVS_LAYOUT(llvs_remote, 72);
LLVS_LAYOUT(llvs_sync_place, 192);
LLVS_LAYOUT(llvs_sync_status, 112);
LLVS_LAYOUT(llvs_syncer_options, 32);
LLVS_LAYOUT(llvs_snapshot, 96);
LLVS_LAYOUT(llvs_coordinator_options, 72);
LLVS_LAYOUT(llvs_index_options, 48);
LLVS_LAYOUT(llvs_computed_index_options, 56);
LLVS_LAYOUT(llvs_index_question, 128);
LLVS_LAYOUT(llvs_index_page, 96);
LLVS_LAYOUT(llvs_projection_options, 24);
LLVS_LAYOUT(llvs_storage_callbacks, 72);
LLVS_LAYOUT(llvs_exchange_files, 56);
LLVS_LAYOUT(llvs_transport_callbacks, 96);
LLVS_LAYOUT(llvs_files_callbacks, 48);

#ifdef __cplusplus
}
#endif

#endif

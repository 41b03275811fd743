/*
 * llvs.h - a versioned key-value store, "git for app data": the C interface of libllvs.
 *
 * This header is the contract and its comments are the reference: what is not here is not published. (llvs_testing.h
 * belongs to it: faults, and suites for storages and transports of your own.)
 * It is C99 and C++, includes nothing but standard headers, and serves 64-bit platforms.
 *
 *     llvs_coordinator *notes;
 *     llvs_buffer text;
 *     llvs_error *error;
 *     llvs_change change = LLVS_CHANGE_INIT;
 *     change.kind = LLVS_CHANGE_UPDATE;
 *     change.id = llvs_str("note/1");
 *     change.data = llvs_str("hello");
 *     // A coordinator goes on where it was: a program that runs again saves on top of its last version.
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
 * llvs_coordinator is the short way: a store, the version that the program is at, exchanges with other devices, and merging. llvs_store
 * is all that lies below: each call names the versions that it is about.
 *
 * CAVEATS, FIRST
 *
 *  - A store handle does not survive fork(): in the child every call but a free gives LLVS_ERROR_FORKED. So does the call from whose
 *    callback the process was forked, when the callback returns in the child.
 *    Open the store again there. SQLite itself does not survive it: while a store in SQLite is open in a process (or is just being
 *    opened, salvaged or imported), its children can open no store in SQLite: they get LLVS_ERROR_FORKED, too. Close all of them before
 *    the fork, or exec a program.
 *    When a callback of an observer calls fork(), the child has that one thread only. Its process ends, with status 0, when the callback
 *    returns there.
 *    The name of a coordinator stays with the parent at fork(). After _Fork or clone the child holds the name as well, until
 *    the parent closes the coordinator, or both processes have ended.
 *  - Signals: each observer has a thread, in which all signals are blocked but those of faults (SIGSEGV, SIGBUS, ...). A program that
 *    a callback starts there inherits that. Where the limit on the size of files (RLIMIT_FSIZE) is reached, a call gives
 *    LLVS_ERROR_NO_SPACE, and no SIGXFSZ is sent; what SQLite writes does send it: ignore or block that signal with SQLite storage
 *    and with projections.
 *  - The caches of a store (cache/ in its directory) may be deleted while the store is closed. The notes that lie beside them keep where
 *    coordinators are: without its note a coordinator begins at the newest head. At places in the packed layout the device goes on as a new
 *    one. While the store is open cache/ must stay: others could open a coordinator under a name that is in use.
 *  - Freeing a handle must not race another call on the same handle, and no handle may be used after
 *    its free. llvs_store_close is the safe way to end work that other threads may still be doing.
 *  - Value ids are compared by their bytes. "e" with a combining accent and the composed letter are two ids.
 *  - A file store on a network file system, and an SQLite store anywhere but on a local disk, must be
 *    used from one host only.
 *
 * CONVENTIONS
 *
 * Status. Every call that can fail returns llvs_status, LLVS_OK (0) or a negative code whose number is
 * pinned for ever, and takes last an `llvs_error **error`. That may be NULL, and what it points to need
 * not be initialised: it is NULL after success, and after a failure an error that the caller releases
 * with llvs_error_free. Unless said otherwise other outputs are set to NULL or zero when a call fails.
 * A value that is absent is no failure: LLVS_OK with a NULL (or empty) result. A version that is not there is one:
 * LLVS_ERROR_UNKNOWN_VERSION. Compilers warn where a status is not looked at.
 *
 * Errors that any call may give are not repeated with each:
 *   LLVS_ERROR_INVALID_ARGUMENT  a NULL where none is allowed, a NULL with a size, an unknown constant,
 *                                a reserved field that is not zero
 *   LLVS_ERROR_STRUCT_SIZE       a struct_size (or element size) that is too small, or has unknown bytes that are not zero
 *   LLVS_ERROR_TOO_LARGE         a size beyond the limits, SIZE_MAX included
 *   LLVS_ERROR_CLOSED            the store, exchange or coordinator behind the handle has been closed
 *   LLVS_ERROR_FORKED            the handle was made by a parent of this process; or a parent had a store in SQLite open at the fork,
 *                                and SQLite is asked for
 *   LLVS_ERROR_OUT_OF_MEMORY     nothing was changed; what long work had added whole before stays. Large memory, whose size follows from
 *                                data or arguments, is asked for, and this error is given when there is none. For small objects the
 *                                library keeps 4 MiB in reserve. When memory runs out it first drops caches, then uses the reserve, and
 *                                from then on all calls but those that close and release give this error, until the reserve is whole
 *                                again. Two cases remain in which the process ends: threads together use up the reserve before they
 *                                notice (likely only where an address space is limited and full, since the allocator may then take a
 *                                page for each small object), and a stack has to grow and there is no memory for it.
 *   LLVS_ERROR_INTERNAL          a mistake of the library; please report it
 * "Storage errors", where a call says so, are:
 *   LLVS_ERROR_IO, LLVS_ERROR_PERMISSION, LLVS_ERROR_NO_SPACE, LLVS_ERROR_DAMAGED, LLVS_ERROR_BUSY,
 *   LLVS_ERROR_READ_ONLY, LLVS_ERROR_TOO_MANY_FILES, LLVS_ERROR_UNKNOWN_OUTCOME; and LLVS_ERROR_USER from a storage of the host.
 *
 * Ownership. Every pointer parameter carries a tag.
 *   LLVS_OWNED     ownership crosses: an output (`**`, or a struct that the library fills with owned
 *                  memory) belongs to the caller after success and is released with the `_free` of its
 *                  type (`_dispose` for structs); the argument of a `_free` or `_dispose`, and the payload
 *                  of a callback, belong to the library from then on.
 *   LLVS_BORROWED  stays whose it was; used for the length of the call only, or as the comment says.
 * A plain returned pointer is borrowed from the object it was asked of and lives as long as that.
 * `_free` takes NULL. Any order of release is legal, also an exchange or a cursor after its store:
 * children keep alive what they need.
 *
 * Bytes. In: llvs_bytes, borrowed for the call; NULL with size 0 is empty. Text is UTF-8 with a length
 * (value ids may hold NUL); llvs_str("...") takes a C string. Out: llvs_buffer, owned. All bytes that
 * the library hands out, in structs and lists as well, are followed by one NUL that is not counted.
 * Where an argument is optional, LLVS_NONE (empty) means "not given".
 *
 * Flags are llvs_bool, 0 or 1, in structs, parameters and results alike; anything else is LLVS_ERROR_INVALID_ARGUMENT.
 * Constants are enums; what holds one is an integer of a fixed size that is named as the enum is, without `_value`.
 *
 * Structs. Options begin with `struct_size`, which is sizeof the struct as the caller was compiled; fields
 * are only ever appended, and the sizes that earlier headers had stay valid. Each has an `_INIT` macro, and llvs_struct_init does
 * the same for all: every other field is zero, and zero always means the default. An array of input structs is given with the size of one.
 * Lists, reports and results are structs, too. The library makes them, the caller reads their fields, and a `_free` releases them with all
 * that they point to. They hold arrays of pointers to structs, `list->items[i]->id`, with a NULL behind the last, since these structs may
 * grow. The structs of one array lie one behind the other, `items[0]->struct_size` bytes apart. llvs_bytes,
 * llvs_buffer, llvs_version_id and llvs_metadata_entry never grow. There is no hidden padding; `reserved` must be zero.
 *
 * Callbacks. Registered ones are given as `fn, payload, payload_free`. payload_free (may be NULL) runs
 * exactly once, on whichever thread lets go last, also when the registering call fails. Callbacks get
 * structs by pointer. A callback with a status returns LLVS_OK, or what its comment names; every other number, also
 * a positive one, means that it failed, and makes the call fail. It may put an error into its `error`: one made by llvs_error_make, which
 * the call gives with its user_code, or one that another call of the library gave, which the call gives as it is. The code of the first
 * kind, and of a failure without an error, is the callback's status where its comment says that this keeps its code, else LLVS_ERROR_USER.
 * (An error that is set beside LLVS_OK is released, and means nothing.)
 * Callbacks must return: no longjmp, no exception of C++ out of one (llvs.hpp catches what its callbacks throw). After one that did not
 * return, other threads wait or get LLVS_ERROR_BUSY until the same thread calls the library again. That call releases the locks. It does
 * not repair the rest: memory is lost, a payload may never be freed, the interrupted work is done or not, and a store whose storage was
 * storing a version is LLVS_ERROR_CLOSED. On the stack of a coroutine nothing is released.
 *
 * Threads. Handles may be used from any number of threads at once: llvs_store, llvs_exchange, llvs_coordinator, llvs_syncer, llvs_peer,
 * llvs_listener, llvs_index, llvs_projection, llvs_value_reader, llvs_observer, llvs_arbiter, llvs_storage, llvs_transport and
 * llvs_cancel_token (two exchanges over one handle wait for each other, and so do two calls of one peer or reader).
 * Cursors, llvs_history_cursor and llvs_change_cursor, belong to one thread at a time. Lists, results, reports and errors are immutable and
 * may be read from any thread. No call keeps state in the thread. A thread that calls the library, or that the library calls back on, needs
 * 64 KiB of stack, and what the callbacks themselves use.
 *
 * Descriptors. Those of the library are 3 or higher, and closed when the process executes another program. Where the host has closed 0, 1
 * or 2, standard input, output and error, the library opens these on /dev/null, to be read, before it opens anything that can be written
 * to, and leaves them so: what the host prints never gets into a file or a connection of the library. The host may put something else in
 * their place (dup2) at any time, but must not close them while another thread is in a call.
 *
 * Systems. Linux on x86-64. The library needs the glibc that it was built with or a later one, and at least 2.35; nothing of Swift need be
 * installed.
 *
 * Long work takes an llvs_control: a progress callback that can cancel, and a cancel token that any thread may
 * set; both are looked at at least every 100 ms or MiB, within one statement of SQLite's that writes (the index of a table of a projection,
 * say) the token alone. LLVS_ERROR_CANCELLED: what was added whole is kept, nothing partial is.
 *
 * Accessors that return no status only read memory: they cannot fail, take NULL (and then answer NULL, 0 or
 * empty), and work in a forked child as well.
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

/** The compiler warns when the result of a function with this mark is not looked at. */
#if defined(__GNUC__) || defined(__clang__)
#define LLVS_CHECKED __attribute__((warn_unused_result))
#else
#define LLVS_CHECKED
#endif

/*
 * The ownership tags; see "Ownership" above. Programs that read this header through Clang find them as annotations.
 * LLVS_OWNED: ownership crosses with this parameter. LLVS_BORROWED: what it points to stays whose it was.
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
/** As llvs_version_number() gives it: major * 65536 + minor * 256 + patch. Since 0.1. */
#define LLVS_VERSION_NUMBER (LLVS_VERSION_MAJOR * 65536 + LLVS_VERSION_MINOR * 256 + LLVS_VERSION_PATCH)

/** The version of the library that is loaded, to be compared with LLVS_VERSION_NUMBER. Any thread. Since 0.1. */
LLVS_API uint32_t llvs_version_number(void);
/** The same as text, "0.1.0". Static. Since 0.1. */
LLVS_API const char *llvs_version_string(void);

/** Yes or no: 1 or 0. Since 0.1. */
typedef uint32_t llvs_bool;

/** LLVS_OK, a positive answer of a callback, or a negative error code: one of llvs_status_value. Since 0.1. */
typedef int32_t llvs_status;

/* The codes. Their numbers are pinned for ever; new ones may be added. Since 0.1. */
enum llvs_status_value {
    LLVS_OK = 0,
    /** From an arbiter's callback: the fallback shall decide what has no change yet. */
    LLVS_PASS = 1,
    /** From an llvs_read_fn: there is nothing more to read. */
    LLVS_END = 2,

    /* What the caller handed in. */

    /** A NULL, an unknown constant, a reserved field that is not zero, a URL that is none. */
    LLVS_ERROR_INVALID_ARGUMENT = -1,
    /** A value id is empty or longer than LLVS_VALUE_ID_SIZE_MAX. */
    LLVS_ERROR_INVALID_VALUE_ID = -2,
    /** A version id is not 1 to 128 of [A-Za-z0-9_-]. When made here, also one that differs from a known one by case only, and one that has
     * the form of those that are computed from what versions hold and is not this one's. */
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
    /** Another version with this id is there already. */
    LLVS_ERROR_VERSION_MISMATCH = -10,
    /** A change of the kind LLVS_CHANGE_PRESERVE, which takes over bytes of an ancestor, names what no ancestor stored. */
    LLVS_ERROR_INVALID_REFERENCE = -11,
    /** A metadata key is empty, too long or not UTF-8, __llvs_branch holds no JSON string or a name of more than 1024 bytes, there are
        more than 65,536 keys, or all together is over 16 MiB. */
    LLVS_ERROR_INVALID_METADATA = -12,
    /** Not possible here: a URL scheme that is not built in, an observation of a transport that cannot tell. */
    LLVS_ERROR_UNSUPPORTED = -13,

    /* Where the store rests. */

    /** No such file or directory; or that of an open store is gone: deleted, moved, or replaced by another. */
    LLVS_ERROR_NOT_FOUND = -20,
    /** Something else is there than a store. */
    LLVS_ERROR_NOT_A_STORE = -21,
    /** The store was written by a newer library; update this one. */
    LLVS_ERROR_NEWER_FORMAT = -22,
    /** The store was opened for reading only. */
    LLVS_ERROR_READ_ONLY = -23,
    /** The system does not let us. */
    LLVS_ERROR_PERMISSION = -24,
    /** The disk or a quota is full. */
    LLVS_ERROR_NO_SPACE = -25,
    /** A file is where a directory should be. */
    LLVS_ERROR_NOT_A_DIRECTORY = -26,
    /** The medium failed. */
    LLVS_ERROR_IO = -27,
    /** Bytes are not what was written. */
    LLVS_ERROR_DAMAGED = -28,
    /** A sync failed after the write: the version (llvs_error_version_id) may or may not be there after a
        power cut. Making it again under its id is harmless. */
    LLVS_ERROR_UNKNOWN_OUTCOME = -29,
    /**
     * Another process or handle holds it: a store in SQLite for longer than `busy_timeout` of llvs_store_options (10 s unless said
     * otherwise); all else is told at once.
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
    /** Another version is current than the one that a save expected; nothing was stored. */
    LLVS_ERROR_MOVED = -52,

    /* Exchanges and snapshots; most appear as problems in a result, not as errors of a call. */

    /** The other side cannot be reached or does not answer as it should. */
    LLVS_ERROR_TRANSPORT = -60,
    LLVS_ERROR_MISSING_CHANGES = -61,
    LLVS_ERROR_MISSING_PREDECESSOR = -62,
    /** A file is no JSON, or says something else than a file of its kind. One that merely ends too early is LLVS_ERROR_CUT_SHORT. */
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
    /** A file that is none of ours. */
    LLVS_ERROR_FOREIGN_FILE = -71,
    /** A file is empty or ends too early: it is still on its way, or was cut short. */
    LLVS_ERROR_CUT_SHORT = -72,
    /** A value id, or metadata, that another implementation cannot hold. As a problem: the version was sent all the same. As the error of a
     * save: nothing was saved. See `report_unportable` and `no_other_readers` of llvs_exchange_options. */
    LLVS_ERROR_UNPORTABLE_ID = -73,
    /**
     * A version is not what its id says: ids in the form of a UUID of version 8 are computed from what versions hold, and are in capitals.
     * Nothing of it was taken; the genuine version of that id is, when it comes.
     */
    LLVS_ERROR_CONTENT_MISMATCH = -74,

    /* Encryption. */

    /**
     * A passphrase or identity is another one than that for which something was encrypted; or the other side of a direct connection does
     * not know a pairing or an invitation, or does not accept this device. Nothing was changed.
     */
    LLVS_ERROR_WRONG_KEY = -75,
    /** The keys of what is encrypted are not there, or not yet. */
    LLVS_ERROR_KEY_MISSING = -76,
    /** Keys were renewed twice, by two that did not know of each other, or somebody forged them: look at them, then join them. */
    LLVS_ERROR_KEYS_FORKED = -77,

    /* Of a place in packs: problems of an exchange, which goes on (docs/pack-format.md, section 7). */

    /** The place shows less than it did: it was set back to an older state, or emptied and filled anew. What is missing is sent again. */
    LLVS_ERROR_ROLLED_BACK = -78,
    /** Two rows of packs of one device go on beside each other: its store was copied, or the place shows two states. */
    LLVS_ERROR_WRITER_FORKED = -79,
    /** The place does not show what another device has seen there more than an hour ago. */
    LLVS_ERROR_WITHHELD = -80,
    /** A device says that the place goes on elsewhere: the error's path is the address (llvs_exchange_announce_move). */
    LLVS_ERROR_PLACE_MOVED = -81,

    /**
     * The clock of a device is far ahead of this one's: a problem of what met it first, told once for each device while a store is open.
     * Its versions were taken all the same, and count as made when they came (`made_at`); what is changed there counts as newer than what
     * others change (docs/convergence.md).
     */
    LLVS_ERROR_CLOCK_AHEAD = -82
};

/** The name of a code, "LLVS_ERROR_IO"; "LLVS_ERROR_UNKNOWN" for a number that is none. Static. Since 0.1. */
LLVS_API const char *llvs_status_name(llvs_status status);

/**
 * Makes a struct that begins with `struct_size` what its `_INIT` macro makes it, for callers who see no macros: that field is set, and
 * all others are zero.
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
 * Bytes that belong to somebody else. As an argument: read during the call only. In a struct that the
 * library hands out: lives as long as the object it is borrowed from. Since 0.1.
 */
typedef struct llvs_bytes {
    const uint8_t *data;
    size_t size;
} llvs_bytes;

/** Bytes that the holder owns; llvs_buffer_dispose releases them. Since 0.1. */
typedef struct llvs_buffer {
    /** Followed by a NUL that is not counted. NULL when there is nothing (which is not the same as 0 bytes). */
    uint8_t *data;
    size_t size;
} llvs_buffer;

/** A version id, held by value. Since 0.1. */
typedef struct llvs_version_id {
    /** Characters in `text`, 1 to 128; 0 when there is no version. */
    uint32_t size;
    /** ASCII, then NULs to the end. */
    char text[132];
} llvs_version_id;

/** Releases the bytes and makes the buffer empty. Nothing happens when it is empty, or NULL. Any thread. Since 0.1. */
LLVS_API void llvs_buffer_dispose(LLVS_OWNED llvs_buffer *buffer);

/** The bytes of a C string; NULL gives LLVS_NONE. */
static inline llvs_bytes llvs_str(LLVS_BORROWED const char *text) {
    llvs_bytes bytes;
    bytes.data = (const uint8_t *)text;
    bytes.size = text ? strlen(text) : 0;
    return bytes;
}
/** `size` bytes at `data`. */
static inline llvs_bytes llvs_bytes_make(LLVS_BORROWED const void *data, size_t size) {
    llvs_bytes bytes;
    bytes.data = (const uint8_t *)data;
    bytes.size = size;
    return bytes;
}
/** The id as an argument; borrowed from `id`. */
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
 * What went wrong: a code for programs, a message for people, and what it was about. Immutable. Messages
 * name ids and paths, never the bytes of values. Since 0.1.
 */
typedef struct llvs_error llvs_error;

/** The code; what the call returned. LLVS_OK for NULL. Since 0.1. */
LLVS_API llvs_status llvs_error_code(LLVS_BORROWED const llvs_error *error);
/**
 * What was being done to what, and what can be done about it; UTF-8, "" for NULL. One line: control characters, separators of lines and
 * marks of direction that are in an id or a path are written out (`\n`, `\x1B`, `\u{202E}`), here and in the messages of reports,
 * problems and the log. Borrowed from the error. Since 0.1.
 */
LLVS_API const char *llvs_error_message(LLVS_BORROWED const llvs_error *error);
/** The value id concerned; empty when there is none. Borrowed from the error. Since 0.1. */
LLVS_API llvs_bytes llvs_error_value_id(LLVS_BORROWED const llvs_error *error);
/** The version id concerned, also one that is unacceptable; empty when there is none. Borrowed from the error. Since 0.1. */
LLVS_API llvs_bytes llvs_error_version_id(LLVS_BORROWED const llvs_error *error);
/**
 * The file or directory concerned; of rules that are not valid the JSON pointer to what is wrong with them. Empty when there is none.
 * Borrowed from the error. Since 0.1.
 */
LLVS_API llvs_bytes llvs_error_path(LLVS_BORROWED const llvs_error *error);
/** The system's own number (`errno`) for why a call of it failed, where one did and is known; else 0. Since 0.1. */
LLVS_API int32_t llvs_error_system_code(LLVS_BORROWED const llvs_error *error);
/** The number that a callback of the host gave to llvs_error_make; else 0. Since 0.1. */
LLVS_API int64_t llvs_error_user_code(LLVS_BORROWED const llvs_error *error);
/**
 * For callbacks of the host: an error to be put into their `error`. Its code is LLVS_ERROR_USER, or the status that the callback returns
 * where its comment says that this keeps its code.
 * @param user_code  a number that means something to the host; comes back unchanged
 * @param message    UTF-8, copied; what is not UTF-8 is replaced, and control characters are written out
 * @return  owned by the caller until it is put there; never NULL
 * Since 0.1.
 */
LLVS_API llvs_error *llvs_error_make(int64_t user_code, llvs_bytes message);
/** Releases the error. Nothing happens for NULL and for the static error of LLVS_ERROR_OUT_OF_MEMORY. Since 0.1. */
LLVS_API void llvs_error_free(LLVS_OWNED llvs_error *error);

/* ------------------------------------------------------------------------------------------------
 * Registrations, log, progress
 * ------------------------------------------------------------------------------------------------ */

/** What is called when the library lets go of a payload. May be called from any thread; must not call the library. Since 0.1. */
typedef void (*llvs_free_fn)(LLVS_OWNED void *payload);

/** A registration of an unsolicited callback: log or notification. Since 0.1. */
typedef struct llvs_observer llvs_observer;
/**
 * Ends the registration without waiting: no callback begins after it, but one that runs on another thread may still run. The payload is
 * freed when none does. The handle stays, for llvs_observer_free. Any thread, under any lock. NULL is a no-op. Since 0.1.
 */
LLVS_API void llvs_observer_cancel(LLVS_BORROWED llvs_observer *observer);
/**
 * Ends the registration, waits for its running callbacks, and releases the handle: then none runs, and none comes after. From within an
 * unsolicited callback, of this registration or of any other, it does not wait, since two callbacks might wait for each other; so does the
 * close or free of an exchange, a coordinator or a store there. NULL is a no-op.
 *
 * Lock order: hold no lock here that a callback of the registration takes, or both wait for ever. Who must let go of it under such a
 * lock calls llvs_observer_cancel there, and this without the lock. Since 0.1.
 */
LLVS_API void llvs_observer_free(LLVS_OWNED llvs_observer *observer);

/** How important a message is. What the messages say may change with any version; their levels are as follows. Since 0.1. */
typedef uint32_t llvs_log_level;
enum llvs_log_level_value {
    LLVS_LOG_OFF = 0,
    LLVS_LOG_ERROR = 1,
    /** Something is wrong with a store or a folder: damage, a problem of an exchange. */
    LLVS_LOG_WARNING = 2,
    /** A store was opened (what was loaded from where, in how long), could not be opened, or was closed; an exchange, a compaction, a
        salvage; what was repaired. */
    LLVS_LOG_INFO = 3,
    /** Each merge, with its common ancestors and counts; the steps of an exchange; a compaction that had nothing to do. */
    LLVS_LOG_DEBUG = 4
};

/**
 * Gets a message of the library. Since 0.1.
 *   thread     any, also several at once
 *   re-entry   may call the library, but not llvs_log_observe
 *   pointers   live for the callback only; the message is UTF-8
 *   result     none
 */
typedef void (*llvs_log_fn)(LLVS_BORROWED void *payload, llvs_log_level level, LLVS_BORROWED const llvs_bytes *message);
/**
 * Registers a receiver of messages up to a level; several may be registered. Without one the library is
 * silent. Messages never hold value bytes or credentials.
 * @param level  the least important level wanted
 * @param fn, payload, payload_free  see "Callbacks" above
 * @param observer  ends the registration when freed
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_log_observe(llvs_log_level level, llvs_log_fn fn, LLVS_OWNED void *payload,
    llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);

/**
 * Hears that something may have changed. Since 0.1.
 *   thread     one of the library's, one call at a time per registration
 *   re-entry   may call the library, also to free its own observer
 *   result     none
 */
typedef void (*llvs_notify_fn)(LLVS_BORROWED void *payload);
/** Stops long work from any thread. Since 0.1. */
typedef struct llvs_cancel_token llvs_cancel_token;
/** Makes a token that is not set. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_cancel_token_create(LLVS_OWNED llvs_cancel_token **token, LLVS_OWNED llvs_error **error);
/** Sets the token for good: calls that were given it end with LLVS_ERROR_CANCELLED at their next check. Any thread. Since 0.1. */
LLVS_API void llvs_cancel_token_cancel(LLVS_BORROWED llvs_cancel_token *token);
/** Whether the token has been set. Any thread. Since 0.1. */
LLVS_API llvs_bool llvs_cancel_token_is_cancelled(LLVS_BORROWED const llvs_cancel_token *token);
/** Releases the token; running calls that were given it keep what they need. Since 0.1. */
LLVS_API void llvs_cancel_token_free(LLVS_OWNED llvs_cancel_token *token);

/** What long work is doing. Since 0.1. */
typedef uint32_t llvs_stage;
enum llvs_stage_value {
    LLVS_STAGE_LISTING = 1, LLVS_STAGE_RECEIVING = 2, LLVS_STAGE_ADDING = 3, LLVS_STAGE_SENDING = 4,
    LLVS_STAGE_READING = 5, LLVS_STAGE_WRITING = 6, LLVS_STAGE_VERIFYING = 7,
    /** At a place in packs: its keys are read or written, packs are merged, and deleted that others replace. */
    LLVS_STAGE_KEYS = 8, LLVS_STAGE_FOLDING = 9, LLVS_STAGE_DELETING = 10
};
/** How far long work has come. Since 0.1. */
typedef struct llvs_progress {
    uint32_t struct_size;
    llvs_stage stage;
    /** Of the stage; in versions, files or bytes as the stage has it. */
    uint64_t completed;
    /** 0 while it is not known. */
    uint64_t total;
} llvs_progress;
/**
 * Hears how far a call has come, and may stop it. Since 0.1.
 *   thread     the one that made the call
 *   re-entry   may call the library, but not the same exchange or coordinator
 *   pointers   live for the callback only
 *   result     LLVS_OK: go on; LLVS_ERROR_CANCELLED: the call ends with that; all else: the call ends with
 *              LLVS_ERROR_USER and what `error` was set to (by llvs_error_make; optional)
 */
typedef llvs_status (*llvs_progress_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_progress *progress,
    LLVS_OWNED llvs_error **error);
/** Progress and cancellation of one call. Nothing is registered: the payload stays the caller's. Since 0.1. */
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
    /** By convention a JSON document; other bytes are carried along untouched. */
    llvs_bytes value;
} llvs_metadata_entry;

/** What a version records of one value. Since 0.1. */
typedef uint32_t llvs_change_kind;
enum llvs_change_kind_value {
    /** Sets the value. Insert and update do the same: the record carries the label that is true. */
    LLVS_CHANGE_INSERT = 1,
    LLVS_CHANGE_UPDATE = 2,
    /** Removes the value; nothing happens when it is not there. */
    LLVS_CHANGE_REMOVE = 3,
    /** Takes over bytes that an ancestor stored: how a merge takes a side's value without writing it again. */
    LLVS_CHANGE_PRESERVE = 4,
    /** Takes over a removal. */
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
    /** The state at a version is the state at the first with the version's own changes applied. */
    llvs_bytes predecessors[2];
    /**
     * Puts versions in order: seconds since 1970-01-01 UTC, later than those of the ancestors, however wrong the clocks of those who made
     * them were. `made_at` tells when the version was made.
     */
    double timestamp;
    /** Bytes of the values that this version stored. */
    uint64_t value_data_size;
    /** Sorted by key bytes. */
    const llvs_metadata_entry *metadata;
    size_t metadata_count;
    /** The branch named in the metadata; its data is NULL when there is none. */
    llvs_bytes branch;
    /** In a walk through the history of one value (llvs_history_options.value_id) what this version recorded of it; else 0. */
    llvs_change_kind change;
    uint32_t reserved;
    /**
     * When the version was made, as far as this device can tell: seconds since 1970-01-01 UTC. What its maker's clock showed, not before
     * any of its ancestors, and no more than a minute after this device had it. Other devices may tell another time. The last bound has two
     * exceptions, both until a version is saved on this one: a timestamp that the program itself gave, and a version that came while the
     * clock of this device showed a time before 2026.
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
    /** 1, or 0 when there is no such value; then only `id` is set. */
    llvs_bool present;
    llvs_bytes id;
    /** Its data pointer is NULL when the bytes were not asked for. */
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
 * Many values in a few large pieces: less to make and to walk than a list, and, for languages whose calls into C are
 * dear, no call per value. Immutable, owned. Since 0.1.
 */
typedef struct llvs_value_block {
    uint32_t struct_size;
    /** How many version ids are in `versions`. */
    uint32_t version_count;
    /** How many values were asked for or enumerated. */
    size_t count;
    /** How many of them there are. */
    size_t present_count;
    /** Of an enumeration: the ids, each with a NUL behind it that `id_sizes` does not count; else empty. */
    llvs_bytes ids;
    /** The size of each id; NULL where there are no ids. */
    const uint64_t *id_sizes;
    /** The bytes of the values, one behind the other, with nothing between them. */
    llvs_bytes data;
    /** The size of each value, 0 for one that is not there; NULL when the bytes were not asked for. */
    const uint64_t *data_sizes;
    /** Ids of the versions that stored them, each with a NUL behind it; one that stored several may be there several times. */
    llvs_bytes versions;
    /** For each value which of those versions stored it, counted from 0; `version_count` for one that is not there. */
    const uint32_t *version_indexes;
} llvs_value_block;
/** Releases the block. Since 0.1. */
LLVS_API void llvs_value_block_free(LLVS_OWNED llvs_value_block *block);

/** A change that a version recorded, or a difference of two versions. Since 0.1. */
typedef struct llvs_change_info {
    uint32_t struct_size;
    llvs_change_kind kind;
    llvs_bytes id;
    /** Of insert and update, when the bytes were asked for; else its data pointer is NULL. */
    llvs_bytes data;
    /** Where the bytes of insert, update or preserve are stored; else empty. */
    llvs_bytes stored_version;
    /** How many bytes the value has; 0 for removals. */
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

/** A store: a history of versions, and what prevails at each. Safe from all threads. Since 0.1. */
typedef struct llvs_store llvs_store;
/** A storage of the host; see "A storage of the host" below. Since 0.1. */
typedef struct llvs_storage llvs_storage;

/** Where records rest. Since 0.1. */
typedef uint32_t llvs_storage_kind;
enum llvs_storage_kind_value {
    /** The default: a directory of append-only files, which several processes and a folder sync may share. */
    LLVS_STORAGE_FILE = 0,
    /**
     * One SQLite database in WAL mode, by the system's libsqlite3 (3.20 or later), which is opened when the first such store is;
     * LLVS_ERROR_UNSUPPORTED says what to do where there is none that can be used. A host that contains an SQLite of its own must
     * not open the database by that while the store is open: two copies of SQLite in one process break each other's locks. So does
     * whoever opens and closes the database or its -shm by other means in this process meanwhile, to copy or hash them, say: the
     * system takes all locks of a process from a file as soon as it closes any descriptor of it, and saves may be lost. None of the
     * files may have a further name (hard link) where the store is written: LLVS_ERROR_PERMISSION.
     */
    LLVS_STORAGE_SQLITE = 1,
    /** Gone when closed; for tests and scratch. */
    LLVS_STORAGE_MEMORY = 2,
    /** The `host_storage` of the options. */
    LLVS_STORAGE_HOST = 3
};

/** What a power cut can take. A killed process takes nothing at either. Since 0.1. */
typedef uint32_t llvs_durability;
enum llvs_durability_value {
    /** The default: nothing acknowledged is lost. */
    LLVS_DURABILITY_FULL = 0,
    /** The newest versions may be missing; the rest is whole. */
    LLVS_DURABILITY_NORMAL = 1
};

/**
 * When a file store puts together what many handles wrote in many small files, so that opening costs by what is in the store and not
 * by how often it was opened. Readers and other processes go on meanwhile. Since 0.1.
 */
typedef uint32_t llvs_compaction;
enum llvs_compaction_value {
    /**
     * The default: by itself when it pays (at close, seldom at open), and on request; neither in a folder that a syncing program carries.
     */
    LLVS_COMPACTION_AUTOMATIC = 0,
    /** By llvs_store_compact only, and not in a folder that a syncing program carries. */
    LLVS_COMPACTION_ON_REQUEST = 1,
    /** By itself when it pays, and on request, wherever the store is. */
    LLVS_COMPACTION_ALWAYS = 2
};

/** How to open a store. Since 0.1. */
typedef struct llvs_store_options {
    uint32_t struct_size;
    llvs_storage_kind storage;
    llvs_durability durability;
    /** 1: nothing is written, and a store that is not there is LLVS_ERROR_NOT_FOUND. */
    llvs_bool read_only;
    /** 1: a store that is not there is LLVS_ERROR_NOT_FOUND; 0: it is made. */
    llvs_bool must_exist;
    /** For file storage. */
    llvs_compaction compaction;
    /** Bytes of caches in memory; 0: 64 MiB. */
    uint64_t memory_budget;
    /** For file storage, a directory for caches outside the store (outside a synced folder, say); empty: inside. UTF-8, without NUL. One
        directory for each store: in one that two stores share, each takes what the other keeps there for its own, and a coordinator's name
        is open on one of them only. */
    llvs_bytes cache_directory;
    /** With LLVS_STORAGE_HOST: the storage, which the store keeps alive; else NULL. */
    llvs_storage *host_storage;
    /**
     * For file storage, the seconds for which files that were put together are kept, so that whoever is copying the store misses
     * nothing; 0: 900. Finite, not negative.
     */
    double compaction_grace;
    /**
     * For SQLite storage, the seconds for which a call waits while another process or connection writes, before it ends with
     * LLVS_ERROR_BUSY; 0: 10. Finite, not negative. The file storage waits for nobody: its writers do not exclude each other.
     */
    double busy_timeout;
    /**
     * The permissions of files that are made, as for chmod, less what the process's umask takes; 0: 0600, for their owner alone.
     * Directories may be entered by whoever may read. At most 0777, with 0600 in it. Does not change files that are there, but notes of
     * coordinators: those are for who may write only, since who can open one can lock it. (Who may only read starts a coordinator at the
     * newest version.) Whoever may write to the files, or to a directory of the store, is trusted: SECURITY.md.
     */
    uint32_t file_mode;
    /** 0. */
    uint32_t reserved;
    /**
     * Progress (stage LLVS_STAGE_READING, in versions) and cancellation of opening; may be NULL. Not used once the store is open, nor by
     * llvs_store_salvage, which has one of its own.
     */
    const llvs_control *control;
} llvs_store_options;
#define LLVS_STORE_OPTIONS_INIT { (uint32_t)sizeof(llvs_store_options), 0, 0, 0, 0, 0, 0, LLVS_NONE_INIT, 0, 0, 0, 0, 0, 0 }

/**
 * Opens a store, or makes it.
 * @param path     a directory (file), a database file (SQLite), ignored (memory, host); UTF-8, without NUL
 * @param options  NULL for the defaults
 * @param store    the store; end with llvs_store_close, release with llvs_store_free
 * Errors: LLVS_ERROR_NOT_FOUND, LLVS_ERROR_NOT_A_STORE, LLVS_ERROR_NOT_A_DIRECTORY, LLVS_ERROR_NEWER_FORMAT,
 * LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_UNSUPPORTED (no SQLite), storage errors. A damaged record is no error: see llvs_store_verify.
 * LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback of the options): nothing is open then; a store that was not there
 * may have been made.
 * Cost: the size of the history's index, not of the values.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_open(llvs_bytes path, LLVS_BORROWED const llvs_store_options *options,
    LLVS_OWNED llvs_store **store, LLVS_OWNED llvs_error **error);
/**
 * Flushes, seals and lets go of the files. Waits for calls that run; later ones on the store, its cursors and
 * exchanges give LLVS_ERROR_CLOSED. Closing again is LLVS_OK. The handle must still be freed.
 * Errors: storage errors; the store is closed all the same.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_close(LLVS_BORROWED llvs_store *store, LLVS_OWNED llvs_error **error);
/**
 * Releases the handle; closes the store first when nothing else (an exchange, a cursor) uses it any
 * more, dropping that outcome. In a forked child it does nothing to the files. Since 0.1.
 */
LLVS_API void llvs_store_free(LLVS_OWNED llvs_store *store);
/** Where the store is: an absolute path; empty for a store in memory or in a storage of the host. Borrowed from the store. Since 0.1. */
LLVS_API llvs_bytes llvs_store_path(LLVS_BORROWED const llvs_store *store);
/**
 * Picks up versions that other processes or handles added: until then a handle has the history as it was when it was opened, or last
 * reloaded, and what came through itself. (Asking for a version that is not known reloads by itself.)
 * @param control  progress (stage LLVS_STAGE_READING; told once, before it begins) and cancellation; may be NULL. What was picked up before
 *                 it was cancelled stays.
 * @param added    how many came; may be NULL
 * Errors: LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback), storage errors. Cost: the number of files and of new
 * versions. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_reload(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_control *control,
    LLVS_BORROWED uint64_t *added, LLVS_OWNED llvs_error **error);

/**
 * Registers for versions that come into the store, whoever adds them: other processes and handles, and this one by saving, merging,
 * retrieving or reloading. Called soon after, when they are in the history already: there is no need to reload. What comes close
 * together is one call, and what was added before by others, and not picked up yet, is the first.
 *
 * Nothing is polled: the system tells (inotify) when something is written where the store is. Where it does not, as on network file
 * systems, or when no more watches are to be had, the store is looked at every two seconds. A store in memory is told of what comes
 * through this handle, and so is one in a storage of the host: llvs_store_reload finds what others added there.
 *
 * The registration does not keep the store open; once the store is closed, nothing is called any more.
 * @param fn, payload, payload_free  see "Callbacks" above
 * @param observer  ends the registration when freed
 * Errors: LLVS_ERROR_IO and others that having no more threads or descriptors gives. Cost: a thread, and two to three descriptors.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_observe(LLVS_BORROWED llvs_store *store, llvs_notify_fn fn, LLVS_OWNED void *payload,
    llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);

/** Counts of a store. Set struct_size before the call; no more than that is written. Since 0.1. */
typedef struct llvs_statistics {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t versions;
    uint64_t heads;
    /** Versions whose ancestry is not completely here: not in history until it is. */
    uint64_t pending;
    /** Damaged places met so far. */
    uint64_t damaged;
    /** On the medium, caches included. */
    uint64_t bytes;
    /** By this handle. */
    uint64_t bytes_written;
    /** By this handle. */
    uint64_t syncs;
    uint64_t segments;
    /** Bytes that the history takes in memory; caches of values are bounded by the memory budget. */
    uint64_t memory_used;
} llvs_statistics;
#define LLVS_STATISTICS_INIT { (uint32_t)sizeof(llvs_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/**
 * Fills in the counts.
 * @param control     progress (stage LLVS_STAGE_LISTING) and cancellation; may be NULL
 * @param statistics  what is counted
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback), storage errors. Cost: a look at each file of a file store.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_statistics(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_control *control,
    LLVS_BORROWED llvs_statistics *statistics, LLVS_OWNED llvs_error **error);

/** What a damage costs. Since 0.1. */
typedef uint32_t llvs_loss;
enum llvs_loss_value {
    /** Nothing: what was there is known without it, is made again, or there is another copy, as after a repair (llvs_exchange_retrieve). */
    LLVS_LOSS_NOTHING = 0,
    /** A version, or several. What builds on them waits until they are here again; a retrieve from where they are brings them. */
    LLVS_LOSS_VERSION = 1,
    /** The bytes of a value. The version is there, and its other values can be read; a retrieve from where the version is repairs it. */
    LLVS_LOSS_VALUE = 2,
    /**
     * Perhaps something: a file ends in bytes that count as never written, or without saying that it is complete, and no process
     * of this machine is writing it. Somebody was killed, another machine is not done yet, or the file was cut short or damaged
     * at its end. What was acknowledged before a process was killed is not lost by that.
     */
    LLVS_LOSS_UNFINISHED = 3
};

/** A place whose bytes are not what was written. Since 0.1. */
typedef struct llvs_damage {
    uint32_t struct_size;
    llvs_loss lost;
    /** The file, or what stands for it. */
    llvs_bytes file;
    /** Where in the file, in bytes; for SQLite storage the number of a row. */
    uint64_t offset;
    llvs_bytes message;
    /** The version concerned, where it can be told; else empty. */
    llvs_bytes version;
    /** The value concerned, where it is one and can be told; else empty. */
    llvs_bytes value_id;
} llvs_damage;
/** The outcome of llvs_store_verify; immutable, owned. Since 0.1. */
typedef struct llvs_verify_report {
    uint32_t struct_size;
    uint32_t reserved;
    /** Versions read. */
    uint64_t versions;
    /** Values read. */
    uint64_t values;
    /** Versions that wait for their ancestry. */
    uint64_t pending;
    /** Damaged places. */
    const llvs_damage *const *damages;
    size_t damage_count;
    /** Places where files are unfinished (LLVS_LOSS_UNFINISHED); not among the damages. */
    const llvs_damage *const *unfinished;
    size_t unfinished_count;
    /**
     * How far history is tamper-evident. Versions of the history that the id of a head vouches for: its own id, and those of all versions
     * on a way back from a head to it, are computed from what these hold, so that none of them was changed since the head was made.
     */
    uint64_t vouched;
    /** All others of the history: they have, or lie behind others that have, ids of callers or other implementations, or are damaged. */
    uint64_t unvouched;
} llvs_verify_report;
/**
 * Reads everything again and compares it with its checksums. Changes nothing, but for a cache that says other than the records, which
 * is removed. All is there when each damage in the report is LLVS_LOSS_NOTHING; when, besides, nothing is unfinished and nothing
 * waits, nothing can be missing at the end of a file either. What is damaged is repaired by the next llvs_exchange_retrieve
 * of this store from where the versions are, or put into a new store by llvs_store_salvage.
 * @param control  progress and cancellation; may be NULL
 * @param report   what was found; damage found is no error
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
     * 1: its state is exactly that of `original`. 0: it has the newest values that could be read; what lost versions changed,
     * and lost values, are as they were before, or missing.
     */
    llvs_bool is_complete;
    /** The newest version whose changes are in it. */
    llvs_bytes original;
    /** The one that was made. */
    llvs_bytes version;
} llvs_salvaged;
/** The outcome of llvs_store_salvage; immutable, owned. Since 0.1. */
typedef struct llvs_salvage_report {
    uint32_t struct_size;
    uint32_t reserved;
    /** Versions in the new store as they were. */
    uint64_t versions;
    /** Versions that wait in the new store for lost ones. */
    uint64_t waiting;
    /** Versions that were made. */
    const llvs_salvaged *const *made;
    size_t made_count;
    /** Damaged places, unfinished files, and versions that others name and that are nowhere. */
    const llvs_damage *const *damages;
    size_t damage_count;
} llvs_salvage_report;
/**
 * Writes all that is whole in a damaged store into a new one; the damaged store is only read. Works also for a store that cannot be
 * opened (a database that SQLite refuses), and takes what opening passes over: a version that is damaged in part, versions behind
 * damage at the end of a file.
 *   - A version that is whole, with all its ancestry, is in the new store as it was, under its own id.
 *   - A version that is whole but builds on a lost one is in the new store, too, and waits there (llvs_statistics.pending) until
 *     an exchange brings what it builds on.
 *   - For each line of versions that cannot be kept as they were, a version is made of what can be read of them, on the last one
 *     before it that is whole, and where lines part one of what they have in common, for all of them; values larger than 32 MiB
 *     together may take several, one after another. It has the metadata of the newest and an entry "__llvs_salvaged":
 *     {"version": "<its id>", "complete": <whether its state is exactly that one's>}.
 * No version ever shows another state than the version of that id had.
 * @param path, options            the damaged store, as for llvs_store_open; opened for reading only, whatever the options say
 * @param target, target_options   the new store, which is made; there must be no versions in it
 * @param control                  progress (LLVS_STAGE_VERIFYING, LLVS_STAGE_ADDING) and cancellation; may be NULL
 * @param report                   what was written, and what is lost
 * The damaged store may be open, but for a database that is open in this process: LLVS_ERROR_BUSY, close it first. What others write
 * to it meanwhile may be in the new store, or not.
 * Errors: those of llvs_store_open (LLVS_ERROR_NOT_FOUND: there is nothing to salvage) and LLVS_ERROR_INVALID_ARGUMENT (the target is
 * within the damaged store): nothing was made then; LLVS_ERROR_STORE_NOT_EMPTY, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress
 * callback), storage errors: the new store is to be deleted.
 * Cost: reads the damaged store up to three times; memory for the history and for the ids of the values that go into versions that
 * are made. A database needs its own size again beside the new store while it lasts.
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
    /** Files whose records were put into others. They are still there, for the time of grace. */
    uint64_t folded;
    /** Files that were made of them. */
    uint64_t made;
    /** Files whose records were put into others long enough ago, and that are gone now. */
    uint64_t deleted;
    /** Of the files made. */
    uint64_t bytes_written;
    /** Of the files deleted. */
    uint64_t bytes_deleted;
    /**
     * The file that shows that a folder-syncing program carries the store, for which nothing was done: a path; its data is NULL when
     * there is none. Owned by the caller: llvs_buffer_dispose(&report.sync_marker).
     */
    llvs_buffer sync_marker;
} llvs_compaction_report;
#define LLVS_COMPACTION_REPORT_INIT { (uint32_t)sizeof(llvs_compaction_report), 0, 0, 0, 0, 0, 0, { 0, 0 } }
/**
 * Puts small files of the store together into large ones, and deletes those that were put together longer ago than
 * `compaction_grace`. Happens by itself as well, as `compaction` of the options says; storages other than the file storage have
 * nothing to do. Readers and other processes go on meanwhile; when one of those compacts right now, nothing is done. A failure, a
 * cancellation or a crash loses nothing: call it again.
 * @param control  progress (stage LLVS_STAGE_WRITING, in bytes written) and cancellation; may be NULL
 * @param report   what was done; may be NULL
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback), LLVS_ERROR_BUSY (from within the progress callback of a
 * compaction), storage errors. Cost: reads and writes what is in small files.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_compact(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_compaction_report *report, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Making versions
 * ------------------------------------------------------------------------------------------------ */

/**
 * Gives what comes next of a value, of a file, or of a stream of packs. Since 0.1.
 *   thread     the one that made the call; one value after another, in their order, before anything is stored
 *   re-entry   may call the library, the store included; no lock is held. (To save through the coordinator that is saving
 *              is LLVS_ERROR_BUSY.)
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK, with the first `*size` bytes of `buffer` filled, at least one and at most `capacity`; LLVS_END, with `*size`
 *              left 0, which it is before the call: there is nothing more. LLVS_OK without a byte, LLVS_END with one, and more bytes than
 *              there is room for are LLVS_ERROR_INVALID_ARGUMENT. All else: the version is not made, and the call gives LLVS_ERROR_USER
 *              with what `error` was set to (by llvs_error_make; optional); LLVS_ERROR_IO and LLVS_ERROR_CANCELLED keep their code
 */
typedef llvs_status (*llvs_read_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED uint8_t *buffer, size_t capacity, LLVS_BORROWED size_t *size,
    LLVS_OWNED llvs_error **error);

/**
 * Takes one piece of a file, or of a stream of packs. Since 0.1.
 *   thread     the one that made the call
 *   re-entry   may call the library; of a file of a transport, but not the exchange
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK; all else: llvs_outgoing_write fails as a callback of the transport does, and llvs_store_write_pack gives
 *              LLVS_ERROR_USER with what `error` was set to (by llvs_error_make; optional); LLVS_ERROR_IO, LLVS_ERROR_NO_SPACE and
 *              LLVS_ERROR_CANCELLED keep their code
 */
typedef llvs_status (*llvs_write_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *piece, LLVS_OWNED llvs_error **error);

/**
 * A value to set whose bytes are asked for piece by piece. With file storage one of more than 1 MiB goes straight to a file of its
 * own, so that no more of it than a piece is in memory; elsewhere it is gathered in memory. Since 0.1.
 */
typedef struct llvs_value_source {
    /** The value id. */
    llvs_bytes id;
    /**
     * Bytes in all; 0: not known beforehand, which costs a large value being written twice. LLVS_ERROR_INVALID_ARGUMENT when it comes out
     * otherwise.
     */
    uint64_t size;
    llvs_read_fn read;
    void *payload;
} llvs_value_source;
#define LLVS_VALUE_SOURCE_INIT { LLVS_NONE_INIT, 0, 0, 0 }

/** What a new version carries beside its changes. Since 0.1. */
typedef struct llvs_version_options {
    uint32_t struct_size;
    /**
     * For llvs_coordinator_save, with `expected` as the version at which the values were read, and without a branch. 1: it is saved also
     * if another version is current by now. If one of the values that are saved has changed since, the new version stands on `expected`,
     * and is merged with the current one at once, by the arbiter of the coordinator, as if two devices had saved: so nobody's change is
     * lost, and what both changed is a conflict, which is told if rules are for the value. Else the new version stands on the current one.
     * If the merge fails, the save is a head of its own, which the next llvs_coordinator_merge merges. LLVS_ERROR_MOVED if the current
     * version does not descend from `expected`. For llvs_store_make_version it is LLVS_ERROR_INVALID_ARGUMENT.
     */
    llvs_bool merges;
    /**
     * The id to make it under; empty: one that is computed from what the version holds (a UUID of version 8, docs/format.md), by which
     * others can tell that it is what was made. An id of that form is refused when it is not the one that is computed; all others say
     * nothing of what they name. Making the same version again under its id is not an error. Exchanges make it the name
     * of a file: LLVS_ERROR_INVALID_VERSION_ID for one that begins with `-`, and for the names of devices (CON, PRN, AUX, NUL, COM1 to
     * COM9, LPT1 to LPT9, in any case); versions that others made under such ids are taken and passed on.
     */
    llvs_bytes id;
    /** The name of its branch, UTF-8, at most 1024 bytes; empty: none. */
    llvs_bytes branch;
    /** A key given twice keeps the last. */
    const llvs_metadata_entry *metadata;
    size_t metadata_count;
    /** Further values to set, `source_count` structs, `source_size` bytes each; NULL when there are none. */
    const llvs_value_source *sources;
    size_t source_count;
    /** sizeof(llvs_value_source). */
    size_t source_size;
    /**
     * Seconds since 1970-01-01 UTC at which the version is said to be made; 0: now, or a microsecond after the predecessor's when the clock
     * is behind that (by more than a minute: then the metadata get `__llvs_clock`, what the clock shows in seconds since 2001). Finite, and
     * later than the predecessor's timestamp: else LLVS_ERROR_INVALID_ARGUMENT.
     */
    double timestamp;
    /**
     * For llvs_coordinator_save: the version that is expected to be current (with a branch, its newest head). When another is by now,
     * nothing is stored, LLVS_ERROR_MOVED, unless `merges` says otherwise. Empty: any. For llvs_store_make_version it must be empty: else
     * LLVS_ERROR_INVALID_ARGUMENT.
     */
    llvs_bytes expected;
} llvs_version_options;
#define LLVS_VERSION_OPTIONS_INIT                                                                                                          \
    { (uint32_t)sizeof(llvs_version_options), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, 0, 0, 0, 0, 0, 0, LLVS_NONE_INIT }

/**
 * Records one version: all of it or, also across a crash, nothing.
 * @param predecessor   the version it is based on, whose state it starts from: the newest head (the first of llvs_store_heads), or what
 *                      the last save gave. LLVS_NONE makes a root, which starts from *nothing*: that is for the first version of a store.
 *                      In one that has versions it is a history apart, with none of the values that are there and no ancestor in
 *                      common, and merges with the rest as two-way merges do. Nothing refuses it: whoever does not mean that must not
 *                      pass LLVS_NONE
 * @param changes       `change_count` structs, `change_size` bytes each; NULL when there are none. Each value id at most once
 * @param change_size   sizeof(llvs_change)
 * @param options       id, branch, metadata, and values that come in pieces; may be NULL
 * @param id            receives the new version's id; may be NULL. The cheap way: no allocation. It may be what `predecessor`
 *                      points to, and is left alone then when the call fails: a loop that saves on `&head` needs one variable
 * @param version       receives a list of the one version; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_PREDECESSOR, LLVS_ERROR_DUPLICATE_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8,
 * LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_REFERENCE, LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_VERSION_MISMATCH,
 * LLVS_ERROR_UNPORTABLE_ID (`no_other_readers` of llvs_exchange_options), storage errors; LLVS_ERROR_USER and others that a value's `read`
 * gave.
 * Cost: the changes; O(log n) in the number of values.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_make_version(LLVS_BORROWED llvs_store *store, llvs_bytes predecessor,
    LLVS_BORROWED const llvs_change *changes, size_t change_count, size_t change_size, LLVS_BORROWED const llvs_version_options *options,
    LLVS_BORROWED llvs_version_id *id, LLVS_OWNED llvs_version_list **version, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * History
 * ------------------------------------------------------------------------------------------------ */

/**
 * One version, as a list of one; NULL when it is not in the store (after a reload). Errors:
 * LLVS_ERROR_INVALID_VERSION_ID, storage errors. O(1). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_version(LLVS_BORROWED llvs_store *store, llvs_bytes id, LLVS_OWNED llvs_version_list **version,
    LLVS_OWNED llvs_error **error);
/**
 * Many versions, in the order of `ids`.
 * Errors: LLVS_ERROR_UNKNOWN_VERSION when one is not in the store, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_versions(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_bytes *ids, size_t count,
    LLVS_OWNED llvs_version_list **versions, LLVS_OWNED llvs_error **error);
/** Which heads. Since 0.1. */
typedef struct llvs_heads_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** Those that carry this branch name, UTF-8; empty: all. */
    llvs_bytes branch;
    /** At most so many, the newest ones; 0: all. */
    uint64_t limit;
    /** Progress (stage LLVS_STAGE_LISTING) and cancellation; may be NULL. With a limit of 1 and no branch it is not looked at. */
    const llvs_control *control;
} llvs_heads_options;
#define LLVS_HEADS_OPTIONS_INIT { (uint32_t)sizeof(llvs_heads_options), 0, LLVS_NONE_INIT, 0, 0 }
/**
 * The versions without successors, newest first: the most recent head comes first, and with a limit of 1 alone. Of those that carry a
 * branch name the first is the newest of that branch: how to list the branches.
 * @param options  may be NULL
 * @param heads    an empty list where there are none
 * Errors: LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback), storage errors. O(heads). Since
 * 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_heads(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_heads_options *options,
    LLVS_OWNED llvs_version_list **heads, LLVS_OWNED llvs_error **error);
/**
 * The versions that have this one as a predecessor, newest first.
 * @param control  progress (stage LLVS_STAGE_LISTING) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback).
 * Cost: the successors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_successors(LLVS_BORROWED llvs_store *store, llvs_bytes id,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_version_list **successors, LLVS_OWNED llvs_error **error);
/**
 * Whether `ancestor` is an ancestor of `descendant`. A version is not its own ancestor.
 * @param control  progress (stage LLVS_STAGE_READING) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback).
 * Cost: at most the versions whose generation lies between the two. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_is_ancestor(LLVS_BORROWED llvs_store *store, llvs_bytes ancestor, llvs_bytes descendant,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED llvs_bool *is_ancestor, LLVS_OWNED llvs_error **error);
/**
 * All best common ancestors of two versions, newest first; an empty list when they share none. Of a version and its ancestor: the ancestor.
 * @param control  progress (stage LLVS_STAGE_READING) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback).
 * Cost: the versions between the two and their bases. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_merge_bases(LLVS_BORROWED llvs_store *store, llvs_bytes a, llvs_bytes b,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_version_list **bases, LLVS_OWNED llvs_error **error);
/**
 * The version that stood at a time: of `head` and its ancestors the one that was made last (`made_at`) and not later, among those behind
 * which none is that is not later. (Where two lines were apart at that time and merged afterwards, the one of the later version.)
 * @param time     seconds since 1970-01-01 UTC
 * @param head     a version; empty: the most recent head
 * @param control  progress (stage LLVS_STAGE_READING) and cancellation; may be NULL
 * @param version  a list of the one version, or NULL when all are later
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_ARGUMENT (a time that is no number),
 * LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback). Cost: the versions that are later. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_version_at(LLVS_BORROWED llvs_store *store, double time, llvs_bytes head,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_version_list **version, LLVS_OWNED llvs_error **error);
/**
 * All versions that stored bytes for a value id, newest first.
 * @param control  progress (stage LLVS_STAGE_READING) and cancellation; may be NULL
 * Errors: LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_CANCELLED and LLVS_ERROR_USER (from the progress callback),
 * storage errors. Cost: as for llvs_store_history of one value. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_versions_of(LLVS_BORROWED llvs_store *store, llvs_bytes value_id,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_version_list **versions, LLVS_OWNED llvs_error **error);

/** Which versions to walk through: those that satisfy all that is given. Since 0.1. */
typedef struct llvs_history_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** These versions and their ancestors; NULL with 0: all versions. */
    const llvs_bytes *from;
    size_t from_count;
    /**
     * Neither these versions nor their ancestors: what is new to somebody who has them ("a..b" of git is from b, hiding a). NULL with 0:
     * nothing is hidden.
     */
    const llvs_bytes *hiding;
    size_t hiding_count;
    /** Versions that carry this branch name, UTF-8; empty: any. */
    llvs_bytes branch;
    /**
     * The history of one value: versions that recorded a change of it, an insert, an update, a removal, or what a merge took over of
     * them; `change` of llvs_version_info tells which. A revert records the inverse. In received versions LLVS_CHANGE_INSERT and
     * LLVS_CHANGE_UPDATE are what their makers wrote: an id vouches for what was set, not for which of the two it was called.
     * Empty: any.
     */
    llvs_bytes value_id;
    /** Versions that recorded a change of a value whose id begins with these bytes; empty: any. Need not be whole UTF-8 characters. */
    llvs_bytes prefix;
} llvs_history_options;
#define LLVS_HISTORY_OPTIONS_INIT \
    { (uint32_t)sizeof(llvs_history_options), 0, 0, 0, 0, 0, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT }

/** A walk through the history, in pages. It walks the history as it was when it was made. One thread at a time. Since 0.1. */
typedef struct llvs_history_cursor llvs_history_cursor;
/**
 * Begins a walk from the heads back, in topological order: each version comes before its predecessors; what has the longest line of
 * versions down to a root comes first, and among equal ones the newest.
 * @param options  NULL: the whole history
 * @param control  progress (stage LLVS_STAGE_READING) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8,
 * LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback), storage errors.
 * Cost: the heads. For one value the versions that changed it, and those of more than 1,024 changes; the first time in a process, and
 * after many versions were added, also the number of versions.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_history(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_history_options *options,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_history_cursor **cursor, LLVS_OWNED llvs_error **error);
/**
 * The next page.
 * @param limit     how many versions at most; 0: 1000
 * @param control   as for llvs_store_history; versions walked over are counted. After LLVS_ERROR_CANCELLED the walk can be gone on with
 * @param versions  the page; NULL when the walk is at its end
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_USER, storage errors. Cost: the page, and the versions that are passed over to find it: with
 * `branch` those of other branches, with `prefix` others, whose records are looked into, and with `value_id` beside `from` or `hiding`
 * those between. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_history_cursor_next(LLVS_BORROWED llvs_history_cursor *cursor, size_t limit,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_version_list **versions, LLVS_OWNED llvs_error **error);
/** Releases the cursor. Since 0.1. */
LLVS_API void llvs_history_cursor_free(LLVS_OWNED llvs_history_cursor *cursor);

/* ------------------------------------------------------------------------------------------------
 * Reading values
 * ------------------------------------------------------------------------------------------------ */

/**
 * The value that prevails at a version. What a version stored prevails there: the bytes that a change, a fork or a value names by the
 * version that stored them are read at that version.
 * @param id              the value id
 * @param at              the version
 * @param data            receives the bytes; its data is NULL when there is no such value. Release with llvs_buffer_dispose
 * @param stored_version  receives the version that stored them (size 0 when there is no such value); may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID, storage errors.
 * Cost: O(log n) and the value's size.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_value(LLVS_BORROWED llvs_store *store, llvs_bytes id, llvs_bytes at,
    LLVS_OWNED llvs_buffer *data, LLVS_BORROWED llvs_version_id *stored_version, LLVS_OWNED llvs_error **error);
/**
 * The value that prevails at a version, into memory of the caller's: for who reads many and allocates none.
 * @param buffer          receives the bytes when they fit, without a NUL; may be NULL when `capacity` is 0. Its bytes are undefined after a
 *                        failure
 * @param capacity        bytes in `buffer`
 * @param size            receives the size of the value; SIZE_MAX when there is none, 0 after a failure. More than `capacity`:
 *                        nothing was copied, ask again with more
 * @param stored_version  as for llvs_store_value
 * Errors, cost: as llvs_store_value. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_read_value(LLVS_BORROWED llvs_store *store, llvs_bytes id, llvs_bytes at,
    LLVS_BORROWED void *buffer, size_t capacity, LLVS_BORROWED size_t *size, LLVS_BORROWED llvs_version_id *stored_version,
    LLVS_OWNED llvs_error **error);
/**
 * One value that is read in parts, so that it need not be in memory as a whole. Any thread; the calls of one reader wait for each other.
 * Since 0.1.
 */
typedef struct llvs_value_reader llvs_value_reader;
/**
 * Opens the value that prevails at a version, without reading it: how to ask for its size, too. What it gives is that value,
 * whatever is stored or compacted beside it.
 * @param reader          NULL when there is no such value
 * @param size            receives the size of the value; 0 when there is none; may be NULL
 * @param stored_version  as for llvs_store_value
 * Errors: as llvs_store_value. Cost: O(log n). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_open_value(LLVS_BORROWED llvs_store *store, llvs_bytes id, llvs_bytes at,
    LLVS_OWNED llvs_value_reader **reader, LLVS_BORROWED uint64_t *size, LLVS_BORROWED llvs_version_id *stored_version,
    LLVS_OWNED llvs_error **error);
/**
 * Copies the bytes of the value from `offset` on, all of them checked.
 * @param buffer    receives at most `capacity` bytes, without a NUL; may be NULL when `capacity` is 0. Its bytes are undefined after a
 *                        failure
 * @param size      receives how many: fewer than `capacity` only at the end of the value, 0 at and behind it
 * Errors: storage errors; LLVS_ERROR_DAMAGED when a block that is touched is not what was written.
 * Cost: with file storage a value above 1 MiB is read and checked by the blocks of 64 KiB that are touched, and a smaller one is read
 * and kept by the first call. With other storages the first call reads a value above 1 MiB through, to check it, and keeps checksums of
 * its blocks; where such a value is deflated, reading backwards inflates it from its beginning.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_value_reader_read(LLVS_BORROWED llvs_value_reader *reader, uint64_t offset,
    LLVS_BORROWED void *buffer, size_t capacity, LLVS_BORROWED size_t *size, LLVS_OWNED llvs_error **error);
/** Releases the reader. Since 0.1. */
LLVS_API void llvs_value_reader_free(LLVS_OWNED llvs_value_reader *reader);
/**
 * Which version stored the value that prevails, without reading it: size 0 when there is no such value. How to ask whether it is there.
 * Errors: as llvs_store_value. O(log n). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_reference(LLVS_BORROWED llvs_store *store, llvs_bytes id, llvs_bytes at,
    LLVS_BORROWED llvs_version_id *stored_version, LLVS_OWNED llvs_error **error);
/** Many values at one version: an element for each id, in order, `present` or not. Errors: as llvs_store_value. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_store_values(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_bytes *ids, size_t count,
    llvs_bytes at, LLVS_OWNED llvs_value_list **values, LLVS_OWNED llvs_error **error);
/**
 * Many values at one version, in a few large pieces.
 * @param ids       the value ids, one behind the other, with nothing between them
 * @param id_sizes  the size of each, `count` in all
 * @param block     receives the values, in order
 * Errors: as llvs_store_value; LLVS_ERROR_INVALID_ARGUMENT when the sizes do not add up. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_value_block(LLVS_BORROWED llvs_store *store, llvs_bytes ids,
    LLVS_BORROWED const uint64_t *id_sizes, size_t count, llvs_bytes at, LLVS_OWNED llvs_value_block **block,
    LLVS_OWNED llvs_error **error);

/** Which values to enumerate: those that satisfy all that is given. Since 0.1. */
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
 * One page of the values at a version, in byte order of their ids, or the reverse of it. A version never changes, so pages asked for
 * at different times fit together.
 * @param range   NULL: all, from the first
 * @param values  the page; NULL when there are no more
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Cost: O(log n) and the page.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_enumerate(LLVS_BORROWED llvs_store *store, llvs_bytes at,
    LLVS_BORROWED const llvs_range *range, LLVS_OWNED llvs_value_list **values, LLVS_OWNED llvs_error **error);
/** As llvs_store_enumerate, the page in a few large pieces; NULL when there are no more. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_store_enumerate_block(LLVS_BORROWED llvs_store *store, llvs_bytes at,
    LLVS_BORROWED const llvs_range *range, LLVS_OWNED llvs_value_block **block, LLVS_OWNED llvs_error **error);
/**
 * How many values prevail at a version (`limit`, `byte_limit`, `without_data` and `reverse` of the range are ignored).
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, storage errors. O(log n). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_count(LLVS_BORROWED llvs_store *store, llvs_bytes at, LLVS_BORROWED const llvs_range *range,
    LLVS_BORROWED uint64_t *count, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Changes and differences
 * ------------------------------------------------------------------------------------------------ */

/** Changes in byte order of their ids, in pages. One thread at a time. Since 0.1. */
typedef struct llvs_change_cursor llvs_change_cursor;
/**
 * What a version recorded.
 * @param range    only values in it; NULL: all. (Its `limit`, `byte_limit`, `without_data` and `reverse` are ignored.)
 * @param control  progress (stage LLVS_STAGE_READING, in changes) and cancellation; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback),
 * storage errors. Cost: the changes. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_changes(LLVS_BORROWED llvs_store *store, llvs_bytes version,
    LLVS_BORROWED const llvs_range *range, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_change_cursor **cursor,
    LLVS_OWNED llvs_error **error);
/**
 * What to apply to the state at `from` to reach the state at `to`, as insert, update and remove. Any two versions, related or not.
 * Values are told apart by the versions that stored them: one that was stored anew is an update, also with the same bytes. So of
 * two versions that hold the same without having it from a common ancestor all values differ. (A merge compares bytes where the versions
 * differ: to it, equal bytes are no conflict and no change.)
 * @param range, control  as for llvs_store_changes
 * Errors: as llvs_store_changes. Cost: the changes recorded between the two, or those that differ in the range; not what is there.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_differences(LLVS_BORROWED llvs_store *store, llvs_bytes from, llvs_bytes to,
    LLVS_BORROWED const llvs_range *range, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_change_cursor **cursor,
    LLVS_OWNED llvs_error **error);
/** How many changes there are in all. Since 0.1. */
LLVS_API size_t llvs_change_cursor_count(LLVS_BORROWED const llvs_change_cursor *cursor);
/**
 * The next page.
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
    /** Not at the ancestor, on one side now. */
    LLVS_FORK_INSERTED = 1,
    /** Not at the ancestor, different on both sides. Conflicting. */
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
    /** On which side, for inserted, updated, removed; on which it was removed, for removed-and-updated; else none. */
    llvs_side side;
    /** 1 when an arbiter must decide. */
    llvs_bool conflicting;
    /** The value id. */
    llvs_bytes id;
    /** The versions that stored what prevails at the first version, the second and their ancestor; empty when absent there. */
    llvs_bytes first;
    llvs_bytes second;
    llvs_bytes ancestor;
    /**
     * The versions that stored what the best common ancestors hold, each once: the ancestor alone or, where several disagree (versions
     * were merged across each other), what each of them holds. A part of a value then counts as changed on a side only if it is what none
     * of these has: whoever takes an empty ancestor for an absent one loses edits.
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
    /** The store, to read values of any version by; making versions in it is allowed as well. Not to be freed. */
    llvs_store *store;
    /** The forks, conflicting or not, in byte order of their ids: llvs_merge_fork finds one. */
    const llvs_fork *const *forks;
    size_t fork_count;
} llvs_merge;
/** The fork of a value id; NULL when that is no fork. O(log n). */
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

/** What an arbiter decided; lives for the callback only. Since 0.1. */
typedef struct llvs_resolution llvs_resolution;
/**
 * Adds changes to what the arbiter decided; bytes are copied. Every conflicting fork needs one; other ids may be
 * changed, too; what is left alone the store brings over. A second change of one id replaces the first.
 * @param changes, change_count, change_size  as for llvs_store_make_version
 * Errors: LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID; nothing was added.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_resolution_add(LLVS_BORROWED llvs_resolution *resolution, LLVS_BORROWED const llvs_change *changes,
    size_t change_count, size_t change_size, LLVS_OWNED llvs_error **error);

/**
 * Decides the conflicts of merges. Safe from all threads. Since 0.1.
 *
 * There may be several common ancestors. Two devices that merge the same two versions and come to different answers, or name themselves
 * in the metadata, leave a criss-cross: both merges are built on both versions, and neither of these is *the* ancestor of what is saved
 * next. For a value that differs between the ancestors `ancestor` of its fork is empty, as it is when the value was not there;
 * `ancestors` has what each of them held. So an arbiter that looks into values (fields of a record, lines of a text) looks at all of them:
 *
 *     a side changed a part when the part is there what it is in none of `ancestors`
 *
 * and takes the part from the side that changed it; where both or neither did, from `first`, say. One that compares with `ancestor`
 * alone takes what nobody touched for changes, and loses edits. The arbiter in examples/c/branch_and_merge.c does it right.
 *
 * What is the same everywhere gives the same version: devices that resolve alike make one and the same merge version, and have
 * nothing left to exchange. So an arbiter looks at the merge and the store alone, never at a clock, at a random number or at the
 * device that it runs on, and writes its bytes in one form.
 */
typedef struct llvs_arbiter llvs_arbiter;
/** The built-in arbiters. Since 0.1. */
typedef uint32_t llvs_arbiter_kind;
enum llvs_arbiter_kind_value {
    /** Per conflict the change that was stored in the later version wins; an update beats a removal. */
    LLVS_ARBITER_MOST_RECENT_CHANGE = 1,
    /** Every conflict goes to the newer of the two versions, removals included. */
    LLVS_ARBITER_MOST_RECENT_BRANCH = 2,
    /** The first argument's side wins. Such merges depend on who makes them. */
    LLVS_ARBITER_OURS = 3,
    /** The second argument's side wins. */
    LLVS_ARBITER_THEIRS = 4
};
/** A built-in arbiter. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_arbiter_builtin(llvs_arbiter_kind kind, LLVS_OWNED llvs_arbiter **arbiter,
    LLVS_OWNED llvs_error **error);
/**
 * An arbiter that merges inside values, by rules: it keeps what both sides did. What had to be decided all the same is counted in the
 * metadata of the merge version, under "__llvs_conflicts": `{"hash":"<SHA-256 of the conflicts as JSON>","ids":[<the first 64>],"n":
 * <count>}`; under "__llvs_arbiter" such a version says `"rules"`. Values that no rules are for, and all values where there are no rules,
 * are decided as by LLVS_ARBITER_MOST_RECENT_CHANGE. NULL for an arbiter is the same as this with empty rules.
 *
 * The rules of a store are its value "__llvs_schema", which is saved, exchanged and merged like others: `{"merge":1,"ids":{"contact/":
 * {"/visits":"counter","/tags":"set"}}}`. Check it by llvs_schema_check before it is saved: rules that are not valid do not count, and the
 * newest valid ones before them do. Where rules count (`"counter"`), the same bytes stored by two devices are two events, and heads that
 * hold them are not equal.
 * @param rules    as for llvs_merge_values: by these each merge is made, instead of the store's; all devices should give the same. Empty:
 *                 by those of the store
 * @param arbiter  the arbiter; owned by the caller
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (rules that are not valid: llvs_error_path is the JSON pointer to what is wrong with them),
 * LLVS_ERROR_UNSUPPORTED (rules of a number that this library does not know), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_OUT_OF_MEMORY. A merge with
 * it fails with LLVS_ERROR_UNSUPPORTED while one of the two versions holds rules of a number that is not known. Any thread.
 * Cost of a merge: what differs, and the size of the values that both sides changed; without rules, as with
 * LLVS_ARBITER_MOST_RECENT_CHANGE. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_arbiter_rules(llvs_bytes rules, LLVS_OWNED llvs_arbiter **arbiter, LLVS_OWNED llvs_error **error);
/**
 * Resolves one merge. Since 0.1.
 *   thread     the one that merges; several at once when several merge
 *   re-entry   may call the library, the store included; no lock is held. (To save or merge through the coordinator that is
 *              merging is LLVS_ERROR_BUSY.)
 *   pointers   live for the callback only
 *   result     LLVS_OK: resolved; LLVS_PASS: the fallback decides what has no change yet; all else: the merge fails,
 *              stores nothing, and gives LLVS_ERROR_USER with what `error` was set to (by llvs_error_make; optional)
 */
typedef llvs_status (*llvs_resolve_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_merge *merge,
                                       LLVS_BORROWED llvs_resolution *resolution, LLVS_OWNED llvs_error **error);
/**
 * An arbiter of the host.
 * @param fallback  who decides after LLVS_PASS; kept alive; NULL: nobody, so that conflicts without a change fail the merge
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_arbiter_create(llvs_resolve_fn resolve, LLVS_OWNED void *payload, llvs_free_fn payload_free,
    LLVS_BORROWED llvs_arbiter *fallback, LLVS_OWNED llvs_arbiter **arbiter, LLVS_OWNED llvs_error **error);
/** What a value merger is asked; lives for the callback only. Since 0.1. */
typedef struct llvs_value_question {
    uint32_t struct_size;
    uint32_t reserved;
    /** The id of the value. */
    llvs_bytes id;
    /**
     * Where in the value, as a JSON array: names of members, `{"key":...}` for elements known by a key, `{"index":n}` for others. `[]`: it
     * is about the value as a whole.
     */
    llvs_bytes path;
    /** What was there: the bytes of a whole value, JSON of a part; NULL data where it was absent. */
    llvs_bytes base;
    /** What the side has there whose value is the more recent; as `base`. A side where it is absent is the older. */
    llvs_bytes newer;
    /** What the other side has there; as `base`. */
    llvs_bytes older;
} llvs_value_question;
/**
 * Merges what two sides made of a value, or of a place in it. Since 0.1.
 *   thread     the one that merges; several at once when several merge
 *   re-entry   may call the library, the store included; no lock is held. (To save or merge through the coordinator that is
 *              merging is LLVS_ERROR_BUSY.)
 *   pointers   live for the callback only
 *   result     LLVS_OK: one change of this id was added to the resolution (llvs_resolution_add): an insert or update with the bytes of the
 *              value, or with the JSON of the place; or a remove, for nothing. LLVS_PASS, without a change: as if nobody had been asked.
 * All else: the merge fails, stores nothing, and gives LLVS_ERROR_USER with what `error` was set to (by llvs_error_make; optional)
 */
typedef llvs_status (*llvs_merge_value_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_value_question *question,
                                           LLVS_BORROWED llvs_resolution *resolution, LLVS_OWNED llvs_error **error);
/**
 * An arbiter that merges as llvs_arbiter_rules does, and asks the host one value after the other: for each value that no rules are for and
 * that both sides changed, or one changed and the other removed; and for each place that both sides changed and that rules leave to it
 * (`{"pick":"arbiter"}`). So values that are no JSON can be merged by what is in them.
 *
 * It is asked for the base of a merge as well where versions were merged across each other and have several common ancestors: merging what
 * these hold gives what both sides started from. So it need not know of such histories. It looks at the question alone, answers the same on
 * all devices and each time, and writes its bytes in one form; a merge that it decided in a store with rules says `"host"` under
 * "__llvs_arbiter". If devices answer differently after all, one answer stands in the end (llvs_store_merge).
 * @param rules    as for llvs_arbiter_rules
 * @param arbiter  the arbiter; owned by the caller; released by llvs_arbiter_free
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED, LLVS_ERROR_TOO_LARGE, as llvs_arbiter_rules. A merge with it also gives
 * LLVS_ERROR_UNRESOLVED_CONFLICT (LLVS_OK without one change of the id), and LLVS_ERROR_INVALID_ARGUMENT (an answer for a place that is no
 * JSON). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_value_merger_create(llvs_merge_value_fn merge, LLVS_OWNED void *payload, llvs_free_fn payload_free,
    llvs_bytes rules, LLVS_OWNED llvs_arbiter **arbiter, LLVS_OWNED llvs_error **error);
/** Releases the arbiter. Since 0.1. */
LLVS_API void llvs_arbiter_free(LLVS_OWNED llvs_arbiter *arbiter);

/** Whether versions without a common ancestor may be merged. Since 0.1. */
typedef uint32_t llvs_relation;
enum llvs_relation_value {
    /** The default: three-way when there is one, else two-way. */
    LLVS_RELATION_ANY = 0,
    /** None is LLVS_ERROR_NO_COMMON_ANCESTOR. */
    LLVS_RELATION_RELATED = 1,
    /** Always two-way, as if the ancestor were empty. */
    LLVS_RELATION_UNRELATED = 2
};
/** Which heads to merge. Since 0.1. */
typedef uint32_t llvs_head_selection;
enum llvs_head_selection_value {
    /**
     * The default: all without a branch, which are the versions without one that no other such version has among its ancestors. A version
     * on a branch hides nothing of the line that it is built on.
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
    /** For llvs_store_revert and llvs_store_cherry_pick of a merge: against which of its predecessors; LLVS_SIDE_NONE: the first. */
    llvs_side parent;
    /** Names for the selection, UTF-8. */
    const llvs_bytes *branches;
    size_t branch_count;
    /** Of the new version. */
    const llvs_metadata_entry *metadata;
    size_t metadata_count;
    /**
     * Progress and cancellation; may be NULL. Where heads are merged, progress is in heads (LLVS_STAGE_ADDING); where two versions are, and
     * where one is undone, in values looked at (LLVS_STAGE_READING). Cancelled, nothing is stored.
     */
    const llvs_control *control;
    /** For llvs_coordinator_undo: this version, whoever saved it, instead of the last save of this device; empty: that. */
    llvs_bytes version;
} llvs_merge_options;
#define LLVS_MERGE_OPTIONS_INIT { (uint32_t)sizeof(llvs_merge_options), 0, 0, 0, 0, 0, 0, 0, 0, LLVS_NONE_INIT }

/**
 * Merges two versions. When one is an ancestor of the other, or both are the same, nothing is stored and the
 * descendant is the result. The result does not depend on the order of the arguments (save what an arbiter makes of ours and theirs).
 * A side changed a value if the value has other bytes there than at the common ancestor. Whoever stored the same bytes anew, or changed a
 * value and put the bytes back, changed nothing, and the change of the other side stands, however old it is.
 * A value that holds the same bytes on both sides is no fork, although llvs_store_differences tells the two apart when each side stored it;
 * but where rules of the store count it (llvs_arbiter_rules).
 * The arbiter is not asked, and the new version has no metadata but "__llvs_arbiter", when both hold the same bytes under each id, and when
 * they hold nothing but merges since their common ancestors, all of what was saved on both sides: then one of the two states stands as a
 * whole. It is that of the version that says `"host"` under "__llvs_arbiter" (an arbiter of the host decided, in a store that has rules)
 * before `"rules"` before one that says nothing; where both say the same, the one that has the value stored later under the first id, in
 * byte order, at which they differ; a value counts as later than none.
 * @param arbiter  decides conflicts; NULL: the rules of the store, or most recent change where it has none (llvs_arbiter_rules)
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
 * Merges a version and the selected heads, all of them or none. A head that cannot be merged since it, or what it is built on, is damaged
 * here is left out: it stays a head, the log says so (a warning), and it is merged once a retrieve has repaired it. Where `into` is
 * damaged, or built on what is, that is LLVS_ERROR_DAMAGED.
 * @param into     a version to which the heads are added
 * @param version  a list of the one resulting version; NULL when nothing changed; may be NULL
 * Errors: as llvs_store_merge. Cost: with a built-in arbiter, what each head recorded since it parted, and the
 * number of versions once. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_merge_heads(LLVS_BORROWED llvs_store *store, llvs_bytes into,
    LLVS_BORROWED llvs_arbiter *arbiter, LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_version_list **version,
    LLVS_OWNED llvs_error **error);
/** What a conflict was about. Since 0.1. */
typedef uint32_t llvs_conflict_kind;
enum llvs_conflict_kind_value {
    /** Both sides changed a value that is not merged inside: one of them stands. */
    LLVS_CONFLICT_PICK = 1,
    /**
     * One side removed what the other changed. Of a value, one side is absent. Of lines in a text, both sides are JSON strings with whole
     * lines, of which one may be empty; the changed lines stay.
     */
    LLVS_CONFLICT_DELETE_EDIT = 2,
    /** The sides are of different types, or of one that the rule is not for. */
    LLVS_CONFLICT_TYPE = 3,
    /** A side is no JSON that can be merged. */
    LLVS_CONFLICT_NOT_JSON = 4,
    /** Both sides changed the same lines of a text differently. The conflict's values are these lines, whole, as JSON strings. */
    LLVS_CONFLICT_OVERLAP = 5,
    /** Both sides moved an element of a list, to different places. Of more than 64 of one list there is one conflict, of that list. */
    LLVS_CONFLICT_MOVE_MOVE = 6,
    /** The sides hold two values between which an earlier merge had to choose. */
    LLVS_CONFLICT_CONTESTED = 7,
    /** A counter is outside of the bounds that its rule gives. It is told only: both sides are in what stands. */
    LLVS_CONFLICT_BOUND = 8,
    /**
     * A limit was reached. Of a text: it was compared less finely, since it is too different; or it has too many parts, and one side
     * stands. Of a counter: the sum has too many digits, and one side stands. Of the whole value (the path is []) one of two things:
     *
     * - The merged value would be too large, or could not be merged again. The newer side stands, the older one where the newer removed it.
     * - The value is merged, and has too many conflicts: they come to more than four times the three inputs and 1 MiB. None of them is told
     *   one by one, anywhere: not by what merges, nor by llvs_store_explain and llvs_store_open_conflicts. This one conflict is in their
     *   place, also in the digest of the merge version, and has the whole values: who has to know more compares these.
     */
    LLVS_CONFLICT_LIMIT = 9,
    /** Both sides changed what the rules leave to a value merger of the host; without one the newer stands. */
    LLVS_CONFLICT_ARBITER = 10
};
/** What a merge decided where both sides had changed the same. Borrowed from what it was told with. Since 0.1. */
typedef struct llvs_conflict {
    uint32_t struct_size;
    llvs_conflict_kind kind;
    /** Where in the value, as a JSON array: names of members, `{"key":...}` for elements known by a key, `{"index":n}` for others. */
    llvs_bytes path;
    /** What was there, as JSON; NULL data where it was absent. Bytes that are no JSON are `{"sha256":"...","size":n}`. */
    llvs_bytes base;
    /** What the newer side has there; as `base`. */
    llvs_bytes newer;
    /** What the older side has there; as `base`. */
    llvs_bytes older;
    /** What stands; as `base`. */
    llvs_bytes result;
    /** The prefix of ids under which the rule stands that holds there; NULL data where none does. */
    llvs_bytes rule_prefix;
    /** Its pattern; NULL data where no rule holds. */
    llvs_bytes rule_pattern;
    /** The id of the value; empty from llvs_merge_values without an id. */
    llvs_bytes id;
    /** The merge version that decided it; empty where there is none. */
    llvs_bytes version;
} llvs_conflict;
/** What undoing a version, or picking one, came to; immutable, owned. Since 0.1. */
typedef struct llvs_revert_result {
    uint32_t struct_size;
    /** From llvs_store_cherry_pick: rules count among the values that were picked; once both lines are merged, that counts twice. */
    llvs_bool counts;
    /** The new version; NULL when there was nothing left to undo, and nothing was stored. */
    const llvs_version_info *version;
    /**
     * The ids of the values that were changed, in byte order: those of which something, or all, is again as it was before the version; of a
     * pick, those that took over something of it.
     */
    const llvs_bytes *undone;
    size_t undone_count;
    /**
     * The ids of the values of which the version changed something that was changed again since, to something else than it was before it,
     * in byte order: that stays. Where rules merge inside a value it may be in both lists. Also those to which an undone version added
     * members while it brought them into a later form: these stay, too. And those of which it is not known what lost against the version
     * in a merge: a host decided that.
     */
    const llvs_bytes *superseded;
    size_t superseded_count;
    /** What had to be decided, in byte order of the ids; NULL behind the last. */
    const llvs_conflict *const *conflicts;
    size_t conflict_count;
    /** The versions that were undone, newest first. */
    const llvs_bytes *versions;
    size_t version_count;
    /** From llvs_coordinator_undo and llvs_coordinator_redo: as the save was described; empty when it was not. */
    llvs_bytes description;
} llvs_revert_result;
/** Releases the result. Since 0.1. */
LLVS_API void llvs_revert_result_free(LLVS_OWNED llvs_revert_result *result);
/**
 * Records the inverse of a version's changes on top of a head: undo, without losing what came since. A merge with the version as the base,
 * the head as the newer side and the version's predecessor as the other: values that rules of the store are for are merged inside, so what
 * came since stays, member by member; others are taken back as a whole, or not at all. What was removed since stays removed. If the version
 * won a conflict in a later merge, the change that lost is there again.
 * @param version   whose changes to undo
 * @param at        the new version's predecessor
 * @param options   parent, metadata and control; may be NULL
 * @param result    the new version, and what was undone and what was not; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_UNKNOWN_PREDECESSOR, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_METADATA,
 * LLVS_ERROR_INVALID_ARGUMENT (a second predecessor that is not there), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback),
 * storage errors. Nothing is stored then. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_revert(LLVS_BORROWED llvs_store *store, llvs_bytes version, llvs_bytes at,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_revert_result **result, LLVS_OWNED llvs_error **error);
/**
 * Does what a version changed once more on top of a head, as a merge with the version's predecessor as the base and the version as the
 * newer side. What a counter counted counts twice when the two lines are merged later (`counts`): pick what will not be merged, or pick no
 * counters.
 * @param onto      the new version's predecessor
 * @param result    the new version, and the ids that took over something, those of which something else stands, and conflicts; may be NULL
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
    /** There is no value. */
    LLVS_MERGED_ABSENT = 0,
    /** They are the newer side's, byte for byte. */
    LLVS_MERGED_NEWER = 1,
    /** They are the older side's, byte for byte. */
    LLVS_MERGED_OLDER = 2,
    /** They are neither's. */
    LLVS_MERGED_COMPUTED = 3
};
/** What came of merging a value. Released by llvs_merged_value_free. Since 0.1. */
typedef struct llvs_merged_value {
    uint32_t struct_size;
    llvs_merged_source source;
    /** The bytes; NULL data when there is no value. */
    llvs_bytes data;
    /** In the order in which they were met; NULL behind the last. */
    const llvs_conflict *const *conflicts;
    size_t conflict_count;
    /** SHA-256 of the conflicts as canonical JSON, 64 hexadecimal digits; empty when there are none. */
    llvs_bytes digest;
} llvs_merged_value;
/** How to merge a value. Since 0.1. */
typedef struct llvs_merge_values_options {
    uint32_t struct_size;
    /**
     * The newer side is what an application wants to save, the base what it made of the value that it had read, unchanged, and the older
     * side that value as it is: what the application does not know of is kept, what it removed is gone, and what it decided stands.
     */
    llvs_bool saving;
    /** The id of the value: which of the rules are for it, and the `id` in what `digest` is made of. May be empty. */
    llvs_bytes id;
    /** Progress (LLVS_STAGE_READING) and cancellation; may be NULL. */
    const llvs_control *control;
} llvs_merge_values_options;
#define LLVS_MERGE_VALUES_OPTIONS_INIT { (uint32_t)sizeof(llvs_merge_values_options), 0, LLVS_NONE_INIT, 0 }
/**
 * Merges what two sides made of a value: inside it, where it is JSON or the rules say that it is text. No store is needed, and the same
 * arguments give the same bytes on every machine. Every value gives a result; what had to be decided is told in conflicts.
 * @param rules    JSON: a rule (`"auto"`, `{"as":"counter"}`), patterns with rules (`{"/tags":"set"}`), or a whole value of the kind that
 * is kept under "__llvs_schema" (`{"merge":1,"ids":{...}}`), of which those for the options' id hold; empty: `"auto"`
 * @param base     the value that both sides had; NULL when it was absent
 * @param newer    what the side has whose change is the more recent; NULL when it is absent
 * @param older    what the other side has; NULL when it is absent
 * @param options  may be NULL
 * @param merged   the result; owned by the caller
 * Any thread. Errors: LLVS_ERROR_INVALID_ARGUMENT (rules that are not valid: llvs_error_path is the JSON pointer to what is wrong with
 * them), LLVS_ERROR_UNSUPPORTED (rules of a number that this library does not know), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_CANCELLED,
 * LLVS_ERROR_USER (from the progress callback), LLVS_ERROR_OUT_OF_MEMORY.
 * Cost: the size of what is merged; a value that one side alone changed is not looked into. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_merge_values(llvs_bytes rules, LLVS_BORROWED const llvs_bytes *base,
    LLVS_BORROWED const llvs_bytes *newer, LLVS_BORROWED const llvs_bytes *older,
    LLVS_BORROWED const llvs_merge_values_options *options, LLVS_OWNED llvs_merged_value **merged, LLVS_OWNED llvs_error **error);
/** Conflicts of a merge; immutable, owned. Since 0.1. */
typedef struct llvs_conflict_list {
    uint32_t struct_size;
    /**
     * From llvs_store_explain: whether these are the conflicts that the merge version recorded. If not, it was made by other rules than
     * those of the store, or by an arbiter of the host. Else 1.
     */
    llvs_bool recorded;
    size_t count;
    /** In byte order of the ids of the values, and for each in the order in which they were met; NULL behind the last. */
    const llvs_conflict *const *items;
    /** SHA-256 of those that rules decided, 64 hexadecimal digits, as merge versions record it; empty when there are none. */
    llvs_bytes digest;
} llvs_conflict_list;
/** Releases the list. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_conflict_list_free(LLVS_OWNED llvs_conflict_list *list);
/** Releases a merged value with all that it leads to. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_merged_value_free(LLVS_OWNED llvs_merged_value *merged);
/**
 * Checks rules as they are kept under "__llvs_schema".
 * @param rules  a whole value: `{"merge":1,"ids":{...}}`
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED (the number of the rules is not known), each with the JSON pointer to what is
 * wrong as llvs_error_path, and why as its message; LLVS_ERROR_TOO_LARGE, LLVS_ERROR_OUT_OF_MEMORY. Any thread. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_schema_check(llvs_bytes rules, LLVS_OWNED llvs_error **error);
/** How to look for conflicts. Since 0.1. */
typedef struct llvs_conflict_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** Only those of this value; empty: of all. */
    llvs_bytes value_id;
    /** From llvs_arbiter_rules: by its rules instead of the store's; NULL: by the store's. */
    llvs_arbiter *arbiter;
    /** Progress (LLVS_STAGE_READING, in values looked at) and cancellation; may be NULL. */
    const llvs_control *control;
} llvs_conflict_options;
#define LLVS_CONFLICT_OPTIONS_INIT { (uint32_t)sizeof(llvs_conflict_options), 0, LLVS_NONE_INIT, 0, 0 }
/**
 * The conflicts that a merge of two versions by rules would have to decide, and how it would. Nothing is stored. Those of values that no
 * rules are for are among them: their path is `[]`, and they are of the kind LLVS_CONFLICT_PICK or LLVS_CONFLICT_DELETE_EDIT.
 *
 * There are none when one version is an ancestor of the other, when both hold the same, and where nobody would be asked (llvs_store_merge).
 * @param options    may be NULL
 * @param conflicts  the list; owned by the caller
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_ARGUMENT (another
 * arbiter), LLVS_ERROR_UNSUPPORTED (rules of a number that is not known), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress
 * callback), storage errors. Any thread. Cost: that of the merge, and the values that both sides changed. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_conflicts(LLVS_BORROWED llvs_store *store, llvs_bytes ours, llvs_bytes theirs,
    LLVS_BORROWED const llvs_conflict_options *options, LLVS_OWNED llvs_conflict_list **conflicts, LLVS_OWNED llvs_error **error);
/**
 * What a merge version decided: found by merging its two predecessors again. Where no rules decided, `result` is what the version holds.
 * Of a version that is no merge the list is empty.
 * Parameters, errors and cost: as llvs_store_conflicts. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_explain(LLVS_BORROWED llvs_store *store, llvs_bytes version,
    LLVS_BORROWED const llvs_conflict_options *options, LLVS_OWNED llvs_conflict_list **conflicts, LLVS_OWNED llvs_error **error);
/**
 * The conflicts that are open at a version: merges among its ancestors, or the version itself, decided them by rules, what they made still
 * stands there, nobody edited that place since, and nobody chose (llvs_store_choose). Oldest merge first; one that several merges decided
 * is there once. To show to a person. Parameters and errors: as llvs_store_conflicts. Cost: the merges among the ancestors, merging those
 * again that recorded conflicts, and reading the later versions of the values in which something of that stands: once for each 64 such
 * merges, with a look at each place that is left. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_open_conflicts(LLVS_BORROWED llvs_store *store, llvs_bytes at,
    LLVS_BORROWED const llvs_conflict_options *options, LLVS_OWNED llvs_conflict_list **conflicts, LLVS_OWNED llvs_error **error);
/** What decides an open conflict. Since 0.1. */
typedef uint32_t llvs_choice;
enum llvs_choice_value {
    /** What the more recent side had. */
    LLVS_CHOICE_NEWER = 1,
    /** What the other side had. */
    LLVS_CHOICE_OLDER = 2,
    /** What stands. */
    LLVS_CHOICE_RESULT = 3
};
/**
 * The changes that close an open conflict. Nothing is stored: save them on `at`, by llvs_store_make_version or, with `at` as the version
 * that is expected, llvs_coordinator_save. Where something else than what stands is chosen, it is the value with that in its place; else it
 * is a value under an id that begins with "__llvs_chosen/", by which all devices learn that somebody looked. Of a part of a text it is
 * both, where what stood there is a part of what was chosen. Of the kinds LLVS_CONFLICT_MOVE_MOVE and LLVS_CONFLICT_BOUND, and of
 * LLVS_CONFLICT_DELETE_EDIT at a counter, only what stands can be chosen: save the list, or the number, that is wanted.
 * @param at        a version, mostly the current one
 * @param conflict  as llvs_store_explain or llvs_store_open_conflicts told it: `id`, `version`, `kind`, `path`, `base`, `newer`, `older`,
 *                  `result` and the rule
 * @param changes   the list of changes; owned by the caller
 * Errors: LLVS_ERROR_MOVED (at that version something else stands there by now, or a side of a part of a text was chosen),
 * LLVS_ERROR_INVALID_ARGUMENT (a conflict without a version, or without the sides that its kind has; a side of a kind that has none to
 * choose; a choice that is not clear), LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Any thread. Cost: the
 * size of the value. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_choose(LLVS_BORROWED llvs_store *store, llvs_bytes at,
    LLVS_BORROWED const llvs_conflict *conflict, llvs_choice choice, LLVS_OWNED llvs_change_list **changes, LLVS_OWNED llvs_error **error);
/** The rules of a store, or what registering more did; immutable, owned. Since 0.1. */
typedef struct llvs_schema {
    uint32_t struct_size;
    /** Whether `data` is another value than what prevails under "__llvs_schema": it was to be saved, or was saved. */
    llvs_bool changed;
    /** The rules that count, with those that were given added, as JSON; NULL data where there are none. */
    llvs_bytes data;
    /** The version that stored those that counted before; empty where there were none. */
    llvs_bytes stored_version;
    /** Why what prevails does not count; empty when it does, or nothing prevails. `data` then is the newest valid value before it. */
    llvs_bytes problem;
    /** Where in it, as a JSON pointer. */
    llvs_bytes problem_path;
    /**
     * Where the rules given say something else than those of the store: `path` is that place, `newer` and `result` what the store holds,
     * which stands, `older` what was given. NULL behind the last.
     */
    const llvs_conflict *const *contradictions;
    size_t contradiction_count;
    /** The version that was made, by llvs_coordinator_register_schema only; NULL when none was. */
    const llvs_version_info *version;
} llvs_schema;
/** Releases the schema with all that it leads to. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_schema_free(LLVS_OWNED llvs_schema *schema);
/**
 * The rules of a store at a version, and what comes of adding others to them. Nothing is stored.
 *
 * What is added: prefixes and patterns that the store has not got, and members of other sections (`"models"`, `"indexes"`). Where both have
 * a rule for one pattern and the two do not mean the same, the store's stands and is told as a contradiction: to change it after all, save
 * the value "__llvs_schema" with what you want there.
 * @param at      a version
 * @param rules   to be added: a whole value of the kind that is kept under "__llvs_schema"; empty: none
 * @param schema  the result; owned by the caller
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_ARGUMENT (rules that are not valid: llvs_error_path
 * is the JSON pointer to what is wrong with them), LLVS_ERROR_UNSUPPORTED (rules of a number that is not known: those given, or, when some
 * are given, the store's), storage errors. Any thread. Cost: the size of the rules. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_schema(LLVS_BORROWED llvs_store *store, llvs_bytes at, llvs_bytes rules,
    LLVS_OWNED llvs_schema **schema, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Exchange
 * ------------------------------------------------------------------------------------------------ */

/** Moves versions between a store and a place that others reach, both ways, never merging. Safe from all threads. Since 0.1. */
typedef struct llvs_exchange llvs_exchange;
/** A transport of the host; see "A transport of the host" below. Since 0.1. */
typedef struct llvs_transport llvs_transport;

/** Where a callback of a storage, a transport or a decoder puts what it was asked for; lives for the callback only. Since 0.1. */
typedef struct llvs_reply llvs_reply;

/**
 * Decompresses what another implementation's stores hold of values that Apple systems compressed ("LLZF", then LZFSE).
 * @param data   what follows "LLZF"
 * @param reply  takes the bytes that were there (llvs_reply_set, question 0)
 *
 *   thread     that of the call that imports or restores
 *   re-entry   may call the library, but not close the store or the exchange
 *   pointers   good during the callback
 *   result     LLVS_OK, with the bytes. LLVS_PASS: it is no such data, since it goes on after its end, say, or ends before, and is taken as
 *              it is, with its "LLZF". All else, also LLVS_OK without bytes: the call fails with LLVS_ERROR_USER and what `error` was set
 *              to. Since 0.1.
 */
typedef llvs_status (*llvs_decode_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *data, LLVS_BORROWED llvs_reply *reply,
    LLVS_OWNED llvs_error **error);

/**
 * Asked who the exchange is, so that credentials can stay in a key store of the host. Before the first request to a server, and once more
 * when what it gave was refused there.
 * @param place  the address, without a query, for a message or to look them up by
 * @param again  0: for the first time; 1: what was given is refused, or no longer taken: give others, as a refreshed token, or none
 * @param reply  takes the user (question 0) and the password (1), or a token (2), in UTF-8 without control characters; copied. Without an
 *               answer the exchange goes on without credentials
 *
 *   thread     that of the call that exchanges
 *   re-entry   may call the library, but not the exchange
 *   pointers   good during the callback
 *   result     LLVS_OK; all else: the call fails with LLVS_ERROR_USER and what `error` was set to. Since 0.1.
 */
typedef llvs_status (*llvs_credentials_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *place, llvs_bool again,
    LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);

/** What is asked of the callback that keeps tokens. Since 0.1. */
typedef uint32_t llvs_tokens_step;
enum llvs_tokens_step_value {
    /** Give them (llvs_reply_set, question 0): JSON with the members that a `token_file` has. Without an answer there are none. */
    LLVS_TOKENS_READ = 0,
    /** Keep what is given in their place, for good: it is used once this has returned LLVS_OK. */
    LLVS_TOKENS_KEEP = 1,
    /** Begin a renewal, without waiting. LLVS_PASS: another thread or process that has the same tokens is within one; then this is asked
        again in 20 milliseconds, until it is cancelled, or 300 seconds have passed (LLVS_ERROR_BUSY). */
    LLVS_TOKENS_LOCK = 2,
    /** The renewal has ended. What it returns is not looked at. */
    LLVS_TOKENS_UNLOCK = 3
};
/**
 * Keeps the tokens of an account at a cloud drive, or of CloudKit, in a key store of the host, in the place of a `token_file`: the library
 * renews them, and nothing new is used before it is kept. Tokens that serve once are lost when two renew them at once: that is what the
 * lock is for.
 * @param step    one of llvs_tokens_step_value
 * @param tokens  with LLVS_TOKENS_KEEP: JSON, a secret; else NULL
 * @param reply   takes the answer of LLVS_TOKENS_READ
 *
 *   thread     that of the call that exchanges
 *   re-entry   may call the library, but not the exchange
 *   pointers   good during the callback
 *   result     LLVS_OK; LLVS_PASS as said; all else: the call fails with LLVS_ERROR_USER and what `error` was set to. Since 0.1.
 */
typedef llvs_status (*llvs_tokens_fn)(LLVS_BORROWED void *payload, llvs_tokens_step step, LLVS_BORROWED const llvs_bytes *tokens,
    LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);

/** How versions lie at the place of an exchange. Since 0.1. */
typedef uint32_t llvs_layout;
enum llvs_layout_value {
    /** What the URL says; unless it does, a folder is interchange, and a server is what is there, packed when nothing is. */
    LLVS_LAYOUT_AUTOMATIC = 0,
    /** Two files for each version, which other implementations read (docs/interchange.md). */
    LLVS_LAYOUT_INTERCHANGE = 1,
    /** Many versions to a file, for few requests (docs/pack-format.md). */
    LLVS_LAYOUT_PACKED = 2,
    /** Both, so that devices with packs and other implementations meet: of a place that is empty or has single files. Not with keys. */
    LLVS_LAYOUT_BRIDGED = 3
};

/** How to open an exchange. Since 0.1. */
typedef struct llvs_exchange_options {
    uint32_t struct_size;
    /** Of what a file: exchange writes. LLVS_DURABILITY_FULL: on disk before anybody sees it. LLVS_DURABILITY_NORMAL: faster; a power
        cut may leave files without their bytes, which others report as problems and which whoever has the version writes anew. */
    llvs_durability durability;
    /** A transport of the host, which the exchange keeps alive, in the place of a URL; else NULL. It serves one exchange at a time. Of one
        that llvs_transport_create_on_files made `layout` and the keys below count, too. */
    llvs_transport *host_transport;
    /** 1: a folder that is not there is LLVS_ERROR_NOT_FOUND (over a network when it is first listed); 0: it is made. */
    llvs_bool must_exist;
    /**
     * 1: llvs_exchange_send lists value ids that another implementation cannot hold or tell apart (docs/interchange.md) as problems with
     * LLVS_ERROR_UNPORTABLE_ID, each once for each exchange, named by the version; the versions are sent all the same. Costs a look at
     * the changes of what is sent, and once, when an id is not ASCII, at the ids of all heads.
     */
    llvs_bool report_unportable;
    /** For llvs_exchange_restore_snapshot, when another implementation's snapshot has compressed values in it; may be NULL. */
    llvs_decode_fn decode;
    /** See "Callbacks" above; freed with the exchange, or when it cannot be opened. */
    void *decode_payload;
    llvs_free_fn decode_free;
    /** For servers: a user and a password, or a token ("Authorization: Bearer"). For s3: a key's id, the secret key, and a session's token
        where there is one; all empty: those of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), else of the
        shared credentials file (~/.aws/credentials, AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE). Empty: none. Copied; never in a message or a
        log. They go to the host of the URL alone, and encrypted, but on this machine. */
    llvs_bytes user;
    llvs_bytes password;
    llvs_bytes token;
    /** The path of a file with certificates (PEM) of the authorities that are trusted; empty: the system's. */
    llvs_bytes ca_file;
    /** The URL of a proxy; empty: as the environment says (https_proxy, http_proxy, no_proxy), and none for this machine. */
    llvs_bytes proxy;
    /** Milliseconds without a byte after which a transfer is given up, in whole seconds; 0: 30,000. */
    uint32_t timeout;
    /** How versions lie there, where the URL does not say so. */
    llvs_layout layout;
    /** In the place of `user`, `password` and `token`; may be NULL. */
    llvs_credentials_fn credentials;
    /** See "Callbacks" above; freed with the exchange, or when it cannot be opened. */
    void *credentials_payload;
    llvs_free_fn credentials_free;
    /** For a cloud drive (gdrive:, onedrive:, box:, pcloud:), in the place of all credentials above: the path of a file with OAuth tokens
        in JSON (`access_token`, `refresh_token`, `client_id`, `client_secret`, `token_uri`). One that is refused is renewed, by one thread
        of all processes at a time, and is in the file before it is used: docs/cloud-drives.md. For CloudKit (cloudkit:) a file with
        `key_id` and `private_key`, or `api_token` and `web_auth_token`. Empty: none. */
    llvs_bytes token_file;
    /**
     * What is there is encrypted (docs/encryption.md), and opened by `passphrase` or one of `identities`; then the layout is packed. An
     * empty place is made so by the first llvs_exchange_send with something to send, which waits 10 seconds, for the passphrase, the
     * identities, and the `recipients` beside them; at a place that has keys the recipients say nothing. A place in clear is refused
     * and so is one that is encrypted without these (LLVS_ERROR_KEY_MISSING): nothing is ever sent in clear to
     * one that has keys. All are read when the exchange is opened, kept in memory that is wiped, and stand in no message and no log.
     * "age1...", 0 to 250; ASCII. NULL when there are none.
     */
    const llvs_bytes *recipients;
    size_t recipient_count;
    /** "AGE-SECRET-KEY-1...", 0 to 512; ASCII. NULL when there are none. */
    const llvs_bytes *identities;
    size_t identity_count;
    /** 1 to 1024 bytes, UTF-8 as it is given (normalise it before); empty: none. Opening takes 64 MiB of memory for a moment. */
    llvs_bytes passphrase;
    /** In the place of `token_file`: the host keeps the tokens, and the library renews them there; may be NULL. */
    llvs_tokens_fn tokens;
    /** See "Callbacks" above; freed with the exchange, or when it cannot be opened. */
    void *tokens_payload;
    llvs_free_fn tokens_free;
    /** For sftp: the path of the file with the user's private key, which `password` opens where it has one. Empty: `password` is the
        user's; without that, too, the keys of the ssh-agent are offered. */
    llvs_bytes key_file;
    /** For sftp: the path of the file with the keys of hosts that are trusted; empty: ~/.ssh/known_hosts. A host that is not in there is
        refused. */
    llvs_bytes known_hosts;
    /** What this device is called, for people who look at who writes to a place in packs (llvs_remote_writer): 1 to 128 bytes of UTF-8
        without control characters and marks of direction; goes with the next send that has something to send. Who can read the place can
        read it. Empty: it says nothing. */
    llvs_bytes device_name;
    /**
     * 1: no other implementation reads the place, as the caller knows. 0: while the exchange is open, and the place has two files for each
     * version (LLVS_LAYOUT_INTERCHANGE, LLVS_LAYOUT_BRIDGED), saving into the store is LLVS_ERROR_UNPORTABLE_ID for what another
     * implementation fails at for good: a new value id that would take more than 255 bytes in its file names or holds a NUL, and metadata
     * with two keys that differ by Unicode's normalization alone (docs/interchange.md). What comes from elsewhere is sent all the same.
     * A place of a `host_transport` that carries versions, and one in memory, refuse nothing.
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
 * @param url      "file:///absolute/path": a shared folder (made when it is not there); "memory:name": a place in this
 *                 process, shared by all who give the name; "https+webdav://host/path/": a folder on a WebDAV server, which is made
 *                 when it is not there ("http+webdav:" on this machine only);
 *                 "s3://bucket/prefix?endpoint=https://host&region=eu-west-1&addressing=path": objects of an S3-compatible service;
 *                 without an endpoint Amazon's, without a region AWS_REGION, AWS_DEFAULT_REGION or us-east-1; addressing is "path" with
 *                 an endpoint, "virtual" without, unless it is said; "sftp://host/path/": a folder on an SSH server, by a `user` and a
 *                 `key_file`, a `password` or the ssh-agent, made when it is not there ("sftp://host/~/path/": below the user's own);
 *                 "gdrive:///path/to/folder", "onedrive:///path/to/folder",
 *                 "box:///path/to/folder", "pcloud:///path/to/folder?region=eu": a folder of Google Drive, OneDrive, Box or pCloud,
 *                 by a `token_file`, `tokens`, a `token` or `credentials`, made when it is not there (docs/cloud-drives.md);
 *                 "cloudkit://container/production/private?store=ID&zone=name": records of CloudKit, by a `token_file` or `tokens`. A
 *                 query of all but "memory:" may say layout=packed (many versions to a file, docs/sync.md) or layout=interchange (two files
 *                 for each, which other implementations read); unless it does, a folder is interchange, a server is what is there, and
 *                 packed when nothing is. UTF-8; %XX stands for a byte. No user and no password: these are options. Empty with a
 *                 `host_transport`
 * @param options  may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (no URL, or a folder that is the store or lies in it), LLVS_ERROR_UNSUPPORTED (scheme),
 * LLVS_ERROR_NOT_A_DIRECTORY, LLVS_ERROR_PERMISSION, LLVS_ERROR_READ_ONLY (a medium that is),
 * LLVS_ERROR_NO_SPACE, LLVS_ERROR_IO, LLVS_ERROR_TOO_MANY_FILES, LLVS_ERROR_BUSY (a transport that serves another exchange),
 * LLVS_ERROR_NOT_FOUND, LLVS_ERROR_TRANSPORT, LLVS_ERROR_KEY_MISSING (a folder that is encrypted, without keys). Of a server nothing is
 * asked: whether it can be reached, and whether the keys fit, shows when it is exchanged: LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEY_MISSING,
 * LLVS_ERROR_KEYS_FORKED (docs/encryption.md).
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_open(LLVS_BORROWED llvs_store *store, llvs_bytes url,
    LLVS_BORROWED const llvs_exchange_options *options, LLVS_OWNED llvs_exchange **exchange, LLVS_OWNED llvs_error **error);
/** The URL that the exchange was opened with; empty when it goes through a `host_transport`. Borrowed from the exchange. Since 0.1. */
LLVS_API llvs_bytes llvs_exchange_url(LLVS_BORROWED const llvs_exchange *exchange);
/** Ends the exchange and its observations; later calls give LLVS_ERROR_CLOSED. Closing again is LLVS_OK. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_close(LLVS_BORROWED llvs_exchange *exchange, LLVS_OWNED llvs_error **error);
/** Closes and releases the exchange. Since 0.1. */
LLVS_API void llvs_exchange_free(LLVS_OWNED llvs_exchange *exchange);

/** Something that could not be exchanged, and why. It held back only what depends on it. Since 0.1. */
typedef struct llvs_problem {
    uint32_t struct_size;
    llvs_status code;
    /** The version id or file name. */
    llvs_bytes name;
    llvs_bytes message;
} llvs_problem;
/** What became of one of the exchanges of a coordinator. Since 0.1. */
typedef struct llvs_exchanged {
    uint32_t struct_size;
    uint32_t reserved;
    /** As it was given to llvs_coordinator_attach: its URL or name. */
    llvs_bytes place;
    /** What it did, also when it failed in the end. */
    const struct llvs_exchange_result *result;
    /** What ended it; NULL when nothing did. Borrowed from the result. */
    const llvs_error *error;
} llvs_exchanged;
/** What an exchange did; immutable, owned. Since 0.1. */
typedef struct llvs_exchange_result {
    uint32_t struct_size;
    /** Of a coordinator: whether the call moved the current version. */
    llvs_bool moved;
    /** The ids of the versions that were added here. */
    const llvs_bytes *retrieved;
    size_t retrieved_count;
    /** The ids of the versions that were sent. */
    const llvs_bytes *sent;
    size_t sent_count;
    /** The ids of the versions that were here and damaged, and are whole again: see llvs_exchange_retrieve. */
    const llvs_bytes *repaired;
    size_t repaired_count;
    /** What could not be exchanged. */
    const llvs_problem *const *problems;
    size_t problem_count;
    /** Of a coordinator: the current version before the exchange, and behind it; else empty. */
    llvs_bytes from;
    llvs_bytes to;
    /** Of a coordinator: the same for each exchange that had its turn, in the order of attaching; else NULL. */
    const llvs_exchanged *const *exchanges;
    size_t exchange_count;
} llvs_exchange_result;
/** Releases the result. Since 0.1. */
LLVS_API void llvs_exchange_result_free(LLVS_OWNED llvs_exchange_result *result);

/**
 * Adds to the store what the other side has and the store lacks. What cannot be added (damaged, incomplete, foreign) is a
 * problem in the result, not an error. May be interrupted and run again at any time.
 *
 * Repairs, too: versions of the store in which reading, or llvs_store_verify, met damage through any use of this store handle are fetched
 * as well, and what is damaged of them is written anew. What is whole of such a version must be the same there, else it is a problem
 * (LLVS_ERROR_VERSION_MISMATCH), and nothing of it is changed. So is what keeps one from being repaired (LLVS_ERROR_DAMAGED): a folder in
 * the place of a value's file, or a file that may not be read.
 * @param control  progress and cancellation; may be NULL
 * @param result   may be NULL
 * Errors: LLVS_ERROR_TRANSPORT, LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback), storage
 * errors.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_retrieve(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Retrieves as llvs_exchange_retrieve does, and fetches as well what the store has already, which otherwise nobody looks at again. A
 * file there that is damaged is a problem in the result, and the next llvs_exchange_send of this exchange writes the two files of
 * that version anew. Files that are whole and tell of another version than the store has are LLVS_ERROR_VERSION_MISMATCH: both stay as
 * they are. Versions that are damaged in the store are repaired, as llvs_exchange_retrieve does, whether or not the damage was met before.
 * Cost: all that the other side has is read, and the same in the store. Parameters and errors: as llvs_exchange_retrieve. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_verify(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Sends what the store has and the other side lacks, and writes anew files of versions that both have, where it finds one missing, cut
 * short or not the version that its name says. It looks at the newest 500 such versions and at 500 others in turn, reading what is new or
 * changed since it did; in a host's transport at those that came into the store since the exchange was opened, and at what `unusable`
 * answers. llvs_exchange_verify looks at all.
 * Parameters and errors: as llvs_exchange_retrieve, and LLVS_ERROR_NO_SPACE. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_send(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);

/** What opens the keys of an encrypted place. Since 0.1. */
typedef uint32_t llvs_member_kind;
enum llvs_member_kind_value {
    /** The passphrase. */
    LLVS_MEMBER_PASSPHRASE = 0,
    /** A key on paper. */
    LLVS_MEMBER_RECOVERY = 1,
    /** An identity that a device keeps. */
    LLVS_MEMBER_DEVICE = 2,
    /** An identity that a program on a server keeps. */
    LLVS_MEMBER_HOST = 3
};

/** Somebody who has the keys of an encrypted place. Since 0.1. */
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
 * Who has the keys of the place of an exchange that was opened with keys.
 * Errors: LLVS_ERROR_UNSUPPORTED (opened without), LLVS_ERROR_KEY_MISSING (the place has none yet, or they are gone), LLVS_ERROR_WRONG_KEY,
 * LLVS_ERROR_KEYS_FORKED, and as llvs_exchange_retrieve. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_members(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_member_list **members, LLVS_OWNED llvs_error **error);
/**
 * Gives the keys to one more, who can read what was written and what will be. LLVS_OK for who is a member already.
 * @param recipient  "age1..."; ASCII
 * @param name       for people; UTF-8, at most 256 bytes; may be empty
 * @param kind       for people; not LLVS_MEMBER_PASSPHRASE, which is there when a place is made with one
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (no recipient, or one that was removed), LLVS_ERROR_TOO_LARGE, and as llvs_exchange_members.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_add_member(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes recipient, llvs_bytes name,
    llvs_member_kind kind, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_error **error);
/**
 * Takes the keys of all that is written from now on from a member. What lies there it can read for ever, if it can reach it: take its
 * access to the place away first. Other devices go on to the new keys with their next exchanges, within 10 minutes. A former member is
 * never added again: the device makes a new identity.
 * @param recipient  as llvs_exchange_members gives it
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (no member, or the last one), and as llvs_exchange_members. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_remove_member(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes recipient,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_error **error);
/**
 * Sets another passphrase. The members and their keys stay; what the old one opened is removed from the place. The exchange goes on with
 * the new one. Others that were opened with the old one get LLVS_ERROR_WRONG_KEY within 10 minutes, and are to be opened anew with the new
 * one. When it is interrupted, both may open the place: do it again.
 * @param passphrase  the new one; 1 to 1,024 bytes of UTF-8, copied into memory that is wiped
 * @param leaked      whether somebody else has the old one, and a copy of its file still opens with that. The member "passphrase" gets
 *                    another identity, and a new epoch begins, as by llvs_exchange_remove_member. A place without that member gets it.
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (no passphrase; without `leaked`, the exchange was opened without the old one), and as
 * llvs_exchange_members. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_change_passphrase(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes passphrase,
    llvs_bool leaked, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_error **error);
/**
 * What the members of an encrypted place make direct connections by, without being paired: LLVS_PAIRING_SIZE bytes that follow from its
 * newest keys, the same for all members. When these are renewed (llvs_exchange_remove_member) it is another one. It is a secret; a device
 * that is to connect where the place cannot be reached keeps it as it keeps a pairing, and asks again after each exchange.
 * @param read_anew  1: the place is asked for its keys; 0: what they were when the exchange read them last, without asking the place
 * @param pairing    owned by the caller, who wipes it
 * Errors: LLVS_ERROR_KEY_MISSING (also when there was nothing read yet), and as llvs_exchange_members. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_pairing(LLVS_BORROWED llvs_exchange *exchange, llvs_bool read_anew,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_buffer *pairing, LLVS_OWNED llvs_error **error);
/**
 * Joins keys that compete, which an exchange tells of as a problem LLVS_ERROR_KEYS_FORKED: a new epoch begins, which has the members of
 * both sides but those that were removed on one. Look at llvs_exchange_members first: all of them are believed. Does nothing where none
 * compete.
 * Errors: as llvs_exchange_members. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_join_keys(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_error **error);
/**
 * Sends all that lies in the place anew, with its newest keys, and takes what lies there with older ones away: for when a device or a key
 * was lost, so that who has only these can read nothing any more. (Whoever read it before keeps it.) As much is sent as lies there. What
 * is replaced is deleted by later exchanges of this device, packs after a day, large values after one more; other devices go on meanwhile.
 * What was interrupted goes on with the full listing that exchanges make each day; or call it again.
 * @param renew  whether keys are made first that only the members of now have. They are there already after llvs_exchange_remove_member,
 *               and after llvs_exchange_change_passphrase with `leaked`
 * @param left   how many packs lie there still with older keys: those that will be deleted, and those that cannot be read here. May be NULL
 * Errors: as llvs_exchange_members, and llvs_exchange_send. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_rekey(LLVS_BORROWED llvs_exchange *exchange, llvs_bool renew,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED uint64_t *left, LLVS_OWNED llvs_error **error);
/**
 * Ends what this device sends to a place in the packed layout, for good: sends what is left, and tells the others, who then put what it
 * sent together at once, and not after 30 days. Nothing is removed here; what is sent later all the same is sent as by another device.
 * @param result  as llvs_exchange_send gives it; may be NULL
 * Errors: LLVS_ERROR_UNSUPPORTED (a place that holds no packs), and as llvs_exchange_send. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_retire(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Tells the other devices that the place goes on elsewhere, after sending what is left: their exchanges here have that as a problem
 * LLVS_ERROR_PLACE_MOVED from then on, with the address as its path. Nothing else changes, and nothing is removed.
 * @param address  where, for people and programs: UTF-8, 1 to 1,024 bytes, no control characters. No secrets: whoever reads the place
 *                 reads it
 * @param result   as llvs_exchange_send gives it; may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED (a place that holds no packs), and as llvs_exchange_send. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_announce_move(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes address,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/** Who writes to a place in packs. Since 0.1. */
typedef struct llvs_remote_writer {
    uint32_t struct_size;
    /** Of its newest pack. */
    uint32_t number;
    /** The random number by which the place knows a device, in 13 characters. A device that lost its memory has another one. */
    llvs_bytes id;
    /** When this device saw a new pack of it last, in seconds since 1970-01-01 UTC; 0 for this device. */
    double last_seen;
    /** 1: it is this device. */
    llvs_bool here;
    uint32_t reserved;
    /** What it is called, as it says itself (`device_name` of llvs_exchange_options); empty: it does not. */
    llvs_bytes name;
} llvs_remote_writer;
/** What a device knows of a place in packs, as of its last exchange there; immutable. Since 0.1. */
typedef struct llvs_remote {
    uint32_t struct_size;
    /** LLVS_LAYOUT_PACKED or LLVS_LAYOUT_BRIDGED. */
    llvs_layout layout;
    /** The number of the newest keys; 0: it is not encrypted. */
    uint32_t epoch;
    uint32_t reserved;
    /** Six words over the newest pack of each writer: two devices that were shown the same, and have read it, have the same; for people to
        compare. Empty when there is none. */
    llvs_bytes fingerprint;
    /** How many packs lay there when all were listed last, and their bytes, large values not counted. */
    uint64_t packs;
    uint64_t bytes;
    /** When that was, in seconds since 1970-01-01 UTC; 0: not yet. */
    double listed;
    /** All whose newest pack is there, by their ids. */
    const llvs_remote_writer *const *writers;
    size_t writer_count;
} llvs_remote;
/** Releases it, with what it points to. Since 0.1. */
LLVS_API void llvs_remote_free(LLVS_OWNED llvs_remote *remote);
/**
 * What this device knows of the place, as of the last exchange of its store there. Nothing is asked of the place.
 * @param remote  NULL when there was no exchange, or the place has no packs; released with llvs_remote_free
 * Errors: LLVS_ERROR_CLOSED, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_remote(LLVS_BORROWED llvs_exchange *exchange, LLVS_OWNED llvs_remote **remote,
    LLVS_OWNED llvs_error **error);
/**
 * Makes an identity of age of random bytes: for a device to keep, or as a recovery key to be written on paper.
 * @param identity   the secret half, "AGE-SECRET-KEY-1..."; owned by the caller, who wipes it
 * @param recipient  the public half, "age1..."
 * Errors: LLVS_ERROR_UNSUPPORTED (there is no libcrypto). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_identity_create(LLVS_OWNED llvs_buffer *identity, LLVS_OWNED llvs_buffer *recipient,
    LLVS_OWNED llvs_error **error);

/**
 * For whom a stream of packs is encrypted, and who opens it: a file of age (https://age-encryption.org/v1), as the tool of that name makes
 * and opens it (docs/encryption.md). What is zero is not encrypted. Identities and passphrases are read during the call, kept in memory
 * that is wiped, and stand in no message. Needs libcrypto of OpenSSL 3 on the machine. Since 0.1.
 */
typedef struct llvs_pack_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** Writing: who will be able to open it, "age1...", 1 to 512; ASCII. NULL when there are none. */
    const llvs_bytes *recipients;
    size_t recipient_count;
    /** Reading: identities of which one opens it, "AGE-SECRET-KEY-1...", 1 to 512; ASCII. NULL when there are none. */
    const llvs_bytes *identities;
    size_t identity_count;
    /** Instead of these, for both: 1 to 1024 bytes, UTF-8 as it is given (normalise it before). Takes 64 MiB of memory for a moment. */
    llvs_bytes passphrase;
} llvs_pack_options;
#define LLVS_PACK_OPTIONS_INIT { (uint32_t)sizeof(llvs_pack_options), 0, 0, 0, 0, 0, LLVS_NONE_INIT }

/**
 * Writes the versions that another store lacks as one stream of bytes, for the host to carry there by any way: a socket, a file, an
 * e-mail. llvs_store_read_pack takes it in. The stream has an end, so that one that broke off can be told. Its format:
 * docs/pack-format.md.
 * @param have        ids of versions that the other store has, with all their ancestors: its heads. Those that are not in this store say
 *                    nothing; none: all versions are written. An id that cannot be one is LLVS_ERROR_INVALID_VERSION_ID
 * @param have_count  how many there are; `have` may be NULL when it is 0
 * @param options     for whom it is encrypted: `recipients`, or `passphrase`; NULL: it is not. LLVS_ERROR_INVALID_ARGUMENT when both are
 *                    given, or `identities`, or a recipient is none
 * @param write       called with the bytes from front to back, in pieces of any size, on this thread, with no lock held
 * @param payload     for `write`
 * @param control     progress (LLVS_STAGE_SENDING, in versions) and cancellation; may be NULL
 * @param result      the versions written (`sent`) and those that could not be read or are too large (`problems`), which hold back what
 *                    builds on them; may be NULL
 * When it fails, what was written is to be thrown away.
 * Errors: LLVS_ERROR_USER and others from `write`, LLVS_ERROR_CANCELLED, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_ARGUMENT,
 * LLVS_ERROR_UNSUPPORTED (there is no libcrypto to encrypt with), storage errors.
 * Cost: reads what it writes, values of more than 1 MiB outside of the file storage twice; about one pack of at most 16 MiB is in memory.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_write_pack(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_bytes *have,
    size_t have_count, LLVS_BORROWED const llvs_pack_options *options, llvs_write_fn write, LLVS_BORROWED void *payload,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Adds the versions of a stream that llvs_store_write_pack wrote. Those that are here are passed over, and those that are damaged here
 * are made whole. Each version is added whole or not at all, and when the call fails, what it added before stays: the same stream may be
 * read again. Nothing behind the end of the stream is asked for; of an encrypted one, all is read up to LLVS_END.
 * @param options  who opens it: `identities`, or `passphrase`; then it must be encrypted. NULL: it is not
 * @param read     gives the bytes from front to back, on this thread, with no lock held; LLVS_END: there are no more
 * @param payload  for `read`
 * @param control  progress (LLVS_STAGE_RECEIVING, LLVS_STAGE_ADDING) and cancellation; may be NULL
 * @param result   the versions added (`retrieved`) and made whole (`repaired`), and those that could not be added (`problems`): damaged,
 *                 made by a newer library (LLVS_ERROR_NEWER_FORMAT), building on versions that are neither here nor in the stream
 *                 (LLVS_ERROR_MISSING_PREDECESSOR). May be NULL
 * Errors: LLVS_ERROR_FOREIGN_FILE (the bytes are no such stream), LLVS_ERROR_CUT_SHORT, LLVS_ERROR_DAMAGED (it is not as it was written),
 * LLVS_ERROR_IDENTIFIER_MISMATCH (a part of another stream is in it), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_NEWER_FORMAT, LLVS_ERROR_WRONG_KEY
 * (it is encrypted for others, or nothing was given to open it with), LLVS_ERROR_UNSUPPORTED (there is no libcrypto to open it with),
 * LLVS_ERROR_USER and others from `read`, LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_READ_ONLY, LLVS_ERROR_CANCELLED, storage errors.
 * Cost: at most one pack of 16 MiB, and about as much of what it holds, is in memory; where the storage has no files for large values
 * (`llvs_storage_kind`: all but files) these as well.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_read_pack(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_pack_options *options,
    llvs_read_fn read, LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result,
    LLVS_OWNED llvs_error **error);

/**
 * Registers for news of the other side: called soon after it may have gained versions. Coalesced; retrieve to see what came. What this
 * exchange sent itself is no news; a transport of the host is believed in that.
 * Errors: LLVS_ERROR_UNSUPPORTED when the transport cannot tell, LLVS_ERROR_IO. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_observe(LLVS_BORROWED llvs_exchange *exchange, llvs_notify_fn fn, LLVS_OWNED void *payload,
    llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);
/** What the exchange wants to find again in a later process, to be handed to that one's exchange; opaque; may be 0 bytes. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_restoration_state(LLVS_BORROWED llvs_exchange *exchange, LLVS_OWNED llvs_buffer *state,
    LLVS_OWNED llvs_error **error);
/**
 * Hands it back. Unusable state is ignored, at the cost of a full listing. The three bytes "new" make the exchange forget which place its
 * store knows at this address. The next call joins whatever is there, for good: for a place that was emptied and is to be filled anew, or
 * one of another store that is to be merged with this one (LLVS_ERROR_NOT_FOUND). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_set_restoration_state(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes state,
    LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Snapshots and import
 * ------------------------------------------------------------------------------------------------ */

/** What a snapshot's manifest says; immutable, owned. Since 0.1. */
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
     * Of a snapshot that was restored: versions that are not what their ids say (LLVS_ERROR_CONTENT_MISMATCH), and those that build on
     * them. Nothing of these was added; an exchange brings the genuine ones. Up to 10,000 one by one, then one that tells how many more.
     */
    const llvs_problem *const *problems;
    size_t problem_count;
} llvs_snapshot;
/** Releases the manifest; the snapshot itself stays where it is. Since 0.1. */
LLVS_API void llvs_snapshot_free(LLVS_OWNED llvs_snapshot *snapshot);

/**
 * Puts a snapshot of the whole store beside the versions of the exchange, replacing an older one of ours. (An exchange with a file: URL
 * puts it into a folder, which need not be shared with anybody: chunks of at most 5 MB in snapshots/llvs-v1/,
 * and last manifest.json.)
 * @param control    progress and cancellation; may be NULL
 * @param snapshot   its manifest; may be NULL
 * Errors: LLVS_ERROR_TRANSPORT, LLVS_ERROR_UNSUPPORTED, LLVS_ERROR_PERMISSION, LLVS_ERROR_NO_SPACE, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER,
 * storage errors. Cost: the size of the store. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_put_snapshot(LLVS_BORROWED llvs_exchange *exchange,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_snapshot **snapshot, LLVS_OWNED llvs_error **error);
/**
 * Restores the snapshot that lies there into a store that is empty, holds one version, or holds a part of this very snapshot. All of
 * it is verified first: one that is refused leaves the store as it was. A version that is not what its id says is left out, with those
 * that build on it, and told of in `problems`. A restore that is cancelled or fails while it adds keeps
 * what was added whole; restoring again, or an exchange, brings the rest.
 * @param control    progress and cancellation; may be NULL
 * @param snapshot   its manifest, and what was left out; may be NULL
 * Errors: LLVS_ERROR_SNAPSHOT_MISSING, LLVS_ERROR_SNAPSHOT_DAMAGED, LLVS_ERROR_FOREIGN_SNAPSHOT, LLVS_ERROR_STORE_NOT_EMPTY,
 * LLVS_ERROR_TRANSPORT, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_restore_snapshot(LLVS_BORROWED llvs_exchange *exchange,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_snapshot **snapshot, LLVS_OWNED llvs_error **error);
/**
 * The manifest of the snapshot that lies there, of any format; NULL when there is none. Errors: LLVS_ERROR_SNAPSHOT_DAMAGED,
 * LLVS_ERROR_TRANSPORT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_snapshot(LLVS_BORROWED llvs_exchange *exchange, LLVS_OWNED llvs_snapshot **snapshot,
    LLVS_OWNED llvs_error **error);
/** How to import a store. Since 0.1. */
typedef struct llvs_import_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** For what is compressed; NULL: such values make problems with LLVS_ERROR_UNSUPPORTED. */
    llvs_decode_fn decode;
    /** See "Callbacks" above; freed when the call returns. */
    void *decode_payload;
    llvs_free_fn decode_free;
} llvs_import_options;
#define LLVS_IMPORT_OPTIONS_INIT { (uint32_t)sizeof(llvs_import_options), 0, 0, 0, 0 }

/**
 * Adds the versions of a store directory of another implementation of this design, whose values are in files or in SQLite databases.
 * The directory is only read. Its databases are copied first, into a folder beside the store, else in TMPDIR (/tmp), which is gone when
 * the call returns; they may be open in other programs, but not in this process.
 * @param directory  UTF-8, without NUL
 * @param options    may be NULL
 * @param control    progress and cancellation; may be NULL
 * @param result     what was added (`retrieved`), and problems; may be NULL
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

/** A store, a current version, exchanges and an arbiter: the short way to use all this. Safe from all threads. Since 0.1. */
typedef struct llvs_coordinator llvs_coordinator;
/** Whether exchanges keep a snapshot up to date. Since 0.1. */
typedef uint32_t llvs_snapshot_policy;
enum llvs_snapshot_policy_value {
    LLVS_SNAPSHOT_OFF = 0,
    /**
     * After an exchange, when the last is at least 7 days old (or from a day in the future: somebody's clock is wrong) and 20 versions; at
     * once when it is missing, has a broken manifest, misses chunks, or was found damaged by llvs_coordinator_bootstrap. What keeps it from
     * being put is a problem of the exchange under the name "snapshots".
     */
    LLVS_SNAPSHOT_AUTO = 1
};

/**
 * Where a call moved the current version. Set struct_size before the call; no more than that is written. Also good after a failure: a
 * merge may have taken up the first content of a new store before it failed. (The ids are empty where the call did not get so far.)
 * Since 0.1.
 */
typedef struct llvs_move {
    uint32_t struct_size;
    /** Whether the call moved it. */
    llvs_bool moved;
    /** The current version before the call, and behind it: the same where it stayed. */
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
    /** Under which the current version and the exchanges' states are kept in the store's cache: 1 to 40 of [a-z0-9._-]; empty: "main".
        Two processes that use one store need a name each: a name that is open on the store is LLVS_ERROR_BUSY, also when another process
        has it, or a child that was made by _Fork or clone (one that fork made does not). With a storage of the host
        that is noticed only within one handle of the store: the host keeps apart two handles on one storage, and two processes. */
    llvs_bytes name;
    /** Decides conflicts; kept alive; NULL: the rules of the store, or most recent change where it has none (llvs_arbiter_rules). */
    llvs_arbiter *arbiter;
    /** Metadata of every save; entries given to a save go before. */
    const llvs_metadata_entry *metadata;
    size_t metadata_count;
    /**
     * Names the device, or the person at it, whose saves llvs_coordinator_undo takes back, UTF-8: the same each time, and another on each
     * device. Saves then carry it under "__llvs_device". Empty: nothing can be undone.
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
 * Closes its exchanges and its store. Waits for a save or merge of another thread, so that the coordinator is at its version when it is
 * opened again. Later calls give LLVS_ERROR_CLOSED. Errors: storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_close(LLVS_BORROWED llvs_coordinator *coordinator, LLVS_OWNED llvs_error **error);
/** Closes and releases the coordinator. Since 0.1. */
LLVS_API void llvs_coordinator_free(LLVS_OWNED llvs_coordinator *coordinator);
/** Its store, as a handle of its own to be freed; closing it closes the coordinator's store as well. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_store(LLVS_BORROWED llvs_coordinator *coordinator, LLVS_OWNED llvs_store **store,
    LLVS_OWNED llvs_error **error);
/**
 * The version that reads and saves start from. Never empty: a new store's is the empty root, the same everywhere, which is read in every
 * store as an empty state, also before anything was saved. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_current_version(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED llvs_version_id *version, LLVS_OWNED llvs_error **error);
/**
 * Where the coordinator was when it was last used, when the store had not got that version as it was opened: it is damaged or lost, or
 * waits for something that is missing (llvs_statistics.pending). The coordinator then went on at the most recent head without a
 * branch, or at the empty root. Verify the store, and exchange; once the version is there, llvs_coordinator_set_current_version goes back
 * to it.
 * @param version  size 0 when nothing is missing
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_missing_version(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED llvs_version_id *version, LLVS_OWNED llvs_error **error);
/**
 * Moves the current version, back in time or to a branch, say.
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_set_current_version(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes version,
    LLVS_OWNED llvs_error **error);
/**
 * Records changes on top of the current version, which moves to the new one; with a branch in the options, on top of the most
 * recent head of that branch (of the current version when it has none yet): then the current version moves only if it was that
 * head. Concurrent saves each go on the one before. Where other heads hold the same as the current version, a save may first make
 * versions that join them, at most one for each such head, and goes on from the last.
 * @param changes, change_count, change_size  as for llvs_store_make_version
 * @param options  branch, metadata, expected version, whether it merges, and time; its id must be empty; may be NULL
 * @param id       receives the new version; size 0 when nothing was stored (no metadata, and no changes but removals of what
 *                 is not there); may be NULL
 * @param version  receives a list of the one version, NULL when nothing was stored; may be NULL
 * @param move     where the current version went: to the new version, or to a merge of it; may be NULL
 * Errors: as llvs_store_make_version; LLVS_ERROR_MOVED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_save(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_change *changes, size_t change_count, size_t change_size, LLVS_BORROWED const llvs_version_options *options,
    LLVS_BORROWED llvs_version_id *id, LLVS_OWNED llvs_version_list **version, LLVS_BORROWED llvs_move *move,
    LLVS_OWNED llvs_error **error);
/**
 * The value that prevails at the current version. All else is read from its store (llvs_coordinator_store), at the current version or
 * any other.
 * Parameters and errors: as llvs_store_value. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_value(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes id,
    LLVS_OWNED llvs_buffer *data, LLVS_BORROWED llvs_version_id *stored_version, LLVS_OWNED llvs_error **error);
/**
 * Adds rules for merging to those of the store, as llvs_store_schema says: saved as a version of their own on top of the current version,
 * which moves there. What the store holds already is not saved again, so call it at each start of a program.
 *
 * While nothing was ever saved (the current version is the empty root) the rules are remembered, as long as the coordinator is open, and
 * written right before the first save, or when the first content that arrives is merged; devices that start apart with the same rules then
 * make one and the same first version.
 *
 * So they are while the rules of the store are of a number that is not known here: those stand, and are the `problem` of `schema`. Each
 * merge gives LLVS_ERROR_UNSUPPORTED then, when all else is done.
 * @param rules   a whole value of the kind that is kept under "__llvs_schema"
 * @param move    where the current version went; may be NULL
 * @param schema  the rules that count now, what contradicts them, and the new version; may be NULL
 * Errors: as llvs_store_schema (of the rules given) and llvs_store_make_version; nothing is stored or remembered then. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_register_schema(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes rules,
    LLVS_BORROWED llvs_move *move, LLVS_OWNED llvs_schema **schema, LLVS_OWNED llvs_error **error);
/**
 * Takes back the last save of this device (llvs_coordinator_options) that led to the current version and was not undone yet, as
 * llvs_store_revert does, in a version of its own, which becomes current: what others changed since stays. Found in the history, so it goes
 * on after a restart, and after syncs. Saves one after the other with the same JSON string under "__llvs_group" in their metadata count as
 * one; a JSON string under "__llvs_description" comes back as `description`.
 *
 * When nothing of the save is left to take back, nothing is stored, the result has no version, and the next call goes on with the save
 * before, also in another process. If the save was merged with what others changed, and theirs stands, the result has no version, either,
 * but a version without changes notes the undo, and becomes current: so the save does not come back when the others undo theirs. What both
 * this device and another one did is as the other one left it.
 *
 * With a version in the options it takes back what that changed, whoever saved it. Of an undo of this device, what that had undone is there
 * again, and is the next to be undone.
 * @param only_tell  1: nothing is stored; the result tells by `versions` and `description` what would be undone
 * @param options    version, parent, metadata and control; may be NULL
 * @param move       where the current version went; may be NULL
 * @param result     what was undone and what was not; NULL when there is nothing to undo; may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (the coordinator has no device, and no version is given), LLVS_ERROR_UNKNOWN_VERSION,
 * LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER,
 * storage errors. Nothing is stored then. Cost: the versions since that save, and what it changed. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_undo(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bool only_tell,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_BORROWED llvs_move *move, LLVS_OWNED llvs_revert_result **result,
    LLVS_OWNED llvs_error **error);
/**
 * Takes back the last undo of this device, when it saved nothing since. `versions` of the result is that undo.
 * Parameters and errors: as llvs_coordinator_undo. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_redo(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bool only_tell,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_BORROWED llvs_move *move, LLVS_OWNED llvs_revert_result **result,
    LLVS_OWNED llvs_error **error);
/**
 * Attaches an exchange.
 * @param place    a URL, under which its state is kept, as for llvs_exchange_open; with a `host_transport` the name under which its state
 *                 is kept, 1 to 40 of [a-z0-9._-], the same in every process
 * @param options  may be NULL
 * Errors: as llvs_exchange_open; LLVS_ERROR_INVALID_ARGUMENT also for a name that is attached. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_attach(LLVS_BORROWED llvs_coordinator *coordinator, llvs_bytes place,
    LLVS_BORROWED const llvs_exchange_options *options, LLVS_OWNED llvs_error **error);
/**
 * Retrieves, then sends, with each attached exchange in turn; those that could not be reached the last time come last. The current version
 * does not move, except that a retrieve before the first save moves it from the empty root to the most recent head without a branch.
 *
 * When one of several exchanges fails, the others have their turn all the same: the call ends with the first failure, and the result
 * tells what was done, all together and each for itself (`exchanges`). So the result, which is to be released, is also given with an error,
 * but for LLVS_ERROR_BUSY, LLVS_ERROR_CLOSED and what is wrong with the arguments. Parameters and errors: as llvs_exchange_retrieve. Since
 * 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_exchange(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Merges heads into the current version, which moves to the result. Exchange again when it did: others who get the result
 * need not merge the same, and all agree soon (docs/convergence.md).
 * @param options  selection and metadata; may be NULL
 * @param move     where the current version went; may be NULL
 * Errors: as llvs_store_merge. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_merge(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_BORROWED llvs_move *move, LLVS_OWNED llvs_error **error);
/** What a whole round did; immutable, owned. Since 0.1. */
typedef struct llvs_sync_result {
    uint32_t struct_size;
    /** Whether the round moved the current version. */
    llvs_bool moved;
    /** The current version before the round, and behind it. */
    llvs_bytes from;
    llvs_bytes to;
    /** What all exchanges did before the merge. */
    const llvs_exchange_result *before;
    /** What they did after it; NULL when the merge changed nothing and nothing was to be passed on. */
    const llvs_exchange_result *after;
    /** Whether the merge moved the current version. */
    llvs_bool merged;
    uint32_t reserved;
} llvs_sync_result;
/** Releases the result, with what it points to. Since 0.1. */
LLVS_API void llvs_sync_result_free(LLVS_OWNED llvs_sync_result *result);
/**
 * A whole round: exchanges (llvs_coordinator_exchange), merges what came (llvs_coordinator_merge), and exchanges again when that changed
 * something, so that what was merged does not wait for the next round.
 * @param options  selection, metadata, and progress and cancellation of all parts; may be NULL
 * @param result   may be NULL. Also given with an error, as by llvs_coordinator_exchange: without a connection, what is here already is
 * merged all the same, and the call ends with the first failure of a part.
 * Errors: as llvs_coordinator_exchange and llvs_coordinator_merge.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_sync(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_sync_result **result, LLVS_OWNED llvs_error **error);
/**
 * Hears that the current version is another one. Since 0.1.
 *   thread     the one whose call moved it, after that call's work is done
 *   re-entry   may call the library, also to save, to merge and to free its own observer; an exchange or bootstrap of the same
 *              coordinator is LLVS_ERROR_BUSY when one of those is what moved it
 *   pointers   live for the callback only
 *   result     none
 */
typedef void (*llvs_current_version_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_version_id *version);
/** Registers for changes of the current version. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_observe(LLVS_BORROWED llvs_coordinator *coordinator, llvs_current_version_fn fn,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);
/**
 * Registers for news of the other sides of all exchanges attached now; those that cannot tell are left out. As llvs_exchange_observe. Since
 * 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_observe_exchanges(LLVS_BORROWED llvs_coordinator *coordinator, llvs_notify_fn fn,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);
/**
 * Restores the first usable snapshot of the attached exchanges into a store that is empty or holds one version. The current version
 * moves to the most recent head without a branch when nothing had been saved yet. A snapshot that is damaged or cannot be read, or of which
 * nothing can be taken, is passed over; where no other is there either, that is the error.
 * @param control   progress and cancellation; may be NULL
 * @param restored  whether there was one; may be NULL
 * @param move      where the current version went; may be NULL
 * Errors: as llvs_exchange_restore_snapshot (save LLVS_ERROR_SNAPSHOT_MISSING). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_coordinator_bootstrap(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED llvs_bool *restored, LLVS_BORROWED llvs_move *move,
    LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Finding values
 * ------------------------------------------------------------------------------------------------ */

/**
 * A sorted list of keys and the ids of the values that have them, which belongs to each version as its state does: asked at a version it
 * answers for that version, in every branch. It is made from the values when it is first asked at a version, from the nearest version that
 * has it by what differs, kept in memory within the store's budget, and in the store's caches at one version. Keeps its store. Safe from
 * all threads. Since 0.1.
 *
 * Definitions stand in the rules of the store ("__llvs_schema") under "indexes", or are given when it is opened:
 *
 *     {"prefix": "contact/", "on": ["/lastName", "/firstName"], "text": "fold", "where": {"/done": false}}
 *
 *   prefix  what the ids of its values begin with; may be empty
 *   on      1 to 8 JSON pointers to the parts of a key, which are scalars; a segment `*` takes each element or member
 *   text    "bytes": strings by their UTF-8; "fold": without case and diacritics
 *   where   values that satisfy all of it: from pointers to scalars, or {"present": true} or {"present": false}
 *
 * Parts are in the order missing, null, false, true, numbers by value, strings. A value that is no JSON, or lacks the first part, is in no
 * index: llvs_index_explain says why. docs/index-keys.md is normative.
 */
typedef struct llvs_index llvs_index;
/** Which index: by `name` or by `definition`. Since 0.1. */
typedef struct llvs_index_options {
    uint32_t struct_size;
    /** 1: with a coordinator, the index is prepared at each new current version, on a thread of the library, for as long as it is open. */
    llvs_bool warm;
    /** The name of one that the store declares, UTF-8, 1 to 128 bytes; empty: the definition is given. */
    llvs_bytes name;
    /** A definition, as JSON; empty: a name is given. */
    llvs_bytes definition;
    /** A coordinator of the store, whose current version is the one that counts where none is named; NULL: the newest head. It is kept. */
    llvs_coordinator *coordinator;
} llvs_index_options;
#define LLVS_INDEX_OPTIONS_INIT { (uint32_t)sizeof(llvs_index_options), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, 0 }
/**
 * Opens an index, which makes nothing yet.
 *
 * Of a name, the definition is looked for with each question: that at the version asked about counts, or, where there is none, that at the
 * current version. Names that share one definition share its trees.
 * @param index  to be released by llvs_index_free
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (neither a name nor a definition, or both; a coordinator of another store, or none for one that is
 * warm; a definition that is none: llvs_error_path is the JSON pointer to what is wrong with it), LLVS_ERROR_CLOSED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_index_open(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_index_options *options,
    LLVS_OWNED llvs_index **index, LLVS_OWNED llvs_error **error);
/** Takes the keys that a callback gives for one value; lives for the callback only. Since 0.1. */
typedef struct llvs_index_keys llvs_index_keys;
/**
 * Gives the keys of a value, each to llvs_index_keys_add: any number, in any order. It looks at the id and the bytes alone, and gives the
 * same each time. Since 0.1.
 *   thread     the one that asks or prepares the index; several at once when several do
 *   re-entry   may call the library, the store included; no lock is held. (To ask the index that is being made is LLVS_ERROR_BUSY.)
 *   pointers   live for the callback only
 *   result     LLVS_OK: the keys of the value are those that were added; none: it is not in the index
 * All else: the question fails, keeps nothing of what it made, and gives LLVS_ERROR_USER with what `error` was set to (by llvs_error_make;
 * optional)
 */
typedef llvs_status (*llvs_index_keys_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *id,
                                          LLVS_BORROWED const llvs_bytes *data, LLVS_BORROWED llvs_index_keys *keys,
                                          LLVS_OWNED llvs_error **error);
/**
 * Adds a key; one that is there already is one. A key of more than 1,024 bytes is found all the same, by asking the callback again.
 * @param tuple  a JSON array with as many scalars as the index has parts; `{}` is one that is missing, which the first cannot be. Copied
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (no such array; the 10,001st of a value); the question then fails so, whatever the callback answers.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_index_keys_add(LLVS_BORROWED llvs_index_keys *keys, llvs_bytes tuple,
    LLVS_OWNED llvs_error **error);
/** An index whose keys a callback gives. Since 0.1. */
typedef struct llvs_computed_index_options {
    uint32_t struct_size;
    /** As in llvs_index_options; the callback is then called on a thread of the library as well. */
    llvs_bool warm;
    /** What the ids of its values begin with, UTF-8; may be empty. */
    llvs_bytes prefix;
    /** With a `callback_version`: what the callback is known by, UTF-8, at most 128 bytes; may be empty. */
    llvs_bytes name;
    /** How many parts a key has, 1 to 8; 0: one. */
    uint32_t parts;
    /**
     * To be raised when the callback gives other keys than before. With a name, and unless it is 0, the index is kept in the caches of the
     * store, and found again by whoever gives the same name, number, prefix and parts; else it is known to this handle alone.
     */
    uint32_t callback_version;
    /** As in llvs_index_options. */
    llvs_coordinator *coordinator;
} llvs_computed_index_options;
#define LLVS_COMPUTED_INDEX_OPTIONS_INIT \
    { (uint32_t)sizeof(llvs_computed_index_options), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, 0, 0, 0 }
/**
 * Opens an index for values of any kind, also such as are no JSON, whose keys the host gives. It makes nothing yet. It is asked as others
 * are; what is said there of JSON does not hold for its values.
 * @param options  may be NULL: all values, keys of one part
 * @param keys, payload, payload_free  see "Callbacks" above
 * @param index    to be released by llvs_index_free
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (a number of parts or a length that cannot be; a coordinator as for llvs_index_open),
 * LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_CLOSED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_computed_index_open(LLVS_BORROWED llvs_store *store,
    LLVS_BORROWED const llvs_computed_index_options *options, llvs_index_keys_fn keys, LLVS_OWNED void *payload, llvs_free_fn payload_free,
    LLVS_OWNED llvs_index **index, LLVS_OWNED llvs_error **error);
/** Releases the index. Since 0.1. */
LLVS_API void llvs_index_free(LLVS_OWNED llvs_index *index);
/** What a page of an index tells besides ids: any of them, joined by `|`. Since 0.1. */
typedef uint32_t llvs_index_want;
enum llvs_index_want_value {
    /** The keys. */
    LLVS_INDEX_KEYS = 1,
    /** The values. */
    LLVS_INDEX_VALUES = 2,
    /** How many entries the question is about, pages aside. */
    LLVS_INDEX_COUNT = 4
};
/**
 * What is asked of an index; nothing: all entries. Since 0.1.
 *
 * Tuples are JSON arrays of scalars, like `["Smith","Ann"]`, in which `{}` is a part that is missing. The entries meant are those whose
 * first parts are `equal`, and of these those in which what follows has the beginning, or lies within the bounds. `equal` with a beginning
 * or a bound has no more parts than the index; a bound may have fewer than are left, and means then all that begin so. With a bound on one
 * side alone the range goes on to the end of what begins with `equal`, through all types.
 */
typedef struct llvs_index_question {
    uint32_t struct_size;
    llvs_index_want want;
    /** The first parts; empty: none. */
    llvs_bytes equal;
    /** With `has_begin`, what the string behind them begins with, in UTF-8; empty: any string. Not with bounds. */
    llvs_bytes begin;
    /** Not below; empty: no bound. */
    llvs_bytes low;
    /** Not above; empty: no bound. */
    llvs_bytes high;
    /** The cursor of the page before; empty: from the first. */
    llvs_bytes after;
    /** How many entries a page holds at most; 0: 1000. */
    uint64_t limit;
    /** With values, a page ends after the one with which they reach this many bytes; 0: 16 MiB. */
    uint64_t byte_limit;
    /** 1: `begin` counts. */
    llvs_bool has_begin;
    /** 1: above `low`. */
    llvs_bool low_open;
    /** 1: below `high`. */
    llvs_bool high_open;
    /** 1: from the last entry to the first. */
    llvs_bool reverse;
    /** 1: of a value that has several keys among those meant, only the first that is met. */
    llvs_bool unique;
    uint32_t reserved;
} llvs_index_question;
#define LLVS_INDEX_QUESTION_INIT \
    { (uint32_t)sizeof(llvs_index_question), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, 0, 0, 0, \
      0, 0, 0, 0, 0 }
/** One page of what was found, in order. Immutable, owned. Since 0.1. */
typedef struct llvs_index_page {
    uint32_t struct_size;
    uint32_t reserved;
    /** With LLVS_INDEX_COUNT: how many entries the question is about, pages aside; else 0. */
    uint64_t total;
    /** How many entries the page has. */
    size_t count;
    /** The ids of the values, each with a NUL behind it that `id_sizes` does not count. */
    llvs_bytes ids;
    /** The size of each id. */
    const uint64_t *id_sizes;
    /**
     * With LLVS_INDEX_KEYS the tuples, each a JSON array with a NUL behind it: strings as they are spelled in the value, numbers as the
     * shortest decimal, `{}` for what is missing.
     */
    llvs_bytes keys;
    /** The size of each key; NULL when they were not asked for. */
    const uint64_t *key_sizes;
    /** With LLVS_INDEX_VALUES the values, one for each entry, with their ids; NULL when they were not asked for. Borrowed from the page. */
    const llvs_value_block *values;
    /** Where the next page begins; empty when this is the last. It stays good at this version for ever. */
    llvs_bytes cursor;
} llvs_index_page;
/** Releases the page with all that it leads to. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_index_page_free(LLVS_OWNED llvs_index_page *page);
/**
 * One page of what an index holds at a version.
 * @param at        the version; empty: the current one
 * @param question  NULL: all entries
 * @param control   progress (stage LLVS_STAGE_READING, in values read) and cancellation; may be NULL. What is cancelled leaves nothing half
 *                  made
 * @param page      the page, which may have no entries
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_NOT_FOUND (nothing of the name is declared),
 * LLVS_ERROR_INVALID_ARGUMENT (a tuple that is none, too many parts, a beginning beside bounds, a cursor of another index),
 * LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_DAMAGED (with the id of a value that cannot be read: without it the answer would be wrong),
 * LLVS_ERROR_BUSY (from within a callback of the call that makes the index), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress
 * callback, or that which gives keys), LLVS_ERROR_OUT_OF_MEMORY, storage errors.
 * Cost: O(log n) and the page; the first time at a version, reading the values that differ from the nearest version that has the index, or
 * all under its prefix. `unique` reads the values found; bounds longer than 1,023 bytes those values that agree with them so far.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_index_find(LLVS_BORROWED llvs_index *index, llvs_bytes at,
    LLVS_BORROWED const llvs_index_question *question, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_index_page **page,
    LLVS_OWNED llvs_error **error);
/**
 * Under which keys a value is in an index, or why it is not, as JSON:
 *
 *     {"keys":[["Smith","Ann"]],"bytes":["08…"],"why":null,"definition":{…},"from":"<version id>"}
 *
 * `bytes` are the keys as they are compared, in hexadecimal. `why`, where there are none: "prefix", "reserved", "not-json", "where",
 * "too-many-keys", "no-first-part" or "no-keys", as docs/index-keys.md has them, or "no-value": there is none at the version. `from` is the
 * version at which the definition is declared, or null.
 * @param at  the version; empty: the current one
 * @param id  the value id
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8,
 * LLVS_ERROR_NOT_FOUND, storage errors. Cost: the size of the value. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_index_explain(LLVS_BORROWED llvs_index *index, llvs_bytes at, llvs_bytes id,
    LLVS_OWNED llvs_buffer *json, LLVS_OWNED llvs_error **error);

/**
 * A database in SQLite that mirrors one version of a store in tables, and is brought up to date by what differs. The program opens it with
 * any driver and queries it (joins, aggregates, full text); the library alone writes it. Each update is one transaction, in which the
 * version is noted: readers, and whoever comes after a crash, see one version or another. It holds nothing that is not in the store:
 * deleted, it is made again. It is in WAL mode, so that readers never wait. Keeps its store. Safe from all threads; updates run one at a
 * time. Since 0.1.
 *
 * A definition, as JSON, names the tables:
 *
 *     {"tables": {"people": {"prefix": "contact/", "columns": [{"name": "last", "pointer": "/lastName", "type": "text"}],
 *         "id": "id", "indexes": [["last"]], "search": {"name": "people_search", "columns": ["last"], "tokenize": "porter"}}}}
 *
 *   prefix   what the ids of the values in the table begin with; may be empty
 *   columns  1 to 64: a JSON pointer, and "text", "integer", "real", "boolean" (0 or 1) or "json" (anything, as canonical JSON)
 *   id       what the column with the value id is called; "id" where it is not said
 *   indexes  indexes of SQLite, each the names of its columns
 *   search   a table of FTS5 over some columns, with the id; "unicode61" (where nothing is said), "porter" or "trigram"
 *
 * What does not fit its column is NULL, and told by llvs_projection_problems. Names have 1 to 63 of letters, digits and underscore, and do
 * not begin with "llvs_" or "sqlite_". A definition that is another than before makes all tables anew, in one transaction.
 */
typedef struct llvs_projection llvs_projection;
/** How a projection is opened. Since 0.1. */
typedef struct llvs_projection_options {
    uint32_t struct_size;
    /** The permissions of a database that is made, of which the process's mask takes some; 0: 0600. */
    uint32_t file_mode;
    /**
     * A coordinator of the store: the database is kept at its current version, on a thread of the library, from opening on. NULL: it is
     * updated by llvs_projection_update alone. It is kept.
     */
    llvs_coordinator *coordinator;
    /** Seconds for which others that write to the database are waited for; 0: 5. */
    double busy_timeout;
} llvs_projection_options;
#define LLVS_PROJECTION_OPTIONS_INIT { (uint32_t)sizeof(llvs_projection_options), 0, 0, 0 }
/**
 * Opens the database of a projection, or makes one where there is nothing. Its tables are made by the first update.
 * @param path        of the database: a file in the file system of this host
 * @param definition  its tables, as JSON
 * @param options     NULL: those of the INIT macro
 * @param projection  to be released by llvs_projection_free
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (a definition that is none: llvs_error_path is the JSON pointer to what is wrong with it; a
 * coordinator of another store), LLVS_ERROR_NOT_A_STORE (something other than a projection is there, and left alone),
 * LLVS_ERROR_NEWER_FORMAT, LLVS_ERROR_DAMAGED, LLVS_ERROR_BUSY, LLVS_ERROR_UNSUPPORTED (there is no SQLite), LLVS_ERROR_CLOSED, storage
 * errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_projection_open(LLVS_BORROWED llvs_store *store, llvs_bytes path, llvs_bytes definition,
    LLVS_BORROWED const llvs_projection_options *options, LLVS_OWNED llvs_projection **projection, LLVS_OWNED llvs_error **error);
/**
 * Brings the database to a version, by what differs from the version at which it is; where its tables are not those of the definition, or
 * that version is not in the store any more, by making them anew.
 * @param to            the version; empty: the coordinator's current one, or the newest head
 * @param control       progress (stage LLVS_STAGE_READING, in values) and cancellation, which leaves the database as it was; may be NULL
 * @param rows_changed  how many rows were put, changed or taken away; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_DAMAGED (with the id of a value that cannot be read; or the
 * database is: delete it), LLVS_ERROR_BUSY (others keep the database locked; from within the progress callback of the same projection),
 * LLVS_ERROR_INVALID_ARGUMENT (the database has a table of such a name that the projection did not make), LLVS_ERROR_UNSUPPORTED (an SQLite
 * without FTS5), LLVS_ERROR_NO_SPACE, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER, LLVS_ERROR_CLOSED, storage errors.
 * Cost: reading and writing the values that differ, or all under the prefixes. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_projection_update(LLVS_BORROWED llvs_projection *projection, llvs_bytes to,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED uint64_t *rows_changed, LLVS_OWNED llvs_error **error);
/**
 * At which version the database is, and how its own updates went, as JSON:
 *
 *     {"version":"<version id>","failure":{"code":-30,"message":"…"}}
 *
 * `version` is null before the first update, and after the tables turned out not to be those of the definition. `failure` is that of the
 * last update on the library's thread, which goes on trying; null when it succeeded, and without a coordinator.
 * Errors: LLVS_ERROR_CLOSED, LLVS_ERROR_BUSY, LLVS_ERROR_DAMAGED, storage errors. It waits for a running update. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_projection_status(LLVS_BORROWED llvs_projection *projection, LLVS_OWNED llvs_buffer *json,
    LLVS_OWNED llvs_error **error);
/**
 * What did not fit its column at the version of the database, at most 1,000 at once, as a JSON array:
 *
 *     [{"number":1,"table":"people","id":"contact/1","pointer":"/born","reason":"type"}]
 *
 * `reason`: "type", "range" (a number that SQLite has not got), "size" (a row of more than 450 MB), or, with an empty pointer, "not-json".
 * @param after  the number of the last one of the page before; 0: from the first
 * Errors: as llvs_projection_status. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_projection_problems(LLVS_BORROWED llvs_projection *projection, uint64_t after,
    LLVS_OWNED llvs_buffer *json, LLVS_OWNED llvs_error **error);
/**
 * Closes the database: waits for a running update, of which one on the library's thread is cancelled, and releases the projection. From
 * within its progress callback it is closed once that call is over. NULL is a no-op. Since 0.1.
 */
LLVS_API void llvs_projection_free(LLVS_OWNED llvs_projection *projection);

/* ------------------------------------------------------------------------------------------------
 * Syncing in the background
 * ------------------------------------------------------------------------------------------------ */

/**
 * Keeps a coordinator in step with its exchanges by itself: decides when a round of llvs_coordinator_sync is due, does it on a thread of
 * its own, and tells what happened (docs/background-sync.md). Saves by the coordinator, by other handles and by other processes, exchanges
 * attached later, and news of exchanges are noticed without being told. What comes over a direct connection, by another process or by an
 * import is merged at once, also if no exchange is attached: that is a round, too, whose result has no exchanges. Safe from all threads.
 * Since 0.1.
 */
typedef struct llvs_syncer llvs_syncer;
/** What a syncer does. Since 0.1. */
typedef uint32_t llvs_sync_state;
enum llvs_sync_state_value {
    /** Nothing any more: its coordinator was closed. */
    LLVS_SYNC_OFF = 0,
    /** It waits for the next round, or for something to do. */
    LLVS_SYNC_IDLE = 1,
    /** A round runs. */
    LLVS_SYNC_RUNNING = 2,
    /** Every place waits: for the network, or for the end of the pause after a failure. */
    LLVS_SYNC_WAITING = 3,
    /** The host paused it, or every place waits for somebody to do something. */
    LLVS_SYNC_PAUSED = 4
};
/** Why a place, or all of them, are not visited. Since 0.1. */
typedef uint32_t llvs_sync_reason;
enum llvs_sync_reason_value {
    LLVS_SYNC_REASON_NONE = 0,
    /** The host said that there is no network. */
    LLVS_SYNC_REASON_OFFLINE = 1,
    /** The server wants to be left alone for a while. */
    LLVS_SYNC_REASON_RATE_LIMITED = 2,
    /** The folder or server cannot be reached. */
    LLVS_SYNC_REASON_UNREACHABLE = 3,
    /** Something else went wrong; the error tells what. */
    LLVS_SYNC_REASON_FAILED = 4,
    /** The user, the password or the rights are refused. If only a person can answer it (a password, a consent, a payment), it is not tried
     * again until LLVS_SYNC_TRIGGER_USER or _FRONT; else by the clock, as other failures. Rights to send are tried again an hour later. */
    LLVS_SYNC_REASON_SIGN_IN = 5,
    /** Here or there is no room. Nothing is sent for an hour, or until triggered; what others send is received as ever, if there is room
     * here. */
    LLVS_SYNC_REASON_NO_SPACE = 6,
    /** The other side was written by a newer version of this library. */
    LLVS_SYNC_REASON_UPDATE_APP = 7,
    /** The host paused the syncer. */
    LLVS_SYNC_REASON_PAUSED = 8,
    /** What is there is encrypted, and the passphrase or the identities do not open it (not tried again until triggered), or are
     * missing. */
    LLVS_SYNC_REASON_PASSPHRASE = 9,
    /** A place in packs was emptied, or a place belongs to another store: bring it back, or have it joined (docs/exchanges.md). */
    LLVS_SYNC_REASON_REMOTE_RESET = 10,
    /** Another process exchanges with the place for this store, which is no failure. Looked after with the next round that something leads
        to; what was saved, after 10 seconds (`after_saves`). */
    LLVS_SYNC_REASON_ALREADY_RUNNING = 11
};
/** What happened that a round may be due for. Since 0.1. */
typedef uint32_t llvs_sync_trigger;
enum llvs_sync_trigger_value {
    /** The user asks: a round begins at once, whatever the conditions. */
    LLVS_SYNC_TRIGGER_USER = 1,
    /** The application came to the front, or the network is back or another one: a round at once, unless one was done in the last 5
        seconds. What had failed is tried again. */
    LLVS_SYNC_TRIGGER_FRONT = 2,
    /** The other side has news, as a push says. */
    LLVS_SYNC_TRIGGER_NEWS = 3
};
/** What the host says of the device: bits, joined by |. Since 0.1. */
typedef uint32_t llvs_sync_conditions;
enum llvs_sync_conditions_value {
    /** There is no network: nothing is tried, but when the user asks. */
    LLVS_SYNC_OFFLINE = 1,
    /** Bytes cost money: rounds without another reason are four times as seldom, and values of more than 1 MiB in packs come and go only
        when the user asks. */
    LLVS_SYNC_METERED = 2,
    /** The same. */
    LLVS_SYNC_LOW_BATTERY = 4,
    /** The application is not in front: no rounds without another reason, and what failed is not tried again by the clock. */
    LLVS_SYNC_BACKGROUND = 8,
    /** Nothing is done, but when the user asks. */
    LLVS_SYNC_PAUSE = 16
};

/** What is known of one attached exchange. Since 0.1. */
typedef struct llvs_sync_place {
    uint32_t struct_size;
    llvs_sync_reason reason;
    /** What it was called as it was attached. */
    llvs_bytes place;
    /** Rounds that failed there, one after the other. */
    uint64_t failures;
    /** When it is tried again by the clock, in seconds since 1970-01-01 UTC; 0: nothing failed, or only somebody helps. */
    double retry_at;
    /** When it was exchanged with last without a failure, in seconds since 1970-01-01 UTC; 0: never. */
    double last_success;
    /** Why the last round failed there; NULL when it did not. Borrowed from the status. */
    const llvs_error *error;
    /** What could not be taken or sent in the last round. */
    const llvs_problem *const *problems;
    size_t problem_count;
    /** What a server answered to the request that failed in the last round: the status of HTTP; 0: no answer, or no failure. */
    uint32_t http_status;
    /** 1: the two below say what waits to be sent there; 0: nobody knows before a round there ended without a failure. */
    llvs_bool knows_pending;
    /** Versions that are here and were not sent yet (some that a round sent before it failed may be among them). */
    uint64_t pending_versions;
    /** Bytes of the values that they stored, as they are. */
    uint64_t pending_bytes;
    /** When retrieving from there, and sending there, ended without a failure last, in seconds since 1970-01-01 UTC; 0: never. */
    double last_retrieve;
    double last_send;
    /** Requests of the last round, and the bytes that went and came; 0 where nobody counts. */
    uint64_t requests;
    uint64_t bytes_up;
    uint64_t bytes_down;
    /** The same of all rounds since the day began (UTC), or the syncer. */
    uint64_t requests_today;
    uint64_t bytes_up_today;
    uint64_t bytes_down_today;
    /** What is known of a place in packs, as of the last exchange; NULL: nothing, or it has none. Borrowed from the status. */
    const llvs_remote *remote;
    /** 1: nothing goes on there before somebody did something, and `reason` tells what. */
    llvs_bool needs_user;
    uint32_t reserved;
    /** How many files that the place lists could not be read in the last round: it may end without a failure although nothing comes. */
    uint64_t unread;
    /** Since when some could not, in seconds since 1970-01-01 UTC; 0: all could. */
    double unread_since;
} llvs_sync_place;

/** What a syncer does at a moment, and did so far; immutable, owned. Since 0.1. */
typedef struct llvs_sync_status {
    uint32_t struct_size;
    llvs_sync_state state;
    /** Why it waits or is paused: what the first place that waits does so for. */
    llvs_sync_reason reason;
    /** How far the running round has come, as llvs_progress tells: stage 0 when none runs. */
    uint32_t stage;
    uint64_t completed;
    uint64_t total;
    /** When the next round is due, in seconds since 1970-01-01 UTC; 0 when only something that happens leads to one. */
    double next_round;
    /** When a round ended without any failure, in seconds since 1970-01-01 UTC; 0: never. */
    double last_success;
    /** Rounds that ended, failed ones included. */
    uint64_t rounds;
    /** Versions that came and went in them. */
    uint64_t retrieved;
    uint64_t sent;
    /** Why the last merge failed; NULL when it did not. Borrowed from the status. */
    const llvs_error *merge_error;
    /** One for each attached exchange, in the order of attaching. */
    const llvs_sync_place *const *places;
    size_t place_count;
    /** Of the place that is exchanged with just now, while packs are retrieved or sent: bytes that came or went, and that are to. Each part
        of a round begins anew, and neither becomes less in it. What comes is counted in bytes of files, a large value once the pack that
        names it is there; what goes in bytes of values. 0 where nobody counts. */
    uint64_t bytes_done;
    uint64_t bytes_total;
} llvs_sync_status;
/** Releases the status, with what it points to. Since 0.1. */
LLVS_API void llvs_sync_status_free(LLVS_OWNED llvs_sync_status *status);

/**
 * Hears what a syncer does: after each round, when its state is another, and at most ten times a second while a round comes on. Since 0.1.
 *   thread     the syncer's, one call at a time
 *   re-entry   may call the library, also to free the syncer; llvs_syncer_run is LLVS_ERROR_BUSY, and while a round runs (`round` is NULL
 *              and the state LLVS_SYNC_RUNNING) so are exchanges and merges of its coordinator
 *   pointers   live for the callback only
 *   result     none
 * @param status  what it does now
 * @param round   what a round did that has just ended, also a failed one; else NULL. When its `moved` is set, llvs_store_differences from
 *                its `from` to its `to` tells which values are others
 */
typedef void (*llvs_sync_event_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_sync_status *status,
    LLVS_BORROWED const llvs_sync_result *round);

/** How a syncer goes about it. A delay of 0 is the default. Since 0.1. */
typedef struct llvs_syncer_options {
    uint32_t struct_size;
    /** What is so from the beginning. */
    llvs_sync_conditions conditions;
    /** After the last save, before it is sent; ms, 2,000 by default. */
    uint32_t after_save;
    /** After the first of a row of saves, before they are sent at the latest; ms, 10,000 by default. */
    uint32_t after_saves;
    /** Between rounds without another reason, while something came or went in the last 5 minutes; ms, 30,000 by default. */
    uint32_t poll;
    /** The same at most, when nothing comes or goes; ms, 900,000 by default. */
    uint32_t longest_poll;
    /** After failures one after the other: the longest pause; ms, 900,000 by default. */
    uint32_t longest_pause;
    /** Which heads are merged: LLVS_HEADS_UNBRANCHED or LLVS_HEADS_ALL. */
    llvs_head_selection selection;
} llvs_syncer_options;
/** Everything by default. */
#define LLVS_SYNCER_OPTIONS_INIT { (uint32_t)sizeof(llvs_syncer_options), 0, 0, 0, 0, 0, 0, 0 }

/**
 * Starts a syncer, which begins with a round. One coordinator is kept in step by one.
 * @param coordinator  used until the syncer is freed; when it is closed or freed before, the syncer does nothing any more
 * @param options      may be NULL
 * @param fn           may be NULL
 * @param payload, payload_free  see "Callbacks" above
 * Errors: LLVS_ERROR_READ_ONLY (the store was opened so), LLVS_ERROR_CLOSED, LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_IO when no thread can
 * be started. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_syncer_start(LLVS_BORROWED llvs_coordinator *coordinator,
    LLVS_BORROWED const llvs_syncer_options *options, llvs_sync_event_fn fn, LLVS_OWNED void *payload, llvs_free_fn payload_free,
    LLVS_OWNED llvs_syncer **syncer, LLVS_OWNED llvs_error **error);
/**
 * Something happened that a round may be due for. Does not wait for it.
 * Errors: LLVS_ERROR_CLOSED when the coordinator was closed, LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_syncer_trigger(LLVS_BORROWED llvs_syncer *syncer, llvs_sync_trigger trigger,
    LLVS_OWNED llvs_error **error);
/**
 * What is so from now on. Who leaves the background or finds a network tells LLVS_SYNC_TRIGGER_FRONT as well.
 * Errors: as llvs_syncer_trigger. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_syncer_set_conditions(LLVS_BORROWED llvs_syncer *syncer, llvs_sync_conditions conditions,
    LLVS_OWNED llvs_error **error);
/**
 * Does a round as LLVS_SYNC_TRIGGER_USER asks for it, and waits for its end: what a system calls that lets an application in the
 * background work for a while.
 * @param deadline  ms; when they are over, the round is cancelled, and what it had done whole is kept; 0: it takes as long as it takes
 * @param control   its token cancels the round; its progress is called on the calling thread; may be NULL
 * @param done      1 when all was done; 0 when the deadline came first, or a place or the merge failed, as the status says; may be NULL
 * Errors: LLVS_ERROR_CANCELLED, LLVS_ERROR_CLOSED, LLVS_ERROR_BUSY from within an event, LLVS_ERROR_INVALID_ARGUMENT when no exchange is
 * attached, LLVS_ERROR_USER. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_syncer_run(LLVS_BORROWED llvs_syncer *syncer, uint64_t deadline,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED llvs_bool *done, LLVS_OWNED llvs_error **error);
/** What it does now and did so far; released with llvs_sync_status_free. Any time, also when it is off. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_syncer_status(LLVS_BORROWED llvs_syncer *syncer, LLVS_OWNED llvs_sync_status **status,
    LLVS_OWNED llvs_error **error);
/**
 * Ends the syncer: a running round is cancelled, and what it had done whole is kept. Waits until no event is told any more, except from
 * within a callback, as llvs_observer_free does; hold no lock that the callback takes. NULL is a no-op. Since 0.1.
 */
LLVS_API void llvs_syncer_free(LLVS_OWNED llvs_syncer *syncer);

/* ------------------------------------------------------------------------------------------------
 * Direct connections
 * ------------------------------------------------------------------------------------------------ */

/** Bytes of a pairing: what all devices that exchange a store directly share, and nobody else has. */
#define LLVS_PAIRING_SIZE 48
/** Bytes of a device key, of either half. */
#define LLVS_DEVICE_KEY_SIZE 32
/** Bytes that a connection begins with: enough to tell by llvs_pairing_matches which store it is for. */
#define LLVS_PEER_BEGINNING 66

/**
 * One end of a direct connection between two stores, without the connection (docs/live-protocol.md): the host carries bytes between it and
 * the one on the other side, over TCP, a WebSocket, Bluetooth, or whatever it has. Both stores get what they lack, and then what is saved
 * in either, as long as it lasts. All is encrypted, and nobody without the pairing gets in. Needs libcrypto of OpenSSL 3.
 *
 *     after each llvs_peer_receive, llvs_peer_store_changed, llvs_peer_tick and llvs_peer_close:
 *         while (llvs_peer_send(peer, buffer, sizeof buffer, &size, &error) == LLVS_OK && size > 0) write(connection, buffer, size);
 *
 * Safe from all threads; the calls of one wait for each other. Not to be called from within callbacks of its store. Since 0.1.
 */
typedef struct llvs_peer llvs_peer;
/** How far a direct connection is. Since 0.1. */
typedef uint32_t llvs_peer_phase;
enum llvs_peer_phase_value {
    /** It is not known yet who the other side is. */
    LLVS_PEER_CONNECTING = 0,
    /** They find out what each lacks. */
    LLVS_PEER_NEGOTIATING = 1,
    /** Versions are on their way. */
    LLVS_PEER_EXCHANGING = 2,
    /** Each has all that the other has. */
    LLVS_PEER_IN_STEP = 3,
    /** Nothing comes any more: both said goodbye, or it failed. */
    LLVS_PEER_ENDED = 4
};

/**
 * Asked before bytes of the other side are stored, or asked for, so that a host can bound what a peer may take of the disk.
 * @param bytes  how many more, at most
 *
 *   thread     that of the call of the peer; one of the library's where the library carries it
 *   re-entry   may call the library, but neither the peer nor its store
 *   result     LLVS_OK; all else: they are not stored, and the connection ends with LLVS_ERROR_USER, or LLVS_ERROR_NO_SPACE where that was
 *              returned, and what `error` was set to. Since 0.1.
 */
typedef llvs_status (*llvs_quota_fn)(LLVS_BORROWED void *payload, uint64_t bytes, LLVS_OWNED llvs_error **error);

/** How an end of a direct connection is opened. Since 0.1. */
typedef struct llvs_peer_options {
    uint32_t struct_size;
    /** 1: this side made the connection, and begins. */
    llvs_bool initiator;
    /** LLVS_PAIRING_SIZE bytes, the same on both sides; none: this side gets it by `invitation`. */
    llvs_bytes pairing;
    /** The secret half of this device's key, LLVS_DEVICE_KEY_SIZE bytes; none: one for this connection alone, by which nobody knows the
        device again, so that each connection begins with finding out what both have. */
    llvs_bytes identity;
    /** What the other side is told that this device is called; UTF-8, at most 255 bytes; may be empty. */
    llvs_bytes device;
    /** The public halves of the device keys that are accepted; NULL and 0: all that have the pairing. Whoever is given the pairing by an
     *  invitation or by comparing digits is let in beside them, by that connection and, at a listener, by later ones. */
    const llvs_bytes *accepted;
    size_t accepted_count;
    /** The code of an invitation, by which this connection is made instead of by the pairing; none: by the pairing. The side that has a
        pairing gives it to the other one, which has none. See llvs_invitation_make. */
    llvs_bytes invitation;
    /** 1: the connection is made by neither: people compare the digits of llvs_peer_state on both sides, and each says so by
        llvs_peer_confirm. Then the side that has a `pairing` gives it to the other one, which has none. */
    llvs_bool compares_digits;
    uint32_t reserved;
    /** Bounds what is stored; may be NULL. */
    llvs_quota_fn quota;
    /** See "Callbacks" above; freed with the peer, or when it cannot be opened. */
    void *quota_payload;
    llvs_free_fn quota_free;
    /** In the place of `pairing`: an exchange with an encrypted place, from whose newest keys, as it read them last, the pairing follows
        (llvs_exchange_pairing). When it reads newer ones, the connection ends with LLVS_ERROR_WRONG_KEY: whoever is at its other end may
        have been removed. Not with `invitation` and `compares_digits`; LLVS_ERROR_KEY_MISSING where it has read none yet. Only used during
        the call; what is needed of it is kept. NULL: by the pairing. */
    llvs_exchange *exchange;
    /** Where the other side is, "192.0.2.7" say, for a host that carries the bytes and lets in whoever has the pairing: what one address
        may have looked through is bounded then, whatever device keys are used there. None, or where `accepted` says who gets in: it is
        not. Connections that the library carries need none. */
    llvs_bytes place;
    /** For a host that carries the bytes within TLS: what its exporter gives (RFC 9266: "EXPORTER-Channel-Binding", 32 bytes), 16 to 255
        bytes that both ends of that connection have in common, and nobody else. Where it is given, the other side has to give the same,
        or the connection ends with LLVS_ERROR_WRONG_KEY: somebody between the two holds two connections of TLS. None: nothing is said of
        what is outside; all is encrypted from end to end in any case. */
    llvs_bytes outer;
} llvs_peer_options;
#define LLVS_PEER_OPTIONS_INIT \
    { (uint32_t)sizeof(llvs_peer_options), 0, LLVS_NONE_INIT, LLVS_NONE_INIT, LLVS_NONE_INIT, 0, 0, LLVS_NONE_INIT, 0, 0, 0, 0, 0, 0, \
      LLVS_NONE_INIT, LLVS_NONE_INIT }

/** What happened on a direct connection until now. Since 0.1. */
typedef struct llvs_peer_state {
    uint32_t struct_size;
    llvs_peer_phase phase;
    /** What the other side says that it is called; empty before it is known. */
    llvs_bytes device;
    /** The public half of its device key; empty before it is known. */
    llvs_bytes key;
    /** Versions that were sent, and that came and were added here. */
    uint64_t sent;
    uint64_t received;
    /** Versions that could not be sent or taken since the state was asked for before; what builds on them waits for them. */
    const llvs_problem *const *problems;
    size_t problem_count;
    /** The pairing that an invitation brought, to be kept in secret for all further connections; empty before it came, and where there was
        none to come. */
    llvs_bytes pairing;
    /** Six digits to be compared by people, where that was asked for; empty before they are known. */
    llvs_bytes digits;
} llvs_peer_state;
/** Releases the state, with what it points to. Since 0.1. */
LLVS_API void llvs_peer_state_free(LLVS_OWNED llvs_peer_state *state);

/** Draws a pairing for a store, on one of its devices; the others are given the bytes, in secret. Errors: LLVS_ERROR_IO. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_pairing_make(LLVS_OWNED llvs_buffer *pairing, LLVS_OWNED llvs_error **error);
/**
 * Draws the code of an invitation: 26 digits and letters, which people carry to a device that has no pairing yet, as text, as a link or as
 * a QR code. Both sides give it in llvs_peer_options.invitation; the one that has the pairing gives it over the connection. An invitation
 * is good for one connection, and is better forgotten after some minutes: that is up to the program that made it.
 * Errors: LLVS_ERROR_IO. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_invitation_make(LLVS_OWNED llvs_buffer *code, LLVS_OWNED llvs_error **error);
/**
 * For whoever listens for several stores: whether a connection is of devices that share a pairing, or an invitation.
 * @param pairing    LLVS_PAIRING_SIZE bytes, or the code of an invitation; empty: whether people are to compare digits
 * @param beginning  the first LLVS_PEER_BEGINNING bytes that came; also to be given to llvs_peer_receive
 * @param matches    0 or 1; where no pairing matches, the connection is to be closed without a byte
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED (there is no libcrypto). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_pairing_matches(llvs_bytes pairing, llvs_bytes beginning, LLVS_BORROWED llvs_bool *matches,
    LLVS_OWNED llvs_error **error);
/**
 * The public half of a device key, by which others accept the device.
 * @param identity  the secret half: LLVS_DEVICE_KEY_SIZE random bytes
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_device_key(llvs_bytes identity, LLVS_OWNED llvs_buffer *key, LLVS_OWNED llvs_error **error);

/**
 * Opens an end of a direct connection. Nothing has been sent yet; the store is kept open by it.
 * @param options  copied; secrets are kept in memory that is wiped
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_READ_ONLY, LLVS_ERROR_CLOSED, LLVS_ERROR_UNSUPPORTED (there is no libcrypto).
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_open(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_peer_options *options,
    LLVS_OWNED llvs_peer **peer, LLVS_OWNED llvs_error **error);
/**
 * Takes what came, in pieces of any size, and stores what is whole of it.
 * Errors end the connection; what llvs_peer_send gives then tells the other side, and what was stored stays: LLVS_ERROR_WRONG_KEY (the
 * other side is not paired, or does not accept this device), LLVS_ERROR_DAMAGED and LLVS_ERROR_TOO_LARGE (it broke a rule or a bound, or
 * somebody changed what it sent; the message says which), LLVS_ERROR_NEWER_FORMAT, storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_receive(LLVS_BORROWED llvs_peer *peer, llvs_bytes data, LLVS_OWNED llvs_error **error);
/**
 * Says that nothing comes any more.
 * Errors: LLVS_ERROR_WRONG_KEY when the other side ended it before it said who it is, as it does for those whom it does not know: the
 * message says what to do. LLVS_ERROR_CUT_SHORT when it had not said goodbye. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_receive_end(LLVS_BORROWED llvs_peer *peer, LLVS_OWNED llvs_error **error);
/**
 * Gives what is to be sent next.
 * @param buffer    filled from its start
 * @param capacity  its size
 * @param size      how much of it was filled; 0: there is nothing, until something came or was saved
 * Errors: storage errors, which end the connection. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_send(LLVS_BORROWED llvs_peer *peer, LLVS_BORROWED void *buffer, size_t capacity,
    LLVS_BORROWED size_t *size, LLVS_OWNED llvs_error **error);
/** Looks for versions that came into the store, to be sent: to be called when it tells of some. Errors: storage errors. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_store_changed(LLVS_BORROWED llvs_peer *peer, LLVS_OWNED llvs_error **error);
/**
 * Says what time it is, every few seconds: a silent side is asked for a sign after 30 seconds, and given up after 90; after 10 when it has
 * not said who it is.
 * @param seconds  of any clock that never goes back
 * Errors: LLVS_ERROR_CUT_SHORT, LLVS_ERROR_INVALID_ARGUMENT when it is not finite. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_tick(LLVS_BORROWED llvs_peer *peer, double seconds, LLVS_OWNED llvs_error **error);
/**
 * Says that the person on this side sees the same digits on both (`digits` of llvs_peer_state). Whoever has no pairing gets it when both
 * sides have said so; who does not see the same closes the connection.
 * Errors: LLVS_ERROR_INVALID_ARGUMENT when there are no digits (yet). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_confirm(LLVS_BORROWED llvs_peer *peer, LLVS_OWNED llvs_error **error);
/**
 * Says whether the program is in the background from now on. Then it says goodbye, at an llvs_peer_tick, when no version went either way
 * for 20 minutes.
 * Errors: LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_set_background(LLVS_BORROWED llvs_peer *peer, llvs_bool is_in_background,
    LLVS_OWNED llvs_error **error);
/** Says goodbye once all has been sent and stored; it ends when the other side has said so, too. Errors: storage errors. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_close(LLVS_BORROWED llvs_peer *peer, LLVS_OWNED llvs_error **error);
/** What happened until now; released with llvs_peer_state_free. Errors: LLVS_ERROR_OUT_OF_MEMORY. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_get_state(LLVS_BORROWED llvs_peer *peer, LLVS_OWNED llvs_peer_state **state,
    LLVS_OWNED llvs_error **error);
/** Releases it, whether or not it has ended: the other side takes the connection for cut. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_peer_free(LLVS_OWNED llvs_peer *peer);

/**
 * Connects a store to the one that a listener offers at an address, and keeps them in step, on a thread of the library's, until it is
 * closed, freed, or cut. What is saved on either side goes to the other at once; nobody calls llvs_peer_receive, llvs_peer_send and
 * llvs_peer_tick, which refuse.
 * @param options  `initiator` is taken for 1
 * @param address  "host:port", "[host]:port", or "unix:" and a path
 * @param seconds  for the connection itself
 * Errors: LLVS_ERROR_TRANSPORT (nothing listens there), LLVS_ERROR_IO, and those of llvs_peer_open. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_connect(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_peer_options *options,
    llvs_bytes address, double seconds, LLVS_OWNED llvs_peer **peer, LLVS_OWNED llvs_error **error);
/**
 * Has the library carry an end over a connected socket of the host's, as llvs_peer_connect does.
 * @param peer        nothing of it was carried yet
 * @param descriptor  the library's from here on, which closes it, also when this fails
 * Errors: LLVS_ERROR_INVALID_ARGUMENT when it is carried already, LLVS_ERROR_IO, LLVS_ERROR_CLOSED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_carry(LLVS_BORROWED llvs_peer *peer, int32_t descriptor, LLVS_OWNED llvs_error **error);
/**
 * Waits until both stores are in step, with all that is in this one now, or the connection has ended. For what the library carries.
 * @param seconds  for how long at most
 * @param in_step  whether they are
 * Errors: why it ended, as of llvs_peer_receive; LLVS_ERROR_WRONG_KEY when the other side does not know the pairing or the invitation, or
 * does not accept this device; LLVS_ERROR_CUT_SHORT, LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_wait(LLVS_BORROWED llvs_peer *peer, double seconds, LLVS_BORROWED llvs_bool *in_step,
    LLVS_OWNED llvs_error **error);

/**
 * Offers stores to those that connect directly, each to those that have its pairing, and keeps them in step, on threads of the library's.
 * Who is not paired gets no answer. At most 32 connections at once have not said who they are, each for 10 seconds; who connected five
 * times within a minute from one address and did not get in is not looked at. Safe from all threads. Since 0.1.
 */
typedef struct llvs_listener llvs_listener;
/**
 * Listens at an address.
 * @param address  as of llvs_peer_connect; port 0 lets the system choose one. A Unix socket is made for its owner alone
 * @param options  who this side is: identity, device, accepted, quota; the other fields stay empty
 * Errors: LLVS_ERROR_TRANSPORT (the address is taken, or none of this machine), LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_IO. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_open(llvs_bytes address, LLVS_BORROWED const llvs_peer_options *options,
    LLVS_OWNED llvs_listener **listener, LLVS_OWNED llvs_error **error);
/**
 * Offers a store, one of several; it is kept open.
 * @param pairing  LLVS_PAIRING_SIZE bytes; a store that was offered by it before is offered no more
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_READ_ONLY, LLVS_ERROR_CLOSED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_offer(LLVS_BORROWED llvs_listener *listener, LLVS_BORROWED llvs_store *store,
    llvs_bytes pairing, LLVS_OWNED llvs_error **error);
/**
 * Offers a store to the members of an encrypted place, who need no other pairing: to those that have its newest keys, as far as the
 * exchange has read them (each exchange does, at most every 10 minutes). Who has only former ones gets no answer: it exchanges with the
 * place first. Connections that were made by former ones end when newer ones are read. No invitations are made to it.
 * @param store     kept open; the exchange may be one of another handle
 * @param exchange  only used during the call; what is needed of it is kept
 * Errors: LLVS_ERROR_UNSUPPORTED (opened without keys), LLVS_ERROR_KEY_MISSING (it has read none yet: call llvs_exchange_pairing),
 * LLVS_ERROR_READ_ONLY, LLVS_ERROR_CLOSED. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_offer_members(LLVS_BORROWED llvs_listener *listener, LLVS_BORROWED llvs_store *store,
    LLVS_BORROWED llvs_exchange *exchange, LLVS_OWNED llvs_error **error);
/** Where it listens, with the port that the system chose: what others give to llvs_peer_connect. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_address(LLVS_BORROWED llvs_listener *listener, LLVS_OWNED llvs_buffer *address,
    LLVS_OWNED llvs_error **error);
/**
 * The code of an invitation to a store, as of llvs_invitation_make: whoever connects by it gets the store's pairing. It is good for one
 * device: one that was cut before it had the pairing for certain may try again, with the same `identity`.
 * @param pairing  of a store that is offered
 * @param seconds  for how long it is good
 * Errors: LLVS_ERROR_NOT_FOUND (no such store is offered), LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_IO. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_invite(LLVS_BORROWED llvs_listener *listener, llvs_bytes pairing, double seconds,
    LLVS_OWNED llvs_buffer *code, LLVS_OWNED llvs_error **error);
/**
 * Lets one device in whose digits people compare. llvs_listener_accept gives its peer, whose state has the digits; llvs_peer_confirm says
 * that they are the same.
 * @param pairing  of a store that is offered
 * @param seconds  for how long it is waited for
 * Errors: LLVS_ERROR_NOT_FOUND, LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_BUSY when another is waited for. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_compare(LLVS_BORROWED llvs_listener *listener, llvs_bytes pairing, double seconds,
    LLVS_OWNED llvs_error **error);
/**
 * The next connection that was not given yet, to look at its state; it goes on whether or not somebody asks for it.
 * @param seconds  for how long it is waited for
 * @param peer     NULL when none came. Freeing it ends the connection.
 * Errors: LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_listener_accept(LLVS_BORROWED llvs_listener *listener, double seconds,
    LLVS_OWNED llvs_peer **peer, LLVS_OWNED llvs_error **error);
/**
 * Listens no more, says goodbye to those that are connected, and waits for them to do so, at most 10 seconds; then releases it. NULL is a
 * no-op. Since 0.1.
 */
LLVS_API void llvs_listener_free(LLVS_OWNED llvs_listener *listener);

/** What is told of devices on the local network. Since 0.1. */
typedef uint32_t llvs_nearby_event;
enum llvs_nearby_event_value {
    /** A device of that name listens at an address: one event for each of its addresses. */
    LLVS_NEARBY_FOUND = 0,
    /** It does no more. */
    LLVS_NEARBY_GONE = 1,
    /** This device is called so from now on, since another has the name that it had; no address. */
    LLVS_NEARBY_NAMED = 2
};
/**
 * Hears of a device on the local network. Since 0.1.
 *   thread     one of the library's, which waits for it; one call at a time
 *   re-entry   may call the library, also to free its own observer
 *   pointers   live for the callback only. Both are UTF-8: the name is what anybody chose, the address is written in numbers, with `%` and
 *              the interface behind it where it is good there alone
 *   result     none
 */
typedef void (*llvs_nearby_fn)(LLVS_BORROWED void *payload, llvs_nearby_event event, LLVS_BORROWED const llvs_bytes *name,
    LLVS_BORROWED const llvs_bytes *address, uint32_t port);
/**
 * Finds devices on the local network that offer stores to direct connections, and announces this one, by DNS-SD (RFC 6763) through the
 * daemon of Avahi. Whoever is found may be anybody: the pairing says who is let in. Everybody on the network sees the names, and not which
 * stores there are. When the daemon is started anew, all is announced and looked for again. Where there is none, a program finds
 * devices by what it has: a direct connection goes over any stream of bytes.
 * @param name  what this device is called there, at most 63 bytes of UTF-8; none: the host's name. Where another has it, a number is added
 * @param port  where this device listens; 0: it is not announced
 * @param fn, payload, payload_free  see "Callbacks" above; not called for what is announced here
 * @param observer  ends both when freed
 * Errors: LLVS_ERROR_UNSUPPORTED (Avahi is not installed, or its daemon does not run), LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_nearby_observe(llvs_bytes name, uint32_t port, llvs_nearby_fn fn, LLVS_OWNED void *payload,
    llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Answers of callbacks
 * ------------------------------------------------------------------------------------------------ */

/** Adds an item to a list: a name. Copied. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_reply_add(LLVS_BORROWED llvs_reply *reply, llvs_bytes item, LLVS_OWNED llvs_error **error);
/** Answers question number `index` (0 when there is one only); what is never answered is absent. Copied. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_reply_set(LLVS_BORROWED llvs_reply *reply, size_t index, llvs_bytes data,
    LLVS_OWNED llvs_error **error);
/**
 * Answers a question of fetch_changes or fetch_versions with a file that is read in pieces, later and once at most, while nothing else is
 * asked of the transport: for large ones, which then need not be in memory as a whole.
 * @param size  bytes in the file, as far as is known; 0: not known
 * @param read  gives what comes next: as for llvs_value_source, but on the thread of the exchange's call, after the callback has
 *              returned. LLVS_ERROR_IO, _PERMISSION and _NOT_FOUND make a problem of this one version; all else ends the exchange, as
 *              when a callback of the transport fails
 * @param payload, payload_free  see "Callbacks" above; freed when the file is read, or not wanted
 * Errors: LLVS_ERROR_INVALID_ARGUMENT for an index that is not asked for. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_reply_set_source(LLVS_BORROWED llvs_reply *reply, size_t index, uint64_t size, llvs_read_fn read,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_error **error);
/**
 * Reports a record to a storage's scan.
 * @param place   the host's number for the record
 * @param size    bytes in the record
 * @param prefix  its first bytes: all when there are at most 65536, else at least 65536. Copied
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_reply_record(LLVS_BORROWED llvs_reply *reply, uint64_t place, uint64_t size, llvs_bytes prefix,
    LLVS_OWNED llvs_error **error);
/** Whether the call that led here has been cancelled by its token: return LLVS_ERROR_CANCELLED soon. Since 0.1. */
LLVS_API llvs_bool llvs_reply_is_cancelled(LLVS_BORROWED const llvs_reply *reply);

/* ------------------------------------------------------------------------------------------------
 * A storage of the host
 * ------------------------------------------------------------------------------------------------ */

/**
 * Keeps a store's records in whatever the host has. A record is opaque bytes under a number, its place, that the host chooses. Since 0.1.
 *   thread     any, one call at a time per storage
 *   re-entry   cannot call into the store that uses it: LLVS_ERROR_BUSY
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK; all else: the call that led here fails with LLVS_ERROR_USER and what `error` was set to
 *              (by llvs_error_make; optional); LLVS_ERROR_NO_SPACE, _PERMISSION, _IO, _DAMAGED, _READ_ONLY, _NOT_FOUND, _BUSY and
 *              _TOO_MANY_FILES keep their code, and so does LLVS_ERROR_UNKNOWN_OUTCOME: of an append of which nobody knows whether the
 *              records are kept
 * A record is handed over with checksums in it, and what is read is checked: bytes that changed are damage, never wrong values.
 * All callbacks are needed, save where a comment says otherwise.
 */
typedef struct llvs_storage_callbacks {
    uint32_t struct_size;
    uint32_t reserved;
    /**
     * Keeps `count` records, all or, also across a crash, none, and sets places[i] for each, to any number but UINT64_MAX. A place that
     * is not set is LLVS_ERROR_UNKNOWN_OUTCOME: nobody knows what was kept.
     */
    llvs_status (*append)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *records, size_t count,
                          LLVS_BORROWED uint64_t *places, LLVS_OWNED llvs_error **error);
    /**
     * Reports by llvs_reply_record records that came after `*mark`, whoever appended them, in any order, and moves the mark. The mark is
     * the host's own; it is 0 the first time. Called again until it reports nothing or leaves the mark: so it may report all at
     * once, or a part of them each time. A record may be reported again.
     */
    llvs_status (*scan)(LLVS_BORROWED void *payload, LLVS_BORROWED uint64_t *mark, LLVS_BORROWED llvs_reply *reply,
        LLVS_OWNED llvs_error **error);
    /** Copies `size` bytes of the record from `offset` on; LLVS_ERROR_DAMAGED when it has not that many. */
    llvs_status (*read)(LLVS_BORROWED void *payload, uint64_t place, uint64_t offset, LLVS_BORROWED uint8_t *buffer, size_t size,
        LLVS_OWNED llvs_error **error);
    /**
     * Makes what was appended safe from a power cut. When it fails, in whatever way, the call gives LLVS_ERROR_UNKNOWN_OUTCOME. May be
     * NULL.
     */
    llvs_status (*sync)(LLVS_BORROWED void *payload, LLVS_OWNED llvs_error **error);
    /** The store is done with the storage. It may be opened with it again. May be NULL. */
    llvs_status (*close)(LLVS_BORROWED void *payload, LLVS_OWNED llvs_error **error);
    /**
     * Answers 0 with the blob of that name, or nothing. All three of these, or none; without them blobs last as long as the storage is
     * open.
     */
    llvs_status (*cache_get)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_BORROWED llvs_reply *reply,
        LLVS_OWNED llvs_error **error);
    llvs_status (*cache_put)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_BORROWED const llvs_bytes *data,
        LLVS_OWNED llvs_error **error);
    llvs_status (*cache_delete)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_OWNED llvs_error **error);
} llvs_storage_callbacks;
#define LLVS_STORAGE_CALLBACKS_INIT { (uint32_t)sizeof(llvs_storage_callbacks), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/**
 * A storage for llvs_store_options.host_storage. It serves one open store at a time: LLVS_ERROR_BUSY.
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

/** Two files of one version, to be published. Since 0.1. */
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

/** A large file to be published, made piece by piece; lives for the callback only. Since 0.1. */
typedef struct llvs_outgoing llvs_outgoing;
/** Bytes in all. Since 0.1. */
LLVS_API uint64_t llvs_outgoing_size(LLVS_BORROWED const llvs_outgoing *outgoing);
/**
 * Calls with each piece of the file, in order. May be called again, which gives the same bytes from the start.
 * Errors: what `write` gives; LLVS_ERROR_DAMAGED and other storage errors, which the callback of the transport hands on as they are. Since
 * 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_outgoing_write(LLVS_BORROWED llvs_outgoing *outgoing, llvs_write_fn write,
    LLVS_BORROWED void *payload, LLVS_OWNED llvs_error **error);

/**
 * Moves version files to and from whatever place the host has. A transport moves bytes: it does not look into them. Since 0.1.
 *   thread     any, one call at a time per transport
 *   re-entry   may call the library, but not the exchange that uses it
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK; all else: the exchange ends with LLVS_ERROR_USER and what `error` was set to (by llvs_error_make; optional);
 *              LLVS_ERROR_TRANSPORT, _PERMISSION, _NO_SPACE, _IO, _CANCELLED keep their code. A file that is missing is not an error
 * All callbacks are needed, save where a comment says otherwise.
 */
typedef struct llvs_transport_callbacks {
    uint32_t struct_size;
    uint32_t reserved;
    /** Adds (llvs_reply_add) the names of all version files on the other side, in any order; foreign names may be among them. */
    llvs_status (*list)(LLVS_BORROWED void *payload, LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /** Answers (llvs_reply_set) for each name with its version file. */
    llvs_status (*fetch_versions)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *names, size_t count,
        LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /** Answers (llvs_reply_set, for large files llvs_reply_set_source) for each name with its changes file. */
    llvs_status (*fetch_changes)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *names, size_t count,
        LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /**
     * Publishes files in order, the changes of a version before the version, each whole or not at all; existing ones are replaced.
     * The reply is for llvs_reply_is_cancelled only.
     */
    llvs_status (*send)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_exchange_files *const *files, size_t count,
        LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /**
     * Snapshots: all four of these, or none; without them snapshots are LLVS_ERROR_UNSUPPORTED. Names are like "manifest.json" and
     * "chunk-000", also with one folder before. Adds the names there are.
     */
    llvs_status (*snapshot_list)(LLVS_BORROWED void *payload, LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /** Answers 0 with the file, or nothing. */
    llvs_status (*snapshot_read)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_BORROWED llvs_reply *reply,
        LLVS_OWNED llvs_error **error);
    llvs_status (*snapshot_write)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_BORROWED const llvs_bytes *data,
        LLVS_OWNED llvs_error **error);
    llvs_status (*snapshot_delete)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_OWNED llvs_error **error);
    /** The exchange is done with the transport. May be NULL. */
    llvs_status (*close)(LLVS_BORROWED void *payload, LLVS_OWNED llvs_error **error);
    /**
     * Publishes the two files of one version whose changes file has more than 1 MiB, as `send` does: takes the changes file by
     * llvs_outgoing_write. May be NULL: then `send` gets it, in memory as a whole.
     */
    llvs_status (*send_large)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_BORROWED const llvs_bytes *version,
                              LLVS_BORROWED llvs_outgoing *changes, LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /**
     * Adds (llvs_reply_add) those of the names of which it is known, without fetching, that one of the two files is missing, empty or cut
     * short: llvs_exchange_send, which asks for up to 1000 of the versions that are listed and in the store, writes them anew; where
     * a retrieve met a version file of the form of earlier builds (docs/interchange.md), it asks for all, once, 1000 at a time. Other
     * names are ignored. May be NULL, for places where a file is there whole or not at all, or where nobody can tell: then
     * llvs_exchange_verify finds such files.
     */
    llvs_status (*unusable)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *names, size_t count,
        LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
} llvs_transport_callbacks;
#define LLVS_TRANSPORT_CALLBACKS_INIT { (uint32_t)sizeof(llvs_transport_callbacks), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/**
 * A transport for the `host_transport` of llvs_exchange_options.
 * @param name       for messages: "the transport <name>"; may be empty
 * @param callbacks  copied
 * @param payload, payload_free  see "Callbacks" above
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_transport_create(llvs_bytes name, LLVS_BORROWED const llvs_transport_callbacks *callbacks,
    LLVS_OWNED void *payload, llvs_free_fn payload_free, LLVS_OWNED llvs_transport **transport, LLVS_OWNED llvs_error **error);
/**
 * The other side may have gained versions: tells those who observe the exchange. Any thread, also from a callback. LLVS_OK when nobody
 * does. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_transport_notify(LLVS_BORROWED llvs_transport *transport, LLVS_OWNED llvs_error **error);
/**
 * The state that the transport wants to find again in a later process: read and set by the host at any time; see
 * llvs_exchange_restoration_state. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_transport_state(LLVS_BORROWED llvs_transport *transport, LLVS_OWNED llvs_buffer *state,
    LLVS_OWNED llvs_error **error);
/** Sets it; copied. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_transport_set_state(LLVS_BORROWED llvs_transport *transport, llvs_bytes state,
    LLVS_OWNED llvs_error **error);
/** Releases the transport; an exchange that uses it keeps it alive. Since 0.1. */
LLVS_API void llvs_transport_free(LLVS_OWNED llvs_transport *transport);

/* ------------------------------------------------------------------------------------------------
 * Files of the host
 * ------------------------------------------------------------------------------------------------ */

/** What a host's files cannot do; a set of these. Since 0.1. */
typedef uint32_t llvs_files_traits;
enum llvs_files_traits_value {
    /** `read` gives whole files alone. */
    LLVS_FILES_WITHOUT_RANGES = 1,
    /** Of two that publish one name at once both may be told that they did. */
    LLVS_FILES_NOT_EXCLUSIVE = 2
};

/**
 * A place of the host that holds named files: a service that the library does not know. It puts versions there as at any server, in packs
 * or in single files (llvs_exchange_options.layout), encrypted where keys are given (docs/remote-files.md). Since 0.1.
 *
 * A name is a path like "pack1/log/abc": components of letters, digits, '.', '_' and '-', at most 128 bytes each and no dot in front,
 * with '/' between them. A directory is one without the last component; it is there when a file in it is. Files are there whole or not at
 * all, and are never changed in part.
 *   thread     any, one call at a time per transport
 *   re-entry   may call the library, but not the exchange that uses it
 *   pointers   live for the callback only, `payload` aside
 *   result     LLVS_OK; all else: the exchange ends with LLVS_ERROR_USER and what `error` was set to (by llvs_error_make; optional);
 *              LLVS_ERROR_TRANSPORT, _PERMISSION, _NO_SPACE, _IO, _BUSY, _CANCELLED keep their code. A file that is missing is not an error
 * All callbacks are needed but `close`. llvs_check_files (llvs_testing.h) proves them.
 */
typedef struct llvs_files_callbacks {
    uint32_t struct_size;
    llvs_files_traits traits;
    /**
     * Adds (llvs_reply_file) all files of a directory by their last components, in any order; nothing when there is no such directory.
     * Directories in it may be added, what lies in them not. Foreign names may be among them.
     */
    llvs_status (*list)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *directory, LLVS_BORROWED llvs_reply *reply,
        LLVS_OWNED llvs_error **error);
    /**
     * Answers 0 (llvs_reply_set, for large files llvs_reply_set_source) with the file, or nothing when it is missing; with a `size` other
     * than 0 with those bytes of it from `offset` on, fewer or none where it ends before. LLVS_ERROR_IO is a problem of that one file.
     */
    llvs_status (*read)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, uint64_t offset, uint64_t size,
        LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /**
     * Makes a file of what llvs_outgoing_write gives, and the directories above it, so that nobody ever sees a part of it. `replaces` 1:
     * one of that name is replaced; 0: it stays, and the result is LLVS_PASS. LLVS_ERROR_FOREIGN_FILE: something else has its name, a
     * problem of that one file. The reply is for llvs_reply_is_cancelled only.
     */
    llvs_status (*publish)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, llvs_bool replaces,
        LLVS_BORROWED llvs_outgoing *file, LLVS_BORROWED llvs_reply *reply, LLVS_OWNED llvs_error **error);
    /** Removes a file; one that is not there is no error. */
    llvs_status (*remove)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_bytes *name, LLVS_OWNED llvs_error **error);
    /** The exchange is done with the files. May be NULL. */
    llvs_status (*close)(LLVS_BORROWED void *payload, LLVS_OWNED llvs_error **error);
} llvs_files_callbacks;
#define LLVS_FILES_CALLBACKS_INIT { (uint32_t)sizeof(llvs_files_callbacks), 0, 0, 0, 0, 0, 0 }

/**
 * Adds to a list: a file, or a directory.
 * @param name          its last component; copied
 * @param size          bytes in it; of a directory it says nothing
 * @param is_directory  1 for a directory
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_reply_file(LLVS_BORROWED llvs_reply *reply, llvs_bytes name, uint64_t size, llvs_bool is_directory,
    LLVS_OWNED llvs_error **error);

/**
 * A transport over such files, for the `host_transport` of llvs_exchange_options, whose `layout` and keys count. It keeps no state by
 * llvs_transport_set_state (LLVS_ERROR_UNSUPPORTED): what is remembered of the place lies beside the store.
 * @param name       for messages ("the files <name>"), and to find again what a store knows of the place: the same in every process, and
 *                   another for each place; not empty
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
LLVS_LAYOUT(llvs_store_options, 88);
LLVS_LAYOUT(llvs_statistics, 80);
LLVS_LAYOUT(llvs_damage, 80);
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

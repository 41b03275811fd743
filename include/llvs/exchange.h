/*
 * llvs/exchange.h - exchanges with places (folders, servers, cloud drives), keys of encrypted places, snapshots, import.
 *
 * An exchange receives the versions that other devices published at a place, and sends those of the store:
 *
 *     llvs_exchange *exchange;
 *     llvs_exchange_result *received;
 *     llvs_error *error;
 *     if (llvs_exchange_open(store, llvs_str("file:///home/ann/shared"), NULL, &exchange, &error) != LLVS_OK) return 1;
 *     if (llvs_exchange_retrieve(exchange, NULL, &received, &error) == LLVS_OK) {
 *         printf("%zu versions, %zu problems\n", received->retrieved_count, received->problem_count);
 *         llvs_exchange_result_free(received);
 *         if (llvs_exchange_send(exchange, NULL, NULL, &error) != LLVS_OK) llvs_error_free(error);
 *     } else llvs_error_free(error);
 *     llvs_exchange_free(exchange);
 *
 * CAVEATS
 *
 *  - An exchange never merges: received versions are new heads, until llvs_store_merge_heads or llvs_coordinator_sync merges them.
 *  - A version that cannot be exchanged is a problem in the result, not an error of the call: check `problems`.
 *  - Opening an exchange with a server sends nothing. The first call that exchanges shows whether the address and the keys are right.
 *  - Without keys, nothing is ever sent to an encrypted place; with keys, an unencrypted place is refused.
 *
 * llvs.h has an overview, and llvs/common.h the conventions.
 */
#ifndef LLVS_EXCHANGE_H
#define LLVS_EXCHANGE_H

#include "store.h"

LLVS_BEGIN_DECL

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
     * Both, so that devices with packs and other implementations can share a place; for a place that is empty or has the two files of each
     * version. Not for encrypted places.
     */
    LLVS_LAYOUT_BRIDGED = 3
};

/** How to open an exchange. Since 0.1. */
typedef struct llvs_exchange_options {
    uint32_t struct_size;
    /**
     * For files that a file: exchange writes. LLVS_DURABILITY_FULL: a file is on disk before other devices see it. LLVS_DURABILITY_NORMAL:
     * faster; a power cut may leave files without their bytes. Others report these as problems, and a device that has the version writes
     * them again.
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
    /** See "Callbacks" in common.h; freed with the exchange, or when it cannot be opened. */
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
    /** See "Callbacks" in common.h; freed with the exchange, or when it cannot be opened. */
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
     * If `passphrase` or `identities` are given, the place is encrypted (docs/encryption.md), these open it, and its layout is packed. The
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
    /** See "Callbacks" in common.h; freed with the exchange, or when it cannot be opened. */
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
 *                 of all except "memory:" may have layout=packed (many versions to a file, docs/sync.md) or layout=interchange (two files
 *                 for each, which other implementations read). Without it, a folder is interchange; a server has the layout of its
 *                 contents, or packed if it is empty. UTF-8; %XX is a byte. The URL has no user and no password: these are options. Empty
 *                 with a `host_transport`
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
    /** The result of the exchange, also if it failed. */
    const struct llvs_exchange_result *result;
    /** The error that ended it; NULL if there was none. Borrowed from the result. */
    const llvs_error *error;
} llvs_exchanged;
/** The result of an exchange; immutable, owned. Since 0.1. */
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
 * Errors: LLVS_ERROR_TRANSPORT, LLVS_ERROR_NOT_FOUND (the place does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO,
 * LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEY_MISSING, LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place),
 * LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback), storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_retrieve(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Retrieves as llvs_exchange_retrieve does, and also fetches versions that the store already has, to compare them. A damaged file at the
 * other side is a problem in the result, and the next llvs_exchange_send of this exchange writes the two files of that version again. If
 * the files are undamaged, but the version differs from the store's, there is a problem with LLVS_ERROR_VERSION_MISMATCH: both stay
 * unchanged. Versions that are damaged in the store are repaired, as by llvs_exchange_retrieve, even if the damage was not found before.
 * @param control  progress and cancellation; may be NULL
 * @param result   may be NULL
 * Errors: LLVS_ERROR_TRANSPORT, LLVS_ERROR_NOT_FOUND (the place does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO,
 * LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEY_MISSING, LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place),
 * LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback), storage errors. Cost: reads everything that the other side has, and the same in
 * the store. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_verify(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Sends the versions that the store has and the other side lacks. It also checks files of versions that both have, and writes them again if
 * one is missing, cut short or not the version that its name says. Each call checks the newest 500 such versions and 500 others in turn,
 * and reads only files that are new or changed since its last check. With a transport of the host it checks versions that entered the store
 * since the exchange was opened, and those that `unusable` returns. llvs_exchange_verify checks all.
 * @param control  progress and cancellation; may be NULL
 * @param result   may be NULL
 * Errors: LLVS_ERROR_NO_SPACE, LLVS_ERROR_TRANSPORT, LLVS_ERROR_NOT_FOUND (the place does not exist, or was emptied),
 * LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEY_MISSING, LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_NEWER_FORMAT (a
 * newer library wrote the place), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback), storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_send(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);

/** The kind of a member: what it uses to open the keys of an encrypted place. Since 0.1. */
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
    size_t count;
    /** NULL after the last. */
    const llvs_member *const *items;
} llvs_member_list;
/** Releases the list, with all that it points to. Since 0.1. */
LLVS_API void llvs_member_list_free(LLVS_OWNED llvs_member_list *list);

/**
 * Lists the members of the place of an exchange that was opened with keys.
 * Errors: LLVS_ERROR_UNSUPPORTED (opened without keys), LLVS_ERROR_KEY_MISSING (the place has none yet, or they are lost),
 * LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_TOO_LARGE (there are so many files of keys that this device has not read all of
 * them yet: exchange again), LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place), LLVS_ERROR_TRANSPORT, LLVS_ERROR_NOT_FOUND (the
 * place does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback),
 * storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_members(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_member_list **members, LLVS_OWNED llvs_error **error);
/**
 * Adds a member, who can read everything that was and will be written. LLVS_OK if it is a member already.
 * @param recipient  "age1..."; ASCII
 * @param name       for people; UTF-8, at most 256 bytes; may be empty
 * @param kind       for people; not LLVS_MEMBER_PASSPHRASE, which a place gets when it is made with a passphrase
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (not a recipient, or one that was removed), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_UNSUPPORTED (opened
 * without keys), LLVS_ERROR_KEY_MISSING (the place has none yet, or they are lost), LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEYS_FORKED,
 * LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place), LLVS_ERROR_TRANSPORT, LLVS_ERROR_NOT_FOUND (the place does not exist, or was
 * emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback), storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_add_member(LLVS_BORROWED llvs_exchange *exchange, llvs_bytes recipient, llvs_bytes name,
    llvs_member_kind kind, LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_error **error);
/**
 * Removes a member: it does not get the keys of anything that is written from now on. While it still has access to the place, it can read
 * the existing contents: revoke that access first. Other devices switch to the new keys with their next exchanges, within 10 minutes. A
 * former member cannot be added again: the device makes a new identity.
 * @param recipient  as llvs_exchange_members returns it, or as a problem reports a member without the newest keys
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (not a member, or the last one), LLVS_ERROR_UNSUPPORTED (opened without keys), LLVS_ERROR_KEY_MISSING
 * (the place has none yet, or they are lost), LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_TOO_LARGE (this device has not read
 * all files of keys yet: exchange again), LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place), LLVS_ERROR_TRANSPORT,
 * LLVS_ERROR_NOT_FOUND (the place does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_CANCELLED,
 * LLVS_ERROR_USER (from a callback), storage errors. Since 0.1.
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
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (not a passphrase; without `leaked`, the exchange was opened without the old one),
 * LLVS_ERROR_UNSUPPORTED (opened without keys), LLVS_ERROR_KEY_MISSING (the place has none yet, or they are lost), LLVS_ERROR_WRONG_KEY,
 * LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place), LLVS_ERROR_TRANSPORT, LLVS_ERROR_NOT_FOUND (the place
 * does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback), storage
 * errors. Since 0.1.
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
 * Errors: LLVS_ERROR_UNSUPPORTED (opened without keys), LLVS_ERROR_KEY_MISSING (no keys were read yet, the place has none, or they are
 * lost), LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place), LLVS_ERROR_TRANSPORT,
 * LLVS_ERROR_NOT_FOUND (the place does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_CANCELLED,
 * LLVS_ERROR_USER (from a callback), storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_pairing(LLVS_BORROWED llvs_exchange *exchange, llvs_bool read_anew,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_buffer *pairing, LLVS_OWNED llvs_error **error);
/**
 * Joins competing keys, which an exchange reports as a problem LLVS_ERROR_KEYS_FORKED. A new epoch begins, with the members of this
 * device's side. Members whom the other side removed are removed, unless this side has removed any: a former member may have made the other
 * keys. Later exchanges report these, and the members that only the other side has: remove or add again those that you know. Does nothing
 * if no keys compete.
 * Errors: LLVS_ERROR_KEYS_FORKED (the makers of the other keys knew neither a key of this device's nor the passphrase, so they may be
 * strangers; or this device has used neither keys: nothing was changed), LLVS_ERROR_UNSUPPORTED (opened without keys),
 * LLVS_ERROR_KEY_MISSING (the place has none yet, or they are lost), LLVS_ERROR_WRONG_KEY, LLVS_ERROR_TOO_LARGE (this device has not read
 * all files of keys yet: exchange again), LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place), LLVS_ERROR_TRANSPORT,
 * LLVS_ERROR_NOT_FOUND (the place does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_CANCELLED,
 * LLVS_ERROR_USER (from a callback), storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_join_keys(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_error **error);
/**
 * Sends the whole contents of the place again, encrypted with the newest keys, and removes the copies with older keys. Use it after a
 * device or a key was lost: the finder of it then cannot read anything any more. (What was read before remains readable.) It sends as many
 * bytes as the place contains. Later exchanges of this device delete the replaced files: packs after a day, large values after one day
 * more. Other devices continue meanwhile. If it is interrupted, the full listing that exchanges make each day continues it; or call it
 * again.
 * @param renew  whether to make new keys first, which only the present members get. Not needed after llvs_exchange_remove_member, nor after
 *               llvs_exchange_change_passphrase with `leaked`
 * @param left   receives how many packs with older keys remain: those that will be deleted, and those that this device cannot read. May be
 *               NULL
 * Errors: LLVS_ERROR_NO_SPACE, LLVS_ERROR_UNSUPPORTED (opened without keys), LLVS_ERROR_KEY_MISSING (the place has none yet, or they are
 * lost), LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place), LLVS_ERROR_TRANSPORT,
 * LLVS_ERROR_NOT_FOUND (the place does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_CANCELLED,
 * LLVS_ERROR_USER (from a callback), storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_rekey(LLVS_BORROWED llvs_exchange *exchange, llvs_bool renew,
    LLVS_BORROWED const llvs_control *control, LLVS_BORROWED uint64_t *left, LLVS_OWNED llvs_error **error);
/**
 * Retires this device as a writer of a place in the packed layout: sends what the place lacks, and announces that this device has finished.
 * The other devices then merge its packs at once, instead of after 30 days. Nothing is removed from the store. If the device sends again
 * later, it does so as a new writer.
 * @param control  progress and cancellation; may be NULL
 * @param result  as llvs_exchange_send returns it; may be NULL
 * Errors: LLVS_ERROR_UNSUPPORTED (a place without packs), LLVS_ERROR_NO_SPACE, LLVS_ERROR_TRANSPORT, LLVS_ERROR_NOT_FOUND (the place does
 * not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEY_MISSING, LLVS_ERROR_KEYS_FORKED,
 * LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback), storage errors. Since
 * 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_retire(LLVS_BORROWED llvs_exchange *exchange, LLVS_BORROWED const llvs_control *control,
    LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Lets all devices write values to a place in the packed layout as differences from earlier ones, which take far less room. New places have
 * it from the start, so this is for places that an earlier library made. First sends what the place lacks. Other devices learn of it when
 * they next list the whole place, which they do once a day. A library that does not know differences reports the versions that have some as
 * LLVS_ERROR_NEWER_FORMAT, and reads all others. Has no effect if it is on. It cannot be turned off.
 * @param control  progress and cancellation; may be NULL
 * @param result  as llvs_exchange_send returns it; may be NULL
 * Errors: LLVS_ERROR_UNSUPPORTED (a place without packs), LLVS_ERROR_TOO_LARGE (the place has 16 roots), LLVS_ERROR_NO_SPACE,
 * LLVS_ERROR_TRANSPORT, LLVS_ERROR_NOT_FOUND (the place does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO,
 * LLVS_ERROR_WRONG_KEY, LLVS_ERROR_KEY_MISSING, LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place),
 * LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from a callback), storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_exchange_enable_differences(LLVS_BORROWED llvs_exchange *exchange,
    LLVS_BORROWED const llvs_control *control, LLVS_OWNED llvs_exchange_result **result, LLVS_OWNED llvs_error **error);
/**
 * Announces to the other devices that the place has moved, after sending what it lacks. From then on their exchanges with the old place
 * have the problem LLVS_ERROR_PLACE_MOVED, with the address as its path. Nothing else changes, and nothing is removed.
 * @param address  the new address, for people and programs: UTF-8, 1 to 1,024 bytes, no control characters. No secrets: every device that
 *                 reads the place can read it
 * @param result   as llvs_exchange_send returns it; may be NULL
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED (a place without packs), LLVS_ERROR_NO_SPACE, LLVS_ERROR_TRANSPORT,
 * LLVS_ERROR_NOT_FOUND (the place does not exist, or was emptied), LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_WRONG_KEY,
 * LLVS_ERROR_KEY_MISSING, LLVS_ERROR_KEYS_FORKED, LLVS_ERROR_NEWER_FORMAT (a newer library wrote the place), LLVS_ERROR_CANCELLED,
 * LLVS_ERROR_USER (from a callback), storage errors. Since 0.1.
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
    /** The name that the writer gave itself (`device_name` of llvs_exchange_options); empty: none. */
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
    /** All writers whose newest pack is at the place, in order of their ids. */
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
    /** For reading: 1 to 512 identities ("AGE-SECRET-KEY-1..."), one of which must open the stream; ASCII. NULL if there are none. */
    const llvs_bytes *identities;
    size_t identity_count;
    /**
     * For writing and reading, instead of recipients and identities: 1 to 1024 bytes, UTF-8 as it is given (normalise it before). Needs 64
     * MiB of memory for a moment.
     */
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
    /** See "Callbacks" in common.h; freed when the call returns. */
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

LLVS_LAYOUT(llvs_pack_options, 56);
LLVS_LAYOUT(llvs_exchange_options, 304);
LLVS_LAYOUT(llvs_problem, 40);
LLVS_LAYOUT(llvs_member, 56);
LLVS_LAYOUT(llvs_member_list, 24);
LLVS_LAYOUT(llvs_import_options, 32);
LLVS_LAYOUT(llvs_exchange_result, 120);
LLVS_LAYOUT(llvs_exchanged, 40);
LLVS_LAYOUT(llvs_remote_writer, 56);
LLVS_LAYOUT(llvs_remote, 72);
LLVS_LAYOUT(llvs_snapshot, 96);

LLVS_END_DECL

#endif

/*
 * llvs/links.h - direct connections: pairing, peers, listeners, devices nearby.
 *
 * One device listens and offers its store; another connects. Both have the same pairing, a secret that llvs_pairing_create makes once:
 *
 *     llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
 *     llvs_listener *listener;
 *     llvs_peer *peer;
 *     llvs_error *error;
 *     // On one device:
 *     if (llvs_listener_open(llvs_str("0.0.0.0:4711"), &options, &listener, &error) != LLVS_OK ||
 *         llvs_listener_offer(listener, store, pairing, &error) != LLVS_OK) return 1;
 *     // On the other:
 *     options.pairing = pairing;
 *     if (llvs_peer_connect(store, &options, llvs_str("192.0.2.7:4711"), 10, &peer, &error) != LLVS_OK) return 1;
 *
 * From then on each save on one side is sent to the other, until a side frees its peer or the connection is cut.
 *
 * CAVEATS
 *
 *  - Received versions are new heads: merge them (llvs_coordinator_merge; a syncer does it by itself).
 *  - A pairing gives access to the store. Pass it to other devices in secret, by an invitation, or by comparing digits.
 *  - A connection that is cut is not made again: connect again.
 *  - In a library that was built without the network (LLVS_NETWORK=OFF), every call of this header that can fail returns
 *    LLVS_ERROR_UNSUPPORTED. In any other, that error means that libcrypto is missing, unless the call names another cause.
 *
 * llvs.h has an overview, and llvs/common.h the conventions.
 */
#ifndef LLVS_LINKS_H
#define LLVS_LINKS_H

#include "coordinator.h"

LLVS_BEGIN_DECL

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
    /** The sides determine which versions each lacks. */
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
     * The secret half of this device's key, LLVS_DEVICE_KEY_SIZE bytes; empty: a new key for this connection only. Other devices then do
     * not recognise this one, and each connection begins by comparing what both have.
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
     * sends it to the other one, which has none. See llvs_invitation_create.
     */
    llvs_bytes invitation;
    /**
     * 1: the connection uses neither a pairing nor an invitation. People compare the digits of llvs_peer_state on both sides, and each side
     * confirms with llvs_peer_confirm. Then the side that has a `pairing` sends it to the other one, which has none.
     */
    llvs_bool compares_digits;
    uint32_t reserved;
    /** Limits the bytes that are stored; may be NULL. */
    llvs_quota_fn quota;
    /** See "Callbacks" in common.h; freed with the peer, or when it cannot be opened. */
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

/**
 * Makes a random pairing for a store, on one of its devices; give the bytes to its other devices, in secret. Errors: LLVS_ERROR_IO. Since
 * 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_pairing_create(LLVS_OWNED llvs_buffer *pairing, LLVS_OWNED llvs_error **error);
/**
 * Makes the random code of an invitation: 26 digits and letters, which people pass to a device that has no pairing yet, as text, a link or
 * a QR code. Both sides pass it in llvs_peer_options.invitation; the side that has the pairing sends it over the connection. An invitation
 * is valid for one connection. The program that made it should discard it after some minutes.
 * Errors: LLVS_ERROR_IO. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_invitation_create(LLVS_OWNED llvs_buffer *code, LLVS_OWNED llvs_error **error);
/**
 * Checks whether a connection was made with a pairing or an invitation, for hosts that listen for several stores.
 * @param pairing    LLVS_PAIRING_SIZE bytes, or the code of an invitation; empty: checks whether people compare digits
 * @param beginning  the first LLVS_PEER_BEGINNING bytes received; pass them to llvs_peer_receive as well
 * @param matches    0 or 1; if no pairing matches, close the connection without sending a byte
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED. Since 0.1.
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
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_READ_ONLY, LLVS_ERROR_CLOSED, LLVS_ERROR_UNSUPPORTED,
 * LLVS_ERROR_KEY_MISSING (the exchange of the options has read no keys). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_open(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_peer_options *options,
    LLVS_OWNED llvs_peer **peer, LLVS_OWNED llvs_error **error);
/**
 * Passes received bytes to the peer, in pieces of any size; it stores the versions that are complete. An error ends the connection. Stored
 * versions stay, and the bytes that llvs_peer_send returns after that report the error to the other side.
 * Errors: LLVS_ERROR_WRONG_KEY (the other side is not paired, or does not accept this device), LLVS_ERROR_DAMAGED and LLVS_ERROR_TOO_LARGE
 * (the other side broke a rule or a limit, or its bytes were changed on the way; the message says which), LLVS_ERROR_NEWER_FORMAT,
 * LLVS_ERROR_USER and LLVS_ERROR_NO_SPACE (from the quota callback), storage errors. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_receive(LLVS_BORROWED llvs_peer *peer, llvs_bytes data, LLVS_OWNED llvs_error **error);
/**
 * Reports to the peer that the connection delivers no more bytes.
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
 * Passes the time to the peer; call it every few seconds. If the other side is silent, it is sent a request after 30 seconds, and the
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
 * Errors: LLVS_ERROR_TRANSPORT (no listener at the address), LLVS_ERROR_IO, LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_READ_ONLY,
 * LLVS_ERROR_CLOSED, LLVS_ERROR_UNSUPPORTED, LLVS_ERROR_KEY_MISSING (the exchange of the options has read no keys).
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_peer_connect(LLVS_BORROWED llvs_store *store, LLVS_BORROWED const llvs_peer_options *options,
    llvs_bytes address, double seconds, LLVS_OWNED llvs_peer **peer, LLVS_OWNED llvs_error **error);
/**
 * Lets the library carry the bytes of a peer over a connected socket of the host, as llvs_peer_connect does.
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
 * Errors: the error that ended the connection: LLVS_ERROR_WRONG_KEY (the other side is not paired, does not know the invitation, or does
 * not accept this device), LLVS_ERROR_DAMAGED and LLVS_ERROR_TOO_LARGE (the other side broke a rule or a limit, or its bytes were changed
 * on the way), LLVS_ERROR_NEWER_FORMAT, LLVS_ERROR_CUT_SHORT, LLVS_ERROR_USER and LLVS_ERROR_NO_SPACE (from the quota callback), storage
 * errors; LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
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
 * Listens at an address. Devices that connect before a store is offered wait for the first offer.
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
 * Makes the code of an invitation to a store, as llvs_invitation_create does: a device that connects with it receives the store's pairing.
 * It is valid for one device. If the connection of that device is cut before it is certain that it has the pairing, it may try again, with
 * the same `identity`.
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
 * @param fn, payload, payload_free  see "Callbacks" in common.h; not called for this program's own announcement
 * @param observer  ends both when freed
 * Errors: LLVS_ERROR_UNSUPPORTED (Avahi is not installed, or its daemon does not run), LLVS_ERROR_INVALID_ARGUMENT. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_nearby_observe(llvs_bytes name, uint32_t port, llvs_nearby_fn fn, LLVS_OWNED void *payload,
    llvs_free_fn payload_free, LLVS_OWNED llvs_observer **observer, LLVS_OWNED llvs_error **error);

LLVS_LAYOUT(llvs_peer_options, 160);
LLVS_LAYOUT(llvs_peer_state, 104);

LLVS_END_DECL

#endif

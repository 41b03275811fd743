/*
 * llvs.h - a versioned key-value store, "git for app data": the C interface of libllvs.
 *
 * A store keeps values under ids. Each save makes a version, and earlier versions stay readable. Devices exchange versions through a
 * folder, a server or a direct connection, and merge them.
 *
 *     llvs_coordinator *notes;
 *     llvs_buffer text;
 *     llvs_error *error;
 *     // A coordinator continues where it was: a program that runs again saves on top of its last version.
 *     if (llvs_coordinator_open(llvs_str("notes.llvs"), NULL, &notes, &error) != LLVS_OK ||
 *         llvs_coordinator_put(notes, llvs_str("note/1"), llvs_str("hello"), NULL, &error) != LLVS_OK ||
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
 *  - An absent value is not an error: the call returns LLVS_OK, and the value is NULL.
 *  - Release what you receive (parameters marked LLVS_OWNED) with the `_free` or `_dispose` of its type. Arguments stay yours, except
 *    the payload of a callback.
 *  - Text is UTF-8 with a length. All bytes that you receive are followed by a NUL as well.
 *  - Handles may be used from several threads at once, except cursors. Do not use a handle after its free, nor in a child of fork().
 *
 * CAVEATS
 *
 *  - fork(): a store handle does not survive it. In the child every call except a free returns LLVS_ERROR_FORKED. If a callback forks, the
 *    call that runs the callback also returns this error in the child. Open the store again in the child. SQLite does not survive fork()
 *    either. If a store in SQLite is open in a process (or is being opened, salvaged or imported), its children cannot open any store in
 *    SQLite: they get LLVS_ERROR_FORKED. Close all of them before the fork, or exec a program. If a callback of an observer calls fork(),
 *    the child has only that thread. Its process ends, with status 0, when the callback returns in the child. After fork() the parent holds
 *    the name of a coordinator. After _Fork or clone the child holds it as well, until the parent closes the coordinator, or both processes
 *    have ended.
 *  - Signals: each observer has a thread, in which all signals are blocked except those of faults (SIGSEGV, SIGBUS, ...). A program that a
 *    callback starts there inherits that. When the limit on the size of files (RLIMIT_FSIZE) is reached, a call returns
 *    LLVS_ERROR_NO_SPACE, and no SIGXFSZ is sent. Writes by SQLite do send it: ignore or block that signal with SQLite storage and with
 *    projections.
 *  - The caches of a store (cache/ in its directory) may be deleted while the store is closed. Two kinds of notes in cache/ cannot be
 *    rebuilt. Without the note of its position, a coordinator begins at the newest head. Without the notes about a place in the packed
 *    layout, the device starts there like a new device, and reads every pack. While the store is open cache/ must stay: otherwise another
 *    process could open a coordinator under a name that is in use.
 *  - Freeing a handle must not race another call on the same handle, and no handle may be used after its free. To end work that other
 *    threads may still be doing, call llvs_store_close.
 *  - Value ids are compared by their bytes. "e" with a combining accent and the composed letter are two ids.
 *  - A file store on a network file system must be used from one host only. A store in SQLite must be on a local disk.
 *
 * HEADERS
 *
 * This header includes all of the others. Most programs need the first three. Their comments are the reference: anything that is not in
 * these headers is internal.
 *
 *   llvs/coordinator.h The coordinator: a store, its current version, exchanges and merging in one handle; and the syncer.
 *   llvs/store.h       Stores: opening, saving versions, reading their history, their values and what changed.
 *   llvs/common.h      What all calls have in common: conventions, status codes, bytes, errors, the log, progress.
 *   llvs/merging.h     Merging: arbiters and rules, conflicts, revert and cherry-pick.
 *   llvs/exchange.h    Exchanges with places (folders, servers, cloud drives), keys of encrypted places, snapshots, import.
 *   llvs/indexes.h     Indexes and projections: finding values by their contents, and SQL.
 *   llvs/links.h       Direct connections: pairing, peers, listeners, devices nearby.
 *   llvs/hosts.h       Storages and transports that the host implements.
 *
 * llvs_testing.h belongs to them: fault injection, and test suites for storages and transports of your own. The headers are C99 and C++,
 * include only standard headers, and serve 64-bit platforms.
 */
#ifndef LLVS_H
#define LLVS_H

#include "llvs/common.h"
#include "llvs/store.h"
#include "llvs/merging.h"
#include "llvs/exchange.h"
#include "llvs/coordinator.h"
#include "llvs/indexes.h"
#include "llvs/links.h"
#include "llvs/hosts.h"

#endif

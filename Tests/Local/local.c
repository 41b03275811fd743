/*
 * A program with a library that was built without the network (-DLLVS_NETWORK=OFF). Two devices save, exchange through a folder, in single
 * files and in packs, and merge. Calls for servers, cloud drives and direct connections are UNSUPPORTED, and say why. No library of the
 * network is opened. scripts/suites/32-local builds it and runs it in an empty folder.
 */
#include <dlfcn.h>
#include <llvs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static llvs_error *error;

static void require(int is_true, const char *what) {
    if (is_true) return;
    fprintf(stderr, "%s: %s\n", what, error ? llvs_error_message(error) : "not as it should be");
    exit(1);
}
static void succeed(llvs_status status, const char *what) { require(status == LLVS_OK, what); }

/* Requires an error that names the option of the build. */
static void refused(llvs_status status, const char *what) {
    require(status == LLVS_ERROR_UNSUPPORTED && error && strstr(llvs_error_message(error), "LLVS_NETWORK=OFF"), what);
    llvs_error_free(error);
    error = NULL;
}

static int freed;
static void count_freed(void *payload) { (void)payload, freed++; }
static void never(void *payload, llvs_nearby_event event, const llvs_bytes *name, const llvs_bytes *address, uint32_t port) {
    (void)payload, (void)event, (void)name, (void)address, (void)port;
}
static llvs_status no_quota(void *payload, uint64_t bytes, llvs_error **failure) {
    (void)payload, (void)bytes, (void)failure;
    return LLVS_OK;
}

static void put(llvs_coordinator *device, const char *id, const char *data) {
    succeed(llvs_coordinator_put(device, llvs_str(id), llvs_str(data), NULL, &error), "saving");
}
static void sync_with(llvs_coordinator *device) { succeed(llvs_coordinator_sync(device, NULL, NULL, &error), "syncing"); }
static void has(llvs_coordinator *device, const char *id, const char *data) {
    llvs_buffer found;
    succeed(llvs_coordinator_value(device, llvs_str(id), &found, NULL, &error), "reading");
    require(found.size == strlen(data) && memcmp(found.data, data, found.size) == 0, id);
    llvs_buffer_dispose(&found);
}

/* Two devices that save apart have the same values after a sync of each, and the same version after the merge. */
static void devices_exchange(const char *folder, const char *layout) {
    char url[4200], paths[2][64];
    llvs_coordinator *a, *b;
    llvs_version_id at_a, at_b;
    snprintf(url, sizeof url, "file://%s/%s?layout=%s", folder, layout, layout);
    for (int i = 0; i < 2; i++) snprintf(paths[i], sizeof paths[i], "%s-%d.llvs", layout, i);
    succeed(llvs_coordinator_open(llvs_str(paths[0]), NULL, &a, &error), "opening");
    succeed(llvs_coordinator_open(llvs_str(paths[1]), NULL, &b, &error), "opening");
    succeed(llvs_coordinator_attach(a, llvs_str(url), NULL, &error), "attaching a folder");
    succeed(llvs_coordinator_attach(b, llvs_str(url), NULL, &error), "attaching a folder");
    put(a, "common", "1");
    sync_with(a);
    sync_with(b);
    put(a, "a", "of a");
    put(b, "b", "of b");
    sync_with(a);
    sync_with(b);
    sync_with(a);
    has(a, "b", "of b");
    has(b, "a", "of a");
    has(b, "common", "1");
    succeed(llvs_coordinator_current_version(a, &at_a, &error), "the current version");
    succeed(llvs_coordinator_current_version(b, &at_b, &error), "the current version");
    require(at_a.size > 0 && at_a.size == at_b.size && memcmp(&at_a, &at_b, sizeof at_a) == 0, "the devices have different versions");
    llvs_coordinator_free(a);
    llvs_coordinator_free(b);
}

static void what_needs_a_network_is_refused(void) {
    static const char *const urls[] = {
        "https+webdav://localhost:1/notes", "http+webdav://localhost:1/notes", "s3://notes", "sftp://localhost/notes", "gdrive:///notes",
        "onedrive:///notes", "box:///notes", "pcloud:///notes", "cloudkit://c/production/private?store=notes&zone=z",
    };
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_peer_options peers = LLVS_PEER_OPTIONS_INIT;
    llvs_store *store;
    llvs_exchange *exchange;
    llvs_listener *listener;
    llvs_observer *observer;
    llvs_peer *peer;
    llvs_buffer bytes;
    llvs_bool flag;
    int ends[2];
    options.storage = LLVS_STORAGE_MEMORY;
    succeed(llvs_store_open(LLVS_NONE, &options, &store, &error), "opening a store in memory");
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        refused(llvs_exchange_open(store, llvs_str(urls[i]), NULL, &exchange, &error), urls[i]);
        require(exchange == NULL, "an exchange that was refused");
    }

    /* The payload of a callback is freed exactly once, by each call that owns it. */
    peers.quota = no_quota;
    peers.quota_free = count_freed;
    peers.initiator = 1;
    refused(llvs_peer_open(store, &peers, &peer, &error), "a peer");
    refused(llvs_peer_connect(store, &peers, llvs_str("localhost:1"), 1, &peer, &error), "a connection");
    require(peer == NULL, "a peer that was refused");
    peers.initiator = 0;
    refused(llvs_listener_open(llvs_str("localhost:0"), &peers, &listener, &error), "a listener");
    refused(llvs_nearby_observe(llvs_str("here"), 1, never, NULL, count_freed, &observer, &error), "devices nearby");
    require(listener == NULL && observer == NULL, "a listener that was refused");
    require(freed == 4, "payloads that were freed");

    refused(llvs_pairing_create(&bytes, &error), "a pairing");
    refused(llvs_invitation_create(&bytes, &error), "an invitation");
    refused(llvs_device_key(llvs_str("identity"), &bytes, &error), "a device's key");
    require(bytes.data == NULL && bytes.size == 0, "bytes that were refused");
    refused(llvs_pairing_matches(LLVS_NONE, llvs_str("x"), &flag, &error), "matching a pairing");
    refused(llvs_listener_offer(NULL, store, LLVS_NONE, &error), "offering a store");

    /* The descriptor belongs to the library, even if the call fails. */
    require(pipe(ends) == 0, "a pipe");
    refused(llvs_peer_carry(NULL, ends[0], &error), "carrying a connection");
    require(close(ends[0]) != 0 && close(ends[1]) == 0, "a descriptor that was handed over");
    llvs_peer_free(NULL);
    llvs_peer_state_free(NULL);
    llvs_listener_free(NULL);
    llvs_store_free(store);
}

int main(void) {
    char folder[4096];
    require(getcwd(folder, sizeof folder) != NULL, "the working directory");
    devices_exchange(folder, "interchange");
    devices_exchange(folder, "packed");
    what_needs_a_network_is_refused();
    require(dlopen("libcurl.so.4", RTLD_NOW | RTLD_NOLOAD) == NULL, "libcurl was opened");
    require(dlopen("libexpat.so.1", RTLD_NOW | RTLD_NOLOAD) == NULL, "libexpat was opened");
    puts("saved, merged and exchanged over folders; everything else was refused");
    return 0;
}

/*
 * Two processes keep their stores in sync over TCP. The library transfers the bytes.
 *
 *     listener
 *
 * The first process listens. It passes the address and an invitation to the second, which obtains the pairing with the invitation. Between
 * two machines the users copy address and invitation, or llvs_nearby_observe finds the address.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "llvs.h"

static void check(llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return;
    fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(error));
    llvs_error_free(error);
    exit(1);
}

static llvs_store *store_with(const char *id, const char *text) {
    llvs_store_options in_memory = LLVS_STORE_OPTIONS_INIT;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_store *store;
    llvs_error *error;
    llvs_status status;
    in_memory.storage = LLVS_STORAGE_MEMORY;
    status = llvs_store_open(LLVS_NONE, &in_memory, &store, &error);
    check(status, error);
    change.kind = LLVS_CHANGE_INSERT;
    change.id = llvs_str(id);
    change.data = llvs_str(text);
    status = llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, NULL, NULL, &error);
    check(status, error);
    return store;
}

static void tell(const char *name, llvs_store *store) {
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_error *error;
    llvs_status status = llvs_store_statistics(store, NULL, &statistics, &error);
    check(status, error);
    printf("%s has %lu versions\n", name, (unsigned long)statistics.versions);
    fflush(stdout);
}

/* The device without a pairing. It connects with the invitation. */
static void phone(const char *address, const char *code) {
    llvs_store *store = store_with("note/1", "buy milk");
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_bool in_step;
    llvs_peer *peer;
    llvs_error *error;
    llvs_status status;
    options.invitation = llvs_str(code);
    options.device = llvs_str("phone");
    status = llvs_peer_connect(store, &options, llvs_str(address), 10, &peer, &error);
    check(status, error);
    status = llvs_peer_wait(peer, 10, &in_step, &error);
    check(status, error);
    tell("phone", store);
    llvs_peer_free(peer); /* an app would keep `pairing` of its state for the next connection */
    llvs_store_free(store);
}

int main(void) {
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_store *store;
    llvs_listener *listener;
    llvs_buffer pairing, address, code;
    llvs_bytes secret;
    llvs_error *error;
    llvs_status status;
    char message[256];
    int ends[2], ended;
    pid_t child;

    if (pipe(ends) < 0) { perror("pipe"); return 1; }
    child = fork(); /* before the library starts threads */
    if (child < 0) { perror("fork"); return 1; }
    if (child == 0) {
        ssize_t size = read(ends[0], message, sizeof message - 1);
        char *code_at;
        if (size <= 0) _exit(1);
        message[size] = 0;
        code_at = strchr(message, ' ');
        if (!code_at) _exit(1);
        *code_at++ = 0;
        phone(message, code_at);
        _exit(0);
    }
    store = store_with("note/2", "call Ann");
    status = llvs_pairing_create(&pairing, &error);
    check(status, error);
    secret = llvs_bytes_make(pairing.data, pairing.size);
    options.device = llvs_str("laptop");
    status = llvs_listener_open(llvs_str("127.0.0.1:0"), &options, &listener, &error);
    check(status, error);
    status = llvs_listener_offer(listener, store, secret, &error);
    check(status, error);
    status = llvs_listener_address(listener, &address, &error);
    check(status, error);
    status = llvs_listener_invite(listener, secret, 600, &code, &error);
    check(status, error);
    snprintf(message, sizeof message, "%s %s", (const char *)address.data, (const char *)code.data);
    if (write(ends[1], message, strlen(message)) < 0) { perror("write"); return 1; }
    if (waitpid(child, &ended, 0) < 0 || ended != 0) return 1;
    tell("laptop", store);
    llvs_listener_free(listener);
    llvs_buffer_dispose(&pairing);
    llvs_buffer_dispose(&address);
    llvs_buffer_dispose(&code);
    llvs_store_free(store);
    return 0;
}

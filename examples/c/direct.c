/*
 * Two processes keep their stores in sync over a socket, without a server.
 *
 *     direct
 *
 * Here the socket is a socket pair, and the pairing is made before the second process starts. Between two machines it would be a TCP
 * connection, and the users would copy the pairing once, in secret.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "llvs.h"

static void check(llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return;
    fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(error));
    llvs_error_free(error);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static llvs_peer_phase phase_of(llvs_peer *peer) {
    llvs_peer_state *state;
    llvs_error *error;
    llvs_status status = llvs_peer_get_state(peer, &state, &error);
    llvs_peer_phase phase;
    check(status, error);
    phase = state->phase;
    llvs_peer_state_free(state);
    return phase;
}

/* Transfers bytes both ways until the link has reached the phase `wanted`. */
static void carry(llvs_peer *peer, int connection, llvs_peer_phase wanted) {
    char out[65536], in[65536];
    size_t waiting = 0, gone = 0;
    for (;;) {
        struct pollfd ready = { -1, POLLIN, 0 };
        llvs_error *error;
        llvs_status status;
        ready.fd = connection;
        if (gone == waiting) {
            gone = 0;
            status = llvs_peer_send(peer, out, sizeof out, &waiting, &error);
            check(status, error);
        }
        if (waiting == 0 && phase_of(peer) >= wanted) return;
        if (waiting > 0) ready.events |= POLLOUT;
        if (poll(&ready, 1, 5000) < 0 && errno != EINTR) { perror("poll"); exit(1); }
        status = llvs_peer_tick(peer, now(), &error);
        check(status, error);
        if (ready.revents & POLLOUT) {
            ssize_t sent = send(connection, out + gone, waiting - gone, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent > 0) gone += (size_t)sent;
        }
        if (ready.revents & (POLLIN | POLLHUP | POLLERR)) {
            ssize_t came = recv(connection, in, sizeof in, MSG_DONTWAIT);
            if (came > 0) status = llvs_peer_receive(peer, llvs_bytes_make(in, (size_t)came), &error);
            else if (came == 0) status = llvs_peer_receive_end(peer, &error);
            check(status, error);
        }
    }
}

static void device(const char *name, const char *id, const char *text, llvs_bytes pairing, int connection, llvs_bool initiator) {
    llvs_store_options in_memory = LLVS_STORE_OPTIONS_INIT;
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_store *store;
    llvs_peer *peer;
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
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

    options.initiator = initiator;
    options.pairing = pairing;
    options.device = llvs_str(name);
    status = llvs_peer_open(store, &options, &peer, &error);
    check(status, error);
    carry(peer, connection, LLVS_PEER_IN_STEP);
    status = llvs_peer_close(peer, &error); /* says goodbye: then both sides end the session */
    check(status, error);
    carry(peer, connection, LLVS_PEER_ENDED);
    llvs_peer_free(peer);

    status = llvs_store_statistics(store, NULL, &statistics, &error);
    check(status, error);
    printf("%s has %lu versions\n", name, (unsigned long)statistics.versions);
    fflush(stdout);
    llvs_store_free(store);
}

int main(void) {
    llvs_buffer pairing;
    llvs_bytes secret;
    llvs_error *error;
    llvs_status status;
    int ends[2], ended;
    pid_t phone;

    status = llvs_pairing_create(&pairing, &error);
    check(status, error);
    secret = llvs_bytes_make(pairing.data, pairing.size);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) { perror("socketpair"); return 1; }
    phone = fork();
    if (phone < 0) { perror("fork"); return 1; }
    if (phone == 0) {
        close(ends[0]);
        device("phone", "note/1", "buy milk", secret, ends[1], 1);
        _exit(0);
    }
    close(ends[1]);
    device("laptop", "note/2", "call Ann", secret, ends[0], 0);
    if (waitpid(phone, &ended, 0) < 0 || ended != 0) return 1;
    llvs_buffer_dispose(&pairing);
    return 0;
}

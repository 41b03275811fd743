/* Direct connections that the library carries: over TCP and Unix sockets, for several stores, by invitations and by comparing digits;
   strangers, wrong addresses, streams of the host, closing. */
#include "support.h"

#include <fcntl.h>
#include <math.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char FIRST[LLVS_PAIRING_SIZE] = "a pairing of forty-eight bytes, both sides know";
static const char SECOND[LLVS_PAIRING_SIZE] = "another pairing of forty-eight bytes, of a store";
static const char NOBODYS[LLVS_PAIRING_SIZE] = "a pairing of forty-eight bytes that is nobody's";

/* The deadline of every wait in seconds. A busy machine is no reason to fail. */
enum { PATIENCE = 3600 };

static llvs_bytes pairing(const char *text) { return llvs_bytes_make(text, LLVS_PAIRING_SIZE); }

static llvs_listener *listen_at(const char *address) {
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_listener *listener;
    options.device = llvs_str("desk");
    OK(llvs_listener_open(llvs_str(address), &options, &listener, &error));
    return listener;
}
static llvs_buffer address_of(llvs_listener *listener) {
    llvs_buffer address;
    OK(llvs_listener_address(listener, &address, &error));
    return address;
}
static llvs_status connect_to(llvs_store *store, llvs_listener *listener, const char *secret, llvs_peer **peer) {
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_buffer address = address_of(listener);
    llvs_status status;
    options.pairing = pairing(secret);
    options.device = llvs_str("phone");
    status = llvs_peer_connect(store, &options, llvs_bytes_make(address.data, address.size), PATIENCE, peer, NULL);
    llvs_buffer_dispose(&address);
    return status;
}
static void come_in_step(llvs_peer *peer) {
    llvs_bool in_step;
    OK(llvs_peer_wait(peer, PATIENCE, &in_step, &error));
    assert_int_equal(in_step, 1);
}
static void sleep_ms(long ms) {
    struct timespec time = { 0, 0 };
    time.tv_nsec = ms * 1000000;
    nanosleep(&time, NULL);
}
/* Waits until a store has that many versions. */
static void has(llvs_store *store, uint64_t versions) {
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    for (;;) {
        OK(llvs_store_statistics(store, NULL, &statistics, &error));
        if (statistics.versions == versions) return;
        sleep_ms(1);
    }
}

static void one_listener_serves_several_stores(void **context) {
    llvs_store *notes = memory_store(), *tasks = memory_store(), *a = memory_store(), *b = memory_store();
    llvs_listener *listener = listen_at("127.0.0.1:0");
    llvs_peer *one, *two, *met;
    llvs_version_id first = save(notes, NULL, insert("a", "1")), second = save(tasks, NULL, insert("b", "2")), third;
    llvs_peer_state *state;
    llvs_bool in_step;
    int i;
    (void)context;
    OK(llvs_listener_offer(listener, notes, pairing(FIRST), &error));
    OK(llvs_listener_offer(listener, tasks, pairing(SECOND), &error));
    assert_int_equal(connect_to(a, listener, FIRST, &one), LLVS_OK);
    assert_int_equal(connect_to(b, listener, SECOND, &two), LLVS_OK);
    come_in_step(one);
    come_in_step(two);
    value_is(a, &first, "a", "1");
    value_is(b, &second, "b", "2");
    /* Saves on either side are sent to the other without a call. */
    third = save(notes, &first, update("a", "3"));
    has(a, 2);
    value_is(a, &third, "a", "3");
    third = save(b, &second, update("b", "4"));
    has(tasks, 2);
    value_is(tasks, &third, "b", "4");
    for (i = 0; i < 2; i++) {
        OK(llvs_listener_accept(listener, PATIENCE, &met, &error));
        assert_non_null(met);
        OK(llvs_peer_get_state(met, &state, &error));
        assert_true(bytes_are(state->device, "phone"));
        llvs_peer_state_free(state);
        llvs_peer_free(met); /* which cuts the connection */
    }
    OK(llvs_listener_accept(listener, 0, &met, &error));
    assert_null(met);
    do i = llvs_peer_wait(one, PATIENCE, &in_step, NULL); while (i == LLVS_OK && in_step);
    assert_int_equal(i, LLVS_ERROR_CUT_SHORT);
    llvs_peer_free(one);
    llvs_peer_free(two);
    llvs_listener_free(listener);
    llvs_store_free(notes);
    llvs_store_free(tasks);
    llvs_store_free(a);
    llvs_store_free(b);
}

/* Checks that the other side does not know it: the message says what happened, and what to do. */
static void refused(llvs_peer *peer, const char *what, const char *advice) {
    llvs_bool in_step;
    llvs_error *told = NULL;
    assert_int_equal(llvs_peer_wait(peer, PATIENCE, &in_step, &told), LLVS_ERROR_WRONG_KEY);
    assert_int_equal(in_step, 0);
    assert_non_null(strstr(llvs_error_message(told), what));
    assert_non_null(strstr(llvs_error_message(told), advice));
    llvs_error_free(told);
}

static void strangers_get_no_answer(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_listener *listener = listen_at("127.0.0.1:0");
    llvs_peer *peer;
    llvs_bool in_step;
    llvs_status status;
    int i;
    (void)context;
    save(a, NULL, insert("a", "1"));
    OK(llvs_listener_offer(listener, a, pairing(FIRST), &error));
    for (i = 0; i < 5; i++) {
        assert_int_equal(connect_to(b, listener, NOBODYS, &peer), LLVS_OK);
        refused(peer, "does not know this pairing", "pair the two again");
        llvs_peer_free(peer);
    }
    /* Connections from that address are not read for a minute, with any pairing. That does not count as a refusal. */
    status = connect_to(b, listener, FIRST, &peer);
    if (status == LLVS_OK) {
        FAILS(LLVS_ERROR_CUT_SHORT, llvs_peer_wait(peer, PATIENCE, &in_step, &error));
        llvs_peer_free(peer);
    } else {
        /* The connection was closed while it was established. */
        assert_int_equal(status, LLVS_ERROR_TRANSPORT);
    }
    llvs_listener_free(listener);
    llvs_store_free(a);
    llvs_store_free(b);
}

static void a_unix_socket_is_its_owners(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    char folder[] = "/tmp/llvs-listener-XXXXXX", path[64], address[80];
    struct stat status;
    llvs_listener *listener;
    llvs_peer *peer;
    (void)context;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(address, sizeof address, "unix:%s", path);
    save(a, NULL, insert("a", "1"));
    listener = listen_at(address);
    OK(llvs_listener_offer(listener, a, pairing(FIRST), &error));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(connect_to(b, listener, FIRST, &peer), LLVS_OK);
    come_in_step(peer);
    has(b, 1);
    /* The listener says goodbye instead of cutting the connection: both sides end without an error. */
    llvs_listener_free(listener);
    {
        llvs_bool in_step;
        OK(llvs_peer_wait(peer, PATIENCE, &in_step, &error));
        assert_int_equal(in_step, 0);
    }
    llvs_peer_free(peer);
    assert_int_not_equal(stat(path, &status), 0); /* the socket is removed with the listener */
    rmdir(folder);
    llvs_store_free(a);
    llvs_store_free(b);
}

static void invitations_and_digits_bring_the_pairing(void **context) {
    llvs_store *a = memory_store(), *b = memory_store(), *c = memory_store();
    llvs_listener *listener = listen_at("127.0.0.1:0");
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_buffer code, address = address_of(listener);
    llvs_bytes where = llvs_bytes_make(address.data, address.size);
    llvs_peer *peer, *met = NULL, *again;
    llvs_peer_state *state, *theirs;
    (void)context;
    save(a, NULL, insert("a", "1"));
    assert_int_equal(llvs_listener_invite(listener, pairing(FIRST), 60, &code, NULL), LLVS_ERROR_NOT_FOUND);
    OK(llvs_listener_offer(listener, a, pairing(FIRST), &error));
    OK(llvs_listener_invite(listener, pairing(FIRST), 60, &code, &error));
    options.invitation = llvs_bytes_make(code.data, code.size);
    OK(llvs_peer_connect(b, &options, where, PATIENCE, &peer, &error));
    come_in_step(peer);
    /* While the connection lasts: a listener forgets connections that ended before they were returned. */
    OK(llvs_listener_accept(listener, PATIENCE, &met, &error));
    assert_non_null(met);
    OK(llvs_peer_get_state(peer, &state, &error));
    assert_int_equal(state->pairing.size, LLVS_PAIRING_SIZE);
    assert_memory_equal(state->pairing.data, FIRST, LLVS_PAIRING_SIZE);
    llvs_peer_state_free(state);
    /* An invitation can be used once. */
    OK(llvs_peer_connect(c, &options, where, PATIENCE, &again, &error));
    refused(again, "does not know the invitation", "Ask for a new one");
    llvs_peer_free(again);
    llvs_peer_free(peer);
    llvs_buffer_dispose(&code);

    llvs_peer_free(met);
    OK(llvs_listener_compare(listener, pairing(FIRST), 60, &error));
    assert_int_equal(llvs_listener_compare(listener, pairing(FIRST), 60, NULL), LLVS_ERROR_BUSY);
    options.invitation = llvs_bytes_make(NULL, 0);
    options.compares_digits = 1;
    OK(llvs_peer_connect(c, &options, where, PATIENCE, &peer, &error));
    do OK(llvs_listener_accept(listener, PATIENCE, &met, &error)); while (met == NULL);
    for (;;) {
        OK(llvs_peer_get_state(peer, &state, &error));
        OK(llvs_peer_get_state(met, &theirs, &error));
        if (state->digits.size == 6 && theirs->digits.size == 6) break;
        if (theirs->phase == LLVS_PEER_ENDED) { /* the state of the connection that used the invitation */
            llvs_peer_free(met);
            do OK(llvs_listener_accept(listener, PATIENCE, &met, &error)); while (met == NULL);
        }
        llvs_peer_state_free(state);
        llvs_peer_state_free(theirs);
        sleep_ms(10);
    }
    assert_memory_equal(state->digits.data, theirs->digits.data, 6);
    llvs_peer_state_free(state);
    llvs_peer_state_free(theirs);
    OK(llvs_peer_confirm(peer, &error));
    OK(llvs_peer_confirm(met, &error));
    come_in_step(peer);
    has(c, 1);
    llvs_peer_free(peer);
    llvs_peer_free(met);
    llvs_buffer_dispose(&address);
    llvs_listener_free(listener);
    llvs_store_free(a);
    llvs_store_free(b);
    llvs_store_free(c);
}

static void a_stream_of_the_hosts_is_carried(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_peer *one, *two;
    llvs_bool in_step;
    char byte;
    size_t size;
    int ends[2];
    (void)context;
    save(a, NULL, insert("a", "1"));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    options.pairing = pairing(FIRST);
    options.initiator = 1;
    OK(llvs_peer_open(a, &options, &one, &error));
    options.initiator = 0;
    OK(llvs_peer_open(b, &options, &two, &error));
    assert_int_equal(llvs_peer_wait(one, 0, &in_step, NULL), LLVS_ERROR_INVALID_ARGUMENT);
    OK(llvs_peer_carry(one, ends[0], &error));
    OK(llvs_peer_carry(two, ends[1], &error));
    come_in_step(one);
    come_in_step(two);
    has(b, 1);
    /* Only the library may carry these connections now. */
    assert_int_equal(llvs_peer_send(one, &byte, 1, &size, NULL), LLVS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(llvs_peer_receive(one, llvs_str("x"), NULL), LLVS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(llvs_peer_tick(one, 1, NULL), LLVS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(llvs_peer_carry(one, dup(1), NULL), LLVS_ERROR_INVALID_ARGUMENT);
    OK(llvs_peer_close(one, &error));
    OK(llvs_peer_wait(two, PATIENCE, &in_step, &error));
    while (fcntl(ends[0], F_GETFD) >= 0 || fcntl(ends[1], F_GETFD) >= 0) sleep_ms(1); /* both descriptors are closed when the
                                                                                       * connections end */
    llvs_peer_free(one);
    llvs_peer_free(two);
    llvs_store_free(a);
    llvs_store_free(b);
}

static llvs_exchange *with_place(llvs_store *store, const char *url, llvs_buffer *identity, llvs_buffer *other) {
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_bytes secret = llvs_bytes_make(identity->data, identity->size), half = llvs_bytes_make(NULL, 0);
    llvs_exchange *exchange;
    options.identities = &secret;
    options.identity_count = 1;
    if (other) {
        half = llvs_bytes_make(other->data, other->size);
        options.recipients = &half;
        options.recipient_count = 1;
    }
    OK(llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error));
    return exchange;
}
static llvs_status connect_by(llvs_store *store, llvs_bytes where, llvs_exchange *exchange, llvs_peer **peer) {
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    options.exchange = exchange;
    return llvs_peer_connect(store, &options, where, PATIENCE, peer, NULL);
}

/* Devices that share an encrypted place need no pairing. A removed member can no longer connect, and its open connection is ended. */
static void members_of_a_place_need_no_pairing(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    char *folder = new_directory(), url[1024];
    llvs_listener *listener = listen_at("127.0.0.1:0");
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_buffer first, first_half, second, second_half, one, two, address = address_of(listener);
    llvs_bytes where = llvs_bytes_make(address.data, address.size);
    llvs_exchange *mine, *theirs;
    llvs_peer *peer;
    llvs_version_id saved = save(a, NULL, insert("a", "1"));
    llvs_bool in_step;
    llvs_status status;
    (void)context;
    snprintf(url, sizeof url, "file://%s/place", folder);
    OK(llvs_identity_create(&first, &first_half, &error));
    OK(llvs_identity_create(&second, &second_half, &error));
    mine = with_place(a, url, &first, &second_half);
    FAILS(LLVS_ERROR_KEY_MISSING, llvs_listener_offer_members(listener, a, mine, &error));
    OK(llvs_exchange_send(mine, NULL, NULL, &error));
    OK(llvs_listener_offer_members(listener, a, mine, &error));
    theirs = with_place(b, url, &second, NULL);
    assert_int_equal(connect_by(b, where, theirs, &peer), LLVS_ERROR_KEY_MISSING);
    OK(llvs_exchange_pairing(theirs, 1, NULL, &two, &error));
    OK(llvs_exchange_pairing(mine, 0, NULL, &one, &error));
    assert_int_equal(one.size, LLVS_PAIRING_SIZE);
    assert_memory_equal(one.data, two.data, LLVS_PAIRING_SIZE);
    assert_int_equal(connect_by(b, where, theirs, &peer), LLVS_OK);
    come_in_step(peer);
    value_is(b, &saved, "a", "1");

    /* Only one of several ways may be given. */
    options.exchange = theirs;
    options.pairing = llvs_bytes_make(one.data, one.size);
    { llvs_peer *none; FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(b, &options, &none, &error)); }
    options.pairing = llvs_bytes_make(NULL, 0);
    options.compares_digits = 1;
    { llvs_peer *none; FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(b, &options, &none, &error)); }
    llvs_buffer_dispose(&first_half);
    FAILS(LLVS_ERROR_NOT_FOUND, llvs_listener_invite(listener, llvs_bytes_make(one.data, one.size), 60, &first_half, &error));

    OK(llvs_exchange_remove_member(mine, llvs_bytes_make(second_half.data, second_half.size), NULL, &error));
    save(a, &saved, update("a", "2"));
    do status = llvs_peer_wait(peer, PATIENCE, &in_step, NULL); while (status == LLVS_OK && in_step);
    assert_int_equal(status, LLVS_ERROR_WRONG_KEY);
    llvs_peer_free(peer);
    assert_int_equal(connect_by(b, where, theirs, &peer), LLVS_OK);
    assert_int_equal(llvs_peer_wait(peer, PATIENCE, &in_step, NULL), LLVS_ERROR_WRONG_KEY);
    llvs_peer_free(peer);
    has(b, 1);
    llvs_buffer_dispose(&one);
    OK(llvs_exchange_pairing(mine, 1, NULL, &one, &error));
    assert_memory_not_equal(one.data, two.data, LLVS_PAIRING_SIZE);
    llvs_listener_free(listener);
    llvs_exchange_free(mine);
    llvs_exchange_free(theirs);
    llvs_buffer_dispose(&address);
    llvs_buffer_dispose(&first);
    llvs_buffer_dispose(&second);
    llvs_buffer_dispose(&second_half);
    llvs_buffer_dispose(&one);
    llvs_buffer_dispose(&two);
    llvs_store_free(a);
    llvs_store_free(b);
    remove_directory(folder);
}

static void what_cannot_be_is_refused(void **context) {
    static const char *const wrong[] = { "", "host", "host:", ":1", "host:99999", "a:b:1", "[::1]", "host:1x", "unix:" };
    llvs_store *store = memory_store();
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_listener *listener = listen_at("[::1]:0"), *other;
    llvs_buffer address = address_of(listener);
    llvs_peer *peer;
    size_t i;
    (void)context;
    options.pairing = pairing(FIRST);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_connect(store, &options, llvs_str(wrong[i]), 1, &peer, &error));
        assert_null(peer);
    }
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_connect(store, &options, llvs_str("127.0.0.1:1"), NAN, &peer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_connect(store, &options, llvs_str("127.0.0.1:1"), -1, &peer, &error));
    FAILS(LLVS_ERROR_TRANSPORT, llvs_peer_connect(store, &options, llvs_str("127.0.0.1:1"), 1, &peer, &error));
    FAILS(LLVS_ERROR_TRANSPORT, llvs_peer_connect(store, &options, llvs_str("unix:/nowhere/at/all"), 1, &peer, &error));
    /* A listener gets pairings together with stores. */
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_listener_open(llvs_str("127.0.0.1:0"), &options, &other, &error));
    options.pairing = llvs_bytes_make(NULL, 0);
    FAILS(LLVS_ERROR_TRANSPORT, llvs_listener_open(llvs_bytes_make(address.data, address.size), &options, &other, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_listener_offer(listener, store, llvs_str("short"), &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_listener_accept(listener, INFINITY, &peer, &error));
    llvs_buffer_dispose(&address);
    llvs_listener_free(listener);
    llvs_listener_free(NULL);
    llvs_store_free(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_listener_serves_several_stores),
        cmocka_unit_test(strangers_get_no_answer),
        cmocka_unit_test(a_unix_socket_is_its_owners),
        cmocka_unit_test(invitations_and_digits_bring_the_pairing),
        cmocka_unit_test(a_stream_of_the_hosts_is_carried),
        cmocka_unit_test(members_of_a_place_need_no_pairing),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

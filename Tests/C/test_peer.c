/* Direct connections between two ends whose bytes the test carries; wrong secrets, wrong arguments, ends that are cut, stores that are
 * closed. */
#include "support.h"

#include <math.h>

enum { CHUNK = 1000 };
static const char PAIRING[LLVS_PAIRING_SIZE] = "a pairing of forty-eight bytes, both sides know", OTHER[LLVS_PAIRING_SIZE] = "another";

static llvs_bytes pairing(const char *text) { return llvs_bytes_make(text, LLVS_PAIRING_SIZE); }

static llvs_peer *open_peer(llvs_store *store, llvs_bool initiator, const char *secret) {
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_peer *peer;
    options.initiator = initiator;
    options.pairing = pairing(secret);
    options.device = llvs_str(initiator ? "phone" : "laptop");
    OK(llvs_peer_open(store, &options, &peer, &error));
    return peer;
}

/* Carries the waiting bytes from one end to the other, in pieces. Returns their number, or a negative status if a call failed. */
static long carry_one_way(llvs_peer *from, llvs_peer *to) {
    uint8_t data[CHUNK];
    size_t size, all = 0;
    for (;;) {
        llvs_status status;
        OK(llvs_peer_send(from, data, sizeof data, &size, &error));
        if (size == 0) return (long)all;
        all += size;
        status = llvs_peer_receive(to, llvs_bytes_make(data, size), NULL);
        if (status != LLVS_OK) return status;
    }
}
static void carry(llvs_peer *one, llvs_peer *two) {
    long there, back;
    do {
        there = carry_one_way(one, two);
        back = carry_one_way(two, one);
        assert_true(there >= 0 && back >= 0);
    } while (there > 0 || back > 0);
}

static llvs_peer_state *state_of(llvs_peer *peer) {
    llvs_peer_state *state;
    OK(llvs_peer_get_state(peer, &state, &error));
    return state;
}
static void phase_is(llvs_peer *peer, llvs_peer_phase phase, uint64_t sent, uint64_t received) {
    llvs_peer_state *state = state_of(peer);
    assert_int_equal(state->phase, phase);
    assert_int_equal(state->sent, sent);
    assert_int_equal(state->received, received);
    assert_int_equal(state->problem_count, 0);
    llvs_peer_state_free(state);
}

static void two_stores_come_in_step_and_stay_so(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_version_id first = save(a, NULL, insert("a", "1")), second = save(b, NULL, insert("b", "2")), third;
    llvs_peer *one = open_peer(a, 1, PAIRING), *two = open_peer(b, 0, PAIRING);
    llvs_peer_state *state;
    (void)context;
    phase_is(one, LLVS_PEER_CONNECTING, 0, 0);
    carry(one, two);
    phase_is(one, LLVS_PEER_IN_STEP, 1, 1);
    phase_is(two, LLVS_PEER_IN_STEP, 1, 1);
    value_is(a, &second, "b", "2");
    value_is(b, &first, "a", "1");
    state = state_of(two);
    assert_true(bytes_are(state->device, "phone"));
    assert_int_equal(state->key.size, LLVS_DEVICE_KEY_SIZE);
    llvs_peer_state_free(state);

    third = save(a, &first, update("a", "3"));
    assert_int_equal(carry_one_way(one, two), 0);
    OK(llvs_peer_store_changed(one, &error));
    carry(one, two);
    phase_is(two, LLVS_PEER_IN_STEP, 1, 2);
    value_is(b, &third, "a", "3");

    OK(llvs_peer_tick(one, 1, &error));
    OK(llvs_peer_close(one, &error));
    carry(one, two);
    phase_is(one, LLVS_PEER_ENDED, 2, 1);
    phase_is(two, LLVS_PEER_ENDED, 1, 2);
    OK(llvs_peer_receive_end(one, &error));
    OK(llvs_peer_receive_end(two, &error));
    llvs_peer_free(one);
    llvs_peer_free(two);
    assert_int_equal(version_count(a), version_count(b));
    llvs_store_free(a);
    llvs_store_free(b);
}

static void strangers_stay_outside(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_peer *one = open_peer(a, 1, OTHER), *two = open_peer(b, 0, PAIRING);
    uint8_t beginning[4096];
    llvs_bool matches = 7;
    size_t size;
    (void)context;
    save(b, NULL, insert("secret", "yes"));
    OK(llvs_peer_send(one, beginning, sizeof beginning, &size, &error));
    assert_true(size >= LLVS_PEER_BEGINNING);
    OK(llvs_pairing_matches(pairing(OTHER), llvs_bytes_make(beginning, LLVS_PEER_BEGINNING), &matches, &error));
    assert_int_equal(matches, 1);
    OK(llvs_pairing_matches(pairing(PAIRING), llvs_bytes_make(beginning, LLVS_PEER_BEGINNING), &matches, &error));
    assert_int_equal(matches, 0);
    FAILS(LLVS_ERROR_WRONG_KEY, llvs_peer_receive(two, llvs_bytes_make(beginning, size), &error));
    phase_is(two, LLVS_PEER_ENDED, 0, 0);
    assert_int_equal(version_count(a), 0);
    llvs_peer_free(one);
    llvs_peer_free(two);
    llvs_store_free(a);
    llvs_store_free(b);
}

static void only_devices_that_are_accepted_come_in(void **context) {
    const char mine[LLVS_DEVICE_KEY_SIZE] = "the secret half of a device key", others[LLVS_DEVICE_KEY_SIZE] = "that of another device";
    llvs_bool accepted;
    (void)context;
    for (accepted = 0; accepted < 2; accepted++) {
        llvs_store *a = memory_store(), *b = memory_store();
        llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
        llvs_peer *one, *two;
        llvs_buffer key;
        llvs_bytes list;
        OK(llvs_device_key(llvs_bytes_make(accepted ? mine : others, sizeof mine), &key, &error));
        assert_int_equal(key.size, LLVS_DEVICE_KEY_SIZE);
        list = llvs_bytes_make(key.data, key.size);
        options.pairing = pairing(PAIRING);
        options.accepted = &list;
        options.accepted_count = 1;
        OK(llvs_peer_open(b, &options, &two, &error));
        options.accepted = NULL;
        options.accepted_count = 0;
        options.initiator = 1;
        options.identity = llvs_bytes_make(mine, sizeof mine);
        OK(llvs_peer_open(a, &options, &one, &error));
        save(b, NULL, insert("b", "2"));
        if (accepted) {
            llvs_peer_state *state;
            carry(one, two);
            phase_is(one, LLVS_PEER_IN_STEP, 0, 1);
            state = state_of(two);
            assert_memory_equal(state->key.data, key.data, key.size);
            llvs_peer_state_free(state);
        } else {
            assert_true(carry_one_way(one, two) > 0 && carry_one_way(two, one) > 0);
            assert_int_equal(carry_one_way(one, two), LLVS_ERROR_WRONG_KEY);
            assert_int_equal(version_count(a), 0);
        }
        llvs_buffer_dispose(&key);
        llvs_peer_free(one);
        llvs_peer_free(two);
        llvs_store_free(a);
        llvs_store_free(b);
    }
}

static void an_invitation_brings_the_pairing(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_version_id first = save(b, NULL, insert("b", "1"));
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_peer *joins, *invites;
    llvs_peer_state *state;
    llvs_buffer code, another;
    llvs_bool matches;
    uint8_t beginning[LLVS_PEER_BEGINNING];
    char typed[40];
    size_t size, i;
    (void)context;
    OK(llvs_invitation_create(&code, &error));
    OK(llvs_invitation_create(&another, &error));
    assert_int_equal(code.size, 30);
    assert_true(memcmp(code.data, another.data, code.size) != 0);
    options.invitation = llvs_bytes_make(code.data, code.size);
    options.pairing = pairing(PAIRING);
    OK(llvs_peer_open(b, &options, &invites, &error));
    /* As a person might type it. */
    for (i = 0; i < code.size; i++) {
        char digit = (char)code.data[i];
        typed[i] = digit == '-' ? ' ' : digit == '0' ? 'o' : digit == '1' ? 'l' : digit >= 'A' ? (char)(digit + 32) : digit;
    }
    options.invitation = llvs_bytes_make(typed, code.size);
    options.pairing = LLVS_NONE;
    options.initiator = 1;
    OK(llvs_peer_open(a, &options, &joins, &error));
    OK(llvs_peer_send(joins, beginning, sizeof beginning, &size, &error));
    assert_int_equal(size, sizeof beginning);
    OK(llvs_pairing_matches(llvs_bytes_make(code.data, code.size), llvs_bytes_make(beginning, size), &matches, &error));
    assert_int_equal(matches, 1);
    OK(llvs_pairing_matches(llvs_bytes_make(another.data, another.size), llvs_bytes_make(beginning, size), &matches, &error));
    assert_int_equal(matches, 0);
    OK(llvs_pairing_matches(pairing(PAIRING), llvs_bytes_make(beginning, size), &matches, &error));
    assert_int_equal(matches, 0);
    OK(llvs_peer_receive(invites, llvs_bytes_make(beginning, size), &error));
    carry(joins, invites);
    phase_is(joins, LLVS_PEER_IN_STEP, 0, 1);
    value_is(a, &first, "b", "1");
    state = state_of(joins);
    assert_int_equal(state->pairing.size, LLVS_PAIRING_SIZE);
    assert_memory_equal(state->pairing.data, PAIRING, LLVS_PAIRING_SIZE);
    llvs_peer_state_free(state);
    state = state_of(invites);
    assert_int_equal(state->pairing.size, 0);
    llvs_peer_state_free(state);
    llvs_peer_free(joins);
    llvs_peer_free(invites);

    /* Neither side has a pairing, or both have one. */
    for (i = 0; i < 2; i++) {
        long there, back;
        options.pairing = i == 0 ? LLVS_NONE : pairing(PAIRING);
        options.invitation = llvs_bytes_make(code.data, code.size);
        options.initiator = 1;
        OK(llvs_peer_open(a, &options, &joins, &error));
        options.initiator = 0;
        OK(llvs_peer_open(b, &options, &invites, &error));
        do {
            there = carry_one_way(joins, invites);
            back = there < 0 ? there : carry_one_way(invites, joins);
        } while (there > 0 && back > 0);
        assert_true(there == LLVS_ERROR_DAMAGED || back == LLVS_ERROR_DAMAGED);
        llvs_peer_free(joins);
        llvs_peer_free(invites);
    }
    options.pairing = LLVS_NONE;
    for (i = 0; i < 5; i++) {
        static const char *const wrong[] = { "-", "1GT4K", "8ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZZ", "0ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZZZ",
                                             "0ZZZZ-ZZZZU-ZZZZZ-ZZZZZ-ZZZZZZ" };
        llvs_error *problem;
        options.invitation = llvs_str(wrong[i]);
        assert_int_equal(llvs_peer_open(a, &options, &joins, &problem), LLVS_ERROR_INVALID_ARGUMENT);
        assert_null(strstr(llvs_error_message(problem), "ZZZZ")); /* secrets are not repeated */
        llvs_error_free(problem);
    }
    options.invitation = llvs_str("0ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZZ");
    OK(llvs_peer_open(a, &options, &joins, &error));
    llvs_peer_free(joins);
    llvs_buffer_dispose(&code);
    llvs_buffer_dispose(&another);
    llvs_store_free(a);
    llvs_store_free(b);
}

static llvs_status room(void *payload, uint64_t bytes, llvs_error **out) {
    uint64_t *left = payload;
    (void)out;
    if (bytes > *left) return LLVS_ERROR_NO_SPACE;
    *left -= bytes;
    return LLVS_OK;
}
static int freed_rooms;
static void free_room(void *payload) { (void)payload; freed_rooms++; }

static void people_compare_digits(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_peer *joins, *gives;
    llvs_peer_state *one, *two;
    llvs_version_id first = save(b, NULL, insert("b", "1"));
    llvs_bool matches;
    uint8_t beginning[LLVS_PEER_BEGINNING];
    size_t size;
    (void)context;
    options.compares_digits = 1;
    options.pairing = pairing(PAIRING);
    OK(llvs_peer_open(b, &options, &gives, &error));
    options.pairing = LLVS_NONE;
    options.initiator = 1;
    OK(llvs_peer_open(a, &options, &joins, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_confirm(joins, &error));
    OK(llvs_peer_send(joins, beginning, sizeof beginning, &size, &error));
    OK(llvs_pairing_matches(LLVS_NONE, llvs_bytes_make(beginning, size), &matches, &error));
    assert_int_equal(matches, 1);
    OK(llvs_pairing_matches(pairing(PAIRING), llvs_bytes_make(beginning, size), &matches, &error));
    assert_int_equal(matches, 0);
    OK(llvs_peer_receive(gives, llvs_bytes_make(beginning, size), &error));
    carry(joins, gives);
    one = state_of(joins);
    two = state_of(gives);
    assert_int_equal(one->digits.size, 6);
    assert_memory_equal(one->digits.data, two->digits.data, 6);
    llvs_peer_state_free(one);
    llvs_peer_state_free(two);
    /* Either side may confirm first. Nothing is revealed before both have confirmed. */
    OK(llvs_peer_confirm(joins, &error));
    OK(llvs_peer_confirm(joins, &error));
    carry(joins, gives);
    one = state_of(joins);
    assert_int_equal(one->pairing.size, 0);
    llvs_peer_state_free(one);
    assert_int_equal(version_count(a), 0);
    OK(llvs_peer_confirm(gives, &error));
    carry(joins, gives);
    phase_is(joins, LLVS_PEER_IN_STEP, 0, 1);
    value_is(a, &first, "b", "1");
    one = state_of(joins);
    assert_int_equal(one->pairing.size, LLVS_PAIRING_SIZE);
    assert_memory_equal(one->pairing.data, PAIRING, LLVS_PAIRING_SIZE);
    llvs_peer_state_free(one);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_confirm(gives, &error));
    llvs_peer_free(joins);
    llvs_peer_free(gives);
    /* Refused with an invitation as well, and if both sides have one. */
    options.invitation = llvs_str("0ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZZ");
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(a, &options, &joins, &error));
    options.invitation = LLVS_NONE;
    options.compares_digits = 2;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(a, &options, &joins, &error));
    llvs_store_free(a);
    llvs_store_free(b);
}

static void no_more_is_stored_than_there_is_room_for(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_peer *one = open_peer(a, 1, PAIRING), *two;
    llvs_version_id first = save(a, NULL, insert("a", "1"));
    char large[5000];
    uint64_t left = 1000;
    (void)context;
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = 0;
    options.quota = room;
    options.quota_payload = &left;
    options.quota_free = free_room;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(b, &options, &two, &error));
    assert_int_equal(freed_rooms, 1);
    options.pairing = pairing(PAIRING);
    OK(llvs_peer_open(b, &options, &two, &error));
    carry(one, two);
    value_is(b, &first, "a", "1");
    assert_true(left < 1000);
    save(a, &first, insert("c", large));
    OK(llvs_peer_store_changed(one, &error));
    assert_int_equal(carry_one_way(one, two), LLVS_ERROR_NO_SPACE);
    assert_int_equal(version_count(b), 1);
    /* The other side is told that the store cannot continue. */
    assert_int_equal(carry_one_way(two, one), LLVS_ERROR_TRANSPORT);
    llvs_peer_free(two);
    assert_int_equal(freed_rooms, 2);
    llvs_peer_free(one);
    llvs_store_free(a);
    llvs_store_free(b);
}

static void an_end_that_was_cut_is_told(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_peer *one = open_peer(a, 1, PAIRING), *two = open_peer(b, 0, PAIRING);
    llvs_version_id first = save(a, NULL, insert("a", "1"));
    (void)context;
    carry(one, two);
    FAILS(LLVS_ERROR_CUT_SHORT, llvs_peer_receive_end(one, &error));
    phase_is(one, LLVS_PEER_ENDED, 1, 0);
    value_is(b, &first, "a", "1");
    /* Silence for longer than a connection lasts. */
    OK(llvs_peer_tick(two, 1000, &error));
    OK(llvs_peer_tick(two, 1031, &error));
    FAILS(LLVS_ERROR_CUT_SHORT, llvs_peer_tick(two, 2000, &error));
    phase_is(two, LLVS_PEER_ENDED, 0, 1);
    llvs_peer_free(one);
    llvs_peer_free(two);
    llvs_store_free(a);
    llvs_store_free(b);
}

static void what_is_damaged_on_the_way_ends_it(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_peer *one = open_peer(a, 1, PAIRING), *two = open_peer(b, 0, PAIRING);
    llvs_version_id first = save(a, NULL, insert("a", "1"));
    uint8_t data[4096];
    size_t size;
    (void)context;
    carry(one, two);
    save(a, &first, update("a", "2"));
    OK(llvs_peer_store_changed(one, &error));
    OK(llvs_peer_send(one, data, sizeof data, &size, &error));
    assert_true(size > 20);
    data[size / 2] ^= 1;
    FAILS(LLVS_ERROR_DAMAGED, llvs_peer_receive(two, llvs_bytes_make(data, size), &error));
    OK(llvs_peer_send(two, data, sizeof data, &size, &error));
    assert_int_equal(size, 0); /* the other side may not have the keys to read it */
    phase_is(two, LLVS_PEER_ENDED, 0, 1);
    assert_int_equal(version_count(b), 1);
    llvs_peer_free(one);
    llvs_peer_free(two);
    llvs_store_free(a);
    llvs_store_free(b);
}

static void what_cannot_be_is_refused(void **context) {
    llvs_store *store = memory_store();
    llvs_peer_options options = LLVS_PEER_OPTIONS_INIT;
    llvs_bytes key = llvs_bytes_make(PAIRING, 31);
    llvs_peer *peer;
    llvs_bool matches;
    llvs_buffer made;
    size_t size;
    char device[256];
    (void)context;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(store, &options, &peer, &error));
    assert_null(peer);
    options.pairing = llvs_bytes_make(PAIRING, LLVS_PAIRING_SIZE - 1);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(store, &options, &peer, &error));
    options.pairing = pairing(PAIRING);
    options.identity = key;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(store, &options, &peer, &error));
    options.identity = LLVS_NONE;
    options.accepted_count = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(store, &options, &peer, &error));
    options.accepted = &key;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(store, &options, &peer, &error));
    options.accepted = NULL;
    options.accepted_count = 0;
    memset(device, 'x', sizeof device);
    options.device = llvs_bytes_make(device, sizeof device);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(store, &options, &peer, &error));
    options.device = llvs_bytes_make("\xff", 1);
    FAILS(LLVS_ERROR_INVALID_UTF8, llvs_peer_open(store, &options, &peer, &error));
    options.device = LLVS_NONE;
    options.initiator = 2;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(store, &options, &peer, &error));
    options.initiator = 0;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(NULL, &options, &peer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_open(store, NULL, &peer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_device_key(key, &made, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_pairing_matches(key, key, &matches, &error));
    OK(llvs_pairing_matches(pairing(PAIRING), key, &matches, &error)); /* too few bytes to identify the sender */
    assert_int_equal(matches, 0);

    OK(llvs_peer_open(store, &options, &peer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_tick(peer, NAN, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_tick(peer, INFINITY, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_peer_send(peer, NULL, 10, &size, &error));
    OK(llvs_peer_receive(peer, llvs_bytes_make("", 0), &error));
    OK(llvs_peer_send(peer, device, 0, &size, &error));
    assert_int_equal(size, 0);
    llvs_peer_free(peer);
    llvs_peer_free(NULL);
    llvs_peer_state_free(NULL);
    llvs_store_free(store);
}

static void hear(void *payload, llvs_nearby_event event, const llvs_bytes *name, const llvs_bytes *address, uint32_t port) {
    (void)payload;
    (void)event;
    (void)name;
    (void)address;
    (void)port;
}

static void count_freed(void *payload) { ++*(int *)payload; }

/* The payload of the callback is freed, whatever fails. */
static void devices_that_cannot_be_found(void **context) {
    llvs_observer *observer;
    char name[64];
    int freed = 0;
    (void)context;
    memset(name, 'x', sizeof name);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_nearby_observe(LLVS_NONE, 65536, hear, &freed, count_freed, &observer, &error));
    assert_null(observer);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT,
          llvs_nearby_observe(llvs_bytes_make(name, sizeof name), 0, hear, &freed, count_freed, &observer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_nearby_observe(llvs_bytes_make("a\0b", 3), 0, hear, &freed, count_freed, &observer, &error));
    FAILS(LLVS_ERROR_INVALID_UTF8, llvs_nearby_observe(llvs_bytes_make("\xff", 1), 0, hear, &freed, count_freed, &observer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_nearby_observe(LLVS_NONE, 0, NULL, &freed, count_freed, &observer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_nearby_observe(LLVS_NONE, 0, hear, &freed, count_freed, NULL, &error));
    assert_int_equal(freed, 6);
    /* Without Avahi, or if its daemon cannot be reached. */
    assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere", 1), 0);
    FAILS(LLVS_ERROR_UNSUPPORTED, llvs_nearby_observe(LLVS_NONE, 4040, hear, &freed, count_freed, &observer, &error));
    assert_null(observer);
    assert_int_equal(freed, 7);
}

static void a_closed_store_ends_it(void **context) {
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_peer *one = open_peer(a, 1, PAIRING), *two = open_peer(b, 0, PAIRING);
    long failure;
    (void)context;
    save(a, NULL, insert("a", "1"));
    OK(llvs_store_close(b, &error));
    for (failure = 0; failure == 0;) {
        long there = carry_one_way(one, two), back = there < 0 ? 0 : carry_one_way(two, one);
        failure = there < 0 ? there : back < 0 ? back : 0;
        assert_true(failure < 0 || there > 0 || back > 0);
    }
    assert_int_equal(failure, LLVS_ERROR_CLOSED);
    phase_is(two, LLVS_PEER_ENDED, 0, 0);
    OK(llvs_peer_store_changed(two, &error)); /* the connection has ended, so nothing more can fail */
    llvs_peer_free(one);
    llvs_peer_free(two);
    llvs_store_free(a);
    llvs_store_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_stores_come_in_step_and_stay_so),
        cmocka_unit_test(strangers_stay_outside),
        cmocka_unit_test(devices_that_cannot_be_found),
        cmocka_unit_test(only_devices_that_are_accepted_come_in),
        cmocka_unit_test(an_invitation_brings_the_pairing),
        cmocka_unit_test(people_compare_digits),
        cmocka_unit_test(no_more_is_stored_than_there_is_room_for),
        cmocka_unit_test(an_end_that_was_cut_is_told),
        cmocka_unit_test(what_is_damaged_on_the_way_ends_it),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_closed_store_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

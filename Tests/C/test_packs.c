/* Packs that the host carries from a store to another that lacks their versions; unreadable packs; failing callbacks. */
#include "support.h"

typedef struct stream { uint8_t *data; size_t size, at, limit; int calls; } stream;

static llvs_status append(void *payload, const llvs_bytes *piece, llvs_error **problem) {
    stream *s = payload;
    (void)problem;
    s->data = realloc(s->data, s->size + piece->size + 1);
    assert_non_null(s->data);
    memcpy(s->data + s->size, piece->data, piece->size);
    s->size += piece->size;
    s->calls++;
    return LLVS_OK;
}
static llvs_status take(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **problem) {
    stream *s = payload;
    size_t left = s->size - s->at;
    (void)problem;
    if (left == 0) return LLVS_END;
    *size = left < capacity ? left : capacity;
    if (s->limit && *size > s->limit) *size = s->limit;
    memcpy(buffer, s->data + s->at, *size);
    s->at += *size;
    return LLVS_OK;
}
static size_t pack(llvs_store *store, const llvs_bytes *have, size_t count, stream *s) {
    llvs_exchange_result *result;
    size_t sent;
    s->size = s->at = 0;
    OK(llvs_store_write_pack(store, have, count, NULL, append, s, NULL, &result, &error));
    assert_int_equal(result->problem_count, 0);
    assert_int_equal(result->retrieved_count, 0);
    sent = result->sent_count;
    llvs_exchange_result_free(result);
    return sent;
}
static size_t unpack(llvs_store *store, stream *s) {
    llvs_exchange_result *result;
    size_t retrieved;
    s->at = 0;
    OK(llvs_store_read_pack(store, NULL, take, s, NULL, &result, &error));
    assert_int_equal(result->problem_count, 0);
    assert_int_equal(s->at, s->size);
    retrieved = result->retrieved_count;
    llvs_exchange_result_free(result);
    return retrieved;
}

static void what_is_lacking_goes_over(void **state) {
    llvs_store *one = memory_store(), *two = memory_store();
    llvs_version_id root = save(one, NULL, insert("x", "1")), child = save(one, &root, update("x", "2"));
    llvs_bytes have[2] = { llvs_id(&root), llvs_str("unknown") };
    stream s = { NULL, 0, 0, 0, 0 };
    (void)state;
    assert_int_equal(pack(one, NULL, 0, &s), 2);
    assert_int_equal(unpack(two, &s), 2);
    assert_int_equal(unpack(two, &s), 0);
    assert_int_equal(pack(one, have, 2, &s), 1);
    have[0] = llvs_id(&child);
    assert_int_equal(pack(one, have, 1, &s), 0);
    /* Piece by piece, and with nothing after the end. */
    pack(one, NULL, 0, &s);
    append(&s, &(llvs_bytes){ (const uint8_t *)"more", 4 }, NULL);
    s.limit = 1;
    OK(llvs_store_read_pack(two, NULL, take, &s, NULL, NULL, &error));
    assert_int_equal(s.at, s.size - 4);
    free(s.data);
    llvs_store_free(one);
    llvs_store_free(two);
}

static void what_is_wrong_is_told(void **state) {
    llvs_store *one = memory_store(), *two = memory_store(), *three = memory_store();
    stream s = { NULL, 0, 0, 0, 0 };
    llvs_version_id root = save(one, NULL, insert("x", "1")), child = save(one, &root, update("x", "2"));
    llvs_bytes have = llvs_id(&root);
    llvs_exchange_result *result;
    (void)state;
    pack(one, NULL, 0, &s);
    for (size_t size = 0, whole = s.size; size < whole; size += size < 64 ? 1 : 29) {
        s.size = size;
        s.at = 0;
        FAILS(LLVS_ERROR_CUT_SHORT, llvs_store_read_pack(two, NULL, take, &s, NULL, NULL, &error));
        s.size = whole;
    }
    s.data[0] ^= 1;
    s.at = 0;
    FAILS(LLVS_ERROR_FOREIGN_FILE, llvs_store_read_pack(two, NULL, take, &s, NULL, NULL, &error));
    s.data[0] ^= 1;
    s.data[8] = 2;
    s.at = 0;
    FAILS(LLVS_ERROR_NEWER_FORMAT, llvs_store_read_pack(two, NULL, take, &s, NULL, NULL, &error));
    s.data[8] = 1;
    s.data[16] ^= 1; /* of another stream */
    s.at = 0;
    FAILS(LLVS_ERROR_IDENTIFIER_MISMATCH, llvs_store_read_pack(two, NULL, take, &s, NULL, NULL, &error));
    /* The predecessor of the packed version is not in the packs. */
    pack(one, &have, 1, &s);
    OK(llvs_store_read_pack(three, NULL, take, &s, NULL, &result, &error));
    assert_int_equal(result->retrieved_count, 0);
    assert_int_equal(result->problem_count, 1);
    assert_int_equal(result->problems[0]->code, LLVS_ERROR_MISSING_PREDECESSOR);
    assert_true(same_id(result->problems[0]->name, &child));
    llvs_exchange_result_free(result);
    have = llvs_str("no id!");
    FAILS(LLVS_ERROR_INVALID_VERSION_ID, llvs_store_write_pack(one, &have, 1, NULL, append, &s, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_write_pack(one, NULL, 1, NULL, append, &s, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_write_pack(one, NULL, 0, NULL, NULL, NULL, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_read_pack(one, NULL, NULL, NULL, NULL, NULL, &error));
    free(s.data);
    llvs_store_free(one);
    llvs_store_free(two);
    llvs_store_free(three);
}

static llvs_status refuse(void *payload, const llvs_bytes *piece, llvs_error **problem) {
    llvs_status answer = *(llvs_status *)payload;
    (void)piece;
    if (answer == LLVS_ERROR_USER) *problem = llvs_error_create(41, llvs_str("no room"));
    return answer;
}
static llvs_status refuse_to_read(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **problem) {
    (void)buffer;
    (void)capacity;
    (void)size;
    *problem = llvs_error_create(42, llvs_str("gone"));
    return *(llvs_status *)payload;
}

static void callbacks_that_fail_are_heard(void **state) {
    llvs_store *store = memory_store();
    llvs_error *problem = NULL;
    llvs_status user = LLVS_ERROR_USER, full = LLVS_ERROR_NO_SPACE;
    (void)state;
    save(store, NULL, insert("x", "1"));
    assert_int_equal(llvs_store_write_pack(store, NULL, 0, NULL, refuse, &user, NULL, NULL, &problem), LLVS_ERROR_USER);
    assert_int_equal(llvs_error_user_code(problem), 41);
    llvs_error_free(problem);
    problem = NULL;
    FAILS(LLVS_ERROR_NO_SPACE, llvs_store_write_pack(store, NULL, 0, NULL, refuse, &full, NULL, NULL, &error));
    assert_int_equal(llvs_store_read_pack(store, NULL, refuse_to_read, &user, NULL, NULL, &problem), LLVS_ERROR_USER);
    assert_int_equal(llvs_error_user_code(problem), 42);
    llvs_error_free(problem);
    problem = NULL;
    llvs_store_free(store);
}

static void it_is_encrypted(void **state) {
    llvs_store *one = memory_store(), *two = memory_store();
    llvs_bytes secret = llvs_str("AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX");
    llvs_bytes recipient = llvs_str("age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj");
    llvs_pack_options write = LLVS_PACK_OPTIONS_INIT, read = LLVS_PACK_OPTIONS_INIT, both = LLVS_PACK_OPTIONS_INIT;
    llvs_error *problem = NULL;
    stream s = { NULL, 0, 0, 0, 0 };
    (void)state;
    save(one, NULL, insert("x", "1"));
    write.recipients = &recipient;
    write.recipient_count = 1;
    read.identities = &secret;
    read.identity_count = 1;
    OK(llvs_store_write_pack(one, NULL, 0, &write, append, &s, NULL, NULL, &error));
    assert_memory_equal(s.data, "age-encryption.org/v1\n-> X25519 ", 32);
    FAILS(LLVS_ERROR_WRONG_KEY, llvs_store_read_pack(two, NULL, take, &s, NULL, NULL, &error));
    s.at = 0;
    s.limit = 7;
    OK(llvs_store_read_pack(two, &read, take, &s, NULL, NULL, &error));
    assert_int_equal(s.at, s.size);
    s.data[s.size - 1] ^= 1;
    s.at = 0;
    FAILS(LLVS_ERROR_DAMAGED, llvs_store_read_pack(two, &read, take, &s, NULL, NULL, &error));
    s.at = s.size = 0;
    FAILS(LLVS_ERROR_CUT_SHORT, llvs_store_read_pack(two, &read, take, &s, NULL, NULL, &error));
    /* With a passphrase, and with a wrong one. */
    both.passphrase = llvs_str("one two three");
    OK(llvs_store_write_pack(one, NULL, 0, &both, append, &s, NULL, NULL, &error));
    OK(llvs_store_read_pack(two, &both, take, &s, NULL, NULL, &error));
    both.passphrase = llvs_str("one two four");
    s.at = 0;
    FAILS(LLVS_ERROR_WRONG_KEY, llvs_store_read_pack(two, &both, take, &s, NULL, NULL, &error));
    /* Impossible arguments. */
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_read_pack(two, &write, take, &s, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_write_pack(one, NULL, 0, &read, append, &s, NULL, NULL, &error));
    write.passphrase = both.passphrase;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_write_pack(one, NULL, 0, &write, append, &s, NULL, NULL, &error));
    write.passphrase = LLVS_NONE;
    write.recipients = &secret;
    assert_int_equal(llvs_store_write_pack(one, NULL, 0, &write, append, &s, NULL, NULL, &problem), LLVS_ERROR_INVALID_ARGUMENT);
    assert_null(strstr(llvs_error_message(problem), "GFPYYSJZ"));
    llvs_error_free(problem);
    write.recipients = NULL;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_write_pack(one, NULL, 0, &write, append, &s, NULL, NULL, &error));
    read.reserved = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_read_pack(two, &read, take, &s, NULL, NULL, &error));
    free(s.data);
    llvs_store_free(one);
    llvs_store_free(two);
}

/* The keys of a place are checked when the exchange is opened. Tests/Python/test_encrypted_places.py tests the rest. */
static void keys_of_places(void **state) {
    llvs_store *store = memory_store();
    char *directory = new_directory(), url[1024];
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_exchange *exchange = NULL;
    llvs_member_list *members = NULL;
    llvs_remote *remote = NULL;
    llvs_exchange_result *result = NULL;
    llvs_buffer identity, recipient, pairing;
    llvs_bytes secret, half, name = llvs_str("name");
    llvs_error *problem = NULL;
    uint64_t left = 0;
    (void)state;
    snprintf(url, sizeof url, "file://%s/place", directory);
    OK(llvs_identity_create(&identity, &recipient, &error));
    assert_memory_equal(identity.data, "AGE-SECRET-KEY-1", 16);
    assert_memory_equal(recipient.data, "age1", 4);
    secret.data = identity.data;
    secret.size = identity.size;
    half.data = recipient.data;
    half.size = recipient.size;
    options.layout = 9;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error));
    options.layout = LLVS_LAYOUT_AUTOMATIC;
    options.recipients = &half;
    options.recipient_count = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error));
    options.recipients = &secret;
    options.passphrase = llvs_str("words");
    assert_int_equal(llvs_exchange_open(store, llvs_str(url), &options, &exchange, &problem), LLVS_ERROR_INVALID_ARGUMENT);
    assert_null(strstr(llvs_error_message(problem), "SECRET-KEY-1"));
    llvs_error_free(problem);
    options.recipient_count = 0;
    options.layout = LLVS_LAYOUT_INTERCHANGE;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error));
    options.layout = LLVS_LAYOUT_AUTOMATIC;
    options.identities = &secret;
    options.identity_count = 1;
    OK(llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error));
    OK(llvs_exchange_retrieve(exchange, NULL, &result, &error));
    assert_int_equal(result->retrieved_count, 0);
    llvs_exchange_result_free(result);
    FAILS(LLVS_ERROR_KEY_MISSING, llvs_exchange_members(exchange, NULL, &members, &error));
    FAILS(LLVS_ERROR_KEY_MISSING, llvs_exchange_add_member(exchange, half, name, LLVS_MEMBER_DEVICE, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_add_member(exchange, half, name, LLVS_MEMBER_PASSPHRASE, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_add_member(exchange, half, name, 7, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_remove_member(exchange, name, NULL, &error));
    FAILS(LLVS_ERROR_KEY_MISSING, llvs_exchange_change_passphrase(exchange, name, 1, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_change_passphrase(exchange, LLVS_NONE, 1, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_change_passphrase(exchange, name, 2, NULL, &error));
    FAILS(LLVS_ERROR_KEY_MISSING, llvs_exchange_pairing(exchange, 1, NULL, &pairing, &error));
    FAILS(LLVS_ERROR_KEY_MISSING, llvs_exchange_pairing(exchange, 0, NULL, &pairing, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_pairing(exchange, 2, NULL, &pairing, &error));
    assert_null(pairing.data);
    FAILS(LLVS_ERROR_KEY_MISSING, llvs_exchange_join_keys(exchange, NULL, &error));
    FAILS(LLVS_ERROR_KEY_MISSING, llvs_exchange_rekey(exchange, 0, NULL, &left, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_rekey(exchange, 2, NULL, NULL, &error));
    /* There is nothing to send, so there is nothing to end. */
    OK(llvs_exchange_retire(exchange, NULL, &result, &error));
    assert_int_equal(result->sent_count, 0);
    llvs_exchange_result_free(result);
    OK(llvs_exchange_remote(exchange, &remote, &error));
    assert_null(remote);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_remote(exchange, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_announce_move(exchange, LLVS_NONE, NULL, NULL, &error));
    llvs_exchange_free(exchange);
    /* A program that is older than these options: they are not read. */
    options.struct_size = 176;
    OK(llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error));
    FAILS(LLVS_ERROR_UNSUPPORTED, llvs_exchange_members(exchange, NULL, &members, &error));
    FAILS(LLVS_ERROR_UNSUPPORTED, llvs_exchange_pairing(exchange, 1, NULL, &pairing, &error));
    llvs_exchange_free(exchange);
    llvs_member_list_free(NULL);
    llvs_buffer_dispose(&identity);
    llvs_buffer_dispose(&recipient);
    llvs_store_free(store);
    remove_directory(directory);
}

static void places_are_told_of(void **state) {
    char *directory = new_directory(), url[512];
    llvs_store *a = memory_store(), *b = memory_store();
    llvs_exchange *first = NULL, *second = NULL;
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_exchange_result *result = NULL;
    llvs_remote *here = NULL, *there = NULL;
    char elsewhere[] = "https+webdav://elsewhere/notes/";
    (void)state;
    snprintf(url, sizeof url, "file://%s/place", directory);
    options.layout = LLVS_LAYOUT_BRIDGED;
    (void)save(a, NULL, insert("x", "1"));
    OK(llvs_exchange_open(a, llvs_str(url), &options, &first, &error));
    OK(llvs_exchange_send(first, NULL, NULL, &error));
    options.layout = LLVS_LAYOUT_PACKED;
    OK(llvs_exchange_open(b, llvs_str(url), &options, &second, &error));
    OK(llvs_exchange_announce_move(first, llvs_str(elsewhere), NULL, &result, &error));
    assert_int_equal(result->sent_count, 0);
    llvs_exchange_result_free(result);
    OK(llvs_exchange_retrieve(second, NULL, &result, &error));
    assert_int_equal(result->retrieved_count, 1);
    assert_int_equal(result->problem_count, 1);
    assert_int_equal(result->problems[0]->code, LLVS_ERROR_PLACE_MOVED);
    assert_non_null(strstr((const char *)result->problems[0]->message.data, elsewhere));
    llvs_exchange_result_free(result);
    OK(llvs_exchange_remote(first, &here, &error));
    OK(llvs_exchange_remote(second, &there, &error));
    assert_int_equal(there->struct_size, sizeof *there);
    assert_int_equal(there->layout, LLVS_LAYOUT_BRIDGED);
    assert_int_equal(there->epoch, 0);
    assert_int_equal(there->packs, 2);
    assert_true(there->bytes > 600 && there->listed > 1700000000);
    assert_int_equal(there->fingerprint.size, 35);
    assert_memory_equal(there->fingerprint.data, here->fingerprint.data, 35);
    assert_int_equal(there->writer_count, 1);
    assert_int_equal(there->writers[0]->number, 2);
    assert_int_equal(there->writers[0]->id.size, 13);
    assert_int_equal(there->writers[0]->here, 0);
    assert_true(there->writers[0]->last_seen > 1700000000);
    assert_int_equal(here->writers[0]->here, 1);
    assert_null(there->writers[1]);
    (void)save(a, NULL, insert("y", "2"));
    OK(llvs_exchange_retire(first, NULL, &result, &error));
    assert_int_equal(result->sent_count, 1);
    llvs_exchange_result_free(result);
    llvs_remote_free(here);
    llvs_remote_free(there);
    llvs_remote_free(NULL);
    llvs_exchange_free(first);
    llvs_exchange_free(second);
    llvs_store_free(a);
    llvs_store_free(b);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_told_of),
        cmocka_unit_test(what_is_lacking_goes_over),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(it_is_encrypted),
        cmocka_unit_test(keys_of_places),
        cmocka_unit_test(callbacks_that_fail_are_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Packs that the host carries: what one store lacks, out of another and in; what cannot be read; callbacks that fail. */
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
    OK(llvs_store_write_pack(store, have, count, append, s, NULL, &result, &error));
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
    OK(llvs_store_read_pack(store, take, s, NULL, &result, &error));
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
    /* Piece by piece, and nothing behind the end. */
    pack(one, NULL, 0, &s);
    append(&s, &(llvs_bytes){ (const uint8_t *)"more", 4 }, NULL);
    s.limit = 1;
    OK(llvs_store_read_pack(two, take, &s, NULL, NULL, &error));
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
        FAILS(LLVS_ERROR_CUT_SHORT, llvs_store_read_pack(two, take, &s, NULL, NULL, &error));
        s.size = whole;
    }
    s.data[0] ^= 1;
    s.at = 0;
    FAILS(LLVS_ERROR_FOREIGN_FILE, llvs_store_read_pack(two, take, &s, NULL, NULL, &error));
    s.data[0] ^= 1;
    s.data[8] = 2;
    s.at = 0;
    FAILS(LLVS_ERROR_NEWER_FORMAT, llvs_store_read_pack(two, take, &s, NULL, NULL, &error));
    s.data[8] = 1;
    s.data[16] ^= 1; /* of another stream */
    s.at = 0;
    FAILS(LLVS_ERROR_IDENTIFIER_MISMATCH, llvs_store_read_pack(two, take, &s, NULL, NULL, &error));
    /* Its predecessor did not come along. */
    pack(one, &have, 1, &s);
    OK(llvs_store_read_pack(three, take, &s, NULL, &result, &error));
    assert_int_equal(result->retrieved_count, 0);
    assert_int_equal(result->problem_count, 1);
    assert_int_equal(result->problems[0]->code, LLVS_ERROR_MISSING_PREDECESSOR);
    assert_true(same_id(result->problems[0]->name, &child));
    llvs_exchange_result_free(result);
    have = llvs_str("no id!");
    FAILS(LLVS_ERROR_INVALID_VERSION_ID, llvs_store_write_pack(one, &have, 1, append, &s, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_write_pack(one, NULL, 1, append, &s, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_write_pack(one, NULL, 0, NULL, NULL, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_read_pack(one, NULL, NULL, NULL, NULL, &error));
    free(s.data);
    llvs_store_free(one);
    llvs_store_free(two);
    llvs_store_free(three);
}

static llvs_status refuse(void *payload, const llvs_bytes *piece, llvs_error **problem) {
    llvs_status answer = *(llvs_status *)payload;
    (void)piece;
    if (answer == LLVS_ERROR_USER) *problem = llvs_error_make(41, llvs_str("no room"));
    return answer;
}
static llvs_status refuse_to_read(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **problem) {
    (void)buffer;
    (void)capacity;
    (void)size;
    *problem = llvs_error_make(42, llvs_str("gone"));
    return *(llvs_status *)payload;
}

static void callbacks_that_fail_are_heard(void **state) {
    llvs_store *store = memory_store();
    llvs_error *problem = NULL;
    llvs_status user = LLVS_ERROR_USER, full = LLVS_ERROR_NO_SPACE;
    (void)state;
    save(store, NULL, insert("x", "1"));
    assert_int_equal(llvs_store_write_pack(store, NULL, 0, refuse, &user, NULL, NULL, &problem), LLVS_ERROR_USER);
    assert_int_equal(llvs_error_user_code(problem), 41);
    llvs_error_free(problem);
    problem = NULL;
    FAILS(LLVS_ERROR_NO_SPACE, llvs_store_write_pack(store, NULL, 0, refuse, &full, NULL, NULL, &error));
    assert_int_equal(llvs_store_read_pack(store, refuse_to_read, &user, NULL, NULL, &problem), LLVS_ERROR_USER);
    assert_int_equal(llvs_error_user_code(problem), 42);
    llvs_error_free(problem);
    problem = NULL;
    llvs_store_free(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lacking_goes_over),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(callbacks_that_fail_are_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

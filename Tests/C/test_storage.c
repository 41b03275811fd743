/* A storage of the host in C, which must meet the same requirements as the library's storages. */
#include "support.h"

#include "array_storage.h"

static array_storage *storage_state;
static llvs_storage *storage;

static int set_up(void **state) {
    llvs_storage_callbacks callbacks = array_storage_callbacks();
    (void)state;
    storage_state = calloc(1, sizeof *storage_state);
    assert_non_null(storage_state);
    OK(llvs_storage_create(llvs_str("array"), &callbacks, storage_state, array_storage_free, &storage, &error));
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    llvs_storage_free(storage);
    return 0;
}

static llvs_store *opened(void) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = NULL;
    options.storage = LLVS_STORAGE_HOST;
    options.host_storage = storage;
    OK(llvs_store_open(LLVS_NONE, &options, &store, &error));
    return store;
}

static void what_was_appended_is_found_again(void **state) {
    size_t page;
    llvs_store *store = opened();
    llvs_version_id ids[10];
    int i;
    (void)state;
    for (i = 0; i < 10; i++) ids[i] = save(store, i ? &ids[i - 1] : NULL, update("x", i % 2 ? "odd" : "even"));
    assert_int_equal(storage_state->count, 10);
    assert_true(storage_state->syncs > 0); /* durability full */
    llvs_store_free(store);
    assert_int_equal(storage_state->closes, 1);
    for (page = 0; page < 4; page++) {
        storage_state->scan_page = page;
        store = opened();
        assert_int_equal(version_count(store), 10);
        for (i = 0; i < 10; i++) value_is(store, &ids[i], "x", i % 2 ? "odd" : "even");
        llvs_store_free(store);
    }
}

static void others_records_are_picked_up(void **state) {
    llvs_store *store = opened(), *other = memory_store();
    llvs_version_id id = save(store, NULL, insert("x", "1"));
    uint64_t added = 9;
    array_storage copy;
    (void)state;
    llvs_store_free(store);
    /* Simulates an append by another handle: the record is removed and added again. */
    copy = *storage_state;
    storage_state->count = 0;
    store = opened();
    assert_int_equal(version_count(store), 0);
    storage_state->count = copy.count;
    OK(llvs_store_reload(store, NULL, &added, &error));
    assert_int_equal(added, 1);
    value_is(store, &id, "x", "1");
    llvs_store_free(store);
    llvs_store_free(other);
}

static void large_values(void **state) {
    static const size_t sizes[] = { 0, 1, 65535, 65536, 65537, 1 << 20, (5 << 20) + 3 };
    llvs_store *store = opened();
    llvs_version_id ids[7];
    uint8_t *data = malloc(6 << 20);
    llvs_verify_report *report;
    size_t i, k;
    (void)state;
    assert_non_null(data);
    for (i = 0; i < (6 << 20); i++) data[i] = (uint8_t)(i * 2654435761u >> 13);
    for (i = 0; i < 7; i++) {
        llvs_change change = insert("x", NULL);
        change.data = llvs_bytes_make(data, sizes[i]);
        OK(llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, &ids[i], NULL, &error));
    }
    for (k = 0; k < 2; k++) {
        for (i = 0; i < 7; i++) {
            llvs_buffer got;
            OK(llvs_store_value(store, llvs_str("x"), llvs_id(&ids[i]), &got, NULL, &error));
            assert_int_equal(got.size, sizes[i]);
            assert_memory_equal(got.data, data, sizes[i]);
            assert_int_equal(got.data[got.size], 0);
            llvs_buffer_dispose(&got);
        }
        OK(llvs_store_verify(store, NULL, &report, &error));
        assert_int_equal(report->versions, 7);
        assert_int_equal(report->damage_count, 0);
        llvs_verify_report_free(report);
        if (k == 0) { llvs_store_free(store); store = opened(); }
    }
    llvs_store_free(store);
    free(data);
}

static void one_store_at_a_time(void **state) {
    llvs_store *store = opened(), *second;
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    (void)state;
    options.storage = LLVS_STORAGE_HOST;
    options.host_storage = storage;
    FAILS_NAMING(LLVS_ERROR_BUSY, "array", llvs_store_open(LLVS_NONE, &options, &second, &error));
    OK(llvs_store_close(store, &error));
    OK(llvs_store_open(LLVS_NONE, &options, &second, &error));
    OK(llvs_store_close(store, &error)); /* a second close must not release the lock of the second handle */
    llvs_store_free(store);
    FAILS(LLVS_ERROR_BUSY, llvs_store_open(LLVS_NONE, &options, &store, &error));
    llvs_store_free(second);
}

static void failures_surface_and_pass(void **state) {
    static const struct { llvs_status answer, code; } cases[] = {
        { LLVS_ERROR_USER, LLVS_ERROR_USER }, { LLVS_ERROR_NO_SPACE, LLVS_ERROR_NO_SPACE },
        { LLVS_ERROR_IO, LLVS_ERROR_IO }, { -7777, LLVS_ERROR_USER },
    };
    llvs_store *store = opened();
    llvs_version_id id = save(store, NULL, insert("x", "1"));
    llvs_change change = update("x", "2");
    llvs_error *error;
    size_t i;
    (void)state;
    for (i = 0; i < 4; i++) {
        storage_state->fail_with = cases[i].answer;
        storage_state->fail_after = storage_state->calls; /* the next one */
        assert_int_equal(llvs_store_make_version(store, llvs_id(&id), &change, 1, sizeof change, NULL, NULL, NULL, &error), cases[i].code);
        if (cases[i].answer == LLVS_ERROR_USER) {
            assert_true(llvs_error_user_code(error) == 42);
            assert_string_equal(llvs_error_message(error), "the array is broken");
        }
        llvs_error_free(error);
        storage_state->fail_after = 0;
        assert_int_equal(version_count(store), 1);
    }
    id = save(store, &id, change);
    value_is(store, &id, "x", "2");
    llvs_store_free(store);
}

static void a_failing_open_lets_go(void **state) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    (void)state;
    options.storage = LLVS_STORAGE_HOST;
    options.host_storage = storage;
    storage_state->fail_with = LLVS_ERROR_USER;
    storage_state->fail_after = storage_state->calls + 1;
    storage_state->calls++;
    FAILS(LLVS_ERROR_USER, llvs_store_open(LLVS_NONE, &options, &store, &error));
    storage_state->fail_after = 0;
    store = opened();
    llvs_store_free(store);
}

static llvs_status short_prefix(void *payload, uint64_t *mark, llvs_reply *reply, llvs_error **error) {
    (void)payload;
    ++*mark;
    return llvs_reply_record(reply, 1, 100, llvs_str("short"), error);
}

static void tables_are_checked(void **state) {
    llvs_storage_callbacks callbacks = array_storage_callbacks();
    llvs_storage *made;
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    int freed = 0;
    (void)state;
    callbacks.read = NULL;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_storage_create(LLVS_NONE, &callbacks, &freed, count_free, &made, &error));
    assert_int_equal(freed, 1);
    callbacks = array_storage_callbacks();
    callbacks.cache_put = NULL;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_storage_create(LLVS_NONE, &callbacks, &freed, count_free, &made, &error));
    callbacks = array_storage_callbacks();
    callbacks.struct_size -= 8;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_storage_create(LLVS_NONE, &callbacks, &freed, count_free, &made, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_storage_create(LLVS_NONE, NULL, &freed, count_free, &made, &error));
    assert_int_equal(freed, 4);
    callbacks = array_storage_callbacks();
    callbacks.scan = short_prefix; /* the only one that runs, since the payload is no array */
    callbacks.close = NULL;
    callbacks.cache_get = NULL;
    callbacks.cache_put = NULL;
    callbacks.cache_delete = NULL;
    OK(llvs_storage_create(LLVS_NONE, &callbacks, &freed, count_free, &made, &error));
    options.storage = LLVS_STORAGE_HOST;
    options.host_storage = made;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open(LLVS_NONE, &options, &store, &error));
    llvs_storage_free(made);
    assert_int_equal(freed, 5);
}

static void a_damaged_record_costs_itself_alone(void **state) {
    llvs_store *store = opened();
    llvs_version_id a = save(store, NULL, insert("x", "1")), b = save(store, NULL, insert("y", "2"));
    llvs_verify_report *report;
    (void)state;
    llvs_store_free(store);
    storage_state->records[0].data[storage_state->records[0].size / 2] ^= 0xFF;
    store = opened();
    value_is(store, &b, "y", "2");
    OK(llvs_store_verify(store, NULL, &report, &error));
    assert_true(report->damage_count > 0 || version_count(store) == 1);
    llvs_verify_report_free(report);
    (void)a;
    llvs_store_free(store);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_was_appended_is_found_again), TEST(others_records_are_picked_up), TEST(large_values), TEST(one_store_at_a_time),
        TEST(failures_surface_and_pass), TEST(a_failing_open_lets_go), TEST(tables_are_checked), TEST(a_damaged_record_costs_itself_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Values in a few large blocks, into memory of the caller, and in parts. */
#include "support.h"

/* Checks what a block says of one value: NULL data if none is expected. */
static void entry_is(const llvs_value_block *info, size_t index, size_t *at, const char *data, const llvs_version_id *stored) {
    const char *version = (const char *)info->versions.data;
    uint32_t i;
    if (!data) {
        assert_int_equal(info->version_indexes[index], info->version_count);
        assert_int_equal(info->data_sizes[index], 0);
        return;
    }
    assert_int_equal(info->data_sizes[index], strlen(data));
    assert_memory_equal(info->data.data + *at, data, strlen(data));
    *at += strlen(data);
    assert_true(info->version_indexes[index] < info->version_count);
    for (i = 0; i < info->version_indexes[index]; i++) version += strlen(version) + 1;
    assert_string_equal(version, stored->text);
}

static void values_come_in_the_order_in_which_they_were_asked_for(void **state) {
    static const uint64_t sizes[] = { 1, 6, 1, 1, 1 };
    llvs_store *store = memory_store();
    llvs_version_id a = save(store, NULL, insert("x", "one"));
    llvs_version_id b = save(store, &a, insert("y", ""));
    llvs_version_id c = save(store, &b, insert("z", "three"));
    llvs_value_block *block;
    const llvs_value_block *info;
    size_t at = 0;
    (void)state;
    OK(llvs_store_value_block(store, llvs_str("zabsentxyx"), sizes, 5, llvs_id(&c), &block, &error));
    info = block;
    assert_int_equal(info->struct_size, sizeof *info);
    assert_int_equal(info->count, 5);
    assert_int_equal(info->present_count, 4);
    assert_int_equal(info->ids.size, 0);
    assert_null(info->id_sizes);
    entry_is(info, 0, &at, "three", &c);
    entry_is(info, 1, &at, NULL, NULL);
    entry_is(info, 2, &at, "one", &a);
    entry_is(info, 3, &at, "", &b);
    entry_is(info, 4, &at, "one", &a);
    assert_int_equal(at, info->data.size);
    assert_int_equal(info->data.data[info->data.size], 0);
    llvs_value_block_free(block);
    OK(llvs_store_value_block(store, llvs_str("absent"), sizes + 1, 1, llvs_id(&c), &block, &error));
    info = block;
    assert_int_equal(info->present_count, 0);
    assert_int_equal(info->version_count, 0);
    entry_is(info, 0, &at, NULL, NULL);
    llvs_value_block_free(block);
    OK(llvs_store_value_block(store, LLVS_NONE, NULL, 0, llvs_id(&c), &block, &error));
    assert_int_equal(block->count, 0);
    llvs_value_block_free(block);
    llvs_store_free(store);
}

static void blocks_refuse_what_does_not_fit(void **state) {
    static const uint64_t two[] = { 1, 1 }, short_of[] = { 1, 0 }, endless[] = { 1, UINT64_MAX }, nothing[] = { 2, 0 };
    llvs_store *store = memory_store();
    llvs_version_id id = save(store, NULL, insert("x", "1"));
    llvs_value_block *block = NULL;
    (void)state;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_value_block(store, llvs_str("xyz"), two, 2, llvs_id(&id), &block, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_value_block(store, llvs_str("x"), two, 2, llvs_id(&id), &block, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_value_block(store, llvs_str("xy"), endless, 2, llvs_id(&id), &block, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_value_block(store, llvs_str("xy"), NULL, 2, llvs_id(&id), &block, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_value_block(store, llvs_str("xy"), two, 0, llvs_id(&id), &block, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_value_block(store, llvs_str("xy"), two, 2, llvs_id(&id), NULL, &error));
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, llvs_store_value_block(store, llvs_str("x"), short_of, 2, llvs_id(&id), &block, &error));
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, llvs_store_value_block(store, llvs_str("xy"), nothing, 2, llvs_id(&id), &block, &error));
    FAILS(LLVS_ERROR_INVALID_UTF8, llvs_store_value_block(store, llvs_str("x\xFF"), two, 2, llvs_id(&id), &block, &error));
    FAILS(LLVS_ERROR_TOO_LARGE, llvs_store_value_block(store, llvs_str("xy"), two, SIZE_MAX, llvs_id(&id), &block, &error));
    FAILS(LLVS_ERROR_TOO_LARGE, llvs_store_value_block(store, llvs_bytes_make("x", SIZE_MAX), two, 2, llvs_id(&id), &block, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_value_block(store, llvs_str("xy"), two, 2, llvs_str("nowhere"), &block, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_value_block(store, LLVS_NONE, NULL, 0, llvs_str("nowhere"), &block, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_enumerate_block(store, llvs_str("nowhere"), NULL, &block, &error));
    assert_null(block);
    llvs_store_free(store);
}

static void pages_come_as_blocks(void **state) {
    llvs_store *store = memory_store();
    llvs_change changes[3];
    llvs_version_id a, b;
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_block *block;
    const llvs_value_block *info;
    size_t at = 0;
    (void)state;
    changes[0] = insert("a", "1");
    changes[1] = insert("b", "22");
    changes[1].id = llvs_bytes_make("b\0b", 3);
    changes[2] = insert("c", "");
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 3, sizeof changes[0], NULL, &a, NULL, &error));
    b = save(store, &a, update("a", "one"));
    OK(llvs_store_enumerate_block(store, llvs_id(&b), NULL, &block, &error));
    info = block;
    assert_int_equal(info->count, 3);
    assert_int_equal(info->present_count, 3);
    assert_int_equal(info->ids.size, 8);
    assert_memory_equal(info->ids.data, "a\0b\0b\0c", 8);
    assert_int_equal(info->id_sizes[1], 3);
    entry_is(info, 0, &at, "one", &b);
    entry_is(info, 1, &at, "22", &a);
    entry_is(info, 2, &at, "", &a);
    llvs_value_block_free(block);
    range.limit = 2;
    range.without_data = 1;
    range.after = llvs_str("a");
    OK(llvs_store_enumerate_block(store, llvs_id(&b), &range, &block, &error));
    info = block;
    assert_int_equal(info->count, 2);
    assert_null(info->data_sizes);
    assert_int_equal(info->data.size, 0);
    assert_int_equal(info->id_sizes[0], 3);
    assert_string_equal((const char *)info->versions.data, a.text);
    llvs_value_block_free(block);
    range.after = llvs_str("c");
    OK(llvs_store_enumerate_block(store, llvs_id(&b), &range, &block, &error));
    assert_null(block);
    llvs_store_free(store);
}

/* Bytes that were in the buffer before are unchanged. */
static void value_is_read(llvs_store *store, const llvs_version_id *at, const char *id, size_t capacity, size_t expected_size,
                          const char *expected) {
    char buffer[16];
    size_t size = 99;
    llvs_version_id stored;
    memset(buffer, '#', sizeof buffer);
    OK(llvs_store_read_value(store, llvs_str(id), llvs_id(at), capacity ? buffer : NULL, capacity, &size, &stored, &error));
    assert_int_equal(size, expected_size);
    assert_memory_equal(buffer, expected, sizeof buffer);
    assert_int_equal(stored.size != 0, expected_size != SIZE_MAX);
    OK(llvs_store_read_value(store, llvs_str(id), llvs_id(at), buffer, capacity, &size, NULL, &error));
    assert_int_equal(size, expected_size);
}

static void values_are_read_into_memory_of_the_caller(void **state) {
    llvs_store *store = memory_store();
    llvs_version_id id = save(store, NULL, insert("x", "12345"));
    size_t size = 99;
    char buffer[8];
    (void)state;
    id = save(store, &id, insert("empty", ""));
    value_is_read(store, &id, "x", 16, 5, "12345###########");
    value_is_read(store, &id, "x", 5, 5, "12345###########");
    value_is_read(store, &id, "x", 4, 5, "################");
    value_is_read(store, &id, "x", 0, 5, "################");
    value_is_read(store, &id, "empty", 16, 0, "################");
    value_is_read(store, &id, "empty", 0, 0, "################");
    value_is_read(store, &id, "absent", 16, SIZE_MAX, "################");
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_read_value(store, llvs_str("x"), llvs_id(&id), NULL, 8, &size, NULL, &error));
    FAILS(LLVS_ERROR_TOO_LARGE, llvs_store_read_value(store, llvs_str("x"), llvs_id(&id), buffer, SIZE_MAX, &size, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_read_value(store, llvs_str("x"), llvs_id(&id), buffer, 8, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, llvs_store_read_value(store, LLVS_NONE, llvs_id(&id), buffer, 8, &size, NULL, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_read_value(store, llvs_str("x"), llvs_str("nowhere"), buffer, 8, &size, NULL, &error));
    OK(llvs_store_close(store, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_read_value(store, llvs_str("x"), llvs_id(&id), buffer, 8, &size, NULL, &error));
    assert_int_equal(size, 0); /* SIZE_MAX means that there is no such value; other failures leave the output empty */
    llvs_store_free(store);
}

static void files_are_read_like_memory(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    static char large[100000], buffer[100000];
    static const uint64_t sizes[] = { 5, 5, 5 };
    llvs_store *store;
    llvs_change changes[2];
    llvs_version_id id;
    llvs_value_block *block;
    const llvs_value_block *info;
    size_t i, size;
    (void)state;
    for (i = 0; i < sizeof large; i++) large[i] = (char)(i * i >> 3);
    changes[0] = insert("small", "1");
    changes[1] = insert("large", NULL);
    changes[1].data = llvs_bytes_make(large, sizeof large);
    OK(llvs_store_open(llvs_str(path), NULL, &store, &error));
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 2, sizeof changes[0], NULL, &id, NULL, &error));
    for (i = 0; i < 2; i++) {
        OK(llvs_store_close(store, &error));
        llvs_store_free(store);
        OK(llvs_store_open(llvs_str(path), NULL, &store, &error));
        OK(llvs_store_read_value(store, llvs_str("large"), llvs_id(&id), buffer, sizeof buffer, &size, NULL, &error));
        assert_int_equal(size, sizeof large);
        assert_memory_equal(buffer, large, size);
        OK(llvs_store_value_block(store, llvs_str("largeothersmall"), sizes, 3, llvs_id(&id), &block, &error));
        info = block;
        assert_int_equal(info->data.size, sizeof large + 1);
        assert_memory_equal(info->data.data, large, sizeof large);
        assert_int_equal(info->data.data[sizeof large], '1');
        assert_int_equal(info->version_indexes[1], info->version_count);
        llvs_value_block_free(block);
    }
    llvs_store_free(store);
    free(path);
    remove_directory(directory);
}

/* Checks that the part of the value from `offset` on, in a buffer of `capacity`, is as expected. */
static void part_is(llvs_value_reader *reader, uint64_t offset, size_t capacity, const char *value, size_t size) {
    char *buffer = malloc(capacity + 1);
    size_t got = 99, expected = offset >= size ? 0 : size - offset < capacity ? size - (size_t)offset : capacity;
    assert_non_null(buffer);
    buffer[expected] = '#';
    OK(llvs_value_reader_read(reader, offset, buffer, capacity, &got, &error));
    assert_int_equal(got, expected);
    if (expected) assert_memory_equal(buffer, value + offset, expected);
    assert_int_equal(buffer[expected], '#');
    free(buffer);
}

static void a_value_is_read_in_parts_from(llvs_store *store) {
    enum { SIZE = 1500000 };
    char *large = malloc(SIZE);
    llvs_change changes[2];
    llvs_version_id id, second, stored;
    llvs_value_reader *reader;
    uint64_t size, offset;
    size_t got, i;
    char letter;
    assert_non_null(large);
    for (i = 0; i < SIZE; i++) large[i] = (char)(i * i >> 3);
    changes[0] = insert("empty", "");
    changes[1] = insert("large", NULL);
    changes[1].data = llvs_bytes_make(large, SIZE);
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 2, sizeof changes[0], NULL, &id, NULL, &error));
    second = save(store, &id, removal("empty"));
    OK(llvs_store_open_value(store, llvs_str("large"), llvs_id(&second), &reader, &size, &stored, &error));
    assert_int_equal(size, SIZE);
    assert_memory_equal(&stored, &id, sizeof id);
    for (offset = 0; offset < SIZE + 200000; offset += 99999) part_is(reader, offset, 150000, large, SIZE);
    part_is(reader, 0, SIZE + 10, large, SIZE);
    part_is(reader, SIZE - 1, 10, large, SIZE);
    part_is(reader, SIZE, 10, large, SIZE);
    part_is(reader, UINT64_MAX, 10, large, SIZE);
    part_is(reader, 7, 0, large, SIZE);
    OK(llvs_value_reader_read(reader, 0, NULL, 0, &got, &error));
    assert_int_equal(got, 0);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_value_reader_read(reader, 0, NULL, 1, &got, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_value_reader_read(reader, 0, &letter, 1, NULL, &error));
    FAILS(LLVS_ERROR_TOO_LARGE, llvs_value_reader_read(reader, 0, &letter, SIZE_MAX, &got, &error));
    llvs_value_reader_free(reader);
    OK(llvs_store_open_value(store, llvs_str("empty"), llvs_id(&id), &reader, &size, NULL, &error));
    assert_int_equal(size, 0);
    part_is(reader, 0, 10, "", 0);
    llvs_value_reader_free(reader);
    OK(llvs_store_open_value(store, llvs_str("empty"), llvs_id(&second), &reader, &size, &stored, &error));
    assert_null(reader);
    assert_int_equal(stored.size, 0);
    OK(llvs_store_open_value(store, llvs_str("empty"), llvs_id(&second), &reader, NULL, NULL, &error));
    assert_null(reader);
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_open_value(store, llvs_str("x"), llvs_str("nowhere"), &reader, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, llvs_store_open_value(store, LLVS_NONE, llvs_id(&id), &reader, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open_value(store, llvs_str("x"), llvs_id(&id), NULL, NULL, NULL, &error));
    free(large);
}

static void values_are_read_in_parts(void **state) {
    char *directory = new_directory(), *file = join(directory, "store"), *database = join(directory, "database");
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *stores[3];
    size_t i;
    (void)state;
    stores[0] = memory_store();
    OK(llvs_store_open(llvs_str(file), &options, &stores[1], &error));
    options.storage = LLVS_STORAGE_SQLITE;
    OK(llvs_store_open(llvs_str(database), &options, &stores[2], &error));
    for (i = 0; i < 3; i++) {
        a_value_is_read_in_parts_from(stores[i]);
        llvs_store_free(stores[i]);
    }
    free(file);
    free(database);
    remove_directory(directory);
}

static void a_coordinator_reads_at_its_current_version(void **state) {
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_store_options store = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator *coordinator;
    llvs_change change = insert("x", "1");
    llvs_buffer data;
    size_t i;
    (void)state;
    store.storage = LLVS_STORAGE_MEMORY;
    options.store = &store;
    OK(llvs_coordinator_open(LLVS_NONE, &options, &coordinator, &error));
    for (i = 0; i < 3; i++) { /* before the first save, and after each */
        OK(llvs_coordinator_value(coordinator, llvs_str("x"), &data, NULL, &error));
        assert_true((data.data != NULL) == (i > 0) && data.size == i);
        llvs_buffer_dispose(&data);
        if (i) change = update("x", "22");
        FAILS(LLVS_ERROR_INVALID_VALUE_ID, llvs_coordinator_value(coordinator, LLVS_NONE, &data, NULL, &error));
        if (i < 2) OK(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error));
    }
    llvs_coordinator_free(coordinator);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_in_the_order_in_which_they_were_asked_for),
        cmocka_unit_test(blocks_refuse_what_does_not_fit),
        cmocka_unit_test(pages_come_as_blocks),
        cmocka_unit_test(values_are_read_into_memory_of_the_caller),
        cmocka_unit_test(files_are_read_like_memory),
        cmocka_unit_test(values_are_read_in_parts),
        cmocka_unit_test(a_coordinator_reads_at_its_current_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

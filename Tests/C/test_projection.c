/* Projections: opening, updating, following, and wrong arguments. Tests/Python/test_projections.py compares their contents with the
   values, and Tests/Faults/test_projection.c kills processes while they write. */
#include <time.h>
#include <unistd.h>

#include "support.h"

static const char definition[] =
    "{\"tables\":{\"people\":{\"prefix\":\"c/\",\"columns\":[{\"name\":\"born\",\"pointer\":\"/born\",\"type\":\"integer\"}]}}}";
static char *folder, view[1100];

static llvs_store *filled(llvs_version_id *head) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_change changes[2];
    llvs_store *store;
    options.storage = LLVS_STORAGE_MEMORY;
    OK(llvs_store_open(LLVS_NONE, &options, &store, &error));
    changes[0] = insert("c/1", "{\"born\":1815}");
    changes[1] = insert("c/2", "{\"born\":\"long ago\"}");
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 2, sizeof *changes, NULL, head, NULL, &error));
    return store;
}

static int json_is(llvs_buffer json, const char *expected) {
    int is = json.size == strlen(expected) && memcmp(json.data, expected, json.size) == 0;
    if (!is) print_error("%.*s is not %s\n", (int)json.size, (const char *)json.data, expected);
    llvs_buffer_dispose(&json);
    return is;
}

static void it_is_made_and_updated(void **state) {
    llvs_version_id head;
    llvs_store *store = filled(&head);
    llvs_projection *projection;
    llvs_buffer json;
    llvs_change change = removal("c/2");
    uint64_t rows = 7;
    char expected[256];
    (void)state;
    OK(llvs_projection_open(store, llvs_str(view), llvs_str(definition), NULL, &projection, &error));
    OK(llvs_projection_status(projection, &json, &error));
    assert_true(json_is(json, "{\"version\":null,\"failure\":null}"));
    OK(llvs_projection_problems(projection, 0, &json, &error));
    assert_true(json_is(json, "[]"));
    OK(llvs_projection_update(projection, LLVS_NONE, NULL, &rows, &error));
    assert_int_equal(rows, 2);
    OK(llvs_projection_problems(projection, 0, &json, &error));
    assert_true(json_is(json, "[{\"number\":1,\"table\":\"people\",\"id\":\"c/2\",\"pointer\":\"/born\",\"reason\":\"type\"}]"));
    OK(llvs_projection_problems(projection, UINT64_MAX, &json, &error));
    assert_true(json_is(json, "[]"));
    OK(llvs_store_make_version(store, llvs_id(&head), &change, 1, sizeof change, NULL, &head, NULL, &error));
    OK(llvs_projection_update(projection, llvs_id(&head), NULL, NULL, &error));
    OK(llvs_projection_problems(projection, 0, &json, &error));
    assert_true(json_is(json, "[]"));
    OK(llvs_projection_status(projection, &json, &error));
    snprintf(expected, sizeof expected, "{\"version\":\"%s\",\"failure\":null}", head.text);
    assert_true(json_is(json, expected));
    llvs_projection_free(projection);
    llvs_store_free(store);
}

static void it_follows_its_coordinator(void **state) {
    llvs_store_options memory = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_projection_options followed = LLVS_PROJECTION_OPTIONS_INIT;
    llvs_coordinator *coordinator;
    llvs_projection *projection;
    llvs_change change = insert("c/3", "{}");
    llvs_version_id version;
    char expected[256];
    struct timespec pause = { 0, 10000000 };
    int is_there = 0;
    (void)state;
    memory.storage = LLVS_STORAGE_MEMORY;
    options.store = &memory;
    OK(llvs_coordinator_open(LLVS_NONE, &options, &coordinator, &error));
    OK(llvs_coordinator_store(coordinator, &store, &error));
    followed.coordinator = coordinator;
    OK(llvs_projection_open(store, llvs_str(view), llvs_str(definition), &followed, &projection, &error));
    OK(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, &version, NULL, NULL, &error));
    snprintf(expected, sizeof expected, "{\"version\":\"%s\",\"failure\":null}", version.text);
    while (!is_there) {
        llvs_buffer json;
        OK(llvs_projection_status(projection, &json, &error));
        is_there = json.size == strlen(expected) && memcmp(json.data, expected, json.size) == 0;
        llvs_buffer_dispose(&json);
        if (!is_there) nanosleep(&pause, NULL);
    }
    OK(llvs_coordinator_close(coordinator, &error));
    llvs_coordinator_free(coordinator);
    llvs_projection_free(projection);
    llvs_store_free(store);
}

static void wrong_arguments_are_refused(void **state) {
    llvs_store_options memory = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = filled(NULL);
    llvs_coordinator_options coordinated = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_projection_options options = LLVS_PROJECTION_OPTIONS_INIT;
    llvs_coordinator *coordinator;
    llvs_projection *projection;
    llvs_buffer json;
    (void)state;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_projection_open(store, LLVS_NONE, llvs_str(definition), NULL, &projection, &error));
    assert_null(projection);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT,
          llvs_projection_open(store, llvs_bytes_make("a\0b", 3), llvs_str(definition), NULL, &projection, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_projection_open(store, llvs_str(view), LLVS_NONE, NULL, &projection, &error));
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "/tables/a/prefix",
                 llvs_projection_open(store, llvs_str(view), llvs_str("{\"tables\":{\"a\":{}}}"), NULL, &projection, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_projection_open(store, llvs_str(view), llvs_str(definition), NULL, NULL, &error));
    FAILS(LLVS_ERROR_NOT_FOUND,
          llvs_projection_open(store, llvs_str("/nowhere/at/all"), llvs_str(definition), NULL, &projection, &error));
    FAILS(LLVS_ERROR_NOT_A_STORE, llvs_projection_open(store, llvs_str(folder), llvs_str(definition), NULL, &projection, &error));
    options.busy_timeout = -1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_projection_open(store, llvs_str(view), llvs_str(definition), &options, &projection, &error));
    options.busy_timeout = 0;
    options.struct_size = 8;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_projection_open(store, llvs_str(view), llvs_str(definition), &options, &projection, &error));
    options.struct_size = sizeof options;
    memory.storage = LLVS_STORAGE_MEMORY;
    coordinated.store = &memory;
    OK(llvs_coordinator_open(LLVS_NONE, &coordinated, &coordinator, &error));
    options.coordinator = coordinator;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_projection_open(store, llvs_str(view), llvs_str(definition), &options, &projection, &error));
    llvs_coordinator_free(coordinator);
    OK(llvs_projection_open(store, llvs_str(view), llvs_str(definition), NULL, &projection, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_projection_update(projection, llvs_str("nowhere"), NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_VERSION_ID, llvs_projection_update(projection, llvs_str("a b"), NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_projection_status(projection, NULL, &error));
    OK(llvs_store_close(store, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_projection_update(projection, LLVS_NONE, NULL, NULL, &error));
    OK(llvs_projection_status(projection, &json, &error));
    llvs_buffer_dispose(&json);
    llvs_projection_free(projection);
    FAILS(LLVS_ERROR_CLOSED, llvs_projection_open(store, llvs_str(view), llvs_str(definition), NULL, &projection, &error));
    llvs_store_free(store);
}

static int enter(void **state) {
    (void)state;
    folder = new_directory();
    snprintf(view, sizeof view, "%s/view.sqlite", folder);
    return 0;
}
static int leave(void **state) {
    (void)state;
    remove_directory(folder);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_made_and_updated, enter, leave),
        cmocka_unit_test_setup_teardown(it_follows_its_coordinator, enter, leave),
        cmocka_unit_test_setup_teardown(wrong_arguments_are_refused, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The coordinator: save, exchange, merge, observe, bootstrap. */
#include "support.h"

static llvs_coordinator *coordinator(const char *path, const char *name, const char *url) {
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_coordinator *c = NULL;
    options.name = llvs_str(name);
    options.exchange_url = llvs_str(url);
    OK(llvs_coordinator_open(llvs_str(path), &options, &c, &error));
    return c;
}
static llvs_version_id saved(llvs_coordinator *c, llvs_change change) {
    llvs_version_id id;
    OK(llvs_coordinator_save(c, &change, 1, sizeof change, NULL, &id, NULL, &error));
    return id;
}
static void reads(llvs_coordinator *c, const char *id, const char *expected) {
    llvs_buffer data;
    OK(llvs_coordinator_value(c, llvs_str(id), LLVS_NONE, &data, NULL, &error));
    if (expected) assert_string_equal((char *)data.data, expected);
    else assert_null(data.data);
    llvs_buffer_dispose(&data);
}
static llvs_version_id current(llvs_coordinator *c) {
    llvs_version_id id;
    OK(llvs_coordinator_current_version(c, &id, &error));
    assert_true(id.size > 0);
    return id;
}

static void the_current_version_follows_saves_and_survives(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_coordinator *c = coordinator(path, NULL, NULL);
    llvs_version_id root = current(c), one, two, none;
    llvs_version_list *list;
    llvs_value_list *values;
    llvs_bytes ids[2];
    llvs_store *store;
    (void)state;
    reads(c, "x", NULL);
    OK(llvs_coordinator_enumerate(c, LLVS_NONE, NULL, &values, &error));
    assert_null(values);
    one = saved(c, insert("x", "1"));
    assert_true(memcmp(&root, &one, sizeof one) != 0);
    two = saved(c, update("x", "2"));
    reads(c, "x", "2");
    OK(llvs_coordinator_save(c, NULL, 0, sizeof(llvs_change), NULL, &none, &list, &error));
    assert_int_equal(none.size, 0);
    assert_null(list);
    OK(llvs_coordinator_set_current_version(c, llvs_id(&one), &error));
    reads(c, "x", "1");
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_coordinator_set_current_version(c, llvs_str("NOWHERE"), &error));
    ids[0] = llvs_str("x"); ids[1] = llvs_str("y");
    OK(llvs_coordinator_values(c, ids, 2, llvs_id(&two), &values, &error));
    assert_true(bytes_are(llvs_value_list_at(values, 0)->data, "2"));
    assert_int_equal(llvs_value_list_at(values, 1)->present, 0);
    llvs_value_list_free(values);
    OK(llvs_coordinator_store(c, &store, &error));
    OK(llvs_coordinator_close(c, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_coordinator_current_version(c, &none, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_heads(store, &list, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_coordinator_merge(c, NULL, NULL, &error));
    llvs_store_free(store);
    llvs_coordinator_free(c);
    c = coordinator(path, NULL, NULL);
    none = current(c);
    assert_memory_equal(&none, &one, sizeof one);
    llvs_coordinator_free(c);
    c = coordinator(path, "another", NULL); /* has a current version of its own */
    none = current(c);
    assert_memory_equal(&none, &two, sizeof two);
    llvs_coordinator_free(c);
    free(path);
    remove_directory(directory);
}

static void two_devices_share_and_merge(void **state) {
    char *directory = new_directory(), *folder = join(directory, "shared"), *a = join(directory, "a"), *b = join(directory, "b");
    char url[1100];
    llvs_coordinator *mine, *theirs;
    llvs_exchange_result *result;
    llvs_bool changed = 0;
    size_t count;
    int round;
    (void)state;
    snprintf(url, sizeof url, "file://%s", folder);
    mine = coordinator(a, NULL, url);
    theirs = coordinator(b, NULL, url);
    saved(mine, insert("message", "hello"));
    OK(llvs_coordinator_exchange(mine, NULL, &result, &error));
    llvs_exchange_result_sent(result, &count);
    assert_true(count >= 1);
    llvs_exchange_result_free(result);
    OK(llvs_coordinator_exchange(theirs, NULL, NULL, &error));
    reads(theirs, "message", "hello"); /* the first content becomes current */
    saved(mine, insert("mine", "1"));
    saved(theirs, insert("theirs", "2"));
    for (round = 0; round < 2; round++) {
        OK(llvs_coordinator_exchange(mine, NULL, NULL, &error));
        OK(llvs_coordinator_merge(mine, NULL, &changed, &error));
        OK(llvs_coordinator_exchange(mine, NULL, NULL, &error));
        OK(llvs_coordinator_exchange(theirs, NULL, NULL, &error));
        OK(llvs_coordinator_merge(theirs, NULL, &changed, &error));
        OK(llvs_coordinator_exchange(theirs, NULL, NULL, &error));
    }
    reads(mine, "theirs", "2");
    reads(theirs, "mine", "1");
    {
        llvs_version_id x = current(mine), y = current(theirs);
        assert_memory_equal(&x, &y, sizeof x);
    }
    OK(llvs_coordinator_merge(mine, NULL, &changed, &error));
    assert_false(changed);
    llvs_coordinator_free(mine);
    llvs_coordinator_free(theirs);
    free(folder); free(a); free(b);
    remove_directory(directory);
}

static void branches_are_saved_beside(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_coordinator *c = coordinator(path, NULL, NULL);
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_change change = insert("x", "draft");
    llvs_version_id base = saved(c, insert("x", "0")), draft, here, none;
    llvs_buffer name, data;
    (void)state;
    OK(llvs_branch_make_unique(llvs_str("draft"), &name, &error));
    assert_int_equal(name.size, 6 + 36);
    options.branch = llvs_bytes_make(name.data, name.size);
    OK(llvs_coordinator_branch_version(c, options.branch, &none, &error));
    assert_int_equal(none.size, 0);
    OK(llvs_coordinator_save(c, &change, 1, sizeof change, &options, &draft, NULL, &error));
    here = current(c);
    assert_memory_equal(&here, &base, sizeof base);
    OK(llvs_coordinator_branch_version(c, options.branch, &none, &error));
    assert_memory_equal(&none, &draft, sizeof draft);
    OK(llvs_coordinator_value(c, llvs_str("x"), llvs_id(&draft), &data, NULL, &error));
    assert_string_equal((char *)data.data, "draft");
    llvs_buffer_dispose(&data);
    reads(c, "x", "0");
    options.id = llvs_str("MINE");
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_save(c, &change, 1, sizeof change, &options, NULL, NULL, &error));
    llvs_buffer_dispose(&name);
    llvs_coordinator_free(c);
    free(path);
    remove_directory(directory);
}

typedef struct seen { int count, freed; llvs_version_id last; } seen;
static void see(void *payload, const llvs_version_id *version) {
    seen *s = payload;
    s->count++;
    s->last = *version;
}
static void seen_freed(void *payload) { ((seen *)payload)->freed++; }

static void observers_are_told(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_coordinator *c = coordinator(path, NULL, NULL);
    seen s;
    llvs_observer *observer;
    llvs_version_id id;
    (void)state;
    memset(&s, 0, sizeof s);
    OK(llvs_coordinator_observe(c, see, &s, seen_freed, &observer, &error));
    id = saved(c, insert("x", "1"));
    assert_int_equal(s.count, 1);
    assert_memory_equal(&s.last, &id, sizeof id);
    llvs_observer_free(observer);
    assert_int_equal(s.freed, 1);
    saved(c, insert("y", "1"));
    assert_int_equal(s.count, 1);
    llvs_coordinator_free(c);
    free(path);
    remove_directory(directory);
}

/* Saves once more when told of a move. */
typedef struct saver { llvs_coordinator *coordinator; int calls; } saver;
static void save_again(void *payload, const llvs_version_id *version) {
    saver *s = payload;
    (void)version;
    if (s->calls++ == 0) saved(s->coordinator, insert("from the observer", "1"));
}
/* Tries to save through the coordinator that is merging. */
static llvs_status save_within(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_change change = insert("z", "1");
    (void)merge; (void)resolution;
    return llvs_coordinator_save(*(llvs_coordinator **)payload, &change, 1, sizeof change, NULL, NULL, NULL, error);
}

static void callbacks_may_come_back(void **state) {
    llvs_store_options memory = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_coordinator *c = NULL;
    llvs_store *store;
    llvs_arbiter *arbiter;
    llvs_observer *observer;
    llvs_version_id base;
    saver s;
    (void)state;
    memory.storage = LLVS_STORAGE_MEMORY;
    options.store = &memory;
    OK(llvs_arbiter_create(save_within, &c, NULL, NULL, &arbiter, &error));
    options.arbiter = arbiter;
    OK(llvs_coordinator_open(LLVS_NONE, &options, &c, &error));
    llvs_arbiter_free(arbiter);
    memset(&s, 0, sizeof s);
    s.coordinator = c;
    OK(llvs_coordinator_observe(c, save_again, &s, NULL, &observer, &error));
    base = saved(c, insert("x", "1"));
    assert_int_equal(s.calls, 2);
    reads(c, "from the observer", "1");
    saved(c, update("x", "2"));
    OK(llvs_coordinator_store(c, &store, &error));
    save(store, &base, update("x", "3"));
    FAILS(LLVS_ERROR_BUSY, llvs_coordinator_merge(c, NULL, NULL, &error));
    reads(c, "x", "2");
    llvs_store_free(store);
    llvs_observer_free(observer);
    llvs_coordinator_free(c);
}

static void a_new_device_starts_from_a_snapshot(void **state) {
    char *directory = new_directory(), *folder = join(directory, "shared"), *a = join(directory, "a"), *b = join(directory, "b");
    char url[1100];
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_coordinator *old, *fresh;
    llvs_bool restored = 1;
    (void)state;
    snprintf(url, sizeof url, "file://%s", folder);
    options.exchange_url = llvs_str(url);
    options.snapshot_policy = LLVS_SNAPSHOT_AUTO;
    OK(llvs_coordinator_open(llvs_str(a), &options, &old, &error));
    OK(llvs_coordinator_bootstrap(old, NULL, &restored, &error));
    assert_false(restored);
    saved(old, insert("x", "1"));
    OK(llvs_coordinator_exchange(old, NULL, NULL, &error)); /* writes the first snapshot */
    fresh = coordinator(b, NULL, url);
    OK(llvs_coordinator_bootstrap(fresh, NULL, &restored, &error));
    assert_true(restored);
    reads(fresh, "x", "1");
    llvs_coordinator_free(old);
    llvs_coordinator_free(fresh);
    free(folder); free(a); free(b);
    remove_directory(directory);
}

static void default_places(void **state) {
    llvs_buffer path;
    (void)state;
    assert_int_equal(setenv("XDG_DATA_HOME", "/data/home", 1), 0);
    OK(llvs_default_path(llvs_str("notes"), &path, &error));
    assert_string_equal((char *)path.data, "/data/home/notes/store.llvs");
    llvs_buffer_dispose(&path);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_default_path(llvs_str("a/b"), &path, &error));
}

static void bad_options(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_coordinator *c;
    (void)state;
    options.name = llvs_str("Not a name");
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_open(llvs_str(path), &options, &c, &error));
    options.name = LLVS_NONE;
    options.exchange_url = llvs_str("gopher://x");
    FAILS(LLVS_ERROR_UNSUPPORTED, llvs_coordinator_open(llvs_str(path), &options, &c, &error));
    assert_null(c);
    options.exchange_url = LLVS_NONE;
    options.snapshot_policy = 5;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_open(llvs_str(path), &options, &c, &error));
    options.struct_size = 4;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_coordinator_open(llvs_str(path), &options, &c, &error));
    c = coordinator(path, NULL, NULL);
    OK(llvs_coordinator_attach(c, llvs_str("memory:attached"), &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_attach(c, llvs_str("memory:attached"), &error));
    llvs_coordinator_free(c);
    free(path);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_current_version_follows_saves_and_survives),
        cmocka_unit_test(two_devices_share_and_merge),
        cmocka_unit_test(branches_are_saved_beside),
        cmocka_unit_test(observers_are_told),
        cmocka_unit_test(callbacks_may_come_back),
        cmocka_unit_test(a_new_device_starts_from_a_snapshot),
        cmocka_unit_test(default_places),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

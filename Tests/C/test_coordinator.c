/* The coordinator: save, exchange, merge, observe, bootstrap. */
#include "support.h"

static llvs_coordinator *coordinator(const char *path, const char *name, const char *url) {
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_coordinator *c = NULL;
    options.name = llvs_str(name);
    OK(llvs_coordinator_open(llvs_str(path), &options, &c, &error));
    if (url) OK(llvs_coordinator_attach(c, llvs_str(url), NULL, &error));
    return c;
}
static llvs_version_id saved(llvs_coordinator *c, llvs_change change) {
    llvs_version_id id;
    OK(llvs_coordinator_save(c, &change, 1, sizeof change, NULL, &id, NULL, NULL, &error));
    return id;
}
static void reads(llvs_coordinator *c, const char *id, const char *expected) {
    llvs_buffer data;
    OK(llvs_coordinator_value(c, llvs_str(id), &data, NULL, &error));
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

static void one_value_is_put_and_removed(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_coordinator *c = coordinator(path, NULL, NULL);
    llvs_version_id one, two, none;
    llvs_store *store;
    (void)state;
    OK(llvs_coordinator_put(c, llvs_str("x"), llvs_str("1"), &one, &error));
    reads(c, "x", "1");
    none = current(c);
    assert_memory_equal(&none, &one, sizeof one);
    OK(llvs_coordinator_put(c, llvs_str("x"), LLVS_NONE, NULL, &error));
    reads(c, "x", "");
    two = current(c);
    OK(llvs_coordinator_remove(c, llvs_str("x"), &none, &error));
    reads(c, "x", NULL);
    assert_true(none.size > 0 && memcmp(&none, &two, sizeof two) != 0);
    OK(llvs_coordinator_remove(c, llvs_str("x"), &none, &error));
    assert_int_equal(none.size, 0);
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, llvs_coordinator_put(c, LLVS_NONE, llvs_str("1"), &none, &error));
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, llvs_coordinator_remove(c, LLVS_NONE, &none, &error));
    /* An error names the parameter of the call. */
    llvs_bytes nowhere = {NULL, 3};
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "\"data\"", llvs_coordinator_put(c, llvs_str("x"), nowhere, &none, &error));
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "\"id\"", llvs_coordinator_remove(c, nowhere, &none, &error));
    OK(llvs_coordinator_store(c, &store, &error));
    value_is(store, &one, "x", "1");
    value_is(store, &two, "x", "");
    llvs_store_free(store);
    OK(llvs_coordinator_close(c, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_coordinator_put(c, llvs_str("x"), llvs_str("1"), NULL, &error));
    llvs_coordinator_free(c);
    free(path);
    remove_directory(directory);
}
static void the_current_version_follows_saves_and_survives(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_coordinator *c = coordinator(path, NULL, NULL);
    llvs_version_id root = current(c), one, two, none;
    llvs_version_list *list;
    llvs_store *store;
    (void)state;
    reads(c, "x", NULL);
    one = saved(c, insert("x", "1"));
    assert_true(memcmp(&root, &one, sizeof one) != 0);
    two = saved(c, update("x", "2"));
    reads(c, "x", "2");
    OK(llvs_coordinator_save(c, NULL, 0, sizeof(llvs_change), NULL, &none, &list, NULL, &error));
    assert_int_equal(none.size, 0);
    assert_null(list);
    OK(llvs_coordinator_set_current_version(c, llvs_id(&one), &error));
    reads(c, "x", "1");
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_coordinator_set_current_version(c, llvs_str("NOWHERE"), &error));
    OK(llvs_coordinator_store(c, &store, &error));
    value_is(store, &two, "x", "2");
    OK(llvs_coordinator_close(c, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_coordinator_current_version(c, &none, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_heads(store, NULL, &list, &error));
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

static void saves_that_merge(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_coordinator *c = coordinator(path, NULL, NULL);
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_version_id read, beside, id, now;
    llvs_change change = update("x", "3");
    llvs_move move = LLVS_MOVE_INIT;
    llvs_store *store;
    (void)state;
    saved(c, insert("x", "1"));
    read = current(c);
    beside = saved(c, update("x", "2"));
    options.expected = llvs_id(&read);
    FAILS(LLVS_ERROR_MOVED, llvs_coordinator_save(c, &change, 1, sizeof change, &options, &id, NULL, NULL, &error));
    /* The value has changed: the save builds on the version that was read, and is merged. */
    options.merges = 1;
    OK(llvs_coordinator_save(c, &change, 1, sizeof change, &options, &id, NULL, &move, &error));
    now = current(c);
    assert_true(move.moved && memcmp(&move.from, &beside, sizeof beside) == 0 && memcmp(&move.to, &now, sizeof now) == 0);
    assert_true(memcmp(&now, &id, sizeof id) != 0);
    reads(c, "x", "3");
    OK(llvs_coordinator_store(c, &store, &error));
    {
        llvs_version_list *found = NULL;
        OK(llvs_store_version(store, llvs_id(&now), &found, &error));
        assert_true(found->items[0]->predecessor_count == 2);
        llvs_version_list_free(found);
        OK(llvs_store_version(store, llvs_id(&id), &found, &error));
        assert_true(found->items[0]->predecessor_count == 1);
        assert_int_equal(found->items[0]->predecessors[0].size, read.size);
        assert_memory_equal(found->items[0]->predecessors[0].data, read.text, read.size);
        llvs_version_list_free(found);
    }
    llvs_store_free(store);
    /* A save of another value builds on the current version. */
    change = insert("y", "4");
    OK(llvs_coordinator_save(c, &change, 1, sizeof change, &options, &id, NULL, &move, &error));
    assert_memory_equal(&move.to, &id, sizeof id);
    /* The expected version is not an ancestor of the current one. */
    options.expected = llvs_id(&id);
    OK(llvs_coordinator_set_current_version(c, llvs_id(&read), &error));
    FAILS(LLVS_ERROR_MOVED, llvs_coordinator_save(c, &change, 1, sizeof change, &options, &now, NULL, NULL, &error));
    options.merges = 2;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_save(c, &change, 1, sizeof change, &options, &now, NULL, NULL, &error));
    options.merges = 1;
    options.branch = llvs_str("draft");
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_save(c, &change, 1, sizeof change, &options, &now, NULL, NULL, &error));
    options.branch = LLVS_NONE;
    options.expected = LLVS_NONE;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_save(c, &change, 1, sizeof change, &options, &now, NULL, NULL, &error));
    llvs_coordinator_free(c);
    free(path);
    remove_directory(directory);
}

static void two_devices_share_and_merge(void **state) {
    char *directory = new_directory(), *folder = join(directory, "shared"), *a = join(directory, "a"), *b = join(directory, "b");
    char url[1100];
    llvs_coordinator *mine, *theirs;
    llvs_exchange_result *result;
    llvs_move move = LLVS_MOVE_INIT;
    size_t count;
    int round;
    (void)state;
    snprintf(url, sizeof url, "file://%s", folder);
    mine = coordinator(a, NULL, url);
    theirs = coordinator(b, NULL, url);
    saved(mine, insert("message", "hello"));
    OK(llvs_coordinator_exchange(mine, NULL, &result, &error));
    count = result->sent_count;
    assert_true(count >= 1);
    llvs_exchange_result_free(result);
    OK(llvs_coordinator_exchange(theirs, NULL, NULL, &error));
    reads(theirs, "message", "hello"); /* the first content becomes current */
    saved(mine, insert("mine", "1"));
    saved(theirs, insert("theirs", "2"));
    for (round = 0; round < 2; round++) {
        OK(llvs_coordinator_exchange(mine, NULL, NULL, &error));
        OK(llvs_coordinator_merge(mine, NULL, &move, &error));
        OK(llvs_coordinator_exchange(mine, NULL, NULL, &error));
        OK(llvs_coordinator_exchange(theirs, NULL, NULL, &error));
        OK(llvs_coordinator_merge(theirs, NULL, &move, &error));
        OK(llvs_coordinator_exchange(theirs, NULL, NULL, &error));
    }
    reads(mine, "theirs", "2");
    reads(theirs, "mine", "1");
    {
        llvs_version_id x = current(mine), y = current(theirs);
        assert_memory_equal(&x, &y, sizeof x);
    }
    OK(llvs_coordinator_merge(mine, NULL, &move, &error));
    assert_false(move.moved);
    assert_memory_equal(&move.from, &move.to, sizeof move.from);
    {
        /* A whole round in one call, and its result. */
        llvs_sync_result *round_result = NULL;
        llvs_version_id before;
        saved(theirs, insert("later", "3"));
        OK(llvs_coordinator_sync(theirs, NULL, &round_result, &error));
        assert_true(round_result->before->sent_count == 1 && !round_result->after && !round_result->moved && !round_result->merged);
        llvs_sync_result_free(round_result);
        before = current(mine);
        OK(llvs_coordinator_sync(mine, NULL, &round_result, &error));
        assert_true(round_result->moved && round_result->merged && round_result->before->retrieved_count == 1);
        assert_true(round_result->from.size == before.size && memcmp(round_result->from.data, before.text, before.size) == 0);
        before = current(mine);
        assert_true(round_result->to.size == before.size && memcmp(round_result->to.data, before.text, before.size) == 0);
        llvs_sync_result_free(round_result);
        reads(mine, "later", "3");
    }
    llvs_coordinator_free(mine);
    llvs_coordinator_free(theirs);
    free(folder); free(a); free(b);
    remove_directory(directory);
}

static void hear(void *payload, const llvs_version_id *version) { *(llvs_version_id *)payload = *version; }

/* Each call that moves the current version reports where from and where to, and so do the observers. */
static void what_moves_the_current_version_tells(void **state) {
    char *directory = new_directory(), *folder = join(directory, "shared"), *a = join(directory, "a"), *b = join(directory, "b"),
         *c = join(directory, "c");
    char url[1100];
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_coordinator *mine, *theirs, *third;
    llvs_observer *observer;
    llvs_exchange_result *result;
    llvs_version_options draft = LLVS_VERSION_OPTIONS_INIT;
    llvs_change change = insert("x", "1");
    llvs_move move = LLVS_MOVE_INIT;
    llvs_version_id id, heard, empty;
    llvs_bool restored;
    (void)state;
    snprintf(url, sizeof url, "file://%s", folder);
    options.snapshot_policy = LLVS_SNAPSHOT_AUTO;
    OK(llvs_coordinator_open(llvs_str(a), &options, &mine, &error));
    OK(llvs_coordinator_attach(mine, llvs_str(url), NULL, &error));
    theirs = coordinator(b, NULL, url);
    third = coordinator(c, NULL, url);
    empty = current(mine);
    OK(llvs_coordinator_save(mine, &change, 1, sizeof change, NULL, &id, NULL, &move, &error));
    assert_true(move.struct_size == sizeof move && move.moved == 1);
    assert_memory_equal(&move.from, &empty, sizeof empty);
    assert_memory_equal(&move.to, &id, sizeof id);
    /* Calls that do not move it. */
    OK(llvs_coordinator_save(mine, NULL, 0, sizeof change, NULL, NULL, NULL, &move, &error));
    assert_false(move.moved);
    assert_memory_equal(&move.to, &id, sizeof id);
    draft.branch = llvs_str("draft");
    OK(llvs_coordinator_save(mine, &change, 1, sizeof change, &draft, NULL, NULL, &move, &error));
    assert_false(move.moved);
    id = saved(mine, update("x", "0"));
    OK(llvs_coordinator_exchange(mine, NULL, &result, &error));
    assert_true(!result->moved && same_id(result->from, &id) && same_id(result->to, &id) && result->exchange_count == 1);
    llvs_exchange_result_free(result);
    /* The first content of a store, by an exchange and by a snapshot. */
    OK(llvs_coordinator_observe(theirs, hear, &heard, NULL, &observer, &error));
    OK(llvs_coordinator_exchange(theirs, NULL, &result, &error));
    assert_true(result->moved && same_id(result->from, &empty) && same_id(result->to, &id) && same_id(result->to, &heard));
    llvs_exchange_result_free(result);
    llvs_observer_free(observer);
    OK(llvs_coordinator_observe(third, hear, &heard, NULL, &observer, &error));
    memset(&heard, 0, sizeof heard);
    OK(llvs_coordinator_bootstrap(third, NULL, &restored, &move, &error));
    assert_true(restored && move.moved);
    assert_memory_equal(&move.from, &empty, sizeof empty);
    assert_memory_equal(&move.to, &id, sizeof id);
    assert_memory_equal(&heard, &id, sizeof id);
    /* A merge moves the current version; a merge that fails does not. */
    (void)saved(theirs, update("x", "2"));
    (void)saved(third, update("x", "3"));
    OK(llvs_coordinator_exchange(theirs, NULL, NULL, &error));
    OK(llvs_coordinator_exchange(third, NULL, NULL, &error));
    id = current(third);
    OK(llvs_coordinator_merge(third, NULL, &move, &error));
    assert_true(move.moved);
    assert_memory_equal(&move.from, &id, sizeof id);
    assert_memory_equal(&move.to, &heard, sizeof heard);
    llvs_observer_free(observer);
    move.struct_size = 4;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_coordinator_merge(third, NULL, &move, &error));
    llvs_coordinator_free(mine);
    llvs_coordinator_free(theirs);
    llvs_coordinator_free(third);
    free(folder); free(a); free(b); free(c);
    remove_directory(directory);
}

/* One of two exchanges fails. The result reports what the other one did, which one failed, and why. */
static void each_exchange_is_told(void **state) {
    char *directory = new_directory(), *folder = join(directory, "shared"), *broken = join(directory, "broken"), *a = join(directory, "a");
    char url[1100], other[1100];
    llvs_coordinator *c;
    llvs_exchange_result *result = NULL;
    llvs_sync_result *round = NULL;
    llvs_error *error = NULL;
    llvs_version_id id;
    llvs_status status;
    (void)state;
    snprintf(url, sizeof url, "file://%s", broken);
    snprintf(other, sizeof other, "file://%s", folder);
    c = coordinator(a, NULL, url);
    OK(llvs_coordinator_attach(c, llvs_str(other), NULL, &error));
    OK(llvs_coordinator_exchange(c, NULL, NULL, &error));
    id = saved(c, insert("x", "1"));
    {
        char command[1200];
        snprintf(command, sizeof command, "rm -rf '%s'", broken);
        assert_int_equal(system(command), 0);
        write_file(broken, "no folder");
    }
    status = llvs_coordinator_exchange(c, NULL, &result, &error);
    assert_true(status != LLVS_OK && result != NULL && result->exchange_count == 2 && result->exchanges[2] == NULL);
    assert_true(bytes_are(result->exchanges[0]->place, url) && bytes_are(result->exchanges[1]->place, other));
    assert_int_equal(llvs_error_code(result->exchanges[0]->error), status);
    assert_string_equal(llvs_error_message(result->exchanges[0]->error), llvs_error_message(error));
    assert_true(result->exchanges[0]->result->sent_count == 0 && result->exchanges[1]->error == NULL);
    assert_true(result->sent_count == 1 && same_id(result->sent[0], &id) && same_id(result->exchanges[1]->result->sent[0], &id));
    assert_true(result->exchanges[1]->result->exchange_count == 0);
    llvs_error_free(error);
    llvs_exchange_result_free(result);
    error = NULL;
    status = llvs_coordinator_sync(c, NULL, &round, &error);
    assert_true(status != LLVS_OK && round->before->exchange_count == 2 && round->before->exchanges[0]->error != NULL);
    llvs_error_free(error);
    llvs_sync_result_free(round);
    llvs_coordinator_free(c);
    free(folder); free(broken); free(a);
    remove_directory(directory);
}

static void branches_are_saved_beside(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_coordinator *c = coordinator(path, NULL, NULL);
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_change change = insert("x", "draft");
    llvs_version_id base = saved(c, insert("x", "0")), draft, here;
    llvs_heads_options newest = LLVS_HEADS_OPTIONS_INIT;
    llvs_version_list *heads;
    llvs_store *store;
    (void)state;
    OK(llvs_coordinator_store(c, &store, &error));
    newest.branch = options.branch = llvs_str("draft");
    newest.limit = 1;
    OK(llvs_store_heads(store, &newest, &heads, &error));
    assert_int_equal(heads->count, 0);
    llvs_version_list_free(heads);
    OK(llvs_coordinator_save(c, &change, 1, sizeof change, &options, &draft, NULL, NULL, &error));
    here = current(c);
    assert_memory_equal(&here, &base, sizeof base);
    OK(llvs_store_heads(store, &newest, &heads, &error));
    assert_int_equal(heads->count, 1);
    assert_true(same_id(heads->items[0]->id, &draft));
    llvs_version_list_free(heads);
    value_is(store, &draft, "x", "draft");
    reads(c, "x", "0");
    options.id = llvs_str("MINE");
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_save(c, &change, 1, sizeof change, &options, NULL, NULL, NULL, &error));
    llvs_store_free(store);
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

/* Saves again on the first move. */
typedef struct saver { llvs_coordinator *coordinator; int calls; } saver;
static void save_again(void *payload, const llvs_version_id *version) {
    saver *s = payload;
    (void)version;
    if (s->calls++ == 0) saved(s->coordinator, insert("from the observer", "1"));
}
/* Tries to save through the coordinator while it merges. */
static llvs_status save_within(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_change change = insert("z", "1");
    (void)merge; (void)resolution;
    return llvs_coordinator_save(*(llvs_coordinator **)payload, &change, 1, sizeof change, NULL, NULL, NULL, NULL, error);
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
    options.snapshot_policy = LLVS_SNAPSHOT_AUTO;
    OK(llvs_coordinator_open(llvs_str(a), &options, &old, &error));
    OK(llvs_coordinator_attach(old, llvs_str(url), NULL, &error));
    OK(llvs_coordinator_bootstrap(old, NULL, &restored, NULL, &error));
    assert_false(restored);
    saved(old, insert("x", "1"));
    OK(llvs_coordinator_exchange(old, NULL, NULL, &error)); /* writes the first snapshot */
    fresh = coordinator(b, NULL, url);
    OK(llvs_coordinator_bootstrap(fresh, NULL, &restored, NULL, &error));
    assert_true(restored);
    reads(fresh, "x", "1");
    llvs_coordinator_free(old);
    llvs_coordinator_free(fresh);
    free(folder); free(a); free(b);
    remove_directory(directory);
}

static void bad_options(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_coordinator *c;
    (void)state;
    options.name = llvs_str("Not a name");
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_open(llvs_str(path), &options, &c, &error));
    options.name = LLVS_NONE;
    options.snapshot_policy = 5;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_open(llvs_str(path), &options, &c, &error));
    options.struct_size = 4;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_coordinator_open(llvs_str(path), &options, &c, &error));
    c = coordinator(path, NULL, NULL);
    FAILS(LLVS_ERROR_UNSUPPORTED, llvs_coordinator_attach(c, llvs_str("gopher://x"), NULL, &error));
    OK(llvs_coordinator_attach(c, llvs_str("memory:attached"), NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_attach(c, llvs_str("memory:attached"), NULL, &error));
    llvs_coordinator_free(c);
    free(path);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_is_put_and_removed),
        cmocka_unit_test(the_current_version_follows_saves_and_survives),
        cmocka_unit_test(saves_that_merge),
        cmocka_unit_test(two_devices_share_and_merge),
        cmocka_unit_test(what_moves_the_current_version_tells),
        cmocka_unit_test(each_exchange_is_told),
        cmocka_unit_test(branches_are_saved_beside),
        cmocka_unit_test(observers_are_told),
        cmocka_unit_test(callbacks_may_come_back),
        cmocka_unit_test(a_new_device_starts_from_a_snapshot),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

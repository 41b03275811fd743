/* Versions, history, values and differences, as a host uses them. */
#include "support.h"

#include <math.h>

#include <time.h>

static void a_version_is_read_back(void **state) {
    llvs_store *store = memory_store();
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_metadata_entry author;
    llvs_change changes[2];
    llvs_version_list *list;
    llvs_version_id id;
    const llvs_version_info *version;
    (void)state;
    author.key = llvs_str("author");
    author.value = llvs_str("\"ann\"");
    options.metadata = &author;
    options.metadata_count = 1;
    options.branch = llvs_str("draft");
    changes[0] = insert("note/1", "hello");
    changes[1] = insert("note/2", "");
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 2, sizeof changes[0], &options, &id, &list, &error));
    assert_int_equal(list->count, 1);
    version = list->items[0];
    assert_non_null(version);
    assert_null(list->items[1]);
    assert_int_equal(version->struct_size, sizeof *version);
    assert_true(same_id(version->id, &id));
    assert_int_equal(id.size, 36);
    assert_int_equal(version->predecessor_count, 0);
    assert_int_equal(version->value_data_size, 5);
    assert_true(version->timestamp > 1.7e9 && version->made_at == version->timestamp); /* seconds since 1970 */
    assert_true(bytes_are(version->branch, "draft"));
    assert_int_equal(version->metadata_count, 2);
    assert_true(bytes_are(version->metadata[0].key, "__llvs_branch"));
    assert_true(bytes_are(version->metadata[0].value, "\"draft\""));
    assert_true(bytes_are(version->metadata[1].key, "author"));
    value_is(store, &id, "note/1", "hello");
    value_is(store, &id, "note/2", "");
    value_is(store, &id, "note/3", NULL);
    llvs_version_list_free(list);
    llvs_store_free(store);
}

static void one_variable_is_enough_for_the_head(void **state) {
    llvs_store *store = memory_store();
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_version_id head = save(store, NULL, insert("x", "0")), before, unknown = { 0, "" };
    llvs_change change = update("x", "1");
    llvs_version_list *list;
    (void)state;
    before = head;
    OK(llvs_store_make_version(store, llvs_id(&head), &change, 1, sizeof change, NULL, &head, &list, &error));
    assert_true(same_id(list->items[0]->id, &head));
    assert_true(same_id(list->items[0]->predecessors[0], &before));
    llvs_version_list_free(list);
    value_is(store, &head, "x", "1");
    /* The head survives a save that fails. */
    before = head;
    change.id = llvs_str("");
    FAILS(LLVS_ERROR_INVALID_VALUE_ID,
          llvs_store_make_version(store, llvs_id(&head), &change, 1, sizeof change, NULL, &head, NULL, &error));
    assert_memory_equal(&head, &before, sizeof head);
    /* An output that is only an output is empty afterwards. */
    before.size = 3;
    FAILS(LLVS_ERROR_INVALID_VALUE_ID,
          llvs_store_make_version(store, llvs_id(&head), &change, 1, sizeof change, NULL, &before, NULL, &error));
    assert_memory_equal(&before, &unknown, sizeof before);
    /* The requested id may be in the output struct too. */
    memcpy(before.text, "mine", before.size = 4);
    options.id = llvs_id(&before);
    change.id = llvs_str("x");
    OK(llvs_store_make_version(store, llvs_id(&head), &change, 1, sizeof change, &options, &before, NULL, &error));
    assert_int_equal(before.size, 4);
    assert_memory_equal(before.text, "mine", 4);
    llvs_store_free(store);
}

static void every_version_keeps_its_state(void **state) {
    llvs_heads_options newest = LLVS_HEADS_OPTIONS_INIT;
    llvs_store *store = memory_store();
    llvs_version_id a = save(store, NULL, insert("x", "1"));
    llvs_version_id b = save(store, &a, update("x", "2"));
    llvs_version_id c = save(store, &b, removal("x"));
    llvs_bool answer = 0;
    llvs_version_list *list;
    (void)state;
    value_is(store, &a, "x", "1");
    value_is(store, &b, "x", "2");
    value_is(store, &c, "x", NULL);
    OK(llvs_store_is_ancestor(store, llvs_id(&a), llvs_id(&c), NULL, &answer, &error));
    assert_true(answer);
    OK(llvs_store_is_ancestor(store, llvs_id(&c), llvs_id(&a), NULL, &answer, &error));
    assert_false(answer);
    OK(llvs_store_successors(store, llvs_id(&a), NULL, &list, &error));
    assert_int_equal(list->count, 1);
    assert_true(same_id(list->items[0]->id, &b));
    llvs_version_list_free(list);
    OK(llvs_store_versions_of(store, llvs_str("x"), NULL, &list, &error));
    assert_int_equal(list->count, 2);
    assert_true(same_id(list->items[0]->id, &b));
    llvs_version_list_free(list);
    OK(llvs_store_version(store, llvs_str("unknown"), &list, &error));
    assert_null(list);
    newest.limit = 1;
    OK(llvs_store_heads(store, &newest, &list, &error));
    assert_int_equal(list->count, 1);
    assert_true(same_id(list->items[0]->id, &c));
    llvs_version_list_free(list);
    llvs_store_free(store);
    store = memory_store();
    OK(llvs_store_heads(store, &newest, &list, &error));
    assert_int_equal(list->count, 0);
    llvs_version_list_free(list);
    llvs_store_free(store);
}

/* The history of a value: removals and other changes, on a branch, below a prefix; and a walk that is cancelled. */
static void the_history_of_a_value_tells_removals(void **state) {
    llvs_store *store = memory_store();
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_history_options history = LLVS_HISTORY_OPTIONS_INIT;
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_version_id a = save(store, NULL, update("note/1", "1")), b = save(store, &a, update("note/1", "2")), c, d;
    llvs_history_cursor *cursor;
    llvs_version_list *page;
    const llvs_version_info *info;
    (void)state;
    change.kind = LLVS_CHANGE_REMOVE;
    change.id = llvs_str("note/1");
    options.branch = llvs_str("draft");
    OK(llvs_store_make_version(store, llvs_id(&b), &change, 1, sizeof change, &options, &c, NULL, &error));
    d = save(store, &c, update("note/2", "1"));
    history.value_id = llvs_str("note/1");
    OK(llvs_store_history(store, &history, NULL, &cursor, &error));
    OK(llvs_history_cursor_next(cursor, 2, NULL, &page, &error));
    assert_int_equal(page->count, 2);
    info = page->items[0];
    assert_true(same_id(info->id, &c) && info->change == LLVS_CHANGE_REMOVE && info->reserved == 0);
    info = page->items[1];
    assert_true(same_id(info->id, &b) && info->change == LLVS_CHANGE_UPDATE);
    llvs_version_list_free(page);
    OK(llvs_history_cursor_next(cursor, 2, NULL, &page, &error));
    assert_true(page->count == 1 && page->items[0]->change == LLVS_CHANGE_INSERT);
    llvs_version_list_free(page);
    OK(llvs_history_cursor_next(cursor, 2, NULL, &page, &error));
    assert_null(page);
    llvs_history_cursor_free(cursor);
    history.value_id = LLVS_NONE;
    history.branch = llvs_str("draft");
    history.prefix = llvs_str("note/");
    OK(llvs_store_history(store, &history, NULL, &cursor, &error));
    OK(llvs_history_cursor_next(cursor, 0, NULL, &page, &error));
    assert_true(page->count == 1 && same_id(page->items[0]->id, &c));
    llvs_version_list_free(page);
    llvs_history_cursor_free(cursor);
    OK(llvs_cancel_token_create(&control.token, &error));
    OK(llvs_store_history(store, NULL, &control, &cursor, &error));
    llvs_cancel_token_cancel(control.token);
    FAILS(LLVS_ERROR_CANCELLED, llvs_history_cursor_next(cursor, 0, &control, &page, &error));
    OK(llvs_history_cursor_next(cursor, 0, NULL, &page, &error));
    assert_true(page->count == 4 && same_id(page->items[0]->id, &d));
    llvs_version_list_free(page);
    llvs_history_cursor_free(cursor);
    FAILS(LLVS_ERROR_CANCELLED, llvs_store_history(store, NULL, &control, &cursor, &error));
    llvs_cancel_token_free(control.token);
    history.value_id = llvs_bytes_make("\xff", 1);
    FAILS(LLVS_ERROR_INVALID_UTF8, llvs_store_history(store, &history, NULL, &cursor, &error));
    history.value_id = LLVS_NONE;
    history.reserved = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_history(store, &history, NULL, &cursor, &error));
    llvs_store_free(store);
}

/* The last ids first, in pages; and the differences of a part. */
static void ranges_go_backwards(void **state) {
    llvs_store *store = memory_store();
    llvs_range range = LLVS_RANGE_INIT;
    llvs_version_id a = save(store, NULL, update("a", "1")), b, c;
    llvs_value_list *values;
    llvs_change_cursor *cursor;
    char last[3];
    int seen = 0;
    const char *const expected[] = { "b9", "b7", "b5", "b3", "b1" };
    llvs_version_id at = a;
    char id[3] = "b0";
    (void)state;
    for (id[1] = '1'; id[1] <= '9'; id[1] = (char)(id[1] + 2)) at = save(store, &at, update(id, "x"));
    b = save(store, &at, update("c", "1"));
    range.prefix = llvs_str("b");
    range.reverse = 1;
    range.limit = 2;
    for (;;) {
        size_t i;
        OK(llvs_store_enumerate(store, llvs_id(&b), &range, &values, &error));
        if (!values) break;
        for (i = 0; i < values->count; i++, seen++) {
            assert_true(seen < 5);
            assert_memory_equal(values->items[i]->id.data, expected[seen], 2);
            memcpy(last, expected[seen], 3);
        }
        llvs_value_list_free(values);
        range.before = llvs_str(last);
    }
    assert_int_equal(seen, 5);
    range.before = llvs_str("b7");
    range.after = llvs_str("b1");
    { uint64_t count; OK(llvs_store_count(store, llvs_id(&b), &range, &count, &error)); assert_int_equal(count, 2); }
    c = save(store, &b, update("c", "2"));
    c = save(store, &c, update("b3", "2"));
    OK(llvs_store_differences(store, llvs_id(&b), llvs_id(&c), &range, NULL, &cursor, &error));
    assert_int_equal(llvs_change_cursor_count(cursor), 1);
    llvs_change_cursor_free(cursor);
    range.reverse = 2;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_enumerate(store, llvs_id(&b), &range, &values, &error));
    llvs_store_free(store);
}

static void note(void *payload) { __atomic_add_fetch((int *)payload, 1, __ATOMIC_SEQ_CST); }

static void nap(long milliseconds) {
    struct timespec pause;
    pause.tv_sec = milliseconds / 1000;
    pause.tv_nsec = milliseconds % 1000 * 1000000;
    nanosleep(&pause, NULL);
}
/* A registration is called for new versions, and not after its end. Stores report their paths, and accept timestamps. */
static void stores_tell_of_what_comes_and_where_they_are(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_store *store, *memory = memory_store();
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_exchange *exchange;
    llvs_observer *observer;
    llvs_version_list *version;
    llvs_version_id a;
    int heard = 0, witnessed = 0, known, i;
    (void)state;
    OK(llvs_store_open(llvs_str(path), NULL, &store, &error));
    assert_true(llvs_store_path(store).size == strlen(path) && !strcmp((const char *)llvs_store_path(store).data, path));
    assert_true(llvs_store_path(memory).size == 0 && llvs_store_path(NULL).size == 0 && llvs_exchange_url(NULL).size == 0);
    OK(llvs_exchange_open(store, llvs_str("memory:url"), NULL, &exchange, &error));
    assert_string_equal((const char *)llvs_exchange_url(exchange).data, "memory:url");
    llvs_exchange_free(exchange);
    OK(llvs_store_observe(store, note, &heard, NULL, &observer, &error));
    a = save(store, NULL, update("x", "1"));
    while (!__atomic_load_n(&heard, __ATOMIC_SEQ_CST)) nap(1);
    llvs_observer_free(observer);
    known = heard;
    /* A second observer is called for the news that the first, released one must not receive: so the test knows that the news arrived. */
    OK(llvs_store_observe(store, note, &witnessed, NULL, &observer, &error));
    options.timestamp = 1e9;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT,
          llvs_store_make_version(store, llvs_id(&a), NULL, 0, sizeof(llvs_change), &options, NULL, NULL, &error));
    OK(llvs_store_make_version(store, LLVS_NONE, NULL, 0, sizeof(llvs_change), &options, NULL, &version, &error));
    assert_true(version->items[0]->timestamp == 1e9 && version->items[0]->made_at == 1e9);
    llvs_version_list_free(version);
    for (i = 0; i < 3; i++) {
        int before = __atomic_load_n(&witnessed, __ATOMIC_SEQ_CST);
        save(store, &a, update("x", "2"));
        while (__atomic_load_n(&witnessed, __ATOMIC_SEQ_CST) == before) nap(1);
        assert_int_equal(__atomic_load_n(&heard, __ATOMIC_SEQ_CST), known);
    }
    llvs_observer_free(observer);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_observe(store, NULL, NULL, NULL, &observer, &error));
    OK(llvs_store_close(store, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_observe(store, note, &heard, NULL, &observer, &error));
    llvs_store_free(store);
    llvs_store_free(memory);
    free(path);
    free(directory);
}

static void history_comes_in_pages_newest_first(void **state) {
    enum { COUNT = 25 };
    llvs_store *store = memory_store();
    llvs_version_id ids[COUNT];
    llvs_history_cursor *cursor;
    llvs_version_list *page;
    llvs_history_options options = LLVS_HISTORY_OPTIONS_INIT;
    llvs_bytes from, hidden;
    size_t seen = 0, i;
    (void)state;
    for (i = 0; i < COUNT; i++) ids[i] = save(store, i ? &ids[i - 1] : NULL, update("x", i % 2 ? "odd" : "even"));
    OK(llvs_store_history(store, NULL, NULL, &cursor, &error));
    for (;;) {
        OK(llvs_history_cursor_next(cursor, 10, NULL, &page, &error));
        if (!page) break;
        assert_true(page->count <= 10);
        for (i = 0; i < page->count; i++, seen++)
            assert_true(same_id(page->items[i]->id, &ids[COUNT - 1 - seen]));
        llvs_version_list_free(page);
    }
    assert_int_equal(seen, COUNT);
    llvs_history_cursor_free(cursor);
    from = llvs_id(&ids[4]);
    options.from = &from;
    options.from_count = 1;
    OK(llvs_store_history(store, &options, NULL, &cursor, &error));
    OK(llvs_history_cursor_next(cursor, 0, NULL, &page, &error));
    assert_int_equal(page->count, 5);
    llvs_version_list_free(page);
    llvs_history_cursor_free(cursor);
    hidden = llvs_id(&ids[1]);
    options.hiding = &hidden;
    options.hiding_count = 1;
    OK(llvs_store_history(store, &options, NULL, &cursor, &error));
    OK(llvs_history_cursor_next(cursor, 0, NULL, &page, &error));
    assert_int_equal(page->count, 3);
    assert_int_equal(page->items[0]->change, 0);
    llvs_version_list_free(page);
    llvs_history_cursor_free(cursor);
    llvs_store_free(store);
}

static size_t count_in(llvs_store *store, const llvs_version_id *at, const char *prefix, const char *from, const char *to) {
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_list *values;
    uint64_t count = 99;
    size_t seen = 0, i;
    range.prefix = llvs_str(prefix);
    range.from = llvs_str(from);
    range.to = llvs_str(to);
    OK(llvs_store_count(store, llvs_id(at), &range, &count, &error));
    range.limit = 2; /* several pages */
    for (;;) {
        static char after[64];
        OK(llvs_store_enumerate(store, llvs_id(at), &range, &values, &error));
        if (!values) break;
        for (i = 0; i < values->count; i++, seen++) {
            const llvs_value_info *value = values->items[i];
            assert_int_equal(value->present, 1);
            assert_true(value->data.size == value->id.size);
            assert_true(same_id(value->stored_version, at));
            memcpy(after, value->id.data, value->id.size);
            range.after = llvs_bytes_make(after, value->id.size);
        }
        llvs_value_list_free(values);
    }
    assert_int_equal(count, seen);
    return seen;
}

static void values_are_enumerated_in_byte_order(void **state) {
    static const char *const ids[] = { "a", "a/1", "a/2", "a/3", "b", "b/1", "\xC3\xA9", "e\xCC\x81" };
    llvs_store *store = memory_store();
    llvs_change changes[8];
    llvs_version_id at;
    llvs_value_list *values;
    size_t i;
    (void)state;
    for (i = 0; i < 8; i++) changes[i] = insert(ids[i], ids[i]);
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 8, sizeof changes[0], NULL, &at, NULL, &error));
    assert_int_equal(count_in(store, &at, NULL, NULL, NULL), 8);
    assert_int_equal(count_in(store, &at, "a/", NULL, NULL), 3);
    assert_int_equal(count_in(store, &at, NULL, "a/2", "b"), 2);
    assert_int_equal(count_in(store, &at, "a", "a/2", NULL), 2);
    assert_int_equal(count_in(store, &at, "a/", NULL, "a/3"), 2);
    assert_int_equal(count_in(store, &at, "zzz", NULL, NULL), 0);
    assert_int_equal(count_in(store, &at, "\xC3", NULL, NULL), 1); /* half a character */
    OK(llvs_store_enumerate(store, llvs_id(&at), NULL, &values, &error));
    for (i = 1; i < 8; i++) {
        llvs_bytes a = values->items[i - 1]->id, b = values->items[i]->id;
        int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
        assert_true(order < 0 || (order == 0 && a.size < b.size));
    }
    llvs_value_list_free(values);
    llvs_store_free(store);
}

static void pages_end_at_their_byte_limit(void **state) {
    llvs_store *store = memory_store();
    static char data[1000];
    llvs_change changes[20];
    char ids[20][8];
    llvs_version_id at;
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_list *values;
    size_t i;
    (void)state;
    for (i = 0; i < 20; i++) {
        snprintf(ids[i], sizeof ids[i], "%02d", (int)i);
        changes[i] = insert(ids[i], NULL);
        changes[i].data = llvs_bytes_make(data, sizeof data);
    }
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 20, sizeof changes[0], NULL, &at, NULL, &error));
    range.byte_limit = 2500;
    OK(llvs_store_enumerate(store, llvs_id(&at), &range, &values, &error));
    assert_int_equal(values->count, 3);
    llvs_value_list_free(values);
    range.without_data = 1;
    OK(llvs_store_enumerate(store, llvs_id(&at), &range, &values, &error));
    assert_int_equal(values->count, 20);
    assert_null(values->items[0]->data.data);
    llvs_value_list_free(values);
    llvs_store_free(store);
}

static void many_values_come_at_once(void **state) {
    llvs_store *store = memory_store();
    llvs_version_id a = save(store, NULL, insert("x", "1"));
    llvs_version_id b = save(store, &a, insert("y", "2"));
    llvs_bytes ids[3];
    llvs_version_id stored;
    llvs_value_list *values;
    (void)state;
    ids[0] = llvs_str("y"); ids[1] = llvs_str("absent"); ids[2] = llvs_str("x");
    OK(llvs_store_values(store, ids, 3, llvs_id(&b), &values, &error));
    assert_int_equal(values->count, 3);
    assert_true(bytes_are(values->items[0]->data, "2"));
    assert_int_equal(values->items[1]->present, 0);
    assert_true(bytes_are(values->items[1]->id, "absent"));
    assert_true(bytes_are(values->items[2]->data, "1"));
    assert_true(same_id(values->items[2]->stored_version, &a));
    llvs_value_list_free(values);
    /* At a version, the values that it stored prevail. */
    OK(llvs_store_values(store, ids, 3, llvs_id(&a), &values, &error));
    assert_int_equal(values->items[0]->present, 0);
    assert_true(bytes_are(values->items[2]->data, "1"));
    assert_true(same_id(values->items[2]->stored_version, &a));
    llvs_value_list_free(values);
    OK(llvs_store_reference(store, llvs_str("x"), llvs_id(&b), &stored, &error));
    assert_true(same_id(llvs_id(&stored), &a));
    OK(llvs_store_reference(store, llvs_str("absent"), llvs_id(&b), &stored, &error));
    assert_int_equal(stored.size, 0);
    llvs_store_free(store);
}

static void differences_lead_from_one_state_to_the_other(void **state) {
    llvs_store *store = memory_store();
    llvs_change first[3], second[3];
    llvs_version_id a, b;
    llvs_change_cursor *cursor;
    llvs_change_list *changes;
    const llvs_change_info *change;
    (void)state;
    first[0] = insert("kept", "k"); first[1] = insert("changed", "old"); first[2] = insert("removed", "r");
    OK(llvs_store_make_version(store, LLVS_NONE, first, 3, sizeof first[0], NULL, &a, NULL, &error));
    second[0] = update("changed", "new"); second[1] = removal("removed"); second[2] = insert("added", "a");
    OK(llvs_store_make_version(store, llvs_id(&a), second, 3, sizeof second[0], NULL, &b, NULL, &error));
    OK(llvs_store_differences(store, llvs_id(&a), llvs_id(&b), NULL, NULL, &cursor, &error));
    assert_int_equal(llvs_change_cursor_count(cursor), 3);
    OK(llvs_change_cursor_next(cursor, 2, 1, &changes, &error));
    assert_int_equal(changes->count, 2);
    change = changes->items[0];
    assert_int_equal(change->kind, LLVS_CHANGE_INSERT);
    assert_true(bytes_are(change->id, "added") && bytes_are(change->data, "a") && change->data_size == 1);
    change = changes->items[1];
    assert_int_equal(change->kind, LLVS_CHANGE_UPDATE);
    assert_true(bytes_are(change->data, "new") && same_id(change->stored_version, &b));
    llvs_change_list_free(changes);
    OK(llvs_change_cursor_next(cursor, 2, 1, &changes, &error));
    assert_int_equal(changes->count, 1);
    change = changes->items[0];
    assert_int_equal(change->kind, LLVS_CHANGE_REMOVE);
    assert_null(change->data.data);
    llvs_change_list_free(changes);
    OK(llvs_change_cursor_next(cursor, 2, 1, &changes, &error));
    assert_null(changes);
    llvs_change_cursor_free(cursor);
    OK(llvs_store_changes(store, llvs_id(&b), NULL, NULL, &cursor, &error));
    OK(llvs_change_cursor_next(cursor, 0, 0, &changes, &error));
    assert_int_equal(changes->count, 3);
    assert_null(changes->items[0]->data.data);
    assert_int_equal(changes->items[0]->data_size, 1);
    llvs_change_list_free(changes);
    llvs_change_cursor_free(cursor);
    llvs_store_free(store);
}

static const llvs_size_row *size_row(const llvs_size_report *report, llvs_size_group group, const char *name) {
    for (size_t i = 0; i < report->row_count; i++) {
        const llvs_size_row *row = report->rows[i];
        if (row->group == group && row->name.size == strlen(name) && memcmp(row->name.data, name, row->name.size) == 0) return row;
    }
    fail_msg("There is no row %s.", name);
    return NULL;
}
static void what_takes_space_is_reported(void **state) {
    llvs_size_options options = LLVS_SIZE_OPTIONS_INIT;
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_store *store = memory_store();
    llvs_version_id first = save(store, NULL, insert("note/a", "12345")), second;
    const llvs_size_row *row;
    llvs_size_report *report;
    size_t rows = 0;
    uint64_t bytes = 0;
    (void)state;
    second = save(store, &first, insert("note/b/c", "123"));
    (void)save(store, &second, update("note/a", "1"));
    OK(llvs_store_size(store, NULL, &report, &error));
    OK(llvs_store_statistics(store, NULL, &statistics, &error));
    assert_int_equal(report->bytes, statistics.bytes);
    assert_true(report->versions == 3 && report->unread == 0 && report->values == 3 && report->value_bytes == 9);
    /* Each value is preceded by 8 bytes. */
    assert_true(report->current_bytes == 8 + 3 + 8 + 1 && report->past_bytes == 8 + 5);
    row = size_row(report, LLVS_SIZE_BY_KIND, "value");
    assert_true(row->bytes == 33 && row->values == 3 && row->combined == 0);
    assert_int_equal(size_row(report, LLVS_SIZE_BY_KIND, "record")->bytes + 33, report->bytes);
    assert_int_equal(size_row(report, LLVS_SIZE_BY_PREFIX, "note/")->past_bytes, 13);
    assert_int_equal(size_row(report, LLVS_SIZE_BY_VERSION, first.text)->past_bytes, 13);
    for (size_t i = 0; i < report->row_count; i++)
        if (report->rows[i]->group == LLVS_SIZE_BY_MONTH) bytes += report->rows[i]->bytes;
    assert_int_equal(bytes, report->bytes);
    llvs_size_report_free(report);

    options.prefix = llvs_str("note/");
    options.depth = LLVS_SIZE_EACH_ID;
    options.limit = 1;
    OK(llvs_store_size(store, &options, &report, &error));
    assert_true(report->bytes == 33 && report->values == 3);
    row = size_row(report, LLVS_SIZE_BY_PREFIX, "note/a");
    assert_true(row->bytes == 22 && row->values == 2 && row->value_bytes == 6);
    for (size_t i = 0; i < report->row_count; i++) rows += report->rows[i]->group == LLVS_SIZE_BY_PREFIX;
    assert_int_equal(rows, 2);
    row = size_row(report, LLVS_SIZE_BY_PREFIX, "");
    assert_true(row->combined == 1 && row->bytes == 11 && row->current_bytes == 11);
    llvs_size_report_free(report);
    llvs_store_free(store);
}

static void verified_is(llvs_store *store, unsigned vouched, unsigned unvouched) {
    llvs_verify_report *report;
    OK(llvs_store_verify(store, NULL, &report, &error));
    assert_int_equal(report->vouched, vouched);
    assert_int_equal(report->unvouched, unvouched);
    assert_int_equal(report->versions, vouched + unvouched);
    llvs_verify_report_free(report);
}
/* A content id vouches for its ancestors if all ids on the way to them are content ids. */
static void a_verification_tells_how_far_ids_vouch(void **state) {
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_change change = update("x", "named");
    llvs_store *store = memory_store();
    llvs_version_id first = save(store, NULL, insert("x", "1")), second = save(store, &first, update("x", "2")), named;
    (void)state;
    verified_is(store, 2, 0);
    /* Nothing vouches for the ancestors of a head whose id the caller chose. */
    options.id = llvs_str("of-the-caller");
    OK(llvs_store_make_version(store, llvs_id(&second), &change, 1, sizeof change, &options, &named, NULL, &error));
    verified_is(store, 0, 3);
    /* Nor does anything vouch for ancestors behind such an id. The second save leads to some of them by another path. */
    save(store, &named, update("x", "3"));
    verified_is(store, 1, 3);
    save(store, &first, update("x", "4"));
    verified_is(store, 3, 2);
    llvs_store_free(store);
}

static void a_store_survives_closing(void **state) {
    static const llvs_storage_kind kinds[] = { LLVS_STORAGE_FILE, LLVS_STORAGE_SQLITE };
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        char *directory = new_directory(), *path = join(directory, "store");
        llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
        llvs_store *store;
        llvs_verify_report *report;
        llvs_version_id id;
        options.storage = kinds[i];
        OK(llvs_store_open(llvs_str(path), &options, &store, &error));
        id = save(store, NULL, insert("x", "1"));
        OK(llvs_store_close(store, &error));
        llvs_store_free(store);
        options.read_only = 1;
        OK(llvs_store_open(llvs_str(path), &options, &store, &error));
        value_is(store, &id, "x", "1");
        OK(llvs_store_verify(store, NULL, &report, &error));
        assert_int_equal(report->versions, 1);
        assert_int_equal(report->values, 1);
        assert_int_equal(report->pending, 0);
        assert_int_equal(report->damage_count, 0);
        assert_null(report->damages[0]);
        assert_int_equal(report->vouched, 1);
        assert_int_equal(report->unvouched, 0);
        llvs_verify_report_free(report);
        FAILS(LLVS_ERROR_READ_ONLY, llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof(llvs_change), NULL, NULL, NULL, &error));
        llvs_store_free(store);
        free(path);
        remove_directory(directory);
    }
}

static void two_handles_see_each_other(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_store *one, *two;
    llvs_version_id a, b;
    uint64_t added = 9;
    (void)state;
    OK(llvs_store_open(llvs_str(path), NULL, &one, &error));
    OK(llvs_store_open(llvs_str(path), NULL, &two, &error));
    a = save(one, NULL, insert("x", "1"));
    OK(llvs_store_reload(two, NULL, &added, &error));
    assert_int_equal(added, 1);
    b = save(two, &a, update("x", "2"));
    value_is(one, &b, "x", "2"); /* reloads by itself */
    llvs_store_free(one);
    llvs_store_free(two);
    free(path);
    remove_directory(directory);
}

static void a_version_made_twice_is_one(void **state) {
    llvs_store *store = memory_store();
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_change change = insert("x", "1");
    llvs_version_id id;
    int i;
    (void)state;
    options.id = llvs_str("my-version_1");
    for (i = 0; i < 2; i++) OK(llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, &options, &id, NULL, &error));
    assert_string_equal(id.text, "my-version_1");
    assert_int_equal(version_count(store), 1);
    change.data = llvs_str("other");
    FAILS_NAMING(LLVS_ERROR_VERSION_MISMATCH, "my-version_1",
                 llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, &options, NULL, NULL, &error));
    options.id = llvs_str("MY-version_1");
    FAILS(LLVS_ERROR_INVALID_VERSION_ID,
          llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, &options, NULL, NULL, &error));
    llvs_store_free(store);
}

/* ---- values that are read in pieces ---- */

typedef struct pieces {
    size_t left, step;
    unsigned char next;
    llvs_status failure; /* returned after the last piece, unless it is LLVS_OK */
    int calls;
} pieces;

static llvs_status next_piece(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **error) {
    pieces *pieces = payload;
    size_t i, count = pieces->left < pieces->step ? pieces->left : pieces->step;
    pieces->calls++;
    if (pieces->left == 0 && pieces->failure != LLVS_OK) {
        if (pieces->failure == LLVS_ERROR_USER) *error = llvs_error_create(77, llvs_str("the camera was unplugged"));
        return pieces->failure;
    }
    if (count > capacity) count = capacity;
    for (i = 0; i < count; i++) buffer[i] = pieces->next++;
    pieces->left -= count;
    *size = count;
    return count ? LLVS_OK : LLVS_END;
}

static llvs_value_source source_of(const char *id, pieces *pieces, uint64_t size) {
    llvs_value_source source = LLVS_VALUE_SOURCE_INIT;
    source.id = llvs_str(id);
    source.size = size;
    source.read = next_piece;
    source.payload = pieces;
    return source;
}

static void values_come_in_pieces(void **state) {
    enum { LARGE = 3000001 };
    static const llvs_storage_kind kinds[] = { LLVS_STORAGE_FILE, LLVS_STORAGE_SQLITE, LLVS_STORAGE_MEMORY };
    size_t k, i;
    (void)state;
    for (k = 0; k < 3; k++) {
        char *directory = new_directory(), *path = join(directory, "store");
        llvs_store_options opening = LLVS_STORE_OPTIONS_INIT;
        llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
        llvs_store *store;
        llvs_version_id id;
        llvs_change change = insert("plain", "hello");
        pieces small = { 300, 7, 0, LLVS_OK, 0 }, large = { LARGE, 100000, 0, LLVS_OK, 0 }, told = { LARGE, 99999, 0, LLVS_OK, 0 },
               failing = { LARGE, 100000, 0, LLVS_ERROR_USER, 0 };
        struct {
            llvs_value_source known;
            uint64_t more;
        } sources[3];
        llvs_buffer data;
        llvs_version_list *list;
        opening.storage = kinds[k];
        OK(llvs_store_open(llvs_str(path), &opening, &store, &error));
        memset(sources, 0, sizeof sources);
        sources[0].known = source_of("small", &small, 0);
        sources[1].known = source_of("large", &large, 0);
        sources[2].known = source_of("told", &told, LARGE);
        options.sources = &sources[0].known;
        options.source_count = 3;
        options.source_size = sizeof *sources;
        OK(llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, &options, &id, NULL, &error));
        value_is(store, &id, "plain", "hello");
        for (i = 0; i < 3; i++) {
            size_t at, size = i == 0 ? 300 : LARGE;
            OK(llvs_store_value(store, sources[i].known.id, llvs_id(&id), &data, NULL, &error));
            assert_int_equal(data.size, size);
            for (at = 0; at < size; at++) if (data.data[at] != (uint8_t)at) fail_msg("byte %zu of source %zu", at, i);
            llvs_buffer_dispose(&data);
        }

        /* The error is returned unchanged, and nothing is stored. */
        sources[0].known = source_of("small", &failing, 0);
        options.source_count = 1;
        FAILS(LLVS_ERROR_USER, llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof change, &options, NULL, NULL, &error));
        {
            llvs_error *problem;
            failing.left = LARGE;
            assert_int_equal(llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof change, &options, NULL, NULL, &problem),
                             LLVS_ERROR_USER);
            assert_int_equal(llvs_error_user_code(problem), 77);
            llvs_error_free(problem);
        }
        failing.failure = LLVS_ERROR_IO;
        FAILS(LLVS_ERROR_IO, llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof change, &options, NULL, NULL, &error));
        failing.failure = LLVS_ERROR_DAMAGED;
        FAILS(LLVS_ERROR_USER, llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof change, &options, NULL, NULL, &error));

        /* Invalid arguments are reported before anything is read. */
        failing.calls = 0;
        FAILS(LLVS_ERROR_UNKNOWN_PREDECESSOR,
              llvs_store_make_version(store, llvs_str("nobody"), NULL, 0, sizeof change, &options, NULL, NULL, &error));
        change.id = llvs_str("small");
        FAILS(LLVS_ERROR_DUPLICATE_ID,
              llvs_store_make_version(store, llvs_id(&id), &change, 1, sizeof change, &options, NULL, NULL, &error));
        sources[0].more = 1;
        FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof change, &options, NULL, NULL, &error));
        sources[0].more = 0;
        options.source_size = sizeof(llvs_value_source) - 1;
        FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof change, &options, NULL, NULL, &error));
        options.source_size = sizeof *sources;
        options.source_count = SIZE_MAX;
        FAILS(LLVS_ERROR_TOO_LARGE, llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof change, &options, NULL, NULL, &error));
        options.source_count = 1;
        sources[0].known.size = UINT64_MAX;
        FAILS(LLVS_ERROR_TOO_LARGE, llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof change, &options, NULL, NULL, &error));
        sources[0].known.read = NULL;
        FAILS(LLVS_ERROR_INVALID_ARGUMENT,
              llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof change, &options, NULL, NULL, &error));
        options.sources = NULL;
        FAILS(LLVS_ERROR_INVALID_ARGUMENT,
              llvs_store_make_version(store, llvs_id(&id), NULL, 0, sizeof change, &options, NULL, NULL, &error));
        assert_int_equal(failing.calls, 0);

        /* A caller that was compiled before sources existed. */
        options.struct_size = offsetof(llvs_version_options, sources);
        options.source_count = SIZE_MAX;
        change.id = llvs_str("later");
        OK(llvs_store_make_version(store, llvs_id(&id), &change, 1, sizeof change, &options, NULL, NULL, &error));
        OK(llvs_store_heads(store, NULL, &list, &error));
        assert_int_equal(list->count, 1);
        llvs_version_list_free(list);
        OK(llvs_store_close(store, &error));
        llvs_store_free(store);
        free(path);
        remove_directory(directory);
    }
}

/* Both ids have the CRC-32C 56f3db37, by which the versions that changed an id are found. */
static void ids_of_one_checksum_are_told_apart(void **state) {
    llvs_store *store = memory_store();
    llvs_change both[2] = { insert("f47z8qn", "1"), insert("uax5jov", "1") };
    llvs_version_id root, tip;
    llvs_version_list *list;
    (void)state;
    OK(llvs_store_make_version(store, LLVS_NONE, both, 2, sizeof both[0], NULL, &root, NULL, &error));
    tip = save(store, &root, update("uax5jov", "2"));
    OK(llvs_store_versions_of(store, llvs_str("f47z8qn"), NULL, &list, &error));
    assert_int_equal(list->count, 1);
    llvs_version_list_free(list);
    OK(llvs_store_versions_of(store, llvs_str("uax5jov"), NULL, &list, &error));
    assert_int_equal(list->count, 2);
    llvs_version_list_free(list);
    value_is(store, &tip, "f47z8qn", "1");
    value_is(store, &root, "uax5jov", "1");
    llvs_store_free(store);
}

static void a_version_is_found_by_its_time(void **state) {
    llvs_store *store = memory_store();
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_version_id ids[2];
    llvs_version_list *found;
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        options.timestamp = 1000.0 * (i + 1);
        OK(llvs_store_make_version(store, i ? llvs_id(&ids[0]) : LLVS_NONE, NULL, 0, 0, &options, &ids[i], NULL, &error));
    }
    OK(llvs_store_version_at(store, 999, LLVS_NONE, NULL, &found, &error));
    assert_null(found);
    OK(llvs_store_version_at(store, 1999, LLVS_NONE, NULL, &found, &error));
    assert_int_equal(found->count, 1);
    assert_memory_equal(found->items[0]->id.data, ids[0].text, ids[0].size);
    llvs_version_list_free(found);
    OK(llvs_store_version_at(store, 5000, llvs_id(&ids[0]), NULL, &found, &error));
    assert_memory_equal(found->items[0]->id.data, ids[0].text, ids[0].size);
    llvs_version_list_free(found);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_version_at(store, (double)NAN, LLVS_NONE, NULL, &found, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_version_at(store, 0, llvs_str("x"), NULL, &found, &error));
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_is_read_back),
        cmocka_unit_test(one_variable_is_enough_for_the_head),
        cmocka_unit_test(every_version_keeps_its_state),
        cmocka_unit_test(history_comes_in_pages_newest_first),
        cmocka_unit_test(the_history_of_a_value_tells_removals),
        cmocka_unit_test(ranges_go_backwards),
        cmocka_unit_test(stores_tell_of_what_comes_and_where_they_are),
        cmocka_unit_test(values_are_enumerated_in_byte_order),
        cmocka_unit_test(pages_end_at_their_byte_limit),
        cmocka_unit_test(many_values_come_at_once),
        cmocka_unit_test(differences_lead_from_one_state_to_the_other),
        cmocka_unit_test(what_takes_space_is_reported),
        cmocka_unit_test(a_verification_tells_how_far_ids_vouch),
        cmocka_unit_test(a_store_survives_closing),
        cmocka_unit_test(two_handles_see_each_other),
        cmocka_unit_test(a_version_made_twice_is_one),
        cmocka_unit_test(values_come_in_pieces),
        cmocka_unit_test(ids_of_one_checksum_are_told_apart),
        cmocka_unit_test(a_version_is_found_by_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

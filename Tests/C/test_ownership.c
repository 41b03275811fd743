/* Handles may be released in any order, closed ones report it, and payloads are freed once. */
#include "support.h"

static void children_outlive_their_store(void **state) {
    llvs_store *store = memory_store();
    llvs_version_id id = save(store, NULL, insert("x", "1"));
    llvs_history_cursor *history;
    llvs_change_cursor *changes;
    llvs_change_list *page;
    llvs_version_list *versions;
    llvs_value_list *values;
    llvs_value_block *block;
    llvs_value_reader *reader;
    char letter;
    llvs_exchange *exchange;
    llvs_exchange_result *result;
    const llvs_version_info *version;
    const llvs_value_info *value;
    size_t count;
    (void)state;
    OK(llvs_store_history(store, NULL, NULL, &history, &error));
    OK(llvs_store_changes(store, llvs_id(&id), NULL, NULL, &changes, &error));
    OK(llvs_store_heads(store, NULL, &versions, &error));
    OK(llvs_store_enumerate(store, llvs_id(&id), NULL, &values, &error));
    OK(llvs_store_enumerate_block(store, llvs_id(&id), NULL, &block, &error));
    OK(llvs_store_open_value(store, llvs_str("x"), llvs_id(&id), &reader, NULL, NULL, &error));
    OK(llvs_exchange_open(store, llvs_str("memory:ownership"), NULL, &exchange, &error));
    llvs_store_free(store);
    version = versions->items[0];
    value = values->items[0];
    assert_true(same_id(version->id, &id));
    assert_true(bytes_are(value->data, "1"));
    assert_true(bytes_are(block->data, "1"));
    llvs_value_block_free(block);
    OK(llvs_value_reader_read(reader, 0, &letter, 1, &count, &error));
    assert_true(count == 1 && letter == '1');
    llvs_value_reader_free(reader);
    OK(llvs_exchange_send(exchange, NULL, &result, &error));
    assert_int_equal(result->sent_count, 1);
    assert_true(same_id(result->sent[0], &id));
    llvs_exchange_free(exchange);
    OK(llvs_change_cursor_next(changes, 0, 1, &page, &error));
    llvs_change_cursor_free(changes);
    assert_true(bytes_are(page->items[0]->data, "1"));
    llvs_change_list_free(page);
    llvs_version_list_free(versions);
    OK(llvs_history_cursor_next(history, 0, NULL, &versions, &error));
    llvs_version_list_free(versions);
    llvs_history_cursor_free(history);
    assert_int_equal(result->problem_count, 0);
    llvs_exchange_result_free(result);
    llvs_value_list_free(values);
}

static void closed_is_closed_for_children(void **state) {
    llvs_store *store = memory_store();
    llvs_version_id id = save(store, NULL, insert("x", "1"));
    llvs_change change = insert("y", "1");
    llvs_history_cursor *history;
    llvs_change_cursor *changes;
    llvs_version_list *versions;
    llvs_change_list *page;
    llvs_exchange *exchange, *second;
    llvs_value_reader *reader, *other;
    llvs_buffer data;
    size_t size;
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    (void)state;
    OK(llvs_store_history(store, NULL, NULL, &history, &error));
    OK(llvs_store_changes(store, llvs_id(&id), NULL, NULL, &changes, &error));
    OK(llvs_exchange_open(store, llvs_str("memory:closed"), NULL, &exchange, &error));
    OK(llvs_store_open_value(store, llvs_str("x"), llvs_id(&id), &reader, NULL, NULL, &error));
    OK(llvs_store_close(store, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_value_reader_read(reader, 0, NULL, 0, &size, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_open_value(store, llvs_str("x"), llvs_id(&id), &other, NULL, NULL, &error));
    llvs_value_reader_free(reader);
    OK(llvs_store_close(store, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_heads(store, NULL, &versions, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_value(store, llvs_str("x"), llvs_id(&id), &data, NULL, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, NULL, NULL, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_reload(store, NULL, NULL, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_statistics(store, NULL, &statistics, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_history_cursor_next(history, 0, NULL, &versions, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_change_cursor_next(changes, 0, 1, &page, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_exchange_send(exchange, NULL, NULL, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_exchange_retrieve(exchange, NULL, NULL, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_exchange_open(store, llvs_str("memory:closed"), NULL, &second, &error));
    llvs_store_free(store);
    llvs_change_cursor_free(changes);
    llvs_history_cursor_free(history);
    llvs_exchange_free(exchange);
}

static void a_closed_exchange_leaves_its_store_open(void **state) {
    llvs_store *store = memory_store();
    llvs_exchange *exchange;
    llvs_buffer data;
    (void)state;
    OK(llvs_exchange_open(store, llvs_str("memory:closed"), NULL, &exchange, &error));
    OK(llvs_exchange_close(exchange, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_exchange_retrieve(exchange, NULL, NULL, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_exchange_restoration_state(exchange, &data, &error));
    save(store, NULL, insert("x", "1"));
    llvs_exchange_free(exchange);
    llvs_store_free(store);
}

static int messages;
static void receive(void *payload, llvs_log_level level, const llvs_bytes *message) {
    (void)payload; (void)level; (void)message;
    messages++;
}
static void notified(void *payload) { (void)payload; }
static void moved(void *payload, const llvs_version_id *version) { (void)payload; (void)version; }

static void payloads_are_freed_once(void **state) {
    int freed = 0;
    llvs_observer *observer;
    llvs_transport_callbacks transport_callbacks = LLVS_TRANSPORT_CALLBACKS_INIT;
    llvs_transport *transport;
    llvs_store *store = memory_store();
    llvs_exchange *exchange;
    (void)state;
    OK(llvs_log_observe(LLVS_LOG_DEBUG, receive, &freed, count_free, &observer, &error));
    assert_int_equal(freed, 0);
    llvs_observer_free(observer);
    assert_int_equal(freed, 1);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_log_observe(99, receive, &freed, count_free, &observer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_log_observe(LLVS_LOG_INFO, NULL, &freed, count_free, &observer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_transport_create(LLVS_NONE, &transport_callbacks, &freed, count_free, &transport, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_observe(NULL, notified, &freed, count_free, &observer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_observe(NULL, moved, &freed, count_free, &observer, &error));
    assert_int_equal(freed, 6);
    OK(llvs_exchange_open(store, llvs_str("memory:payloads"), NULL, &exchange, &error));
    OK(llvs_exchange_observe(exchange, notified, &freed, count_free, &observer, &error));
    llvs_exchange_free(exchange); /* before its observer */
    llvs_observer_free(observer);
    assert_int_equal(freed, 7);
    llvs_store_free(store);
}

static void made_errors_can_be_dropped(void **state) {
    llvs_error *error = llvs_error_create(5, llvs_bytes_make("a\0b\xFF", 4));
    (void)state;
    assert_int_equal(llvs_error_code(error), LLVS_ERROR_USER);
    assert_true(llvs_error_user_code(error) == 5);
    llvs_error_free(error);
    error = llvs_error_create(-1, llvs_bytes_make(NULL, SIZE_MAX));
    assert_string_equal(llvs_error_message(error), "");
    llvs_error_free(error);
}

static void tokens(void **state) {
    llvs_cancel_token *token;
    llvs_store *store = memory_store();
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_verify_report *report;
    (void)state;
    save(store, NULL, insert("x", "1"));
    OK(llvs_cancel_token_create(&token, &error));
    assert_false(llvs_cancel_token_is_cancelled(token));
    control.token = token;
    OK(llvs_store_verify(store, &control, &report, &error));
    llvs_verify_report_free(report);
    llvs_cancel_token_cancel(token);
    assert_true(llvs_cancel_token_is_cancelled(token));
    FAILS(LLVS_ERROR_CANCELLED, llvs_store_verify(store, &control, &report, &error));
    assert_null(report);
    llvs_cancel_token_free(token);
    llvs_store_free(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_outlive_their_store),
        cmocka_unit_test(closed_is_closed_for_children),
        cmocka_unit_test(a_closed_exchange_leaves_its_store_open),
        cmocka_unit_test(payloads_are_freed_once),
        cmocka_unit_test(made_errors_can_be_dropped),
        cmocka_unit_test(tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

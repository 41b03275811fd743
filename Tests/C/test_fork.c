/* In a forked child every call but a free says so, and a free touches nothing. */
#include "support.h"

#include <sys/wait.h>

#define CHILD(condition) do { if (!(condition)) _exit(__LINE__ % 250 + 1); } while (0)

static void the_child_is_told(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_store *store;
    llvs_version_id id, next;
    llvs_exchange *exchange;
    llvs_version_list *heads;
    llvs_history_cursor *history;
    llvs_arbiter *arbiter;
    llvs_cancel_token *token;
    pid_t child;
    int outcome = 0;
    (void)state;
    OK(llvs_store_open(llvs_str(path), NULL, &store, &error));
    id = save(store, NULL, insert("x", "1"));
    OK(llvs_exchange_open(store, llvs_str("memory:fork"), NULL, &exchange, &error));
    OK(llvs_store_heads(store, NULL, &heads, &error));
    OK(llvs_store_history(store, NULL, NULL, &history, &error));
    OK(llvs_arbiter_builtin(LLVS_ARBITER_OURS, &arbiter, &error));
    OK(llvs_cancel_token_create(&token, &error));
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        llvs_change change = update("x", "2");
        llvs_buffer data;
        llvs_version_list *list;
        llvs_error *error;
        llvs_store *again;
        CHILD(llvs_store_value(store, llvs_str("x"), llvs_id(&id), &data, NULL, &error) == LLVS_ERROR_FORKED);
        CHILD(llvs_error_code(error) == LLVS_ERROR_FORKED);
        llvs_error_free(error);
        CHILD(llvs_store_make_version(store, llvs_id(&id), &change, 1, sizeof change, NULL, NULL, NULL, NULL) == LLVS_ERROR_FORKED);
        CHILD(llvs_store_close(store, NULL) == LLVS_ERROR_FORKED);
        CHILD(llvs_exchange_send(exchange, NULL, NULL, NULL) == LLVS_ERROR_FORKED);
        CHILD(llvs_history_cursor_next(history, 0, NULL, &list, NULL) == LLVS_ERROR_FORKED);
        CHILD(heads->count == 1); /* memory only */
        llvs_version_list_free(heads);
        llvs_history_cursor_free(history);
        llvs_exchange_free(exchange);
        llvs_arbiter_free(arbiter);
        llvs_cancel_token_free(token);
        llvs_store_free(store);
        /* Opening it again is the way. */
        CHILD(llvs_store_open(llvs_str(path), NULL, &again, NULL) == LLVS_OK);
        CHILD(llvs_store_make_version(again, llvs_id(&id), &change, 1, sizeof change, NULL, &next, NULL, NULL) == LLVS_OK);
        llvs_store_free(again);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    if (!WIFEXITED(outcome) || WEXITSTATUS(outcome) != 0) fail_msg("the child ended with %d (line modulo 250, plus 1: %d)", outcome, WEXITSTATUS(outcome));
    /* The parent's handles never noticed. */
    value_is(store, &id, "x", "1");
    next = save(store, &id, update("x", "3"));
    OK(llvs_store_reload(store, NULL, &error));
    assert_int_equal(version_count(store), 3);
    llvs_version_list_free(heads);
    llvs_history_cursor_free(history);
    llvs_exchange_free(exchange);
    llvs_arbiter_free(arbiter);
    llvs_cancel_token_free(token);
    llvs_store_free(store);
    free(path);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_child_is_told) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

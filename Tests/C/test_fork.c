/* In a forked child every call except a free reports the fork, and a free changes nothing. If SQLite was in use at the fork, the child
 * cannot use it at all. */
#include "support.h"

#include <pthread.h>
#include <sys/wait.h>

#include "child.h"

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
        /* The child can open the store again. */
        CHILD(llvs_store_open(llvs_str(path), NULL, &again, NULL) == LLVS_OK);
        CHILD(llvs_store_make_version(again, llvs_id(&id), &change, 1, sizeof change, NULL, &next, NULL, NULL) == LLVS_OK);
        llvs_store_free(again);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    if (!WIFEXITED(outcome) || WEXITSTATUS(outcome) != 0)
        fail_msg("the child ended with %d (line modulo 250, plus 1: %d)", outcome, WEXITSTATUS(outcome));
    /* The parent's handles are not affected. */
    value_is(store, &id, "x", "1");
    next = save(store, &id, update("x", "3"));
    OK(llvs_store_reload(store, NULL, NULL, &error));
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

static llvs_status open_database(const char *path, llvs_store **store, llvs_error **error) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    options.storage = LLVS_STORAGE_SQLITE;
    return llvs_store_open(llvs_str(path), &options, store, error);
}
/* The result of a child by its exit code: 0, or a line. */
static int outcome_of(pid_t child) {
    int outcome = 0;
    assert_int_equal(wait_for_child(child, 120, &outcome, NULL), child);
    if (!WIFEXITED(outcome)) fail_msg("the child ended by signal %d", WTERMSIG(outcome));
    return WEXITSTATUS(outcome);
}

/* In a child of a process with an open database, SQLite takes no locks, and saved data would be lost. */
static void an_open_database_is_not_opened_in_the_child(void **state) {
    char *directory = new_directory(), *path = join(directory, "store.db"), *other = join(directory, "other.db"),
         *files = join(directory, "files");
    llvs_store *store;
    llvs_version_id id, next;
    pid_t child;
    (void)state;
    OK(open_database(path, &store, &error));
    id = save(store, NULL, insert("x", "1"));
    if ((child = fork()) == 0) {
        llvs_store *again;
        llvs_salvage_report *report;
        llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
        llvs_error *error;
        options.storage = LLVS_STORAGE_SQLITE;
        CHILD(open_database(path, &again, &error) == LLVS_ERROR_FORKED);
        CHILD(strstr(llvs_error_message(error), "spawn") != NULL);
        llvs_error_free(error);
        CHILD(open_database(other, &again, NULL) == LLVS_ERROR_FORKED);
        CHILD(access(other, F_OK) != 0);
        CHILD(llvs_store_salvage(llvs_str(path), &options, llvs_str(other), NULL, NULL, &report, NULL) == LLVS_ERROR_FORKED);
        CHILD(access(other, F_OK) != 0);
        CHILD(llvs_store_open(llvs_str(files), NULL, &again, NULL) == LLVS_OK);
        llvs_store_free(again);
        llvs_store_free(store);
        _exit(0);
    }
    assert_int_equal(outcome_of(child), 0);
    next = save(store, &id, update("x", "2"));
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
    /* If all databases were closed at the fork, the child can use them. */
    if ((child = fork()) == 0) {
        llvs_store *again;
        llvs_change change = update("x", "3");
        CHILD(open_database(path, &again, NULL) == LLVS_OK);
        CHILD(llvs_store_make_version(again, llvs_id(&next), &change, 1, sizeof change, NULL, NULL, NULL, NULL) == LLVS_OK);
        llvs_store_free(again);
        _exit(0);
    }
    assert_int_equal(outcome_of(child), 0);
    OK(open_database(path, &store, &error));
    assert_int_equal(version_count(store), 3);
    llvs_store_free(store);
    free(path);
    free(other);
    free(files);
    remove_directory(directory);
}

static int over;
static void *open_and_close(void *path) {
    llvs_store *store;
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) if (open_database(path, &store, NULL) == LLVS_OK) llvs_store_free(store);
    return NULL;
}

/* Other threads hold SQLite's own locks at the fork. The child does not wait for them. */
static void a_child_does_not_wait_for_the_threads_of_its_parent(void **state) {
    char *directory = new_directory(), *path = join(directory, "store.db");
    pthread_t threads[3];
    int outcome = 0;
    llvs_store *store;
    (void)state;
    OK(open_database(path, &store, &error));
    llvs_store_free(store);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, path), 0);
    for (int i = 0; i < 40 && outcome == 0; i++) {
        pid_t child = fork();
        if (child == 0) {
            char *own = join(directory, "child.db");
            llvs_store *again;
            llvs_status status;
            status = open_database(own, &again, NULL);
            _exit(status == LLVS_OK || status == LLVS_ERROR_FORKED ? 0 : 1);
        }
        if (wait_for_child(child, 60, &outcome, NULL) != child) outcome = -1;
    }
    __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    if (outcome != 0) fail_msg("a child ended with %d", outcome);
    free(path);
    remove_directory(directory);
}

/* ---- forked by a callback of an index ---- */

enum { MANY = 4000 };
static pid_t forked_child;
static int forks_at, calls_so_far;

/* Forks once, at the call of the given number, and lets the call continue in both processes. */
static void fork_now(void) {
    if (calls_so_far++ == forks_at) {
        forked_child = fork();
    }
}
static llvs_status keys_that_fork(void *payload, const llvs_bytes *id, const llvs_bytes *data, llvs_index_keys *keys, llvs_error **error) {
    llvs_status status = llvs_index_keys_add(keys, llvs_str("[1]"), error);
    (void)payload;
    (void)id;
    (void)data;
    /* Fork after adding the key, since in the child that call would report the fork as well. */
    fork_now();
    return status;
}
static llvs_status progress_that_forks(void *payload, const llvs_progress *progress, llvs_error **error) {
    (void)payload;
    (void)error;
    /* Fork after the first values, when other threads share the work. */
    if (progress->completed > 0) fork_now();
    return LLVS_OK;
}

/* In the child, the call from which the callback was called reports the fork, and another store can be opened. The parent is not
   affected. If keys are read from JSON, other threads share the work. */
static void a_callback_of_an_index_forks(void **state) {
    static char ids[MANY][16], data[MANY][80];
    static llvs_change changes[MANY];
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_store *store;
    int kind;
    (void)state;
    OK(llvs_store_open(llvs_str(path), NULL, &store, &error));
    for (int i = 0; i < MANY; i++) {
        snprintf(ids[i], sizeof ids[i], "v/%05d", i);
        snprintf(data[i], sizeof data[i], "{\"n\":%d,\"text\":\"some more bytes of the value\"}", i);
        changes[i] = insert(ids[i], data[i]);
    }
    OK(llvs_store_make_version(store, LLVS_NONE, changes, MANY, sizeof *changes, NULL, NULL, NULL, &error));
    for (kind = 0; kind < 6; kind++) {
        llvs_index_options options = LLVS_INDEX_OPTIONS_INIT;
        llvs_computed_index_options computed = LLVS_COMPUTED_INDEX_OPTIONS_INIT;
        llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
        llvs_control control = LLVS_CONTROL_INIT;
        llvs_index *index;
        llvs_index_page *page = NULL;
        llvs_status status;
        llvs_error *error = NULL;
        char definition[80];
        forked_child = -1;
        calls_so_far = 0;
        forks_at = kind % 3 == 0 ? 0 : kind % 3 == 1 ? 1 : kind < 3 ? MANY - 1 : 2;
        /* A different definition each time, so that no index exists yet. */
        snprintf(definition, sizeof definition, "{\"prefix\":\"v/\",\"on\":[\"/n\",\"/%d\"]}", kind);
        options.definition = llvs_str(definition);
        control.progress = progress_that_forks;
        question.want = LLVS_INDEX_COUNT;
        if (kind < 3) OK(llvs_computed_index_open(store, &computed, keys_that_fork, NULL, NULL, &index, &error));
        else OK(llvs_index_open(store, &options, &index, &error));
        status = llvs_index_find(index, LLVS_NONE, &question, kind < 3 ? NULL : &control, &page, &error);
        if (forked_child == 0) {
            char *own = join(directory, kind < 3 ? "child" : "other child");
            llvs_store *again;
            CHILD(status == LLVS_ERROR_FORKED && page == NULL);
            CHILD(strstr(llvs_error_message(error), "fork") != NULL);
            llvs_error_free(error);
            CHILD(llvs_index_find(index, LLVS_NONE, &question, NULL, &page, NULL) == LLVS_ERROR_FORKED);
            llvs_index_free(index);
            llvs_store_free(store);
            CHILD(llvs_store_open(llvs_str(own), NULL, &again, NULL) == LLVS_OK);
            llvs_store_free(again);
            _exit(0);
        }
        if (forked_child < 0) fail_msg("it was never called often enough: %d", calls_so_far);
        if (outcome_of(forked_child) != 0) fail_msg("the child of %d ended at another line", kind);
        assert_int_equal(status, LLVS_OK);
        assert_int_equal(page->total, MANY);
        llvs_index_page_free(page);
        llvs_index_free(index);
    }
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
    free(path);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_child_is_told), cmocka_unit_test(an_open_database_is_not_opened_in_the_child),
        cmocka_unit_test(a_child_does_not_wait_for_the_threads_of_its_parent),
        cmocka_unit_test(a_callback_of_an_index_forks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Syncing in the background: rounds, events, conditions, deadlines, and the ways to end it. */
#include "support.h"

#include <pthread.h>
#include <time.h>

/* What the events of a syncer reported; guarded by its lock. */
struct heard {
    pthread_mutex_t lock;
    int rounds, moves, freed;
    llvs_sync_state last;
    llvs_syncer *to_free;
};

static void hear(void *payload, const llvs_sync_status *status, const llvs_sync_result *round) {
    struct heard *heard = payload;
    llvs_syncer *to_free;
    pthread_mutex_lock(&heard->lock);
    if (round) heard->rounds++;
    if (round && round->moved) heard->moves++;
    heard->last = status->state;
    to_free = heard->to_free;
    heard->to_free = NULL;
    pthread_mutex_unlock(&heard->lock);
    llvs_syncer_free(to_free);
}
static void let_go(void *payload) {
    struct heard *heard = payload;
    pthread_mutex_lock(&heard->lock);
    heard->freed++;
    pthread_mutex_unlock(&heard->lock);
}
static int get(struct heard *heard, const int *field) {
    int value;
    pthread_mutex_lock(&heard->lock);
    value = *field;
    pthread_mutex_unlock(&heard->lock);
    return value;
}
static void wait_a_little(void) {
    struct timespec time = {0, 5000000};
    nanosleep(&time, NULL);
}

static llvs_coordinator *coordinator(const char *path, const char *url) {
    llvs_coordinator *c = NULL;
    OK(llvs_coordinator_open(llvs_str(path), NULL, &c, &error));
    if (url) OK(llvs_coordinator_attach(c, llvs_str(url), NULL, &error));
    return c;
}
static void save_one(llvs_coordinator *c, const char *id) {
    llvs_change change = insert(id, "1");
    OK(llvs_coordinator_save(c, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error));
}
static uint64_t sent(llvs_syncer *syncer) {
    llvs_sync_status *status;
    uint64_t count;
    OK(llvs_syncer_status(syncer, &status, &error));
    count = status->sent;
    llvs_sync_status_free(status);
    return count;
}
static llvs_syncer_options seldom(void) {
    llvs_syncer_options options = LLVS_SYNCER_OPTIONS_INIT;
    options.after_save = 10;
    options.poll = options.longest_poll = 1000000;
    return options;
}

static void saves_are_sent_and_news_are_taken(void **state) {
    char *directory = new_directory(), *a = join(directory, "a"), *b = join(directory, "b");
    llvs_coordinator *one = coordinator(a, "memory:syncer"), *two = coordinator(b, "memory:syncer");
    struct heard heard = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0, NULL};
    llvs_syncer_options options = seldom();
    llvs_syncer *syncer;
    llvs_bool done = 0;
    llvs_sync_status *status;
    (void)state;
    OK(llvs_syncer_start(one, &options, hear, &heard, let_go, &syncer, &error));
    save_one(one, "x");
    while (sent(syncer) < 1) wait_a_little();
    OK(llvs_coordinator_sync(two, NULL, NULL, &error));
    save_one(two, "y");
    OK(llvs_coordinator_sync(two, NULL, NULL, &error));
    while (get(&heard, &heard.moves) < 1) wait_a_little();
    OK(llvs_syncer_run(syncer, 60000, NULL, &done, &error));
    assert_int_equal(done, 1);
    OK(llvs_syncer_status(syncer, &status, &error));
    assert_int_equal(status->place_count, 1);
    assert_null(status->places[1]);
    assert_null(status->places[0]->error);
    assert_null(status->merge_error);
    assert_true(status->rounds >= 2 && status->retrieved >= 1 && status->last_success > 1.7e9);
    assert_string_equal((const char *)status->places[0]->place.data, "memory:syncer");
    llvs_sync_status_free(status);
    llvs_syncer_free(syncer);
    assert_int_equal(get(&heard, &heard.freed), 1);
    llvs_coordinator_free(one);
    llvs_coordinator_free(two);
    free(a); free(b);
    remove_directory(directory);
}

static void it_ends_with_its_coordinator(void **state) {
    char *directory = new_directory(), *a = join(directory, "a");
    llvs_coordinator *one = coordinator(a, "memory:ended");
    struct heard heard = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 9, NULL};
    llvs_syncer *syncer;
    llvs_sync_status *status = NULL;
    llvs_sync_state now;
    (void)state;
    OK(llvs_syncer_start(one, NULL, hear, &heard, let_go, &syncer, &error));
    llvs_coordinator_free(one);
    do {
        OK(llvs_syncer_status(syncer, &status, &error));
        now = status->state;
        llvs_sync_status_free(status);
    } while (now != LLVS_SYNC_OFF);
    FAILS(LLVS_ERROR_CLOSED, llvs_syncer_trigger(syncer, LLVS_SYNC_TRIGGER_USER, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_syncer_set_conditions(syncer, 0, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_syncer_run(syncer, 1, NULL, NULL, &error));
    llvs_syncer_free(syncer);
    assert_int_equal(get(&heard, &heard.freed), 1);
    free(a);
    remove_directory(directory);
}

static void an_event_may_free_it(void **state) {
    char *directory = new_directory(), *a = join(directory, "a");
    llvs_coordinator *one = coordinator(a, "memory:freed");
    struct heard heard = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 9, NULL};
    llvs_syncer *syncer;
    (void)state;
    pthread_mutex_lock(&heard.lock);
    OK(llvs_syncer_start(one, NULL, hear, &heard, let_go, &syncer, &error));
    heard.to_free = syncer;
    pthread_mutex_unlock(&heard.lock);
    while (get(&heard, &heard.freed) == 0) wait_a_little();
    llvs_coordinator_free(one);
    free(a);
    remove_directory(directory);
}

static llvs_status answer(void *payload, const llvs_progress *progress, llvs_error **error) {
    int *calls = payload;
    assert_true(progress->stage >= LLVS_STAGE_LISTING);
    ++*calls;
    *error = llvs_error_create(7, llvs_str("enough"));
    return LLVS_ERROR_USER;
}

static void a_run_is_cancelled(void **state) {
    char *directory = new_directory(), *a = join(directory, "a");
    llvs_coordinator *one = coordinator(a, "memory:cancelled");
    llvs_syncer_options options = seldom();
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_syncer *syncer;
    llvs_status status;
    llvs_error *error = NULL;
    llvs_bool done = 1;
    int calls = 0;
    (void)state;
    options.conditions = LLVS_SYNC_PAUSE;
    OK(llvs_syncer_start(one, &options, NULL, NULL, NULL, &syncer, &error));
    save_one(one, "x");
    OK(llvs_cancel_token_create(&control.token, &error));
    llvs_cancel_token_cancel(control.token);
    FAILS(LLVS_ERROR_CANCELLED, llvs_syncer_run(syncer, 0, &control, &done, &error));
    assert_int_equal(done, 0);
    assert_int_equal(sent(syncer), 0);
    llvs_cancel_token_free(control.token);
    control.token = NULL;
    control.progress = answer;
    control.payload = &calls;
    /* A round this short may be over before any event reports it. */
    status = llvs_syncer_run(syncer, 0, &control, &done, &error);
    assert_int_equal(status, calls ? LLVS_ERROR_USER : LLVS_OK);
    assert_true(calls <= 1);
    if (status) assert_int_equal(llvs_error_user_code(error), 7);
    llvs_error_free(error);
    error = NULL;
    OK(llvs_syncer_run(syncer, 0, NULL, &done, &error));
    assert_int_equal(done, 1);
    assert_int_equal(sent(syncer), 1);
    llvs_syncer_free(syncer);
    llvs_coordinator_free(one);
    free(a);
    remove_directory(directory);
}

static void what_is_wrong_is_said(void **state) {
    char *directory = new_directory(), *a = join(directory, "a");
    llvs_coordinator *one = coordinator(a, NULL);
    struct heard heard = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 9, NULL};
    llvs_syncer_options options = LLVS_SYNCER_OPTIONS_INIT;
    llvs_syncer *syncer = NULL;
    (void)state;
    options.conditions = 64;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_syncer_start(one, &options, hear, &heard, let_go, &syncer, &error));
    options.conditions = 0;
    options.selection = 7;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_syncer_start(one, &options, hear, &heard, let_go, &syncer, &error));
    options.selection = LLVS_HEADS_ALL;
    options.struct_size = 8;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_syncer_start(one, &options, hear, &heard, let_go, &syncer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_syncer_start(one, NULL, hear, &heard, let_go, NULL, &error));
    assert_int_equal(heard.freed, 4);
    assert_null(syncer);
    OK(llvs_syncer_start(one, NULL, NULL, NULL, NULL, &syncer, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_syncer_trigger(syncer, 0, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_syncer_trigger(syncer, 4, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_syncer_set_conditions(syncer, 32, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_syncer_run(syncer, 0, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_syncer_status(syncer, NULL, &error));
    llvs_syncer_free(syncer);
    llvs_coordinator_free(one);
    free(a);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saves_are_sent_and_news_are_taken),
        cmocka_unit_test(it_ends_with_its_coordinator),
        cmocka_unit_test(an_event_may_free_it),
        cmocka_unit_test(a_run_is_cancelled),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* One handle used by many threads; closing while they use it; observers that end themselves. */
#include "support.h"

#include <pthread.h>
#include <time.h>

enum { THREADS = 8, ROUNDS = 200 };

typedef struct worker { llvs_store *store; llvs_version_id base; int number, failures, closed; } worker;

static void *save_and_read(void *argument) {
    worker *w = argument;
    llvs_version_id at = w->base;
    int i;
    for (i = 0; i < ROUNDS; i++) {
        char id[32], text[32];
        llvs_change change;
        llvs_buffer data;
        llvs_version_id next;
        llvs_status status;
        snprintf(id, sizeof id, "thread/%d/%d", w->number, i);
        snprintf(text, sizeof text, "%d", i);
        change = insert(id, text);
        status = llvs_store_make_version(w->store, llvs_id(&at), &change, 1, sizeof change, NULL, &next, NULL, NULL);
        if (status == LLVS_ERROR_CLOSED) { w->closed = 1; return NULL; }
        if (status != LLVS_OK) { w->failures++; continue; }
        at = next;
        status = llvs_store_value(w->store, change.id, llvs_id(&at), &data, NULL, NULL);
        if (status == LLVS_ERROR_CLOSED) { w->closed = 1; return NULL; }
        if (status != LLVS_OK || !data.data || strcmp((char *)data.data, text) != 0) w->failures++;
        llvs_buffer_dispose(&data);
    }
    return NULL;
}

static void run(llvs_store *store, int close_meanwhile) {
    worker workers[THREADS];
    pthread_t threads[THREADS];
    llvs_version_id base = save(store, NULL, insert("base", "0"));
    int i, closed = 0;
    for (i = 0; i < THREADS; i++) {
        worker w;
        memset(&w, 0, sizeof w);
        w.store = store; w.base = base; w.number = i;
        workers[i] = w;
        assert_int_equal(pthread_create(&threads[i], NULL, save_and_read, &workers[i]), 0);
    }
    if (close_meanwhile) {
        struct timespec pause = { 0, 5000000 };
        nanosleep(&pause, NULL);
        OK(llvs_store_close(store, &error));
    }
    for (i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failures, 0);
        closed += workers[i].closed;
    }
    if (!close_meanwhile) {
        llvs_version_list *heads;
        assert_int_equal(closed, 0);
        assert_int_equal(version_count(store), THREADS * ROUNDS + 1);
        OK(llvs_store_heads(store, NULL, &heads, &error));
        assert_int_equal(heads->count, THREADS);
        llvs_version_list_free(heads);
    }
}

static void threads_share_a_handle(void **state) {
    llvs_store *store = memory_store();
    (void)state;
    run(store, 0);
    llvs_store_free(store);
}

static void a_store_may_be_closed_under_its_users(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_verify_report *report;
    (void)state;
    options.durability = LLVS_DURABILITY_NORMAL;
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    run(store, 1);
    llvs_store_free(store);
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    OK(llvs_store_verify(store, NULL, &report, &error));
    assert_int_equal(report->damage_count, 0);
    llvs_verify_report_free(report);
    llvs_store_free(store);
    free(path);
    remove_directory(directory);
}

typedef struct news { pthread_mutex_t lock; pthread_cond_t changed; int count, freed; llvs_observer *own; } news;

static void count_news(void *payload) {
    news *n = payload;
    llvs_observer *own;
    pthread_mutex_lock(&n->lock);
    n->count++;
    own = n->own;
    n->own = NULL;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    llvs_observer_free(own); /* from within: must not wait for itself */
}
static void news_freed(void *payload) {
    news *n = payload;
    pthread_mutex_lock(&n->lock);
    n->freed++;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}
static void wait_for(news *n, int *what, int at_least) {
    pthread_mutex_lock(&n->lock);
    while (*what < at_least) pthread_cond_wait(&n->changed, &n->lock);
    pthread_mutex_unlock(&n->lock);
}

static void observers_hear_of_news(void **state) {
    char *directory = new_directory();
    char urls[2][1100];
    int i;
    (void)state;
    snprintf(urls[0], sizeof urls[0], "memory:news");
    snprintf(urls[1], sizeof urls[1], "file://%s", directory);
    for (i = 0; i < 2; i++) {
        llvs_store *here = memory_store(), *there = memory_store();
        llvs_exchange *mine, *theirs;
        llvs_observer *observer;
        news n = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, NULL };
        int before;
        OK(llvs_exchange_open(here, llvs_str(urls[i]), NULL, &mine, &error));
        OK(llvs_exchange_open(there, llvs_str(urls[i]), NULL, &theirs, &error));
        OK(llvs_exchange_observe(mine, count_news, &n, news_freed, &observer, &error));
        save(there, NULL, insert("x", "1"));
        OK(llvs_exchange_send(theirs, NULL, NULL, &error));
        wait_for(&n, &n.count, 1);
        llvs_observer_free(observer);
        assert_int_equal(n.freed, 1);
        before = n.count;
        save(there, NULL, insert("y", "1"));
        OK(llvs_exchange_send(theirs, NULL, NULL, &error));
        assert_int_equal(n.count, before); /* no more calls */
        /* An observer that ends itself. */
        pthread_mutex_lock(&n.lock);
        OK(llvs_exchange_observe(mine, count_news, &n, news_freed, &n.own, &error));
        pthread_mutex_unlock(&n.lock);
        save(there, NULL, insert("z", "1"));
        OK(llvs_exchange_send(theirs, NULL, NULL, &error));
        wait_for(&n, &n.freed, 2);
        llvs_exchange_free(mine);
        llvs_exchange_free(theirs);
        llvs_store_free(here);
        llvs_store_free(there);
    }
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_a_handle),
        cmocka_unit_test(a_store_may_be_closed_under_its_users),
        cmocka_unit_test(observers_hear_of_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Handles of two dozen kinds, all of one store, are freed in random orders, by one thread and by two. A process ends with all of them
 * open. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "support.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "array_storage.h"
#include "child.h"
#include "array_transport.h"

enum { HANDLES_MAX = 40, SHUFFLES = 300, THREADS = 4 };

typedef struct handle { void *handle; void (*release)(void *handle); llvs_status (*use)(void *handle); } handle;
typedef struct bunch {
    handle handles[HANDLES_MAX];
    size_t count;
    int payloads_made, payloads_freed;
} bunch;

static uint64_t seed = 1;
static size_t below(size_t limit) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % limit;
}
static void add(bunch *b, void *made, void (*release)(void *), llvs_status (*use)(void *)) {
    assert_non_null(made);
    assert_true(b->count < HANDLES_MAX);
    b->handles[b->count].handle = made;
    b->handles[b->count].release = release;
    b->handles[b->count++].use = use;
}
static void free_payload(void *payload) { __atomic_add_fetch(&((bunch *)payload)->payloads_freed, 1, __ATOMIC_SEQ_CST); }
static bunch *payload_of(bunch *b) {
    b->payloads_made++;
    return b;
}

/* Releases and uses of each kind, as functions of one type. A use after others were freed succeeds, or reports that something is closed. */
#define RELEASE(type) static void release_##type(void *handle) { llvs_##type##_free(handle); }
RELEASE(store)
RELEASE(coordinator) RELEASE(exchange) RELEASE(snapshot) RELEASE(arbiter) RELEASE(transport) RELEASE(storage) RELEASE(version_list)
    RELEASE(value_list) RELEASE(value_block) RELEASE(change_cursor) RELEASE(change_list) RELEASE(history_cursor) RELEASE(value_reader)
        RELEASE(verify_report) RELEASE(exchange_result) RELEASE(cancel_token) RELEASE(observer) RELEASE(error)

            static llvs_status use_store(void *store) {
    llvs_change change = insert("used", "again");
    llvs_version_list *heads;
    llvs_status status = llvs_store_heads(store, NULL, &heads, NULL);
    if (status != LLVS_OK) return status;
    status = llvs_store_make_version(store, heads->items[0]->id, &change, 1, sizeof change, NULL, NULL, NULL, NULL);
    llvs_version_list_free(heads);
    return status;
}
static llvs_status use_coordinator(void *coordinator) {
    llvs_change change = insert("saved", "again");
    return llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, NULL, NULL, NULL, NULL);
}
static llvs_status use_exchange(void *exchange) {
    llvs_status status = llvs_exchange_send(exchange, NULL, NULL, NULL);
    return status == LLVS_OK ? llvs_exchange_retrieve(exchange, NULL, NULL, NULL) : status;
}
static llvs_status use_versions(void *list) { return ((llvs_version_list *)list)->items[0]->id.size > 0 ? LLVS_OK : LLVS_ERROR_IO; }
static llvs_status use_values(void *list) { return ((llvs_value_list *)list)->items[0]->data.size > 0 ? LLVS_OK : LLVS_ERROR_IO; }
static llvs_status use_block(void *block) { return ((llvs_value_block *)block)->count > 0 ? LLVS_OK : LLVS_ERROR_IO; }
static llvs_status use_changes(void *cursor) {
    llvs_change_list *page;
    llvs_status status = llvs_change_cursor_next(cursor, 0, 1, &page, NULL);
    if (status == LLVS_OK) llvs_change_list_free(page);
    return status;
}
static llvs_status use_history(void *cursor) {
    llvs_version_list *page;
    llvs_status status = llvs_history_cursor_next(cursor, 1, NULL, &page, NULL);
    if (status == LLVS_OK) llvs_version_list_free(page);
    return status;
}
static llvs_status use_reader(void *reader) {
    char letter;
    size_t size;
    return llvs_value_reader_read(reader, 0, &letter, 1, &size, NULL);
}
static void hear(void *payload, llvs_log_level level, const llvs_bytes *message) { (void)payload; (void)level; (void)message; }
static void notified(void *payload) { (void)payload; }
static void moved(void *payload, const llvs_version_id *version) { (void)payload; (void)version; }
static llvs_status resolve(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    (void)payload; (void)merge; (void)resolution; (void)error;
    return LLVS_OK;
}

/* Opens handles on a store in a directory, or, if `path` is NULL, in the host's arrays. */
static void make_all(bunch *b, const char *path, const char *url, array_area *area) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator_options coordinating = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_transport_callbacks transporting = array_transport_callbacks();
    llvs_storage *storage = NULL;
    llvs_store *store;
    llvs_coordinator *coordinator;
    llvs_exchange *exchange;
    llvs_transport *transport;
    llvs_arbiter *arbiter, *builtin;
    llvs_observer *observer;
    llvs_version_list *versions;
    llvs_value_list *values;
    llvs_value_block *block;
    llvs_change_cursor *changes;
    llvs_change_list *page;
    llvs_history_cursor *history;
    llvs_value_reader *reader;
    llvs_verify_report *report;
    llvs_exchange_result *result;
    llvs_snapshot *snapshot;
    llvs_cancel_token *token;
    llvs_version_id id;
    llvs_change change = insert("x", "1");
    options.durability = LLVS_DURABILITY_NORMAL;
    if (!path) {
        llvs_storage_callbacks storing = array_storage_callbacks();
        array_storage *arrays = calloc(1, sizeof *arrays);
        assert_non_null(arrays);
        OK(llvs_storage_create(llvs_str("array"), &storing, arrays, array_storage_free, &storage, &error));
        options.storage = LLVS_STORAGE_HOST;
        options.host_storage = storage;
        add(b, storage, release_storage, NULL);
    }
    OK(llvs_arbiter_create(resolve, payload_of(b), free_payload, NULL, &arbiter, &error));
    OK(llvs_arbiter_builtin(LLVS_ARBITER_OURS, &builtin, &error));
    add(b, arbiter, release_arbiter, NULL);
    add(b, builtin, release_arbiter, NULL);
    coordinating.store = &options;
    coordinating.arbiter = arbiter;
    OK(llvs_coordinator_open(path ? llvs_str(path) : LLVS_NONE, &coordinating, &coordinator, &error));
    OK(llvs_coordinator_attach(coordinator, llvs_str(url), NULL, &error));
    add(b, coordinator, release_coordinator, use_coordinator);
    OK(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, &id, NULL, NULL, &error));
    OK(llvs_coordinator_store(coordinator, &store, &error));
    add(b, store, release_store, use_store);
    OK(llvs_coordinator_store(coordinator, &store, &error));
    add(b, store, release_store, use_store);
    if (path) {
        llvs_store *second;
        OK(llvs_store_open(llvs_str(path), &options, &second, &error));
        add(b, second, release_store, use_store);
    }
    OK(llvs_transport_create(llvs_str("array"), &transporting, area, NULL, &transport, &error));
    add(b, transport, release_transport, NULL);
    OK(llvs_exchange_open(store, LLVS_NONE, through(transport), &exchange, &error));
    add(b, exchange, release_exchange, use_exchange);
    OK(llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error));
    add(b, exchange, release_exchange, use_exchange);
    OK(llvs_exchange_send(exchange, NULL, &result, &error));
    add(b, result, release_exchange_result, NULL);
    OK(llvs_exchange_put_snapshot(exchange, NULL, &snapshot, &error));
    add(b, snapshot, release_snapshot, NULL);
    OK(llvs_exchange_observe(exchange, notified, payload_of(b), free_payload, &observer, &error));
    add(b, observer, release_observer, NULL);
    OK(llvs_coordinator_observe(coordinator, moved, payload_of(b), free_payload, &observer, &error));
    add(b, observer, release_observer, NULL);
    OK(llvs_coordinator_observe_exchanges(coordinator, notified, payload_of(b), free_payload, &observer, &error));
    add(b, observer, release_observer, NULL);
    OK(llvs_log_observe(LLVS_LOG_DEBUG, hear, payload_of(b), free_payload, &observer, &error));
    add(b, observer, release_observer, NULL);
    OK(llvs_store_heads(store, NULL, &versions, &error));
    add(b, versions, release_version_list, use_versions);
    OK(llvs_store_enumerate(store, llvs_id(&id), NULL, &values, &error));
    add(b, values, release_value_list, use_values);
    OK(llvs_store_enumerate_block(store, llvs_id(&id), NULL, &block, &error));
    add(b, block, release_value_block, use_block);
    OK(llvs_store_changes(store, llvs_id(&id), NULL, NULL, &changes, &error));
    OK(llvs_change_cursor_next(changes, 0, 1, &page, &error));
    add(b, changes, release_change_cursor, use_changes);
    add(b, page, release_change_list, NULL);
    OK(llvs_store_history(store, NULL, NULL, &history, &error));
    add(b, history, release_history_cursor, use_history);
    OK(llvs_store_open_value(store, llvs_str("x"), llvs_id(&id), &reader, NULL, NULL, &error));
    add(b, reader, release_value_reader, use_reader);
    OK(llvs_store_verify(store, NULL, &report, &error));
    add(b, report, release_verify_report, NULL);
    OK(llvs_cancel_token_create(&token, &error));
    add(b, token, release_cancel_token, NULL);
    add(b, llvs_error_create(1, llvs_str("made")), release_error, NULL);
}

static void shuffle(bunch *b) {
    for (size_t i = b->count; i > 1; i--) {
        size_t other = below(i);
        handle moving = b->handles[i - 1];
        b->handles[i - 1] = b->handles[other];
        b->handles[other] = moving;
    }
}
static void use_some(const bunch *b, size_t from) {
    for (size_t i = from; i < b->count; i++) {
        llvs_status status = b->handles[i].use && below(4) == 0 ? b->handles[i].use(b->handles[i].handle) : LLVS_OK;
        if (status != LLVS_OK && status != LLVS_ERROR_CLOSED) fail_msg("handle %zu of %zu: %s", i, b->count, llvs_status_name(status));
    }
}

static void freed_in_shuffled_orders(void **state) {
    (void)state;
    for (int round = 0; round < SHUFFLES; round++) {
        char *directory = round % 3 == 0 ? new_directory() : NULL, *path = directory ? join(directory, "store") : NULL, url[40];
        array_area *area = calloc(1, sizeof *area);
        bunch b = {{{0}}, 0, 0, 0};
        assert_non_null(area);
        seed = (uint64_t)round + 1;
        snprintf(url, sizeof url, "memory:any-order-%d", round);
        make_all(&b, path, url, area);
        shuffle(&b);
        for (size_t i = 0; i < b.count; i++) {
            if (round % 2) use_some(&b, i);
            b.handles[i].release(b.handles[i].handle);
        }
        assert_int_equal(b.payloads_freed, b.payloads_made);
        if (path) { /* the store is no longer locked, and it is healthy */
            llvs_store *store;
            llvs_verify_report *report;
            OK(llvs_store_open(llvs_str(path), NULL, &store, &error));
            OK(llvs_store_verify(store, NULL, &report, &error));
            assert_null(report->damages[0]);
            assert_true(report->versions >= 1);
            llvs_verify_report_free(report);
            llvs_store_free(store);
            free(path);
            remove_directory(directory);
        }
        area_free(area);
    }
}

/* Two threads free one half each. */
typedef struct half { bunch *b; size_t first; } half;
static void *free_half(void *payload) {
    half *h = payload;
    for (size_t i = h->first; i < h->b->count; i += 2) h->b->handles[i].release(h->b->handles[i].handle);
    return NULL;
}
static void freed_by_two_threads_at_once(void **state) {
    (void)state;
    for (int round = 0; round < SHUFFLES; round++) {
        char *directory = round % 6 == 0 ? new_directory() : NULL, *path = directory ? join(directory, "store") : NULL, url[40];
        array_area *area = calloc(1, sizeof *area);
        bunch b = {{{0}}, 0, 0, 0};
        half halves[2] = {{&b, 0}, {&b, 1}};
        pthread_t threads[2];
        assert_non_null(area);
        seed = (uint64_t)round + 1000;
        snprintf(url, sizeof url, "memory:two-threads-%d", round);
        make_all(&b, path, url, area);
        shuffle(&b);
        for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, free_half, &halves[i]), 0);
        for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(b.payloads_freed, b.payloads_made);
        if (path) {
            free(path);
            remove_directory(directory);
        }
        area_free(area);
    }
}

/* ---- The end of the process ---- */

/* Memory shared with the child, which ends in the middle of its work. */
typedef struct acknowledged { uint32_t count; char ids[100000][LLVS_VERSION_ID_SIZE_MAX + 1]; } acknowledged;
typedef struct job { llvs_store *store; acknowledged *shared; int number; } job;

static void *commit_for_ever(void *payload) {
    job *j = payload;
    for (int i = 0;; i++) {
        char name[32];
        llvs_change change;
        llvs_version_id id;
        llvs_buffer data;
        llvs_status status;
        snprintf(name, sizeof name, "%d/%d", j->number, i);
        change = insert(name, name);
        status = llvs_store_make_version(j->store, LLVS_NONE, &change, 1, sizeof change, NULL, &id, NULL, NULL);
        if (status == LLVS_ERROR_CLOSED || status == LLVS_ERROR_INVALID_ARGUMENT) return NULL; /* closed by the thread that ends the
                                                                                                * process */
        if (status != LLVS_OK) _exit(90);
        uint32_t at = __atomic_fetch_add(&j->shared->count, 1, __ATOMIC_SEQ_CST);
        if (at >= 100000) _exit(91);
        /* The process may end between any two bytes. The first byte marks the id as complete. */
        memcpy(j->shared->ids[at] + 1, id.text + 1, id.size - 1);
        __atomic_store_n(&j->shared->ids[at][0], id.text[0], __ATOMIC_SEQ_CST);
        if (llvs_store_value(j->store, llvs_str(name), llvs_id(&id), &data, NULL, NULL) == LLVS_OK) llvs_buffer_dispose(&data);
        if (i % 10 == 9) MAY_FAIL(llvs_store_reload(j->store, NULL, NULL, NULL));
    }
}

static llvs_store *open_at_exit;
static void close_at_exit(void) { if (llvs_store_close(open_at_exit, NULL) != LLVS_OK) _exit(92); }
static llvs_status exit_within(void *payload, const llvs_progress *progress, llvs_error **error) {
    (void)payload; (void)progress; (void)error;
    exit(0);
}
static void *exit_elsewhere(void *payload) {
    (void)payload;
    exit(0);
}

/* How the child ends: 0 by exit; 1 by exit, with a cleanup that closes the store under the threads; 2 within a callback; 3 in another
 * thread. */
static void end_with_all_open(const char *path, const char *url, int how, int delay, acknowledged *shared) {
    bunch *b = calloc(1, sizeof *b);
    array_area *area = calloc(1, sizeof *area);
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_verify_report *report;
    job jobs[THREADS];
    pthread_t thread;
    struct timespec pause = {0, delay * 1000000L};
    make_all(b, path, url, area);
    options.durability = LLVS_DURABILITY_NORMAL;
    OK(llvs_store_open(llvs_str(path), &options, &open_at_exit, &error));
    for (int i = 0; i < THREADS; i++) {
        job j = {open_at_exit, shared, i};
        jobs[i] = j;
        if (pthread_create(&thread, NULL, commit_for_ever, &jobs[i]) != 0) _exit(93);
        pthread_detach(thread);
    }
    /* Free the handles in the middle of the other threads' work, at a different moment each time. */
    while (__atomic_load_n(&shared->count, __ATOMIC_SEQ_CST) == 0) nanosleep(&pause, NULL);
    nanosleep(&pause, NULL);
    control.progress = exit_within;
    switch (how) {
    case 1: if (atexit(close_at_exit) != 0) _exit(94); break;
    case 2: MAY_FAIL(llvs_store_verify(open_at_exit, &control, &report, NULL)); _exit(95);
    case 3: if (pthread_create(&thread, NULL, exit_elsewhere, NULL) != 0) _exit(96); for (;;) nanosleep(&pause, NULL);
    default: break;
    }
    exit(0);
}

static void a_process_ends_with_handles_open_and_threads_at_work(void **state) {
    acknowledged *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t all = 0;
    (void)state;
    assert_true(shared != MAP_FAILED);
    for (int round = 0; round < 24; round++) {
        char *directory = new_directory(), *path = join(directory, "store");
        llvs_store *store;
        llvs_verify_report *report;
        int status;
        uint32_t count;
        pid_t child;
        memset(shared, 0, sizeof shared->count + sizeof shared->ids[0] * (shared->count + 1 < 100000 ? shared->count + 1 : 100000));
        fflush(NULL);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) end_with_all_open(path, "memory:the-end", round % 4, 1 + round * 2, shared);
        assert_int_equal(wait_for_child(child, 60, &status, NULL), child);
        if (status != 0)
            fail_msg("the child of round %d ended with %s %d", round, WIFSIGNALED(status) ? "signal" : "status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        OK(llvs_store_open(llvs_str(path), NULL, &store, &error));
        count = shared->count;
        all += count;
        for (uint32_t i = 0; i < count; i++) {
            llvs_version_list *version;
            if (!shared->ids[i][0]) continue; /* the id was not complete yet */
            OK(llvs_store_version(store, llvs_str(shared->ids[i]), &version, &error));
            if (!version) fail_msg("%s was acknowledged before the process ended, and is lost", shared->ids[i]);
            llvs_version_list_free(version);
        }
        OK(llvs_store_verify(store, NULL, &report, &error));
        assert_null(report->damages[0]);
        llvs_verify_report_free(report);
        save(store, NULL, insert("afterwards", "1"));
        llvs_store_free(store);
        free(path);
        remove_directory(directory);
    }
    assert_true(all > 0); /* the threads were at work */
    munmap(shared, sizeof *shared);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* This test is the first: its child must be forked from a process without threads. */
        cmocka_unit_test(a_process_ends_with_handles_open_and_threads_at_work),
        cmocka_unit_test(freed_in_shuffled_orders),
        cmocka_unit_test(freed_by_two_threads_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

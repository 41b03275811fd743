/* Callbacks that leave the library with longjmp, and observers that wait for each other. Nothing hangs, and the next call of the thread
   works or reports what happened. */
#include "support.h"

#include <pthread.h>
#include <sched.h>

#include "array_storage.h"
#include "array_transport.h"
#include "folder_snapshots.h"

static jmp_buf away;
static const char *jumping = "";
#define JUMPS(name) do { if (strcmp(jumping, name) == 0) { jumping = ""; longjmp(away, 1); } } while (0)
/* The call leaves the library by a jump, so its status is not returned. */
#define LEAVES(name, call)                                              \
    do {                                                                \
        jumping = (name);                                               \
        if (setjmp(away) == 0) {                                        \
            llvs_status status_ = (call);                               \
            fail_msg("%s did not jump (%d)", (name), status_);          \
        }                                                               \
    } while (0)

/* A call of another thread, which must complete too. */
static void *run_it(void *argument) {
    void (*body)(void) = *(void (**)(void))argument;
    body();
    return NULL;
}
static void elsewhere(void (*body)(void)) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_it, &body), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- arbiters, sources, progress, in a coordinator ---- */

static llvs_coordinator *coordinator;
static llvs_store *store;
static llvs_version_id sides[2];

static llvs_status resolve(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    (void)payload; (void)merge; (void)resolution; (void)error;
    JUMPS("resolve");
    return LLVS_PASS;
}
static llvs_status read_piece(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **error) {
    (void)payload; (void)buffer; (void)capacity; (void)size; (void)error;
    JUMPS("read");
    return LLVS_END;
}
static llvs_status hear(void *payload, const llvs_progress *progress, llvs_error **error) {
    (void)payload; (void)progress; (void)error;
    JUMPS("progress");
    return LLVS_OK;
}
static void moved(void *payload, const llvs_version_id *version) {
    (void)payload; (void)version;
    JUMPS("moved");
}
static void said(void *payload, llvs_log_level level, const llvs_bytes *message) {
    (void)payload; (void)level; (void)message;
    JUMPS("said");
}

static void save_plainly(void) {
    llvs_change change = insert("elsewhere", "1");
    change.kind = LLVS_CHANGE_UPDATE;
    OK(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error));
}

static void coordinators(void **state) {
    llvs_store_options memory = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_version_options pieces = LLVS_VERSION_OPTIONS_INIT;
    llvs_value_source source = LLVS_VALUE_SOURCE_INIT;
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_change change = insert("a", "0");
    llvs_arbiter *fallback, *arbiter;
    llvs_observer *observer;
    char *directory = new_directory();
    volatile int round;
    (void)state;
    memory.storage = LLVS_STORAGE_MEMORY;
    OK(llvs_arbiter_builtin(LLVS_ARBITER_MOST_RECENT_CHANGE, &fallback, &error));
    OK(llvs_arbiter_create(resolve, NULL, NULL, fallback, &arbiter, &error));
    options.store = &memory;
    options.arbiter = arbiter;
    OK(llvs_coordinator_open(LLVS_NONE, &options, &coordinator, &error));
    OK(llvs_coordinator_store(coordinator, &store, &error));
    OK(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, &sides[0], NULL, NULL, &error));
    OK(llvs_coordinator_observe(coordinator, moved, NULL, NULL, &observer, &error));
    source.id = llvs_str("pieces");
    source.read = read_piece;
    pieces.sources = &source;
    pieces.source_count = 1;
    pieces.source_size = sizeof source;
    control.progress = hear;
    change.kind = LLVS_CHANGE_UPDATE;
    for (round = 0; round < 3; round++) {
        LEAVES("read", llvs_coordinator_save(coordinator, NULL, 0, sizeof change, &pieces, NULL, NULL, NULL, NULL));
        save_plainly();
        elsewhere(save_plainly);
        OK(llvs_store_make_version(store, llvs_id(&sides[0]), &change, 1, sizeof change, NULL, NULL, NULL, &error));
        LEAVES("resolve", llvs_coordinator_merge(coordinator, NULL, NULL, NULL));
        save_plainly();
        elsewhere(save_plainly);
        OK(llvs_coordinator_merge(coordinator, NULL, NULL, &error));
        LEAVES("moved", llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, NULL, NULL, NULL, NULL));
        save_plainly();
        elsewhere(save_plainly);
        LEAVES("progress", write_snapshot_into(store, directory, &control, NULL));
        save_plainly();
        elsewhere(save_plainly);
        OK(write_snapshot_into(store, directory, &control, &error));
        change.data = llvs_bytes_make("0123456789" + round, 1);
    }
    /* A free right after it waits for nothing. */
    LEAVES("moved", llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, NULL, NULL, NULL, NULL));
    llvs_observer_free(observer);
    LEAVES("read", llvs_coordinator_save(coordinator, NULL, 0, sizeof change, &pieces, NULL, NULL, NULL, NULL));
    llvs_coordinator_free(coordinator);
    llvs_store_free(store);
    llvs_arbiter_free(arbiter);
    llvs_arbiter_free(fallback);
    remove_directory(directory);
}

/* ---- compaction, and the log ---- */

static llvs_store *compacted;
static void compact_plainly(void) {
    OK(llvs_store_compact(compacted, NULL, NULL, &error));
}

static void compaction(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_observer *observer;
    llvs_change change = insert("a", "1");
    int i;
    (void)state;
    options.compaction = LLVS_COMPACTION_ON_REQUEST;
    for (i = 0; i < 4; i++) {
        OK(llvs_store_open(llvs_str(path), &options, &compacted, &error));
        OK(llvs_store_make_version(compacted, LLVS_NONE, &change, 1, sizeof change, NULL, NULL, NULL, &error));
        OK(llvs_store_close(compacted, &error));
        llvs_store_free(compacted);
    }
    OK(llvs_store_open(llvs_str(path), &options, &compacted, &error));
    control.progress = hear;
    LEAVES("progress", llvs_store_compact(compacted, &control, NULL, NULL));
    OK(llvs_log_observe(LLVS_LOG_DEBUG, said, NULL, NULL, &observer, &error));
    compact_plainly();
    elsewhere(compact_plainly);
    llvs_observer_free(observer);
    OK(llvs_store_close(compacted, &error));
    llvs_store_free(compacted);
    remove_directory(directory);
}

/* ---- storages and transports ---- */

static llvs_status jumping_append(void *payload, const llvs_bytes *records, size_t count, uint64_t *places, llvs_error **error) {
    JUMPS("append");
    return array_append(payload, records, count, places, error);
}
static llvs_status jumping_read(void *payload, uint64_t place, uint64_t offset, uint8_t *buffer, size_t size, llvs_error **error) {
    JUMPS("read record");
    return array_read(payload, place, offset, buffer, size, error);
}
static llvs_status jumping_sync(void *payload, llvs_error **error) {
    JUMPS("sync");
    return array_sync(payload, error);
}
static llvs_status jumping_scan(void *payload, uint64_t *mark, llvs_reply *reply, llvs_error **error) {
    JUMPS("scan");
    return array_scan(payload, mark, reply, error);
}

static llvs_store *hosted;
static llvs_version_id first;
static void read_hosted(void) {
    llvs_buffer data = { NULL, 0 };
    llvs_error *error;
    llvs_status status = llvs_store_value(hosted, llvs_str("a"), llvs_id(&first), &data, NULL, &error);
    if (status != LLVS_OK && status != LLVS_ERROR_CLOSED) fail_msg("%s", llvs_error_message(error));
    llvs_error_free(error);
    llvs_buffer_dispose(&data);
}

static void storages(void **state) {
    static const char *const names[] = { "append", "sync", "read record", "scan" };
    volatile size_t k;
    size_t i;
    (void)state;
    for (k = 0; k < 4; k++) {
        array_storage *array = calloc(1, sizeof *array);
        llvs_storage_callbacks callbacks = array_storage_callbacks();
        llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
        llvs_storage *storage;
        llvs_change change = insert("a", "1");
        llvs_error *error;
        llvs_status status;
        assert_non_null(array);
        callbacks.append = jumping_append;
        callbacks.read = jumping_read;
        callbacks.sync = jumping_sync;
        callbacks.scan = jumping_scan;
        OK(llvs_storage_create(llvs_str("array"), &callbacks, array, NULL, &storage, &error));
        options.storage = LLVS_STORAGE_HOST;
        options.host_storage = storage;
        OK(llvs_store_open(LLVS_NONE, &options, &hosted, &error));
        OK(llvs_store_make_version(hosted, LLVS_NONE, &change, 1, sizeof change, NULL, &first, NULL, &error));
        OK(llvs_store_close(hosted, &error));
        llvs_store_free(hosted);
        OK(llvs_store_open(LLVS_NONE, &options, &hosted, &error));
        change.kind = LLVS_CHANGE_UPDATE;
        if (k < 2) LEAVES(names[k], llvs_store_make_version(hosted, llvs_id(&first), &change, 1, sizeof change, NULL, NULL, NULL, NULL));
        else if (k == 2) {
            llvs_buffer data;
            LEAVES(names[k], llvs_store_value(hosted, llvs_str("a"), llvs_id(&first), &data, NULL, NULL));
        } else LEAVES(names[k], llvs_store_reload(hosted, NULL, NULL, NULL));
        /* The call succeeds, or reports what happened. */
        status = llvs_store_make_version(hosted, llvs_id(&first), &change, 1, sizeof change, NULL, NULL, NULL, &error);
        if (status != LLVS_OK) {
            assert_int_equal(status, LLVS_ERROR_CLOSED);
            assert_non_null(strstr(llvs_error_message(error), "did not return"));
        } else if (k == 0) fail_msg("half a version was gone on from");
        llvs_error_free(error);
        read_hosted();
        elsewhere(read_hosted);
        OK(llvs_store_close(hosted, &error));
        llvs_store_free(hosted);
        /* After reopening, everything exists. */
        OK(llvs_store_open(LLVS_NONE, &options, &hosted, &error));
        OK(llvs_store_make_version(hosted, llvs_id(&first), &change, 1, sizeof change, NULL, NULL, NULL, &error));
        llvs_store_free(hosted);
        llvs_storage_free(storage);
        for (i = 0; i < array->count; i++) free(array->records[i].data);
        for (i = 0; i < array->blob_count; i++) free(array->blobs[i].data);
        free(array);
    }
}

static llvs_status jumping_list(void *payload, llvs_reply *reply, llvs_error **error) {
    JUMPS("list");
    return area_list(payload, reply, error);
}
static llvs_exchange *exchange;
static void exchange_plainly(void) {
    OK(llvs_exchange_retrieve(exchange, NULL, NULL, &error));
    OK(llvs_exchange_send(exchange, NULL, NULL, &error));
}

static void transports(void **state) {
    array_area *area = calloc(1, sizeof *area);
    llvs_transport_callbacks callbacks = array_transport_callbacks();
    llvs_store *here = memory_store();
    llvs_transport *transport;
    (void)state;
    assert_non_null(area);
    callbacks.list = jumping_list;
    OK(llvs_transport_create(llvs_str("area"), &callbacks, area, NULL, &transport, &error));
    OK(llvs_exchange_open(here, LLVS_NONE, through(transport), &exchange, &error));
    LEAVES("list", llvs_exchange_retrieve(exchange, NULL, NULL, NULL));
    exchange_plainly();
    LEAVES("list", llvs_exchange_send(exchange, NULL, NULL, NULL));
    exchange_plainly();
    elsewhere(exchange_plainly);
    LEAVES("list", llvs_exchange_send(exchange, NULL, NULL, NULL));
    llvs_exchange_free(exchange);
    llvs_transport_free(transport);
    llvs_store_free(here);
    area_free(area);
}

/* ---- observers ---- */

typedef struct pair {
    llvs_observer *mine;
    pthread_barrier_t *meet;
    llvs_observer **other;
    int calls, frees;
} pair;

static void count_pair_free(void *payload) { __atomic_add_fetch(&((pair *)payload)->frees, 1, __ATOMIC_SEQ_CST); }
static void free_the_other(void *payload) {
    pair *me = payload;
    if (__atomic_add_fetch(&me->calls, 1, __ATOMIC_SEQ_CST) > 1) return;
    pthread_barrier_wait(me->meet); /* both are inside */
    llvs_observer_free(*me->other);
    pthread_barrier_wait(me->meet);
}

static void observers_free_each_other(void **state) {
    int round;
    (void)state;
    for (round = 0; round < 20; round++) {
        array_area *area = calloc(1, sizeof *area);
        llvs_transport_callbacks callbacks = array_transport_callbacks();
        llvs_store *here = memory_store();
        llvs_transport *transports[2];
        llvs_exchange *exchanges[2];
        pthread_barrier_t meet;
        pair pairs[2];
        int i;
        memset(pairs, 0, sizeof pairs);
        assert_non_null(area);
        pthread_barrier_init(&meet, NULL, 3);
        for (i = 0; i < 2; i++) {
            OK(llvs_transport_create(llvs_str("area"), &callbacks, area, NULL, &transports[i], &error));
            OK(llvs_exchange_open(here, LLVS_NONE, through(transports[i]), &exchanges[i], &error));
            pairs[i].meet = &meet;
            pairs[i].other = &pairs[1 - i].mine;
            OK(llvs_exchange_observe(exchanges[i], free_the_other, &pairs[i], count_pair_free, &pairs[i].mine, &error));
        }
        for (i = 0; i < 2; i++) OK(llvs_transport_notify(transports[i], &error));
        pthread_barrier_wait(&meet);
        pthread_barrier_wait(&meet); /* both were freed while both ran */
        for (i = 0; i < 2; i++) {
            llvs_exchange_free(exchanges[i]);
            llvs_transport_free(transports[i]);
        }
        for (i = 0; i < 2; i++)
            while (__atomic_load_n(&pairs[i].frees, __ATOMIC_SEQ_CST) == 0) sched_yield();
        assert_int_equal(pairs[0].frees, 1);
        assert_int_equal(pairs[1].frees, 1);
        pthread_barrier_destroy(&meet);
        llvs_store_free(here);
        area_free(area);
    }
}

typedef struct locked {
    pthread_mutex_t mutex;
    pthread_barrier_t inside;
    int calls, frees;
} locked;
static void count_locked_free(void *payload) { __atomic_add_fetch(&((locked *)payload)->frees, 1, __ATOMIC_SEQ_CST); }
static void take_the_lock(void *payload) {
    locked *l = payload;
    if (__atomic_add_fetch(&l->calls, 1, __ATOMIC_SEQ_CST) == 1) pthread_barrier_wait(&l->inside);
    pthread_mutex_lock(&l->mutex);
    pthread_mutex_unlock(&l->mutex);
}

static void cancelling_under_a_lock(void **state) {
    array_area *area = calloc(1, sizeof *area);
    llvs_transport_callbacks callbacks = array_transport_callbacks();
    llvs_store *here = memory_store();
    llvs_transport *transport;
    llvs_exchange *open;
    llvs_observer *observer;
    locked l;
    (void)state;
    memset(&l, 0, sizeof l);
    assert_non_null(area);
    pthread_mutex_init(&l.mutex, NULL);
    pthread_barrier_init(&l.inside, NULL, 2);
    OK(llvs_transport_create(llvs_str("area"), &callbacks, area, NULL, &transport, &error));
    OK(llvs_exchange_open(here, LLVS_NONE, through(transport), &open, &error));
    OK(llvs_exchange_observe(open, take_the_lock, &l, count_locked_free, &observer, &error));
    pthread_mutex_lock(&l.mutex);
    OK(llvs_transport_notify(transport, &error));
    pthread_barrier_wait(&l.inside); /* the callback waits for our lock */
    llvs_observer_cancel(observer);
    assert_int_equal(__atomic_load_n(&l.frees, __ATOMIC_SEQ_CST), 0);
    OK(llvs_transport_notify(transport, &error));
    pthread_mutex_unlock(&l.mutex);
    llvs_observer_free(observer);
    assert_int_equal(l.calls, 1);
    while (__atomic_load_n(&l.frees, __ATOMIC_SEQ_CST) == 0) sched_yield();
    assert_int_equal(l.frees, 1);
    llvs_observer_cancel(NULL);
    llvs_exchange_free(open);
    llvs_transport_free(transport);
    llvs_store_free(here);
    area_free(area);
    pthread_mutex_destroy(&l.mutex);
    pthread_barrier_destroy(&l.inside);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinators),
        cmocka_unit_test(compaction),
        cmocka_unit_test(storages),
        cmocka_unit_test(transports),
        cmocka_unit_test(observers_free_each_other),
        cmocka_unit_test(cancelling_under_a_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

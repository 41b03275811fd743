/*
 * Every operation of a commit, a merge and an exchange fails in turn, in each possible way. Everything acknowledged exists afterwards, the
 * store still works, and refused operations can be repeated.
 */
#include "support.h"

#include <time.h>

#include "llvs_testing.h"
#include "array_storage.h"
#include "array_transport.h"

/* ---- the storages and places ---- */

enum { IN_FILES, IN_SQLITE, IN_THE_HOST, KINDS };
static const char *const kind_names[] = { "file", "sqlite", "host" };

typedef struct world {
    int kind;
    char *directory;
    array_storage *array;
    array_area *area;
    /* Counts the faults. */
    llvs_faults *faults;
} world;

static void make_world(world *w, int kind, uint64_t seed) {
    w->kind = kind;
    w->directory = new_directory();
    w->array = calloc(1, sizeof *w->array);
    w->area = calloc(1, sizeof *w->area);
    assert_non_null(w->array);
    assert_non_null(w->area);
    OK(llvs_faults_create(seed, &w->faults, &error));
}
static void end_world(world *w) {
    llvs_faults_free(w->faults);
    array_storage_free(w->array);
    area_free(w->area);
    remove_directory(w->directory);
}

/* The store's storage, without faults. */
static llvs_storage *plain_storage(world *w) {
    llvs_storage *storage = NULL;
    if (w->kind == IN_THE_HOST) {
        llvs_storage_callbacks callbacks = array_storage_callbacks();
        OK(llvs_storage_create(llvs_str("array"), &callbacks, w->array, NULL, &storage, &error));
    } else {
        llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
        char *path = join(w->directory, "store");
        options.storage = w->kind == IN_FILES ? LLVS_STORAGE_FILE : LLVS_STORAGE_SQLITE;
        OK(llvs_testing_storage(llvs_str(path), &options, &storage, &error));
        free(path);
    }
    return storage;
}
static llvs_transport *plain_transport(world *w) {
    llvs_transport *transport = NULL;
    llvs_transport_callbacks callbacks = array_transport_callbacks();
    OK(llvs_transport_create(llvs_str("array"), &callbacks, w->area, NULL, &transport, &error));
    return transport;
}

static llvs_status open_store(llvs_storage *storage, llvs_store **store, llvs_error **error) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    options.storage = LLVS_STORAGE_HOST;
    options.host_storage = storage;
    options.memory_budget = 1 << 16; /* so that the store reads from the storage */
    return llvs_store_open(LLVS_NONE, &options, store, error);
}

/* ---- acknowledged versions ---- */

typedef struct promises {
    struct { llvs_version_id id; char key[16], value[16]; } kept[64];
    size_t count;
    int refusals, unknown;
} promises;

static void promise(promises *p, llvs_version_id id, const char *key, const char *value) {
    assert_true(p->count < 64);
    p->kept[p->count].id = id;
    snprintf(p->kept[p->count].key, 16, "%s", key);
    snprintf(p->kept[p->count++].value, 16, "%s", value);
}

/* Whether a call was acknowledged. It may fail only because of an injected fault. */
static int acknowledged(promises *p, llvs_status status, llvs_error **error, const char *what) {
    const char *message = llvs_error_message(*error);
    int done = status == LLVS_OK;
    if (!done) {
        p->refusals++;
        if (status == LLVS_ERROR_UNKNOWN_OUTCOME) p->unknown++;
        if (!strstr(message, "injected fault") && status != LLVS_ERROR_DAMAGED)
            fail_msg("%s fails with %s, which is not our fault: %s", what, llvs_status_name(status), message);
        if (strlen(message) < 10) fail_msg("%s fails with %s and says \"%s\"", what, llvs_status_name(status), message);
    }
    llvs_error_free(*error);
    *error = NULL;
    return done;
}

/* Saves a version under a given id. */
static int commit(promises *p, llvs_store *store, const char *id, const char *predecessor, const char *key, const char *value) {
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_version_id made;
    llvs_change change = update(key, value);
    llvs_error *error = NULL;
    options.id = llvs_str(id);
    if (!acknowledged(p, llvs_store_make_version(store, llvs_str(predecessor), &change, 1, sizeof change, &options, &made, NULL, &error),
                      &error, id))
        return 0;
    promise(p, made, key, value);
    return 1;
}

/* ---- the work ---- */

static void exchange(promises *p, llvs_store *store, llvs_transport *transport) {
    llvs_exchange *ex = NULL;
    llvs_error *error = NULL;
    llvs_exchange_result *result = NULL;
    size_t i, count;
    const llvs_bytes *ids;
    if (!acknowledged(p, llvs_exchange_open(store, LLVS_NONE, through(transport), &ex, &error), &error, "opening an exchange")) return;
    if (acknowledged(p, llvs_exchange_retrieve(ex, NULL, &result, &error), &error, "retrieving")) {
        ids = result->retrieved;
        count = result->retrieved_count;
        for (i = 0; i < count; i++) {
            llvs_version_id id;
            memset(&id, 0, sizeof id);
            id.size = (uint32_t)ids[i].size;
            memcpy(id.text, ids[i].data, ids[i].size);
            if (bytes_are(ids[i], "theirs")) promise(p, id, "their", "value");
        }
    }
    llvs_exchange_result_free(result);
    error = NULL;
    acknowledged(p, llvs_exchange_send(ex, NULL, NULL, &error), &error, "sending");
    llvs_exchange_free(ex);
}

/* Commits, branches, an exchange with the versions of another store, a merge of all heads, and another commit. */
static void work(promises *p, llvs_store *store, llvs_transport *transport) {
    llvs_version_id merged;
    llvs_error *error = NULL;
    llvs_arbiter *arbiter = NULL;
    memset(&merged, 0, sizeof merged);
    commit(p, store, "first", "", "a", "1");
    if (p->count) {
        commit(p, store, "left", "first", "a", "2");
        commit(p, store, "right", "first", "b", "3");
    }
    exchange(p, store, transport);
    OK(llvs_arbiter_builtin(LLVS_ARBITER_MOST_RECENT_CHANGE, &arbiter, &error));
    {
        llvs_version_list *heads = NULL, *made = NULL;
        error = NULL;
        if (acknowledged(p, llvs_store_heads(store, NULL, &heads, &error), &error, "asking for the heads") && heads->count > 1) {
            const llvs_version_info *one = heads->items[0];
            const llvs_version_info *two = heads->items[1];
            error = NULL;
            if (acknowledged(p, llvs_store_merge(store, one->id, two->id, arbiter, NULL, &made, &error), &error, "merging")) {
                llvs_bytes id = made->items[0]->id;
                llvs_buffer data;
                merged.size = (uint32_t)id.size;
                memcpy(merged.text, id.data, id.size);
                /* The values that the merge shows count as acknowledged. */
                error = NULL;
                if (acknowledged(p, llvs_store_value(store, llvs_str("a"), llvs_id(&merged), &data, NULL, &error), &error, "reading") &&
                    data.data)
                    promise(p, merged, "a", (const char *)data.data);
                llvs_buffer_dispose(&data);
            }
            llvs_version_list_free(made);
        }
        llvs_version_list_free(heads);
    }
    llvs_arbiter_free(arbiter);
    if (merged.size) commit(p, store, "last", merged.text, "c", "4");
    exchange(p, store, transport);
}

/* ---- the results ---- */

/* The fault of the current run, for messages. */
static char now[300];

static void holds(promises *p, llvs_store *store, const char *when) {
    size_t i;
    for (i = 0; i < p->count; i++) {
        llvs_buffer data;
        llvs_error *error = NULL;
        llvs_status status = llvs_store_value(store, llvs_str(p->kept[i].key), llvs_id(&p->kept[i].id), &data, NULL, &error);
        if (status != LLVS_OK) fail_msg("%s: %s, version %s is lost: %s", now, when, p->kept[i].id.text, llvs_error_message(error));
        if (!data.data || strcmp((const char *)data.data, p->kept[i].value) != 0)
            fail_msg("%s: %s, \"%s\" of version %s is %s, not %s", now, when, p->kept[i].key, p->kept[i].id.text,
                     data.data ? (const char *)data.data : "not there", p->kept[i].value);
        llvs_buffer_dispose(&data);
    }
}

/* The other side has a version from the beginning, from a store of its own. */
static void leave_something(world *w) {
    llvs_store *theirs = memory_store();
    llvs_transport *transport = plain_transport(w);
    promises p;
    memset(&p, 0, sizeof p);
    assert_true(commit(&p, theirs, "theirs", "", "their", "value"));
    exchange(&p, theirs, transport);
    assert_int_equal(p.refusals, 0);
    llvs_transport_free(transport);
    llvs_store_free(theirs);
}

static struct { long faults, refusals, unknown, promised, runs; } totals;

/* One run of the work with one fault. Returns 0 if there was no such operation. */
static int run(int kind, llvs_fault *fault, uint64_t seed) {
    world w;
    promises p;
    llvs_storage *inner, *storage = NULL;
    llvs_transport *inner_transport, *transport = NULL;
    llvs_store *store = NULL;
    llvs_error *error = NULL;
    llvs_buffer last;
    uint64_t injected;
    memset(&p, 0, sizeof p);
    make_world(&w, kind, seed);
    leave_something(&w);
    inner = plain_storage(&w);
    inner_transport = plain_transport(&w);
    OK(llvs_faults_storage(w.faults, inner, &storage, &error));
    OK(llvs_faults_transport(w.faults, inner_transport, &transport, &error));
    OK(llvs_faults_add(w.faults, fault, &error));
    if (acknowledged(&p, open_store(storage, &store, &error), &error, "opening the store")) {
        work(&p, store, transport);
        injected = llvs_faults_injected(w.faults);
        OK(llvs_faults_last(w.faults, &last, &error));
        snprintf(now, sizeof now, "%s storage, seed %lu, %.200s", kind_names[kind], (unsigned long)seed, (const char *)last.data);
        llvs_buffer_dispose(&last);
        OK(llvs_faults_clear(w.faults, &error));
        /* The same handle still works, and refused versions can be saved again under their ids. */
        holds(&p, store, "in the same handle");
        if (!commit(&p, store, "first", "", "a", "1") || !commit(&p, store, "left", "first", "a", "2") ||
            !commit(&p, store, "right", "first", "b", "3"))
            fail_msg("after %s, the store refuses saves", now);
        exchange(&p, store, transport);
        OK(llvs_store_close(store, &error));
    } else {
        injected = llvs_faults_injected(w.faults);
        OK(llvs_faults_clear(w.faults, &error));
    }
    llvs_store_free(store);
    llvs_storage_free(storage);
    llvs_transport_free(transport);

    /* Opened without faults, the store has everything, nothing is damaged, and a new store receives everything from the other side. */
    OK(open_store(inner, &store, &error));
    holds(&p, store, "after opening again");
    {
        llvs_verify_report *report = NULL;
        OK(llvs_store_verify(store, NULL, &report, &error));
        if (report->damage_count) fail_msg("%s: there is damage: %s", now, (const char *)report->damages[0]->message.data);
        llvs_verify_report_free(report);
    }
    assert_true(commit(&p, store, "first", "", "a", "1") && commit(&p, store, "left", "first", "a", "2"));
    {
        llvs_store *other = memory_store();
        promises q;
        memset(&q, 0, sizeof q);
        exchange(&q, store, inner_transport);
        exchange(&q, other, inner_transport);
        assert_int_equal(q.refusals, 0);
        holds(&p, other, "in another store");
        assert_int_equal(version_count(other), version_count(store));
        llvs_store_free(other);
    }
    llvs_store_free(store);
    llvs_storage_free(inner);
    llvs_transport_free(inner_transport);
    end_world(&w);
    totals.faults += (long)injected;
    totals.refusals += p.refusals;
    totals.unknown += p.unknown;
    totals.promised += (long)p.count;
    totals.runs++;
    return injected > 0;
}

static void each_operation_in_turn(int kind, llvs_fault_kind what, llvs_operations operations, uint64_t count) {
    llvs_fault fault = LLVS_FAULT_INIT;
    fault.kind = what;
    fault.operations = operations;
    fault.count = count;
    for (fault.first = 1; run(kind, &fault, fault.first); fault.first++) assert_true(fault.first < 2000);
    assert_true(fault.first > 2);
}

static void nothing_that_was_acknowledged_is_lost(void **state) {
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        memset(&totals, 0, sizeof totals);
        each_operation_in_turn(kind, LLVS_FAULT_FAIL, 0, 1);
        each_operation_in_turn(kind, LLVS_FAULT_LOSE_ACKNOWLEDGEMENT, 0, 1);
        each_operation_in_turn(kind, LLVS_FAULT_PARTIAL, 0, 1);
        /* From the n-th operation on, until the faults are cleared. */
        each_operation_in_turn(kind, LLVS_FAULT_FAIL, LLVS_OPERATIONS_STORAGE, 0);
        each_operation_in_turn(kind, LLVS_FAULT_FAIL, LLVS_OPERATIONS_TRANSPORT, 0);
        /* Reads return wrong bytes. */
        each_operation_in_turn(kind, LLVS_FAULT_CORRUPT, LLVS_OPERATION_READ | LLVS_OPERATION_CACHE_GET, 1);
        each_operation_in_turn(kind, LLVS_FAULT_CUT, LLVS_OPERATION_READ | LLVS_OPERATION_CACHE_GET, 1);
        each_operation_in_turn(kind, LLVS_FAULT_ABSENT, LLVS_OPERATION_READ | LLVS_OPERATION_CACHE_GET | LLVS_OPERATION_CACHE_PUT, 1);
        each_operation_in_turn(kind, LLVS_FAULT_CUT, LLVS_OPERATION_LIST | LLVS_OPERATION_FETCH_VERSIONS | LLVS_OPERATION_FETCH_CHANGES, 1);
        each_operation_in_turn(kind, LLVS_FAULT_CORRUPT, LLVS_OPERATION_LIST, 1);
        each_operation_in_turn(kind, LLVS_FAULT_ABSENT, LLVS_OPERATIONS_TRANSPORT, 1);
        printf("%-6s %ld runs, %ld faults, %ld refusals, %ld of them with an unknown outcome, %ld versions promised and found\n",
               kind_names[kind], totals.runs, totals.faults, totals.refusals, totals.unknown, totals.promised);
        assert_true(totals.faults > 100);
        assert_true(totals.refusals > 50);
        assert_true(totals.unknown > 5);
        assert_true(totals.promised > totals.runs);
    }
}

/* Many faults at once; the seed determines kinds, operations and probabilities. */
static void run_by_chance(uint64_t seed) {
    static const llvs_operations sets[] = { 0, LLVS_OPERATIONS_STORAGE, LLVS_OPERATIONS_TRANSPORT,
                                            LLVS_OPERATION_APPEND | LLVS_OPERATION_SYNC, LLVS_OPERATION_READ | LLVS_OPERATION_CACHE_GET };
    llvs_fault fault = LLVS_FAULT_INIT;
    uint64_t chance = seed * 6364136223846793005u + 1442695040888963407u;
    fault.operations = sets[(chance >> 33) % 5];
    fault.kind = (llvs_fault_kind)((chance >> 40) % 3); /* fail, lose the acknowledgement, do only a part */
    if (fault.operations == sets[4]) fault.kind = (llvs_fault_kind)(3 + (chance >> 40) % 3); /* bytes that are read are changed, cut or
                                                                                              * absent */
    fault.probability = (double)(1 + (chance >> 48) % 40) / 100;
    run((int)((chance >> 56) % KINDS), &fault, seed);
}

static void many_faults_at_once(void **state) {
    const char *minutes = getenv("LLVS_SOAK_MINUTES"), *first = getenv("LLVS_SOAK_SEED");
    uint64_t seed = minutes && first ? strtoull(first, NULL, 10) : 1;
    long runs = 0;
    (void)state;
    memset(&totals, 0, sizeof totals);
    if (minutes) {
        time_t end = time(NULL) + (time_t)(atof(minutes) * 60);
        for (; time(NULL) < end; seed++, runs++) run_by_chance(seed);
    } else {
        for (; runs < 80; seed++, runs++) run_by_chance(seed);
        assert_true(totals.faults > 100);
    }
    printf("by chance: %ld runs, %ld faults, %ld refusals, %ld of them with an unknown outcome, %ld versions promised and found\n",
           runs, totals.faults, totals.refusals, totals.unknown, totals.promised);
}

/* ---- the interface ---- */

static void faults_are_counted_and_repeat(void **state) {
    uint64_t counts[2];
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world w;
        llvs_storage *inner, *storage = NULL;
        llvs_store *store = NULL;
        llvs_fault fault = LLVS_FAULT_INIT;
        llvs_buffer last;
        llvs_version_id id;
        llvs_change change = insert("a", "1");
        int turn;
        make_world(&w, IN_THE_HOST, 77);
        inner = plain_storage(&w);
        OK(llvs_faults_storage(w.faults, inner, &storage, &error));
        OK(open_store(storage, &store, &error));
        assert_int_equal(llvs_faults_count(w.faults, LLVS_OPERATION_OPEN), 1);
        assert_int_equal(llvs_faults_count(w.faults, 0), llvs_faults_count(w.faults, LLVS_OPERATIONS_STORAGE));
        OK(llvs_faults_last(w.faults, &last, &error));
        assert_int_equal(last.size, 0);
        llvs_buffer_dispose(&last);
        OK(llvs_faults_reset(w.faults, &error));
        assert_int_equal(llvs_faults_count(w.faults, 0), 0);
        fault.operations = LLVS_OPERATION_APPEND;
        fault.probability = 0.4;
        fault.code = LLVS_ERROR_NO_SPACE;
        fault.delay_milliseconds = 1;
        OK(llvs_faults_add(w.faults, &fault, &error));
        for (turn = 0; turn < 50; turn++) {
            llvs_error *error = NULL;
            llvs_status status = llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, &id, NULL, &error);
            assert_true(status == LLVS_OK || status == LLVS_ERROR_NO_SPACE);
            llvs_error_free(error);
        }
        assert_int_equal(llvs_faults_count(w.faults, LLVS_OPERATION_APPEND), 50);
        counts[i] = llvs_faults_injected(w.faults);
        assert_true(counts[i] > 5 && counts[i] < 45);
        assert_int_equal(version_count(store), 50 - counts[i]);
        OK(llvs_faults_last(w.faults, &last, &error));
        assert_non_null(strstr((const char *)last.data, "append"));
        llvs_buffer_dispose(&last);
        llvs_store_free(store);
        llvs_storage_free(storage);
        llvs_storage_free(inner);
        end_world(&w);
    }
    assert_int_equal(counts[0], counts[1]);
}

/* A bit flipped below the store, or a record cut or lost there, is damage, and never leads to a wrong value. */
static void changed_bytes_never_come_out(void **state) {
    static const llvs_fault_kind kinds[] = { LLVS_FAULT_CORRUPT, LLVS_FAULT_CUT, LLVS_FAULT_ABSENT };
    uint64_t seed;
    int wrong = 0, damaged = 0;
    (void)state;
    for (seed = 0; seed < 60; seed++) {
        world w;
        llvs_storage *inner, *storage = NULL;
        llvs_store *store = NULL;
        llvs_fault fault = LLVS_FAULT_INIT;
        llvs_version_id id;
        llvs_buffer data;
        llvs_error *error = NULL;
        char text[400];
        memset(text, 'x', sizeof text - 1);
        text[sizeof text - 1] = 0;
        make_world(&w, IN_THE_HOST, seed);
        inner = plain_storage(&w);
        OK(llvs_faults_storage(w.faults, inner, &storage, &error));
        OK(open_store(storage, &store, &error));
        fault.kind = kinds[seed % 3];
        fault.operations = LLVS_OPERATION_APPEND;
        OK(llvs_faults_add(w.faults, &fault, &error));
        id = save(store, NULL, insert("a", text));
        llvs_store_free(store);
        OK(llvs_faults_clear(w.faults, &error));
        OK(open_store(storage, &store, &error));
        if (llvs_store_value(store, llvs_str("a"), llvs_id(&id), &data, NULL, &error) == LLVS_OK) {
            if (!data.data || strcmp((const char *)data.data, text) != 0) wrong++;
            llvs_buffer_dispose(&data);
        } else {
            damaged++;
        }
        llvs_error_free(error);
        llvs_store_free(store);
        llvs_storage_free(storage);
        llvs_storage_free(inner);
        end_world(&w);
    }
    assert_int_equal(wrong, 0);
    /* A flipped bit in the envelope's own checksums costs nothing. A cut or lost record always does. */
    assert_true(damaged >= 40 && damaged <= 60);
}

static void bad_rules_are_refused(void **state) {
    llvs_faults *faults = NULL;
    llvs_fault fault = LLVS_FAULT_INIT;
    llvs_storage *storage = NULL, *wrapped = NULL;
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_transport *transport = NULL;
    llvs_store *store = NULL, *second = NULL;
    llvs_buffer bytes;
    (void)state;
    OK(llvs_faults_create(0, &faults, &error));
    OK(llvs_faults_add(faults, &fault, &error));
    fault.kind = 7;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_faults_add(faults, &fault, &error));
    fault.kind = 0;
    fault.operations = 0x80000000u;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_faults_add(faults, &fault, &error));
    fault.operations = 0;
    fault.code = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_faults_add(faults, &fault, &error));
    fault.code = 0;
    fault.probability = 1.5;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_faults_add(faults, &fault, &error));
    fault.probability = 0;
    fault.reserved = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_faults_add(faults, &fault, &error));
    fault.reserved = 0;
    fault.struct_size = 8;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_faults_add(faults, &fault, &error));
    OK(llvs_faults_clear(faults, &error));

    options.storage = LLVS_STORAGE_HOST;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_testing_storage(llvs_str("x"), &options, &storage, &error));
    FAILS(LLVS_ERROR_UNSUPPORTED, llvs_testing_transport(llvs_str("gopher://x"), NULL, &transport, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_testing_transport(llvs_str("nothing"), NULL, &transport, &error));
    OK(llvs_testing_transport(llvs_str("memory:x"), NULL, &transport, &error));
    FAILS(LLVS_ERROR_UNSUPPORTED, llvs_transport_set_state(transport, llvs_str("state"), &error));
    OK(llvs_transport_state(transport, &bytes, &error));
    assert_int_equal(bytes.size, 0);
    llvs_buffer_dispose(&bytes);
    OK(llvs_transport_notify(transport, &error));
    llvs_transport_free(transport);

    /* A storage serves one store at a time, directly or wrapped. It is free again when the store is closed. */
    options.storage = LLVS_STORAGE_MEMORY;
    OK(llvs_testing_storage(LLVS_NONE, &options, &storage, &error));
    OK(llvs_faults_storage(faults, storage, &wrapped, &error));
    llvs_faults_free(faults);
    OK(open_store(wrapped, &store, &error));
    FAILS(LLVS_ERROR_BUSY, open_store(storage, &second, &error));
    FAILS(LLVS_ERROR_BUSY, open_store(wrapped, &second, &error));
    OK(llvs_store_close(store, &error));
    OK(open_store(wrapped, &second, &error));
    llvs_storage_free(wrapped);
    llvs_storage_free(storage);
    save(second, NULL, insert("a", "1"));
    llvs_store_free(second);
    llvs_store_free(store);
}

int main(void) {
    const struct CMUnitTest soak[] = { cmocka_unit_test(many_faults_at_once) };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_rules_are_refused),
        cmocka_unit_test(faults_are_counted_and_repeat),
        cmocka_unit_test(changed_bytes_never_come_out),
        cmocka_unit_test(nothing_that_was_acknowledged_is_lost),
        cmocka_unit_test(many_faults_at_once),
    };
    if (getenv("LLVS_SOAK_MINUTES")) return cmocka_run_group_tests(soak, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Exchanges, snapshots, the coordinator and observers, for memory_operations.h. */
#ifndef LLVS_TESTS_MEMORY_EXCHANGING_H
#define LLVS_TESTS_MEMORY_EXCHANGING_H

#include "memory_saving.h"

/* ---- Exchanges and snapshots ---- */
static void before_sending(world *w) {
    char url[400];
    snprintf(url, sizeof url, "file://%s", w->folder);
    NEED(llvs_exchange_open(w->store, llvs_str(url), NULL, &w->exchange, &error));
}
static llvs_status do_send(world *w, llvs_error **error) { return llvs_exchange_send(w->exchange, NULL, NULL, error); }
static void before_sending_to_memory(world *w) { NEED(llvs_exchange_open(w->store, llvs_str("memory:here"), NULL, &w->exchange, &error)); }
/* Replaces the world's exchange by one of another store of the same kind. */
static void turn(world *w, const char *url) {
    char path[400];
    llvs_exchange_free(w->exchange);
    snprintf(path, sizeof path, "%s-2", w->path);
    NEED(open_at(w, path, calloc(1, sizeof *w->array), &w->other, &error));
    NEED(llvs_exchange_open(w->other, llvs_str(url), NULL, &w->exchange, &error));
}
static void before_retrieving(world *w) {
    char url[400];
    snprintf(url, sizeof url, "file://%s", w->sent);
    turn(w, url);
}
static void before_retrieving_from_memory(world *w) {
    llvs_exchange *first;
    before_sending_to_memory(w);
    NEED(llvs_exchange_send(w->exchange, NULL, NULL, &error));
    first = w->exchange; /* the place exists as long as an exchange with it is open */
    w->exchange = NULL;
    turn(w, "memory:here");
    (void)first;
}
static llvs_status do_retrieve(world *w, llvs_error **error) {
    llvs_exchange_result *result = NULL;
    llvs_status status = llvs_exchange_retrieve(w->exchange, NULL, &result, error);
    size_t i;
    if (result) {
        for (i = 0; i < result->problem_count; i++) {
            fprintf(stderr, "problem %d: %s\n", result->problems[i]->code, (const char *)result->problems[i]->message.data);
            _exit(95);
        }
    }
    llvs_exchange_result_free(result);
    return status;
}
/* What was received is whole, and the rest can be received now. */
static void after_retrieving(world *w) {
    llvs_exchange_result *result;
    NEED(llvs_exchange_retrieve(w->exchange, NULL, &result, &error));
    if (result->problem_count) { fprintf(stderr, "problems behind it: %s\n", (const char *)result->problems[0]->message.data); _exit(96); }
    llvs_exchange_result_free(result);
    if (version_count(w->other) < CHAIN) _exit(97);
}
static llvs_status do_verify_exchange(world *w, llvs_error **error) {
    llvs_exchange_result *result = NULL;
    llvs_status status = llvs_exchange_verify(w->exchange, NULL, &result, error);
    if (result && result->problem_count) { fprintf(stderr, "problem: %s\n", (const char *)result->problems[0]->message.data); _exit(95); }
    llvs_exchange_result_free(result);
    return status;
}
static llvs_status do_put_snapshot(world *w, llvs_error **error) { return llvs_exchange_put_snapshot(w->exchange, NULL, NULL, error); }
/* What was added as a whole remains, and the rest can be added now. */
static void after_restoring(world *w) {
    llvs_status status = llvs_exchange_restore_snapshot(w->exchange, NULL, NULL, NULL);
    if (status != LLVS_OK && status != LLVS_ERROR_STORE_NOT_EMPTY) _exit(99);
    if (version_count(w->other) < CHAIN) _exit(97);
}
static llvs_status do_restore_snapshot(world *w, llvs_error **error) {
    return llvs_exchange_restore_snapshot(w->exchange, NULL, NULL, error);
}

/* ---- The coordinator, and observers ---- */
static void before_coordinating(world *w) {
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_store_options store = options_of(w);
    char path[400], url[400];
    options.store = &store;
    snprintf(path, sizeof path, "%s-3", w->path);
    snprintf(url, sizeof url, "file://%s", w->folder);
    NEED(llvs_coordinator_open(w->kind == LLVS_STORAGE_MEMORY ? LLVS_NONE : llvs_str(path), &options, &w->coordinator, &error));
    NEED(llvs_coordinator_attach(w->coordinator, llvs_str(url), NULL, &error));
    make_changes(w, 0, VALUES, 120, 50);
}
static llvs_status do_coordinator_save(world *w, llvs_error **error) {
    return llvs_coordinator_save(w->coordinator, w->changes, VALUES, sizeof *w->changes, NULL, NULL, NULL, NULL, error);
}
static void before_syncing(world *w) {
    char command[700];
    snprintf(command, sizeof command, "cp -r '%s' '%s'", w->sent, w->folder);
    if (system(command) != 0) _exit(93);
    before_coordinating(w);
    NEED(llvs_coordinator_save(w->coordinator, w->changes, 2000, sizeof *w->changes, NULL, NULL, NULL, NULL, &error));
}
static llvs_status do_sync(world *w, llvs_error **error) {
    llvs_sync_result *result = NULL;
    llvs_status status = llvs_coordinator_sync(w->coordinator, NULL, &result, error);
    if (result && result->before->problem_count) {
        fprintf(stderr, "problem: %s\n", (const char *)result->before->problems[0]->message.data);
        _exit(95);
    }
    llvs_sync_result_free(result);
    return status;
}
static void after_coordinating(world *w) {
    llvs_buffer data;
    NEED(do_coordinator_save(w, &error));
    NEED(llvs_coordinator_value(w->coordinator, llvs_str("value/000001"), &data, NULL, &error));
    if (data.size != 120) _exit(98);
    llvs_buffer_dispose(&data);
}
static void notice(void *payload) { (void)payload; }
static llvs_status do_observe(world *w, llvs_error **error) {
    llvs_observer *observer = NULL;
    llvs_status status = llvs_store_observe(w->store, notice, NULL, NULL, &observer, error);
    if (status == LLVS_OK) status = do_save_one(w, error);
    llvs_observer_free(observer);
    return status;
}

#endif

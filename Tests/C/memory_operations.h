/* Every operation of llvs.h that can run short of memory, for test_falling_memory.c. */
#ifndef LLVS_TESTS_MEMORY_OPERATIONS_H
#define LLVS_TESTS_MEMORY_OPERATIONS_H

#include "memory_world.h"

typedef struct operation {
    const char *name;
    /* Bits of the kinds of storage for which it runs. */
    unsigned storages;
    /* With memory for all it likes; may be NULL. */
    void (*prepare)(world *w);
    llvs_status (*run)(world *w, llvs_error **error);
    /* Looks, with memory again, what became of it; may be NULL. */
    void (*finish)(world *w);
    /* The version that is there when it succeeded; or NULL. */
    const char *saves;
} operation;

#define F (1u << LLVS_STORAGE_FILE)
#define S (1u << LLVS_STORAGE_SQLITE)
#define M (1u << LLVS_STORAGE_MEMORY)
#define H (1u << LLVS_STORAGE_HOST)
#define ALL (F | S | M | H)

/* ---- Opening ---- */
static void before_opening(world *w) {
    NEED(llvs_store_close(w->store, &error));
    llvs_store_free(w->store);
    w->store = NULL;
}
static llvs_status do_open(world *w, llvs_error **error) { return open_at(w, w->path, w->array, &w->store, error); }
/* Caches are derived, and made anew. */
static void before_opening_bare(world *w) {
    char command[700];
    before_opening(w);
    snprintf(command, sizeof command, "rm -rf '%s/cache' '%s-cache'*", w->path, w->path);
    if (system(command) != 0) _exit(93);
}
static void before_closing(world *w) {
    make_changes(w, 0, VALUES, 120, 9);
    NEED(save_as(w, "left", "new", VALUES, NULL, &error));
}
static llvs_status do_close(world *w, llvs_error **error) {
    llvs_status status = llvs_store_close(w->store, error);
    llvs_store_free(w->store);
    w->store = NULL;
    return status;
}
static void before_reloading(world *w) {
    llvs_store *mine = w->store;
    NEED(open_at(w, w->path, w->array, &w->other, &error));
    w->store = w->other;
    before_closing(w);
    w->store = mine;
}
static llvs_status do_reload(world *w, llvs_error **error) { return llvs_store_reload(w->store, NULL, error); }

/* ---- Saving ---- */
static void before_saving_one(world *w) { make_changes(w, 5, 1, 120, 50); }
static llvs_status do_save_one(world *w, llvs_error **error) { return save_as(w, "left", "new", 1, NULL, error); }
static void before_saving_many(world *w) { make_changes(w, 10000, 2 * VALUES, 120, 50); }
static llvs_status do_save_many(world *w, llvs_error **error) { return save_as(w, "left", "new", 2 * VALUES, NULL, error); }
static void before_saving_large(world *w) { make_changes(w, 5, 1, LARGE, 50); }
static void before_saving_a_row(world *w) { make_changes(w, 5, 64, 4000, 50); }
static llvs_status do_save_a_row(world *w, llvs_error **error) {
    llvs_status status = LLVS_OK;
    char id[32], before[32] = "left";
    int i;
    for (i = 0; i < 100 && status == LLVS_OK; i++) {
        snprintf(id, sizeof id, i == 99 ? "new" : "row-%d", i);
        status = save_as(w, before, id, 64, NULL, error);
        strcpy(before, id);
    }
    return status;
}
static llvs_status read_piece(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **error) {
    size_t *left = payload;
    (void)error;
    if (*left == 0) return LLVS_END;
    *size = capacity < *left ? capacity : *left;
    fill(buffer, *size, *left);
    *left -= *size;
    return LLVS_OK;
}
static llvs_status do_save_pieces(world *w, llvs_error **error) {
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_value_source source = LLVS_VALUE_SOURCE_INIT;
    size_t left = LARGE;
    options.id = llvs_str("new");
    options.sources = &source;
    options.source_count = 1;
    options.source_size = sizeof source;
    source.id = llvs_str("pieces");
    source.read = read_piece;
    source.payload = &left;
    return llvs_store_make_version(w->store, llvs_str("left"), NULL, 0, 0, &options, NULL, NULL, error);
}

/* ---- Reading ---- */
static llvs_status do_value(world *w, llvs_error **error) {
    llvs_buffer data;
    llvs_status status = llvs_store_value(w->store, llvs_str("large"), llvs_str("left"), &data, NULL, error);
    if (status == LLVS_OK && data.size != LARGE) _exit(94);
    llvs_buffer_dispose(&data);
    return status;
}
static llvs_status do_read_value(world *w, llvs_error **error) {
    size_t size;
    return llvs_store_read_value(w->store, llvs_str("large"), llvs_str("left"), w->bytes, LARGE, &size, NULL, error);
}
static llvs_status do_read_pieces(world *w, llvs_error **error) {
    llvs_value_reader *reader = NULL;
    uint64_t size, at;
    size_t got;
    llvs_status status = llvs_store_open_value(w->store, llvs_str("large"), llvs_str("left"), &reader, &size, NULL, error);
    for (at = 0; status == LLVS_OK && at < size; at += got) {
        status = llvs_value_reader_read(reader, at, w->bytes, 100000, &got, error);
        if (status == LLVS_OK && got == 0) _exit(94);
    }
    llvs_value_reader_free(reader);
    return status;
}
static void before_asking(world *w) { make_changes(w, 0, VALUES, 8, 50); }
static llvs_status do_values(world *w, llvs_error **error) {
    llvs_value_list *list = NULL;
    llvs_status status = llvs_store_values(w->store, w->ids, VALUES, llvs_str("left"), &list, error);
    llvs_value_list_free(list);
    return status;
}
/* Of a version here and there, far from any map. */
static llvs_status do_values_of_the_past(world *w, llvs_error **error) {
    llvs_value_list *list = NULL;
    llvs_status status = LLVS_OK;
    char id[32];
    int i;
    for (i = 0; i < CHAIN - 1 && status == LLVS_OK; i += 20) {
        snprintf(id, sizeof id, "chain-%d", i);
        status = llvs_store_values(w->store, w->ids, 40, llvs_str(id), &list, error);
        llvs_value_list_free(list);
    }
    return status;
}
static void before_asking_block(world *w) {
    size_t i;
    uint64_t *sizes = (uint64_t *)(void *)(w->bytes + MEBIBYTE);
    for (i = 0; i < VALUES; i++) {
        sizes[i] = 12;
        snprintf((char *)w->bytes + 12 * i, 13, "value/%06u", (unsigned)i);
    }
}
static llvs_status do_value_block(world *w, llvs_error **error) {
    llvs_value_block *block = NULL;
    llvs_status status = llvs_store_value_block(w->store, llvs_bytes_make(w->bytes, 12 * VALUES), (uint64_t *)(void *)(w->bytes + MEBIBYTE), VALUES,
                                                llvs_str("left"), &block, error);
    llvs_value_block_free(block);
    return status;
}
static llvs_status enumerate(world *w, llvs_bool reverse, llvs_error **error) {
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_list *list = NULL;
    llvs_status status;
    range.limit = VALUES;
    range.reverse = reverse;
    range.prefix = llvs_str("value/");
    status = llvs_store_enumerate(w->store, llvs_str("left"), &range, &list, error);
    llvs_value_list_free(list);
    return status;
}
static llvs_status do_enumerate(world *w, llvs_error **error) { return enumerate(w, 0, error); }
static llvs_status do_enumerate_back(world *w, llvs_error **error) { return enumerate(w, 1, error); }
static llvs_status do_enumerate_block(world *w, llvs_error **error) {
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_block *block = NULL;
    llvs_status status;
    range.limit = VALUES;
    status = llvs_store_enumerate_block(w->store, llvs_str("right"), &range, &block, error);
    llvs_value_block_free(block);
    return status;
}
static llvs_status do_count(world *w, llvs_error **error) {
    llvs_range range = LLVS_RANGE_INIT;
    uint64_t count;
    range.from = llvs_str("value/003");
    return llvs_store_count(w->store, llvs_str("head-3"), &range, &count, error);
}

/* ---- History ---- */
static llvs_status history(world *w, const char *value, const char *prefix, llvs_error **error) {
    llvs_history_options options = LLVS_HISTORY_OPTIONS_INIT;
    llvs_history_cursor *cursor = NULL;
    llvs_version_list *list = NULL;
    llvs_status status;
    options.value_id = llvs_str(value);
    options.prefix = llvs_str(prefix);
    status = llvs_store_history(w->store, &options, NULL, &cursor, error);
    if (status == LLVS_OK) status = llvs_history_cursor_next(cursor, 100000, NULL, &list, error);
    llvs_version_list_free(list);
    llvs_history_cursor_free(cursor);
    return status;
}
static llvs_status do_history(world *w, llvs_error **error) { return history(w, "", "", error); }
static llvs_status do_history_of_value(world *w, llvs_error **error) { return history(w, "value/000007", "", error); }
static llvs_status do_history_of_prefix(world *w, llvs_error **error) { return history(w, "", "value/0000", error); }
static llvs_status do_versions(world *w, llvs_error **error) {
    static char names[CHAIN][32];
    llvs_version_list *list = NULL;
    llvs_status status;
    int i;
    for (i = 0; i < CHAIN - 1; i++) {
        snprintf(names[i], sizeof names[i], "chain-%d", i);
        w->ids[i] = llvs_str(names[i]);
    }
    status = llvs_store_versions(w->store, w->ids, CHAIN - 1, &list, error);
    llvs_version_list_free(list);
    if (status == LLVS_OK) status = llvs_store_heads(w->store, NULL, &list, error);
    llvs_version_list_free(status == LLVS_OK ? list : NULL);
    if (status == LLVS_OK) status = llvs_store_successors(w->store, llvs_str("top"), &list, error);
    llvs_version_list_free(status == LLVS_OK ? list : NULL);
    if (status == LLVS_OK) status = llvs_store_merge_bases(w->store, llvs_str("left"), llvs_str("right"), &list, error);
    llvs_version_list_free(status == LLVS_OK ? list : NULL);
    if (status == LLVS_OK) status = llvs_store_versions_of(w->store, llvs_str("value/000007"), &list, error);
    llvs_version_list_free(status == LLVS_OK ? list : NULL);
    return status;
}
static llvs_status changes_of(llvs_change_cursor *cursor, llvs_status status, llvs_error **error) {
    llvs_change_list *list = NULL;
    if (status == LLVS_OK) status = llvs_change_cursor_next(cursor, VALUES, 1, &list, error);
    llvs_change_list_free(list);
    llvs_change_cursor_free(cursor);
    return status;
}
static llvs_status do_changes(world *w, llvs_error **error) {
    llvs_change_cursor *cursor = NULL;
    llvs_status status = llvs_store_changes(w->store, llvs_str("base"), NULL, NULL, &cursor, error);
    return changes_of(cursor, status, error);
}
static llvs_status do_differences(world *w, llvs_error **error) {
    llvs_change_cursor *cursor = NULL;
    llvs_status status = llvs_store_differences(w->store, llvs_str("base"), llvs_str("right"), NULL, NULL, &cursor, error);
    return changes_of(cursor, status, error);
}
/* ---- Merging ---- */
static llvs_arbiter *arbiter;
static void before_merging(world *w) {
    (void)w;
    NEED(llvs_arbiter_builtin(LLVS_ARBITER_MOST_RECENT_CHANGE, &arbiter, &error));
}
static llvs_status resolve(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    size_t i;
    (void)payload;
    for (i = 0; i < merge->fork_count; i++) {
        llvs_change change = LLVS_CHANGE_INIT;
        llvs_status status;
        if (!merge->forks[i]->conflicting) continue;
        change.kind = LLVS_CHANGE_UPDATE;
        change.id = merge->forks[i]->id;
        change.data = llvs_str("as both had it");
        status = llvs_resolution_add(resolution, &change, 1, sizeof change, error);
        if (status != LLVS_OK) return status;
    }
    return LLVS_OK;
}
static void before_arbitrating(world *w) {
    (void)w;
    NEED(llvs_arbiter_create(resolve, NULL, NULL, NULL, &arbiter, &error));
}
static llvs_status do_merge(world *w, llvs_error **error) {
    llvs_version_list *list = NULL;
    llvs_status status = llvs_store_merge(w->store, llvs_str("left"), llvs_str("right"), arbiter, NULL, &list, error);
    llvs_version_list_free(list);
    return status;
}
static llvs_status do_merge_heads(world *w, llvs_error **error) {
    llvs_version_list *list = NULL;
    llvs_status status = llvs_store_merge_heads(w->store, llvs_str("left"), arbiter, NULL, &list, error);
    llvs_version_list_free(list);
    return status;
}
static llvs_status do_revert(world *w, llvs_error **error) {
    llvs_revert_result *result = NULL;
    llvs_status status = llvs_store_revert(w->store, llvs_str("left"), llvs_str("left"), NULL, &result, error);
    llvs_revert_result_free(result);
    return status;
}

/* ---- Exchanges and snapshots ---- */
static void before_sending(world *w) {
    char url[400];
    snprintf(url, sizeof url, "file://%s", w->folder);
    NEED(llvs_exchange_open(w->store, llvs_str(url), NULL, &w->exchange, &error));
}
static llvs_status do_send(world *w, llvs_error **error) { return llvs_exchange_send(w->exchange, NULL, NULL, error); }
static void before_sending_to_memory(world *w) { NEED(llvs_exchange_open(w->store, llvs_str("memory:here"), NULL, &w->exchange, &error)); }
/* The exchange leads to another store of the same kind from then on. */
static void turn(world *w, const char *url) {
    char path[400];
    llvs_exchange_free(w->exchange);
    snprintf(path, sizeof path, "%s-2", w->path);
    NEED(open_at(w, path, calloc(1, sizeof *w->array), &w->other, &error));
    NEED(llvs_exchange_open(w->other, llvs_str(url), NULL, &w->exchange, &error));
}
static void before_retrieving(world *w) {
    char url[400];
    snprintf(url, sizeof url, "file://%s", w->folder);
    before_sending(w);
    NEED(llvs_exchange_send(w->exchange, NULL, NULL, &error));
    turn(w, url);
}
static void before_retrieving_from_memory(world *w) {
    llvs_exchange *first;
    before_sending_to_memory(w);
    NEED(llvs_exchange_send(w->exchange, NULL, NULL, &error));
    first = w->exchange; /* the place is there while somebody has it open */
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
/* What came is whole; the rest comes now. */
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
static void before_restoring(world *w) {
    char url[400];
    snprintf(url, sizeof url, "file://%s", w->folder);
    before_sending(w);
    NEED(llvs_exchange_put_snapshot(w->exchange, NULL, NULL, &error));
    turn(w, url);
}
/* What was added whole stays; the rest comes now. */
static void after_restoring(world *w) {
    llvs_status status = llvs_exchange_restore_snapshot(w->exchange, NULL, NULL, NULL);
    if (status != LLVS_OK && status != LLVS_ERROR_STORE_NOT_EMPTY) _exit(99);
    if (version_count(w->other) < CHAIN) _exit(97);
}
static llvs_status do_restore_snapshot(world *w, llvs_error **error) { return llvs_exchange_restore_snapshot(w->exchange, NULL, NULL, error); }

/* ---- Upkeep ---- */
static llvs_status do_import(world *w, llvs_error **error) {
    llvs_exchange_result *result = NULL;
    llvs_status status = llvs_store_import(w->store, llvs_str(LLVS_SOURCE_DIR "/Tests/Vectors/interchange/store"), NULL, NULL, &result, error);
    llvs_exchange_result_free(result);
    return status;
}
static llvs_status do_verify(world *w, llvs_error **error) {
    llvs_verify_report *report = NULL;
    llvs_status status = llvs_store_verify(w->store, NULL, &report, error);
    if (report && report->damage_count) { fprintf(stderr, "damage: %s\n", (const char *)report->damages[0]->message.data); _exit(95); }
    llvs_verify_report_free(report);
    return status;
}
static llvs_status do_salvage(world *w, llvs_error **error) {
    llvs_store_options options = options_of(w);
    llvs_salvage_report *report = NULL;
    llvs_status status = llvs_store_salvage(llvs_str(w->path), &options, llvs_str(w->scratch), &options, NULL, &report, error);
    if (report && report->damage_count) { fprintf(stderr, "damage: %s\n", (const char *)report->damages[0]->message.data); _exit(95); }
    llvs_salvage_report_free(report);
    return status;
}
static void before_compacting(world *w) {
    char id[32], before[32] = "left";
    int i;
    for (i = 0; i < 12; i++) {
        snprintf(id, sizeof id, "part-%d", i);
        make_changes(w, 0, 1000, 400, 5000);
        NEED(save_as(w, before, id, 1000, NULL, &error));
        strcpy(before, id);
        NEED(llvs_store_close(w->store, &error));
        llvs_store_free(w->store);
        NEED(open_at(w, w->path, w->array, &w->store, &error));
    }
}
static llvs_status do_compact(world *w, llvs_error **error) { return llvs_store_compact(w->store, NULL, NULL, error); }

/* ---- The coordinator, and who observes ---- */
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
    before_sending(w);
    NEED(llvs_exchange_send(w->exchange, NULL, NULL, &error));
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

static const operation operations[] = {
    { "open", F | S, before_opening, do_open, NULL, NULL },
    { "open_without_caches", F | S, before_opening_bare, do_open, NULL, NULL },
    { "close", F | S, before_closing, do_close, NULL, "new" },
    { "reload", F | S, before_reloading, do_reload, NULL, NULL },
    { "save_one", ALL, before_saving_one, do_save_one, NULL, "new" },
    { "save_many", ALL, before_saving_many, do_save_many, NULL, "new" },
    { "save_large", ALL, before_saving_large, do_save_one, NULL, "new" },
    { "save_a_row", ALL, before_saving_a_row, do_save_a_row, NULL, "new" },
    { "save_pieces", ALL, NULL, do_save_pieces, NULL, "new" },
    { "value", ALL, NULL, do_value, NULL, NULL },
    { "read_value", ALL, NULL, do_read_value, NULL, NULL },
    { "read_pieces", ALL, NULL, do_read_pieces, NULL, NULL },
    { "values", ALL, before_asking, do_values, NULL, NULL },
    { "values_of_the_past", ALL, before_asking, do_values_of_the_past, NULL, NULL },
    { "value_block", ALL, before_asking_block, do_value_block, NULL, NULL },
    { "enumerate", ALL, NULL, do_enumerate, NULL, NULL },
    { "enumerate_back", ALL, NULL, do_enumerate_back, NULL, NULL },
    { "enumerate_block", ALL, NULL, do_enumerate_block, NULL, NULL },
    { "count", ALL, NULL, do_count, NULL, NULL },
    { "history", ALL, NULL, do_history, NULL, NULL },
    { "history_of_value", ALL, NULL, do_history_of_value, NULL, NULL },
    { "history_of_prefix", ALL, NULL, do_history_of_prefix, NULL, NULL },
    { "versions", ALL, NULL, do_versions, NULL, NULL },
    { "changes", ALL, NULL, do_changes, NULL, NULL },
    { "differences", ALL, NULL, do_differences, NULL, NULL },
    { "merge", ALL, before_merging, do_merge, NULL, NULL },
    { "merge_by_callback", F | M, before_arbitrating, do_merge, NULL, NULL },
    { "merge_heads", ALL, before_merging, do_merge_heads, NULL, NULL },
    { "revert", ALL, NULL, do_revert, NULL, NULL },
    { "send", F | S, before_sending, do_send, NULL, NULL },
    { "send_to_memory", ALL, before_sending_to_memory, do_send, NULL, NULL },
    { "retrieve", F | S, before_retrieving, do_retrieve, after_retrieving, NULL },
    { "retrieve_from_memory", ALL, before_retrieving_from_memory, do_retrieve, after_retrieving, NULL },
    { "verify_exchange", F, before_retrieving, do_verify_exchange, after_retrieving, NULL },
    { "put_snapshot", F | S, before_sending, do_put_snapshot, NULL, NULL },
    { "restore_snapshot", F | S, before_restoring, do_restore_snapshot, after_restoring, NULL },
    { "import", F | M, NULL, do_import, NULL, NULL },
    { "verify", ALL, NULL, do_verify, NULL, NULL },
    { "salvage", F | S, NULL, do_salvage, NULL, NULL },
    { "compact", F, before_compacting, do_compact, NULL, NULL },
    { "coordinator_save", F | S | M, before_coordinating, do_coordinator_save, after_coordinating, NULL },
    { "sync", F | S, before_syncing, do_sync, after_coordinating, NULL },
    { "observe", F | S | M, before_saving_one, do_observe, NULL, NULL },
};
enum { operation_count = sizeof operations / sizeof *operations };

#endif

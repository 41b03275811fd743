/* Opening, saving, merging and upkeep, for memory_operations.h. */
#ifndef LLVS_TESTS_MEMORY_SAVING_H
#define LLVS_TESTS_MEMORY_SAVING_H

#include "memory_world.h"

/* ---- Opening ---- */
static void before_opening(world *w) {
    NEED(llvs_store_close(w->store, &error));
    llvs_store_free(w->store);
    w->store = NULL;
}
static llvs_status do_open(world *w, llvs_error **error) { return open_at(w, w->path, w->array, &w->store, error); }
/* Caches are derived, and are rebuilt. */
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
static llvs_status do_reload(world *w, llvs_error **error) { return llvs_store_reload(w->store, NULL, NULL, error); }

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

/* ---- Upkeep ---- */
static llvs_status do_import(world *w, llvs_error **error) {
    llvs_exchange_result *result = NULL;
    llvs_bytes directory = llvs_str(LLVS_SOURCE_DIR "/Tests/Vectors/interchange/store");
    llvs_status status = llvs_store_import(w->store, directory, NULL, NULL, &result, error);
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
static llvs_status do_size(world *w, llvs_error **error) {
    llvs_size_report *report = NULL;
    llvs_status status = llvs_store_size(w->store, NULL, &report, error);
    llvs_size_report_free(report);
    return status;
}
/* A database that is open in this process is not salvaged. */
static void before_salvaging(world *w) {
    if (w->kind != LLVS_STORAGE_SQLITE) return;
    NEED(llvs_store_close(w->store, &error));
    llvs_store_free(w->store);
    w->store = NULL;
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

#endif

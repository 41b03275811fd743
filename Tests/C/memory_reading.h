/* Operations that read a store, for memory_operations.h. */
#ifndef LLVS_TESTS_MEMORY_READING_H
#define LLVS_TESTS_MEMORY_READING_H

#include "memory_world.h"

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
/* Reads values at scattered versions, far from any map. */
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
    llvs_status status = llvs_store_value_block(w->store, llvs_bytes_make(w->bytes, 12 * VALUES), (uint64_t *)(void *)(w->bytes + MEBIBYTE),
                                                VALUES, llvs_str("left"), &block, error);
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
    if (status == LLVS_OK) status = llvs_store_successors(w->store, llvs_str("top"), NULL, &list, error);
    llvs_version_list_free(status == LLVS_OK ? list : NULL);
    if (status == LLVS_OK) status = llvs_store_merge_bases(w->store, llvs_str("left"), llvs_str("right"), NULL, &list, error);
    llvs_version_list_free(status == LLVS_OK ? list : NULL);
    if (status == LLVS_OK) status = llvs_store_versions_of(w->store, llvs_str("value/000007"), NULL, &list, error);
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

#endif

/* The store, through its C API. */
#include "ours.h"
#include <stdlib.h>

void must_be_ok(llvs_status status, llvs_error **error) {
    if (status != LLVS_OK) fail("%s (%s)", llvs_error_message(*error), llvs_status_name(status));
}

static void *open_ours(const char *path, const opening *how) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_error *error;
    options.storage = how->storage;
    options.durability = how->is_full ? LLVS_DURABILITY_FULL : LLVS_DURABILITY_NORMAL;
    options.memory_budget = how->memory_budget;
    must(llvs_store_open(llvs_str(path), &options, &store, &error), error);
    return store;
}

static void close_ours(void *store) {
    llvs_error *error;
    must(llvs_store_close(store, &error), error);
    llvs_store_free(store);
}

static void *open_reader(void *store) { return store; }
static void close_reader(void *store, void *reader) { (void)store, (void)reader; }

static llvs_change changed(const item *item, llvs_change_kind kind) {
    llvs_change change = LLVS_CHANGE_INIT;
    change.kind = kind;
    change.id = llvs_str(item->id);
    change.data = llvs_bytes_make(item->data, item->size);
    return change;
}

static void *pack(const item *items, size_t count) {
    llvs_change *changes = allocate(count, sizeof *changes);
    size_t i;
    for (i = 0; i < count; i++) changes[i] = changed(&items[i], LLVS_CHANGE_INSERT);
    return changes;
}

static version load(void *store, void *packed, size_t count) {
    version made = { { 0, "" }, 0 };
    llvs_error *error;
    must(llvs_store_make_version(store, LLVS_NONE, packed, count, sizeof(llvs_change), NULL, &made.id, NULL, &error), error);
    return made;
}

static version save(void *store, const version *at, const item *items, size_t count) {
    version made = { { 0, "" }, 0 };
    llvs_change few[128], *changes = count <= sizeof few / sizeof *few ? few : allocate(count, sizeof *changes);
    llvs_error *error;
    size_t i;
    for (i = 0; i < count; i++) changes[i] = changed(&items[i], LLVS_CHANGE_UPDATE);
    must(llvs_store_make_version(store, llvs_id(&at->id), changes, count, sizeof *changes, NULL, &made.id, NULL, &error), error);
    if (changes != few) free(changes);
    return made;
}

static size_t fetch(void *store, const char *id, const version *at, uint8_t *copy, size_t capacity) {
    llvs_buffer data;
    llvs_error *error;
    size_t size;
    must(llvs_store_value(store, llvs_str(id), llvs_id(&at->id), &data, NULL, &error), error);
    size = data.size;
    if (!data.data || size > capacity) fail("%s has %zu bytes", id, size);
    memcpy(copy, data.data, size);
    llvs_buffer_dispose(&data);
    return size;
}

static size_t enumerate(void *store, const version *at, const char *prefix, size_t limit, uint64_t *sum) {
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_list *page = NULL;
    llvs_error *error;
    size_t count = 0;
    range.prefix = llvs_str(prefix);
    range.limit = limit;
    for (;;) {
        llvs_value_list *next;
        size_t i, size;
        must(llvs_store_enumerate(store, llvs_id(&at->id), &range, &next, &error), error);
        llvs_value_list_free(page);
        page = next;
        if (!page) return count;
        size = page->count;
        for (i = 0; i < size; i++) {
            const llvs_value_info *value = page->items[i];
            *sum += value->data.size ? value->data.data[0] : 0;
            range.after = value->id;
        }
        count += size;
        if (limit && count >= limit) {
            llvs_value_list_free(page);
            return count;
        }
    }
}

static size_t differences(void *store, const version *from, const version *to, uint64_t *sum) {
    llvs_change_cursor *cursor;
    llvs_change_list *page;
    llvs_error *error;
    size_t updates = 0, i;
    must(llvs_store_differences(store, llvs_id(&from->id), llvs_id(&to->id), NULL, NULL, &cursor, &error), error);
    for (;;) {
        must(llvs_change_cursor_next(cursor, 0, sum != NULL, &page, &error), error);
        if (!page) break;
        for (i = 0; i < page->count; i++) {
            const llvs_change_info *change = page->items[i];
            updates += change->kind == LLVS_CHANGE_UPDATE;
            if (sum && change->data.size) *sum += change->data.data[0];
        }
        llvs_change_list_free(page);
    }
    llvs_change_cursor_free(cursor);
    return updates;
}

static version version_of(const llvs_version_info *info) {
    version found = { { 0, "" }, 0 };
    found.id.size = (uint32_t)info->id.size;
    memcpy(found.id.text, info->id.data, info->id.size);
    return found;
}

static version merge_base(void *store, const version *a, const version *b) {
    llvs_version_list *bases;
    llvs_error *error;
    version base;
    must(llvs_store_merge_bases(store, llvs_id(&a->id), llvs_id(&b->id), NULL, &bases, &error), error);
    if (bases->count != 1) fail("%zu merge bases", bases->count);
    base = version_of(bases->items[0]);
    llvs_version_list_free(bases);
    return base;
}

static version merge(void *store, const version *a, const version *b) {
    llvs_version_list *merged;
    llvs_error *error;
    version made;
    must(llvs_store_merge(store, llvs_id(&a->id), llvs_id(&b->id), NULL, NULL, &merged, &error), error);
    made = version_of(merged->items[0]);
    llvs_version_list_free(merged);
    return made;
}

static void newest(void *store, version *versions, size_t count) {
    enum { PAGE = 1000 };
    llvs_history_cursor *cursor;
    llvs_version_list *page;
    llvs_error *error;
    size_t found = 0, i;
    must(llvs_store_history(store, NULL, NULL, &cursor, &error), error);
    while (found < count) {
        must(llvs_history_cursor_next(cursor, count - found < PAGE ? count - found : PAGE, NULL, &page, &error), error);
        if (!page) fail("the history has fewer than %zu versions", count);
        for (i = 0; i < page->count; i++) versions[found++] = version_of(page->items[i]);
        llvs_version_list_free(page);
    }
    llvs_history_cursor_free(cursor);
}

const side ours = { "ours", open_ours, close_ours, open_reader, close_reader, pack, load, save, fetch,
                    enumerate, differences, merge_base, merge, newest };

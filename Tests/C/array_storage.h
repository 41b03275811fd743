/* A storage of a host in a few lines of C: records in an array. For tests. */
#ifndef LLVS_TESTS_ARRAY_STORAGE_H
#define LLVS_TESTS_ARRAY_STORAGE_H

#include <stdlib.h>
#include <string.h>

#include "llvs.h"

typedef struct array_storage {
    struct { uint8_t *data; size_t size; } records[16384];
    size_t count;
    /* The number of records that a scan reports at a time; 0: all. */
    size_t scan_page;
    /* After this many callbacks each one fails; 0: never. */
    int fail_after;
    llvs_status fail_with;
    int calls, syncs, closes, running;
    struct { char name[128]; uint8_t *data; size_t size; } blobs[16];
    size_t blob_count;
} array_storage;

/* Counts the call. Notices a second one at the same time. */
static inline llvs_status array_storage_call(array_storage *s, llvs_error **error) {
    s->calls++;
    if (s->running) { *error = llvs_error_create(99, llvs_str("two callbacks at once")); return LLVS_ERROR_USER; }
    if (s->fail_after && s->calls > s->fail_after) {
        if (s->fail_with == LLVS_ERROR_USER) *error = llvs_error_create(42, llvs_str("the array is broken"));
        return s->fail_with;
    }
    return LLVS_OK;
}

static inline llvs_status array_append(void *payload, const llvs_bytes *records, size_t count, uint64_t *places, llvs_error **error) {
    array_storage *s = payload;
    llvs_status status = array_storage_call(s, error);
    size_t i;
    if (status != LLVS_OK) return status;
    if (s->count + count > sizeof s->records / sizeof *s->records) return LLVS_ERROR_NO_SPACE;
    for (i = 0; i < count; i++) {
        uint8_t *copy = malloc(records[i].size ? records[i].size : 1);
        if (!copy) { /* all or none */
            while (i--) free(s->records[s->count + i].data);
            return LLVS_ERROR_NO_SPACE;
        }
        memcpy(copy, records[i].data, records[i].size);
        s->records[s->count + i].data = copy;
        s->records[s->count + i].size = records[i].size;
        places[i] = s->count + i + 1000; /* the host's own numbers */
    }
    s->count += count;
    return LLVS_OK;
}

static inline llvs_status array_scan(void *payload, uint64_t *mark, llvs_reply *reply, llvs_error **error) {
    array_storage *s = payload;
    llvs_status status = array_storage_call(s, error);
    size_t reported = 0;
    if (status != LLVS_OK) return status;
    for (; *mark < s->count && (!s->scan_page || reported < s->scan_page); ++*mark, reported++) {
        size_t size = s->records[*mark].size;
        status = llvs_reply_record(reply, *mark + 1000, size, llvs_bytes_make(s->records[*mark].data, size < 65536 ? size : 65536), error);
        if (status != LLVS_OK) return status;
    }
    return LLVS_OK;
}

static inline llvs_status array_read(void *payload, uint64_t place, uint64_t offset, uint8_t *buffer, size_t size, llvs_error **error) {
    array_storage *s = payload;
    llvs_status status = array_storage_call(s, error);
    if (status != LLVS_OK) return status;
    if (place < 1000 || place - 1000 >= s->count || offset > s->records[place - 1000].size || size > s->records[place - 1000].size - offset)
        return LLVS_ERROR_DAMAGED;
    memcpy(buffer, s->records[place - 1000].data + offset, size);
    return LLVS_OK;
}

static inline llvs_status array_sync(void *payload, llvs_error **error) {
    array_storage *s = payload;
    llvs_status status = array_storage_call(s, error);
    if (status == LLVS_OK) s->syncs++;
    return status;
}

static inline llvs_status array_close(void *payload, llvs_error **error) {
    (void)error;
    ((array_storage *)payload)->closes++;
    return LLVS_OK;
}

static inline size_t array_find_blob(array_storage *s, const llvs_bytes *name) {
    size_t i;
    for (i = 0; i < s->blob_count; i++)
        if (strlen(s->blobs[i].name) == name->size && memcmp(s->blobs[i].name, name->data, name->size) == 0) break;
    return i;
}
static inline llvs_status array_cache_get(void *payload, const llvs_bytes *name, llvs_reply *reply, llvs_error **error) {
    array_storage *s = payload;
    size_t i = array_find_blob(s, name);
    return i < s->blob_count && s->blobs[i].data ? llvs_reply_set(reply, 0, llvs_bytes_make(s->blobs[i].data, s->blobs[i].size), error)
                                                 : LLVS_OK;
}
static inline llvs_status array_cache_put(void *payload, const llvs_bytes *name, const llvs_bytes *data, llvs_error **error) {
    array_storage *s = payload;
    size_t i = array_find_blob(s, name);
    (void)error;
    if (i == sizeof s->blobs / sizeof *s->blobs || name->size >= sizeof s->blobs[0].name) return LLVS_ERROR_NO_SPACE;
    if (i == s->blob_count) {
        memset(s->blobs[i].name, 0, sizeof s->blobs[i].name);
        memcpy(s->blobs[i].name, name->data, name->size);
        s->blob_count++;
    } else {
        free(s->blobs[i].data);
    }
    s->blobs[i].data = malloc(data->size ? data->size : 1);
    if (!s->blobs[i].data) return LLVS_ERROR_NO_SPACE;
    memcpy(s->blobs[i].data, data->data, data->size);
    s->blobs[i].size = data->size;
    return LLVS_OK;
}
static inline llvs_status array_cache_delete(void *payload, const llvs_bytes *name, llvs_error **error) {
    array_storage *s = payload;
    size_t i = array_find_blob(s, name);
    (void)error;
    if (i < s->blob_count) { free(s->blobs[i].data); s->blobs[i].data = NULL; }
    return LLVS_OK;
}

static inline llvs_storage_callbacks array_storage_callbacks(void) {
    llvs_storage_callbacks callbacks = LLVS_STORAGE_CALLBACKS_INIT;
    callbacks.append = array_append;
    callbacks.scan = array_scan;
    callbacks.read = array_read;
    callbacks.sync = array_sync;
    callbacks.close = array_close;
    callbacks.cache_get = array_cache_get;
    callbacks.cache_put = array_cache_put;
    callbacks.cache_delete = array_cache_delete;
    return callbacks;
}

static inline void array_storage_free(void *payload) {
    array_storage *s = payload;
    size_t i;
    for (i = 0; i < s->count; i++) free(s->records[i].data);
    for (i = 0; i < s->blob_count; i++) free(s->blobs[i].data);
    free(s);
}

#endif

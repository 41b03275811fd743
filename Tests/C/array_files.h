/* Files of a host in C: paths in an array, which several transports may share. For tests. */
#ifndef LLVS_TESTS_ARRAY_FILES_H
#define LLVS_TESTS_ARRAY_FILES_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "llvs.h"

typedef struct shelf {
    struct { char name[256]; uint8_t *data; size_t size; } files[2048];
    size_t count;
    pthread_mutex_t mutex;
    /* Whether it cannot be reached. */
    int failing;
    int lists, reads, publishes, removes, closes;
    int was_seen; /* whether a half-written file may have been seen */
    /* The name of its defect; empty: none. */
    const char *defect;
} shelf;

static inline void shelf_init(shelf *s) {
    memset(s, 0, sizeof *s);
    s->defect = "";
    pthread_mutex_init(&s->mutex, NULL);
}
static inline void shelf_clear(shelf *s) {
    size_t i;
    for (i = 0; i < s->count; i++) free(s->files[i].data);
    pthread_mutex_destroy(&s->mutex);
}
static inline int shelf_is(const shelf *s, const char *defect) { return strcmp(s->defect, defect) == 0; }

static inline size_t shelf_find(const shelf *s, const llvs_bytes *name) {
    size_t i;
    for (i = 0; i < s->count; i++)
        if (strlen(s->files[i].name) == name->size && memcmp(s->files[i].name, name->data, name->size) == 0) break;
    return i;
}
static inline void shelf_drop(shelf *s, size_t i) {
    free(s->files[i].data);
    s->count--;
    s->files[i] = s->files[s->count];
}
static inline llvs_status shelf_fails(shelf *s, llvs_error **error) {
    if (!s->failing) return LLVS_OK;
    if (shelf_is(s, "says that an unreachable place is empty")) return LLVS_PASS;
    (void)error;
    return LLVS_ERROR_TRANSPORT;
}

static inline llvs_status shelf_list(void *payload, const llvs_bytes *directory, llvs_reply *reply, llvs_error **error) {
    shelf *s = payload;
    llvs_status status = shelf_fails(s, error);
    size_t i, told = 0;
    if (status != LLVS_OK) return status == LLVS_PASS ? LLVS_OK : status;
    pthread_mutex_lock(&s->mutex);
    s->lists++;
    for (i = 0; i < s->count && status == LLVS_OK; i++) {
        const char *name = s->files[i].name, *rest = name + directory->size + 1, *slash;
        char folder[256];
        if (strncmp(name, (const char *)directory->data, directory->size) != 0 || name[directory->size] != '/') continue;
        if (shelf_is(s, "lists one page only") && ++told > 1000) break;
        slash = strchr(rest, '/');
        if (!slash) {
            size_t size = s->files[i].size;
            if (shelf_is(s, "tells wrong sizes")) size++;
            status = llvs_reply_file(reply, llvs_str(rest), size, 0, error);
        } else if (shelf_is(s, "lists what is below")) {
            status = llvs_reply_file(reply, llvs_str(slash + 1), s->files[i].size, 0, error);
        } else {
            snprintf(folder, sizeof folder, "%.*s", (int)(slash - rest), rest);
            status = llvs_reply_file(reply, llvs_str(folder), 0, 1, error);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}

static inline llvs_status shelf_read(void *payload, const llvs_bytes *name, uint64_t offset, uint64_t size, llvs_reply *reply,
                                     llvs_error **error) {
    shelf *s = payload;
    llvs_status status = shelf_fails(s, error);
    size_t i, end, start = (size_t)offset;
    if (status != LLVS_OK) return status == LLVS_PASS ? LLVS_OK : status;
    pthread_mutex_lock(&s->mutex);
    s->reads++;
    i = shelf_find(s, name);
    if (i < s->count) {
        end = s->files[i].size;
        if (shelf_is(s, "ignores ranges")) start = size = 0;
        if (start > end) start = end;
        if (size > 0 && size < end - start) end = start + (size_t)size;
        if (shelf_is(s, "cuts large files short") && end - start > 1000000) end = start + 1000000;
        status = llvs_reply_set(reply, 0, llvs_bytes_make(s->files[i].data + start, end - start), error);
    } else if (shelf_is(s, "fails where a file is absent")) {
        status = LLVS_ERROR_TRANSPORT;
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}

typedef struct shelf_copy { uint8_t *data; size_t size, capacity; } shelf_copy;
static inline llvs_status shelf_take(void *payload, const llvs_bytes *piece, llvs_error **error) {
    shelf_copy *copy = payload;
    (void)error;
    if (piece->size > copy->capacity - copy->size) return LLVS_ERROR_NO_SPACE;
    if (piece->size) memcpy(copy->data + copy->size, piece->data, piece->size);
    copy->size += piece->size;
    return LLVS_OK;
}

/* The caller holds the lock. */
static inline llvs_status shelf_put(shelf *s, const llvs_bytes *name, uint8_t *data, size_t size) {
    size_t i = shelf_find(s, name);
    if (i == sizeof s->files / sizeof *s->files || name->size >= sizeof s->files[0].name) {
        free(data);
        return LLVS_ERROR_NO_SPACE;
    }
    if (i < s->count) shelf_drop(s, i);
    i = s->count++;
    memset(&s->files[i], 0, sizeof s->files[i]);
    memcpy(s->files[i].name, name->data, name->size);
    s->files[i].data = data;
    s->files[i].size = size;
    return LLVS_OK;
}

static inline llvs_status shelf_publish(void *payload, const llvs_bytes *name, llvs_bool replaces, llvs_outgoing *file, llvs_reply *reply,
                                        llvs_error **error) {
    shelf *s = payload;
    llvs_status status = shelf_fails(s, error);
    shelf_copy copy = { NULL, 0, 0 };
    if (status != LLVS_OK) return status == LLVS_PASS ? LLVS_OK : status;
    if (llvs_reply_is_cancelled(reply)) return LLVS_ERROR_CANCELLED;
    copy.capacity = (size_t)llvs_outgoing_size(file);
    copy.data = malloc(copy.capacity + 1);
    if (!copy.data) return LLVS_ERROR_NO_SPACE;
    if (shelf_is(s, "shows files while they are written")) {
        uint8_t *part = malloc(1);
        if (!part) { free(copy.data); return LLVS_ERROR_NO_SPACE; }
        *part = 0;
        pthread_mutex_lock(&s->mutex);
        if (shelf_find(s, name) == s->count) (void)shelf_put(s, name, part, 1);
        else free(part);
        pthread_mutex_unlock(&s->mutex);
        replaces = 1;
        {
            /* Wait until a reader that polls has polled a few times, or until it is clear that none does. */
            struct timespec moment = { 0, 5000000 };
            int before, waited;
            pthread_mutex_lock(&s->mutex);
            before = s->lists + s->reads;
            for (waited = 0; !s->was_seen && waited < 40; waited++) {
                s->was_seen = s->lists + s->reads > before + 3;
                pthread_mutex_unlock(&s->mutex);
                nanosleep(&moment, NULL);
                pthread_mutex_lock(&s->mutex);
            }
            pthread_mutex_unlock(&s->mutex);
        }
    }
    status = llvs_outgoing_write(file, shelf_take, &copy, error);
    if (status != LLVS_OK) { free(copy.data); return status; }
    pthread_mutex_lock(&s->mutex);
    s->publishes++;
    if (!replaces && !shelf_is(s, "replaces what is to stay") && shelf_find(s, name) < s->count) {
        free(copy.data);
        status = shelf_is(s, "says that it published what was there") ? LLVS_OK : LLVS_PASS;
    } else {
        if (shelf_is(s, "ends files at a NUL") && memchr(copy.data, 0, copy.size))
            copy.size = (size_t)((uint8_t *)memchr(copy.data, 0, copy.size) - copy.data);
        status = shelf_put(s, name, copy.data, copy.size);
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}

static inline llvs_status shelf_remove(void *payload, const llvs_bytes *name, llvs_error **error) {
    shelf *s = payload;
    llvs_status status = shelf_fails(s, error);
    size_t i;
    if (status != LLVS_OK) return status == LLVS_PASS ? LLVS_OK : status;
    pthread_mutex_lock(&s->mutex);
    s->removes++;
    i = shelf_find(s, name);
    if (i < s->count && !shelf_is(s, "keeps what is deleted")) shelf_drop(s, i);
    else if (i == s->count && shelf_is(s, "fails where nothing is to be deleted")) status = LLVS_ERROR_TRANSPORT;
    pthread_mutex_unlock(&s->mutex);
    return status;
}

static inline llvs_status shelf_close(void *payload, llvs_error **error) {
    (void)error;
    ((shelf *)payload)->closes++;
    return LLVS_OK;
}

static inline llvs_files_callbacks shelf_callbacks(void) {
    llvs_files_callbacks callbacks = LLVS_FILES_CALLBACKS_INIT;
    callbacks.list = shelf_list;
    callbacks.read = shelf_read;
    callbacks.publish = shelf_publish;
    callbacks.remove = shelf_remove;
    callbacks.close = shelf_close;
    return callbacks;
}

#endif

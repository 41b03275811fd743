/* A transport of a host in C: files in an array, which several transports may share. For tests. */
#ifndef LLVS_TESTS_ARRAY_TRANSPORT_H
#define LLVS_TESTS_ARRAY_TRANSPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvs.h"

/* Files under "versions/<id>", "changes/<id>" and "snapshots/<name>". */
typedef struct array_area {
    struct { char name[256]; uint8_t *data; size_t size; } files[8192];
    size_t count;
    /* The name of the callback that fails: "list", "fetch_versions", ...; NULL: none. */
    const char *failing;
    int sends, looks, closes;
    /* If set, cancelled while something is sent. */
    llvs_cancel_token *cancel_while_sending;
} array_area;

static inline size_t area_find(array_area *a, const char *folder, const uint8_t *name, size_t size) {
    char path[256];
    size_t i;
    if (strlen(folder) + 1 + size >= sizeof path) return a->count;
    snprintf(path, sizeof path, "%s/%.*s", folder, (int)size, (const char *)name);
    for (i = 0; i < a->count; i++)
        if (strcmp(a->files[i].name, path) == 0) return i;
    return a->count;
}
static inline llvs_status area_put(array_area *a, const char *folder, llvs_bytes name, llvs_bytes data) {
    size_t i = area_find(a, folder, name.data, name.size);
    uint8_t *copy = malloc(data.size ? data.size : 1);
    if (!copy || i == sizeof a->files / sizeof *a->files || strlen(folder) + 1 + name.size >= sizeof a->files[0].name) {
        free(copy);
        return LLVS_ERROR_NO_SPACE;
    }
    if (data.size) memcpy(copy, data.data, data.size);
    if (i == a->count) {
        snprintf(a->files[i].name, sizeof a->files[i].name, "%s/%.*s", folder, (int)name.size, (const char *)name.data);
        a->count++;
    } else {
        free(a->files[i].data);
    }
    a->files[i].data = copy;
    a->files[i].size = data.size;
    return LLVS_OK;
}
static inline llvs_status area_fails(array_area *a, const char *callback, llvs_error **error) {
    if (!a->failing || strcmp(a->failing, callback) != 0) return LLVS_OK;
    *error = llvs_error_create(7, llvs_str("the line is dead"));
    return LLVS_ERROR_USER;
}
static inline llvs_status area_list_folder(array_area *a, const char *folder, llvs_reply *reply, llvs_error **error) {
    size_t i, length = strlen(folder);
    llvs_status status = LLVS_OK;
    for (i = 0; i < a->count && status == LLVS_OK; i++)
        if (a->files[i].data && strncmp(a->files[i].name, folder, length) == 0 && a->files[i].name[length] == '/')
            status = llvs_reply_add(reply, llvs_str(a->files[i].name + length + 1), error);
    return status;
}
static inline llvs_status area_list(void *payload, llvs_reply *reply, llvs_error **error) {
    llvs_status status = area_fails(payload, "list", error);
    return status == LLVS_OK ? area_list_folder(payload, "versions", reply, error) : status;
}
static inline llvs_status area_fetch(array_area *a, const char *folder, const llvs_bytes *names, size_t count, llvs_reply *reply,
                                     llvs_error **error) {
    size_t i;
    llvs_status status = LLVS_OK;
    for (i = 0; i < count && status == LLVS_OK; i++) {
        size_t at = area_find(a, folder, names[i].data, names[i].size);
        if (at < a->count && a->files[at].data)
            status = llvs_reply_set(reply, i, llvs_bytes_make(a->files[at].data, a->files[at].size), error);
    }
    return status;
}
static inline llvs_status area_fetch_versions(void *payload, const llvs_bytes *names, size_t count, llvs_reply *reply, llvs_error **error) {
    llvs_status status = area_fails(payload, "fetch_versions", error);
    return status == LLVS_OK ? area_fetch(payload, "versions", names, count, reply, error) : status;
}
static inline llvs_status area_fetch_changes(void *payload, const llvs_bytes *names, size_t count, llvs_reply *reply, llvs_error **error) {
    llvs_status status = area_fails(payload, "fetch_changes", error);
    return status == LLVS_OK ? area_fetch(payload, "changes", names, count, reply, error) : status;
}
static inline llvs_status area_send(void *payload, const llvs_exchange_files *const *files, size_t count, llvs_reply *reply,
                                    llvs_error **error) {
    array_area *a = payload;
    llvs_status status = area_fails(a, "send", error);
    size_t i;
    a->sends++;
    for (i = 0; i < count && status == LLVS_OK; i++) {
        const llvs_exchange_files *file = files[i];
        if (a->cancel_while_sending) llvs_cancel_token_cancel(a->cancel_while_sending);
        if (llvs_reply_is_cancelled(reply)) return LLVS_ERROR_CANCELLED;
        status = area_put(a, "changes", file->name, file->changes);
        if (status == LLVS_OK) status = area_put(a, "versions", file->name, file->version);
    }
    return status;
}
/* Reports the names of which a file is missing or empty. */
static inline llvs_status area_unusable(void *payload, const llvs_bytes *names, size_t count, llvs_reply *reply, llvs_error **error) {
    array_area *a = payload;
    size_t i;
    llvs_status status = area_fails(a, "unusable", error);
    a->looks++;
    for (i = 0; i < count && status == LLVS_OK; i++) {
        size_t version = area_find(a, "versions", names[i].data, names[i].size),
               changes = area_find(a, "changes", names[i].data, names[i].size);
        if (version == a->count || a->files[version].size == 0 || changes == a->count || a->files[changes].size == 0)
            status = llvs_reply_add(reply, names[i], error);
    }
    return status;
}
static inline llvs_status area_snapshot_list(void *payload, llvs_reply *reply, llvs_error **error) {
    return area_list_folder(payload, "snapshots", reply, error);
}
static inline llvs_status area_snapshot_read(void *payload, const llvs_bytes *name, llvs_reply *reply, llvs_error **error) {
    return area_fetch(payload, "snapshots", name, 1, reply, error);
}
static inline llvs_status area_snapshot_write(void *payload, const llvs_bytes *name, const llvs_bytes *data, llvs_error **error) {
    (void)error;
    return area_put(payload, "snapshots", *name, *data);
}
static inline llvs_status area_snapshot_delete(void *payload, const llvs_bytes *name, llvs_error **error) {
    array_area *a = payload;
    size_t at = area_find(a, "snapshots", name->data, name->size);
    (void)error;
    if (at < a->count) { free(a->files[at].data); a->files[at].data = NULL; }
    return LLVS_OK;
}
static inline llvs_status area_close(void *payload, llvs_error **error) {
    (void)error;
    ((array_area *)payload)->closes++;
    return LLVS_OK;
}
static inline llvs_transport_callbacks array_transport_callbacks(void) {
    llvs_transport_callbacks callbacks = LLVS_TRANSPORT_CALLBACKS_INIT;
    callbacks.list = area_list;
    callbacks.fetch_versions = area_fetch_versions;
    callbacks.fetch_changes = area_fetch_changes;
    callbacks.send = area_send;
    callbacks.unusable = area_unusable;
    callbacks.snapshot_list = area_snapshot_list;
    callbacks.snapshot_read = area_snapshot_read;
    callbacks.snapshot_write = area_snapshot_write;
    callbacks.snapshot_delete = area_snapshot_delete;
    callbacks.close = area_close;
    return callbacks;
}
static inline void area_free(array_area *a) {
    size_t i;
    for (i = 0; i < a->count; i++) free(a->files[i].data);
    free(a);
}

#endif

/*
 * A storage of the host: this program keeps the records of a store in one file of its own.
 *
 *     storage [directory]      (default: a new one in the system's temporary directory)
 *
 * The file is a sequence of frames: a length in 8 bytes (little-endian), and then the record. The place of a record is the offset of its
 * frame. Each call of append writes a batch. A scan ignores an incomplete frame at the end.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "llvs.h"

static void check(llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return;
    fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(error));
    llvs_error_free(error);
    exit(1);
}

typedef struct record_file { int descriptor; uint64_t end; } record_file;

/* Makes an error with errno as its user code. The call on the store returns it unchanged. */
static llvs_status failed(const char *what, llvs_error **error) {
    char message[256];
    snprintf(message, sizeof message, "%s failed: %s", what, strerror(errno));
    *error = llvs_error_create(errno, llvs_str(message));
    return LLVS_ERROR_USER;
}

static int read_all(int descriptor, uint8_t *to, size_t size, uint64_t offset) {
    while (size > 0) {
        ssize_t got = pread(descriptor, to, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        to += got; size -= (size_t)got; offset += (uint64_t)got;
    }
    return 1;
}

static uint64_t frame_length(const uint8_t header[8]) {
    uint64_t length = 0;
    int i;
    for (i = 7; i >= 0; i--) length = length << 8 | header[i];
    return length;
}

static llvs_status append(void *payload, const llvs_bytes *records, size_t count, uint64_t *places, llvs_error **error) {
    record_file *file = payload;
    size_t total = 0, used = 0, i;
    uint8_t *batch;
    for (i = 0; i < count; i++) total += 8 + records[i].size;
    batch = malloc(total);
    if (!batch) return failed("Making room for a batch", error);
    for (i = 0; i < count; i++) {
        int k;
        places[i] = file->end + used;
        for (k = 0; k < 8; k++) batch[used + k] = (uint8_t)((uint64_t)records[i].size >> (8 * k));
        memcpy(batch + used + 8, records[i].data, records[i].size);
        used += 8 + records[i].size;
    }
    for (used = 0; used < total;) {
        ssize_t put = pwrite(file->descriptor, batch + used, total - used, (off_t)(file->end + used));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) { free(batch); return failed("Writing records", error); }
        used += (size_t)put;
    }
    free(batch);
    file->end += total;
    return LLVS_OK;
}

/* The mark is the offset up to which records were reported. */
static llvs_status scan(void *payload, uint64_t *mark, llvs_reply *reply, llvs_error **error) {
    record_file *file = payload;
    off_t size = lseek(file->descriptor, 0, SEEK_END);
    static uint8_t prefix[65536];
    uint8_t header[8];
    if (size < 0) return failed("Looking at the file", error);
    while (*mark + 8 <= (uint64_t)size) {
        uint64_t length;
        size_t wanted;
        llvs_status status;
        if (!read_all(file->descriptor, header, 8, *mark)) return failed("Reading a frame", error);
        length = frame_length(header);
        if (length > (uint64_t)size - *mark - 8) break; /* incomplete: still being written */
        wanted = length < sizeof prefix ? (size_t)length : sizeof prefix;
        if (!read_all(file->descriptor, prefix, wanted, *mark + 8)) return failed("Reading a record", error);
        status = llvs_reply_record(reply, *mark, length, llvs_bytes_make(prefix, wanted), error);
        if (status != LLVS_OK) return status;
        *mark += 8 + length;
    }
    if (file->end < *mark) file->end = *mark;
    return LLVS_OK;
}

static llvs_status read_record(void *payload, uint64_t place, uint64_t offset, uint8_t *buffer, size_t size, llvs_error **error) {
    record_file *file = payload;
    uint8_t header[8];
    (void)error;
    if (!read_all(file->descriptor, header, 8, place)) return LLVS_ERROR_DAMAGED;
    if (offset > frame_length(header) || size > frame_length(header) - offset) return LLVS_ERROR_DAMAGED;
    return read_all(file->descriptor, buffer, size, place + 8 + offset) ? LLVS_OK : LLVS_ERROR_DAMAGED;
}

static llvs_status sync_file(void *payload, llvs_error **error) {
    return fsync(((record_file *)payload)->descriptor) == 0 ? LLVS_OK : failed("Syncing", error);
}

/* Called once, when the library no longer uses the storage. */
static void release(void *payload) {
    close(((record_file *)payload)->descriptor);
    free(payload);
}

static llvs_store *open_store(const char *path) {
    llvs_storage_callbacks callbacks = LLVS_STORAGE_CALLBACKS_INIT;
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_storage *storage;
    llvs_store *store;
    llvs_error *error;
    llvs_status status;
    record_file *file = calloc(1, sizeof *file);
    if (!file) { perror("calloc"); exit(1); }
    file->descriptor = open(path, O_RDWR | O_CREAT, 0644);
    if (file->descriptor < 0) { perror(path); exit(1); }
    callbacks.append = append;
    callbacks.scan = scan;
    callbacks.read = read_record;
    callbacks.sync = sync_file;
    status = llvs_storage_create(llvs_str(path), &callbacks, file, release, &storage, &error);
    check(status, error);
    options.storage = LLVS_STORAGE_HOST;
    options.host_storage = storage;
    status = llvs_store_open(LLVS_NONE, &options, &store, &error);
    llvs_storage_free(storage); /* the store retains it */
    check(status, error);
    return store;
}

int main(int argc, char **argv) {
    char made[] = "/tmp/llvs-example-XXXXXX", path[1024];
    const char *directory = argc > 1 ? argv[1] : mkdtemp(made);
    llvs_store *store;
    llvs_version_id version;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_buffer data;
    llvs_error *error;
    llvs_status status;
    int matches;

    if (!directory) { perror("mkdtemp"); return 1; }
    snprintf(path, sizeof path, "%s/records", directory);

    store = open_store(path);
    change.kind = LLVS_CHANGE_INSERT;
    change.id = llvs_str("greeting");
    change.data = llvs_str("hello from a file of my own");
    status = llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, &version, NULL, &error);
    check(status, error);
    llvs_store_free(store);

    store = open_store(path);
    status = llvs_store_value(store, change.id, llvs_id(&version), &data, NULL, &error);
    check(status, error);
    printf("%s holds: %s\n", path, data.data ? (char *)data.data : "(nothing)");
    matches = data.size == change.data.size && memcmp(data.data, change.data.data, data.size) == 0;
    llvs_buffer_dispose(&data);
    llvs_store_free(store);
    return !matches;
}

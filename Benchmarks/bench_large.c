/*
 * Measures what one large value costs: the peak of memory, in copies of the value, and the time.
 *
 *     bench_large [--quick] [--size <bytes>] [--storage file|sqlite] <folder>
 *
 * A value of 1 GiB, or with --quick 96 MiB, is stored at once and in pieces, fetched at once and in parts, sent to a folder, retrieved from
 * there, written to a snapshot and restored from it. Each step runs in a process of its own, with each storage. Prints the peak of RssAnon,
 * sampled every millisecond, minus the peak of a process that only opens the store. Fails if a step holds more than two copies and 16 MiB.
 * (The limit is one copy for fetching and retrieving; it is none for reading in parts, and for storing in pieces in a file storage.) Works
 * in <folder>/bench_large, which it removes before and after. Needs eight times the size on disk.
 */
#define _DEFAULT_SOURCE
#include <llvs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include "data.h"
#include "ours.h"
#include "process.h"
#include "workload.h"
#include "../Tests/C/folder_snapshots.h"

static const double slack = 16.0 * 1024 * 1024;
static const char *id = "large";

/* ---- the value: the same bytes in every process, that no compression makes smaller ---- */

static const uint64_t seed = 88172645463325252u;

static uint8_t *make_value(size_t size) {
    uint64_t state = seed;
    uint8_t *value = allocate(size, 1);
    size_t at;
    for (at = 0; at + 8 <= size; at += 8) {
        uint64_t word = draw(&state);
        memcpy(value + at, &word, 8);
    }
    for (; at < size; at++) value[at] = 7;
    return value;
}

/* Fails unless the words of the value are the next ones of the generator. */
static void expect_words(const uint8_t *value, size_t size, uint64_t *state) {
    size_t at;
    for (at = 0; at + 8 <= size; at += 8) {
        uint64_t word = draw(state);
        if (memcmp(value + at, &word, 8) != 0) fail("the bytes differ at %zu", at);
    }
}

static void expect_value(const uint8_t *value, size_t found, size_t size) {
    uint64_t state = seed;
    if (!value || found != size) fail("%zu bytes instead of %zu", found, size);
    expect_words(value, size, &state);
}

/* ---- the steps ---- */

typedef struct place {
    char first[4096], second[4096], third[4096], shared[4096], url[4200], snapshot[4096];
    llvs_storage_kind storage;
    size_t size;
} place;

static llvs_store *open_store(const place *place, const char *path) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_error *error;
    options.storage = place->storage;
    options.durability = LLVS_DURABILITY_NORMAL;
    must(llvs_store_open(llvs_str(path), &options, &store, &error), error);
    return store;
}

static void close_store(llvs_store *store) {
    llvs_error *error;
    must(llvs_store_close(store, &error), error);
    llvs_store_free(store);
}

static void only_open(const place *place) { close_store(open_store(place, place->first)); }

static void store_value(const place *place) {
    llvs_store *store = open_store(place, place->first);
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_version_id version;
    llvs_error *error;
    uint8_t *value = make_value(place->size);
    change.kind = LLVS_CHANGE_INSERT;
    change.id = llvs_str(id);
    change.data.data = value;
    change.data.size = place->size;
    must(llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, &version, NULL, &error), error);
    free(value);
    close_store(store);
}

typedef struct source {
    uint64_t state;
    size_t left;
} source;

static llvs_status next_piece(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **error) {
    source *source = payload;
    size_t at = 0;
    (void)error;
    while (at + 8 <= capacity && source->left >= 8) {
        uint64_t word = draw(&source->state);
        memcpy(buffer + at, &word, 8);
        at += 8;
        source->left -= 8;
    }
    while (at < capacity && source->left > 0 && source->left < 8) {
        buffer[at++] = 7;
        source->left--;
    }
    *size = at;
    return at ? LLVS_OK : LLVS_END;
}

static void store_pieces(const place *place, int is_told) {
    char path[4200];
    llvs_store *store;
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_value_source value = LLVS_VALUE_SOURCE_INIT;
    llvs_error *error;
    source source;
    snprintf(path, sizeof path, "%s-%s", place->first, is_told ? "told" : "untold");
    store = open_store(place, path);
    source.state = seed;
    source.left = place->size;
    value.id = llvs_str(id);
    value.size = is_told ? place->size : 0;
    value.read = next_piece;
    value.payload = &source;
    options.sources = &value;
    options.source_count = 1;
    options.source_size = sizeof value;
    must(llvs_store_make_version(store, LLVS_NONE, NULL, 0, sizeof(llvs_change), &options, NULL, NULL, &error), error);
    close_store(store);
    remove_folder(path);
    unlink(path);
}
static void store_told(const place *place) { store_pieces(place, 1); }
static void store_untold(const place *place) { store_pieces(place, 0); }

static void fetch_from(const place *place, const char *path) {
    llvs_store *store = open_store(place, path);
    llvs_version_list *head;
    llvs_buffer data;
    llvs_error *error;
    must(llvs_store_heads(store, NULL, &head, &error), error);
    must(llvs_store_value(store, llvs_str(id), head->items[0]->id, &data, NULL, &error), error);
    expect_value(data.data, data.size, place->size);
    llvs_buffer_dispose(&data);
    llvs_version_list_free(head);
    close_store(store);
}
static void fetch_value(const place *place) { fetch_from(place, place->first); }
static void fetch_retrieved(const place *place) { fetch_from(place, place->second); }
static void fetch_restored(const place *place) { fetch_from(place, place->third); }

/* Reads from front to back in parts that do not match the blocks, then at random places. */
static void read_parts(const place *place) {
    enum { PART = 100000 };
    llvs_store *store = open_store(place, place->first);
    llvs_version_list *head;
    llvs_value_reader *reader;
    llvs_error *error;
    uint64_t size, at, state = seed;
    uint8_t *part = allocate(PART, 1);
    size_t count, i;
    must(llvs_store_heads(store, NULL, &head, &error), error);
    must(llvs_store_open_value(store, llvs_str(id), head->items[0]->id, &reader, &size, NULL, &error), error);
    if (!reader || size != place->size) fail("the value has %llu bytes instead of %zu", (unsigned long long)size, place->size);
    for (at = 0; at < size; at += count) {
        must(llvs_value_reader_read(reader, at, part, PART, &count, &error), error);
        if (count == 0) fail("the value ends at %llu", (unsigned long long)at);
        expect_words(part, count, &state);
    }
    for (i = 0; i < 1000; i++) {
        must(llvs_value_reader_read(reader, draw(&state) % (size - 4096), part, 4096, &count, &error), error);
        if (count != 4096) fail("%zu bytes came instead of 4096", count);
    }
    free(part);
    llvs_value_reader_free(reader);
    llvs_version_list_free(head);
    close_store(store);
}

static void exchange(const place *place, const char *path, int is_sending) {
    llvs_store *store = open_store(place, path);
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_exchange *exchange;
    llvs_exchange_result *result;
    llvs_error *error;
    size_t count;
    options.durability = LLVS_DURABILITY_NORMAL;
    must(llvs_exchange_open(store, llvs_str(place->url), &options, &exchange, &error), error);
    if (is_sending) must(llvs_exchange_send(exchange, NULL, &result, &error), error);
    else must(llvs_exchange_retrieve(exchange, NULL, &result, &error), error);
    if (is_sending) count = result->sent_count;
    else count = result->retrieved_count;
    if (count != 1) fail("%zu versions travelled instead of 1", count);
    llvs_exchange_result_free(result);
    llvs_exchange_free(exchange);
    close_store(store);
}
static void send_value(const place *place) { exchange(place, place->first, 1); }
static void retrieve_value(const place *place) { exchange(place, place->second, 0); }

static void write_snapshot(const place *place) {
    llvs_store *store = open_store(place, place->first);
    llvs_error *error;
    must(write_snapshot_into(store, place->snapshot, NULL, &error), error);
    close_store(store);
}

static void restore_snapshot(const place *place) {
    llvs_store *store = open_store(place, place->third);
    llvs_error *error;
    must(restore_snapshot_from(store, place->snapshot, NULL, &error), error);
    close_store(store);
}

/* ---- running them ---- */

typedef struct cost {
    double bytes, seconds;
} cost;

static cost run(const place *place, void (*step)(const struct place *)) {
    double start = now();
    cost cost = { 0, 0 };
    int status;
    pid_t child, ended;
    fflush(stdout);
    child = fork();
    if (child < 0) fail("cannot make a process");
    if (child == 0) {
        step(place);
        fflush(stdout);
        _exit(0);
    }
    while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
        double bytes = (double)anonymous_memory(child) * 1024;
        if (bytes > cost.bytes) cost.bytes = bytes;
        usleep(1000);
    }
    if (ended != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) fail("a step failed");
    cost.seconds = now() - start;
    return cost;
}

static int measure(const char *folder, const char *storage, size_t size) {
    static const struct {
        const char *name;
        void (*step)(const place *);
        int copies, copies_in_records; /* at most: with file storage, with others */
    } steps[] = {
        { "store, in pieces, size told", store_told, 0, 2 },
        { "store, in pieces", store_untold, 0, 2 },
        { "store", store_value, 2, 2 },
        { "fetch", fetch_value, 1, 1 },
        { "read in parts", read_parts, 0, 0 },
        { "send to a folder", send_value, 2, 2 },
        { "retrieve from it", retrieve_value, 1, 1 },
        { "fetch what was retrieved", fetch_retrieved, 1, 1 },
        { "write a snapshot", write_snapshot, 2, 2 },
        { "restore it", restore_snapshot, 2, 2 },
        { "fetch what was restored", fetch_restored, 1, 1 },
    };
    int failures = 0;
    size_t i;
    double base;
    place place;
    memset(&place, 0, sizeof place);
    place.storage = strcmp(storage, "sqlite") == 0 ? LLVS_STORAGE_SQLITE : LLVS_STORAGE_FILE;
    place.size = size;
    remove_folder(folder);
    if (mkdir(folder, 0777) != 0) fail("cannot make %s", folder);
    snprintf(place.first, sizeof place.first, "%s/first", folder);
    snprintf(place.second, sizeof place.second, "%s/second", folder);
    snprintf(place.third, sizeof place.third, "%s/third", folder);
    snprintf(place.shared, sizeof place.shared, "%s/shared", folder);
    snprintf(place.url, sizeof place.url, "file://%s", place.shared);
    snprintf(place.snapshot, sizeof place.snapshot, "%s/snapshot", folder);
    base = run(&place, only_open).bytes;
    printf("%s storage, one value of %.0f MiB\n", storage, (double)size / 1048576);
    for (i = 0; i < sizeof steps / sizeof *steps; i++) {
        cost cost = run(&place, steps[i].step);
        double above = cost.bytes > base ? cost.bytes - base : 0;
        double copies = place.storage == LLVS_STORAGE_FILE ? steps[i].copies : steps[i].copies_in_records;
        int is_good = above <= copies * (double)size + slack;
        printf("  %-28s %7.0f MiB  %5.2f copies  %6.2f s%s\n", steps[i].name, above / 1048576, above / (double)size, cost.seconds,
               is_good ? "" : "  TOO MUCH");
        failures += !is_good;
    }
    remove_folder(folder);
    return failures;
}

int main(int count, char **arguments) {
    const char *storage = NULL, *parent = NULL;
    char folder[3000], *absolute;
    size_t size = (size_t)1 << 30;
    int i, failures = 0;
    for (i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--quick") == 0) size = (size_t)96 << 20;
        else if (strcmp(arguments[i], "--size") == 0 && i + 1 < count) size = (size_t)strtoull(arguments[++i], NULL, 10);
        else if (strcmp(arguments[i], "--storage") == 0 && i + 1 < count) storage = arguments[++i];
        else parent = arguments[i];
    }
    if (!parent) fail("usage: bench_large [--quick] [--size <bytes>] [--storage file|sqlite] <folder>");
    absolute = absolute_path(parent);
    snprintf(folder, sizeof folder, "%s/bench_large", absolute);
    free(absolute);
    if (!storage || strcmp(storage, "file") == 0) failures += measure(folder, "file", size);
    if (!storage || strcmp(storage, "sqlite") == 0) failures += measure(folder, "sqlite", size);
    return failures ? 1 : 0;
}

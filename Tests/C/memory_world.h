/* A store with so much data that every operation needs memory by the MiB, for tests that limit memory. */
#ifndef LLVS_TESTS_MEMORY_WORLD_H
#define LLVS_TESTS_MEMORY_WORLD_H

#include "support.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "array_storage.h"

enum { MEBIBYTE = 1 << 20, VALUES = 20000, LARGE = 6 * MEBIBYTE, CHAIN = 400, NOTE = 16 << 10, SIDE = 8000 };

/* A child that fails prints the reason to standard error, and the parent shows it. */
#define NEED(call)                                                                                                  \
    do {                                                                                                            \
        llvs_error *error = NULL;                                                                                   \
        llvs_status status_ = (call);                                                                               \
        if (status_ != LLVS_OK) {                                                                                   \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, llvs_status_name(status_), llvs_error_message(error));   \
            _exit(70);                                                                                              \
        }                                                                                                           \
    } while (0)

/* The address space of this process, in bytes. */
static inline size_t address_space(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (!file || fscanf(file, "%lu", &pages) != 1) _exit(90);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}
static inline void limit_to(rlim_t bytes) {
    struct rlimit limit;
    limit.rlim_cur = bytes;
    limit.rlim_max = RLIM_INFINITY;
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(91);
}

/* Takes all free blocks of the allocator, in all sizes, so that only the limit remains. They are never freed. */
static inline void take_what_is_free(void) {
    static void *volatile taken;
    size_t size;
    for (size = 1 * MEBIBYTE; size >= 16; size /= 2) {
        do taken = malloc(size);
        while (taken != NULL);
    }
}

/* Fills it with incompressible bytes. */
static inline void fill(uint8_t *bytes, size_t size, uint64_t word) {
    size_t i;
    word = word * 2654435761u + 88172645463325252u;
    for (i = 0; i + 8 <= size; i += 8) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        memcpy(bytes + i, &word, 8);
    }
}

typedef struct world {
    int kind;
    char path[300], folder[300], scratch[300];
    /* A folder with all versions and a snapshot. It lies beside the directory, and all worlds read it. */
    char sent[300];
    array_storage *array;
    llvs_store *store, *other;
    llvs_coordinator *coordinator;
    llvs_exchange *exchange;
    /* The arguments of operations, made before memory is limited. */
    llvs_change *changes;
    char (*names)[32];
    uint8_t *bytes;
    llvs_bytes *ids;
} world;

static inline llvs_store_options options_of(world *w) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    options.storage = (llvs_storage_kind)w->kind;
    options.durability = LLVS_DURABILITY_NORMAL;
    return options;
}
static inline llvs_status open_at(world *w, const char *path, array_storage *array, llvs_store **store, llvs_error **error) {
    llvs_store_options options = options_of(w);
    llvs_storage *storage = NULL;
    llvs_status status;
    *store = NULL;
    if (w->kind == LLVS_STORAGE_HOST) {
        llvs_storage_callbacks callbacks = array_storage_callbacks();
        status = llvs_storage_create(llvs_str("array"), &callbacks, array, NULL, &storage, error);
        if (status != LLVS_OK) return status;
        options.host_storage = storage;
    }
    status = llvs_store_open(w->kind == LLVS_STORAGE_FILE || w->kind == LLVS_STORAGE_SQLITE ? llvs_str(path) : LLVS_NONE, &options, store,
                             error);
    llvs_storage_free(storage);
    return status;
}

/* Makes `count` changes of values, beginning with number `first`. Each has `size` bytes that depend on `seed`. */
static inline void make_changes(world *w, size_t first, size_t count, size_t size, uint64_t seed) {
    size_t i;
    for (i = 0; i < count; i++) {
        snprintf(w->names[i], sizeof w->names[i], "value/%06u", (unsigned)(first + i));
        fill(w->bytes + i * size, size, seed + i);
        w->changes[i] = insert(w->names[i], "");
        w->changes[i].data = llvs_bytes_make(w->bytes + i * size, size);
        w->ids[i] = w->changes[i].id;
    }
}
static inline llvs_status save_as(world *w, const char *predecessor, const char *id, size_t count, const llvs_metadata_entry *note,
                                  llvs_error **error) {
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    options.id = llvs_str(id);
    options.metadata = note;
    options.metadata_count = note != NULL;
    return llvs_store_make_version(w->store, llvs_str(predecessor), w->changes, count, sizeof *w->changes, &options, NULL, NULL, error);
}

/* base - large - chain-0 ... chain-<last> - left
                                         \ - right; and a head for each of 8 others */
static inline void fill_world(world *w) {
    char id[32], before[32] = "large";
    llvs_metadata_entry note;
    uint8_t *text = malloc(NOTE);
    int i;
    if (!text) _exit(92);
    memset(text, 'n', NOTE);
    note.key = llvs_str("note");
    note.value = llvs_bytes_make(text, NOTE);
    make_changes(w, 0, VALUES, 120, 1);
    NEED(save_as(w, "", "base", VALUES, NULL, &error));
    fill(w->bytes, LARGE, 7);
    w->changes[0] = insert("large", "");
    w->changes[0].data = llvs_bytes_make(w->bytes, LARGE);
    NEED(save_as(w, "base", "large", 1, NULL, &error));
    for (i = 0; i < CHAIN; i++) {
        snprintf(id, sizeof id, i == CHAIN - 1 ? "top" : "chain-%d", i);
        make_changes(w, (size_t)i, 1, 200, 1000 + (uint64_t)i);
        NEED(save_as(w, before, id, 1, &note, &error));
        strcpy(before, id);
    }
    make_changes(w, 0, SIDE, 120, 3);
    NEED(save_as(w, "top", "left", SIDE, NULL, &error));
    make_changes(w, SIDE / 2, SIDE, 120, 4);
    NEED(save_as(w, "top", "right", SIDE, NULL, &error));
    for (i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "head-%d", i);
        make_changes(w, 1000 * (size_t)i, 1000, 120, 100 + (uint64_t)i);
        NEED(save_as(w, "top", id, 1000, NULL, &error));
    }
    free(text);
}

static inline void fill_folder(world *w) {
    char url[400];
    llvs_exchange *exchange;
    snprintf(url, sizeof url, "file://%s", w->sent);
    NEED(llvs_exchange_open(w->store, llvs_str(url), NULL, &exchange, &error));
    NEED(llvs_exchange_send(exchange, NULL, NULL, &error));
    NEED(llvs_exchange_put_snapshot(exchange, NULL, NULL, &error));
    llvs_exchange_free(exchange);
}

/* Allocates room for changes. The paths of its files begin with `directory`. */
static inline void make_world(world *w, int kind, const char *directory) {
    memset(w, 0, sizeof *w);
    w->kind = kind;
    snprintf(w->path, sizeof w->path, "%s/store", directory);
    snprintf(w->folder, sizeof w->folder, "%s/folder", directory);
    snprintf(w->scratch, sizeof w->scratch, "%s/scratch", directory);
    snprintf(w->sent, sizeof w->sent, "%s/../sent", directory);
    w->array = calloc(1, sizeof *w->array);
    w->changes = calloc(2 * VALUES, sizeof *w->changes);
    w->names = calloc(2 * VALUES, sizeof *w->names);
    w->ids = calloc(2 * VALUES, sizeof *w->ids);
    w->bytes = malloc(12 * MEBIBYTE);
    if (!w->array || !w->changes || !w->names || !w->ids || !w->bytes) _exit(92);
}

/* The array of a host's storage is written beside the files of the others: records, then blobs, each after its size (and name). */
static inline void write_array(const array_storage *array, const char *directory) {
    char path[400];
    FILE *file;
    size_t i;
    snprintf(path, sizeof path, "%s/array", directory);
    file = fopen(path, "wb");
    if (!file || fwrite(&array->count, sizeof array->count, 1, file) != 1) _exit(83);
    for (i = 0; i < array->count; i++) {
        size_t size = array->records[i].size;
        if (fwrite(&size, sizeof size, 1, file) != 1 || fwrite(array->records[i].data, 1, size, file) != size) _exit(83);
    }
    if (fwrite(array->blobs, sizeof array->blobs, 1, file) != 1) _exit(83);
    for (i = 0; i < array->blob_count; i++) {
        size_t size = array->blobs[i].data ? array->blobs[i].size : 0;
        if (fwrite(array->blobs[i].data, 1, size, file) != size) _exit(83);
    }
    if (fclose(file) != 0) _exit(83);
}
static inline uint8_t *read_bytes(FILE *file, size_t size) {
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes || fread(bytes, 1, size, file) != size) _exit(84);
    return bytes;
}
static inline void read_array(array_storage *array, const char *directory) {
    char path[400];
    FILE *file;
    size_t i;
    snprintf(path, sizeof path, "%s/array", directory);
    file = fopen(path, "rb");
    if (!file || fread(&array->count, sizeof array->count, 1, file) != 1) _exit(84);
    for (i = 0; i < array->count; i++) {
        if (fread(&array->records[i].size, sizeof array->records[i].size, 1, file) != 1) _exit(84);
        array->records[i].data = read_bytes(file, array->records[i].size);
    }
    if (fread(array->blobs, sizeof array->blobs, 1, file) != 1) _exit(84);
    for (; array->blob_count < sizeof array->blobs / sizeof *array->blobs && array->blobs[array->blob_count].name[0]; array->blob_count++) {
        i = array->blob_count;
        if (array->blobs[i].data) array->blobs[i].data = read_bytes(file, array->blobs[i].size);
    }
    fclose(file);
}

/* Checks that the store answers, has all acknowledged versions, and accepts more. */
static inline void look_at_world(world *w, const char *saved) {
    static const char *const versions[] = { "base", "large", "chain-0", "top", "left", "right", "head-7" };
    llvs_version_list *list;
    llvs_buffer data;
    llvs_change change = insert("behind", "1");
    uint8_t expected[120];
    size_t i;
    for (i = 0; i < sizeof versions / sizeof *versions; i++) {
        NEED(llvs_store_version(w->store, llvs_str(versions[i]), &list, &error));
        if (list == NULL || list->count != 1) { fprintf(stderr, "%s is gone\n", versions[i]); _exit(71); }
        llvs_version_list_free(list);
    }
    if (saved) {
        NEED(llvs_store_version(w->store, llvs_str(saved), &list, &error));
        if (list == NULL || list->count != 1) { fprintf(stderr, "%s was acknowledged and is gone\n", saved); _exit(72); }
        llvs_version_list_free(list);
    }
    fill(expected, sizeof expected, 1 + 777);
    NEED(llvs_store_value(w->store, llvs_str("value/000777"), llvs_str("base"), &data, NULL, &error));
    if (data.size != sizeof expected || memcmp(data.data, expected, sizeof expected) != 0) {
        fprintf(stderr, "a value is another\n");
        _exit(73);
    }
    llvs_buffer_dispose(&data);
    NEED(llvs_store_value(w->store, llvs_str("large"), llvs_str("right"), &data, NULL, &error));
    if (data.size != LARGE) { fprintf(stderr, "the large value is another\n"); _exit(74); }
    llvs_buffer_dispose(&data);
    NEED(llvs_store_make_version(w->store, llvs_str("right"), &change, 1, sizeof change, NULL, NULL, NULL, &error));
}

/* Checks that everything that was written is whole. */
static inline void verify_world(world *w) {
    llvs_verify_report *report;
    NEED(llvs_store_verify(w->store, NULL, &report, &error));
    if (report->damage_count != 0) {
        fprintf(stderr, "damage: %s\n", (const char *)report->damages[0]->message.data);
        _exit(82);
    }
    llvs_verify_report_free(report);
}

#endif

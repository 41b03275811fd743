/* Functions that the tests of the C interface share. Include it first. */
#ifndef LLVS_TESTS_SUPPORT_H
#define LLVS_TESTS_SUPPORT_H

#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "llvs.h"

/* A call that must succeed. Prints its error if it does not. `call` uses `&error`. */
#define OK(call)                                                                                      \
    do {                                                                                              \
        llvs_error *error = NULL;                                                                     \
        llvs_status status_ = (call);                                                                 \
        if (status_ != LLVS_OK) fail_msg("%s: %s", llvs_status_name(status_), llvs_error_message(error)); \
        assert_null(error);                                                                           \
    } while (0)

/* A call that must fail with a code, and a message that is not empty. */
#define FAILS(code, call)                                                                             \
    do {                                                                                              \
        llvs_error *error = NULL;                                                                     \
        llvs_status status_ = (call);                                                                 \
        if (status_ != (code))                                                                        \
            fail_msg("expected %s, got %s (%s)", llvs_status_name(code), llvs_status_name(status_), llvs_error_message(error)); \
        assert_non_null(error);                                                                       \
        assert_int_equal(llvs_error_code(error), (code));                                             \
        assert_true(strlen(llvs_error_message(error)) > 0);                                           \
        llvs_error_free(error);                                                                       \
    } while (0)

/* Checks that the call fails with the code, and with a message that names something. */
#define FAILS_NAMING(code, name, call)                                                                \
    do {                                                                                              \
        llvs_error *error = NULL;                                                                     \
        llvs_status status_ = (call);                                                                 \
        if (status_ != (code))                                                                        \
            fail_msg("expected %s, got %s (%s)", llvs_status_name(code), llvs_status_name(status_), llvs_error_message(error)); \
        if (!strstr(llvs_error_message(error), (name))) fail_msg("\"%s\" does not name %s", llvs_error_message(error), (name)); \
        llvs_error_free(error);                                                                       \
    } while (0)

/* A call that may succeed or fail. */
#define MAY_FAIL(call) ((void)((call) == LLVS_OK))

static inline llvs_change insert(const char *id, const char *data) {
    llvs_change change = LLVS_CHANGE_INIT;
    change.kind = LLVS_CHANGE_INSERT;
    change.id = llvs_str(id);
    change.data = llvs_str(data);
    return change;
}
static inline llvs_change update(const char *id, const char *data) {
    llvs_change change = insert(id, data);
    change.kind = LLVS_CHANGE_UPDATE;
    return change;
}
static inline llvs_change removal(const char *id) {
    llvs_change change = LLVS_CHANGE_INIT;
    change.kind = LLVS_CHANGE_REMOVE;
    change.id = llvs_str(id);
    return change;
}

static inline llvs_store *memory_store(void) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = NULL;
    options.storage = LLVS_STORAGE_MEMORY;
    OK(llvs_store_open(LLVS_NONE, &options, &store, &error));
    return store;
}

/* A version with one change. */
static inline llvs_version_id save(llvs_store *store, const llvs_version_id *predecessor, llvs_change change) {
    llvs_version_id id;
    OK(llvs_store_make_version(store, llvs_id(predecessor), &change, 1, sizeof change, NULL, &id, NULL, &error));
    return id;
}

/* Options for an exchange through a transport; valid until the next use. */
static inline const llvs_exchange_options *through(llvs_transport *transport) {
    static llvs_exchange_options options;
    options = (llvs_exchange_options)LLVS_EXCHANGE_OPTIONS_INIT;
    options.host_transport = transport;
    return &options;
}

static inline int bytes_are(llvs_bytes bytes, const char *text) {
    return bytes.data != NULL && bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

static inline int same_id(llvs_bytes bytes, const llvs_version_id *id) {
    return bytes.size == id->size && memcmp(bytes.data, id->text, bytes.size) == 0;
}

/* Checks that the value has these bytes; NULL: that it does not exist. */
static inline void value_is(llvs_store *store, const llvs_version_id *at, const char *id, const char *expected) {
    llvs_buffer data;
    llvs_version_id stored;
    OK(llvs_store_value(store, llvs_str(id), llvs_id(at), &data, &stored, &error));
    if (expected == NULL) {
        assert_null(data.data);
        assert_int_equal(stored.size, 0);
    } else {
        assert_non_null(data.data);
        assert_int_equal(data.size, strlen(expected));
        assert_string_equal((const char *)data.data, expected); /* a NUL follows */
        assert_true(stored.size > 0);
    }
    llvs_buffer_dispose(&data);
}

static inline size_t version_count(llvs_store *store) {
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    OK(llvs_store_statistics(store, NULL, &statistics, &error));
    return (size_t)statistics.versions;
}

/* Whether the test runs in full: `scripts/test --deep`. Otherwise it runs a fixed part. */
static inline int is_deep(void) {
    const char *deep = getenv("LLVS_DEEP");
    return deep && *deep;
}

/* Makes a new directory in the system's directory for temporary files. remove_directory removes it. */
static inline char *new_directory(void) {
    const char *base = getenv("TMPDIR");
    size_t size = strlen(base ? base : "/tmp") + 32;
    char *path = malloc(size);
    assert_non_null(path);
    snprintf(path, size, "%s/llvs-test-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}
static inline int is_exchange_folder_below(const char *path, int depth) {
    DIR *folder = opendir(path);
    struct dirent *entry;
    int found = 0;
    while (folder && !found && (entry = readdir(folder))) {
        char inside[2000];
        if (entry->d_name[0] == '.' || snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) >= (int)sizeof inside) continue;
        found = strcmp(entry->d_name, "versions") == 0 || (depth < 8 && is_exchange_folder_below(inside, depth + 1));
    }
    if (folder) closedir(folder);
    return found;
}
/* Returns whether everything was removed. */
static inline int remove_all_of(const char *path) {
    struct stat status;
    DIR *folder;
    struct dirent *entry;
    if (lstat(path, &status) != 0) return 1;
    if (!S_ISDIR(status.st_mode)) return unlink(path) == 0;
    folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        char inside[2000];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) < (int)sizeof inside) (void)remove_all_of(inside);
    }
    if (folder) closedir(folder);
    return rmdir(path) == 0;
}
static inline void remove_directory(char *path) {
    char command[3000];
    const char *strict = getenv("LLVS_STRICT");
    assert_true(strlen(path) < 1000);
    /* Other implementations must be able to read what is left in an exchange folder (scripts/lib/strict.sh). */
    if (strict && *strict && is_exchange_folder_below(path, 0)) {
        snprintf(command, sizeof command, "chmod -R u+rwx '%s'; \"$LLVS_STRICT\" '%s' '%s'", path, path, __BASE_FILE__);
        assert_int_equal(system(command), 0);
    }
    if (!remove_all_of(path)) {
        /* Something in it may be write-protected. */
        snprintf(command, sizeof command, "chmod -R u+rwx '%s'; rm -rf '%s'", path, path);
        assert_int_equal(system(command), 0);
    }
    free(path);
}
static inline char *join(const char *directory, const char *name) {
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = malloc(size);
    assert_non_null(path);
    snprintf(path, size, "%s/%s", directory, name);
    return path;
}
static inline void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* A payload that counts how often it is freed. */
static inline void count_free(void *payload) { ++*(int *)payload; }

#endif

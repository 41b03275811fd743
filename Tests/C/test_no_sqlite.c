/*
 * A machine without SQLite, or with an unusable one: the storage in SQLite reports it and says what to do, and everything else works. The
 * program has its own dlopen, which the library calls. Each case is a process of its own, since a library that was opened once stays open.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "support.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The library that is opened instead of SQLite; NULL: SQLite. */
static const char *in_its_place;
static int asked;

void *dlopen(const char *name, int flags) {
    static void *(*real)(const char *, int);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
    if (name && strstr(name, "sqlite3")) {
        asked++;
        if (in_its_place) return real(in_its_place, flags & (RTLD_NOW | RTLD_LAZY));
    }
    return real(name, flags);
}

static llvs_status open_in(const char *directory, llvs_storage_kind kind, llvs_store **store, llvs_error **error) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    char *path = join(directory, kind == LLVS_STORAGE_SQLITE ? "store.db" : "store");
    llvs_status status;
    options.storage = kind;
    status = llvs_store_open(llvs_str(path), &options, store, error);
    free(path);
    return status;
}
static void works(const char *directory, llvs_storage_kind kind) {
    llvs_store *store = NULL;
    llvs_version_id id;
    OK(open_in(directory, kind, &store, &error));
    id = save(store, NULL, insert("x", "1"));
    value_is(store, &id, "x", "1");
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}

/* Runs in a child whose failures fail the test. */
static void in_a_child(void (*body)(const char *directory)) {
    char *directory = new_directory();
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body(directory);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) fail_msg("the child ended with %d", status);
    remove_directory(directory);
}
/* cmocka's checks leave a test by longjmp. A child process must exit instead. */
#define IN_CHILD(condition)                                                                 \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);         \
            _exit(1);                                                                       \
        }                                                                                   \
    } while (0)

/* SQLite storage is refused with a message that contains both texts. File storage works, and does not load SQLite. */
static void is_refused(const char *directory, llvs_status code, const char *why, const char *advice) {
    llvs_store *store = NULL;
    llvs_error *error = NULL;
    int before;
    llvs_status status = open_in(directory, LLVS_STORAGE_SQLITE, &store, &error);
    if (status != code || !strstr(llvs_error_message(error), why) || !strstr(llvs_error_message(error), advice)) {
        fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(error));
        _exit(1);
    }
    llvs_error_free(error);
    IN_CHILD(store == NULL && asked > 0);
    before = asked;
    works(directory, LLVS_STORAGE_FILE);
    IN_CHILD(asked == before);
}

static void none(const char *directory) {
    in_its_place = "libsqlite3-that-is-not-there.so.0";
    is_refused(directory, LLVS_ERROR_UNSUPPORTED, "libsqlite3-that-is-not-there", "libsqlite3-0");
    /* SQLite was installed meanwhile. */
    in_its_place = NULL;
    works(directory, LLVS_STORAGE_SQLITE);
}
static void old(const char *directory) {
    in_its_place = LLVS_BINARY_DIR "/tests/sqlite_old.so";
    is_refused(directory, LLVS_ERROR_UNSUPPORTED, "3.7.17", "newer");
}
static void unsafe(const char *directory) {
    in_its_place = LLVS_BINARY_DIR "/tests/sqlite_unsafe.so";
    is_refused(directory, LLVS_ERROR_UNSUPPORTED, "one thread", "Install");
}
static void partial(const char *directory) {
    in_its_place = LLVS_BINARY_DIR "/tests/sqlite_partial.so";
    is_refused(directory, LLVS_ERROR_UNSUPPORTED, "sqlite3_prepare_v3", "Install");
}
static void without_descriptors(const char *directory) {
    struct rlimit limit, few;
    llvs_store *store = NULL;
    llvs_error *error = NULL;
    int next = open("/dev/null", O_RDONLY);
    IN_CHILD(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    few = limit;
    few.rlim_cur = (rlim_t)next;
    IN_CHILD(setrlimit(RLIMIT_NOFILE, &few) == 0);
    IN_CHILD(open_in(directory, LLVS_STORAGE_SQLITE, &store, &error) == LLVS_ERROR_TOO_MANY_FILES);
    IN_CHILD(llvs_error_system_code(error) == EMFILE);
    llvs_error_free(error);
    IN_CHILD(open_in(directory, LLVS_STORAGE_FILE, &store, &error) == LLVS_ERROR_TOO_MANY_FILES);
    IN_CHILD(llvs_error_system_code(error) == EMFILE);
    llvs_error_free(error);
    IN_CHILD(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    works(directory, LLVS_STORAGE_SQLITE);
    works(directory, LLVS_STORAGE_FILE);
}

static void no_sqlite(void **state) { (void)state; in_a_child(none); }
static void one_too_old(void **state) { (void)state; in_a_child(old); }
static void one_for_one_thread(void **state) { (void)state; in_a_child(unsafe); }
static void one_that_lacks_something(void **state) { (void)state; in_a_child(partial); }
static void no_descriptor(void **state) { (void)state; in_a_child(without_descriptors); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_sqlite), cmocka_unit_test(one_too_old), cmocka_unit_test(one_for_one_thread),
        cmocka_unit_test(one_that_lacks_something), cmocka_unit_test(no_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * A host has closed its standard input, output and error, as daemons do, but prints nevertheless. None of the library's files gets these
 * numbers, so nothing that is printed goes into a store. Every operation runs in a process of its own, with some of the three closed. Other
 * threads of the host print as soon as the number of an opened file is known.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "support.h"
#include "folder_snapshots.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/wait.h>

#define CHATTER "what the host prints, long enough to be seen where it does not belong\n"
enum { LARGE = 3 << 20, DESCRIPTORS = 256 };

static const llvs_storage_kind kinds[] = { LLVS_STORAGE_FILE, LLVS_STORAGE_SQLITE };

/* ---- In the child ---- */

static int closed_ones; /* bits 0 to 2 */
static int report;      /* where the parent reads failures */
static char inherited[DESCRIPTORS];

static void fail_in_child(const char *what, const char *why) {
    char text[1200];
    int size = snprintf(text, sizeof text, "closed %d: %s: %s", closed_ones, what, why ? why : "");
    if (write(report, text, size < (int)sizeof text ? (size_t)size : sizeof text - 1) < 0) _exit(3);
    _exit(2);
}
static void must(const char *what, llvs_status status, llvs_error *error) {
    if (status != LLVS_OK) fail_in_child(what, llvs_error_message(error));
}
#define MUST(call)                               \
    do {                                         \
        llvs_error *error = NULL;                \
        llvs_status status_ = (call);            \
        must(#call, status_, error);             \
    } while (0)

/* These replace the system's functions. A file that is moved to another number was first open under the number of the host's output, to
   which another thread may have printed. */
static int controlled(const char *name, int fd, int command, void *argument) {
    int (*real)(int, int, ...) = (int (*)(int, int, ...))(uintptr_t)dlsym(RTLD_NEXT, name);
    if (command == F_DUPFD_CLOEXEC && fd >= 0 && fd <= 2 && closed_ones & 1 << fd && write(fd, CHATTER, strlen(CHATTER)) > 0)
        fail_in_child("opening", "the library would receive the output of another thread");
    return real(fd, command, argument);
}
#define CONTROL(name)                          \
    int name(int fd, int command, ...) {       \
        va_list arguments;                     \
        void *argument;                        \
        va_start(arguments, command);          \
        argument = va_arg(arguments, void *);  \
        va_end(arguments);                     \
        return controlled(#name, fd, command, argument); \
    }
CONTROL(fcntl)
CONTROL(fcntl64)

/* Prints as the host would, and checks where it went. */
static void print_and_look(const char *when) {
    char link[64], target[PATH_MAX];
    for (int fd = 0; fd <= 2; fd++) {
        ssize_t size;
        if (!(closed_ones & 1 << fd)) continue;
        if (write(fd, CHATTER, strlen(CHATTER)) > 0) fail_in_child(when, "the output went elsewhere");
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        size = readlink(link, target, sizeof target - 1);
        if (size < 0) continue;
        target[size] = 0;
        /* Gaps are filled before a file is opened for writing. SQLite fills them too. */
        if (strcmp(target, "/dev/null") != 0) fail_in_child(when, target);
    }
    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && !(flags & FD_CLOEXEC) && !inherited[fd]) fail_in_child(when, "a descriptor would stay open in another program");
    }
}

static llvs_store *open_at(const char *path, llvs_storage_kind kind) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = NULL;
    options.storage = kind;
    MUST(llvs_store_open(llvs_str(path), &options, &store, &error));
    print_and_look("open");
    return store;
}
static void close_it(llvs_store *store) {
    MUST(llvs_store_close(store, &error));
    print_and_look("close");
    llvs_store_free(store);
}
static llvs_version_id make(llvs_store *store, const llvs_version_id *on, const char *id, const char *data, size_t size) {
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_version_id made;
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = llvs_str(id);
    change.data = llvs_bytes_make(data, size);
    MUST(llvs_store_make_version(store, llvs_id(on), &change, 1, sizeof change, NULL, &made, NULL, &error));
    print_and_look("save");
    return made;
}
static void nothing_to_do(void *payload) { (void)payload; }

static void everything(const char *directory, llvs_storage_kind kind) {
    char *path = join(directory, "store"), *other_path = join(directory, "other"), *snapshot = join(directory, "snapshot");
    char *restored_path = join(directory, "restored"), *salvaged_path = join(directory, "salvaged"), *folder = join(directory, "folder");
    char *large = malloc(LARGE), url[PATH_MAX];
    llvs_store *store, *other;
    llvs_exchange *exchange = NULL, *others = NULL;
    llvs_exchange_result *result = NULL;
    llvs_observer *observer = NULL;
    llvs_version_id last, side;
    if (!large) fail_in_child("memory", NULL);
    memset(large, 'x', LARGE);
    snprintf(url, sizeof url, "file://%s", folder);

    /* Some openings, which give a compaction something to do. */
    store = open_at(path, kind);
    last = make(store, NULL, "first", "1", 1);
    close_it(store);
    for (int i = 0; i < 12; i++) {
        char id[16];
        snprintf(id, sizeof id, "note/%d", i);
        store = open_at(path, kind);
        last = make(store, &last, id, "text", 4);
        close_it(store);
    }
    store = open_at(path, kind);
    last = make(store, &last, "large", large, LARGE);
    side = make(store, &last, "left", "l", 1);
    make(store, &last, "right", "r", 1);
    {
        llvs_buffer data;
        MUST(llvs_store_value(store, llvs_str("large"), llvs_id(&side), &data, NULL, &error));
        print_and_look("read");
        if (data.size != LARGE || memcmp(data.data, large, LARGE) != 0) fail_in_child("read", "other bytes");
        llvs_buffer_dispose(&data);
    }
    MUST(llvs_store_merge_heads(store, llvs_id(&side), NULL, NULL, NULL, &error));
    print_and_look("merge");

    {
        llvs_coordinator *coordinator = NULL;
        char *coordinated_path = join(directory, "coordinated");
        llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
        llvs_coordinator_options of_coordinator = LLVS_COORDINATOR_OPTIONS_INIT;
        llvs_change change = LLVS_CHANGE_INIT;
        options.storage = kind;
        of_coordinator.store = &options;
        change.kind = LLVS_CHANGE_UPDATE;
        change.id = llvs_str("noted");
        MUST(llvs_coordinator_open(llvs_str(coordinated_path), &of_coordinator, &coordinator, &error));
        print_and_look("open a coordinator");
        for (int i = 0; i < 3; i++) {
            MUST(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error));
            print_and_look("save by a coordinator");
        }
        MUST(llvs_coordinator_close(coordinator, &error));
        llvs_coordinator_free(coordinator);
        free(coordinated_path);
    }

    /* An exchange, observed by another store. */
    other = open_at(other_path, kind);
    MUST(llvs_exchange_open(other, llvs_str(url), NULL, &others, &error));
    MUST(llvs_exchange_observe(others, nothing_to_do, NULL, NULL, &observer, &error));
    print_and_look("observe");
    MUST(llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error));
    MUST(llvs_exchange_send(exchange, NULL, &result, &error));
    print_and_look("send");
    llvs_exchange_result_free(result);
    MUST(llvs_exchange_retrieve(others, NULL, &result, &error));
    print_and_look("retrieve");
    llvs_exchange_result_free(result);
    llvs_observer_free(observer);
    llvs_exchange_free(exchange);
    llvs_exchange_free(others);
    print_and_look("end of the exchange");
    close_it(other);

    MUST(write_snapshot_into(store, snapshot, NULL, &error));
    print_and_look("snapshot");
    other = open_at(restored_path, kind);
    MUST(restore_snapshot_from(other, snapshot, NULL, &error));
    print_and_look("restore");
    close_it(other);

    {
        llvs_compaction_report compaction = LLVS_COMPACTION_REPORT_INIT;
        llvs_verify_report *verified = NULL;
        MUST(llvs_store_compact(store, NULL, &compaction, &error));
        print_and_look("compact");
        MUST(llvs_store_verify(store, NULL, &verified, &error));
        print_and_look("verify");
        if (verified->damage_count > 0) fail_in_child("verify", "damaged");
        llvs_verify_report_free(verified);
    }
    close_it(store);
    {
        llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
        llvs_salvage_report *salvaged = NULL;
        options.storage = kind;
        MUST(llvs_store_salvage(llvs_str(path), &options, llvs_str(salvaged_path), &options, NULL, &salvaged, &error));
        print_and_look("salvage");
        llvs_salvage_report_free(salvaged);
    }
}

/* ---- In the parent ---- */

/* Checks that no file below a directory contains the printed text. */
static void holds_no_chatter(const char *path) {
    DIR *directory = opendir(path);
    struct dirent *entry;
    if (!directory) {
        FILE *file = fopen(path, "rb");
        static char bytes[LARGE + (1 << 16)];
        size_t size, wanted = strlen(CHATTER);
        assert_non_null(file);
        while ((size = fread(bytes, 1, sizeof bytes, file)) > 0)
            for (size_t i = 0; i + wanted <= size; i++)
                if (bytes[i] == CHATTER[0] && memcmp(bytes + i, CHATTER, wanted) == 0) fail_msg("%s contains the output", path);
        fclose(file);
        return;
    }
    while ((entry = readdir(directory)) != NULL) {
        char *inner;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        inner = join(path, entry->d_name);
        holds_no_chatter(inner);
        free(inner);
    }
    closedir(directory);
}

static void is_whole(const char *directory, const char *name, llvs_storage_kind kind) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = NULL;
    llvs_verify_report *report_ = NULL;
    char *path = join(directory, name);
    options.storage = kind;
    options.must_exist = 1;
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    assert_int_equal(version_count(store), 17);
    OK(llvs_store_verify(store, NULL, &report_, &error));
    assert_int_equal(report_->damage_count, 0);
    llvs_verify_report_free(report_);
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
    free(path);
}

static void with_closed(int ones, llvs_storage_kind kind) {
    char *directory = new_directory(), text[1200];
    int pipes[2], status = 0;
    ssize_t size;
    pid_t child;
    assert_int_equal(pipe(pipes), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        closed_ones = ones;
        report = fcntl(pipes[1], F_DUPFD, 100);
        for (int fd = 0; fd <= 2; fd++) if (ones & 1 << fd) close(fd);
        for (int fd = 3; fd < DESCRIPTORS; fd++) inherited[fd] = fcntl(fd, F_GETFD) >= 0;
        everything(directory, kind);
        _exit(0);
    }
    close(pipes[1]);
    size = read(pipes[0], text, sizeof text - 1);
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    text[size > 0 ? size : 0] = 0;
    if (size > 0 || status != 0) fail_msg("status %d: %s", status, text);
    is_whole(directory, "store", kind);
    is_whole(directory, "other", kind);
    is_whole(directory, "restored", kind);
    is_whole(directory, "salvaged", kind);
    holds_no_chatter(directory);
    remove_directory(directory);
}

static void all_closed(void **state) { with_closed(7, *(const llvs_storage_kind *)*state); }
static void output_closed(void **state) { with_closed(2, *(const llvs_storage_kind *)*state); }
static void input_and_error_closed(void **state) { with_closed(5, *(const llvs_storage_kind *)*state); }

int main(void) {
    const struct CMUnitTest tests[] = {
        { "files, all closed", all_closed, NULL, NULL, (void *)(uintptr_t)&kinds[0] },
        { "files, output closed", output_closed, NULL, NULL, (void *)(uintptr_t)&kinds[0] },
        { "files, input and error closed", input_and_error_closed, NULL, NULL, (void *)(uintptr_t)&kinds[0] },
        { "SQLite, all closed", all_closed, NULL, NULL, (void *)(uintptr_t)&kinds[1] },
        { "SQLite, output closed", output_closed, NULL, NULL, (void *)(uintptr_t)&kinds[1] },
        { "SQLite, input and error closed", input_and_error_closed, NULL, NULL, (void *)(uintptr_t)&kinds[1] },
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Runs every operation under various limits of memory. It succeeds or fails with LLVS_ERROR_OUT_OF_MEMORY, the process survives, and
   the store answers and has all acknowledged versions.

   For each limit an operation runs in a process of its own. The limits rise from what that process already uses until the operation
   succeeds; the allocator has no free blocks left. An operation that stores something gets a fresh copy of the store each time, which
   is verified afterwards. Operations that only read share one. LLVS_MEMORY_STORAGE (file, sqlite, memory, host) and
   LLVS_MEMORY_OPERATION select what runs, and `test_falling_memory_c <operation> <storage> <KiB>` runs a single one, for a debugger.
   The library must be the shipped one: if the Swift runtime does not allocate with the library's own function, the reserve is not used. */
#include "memory_world.h"

#include <signal.h>
#include <sys/stat.h>

#include "child.h"
#include "memory_operations.h"

/* Returns the next amount of memory, in bytes, beginning with none. With LLVS_MEMORY_FINE in the environment there are many more. In
   the short run each amount is four times the one before, and every other operation uses the amounts in between. */
static size_t next_room(size_t room, size_t turn) {
    if (!getenv("LLVS_MEMORY_FINE")) {
        if (room == 0) return is_deep() || turn % 2 ? 512u * 1024 : 1024u * 1024;
        return is_deep() ? 2 * room : 4 * room;
    }
    return room < 1 * MEBIBYTE ? room + 128 * 1024 : room < 8 * MEBIBYTE ? room + 512 * 1024 : room + room / 8;
}

/* Uses the stack, so that none of it must be mapped later. A stack that cannot grow would end the process in any code. */
static void use_stack(void) {
    volatile char stack[256 << 10];
    size_t i;
    for (i = 0; i < sizeof stack; i += 1024) stack[i] = 1;
}

/* Opens a world with all its contents. A store in memory is filled again; others are in the directory. */
static void enter_world(world *w, int kind, const char *directory) {
    make_world(w, kind, directory);
    if (kind == LLVS_STORAGE_HOST) read_array(w->array, directory);
    NEED(open_at(w, w->path, w->array, &w->store, &error));
    if (kind == LLVS_STORAGE_MEMORY) fill_world(w);
}

/* Runs in a child. Returns 0 if the operation succeeded and 1 if it was refused; everything else is a fault. */
static int run(const operation *o, int kind, size_t room, const char *directory) {
    world w;
    llvs_error *error = NULL;
    llvs_status status;
    size_t before;
    signal(SIGSEGV, SIG_DFL); /* cmocka's own handlers would continue with the tests */
    signal(SIGABRT, SIG_DFL);
    signal(SIGILL, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    enter_world(&w, kind, directory);
    if (o->prepare) o->prepare(&w);
    use_stack();
    before = address_space();
    limit_to((rlim_t)before);
    take_what_is_free();
    limit_to((rlim_t)(before + room));
    status = o->run(&w, &error);
    limit_to(RLIM_INFINITY);
    /* The host's own allocations fail too. */
    if (kind == LLVS_STORAGE_HOST && status == LLVS_ERROR_NO_SPACE) status = LLVS_ERROR_OUT_OF_MEMORY;
    if (status != LLVS_OK && status != LLVS_ERROR_OUT_OF_MEMORY) {
        fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(error));
        return 81;
    }
    llvs_error_free(error);
    if (!w.store) NEED(open_at(&w, w.path, w.array, &w.store, &error));
    look_at_world(&w, status == LLVS_OK ? o->saves : NULL);
    if (o->finish) o->finish(&w);
    llvs_coordinator_free(w.coordinator);
    llvs_exchange_free(w.exchange);
    if (kind == LLVS_STORAGE_MEMORY) verify_world(&w);
    NEED(llvs_store_close(w.store, &error));
    llvs_store_free(w.store);
    llvs_store_free(w.other);
    if (o->storages & READS) {
        if (kind == LLVS_STORAGE_HOST) write_array(w.array, directory);
    } else if (kind != LLVS_STORAGE_MEMORY) {
        NEED(open_at(&w, w.path, w.array, &w.store, &error));
        verify_world(&w);
        look_at_world(&w, status == LLVS_OK ? o->saves : NULL);
    }
    return status == LLVS_OK ? 0 : 1;
}

/* The steps before the first limit and after the last one also run in child processes of their own. */
static int fill_template(int kind, const char *template) {
    world w;
    if (kind == LLVS_STORAGE_MEMORY) return 0;
    make_world(&w, kind, template);
    NEED(open_at(&w, w.path, w.array, &w.store, &error));
    fill_world(&w);
    if (kind != LLVS_STORAGE_HOST) fill_folder(&w);
    NEED(llvs_store_close(w.store, &error));
    if (kind == LLVS_STORAGE_HOST) write_array(w.array, template);
    return 0;
}
static int look_behind(int kind, const char *directory) {
    world w;
    if (kind == LLVS_STORAGE_MEMORY) return 0;
    enter_world(&w, kind, directory);
    verify_world(&w);
    look_at_world(&w, NULL);
    return 0;
}

static const struct { int kind; const char *name; } storages[] = {
    { LLVS_STORAGE_FILE, "file" }, { LLVS_STORAGE_SQLITE, "sqlite" }, { LLVS_STORAGE_MEMORY, "memory" }, { LLVS_STORAGE_HOST, "host" }
};
enum { storage_count = sizeof storages / sizeof *storages };

/* The processor time that a child may use, in seconds. */
enum { MOST_OF_PROCESSOR = 120 };

static int outcome_of(pid_t child) {
    int status;
    assert_true(child >= 0);
    assert_int_equal(wait_for_child(child, MOST_OF_PROCESSOR, &status, NULL), child);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}
#define IN_CHILD(call) (fflush(NULL), (child = fork()) == 0 ? (_exit(call), 0) : outcome_of(child))

static void renew(const char *copy, const char *template) {
    char command[1000];
    snprintf(command, sizeof command, "rm -rf '%s'; cp -r '%s' '%s'", copy, template, copy);
    assert_int_equal(system(command), 0);
}

/* Runs all limits of one operation. Returns the number of faults. */
static int fall(const operation *o, size_t turn, int kind, const char *name, const char *template, const char *copy) {
    size_t room, needed = 0;
    int done = 0, refused = 0, faults = 0, tries = 0, result;
    pid_t child;
    for (room = 0; !done && room < 400u * MEBIBYTE; room = next_room(room, turn)) {
        if (tries++ == 0 || !(o->storages & READS)) renew(copy, template);
        result = IN_CHILD(run(o, kind, room, copy));
        if (result == 0) { done = 1; needed = room; }
        else if (result == 1) refused++;
        else {
            fprintf(stderr, "%s, %s storage, %zu KiB: %s %d\n", o->name, name, room >> 10,
                    result > 1000 ? "ended by signal" : "gave", result > 1000 ? result - 1000 : result);
            faults++;
        }
    }
    if (o->storages & READS) {
        result = IN_CHILD(look_behind(kind, copy));
        if (result != 0) { fprintf(stderr, "%s, %s storage: behind it all %d\n", o->name, name, result); faults++; }
    }
    printf("%-24s %-6s  %3d limits, refused %3d, faults %3d, enough is %zu KiB\n", o->name, name, tries, refused, faults, needed >> 10);
    return faults + !done;
}

static void each_operation(void **state) {
    const char *only = getenv("LLVS_MEMORY_OPERATION"), *on = getenv("LLVS_MEMORY_STORAGE");
    size_t s, i;
    int faults = 0, ran = 0, all = 0;
    (void)state;
    for (s = 0; s < storage_count; s++) {
        char *directory, *template, *copy;
        pid_t child;
        if (on && strcmp(on, storages[s].name) != 0) continue;
        directory = new_directory();
        template = join(directory, "template");
        copy = join(directory, "copy");
        assert_int_equal(mkdir(template, 0700), 0);
        assert_int_equal(IN_CHILD(fill_template(storages[s].kind, template)), 0);
        for (i = 0; i < operation_count; i++) {
            if ((only && strstr(only, operations[i].name) == NULL) || !(operations[i].storages & 1u << storages[s].kind)) continue;
            all++;
            /* In the short run, operations for both files and SQLite run on one of the two, and on half of the other storages. */
            if (!only && !is_deep() && (operations[i].storages & (F | S)) == (F | S) && (i + s) % 2 != 0) continue;
            faults += fall(&operations[i], i / 2 + s, storages[s].kind, storages[s].name, template, copy);
            ran++;
        }
        free(template);
        free(copy);
        remove_directory(directory);
    }
    printf("%d of %d operations%s; all, at more limits: scripts/test --deep c\n", ran, all, is_deep() ? "" : ", at every other limit");
    assert_int_equal(faults, 0);
    assert_true(ran > 0);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_operation) };
    if (count == 4) {
        char directory[] = "/tmp/llvs-memory-XXXXXX", *copy;
        size_t s = 0, i = 0;
        pid_t child;
        while (s + 1 < storage_count && strcmp(storages[s].name, arguments[2]) != 0) s++;
        while (i + 1 < operation_count && strcmp(operations[i].name, arguments[1]) != 0) i++;
        if (!mkdtemp(directory)) return 1;
        copy = join(directory, "copy");
        if (mkdir(copy, 0700) != 0 || IN_CHILD(fill_template(storages[s].kind, copy)) != 0) return 2;
        return run(&operations[i], storages[s].kind, (size_t)atol(arguments[3]) << 10, copy);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

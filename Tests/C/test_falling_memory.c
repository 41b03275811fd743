/* Every operation under a limit of memory that falls: it succeeds or gives LLVS_ERROR_OUT_OF_MEMORY, the process lives, and the store
   answers and has what was acknowledged.

   Each operation runs in a process of its own for each limit, from what that process has upwards, until it has succeeded twice; nothing
   that the allocator holds is left to it. LLVS_MEMORY_OPERATION and LLVS_MEMORY_STORAGE name what is to run, and
   `test_falling_memory_c <operation> <storage> <KiB>` runs one, for a debugger. The library is to be the one that is shipped: with
   another allocation of the Swift runtime's than its own the reserve is not asked. */
#include "memory_world.h"

#include <signal.h>

#include "memory_operations.h"

/* Rooms in bytes, from none on; with LLVS_MEMORY_FINE in the environment many more. */
static size_t next_room(size_t room) {
    if (!getenv("LLVS_MEMORY_FINE")) return room == 0 ? 512 * 1024 : 2 * room;
    return room < 1 * MEBIBYTE ? room + 128 * 1024 : room < 8 * MEBIBYTE ? room + 512 * 1024 : room + room / 8;
}

/* So that none of it has to be mapped later: a stack that cannot grow ends a process whatever it runs. */
static void use_stack(void) {
    volatile char stack[256 << 10];
    size_t i;
    for (i = 0; i < sizeof stack; i += 1024) stack[i] = 1;
}

/* In a child: 0 when the operation succeeded, 1 when it was refused; everything else is a fault. */
static int run(const operation *o, int kind, size_t room, const char *template, const char *directory) {
    world w;
    llvs_error *error = NULL;
    llvs_status status;
    size_t before;
    signal(SIGSEGV, SIG_DFL); /* cmocka's own handlers would go on with the tests */
    signal(SIGABRT, SIG_DFL);
    signal(SIGILL, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    make_world(&w, kind, directory);
    {
        char command[1000];
        int on_disk = kind == LLVS_STORAGE_FILE || kind == LLVS_STORAGE_SQLITE;
        if (on_disk) snprintf(command, sizeof command, "rm -rf '%s'; cp -r '%s' '%s'", directory, template, directory);
        else snprintf(command, sizeof command, "rm -rf '%s'; mkdir '%s'", directory, directory);
        if (system(command) != 0) return 80;
    }
    NEED(open_at(&w, w.path, w.array, &w.store, &error));
    if (kind == LLVS_STORAGE_MEMORY || kind == LLVS_STORAGE_HOST) fill_world(&w);
    if (o->prepare) o->prepare(&w);
    use_stack();
    before = address_space();
    limit_to((rlim_t)before);
    take_what_is_free();
    limit_to((rlim_t)(before + room));
    status = o->run(&w, &error);
    limit_to(RLIM_INFINITY);
    /* The host's own allocations fail as well. */
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
    NEED(llvs_store_close(w.store, &error));
    llvs_store_free(w.store);
    llvs_store_free(w.other);
    /* What was written is whole. */
    if (kind != LLVS_STORAGE_MEMORY) {
        llvs_verify_report *report;
        NEED(open_at(&w, w.path, w.array, &w.store, &error));
        NEED(llvs_store_verify(w.store, NULL, &report, &error));
        if (report->damage_count != 0) { fprintf(stderr, "%zu damaged\n", report->damage_count); return 82; }
        llvs_verify_report_free(report);
        look_at_world(&w, status == LLVS_OK ? o->saves : NULL);
    }
    return status == LLVS_OK ? 0 : 1;
}

static void fill_template(int kind, const char *template) {
    world w;
    make_world(&w, kind, template);
    NEED(open_at(&w, w.path, w.array, &w.store, &error));
    fill_world(&w);
    NEED(llvs_store_close(w.store, &error));
    _exit(0);
}

static const struct { int kind; const char *name; } storages[] = {
    { LLVS_STORAGE_FILE, "file" }, { LLVS_STORAGE_SQLITE, "SQLite" }, { LLVS_STORAGE_MEMORY, "memory" }, { LLVS_STORAGE_HOST, "host" }
};

static int in_child(pid_t child) {
    int status;
    assert_true(child >= 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void each_operation(void **state) {
    const char *only = getenv("LLVS_MEMORY_OPERATION"), *on = getenv("LLVS_MEMORY_STORAGE");
    size_t s, i;
    int faults = 0;
    (void)state;
    for (s = 0; s < sizeof storages / sizeof *storages; s++) {
        char *directory, *template, *copy;
        int kind = storages[s].kind, on_disk = kind == LLVS_STORAGE_FILE || kind == LLVS_STORAGE_SQLITE;
        pid_t child;
        if (on && strcmp(on, storages[s].name) != 0) continue;
        directory = new_directory();
        template = join(directory, "template");
        copy = join(directory, "copy");
        if (on_disk) {
            char command[1000];
            snprintf(command, sizeof command, "mkdir '%s'", template);
            assert_int_equal(system(command), 0);
            child = fork();
            if (child == 0) fill_template(kind, template);
            assert_int_equal(in_child(child), 0);
        }
        for (i = 0; i < operation_count; i++) {
            const operation *o = &operations[i];
            size_t room = 0, needed = 0;
            int done = 0, refused = 0, ended = 0, tries = 0;
            if ((only && strstr(only, o->name) == NULL) || !(o->storages & 1 << kind)) continue;
            for (; done < 2 && room < 400u * MEBIBYTE; room = next_room(room)) {
                int result;
                tries++;
                fflush(NULL);
                child = fork();
                if (child == 0) _exit(run(o, kind, room, template, copy));
                result = in_child(child);
                if (result == 0) { done++; if (done == 1) needed = room; }
                else if (result == 1) { refused++; done = 0; }
                else {
                    fprintf(stderr, "%s, %s storage, %zu KiB: %s %d\n", o->name, storages[s].name, room >> 10,
                            result > 1000 ? "ended by signal" : "gave", result > 1000 ? result - 1000 : result);
                    ended++;
                }
            }
            printf("%-24s %-6s  %3d limits, refused %3d, faults %3d, enough is %zu KiB\n", o->name, storages[s].name, tries, refused, ended, needed >> 10);
            faults += ended + (done < 2);
        }
        free(template);
        free(copy);
        remove_directory(directory);
    }
    assert_int_equal(faults, 0);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_operation) };
    if (count == 4) {
        char template[] = "/tmp/llvs-memory-XXXXXX", copy[64];
        size_t s = 0, i = 0;
        pid_t child;
        while (s < 3 && strcmp(storages[s].name, arguments[2]) != 0) s++;
        while (i + 1 < operation_count && strcmp(operations[i].name, arguments[1]) != 0) i++;
        if (!mkdtemp(template)) return 1;
        snprintf(copy, sizeof copy, "%s-copy", template);
        child = fork();
        if (child == 0) fill_template(storages[s].kind, template);
        if (in_child(child) != 0) return 2;
        return run(&operations[i], storages[s].kind, (size_t)atol(arguments[3]) << 10, template, copy);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

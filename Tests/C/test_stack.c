/* How much stack calls need: the header says what a thread must have. Each operation runs on a stack of its own that was painted before. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "support.h"

#include <pthread.h>
#include <sys/mman.h>

#include "folder_snapshots.h"

/* What the header promises to be enough, and what the threads have here, so that a promise that is broken is told and no crash. */
enum { ENOUGH = 64 * 1024, ROOM = 1024 * 1024, PAINT = 0xA5 };

static char *directory, *path, *other_path, *folder;
static llvs_store *store, *other;
static llvs_version_id first, ours, theirs;
static char large[3 << 20];

static llvs_status decide(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_change change = update("x", "decided");
    (void)payload;
    (void)merge;
    return llvs_resolution_add(resolution, &change, 1, sizeof change, error);
}

static void opens(void) { OK(llvs_store_open(llvs_str(path), NULL, &store, &error)); }
static void saves(void) {
    llvs_change change = insert("large", "");
    int i;
    first = save(store, NULL, insert("x", "0"));
    ours = save(store, &first, update("x", "1"));
    theirs = save(store, &first, update("x", "2"));
    change.data = llvs_bytes_make(large, sizeof large);
    OK(llvs_store_make_version(store, llvs_id(&theirs), &change, 1, sizeof change, NULL, &theirs, NULL, &error));
    for (i = 0; i < 300; i++) {
        char name[20];
        snprintf(name, sizeof name, "value/%d", i);
        ours = save(store, &ours, insert(name, "something"));
    }
}
static void reads(void) {
    llvs_buffer data;
    llvs_value_list *values;
    llvs_history_cursor *history;
    llvs_change_cursor *changes;
    value_is(store, &ours, "x", "1");
    OK(llvs_store_value(store, llvs_str("large"), llvs_id(&theirs), &data, NULL, &error));
    assert_int_equal(data.size, sizeof large);
    llvs_buffer_dispose(&data);
    OK(llvs_store_enumerate(store, llvs_id(&ours), NULL, &values, &error));
    assert_int_equal(values->count, 301);
    llvs_value_list_free(values);
    OK(llvs_store_history(store, NULL, NULL, &history, &error));
    llvs_history_cursor_free(history);
    OK(llvs_store_differences(store, llvs_id(&ours), llvs_id(&theirs), NULL, NULL, &changes, &error));
    llvs_change_cursor_free(changes);
}
static void merges(void) {
    llvs_arbiter *arbiter;
    llvs_version_list *merged;
    OK(llvs_arbiter_create(decide, NULL, NULL, NULL, &arbiter, &error));
    OK(llvs_store_merge(store, llvs_id(&ours), llvs_id(&theirs), arbiter, NULL, &merged, &error));
    assert_int_equal(merged->count, 1);
    llvs_version_list_free(merged);
    llvs_arbiter_free(arbiter);
}
static void exchanges(void) {
    llvs_exchange *mine, *yours;
    OK(llvs_store_open(llvs_str(other_path), NULL, &other, &error));
    assert_int_equal(open_folder(store, folder, 0, &mine, NULL), LLVS_OK);
    assert_int_equal(open_folder(other, folder, 0, &yours, NULL), LLVS_OK);
    OK(llvs_exchange_send(mine, NULL, NULL, &error));
    OK(llvs_exchange_put_snapshot(mine, NULL, NULL, &error));
    OK(llvs_exchange_restore_snapshot(yours, NULL, NULL, &error));
    OK(llvs_exchange_retrieve(yours, NULL, NULL, &error));
    llvs_exchange_free(mine);
    llvs_exchange_free(yours);
}
static void keeps_up(void) {
    llvs_verify_report *report;
    OK(llvs_store_verify(store, NULL, &report, &error));
    assert_int_equal(report->damage_count, 0);
    llvs_verify_report_free(report);
    OK(llvs_store_compact(store, NULL, NULL, &error));
}
static void coordinates(void) {
    llvs_coordinator *coordinator;
    llvs_change change = insert("y", "1");
    OK(llvs_coordinator_open(llvs_str(other_path), NULL, &coordinator, &error));
    OK(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error));
    OK(llvs_coordinator_merge(coordinator, NULL, NULL, &error));
    llvs_coordinator_free(coordinator);
}
static void closes(void) {
    OK(llvs_store_close(store, &error));
    OK(llvs_store_close(other, &error));
    llvs_store_free(store);
    llvs_store_free(other);
}

static const struct operation { const char *name; void (*run)(void); } operations[] = {
    { "open", opens }, { "save", saves }, { "read", reads }, { "merge", merges }, { "exchange", exchanges },
    { "verify and compact", keeps_up }, { "coordinate", coordinates }, { "close", closes },
};

static void *run(void *operation) {
    ((const struct operation *)operation)->run();
    return NULL;
}

static void calls_need_little_stack(void **state) {
    size_t i, most = 0;
    (void)state;
    for (i = 0; i < sizeof operations / sizeof *operations; i++) {
        unsigned char *stack = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_attr_t attributes;
        pthread_t thread;
        size_t left = 0;
        assert_true(stack != MAP_FAILED);
        memset(stack, PAINT, ROOM);
        assert_int_equal(pthread_attr_init(&attributes), 0);
        assert_int_equal(pthread_attr_setstack(&attributes, stack, ROOM), 0);
        assert_int_equal(pthread_create(&thread, &attributes, run, (void *)&operations[i]), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        pthread_attr_destroy(&attributes);
        while (left < ROOM && stack[left] == PAINT) left++;
        print_message("%s: %lu bytes of stack\n", operations[i].name, (unsigned long)(ROOM - left));
        if (ROOM - left > most) most = ROOM - left;
        munmap(stack, ROOM);
    }
    if (most > ENOUGH) fail_msg("an operation took %lu bytes of stack; the header says that %d are enough", (unsigned long)most, ENOUGH);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(calls_need_little_stack) };
    int failed;
    size_t i;
    for (i = 0; i < sizeof large; i++) large[i] = (char)(i * i >> 5);
    directory = new_directory();
    path = join(directory, "store");
    other_path = join(directory, "other");
    folder = join(directory, "folder");
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(path);
    free(other_path);
    free(folder);
    remove_directory(directory);
    return failed;
}

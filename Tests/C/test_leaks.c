/* No use of the library leaves memory behind that grows with use. Each kind of use is repeated, and then repeated as often again.
   Allocated memory must be the same after both. */
#include "support.h"

#include <unistd.h>

#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
#include <malloc.h>
#define MEMORY_IS_COUNTED 1
#endif
#endif

enum { WARMUPS = 30, REPETITIONS = 120 };
/* Memory that ending threads release late. A leak of the smallest object is larger. */
enum { NOISE = 1000 };

#if MEMORY_IS_COUNTED

/* With a sanitizer's malloc, mallinfo2 returns zeros, and nothing is compared (the sanitizer finds leaks itself). */
static size_t allocated(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Memory without a file behind it in KiB, including mapped memory. */
static long anonymous(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kilobytes = -1;
    if (!file) return -1;
    while (fgets(line, sizeof line, file)) sscanf(line, "RssAnon: %ld", &kilobytes);
    fclose(file);
    return kilobytes;
}

static char *folder;
static int round_number;

/* ---- the repeated uses ---- */

static llvs_store *opened(llvs_storage_kind kind, const char *name) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = NULL;
    char *path = join(folder, name);
    options.storage = kind;
    options.durability = LLVS_DURABILITY_NORMAL;
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    free(path);
    return store;
}

/* Makes a root, two versions on it, and their merge. */
static void fill(llvs_store *store, llvs_version_id *ours, llvs_version_id *theirs) {
    llvs_change changes[3];
    llvs_version_id root;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    changes[0] = insert("a", "1");
    changes[1] = insert("b", text);
    changes[2] = insert("c", "");
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 3, sizeof *changes, NULL, &root, NULL, &error));
    *ours = save(store, &root, update("a", "2"));
    *theirs = save(store, &root, removal("a"));
}

static void making_and_reading(llvs_storage_kind kind) {
    llvs_store *store = opened(kind, "store");
    llvs_version_id ours, theirs;
    llvs_version_list *versions;
    llvs_value_list *values;
    llvs_value_block *block;
    llvs_history_cursor *history;
    llvs_change_cursor *cursor;
    llvs_change_list *changes;
    llvs_verify_report *report;
    llvs_size_report *sizes;
    llvs_buffer data;
    llvs_bytes ids[2];
    fill(store, &ours, &theirs);
    ids[0] = llvs_str("a");
    ids[1] = llvs_str("b");
    OK(llvs_store_value(store, ids[1], llvs_id(&ours), &data, NULL, &error));
    llvs_buffer_dispose(&data);
    OK(llvs_store_values(store, ids, 2, llvs_id(&ours), &values, &error));
    llvs_value_list_free(values);
    OK(llvs_store_enumerate(store, llvs_id(&ours), NULL, &values, &error));
    llvs_value_list_free(values);
    OK(llvs_store_enumerate_block(store, llvs_id(&ours), NULL, &block, &error));
    llvs_value_block_free(block);
    OK(llvs_store_heads(store, NULL, &versions, &error));
    llvs_version_list_free(versions);
    OK(llvs_store_history(store, NULL, NULL, &history, &error));
    OK(llvs_history_cursor_next(history, 2, NULL, &versions, &error));
    llvs_version_list_free(versions);
    llvs_history_cursor_free(history);
    OK(llvs_store_differences(store, llvs_id(&ours), llvs_id(&theirs), NULL, NULL, &cursor, &error));
    OK(llvs_change_cursor_next(cursor, 0, 1, &changes, &error));
    llvs_change_list_free(changes);
    llvs_change_cursor_free(cursor);
    OK(llvs_store_verify(store, NULL, &report, &error));
    llvs_verify_report_free(report);
    OK(llvs_store_size(store, NULL, &sizes, &error));
    llvs_size_report_free(sizes);
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}
static void in_memory(void) { making_and_reading(LLVS_STORAGE_MEMORY); }

/* The same path each time. Its contents must not grow, or opening would cost more. */
static void emptied(llvs_storage_kind kind) {
    char command[1200];
    making_and_reading(kind);
    snprintf(command, sizeof command, "rm -rf '%s'/store*", folder);
    assert_int_equal(system(command), 0);
}
static void in_files(void) { emptied(LLVS_STORAGE_FILE); }
static void in_sqlite(void) { emptied(LLVS_STORAGE_SQLITE); }

static void errors(void) {
    llvs_store *store = memory_store();
    llvs_value_list *values;
    llvs_change twice[2];
    llvs_version_id id;
    llvs_error *error;
    twice[0] = insert("same", "1");
    twice[1] = insert("same", "2");
    error = NULL;
    assert_int_equal(llvs_store_make_version(store, LLVS_NONE, twice, 2, sizeof *twice, NULL, &id, NULL, &error), LLVS_ERROR_DUPLICATE_ID);
    llvs_error_free(error);
    assert_int_equal(llvs_store_enumerate(store, llvs_str("unknown"), NULL, &values, &error), LLVS_ERROR_UNKNOWN_VERSION);
    llvs_error_free(error);
    llvs_store_free(store);
}

static llvs_status resolve(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_change change = insert("a", "resolved");
    if (*(int *)payload % 4 == 3) {
        *error = llvs_error_create(7, llvs_str("not today"));
        return LLVS_ERROR_USER;
    }
    assert_int_equal(merge->fork_count > 0, 1);
    return llvs_resolution_add(resolution, &change, 1, sizeof change, error);
}
static void merging_by_the_host(void) {
    llvs_store *store = memory_store();
    llvs_arbiter *arbiter;
    llvs_version_list *merged;
    llvs_version_id ours, theirs;
    llvs_error *error;
    fill(store, &ours, &theirs);
    OK(llvs_arbiter_create(resolve, &round_number, NULL, NULL, &arbiter, &error));
    if (llvs_store_merge(store, llvs_id(&ours), llvs_id(&theirs), arbiter, NULL, &merged, &error) == LLVS_OK)
        llvs_version_list_free(merged);
    else llvs_error_free(error);
    llvs_arbiter_free(arbiter);
    llvs_store_free(store);
}

static void exchanging(void) {
    llvs_store *from = memory_store(), *to = memory_store();
    llvs_exchange *sender, *receiver;
    llvs_exchange_result *result;
    llvs_snapshot *snapshot;
    llvs_version_id ours, theirs;
    fill(from, &ours, &theirs);
    OK(llvs_exchange_open(from, llvs_str("memory:leaks"), NULL, &sender, &error));
    OK(llvs_exchange_open(to, llvs_str("memory:leaks"), NULL, &receiver, &error));
    OK(llvs_exchange_put_snapshot(sender, NULL, &snapshot, &error));
    llvs_snapshot_free(snapshot);
    OK(llvs_exchange_restore_snapshot(receiver, NULL, &snapshot, &error));
    llvs_snapshot_free(snapshot);
    save(from, &ours, update("a", "3"));
    OK(llvs_exchange_send(sender, NULL, &result, &error));
    llvs_exchange_result_free(result);
    OK(llvs_exchange_retrieve(receiver, NULL, &result, &error));
    llvs_exchange_result_free(result);
    llvs_exchange_free(sender);
    llvs_exchange_free(receiver);
    llvs_store_free(to);
    llvs_store_free(from);
}

static void hear(void *payload, llvs_log_level level, const llvs_bytes *message) { (void)payload; (void)level; (void)message; }
static void coordinating(void) {
    llvs_store_options store = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_coordinator *coordinator;
    llvs_exchange_result *result;
    llvs_observer *observer;
    llvs_change change = insert("a", "1");
    llvs_cancel_token *token;
    store.storage = LLVS_STORAGE_MEMORY;
    options.store = &store;
    OK(llvs_coordinator_open(LLVS_NONE, &options, &coordinator, &error));
    OK(llvs_coordinator_attach(coordinator, llvs_str("memory:leaks"), NULL, &error));
    OK(llvs_log_observe(LLVS_LOG_ERROR, hear, NULL, NULL, &observer, &error));
    OK(llvs_cancel_token_create(&token, &error));
    OK(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error));
    OK(llvs_coordinator_exchange(coordinator, NULL, &result, &error));
    llvs_exchange_result_free(result);
    OK(llvs_coordinator_merge(coordinator, NULL, NULL, &error));
    llvs_cancel_token_free(token);
    llvs_observer_free(observer);
    llvs_coordinator_free(coordinator);
}

static const struct { const char *name; void (*once)(void); } mixes[] = {
    { "in memory", in_memory }, { "in files", in_files }, { "in SQLite", in_sqlite }, { "errors", errors },
    { "merging by the host", merging_by_the_host }, { "exchanging", exchanging }, { "coordinating", coordinating }
};

/* ---- counting ---- */

static void repeat(void (*once)(void), int count) {
    int i;
    for (i = 0; i < count; i++) { once(); round_number++; }
}

/* The additional bytes after twice as many repetitions. Takes the least of three tries, since ending threads release memory late. */
static long growth(void (*once)(void)) {
    long least = 0;
    int tries;
    repeat(once, WARMUPS);
    for (tries = 0; tries < 3; tries++) {
        size_t before;
        long grown;
        repeat(once, REPETITIONS);
        before = allocated();
        repeat(once, REPETITIONS);
        grown = (long)allocated() - (long)before;
        if (tries == 0 || grown < least) least = grown;
        if (least <= NOISE) break;
    }
    return least;
}

static void nothing_grows_with_use(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        long grown = growth(mixes[i].once);
        printf("%-20s %ld bytes more after %d repetitions\n", mixes[i].name, grown, REPETITIONS);
        if (grown > NOISE) fail_msg("%s: %ld bytes are left behind by %d repetitions", mixes[i].name, grown, REPETITIONS);
    }
}

/* Leaks an error, which is the smallest leak that is possible. */
static void forgetting(void) { (void)llvs_error_create(1, llvs_str("forgotten")); }

static void a_leak_would_be_noticed(void **state) {
    (void)state;
    if (allocated() == 0) skip();
    assert_true(growth(forgetting) > NOISE);
}

static void mapped_memory_does_not_grow_either(void **state) {
    size_t i;
    long before, after;
    (void)state;
    for (i = 0; i < sizeof mixes / sizeof *mixes; i++) repeat(mixes[i].once, REPETITIONS);
    before = anonymous();
    for (i = 0; i < sizeof mixes / sizeof *mixes; i++) repeat(mixes[i].once, REPETITIONS);
    after = anonymous();
    printf("RssAnon: %ld KiB, then %ld KiB\n", before, after);
    /* The smallest map of a store, in huge pages, has 2 MiB. A leak of one in each repetition would be hundreds of MiB. */
    if (before > 0) assert_true(after - before < 8 * 1024);
}

static int begin(void **state) { (void)state; folder = new_directory(); return 0; }
static int end(void **state) { (void)state; remove_directory(folder); return 0; }

int main(int argc, char **argv) {
    /* Freed memory that a thread caches counts as in use, and varies. So threads must not cache any. */
    static const char tunables[] = "glibc.malloc.tcache_count=0";
    (void)argc;
    if (!getenv("GLIBC_TUNABLES")) {
        setenv("GLIBC_TUNABLES", tunables, 1);
        execv("/proc/self/exe", argv);
    }
    const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_grows_with_use), cmocka_unit_test(a_leak_would_be_noticed),
                                        cmocka_unit_test(mapped_memory_does_not_grow_either) };
    return cmocka_run_group_tests(tests, begin, end);
}

#else

static void not_counted_here(void **state) { (void)state; skip(); }

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(not_counted_here) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif

/* Compaction: on request, beside another process that reads and commits, and as the options say. */
#include "support.h"

#include <dirent.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CHILD(condition) do { if (!(condition)) _exit(__LINE__ % 250 + 1); } while (0)

static llvs_store *open_with(const char *path, llvs_compaction compaction, double grace) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = NULL;
    options.durability = LLVS_DURABILITY_NORMAL;
    options.compaction = compaction;
    options.compaction_grace = grace;
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    return store;
}

static const char *name_of(int number) {
    static char name[32];
    snprintf(name, sizeof name, "value %d", number);
    return name;
}

/* Saves each version with a handle of its own, so that there are as many files as versions. Returns the last version. */
static llvs_version_id save_often(const char *path, int count, llvs_compaction compaction) {
    llvs_version_id head;
    int i;
    memset(&head, 0, sizeof head);
    for (i = 0; i < count; i++) {
        llvs_store *store = open_with(path, compaction, 0);
        head = save(store, i ? &head : NULL, insert(name_of(i), name_of(i)));
        OK(llvs_store_close(store, &error));
        llvs_store_free(store);
    }
    return head;
}

static size_t file_count(const char *path) {
    char *segments = join(path, "segments");
    DIR *directory = opendir(segments);
    size_t count = 0;
    struct dirent *entry;
    assert_non_null(directory);
    while ((entry = readdir(directory))) count += strstr(entry->d_name, ".seg") != NULL;
    closedir(directory);
    free(segments);
    return count;
}

static llvs_compaction_report compact(llvs_store *store) {
    llvs_compaction_report report = LLVS_COMPACTION_REPORT_INIT;
    memset(&report.folded, 0xA5, sizeof report - offsetof(llvs_compaction_report, folded)); /* the whole report is written */
    OK(llvs_store_compact(store, NULL, &report, &error));
    assert_int_equal(report.struct_size, sizeof report);
    assert_int_equal(report.reserved, 0);
    return report;
}

/* The work of the other process: reads everything, commits, and reports it, until the pipe is closed. */
static void read_and_commit(const char *path, const llvs_version_id *head, int values, int say, int hear) {
    llvs_store *store;
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    int round, i;
    char byte;
    options.durability = LLVS_DURABILITY_NORMAL;
    options.compaction = LLVS_COMPACTION_ON_REQUEST;
    CHILD(llvs_store_open(llvs_str(path), &options, &store, NULL) == LLVS_OK);
    for (round = 0;; round++) {
        llvs_change change = insert("by the other", name_of(round));
        llvs_version_id made;
        for (i = 0; i < values; i++) {
            llvs_buffer data;
            CHILD(llvs_store_value(store, llvs_str(name_of(i)), llvs_id(head), &data, NULL, NULL) == LLVS_OK);
            CHILD(data.data && strcmp((const char *)data.data, name_of(i)) == 0);
            llvs_buffer_dispose(&data);
        }
        CHILD(llvs_store_make_version(store, llvs_id(head), &change, 1, sizeof change, NULL, &made, NULL, NULL) == LLVS_OK);
        CHILD(write(say, "r", 1) == 1);
        if (read(hear, &byte, 1) != 1) break;
    }
    CHILD(llvs_store_close(store, NULL) == LLVS_OK);
    llvs_store_free(store);
    _exit(0);
}

static void on_request_beside_another_process(void **state) {
    enum { VALUES = 24 };
    char *directory = new_directory(), *path = join(directory, "store"), byte;
    llvs_version_id head = save_often(path, VALUES, LLVS_COMPACTION_ON_REQUEST);
    llvs_store *store;
    llvs_compaction_report report;
    llvs_verify_report *verified;
    int from_child[2], to_child[2], outcome = 0, rounds = 0, i;
    pid_t child;
    (void)state;
    assert_int_equal(file_count(path), VALUES);
    assert_int_equal(pipe(from_child) | pipe(to_child), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(from_child[0]);
        close(to_child[1]);
        read_and_commit(path, &head, VALUES, from_child[1], to_child[0]);
    }
    close(from_child[1]);
    close(to_child[0]);
    store = open_with(path, LLVS_COMPACTION_ON_REQUEST, 1e-9);
    /* The first call makes a file, the second deletes the files that it replaced, the third finds nothing to do. The other process
     * reads and commits between the calls and during them. */
    for (i = 0; i < 3; i++) {
        assert_int_equal(read(from_child[0], &byte, 1), 1);
        rounds++;
        assert_int_equal(write(to_child[1], "g", 1), 1);
        report = compact(store);
        assert_null(report.sync_marker.data);
        assert_int_equal(report.made, i == 0);
        assert_int_equal(report.folded, i == 0 ? VALUES : 0);
        assert_int_equal(report.deleted, i == 1 ? VALUES : 0);
        assert_true((report.bytes_written > 0) == (i == 0) && (report.bytes_deleted > 0) == (i == 1));
    }
    assert_int_equal(read(from_child[0], &byte, 1), 1);
    rounds++;
    close(to_child[1]);
    assert_int_equal(waitpid(child, &outcome, 0), child);
    if (!WIFEXITED(outcome) || WEXITSTATUS(outcome) != 0)
        fail_msg("the child ended with %d (line modulo 250, plus 1: %d)", outcome, WEXITSTATUS(outcome));
    close(from_child[0]);
    assert_int_equal(file_count(path), 2);
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
    store = open_with(path, LLVS_COMPACTION_ON_REQUEST, 0);
    for (i = 0; i < VALUES; i++) value_is(store, &head, name_of(i), name_of(i));
    assert_int_equal(version_count(store), VALUES + rounds);
    OK(llvs_store_verify(store, NULL, &verified, &error));
    assert_int_equal(verified->damage_count, 0);
    llvs_verify_report_free(verified);
    llvs_store_free(store);
    free(path);
    remove_directory(directory);
}

typedef struct others {
    int say, hear, steps;
    llvs_store *compacted, *another;
    llvs_version_id head;
} others;

/* While a compaction waits in this callback, the other process, another handle and the same handle read and commit. */
static llvs_status let_others_work(void *payload, const llvs_progress *progress, llvs_error **error) {
    others *others = payload;
    llvs_store *stores[2];
    struct pollfd answer;
    llvs_buffer data;
    char byte;
    int i;
    (void)error;
    if (progress->stage != LLVS_STAGE_WRITING) return LLVS_OK;
    stores[0] = others->compacted;
    stores[1] = others->another;
    answer.fd = others->hear;
    answer.events = POLLIN;
    if (write(others->say, "g", 1) != 1 || poll(&answer, 1, 60000) != 1 || read(others->hear, &byte, 1) != 1) return LLVS_ERROR_CANCELLED;
    for (i = 0; i < 2; i++) {
        llvs_change change = insert("meanwhile", name_of(others->steps));
        llvs_version_id made;
        if (llvs_store_value(stores[i], llvs_str(name_of(3)), llvs_id(&others->head), &data, NULL, NULL) != LLVS_OK || !data.data)
            return LLVS_ERROR_CANCELLED;
        llvs_buffer_dispose(&data);
        if (llvs_store_make_version(stores[i], llvs_id(&others->head), &change, 1, sizeof change, NULL, &made, NULL, NULL) != LLVS_OK)
            return LLVS_ERROR_CANCELLED;
    }
    others->steps++;
    return LLVS_OK;
}

static void nobody_waits_for_it(void **state) {
    enum { VALUES = 12 };
    char *directory = new_directory(), *path = join(directory, "store"), byte;
    others others;
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_compaction_report report = LLVS_COMPACTION_REPORT_INIT;
    int from_child[2], to_child[2], outcome = 0, made = 0, deleted = 0, i;
    pid_t child;
    (void)state;
    others.head = save_often(path, VALUES, LLVS_COMPACTION_ON_REQUEST);
    others.steps = 0;
    assert_int_equal(pipe(from_child) | pipe(to_child), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(from_child[0]);
        close(to_child[1]);
        read_and_commit(path, &others.head, VALUES, from_child[1], to_child[0]);
    }
    close(from_child[1]);
    close(to_child[0]);
    assert_int_equal(read(from_child[0], &byte, 1), 1);
    others.say = to_child[1];
    others.hear = from_child[0];
    others.compacted = open_with(path, LLVS_COMPACTION_ON_REQUEST, 1e-9);
    others.another = open_with(path, LLVS_COMPACTION_ON_REQUEST, 0);
    control.progress = let_others_work;
    control.payload = &others;
    for (i = 0; i < 2; i++) {
        OK(llvs_store_compact(others.compacted, &control, &report, &error));
        made += (int)report.made;
        deleted += (int)report.deleted;
    }
    assert_int_equal(made, 1);
    assert_int_equal(deleted, VALUES);
    /* The callback was called for each file that was checked, and for each that was deleted. */
    assert_true(others.steps > 2 * VALUES);
    close(to_child[1]);
    assert_int_equal(waitpid(child, &outcome, 0), child);
    if (!WIFEXITED(outcome) || WEXITSTATUS(outcome) != 0)
        fail_msg("the child ended with %d (line modulo 250, plus 1: %d)", outcome, WEXITSTATUS(outcome));
    close(from_child[0]);
    OK(llvs_store_reload(others.another, NULL, NULL, &error));
    /* For each step two versions of this process and one of the other, and the first version of the other. */
    assert_int_equal(version_count(others.another), VALUES + 3 * others.steps + 1);
    llvs_store_free(others.another);
    llvs_store_free(others.compacted);
    free(path);
    remove_directory(directory);
}

static void by_itself_unless_told_not_to(void **state) {
    enum { MANY = 80 };
    char *directory = new_directory(), *path = join(directory, "request"), *other = join(directory, "automatic");
    llvs_store *store;
    (void)state;
    save_often(path, MANY, LLVS_COMPACTION_ON_REQUEST);
    assert_int_equal(file_count(path), MANY);
    save_often(other, MANY, LLVS_COMPACTION_AUTOMATIC);
    assert_true(file_count(other) > MANY); /* compacted files are kept during the grace period */
    store = open_with(other, LLVS_COMPACTION_ON_REQUEST, 0);
    compact(store);
    assert_int_equal(compact(store).deleted, 0);
    llvs_store_free(store);
    store = open_with(other, LLVS_COMPACTION_ON_REQUEST, 1e-9);
    assert_true(compact(store).deleted >= 64);
    llvs_store_free(store);
    free(other);
    free(path);
    remove_directory(directory);
}

static void not_in_a_synced_folder_unless_told_to(void **state) {
    char *directory = new_directory(), *path = join(directory, "store"), *marker = join(directory, ".stfolder");
    llvs_store *store;
    llvs_compaction_report report;
    (void)state;
    save_often(path, 4, LLVS_COMPACTION_ON_REQUEST);
    write_file(marker, "");
    store = open_with(path, LLVS_COMPACTION_AUTOMATIC, 0);
    report = compact(store);
    assert_int_equal(report.made + report.folded + report.deleted, 0);
    assert_non_null(report.sync_marker.data);
    assert_int_equal(report.sync_marker.size, strlen((const char *)report.sync_marker.data));
    assert_non_null(strstr((const char *)report.sync_marker.data, "/.stfolder"));
    llvs_buffer_dispose(&report.sync_marker);
    OK(llvs_store_compact(store, NULL, NULL, &error)); /* without a report */
    llvs_store_free(store);
    store = open_with(path, LLVS_COMPACTION_ALWAYS, 0);
    report = compact(store);
    assert_int_equal(report.made, 1);
    assert_null(report.sync_marker.data);
    llvs_store_free(store);
    free(marker);
    free(path);
    remove_directory(directory);
}

static llvs_status compact_again(void *payload, const llvs_progress *progress, llvs_error **error) {
    llvs_status status = llvs_store_compact(payload, NULL, NULL, error);
    (void)progress;
    return status == LLVS_ERROR_BUSY ? status : LLVS_OK;
}
static llvs_status close_it(void *payload, const llvs_progress *progress, llvs_error **error) {
    (void)progress;
    return llvs_store_close(payload, error);
}
static llvs_status cancel_it(void *payload, const llvs_progress *progress, llvs_error **error) {
    (void)error;
    *(int *)payload += progress->stage == LLVS_STAGE_WRITING ? 1 : 100;
    return LLVS_ERROR_CANCELLED;
}

static void progress_and_cancellation(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_store *store;
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_compaction_report report = LLVS_COMPACTION_REPORT_INIT;
    int calls = 0;
    (void)state;
    save_often(path, 8, LLVS_COMPACTION_ON_REQUEST);
    store = open_with(path, LLVS_COMPACTION_ON_REQUEST, 0);
    OK(llvs_cancel_token_create(&control.token, &error));
    llvs_cancel_token_cancel(control.token);
    FAILS(LLVS_ERROR_CANCELLED, llvs_store_compact(store, &control, &report, &error));
    llvs_cancel_token_free(control.token);
    control.token = NULL;
    control.progress = cancel_it;
    control.payload = &calls;
    FAILS(LLVS_ERROR_CANCELLED, llvs_store_compact(store, &control, &report, &error));
    assert_int_equal(calls, 1);
    assert_int_equal(report.made, 0);
    assert_int_equal(file_count(path), 8);
    /* A call from within is refused instead of waiting for itself. */
    control.progress = compact_again;
    control.payload = store;
    FAILS(LLVS_ERROR_BUSY, llvs_store_compact(store, &control, &report, &error));
    assert_int_equal(compact(store).made, 1);
    control.progress = close_it;
    MAY_FAIL(llvs_store_compact(store, &control, &report, NULL));
    FAILS(LLVS_ERROR_CLOSED, llvs_store_compact(store, NULL, &report, &error));
    llvs_store_free(store);
    free(path);
    remove_directory(directory);
}

/* Removes a segment at a step, as a syncing program does when it replaces one. */
typedef struct taker { int calls, take_at; const char *from, *to; } taker;
static llvs_status take_it(void *payload, const llvs_progress *progress, llvs_error **error) {
    taker *t = payload;
    (void)progress; (void)error;
    if (++t->calls == t->take_at) (void)rename(t->from, t->to); /* fails if the segment was removed already */
    return LLVS_OK;
}
static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

static void segments_that_vanish_meanwhile_are_passed_over(void **state) {
    enum { SEGMENTS = 4 };
    int victim, taken = 0;
    (void)state;
    for (victim = 0; victim < SEGMENTS; victim++) {
        taker t = {0, 0, NULL, NULL};
        for (t.take_at = 1, t.calls = 1; t.calls >= t.take_at; t.take_at++) {
            char *directory = new_directory(), *path = join(directory, "store"), *segments = join(path, "segments"), *from,
                 *to = join(directory, "away");
            char found[SEGMENTS][64];
            llvs_version_id head = save_often(path, SEGMENTS, LLVS_COMPACTION_ON_REQUEST);
            llvs_store *store = open_with(path, LLVS_COMPACTION_ON_REQUEST, 0);
            llvs_control control = LLVS_CONTROL_INIT;
            llvs_verify_report *report;
            DIR *listed = opendir(segments);
            struct dirent *entry;
            int count = 0, i;
            assert_non_null(listed);
            while ((entry = readdir(listed))) if (strstr(entry->d_name, ".seg") && count < SEGMENTS) strcpy(found[count++], entry->d_name);
            closedir(listed);
            assert_int_equal(count, SEGMENTS);
            qsort(found, SEGMENTS, sizeof found[0], compare_names);
            from = join(segments, found[victim]);
            t.calls = 0;
            t.from = from;
            t.to = to;
            control.progress = take_it;
            control.payload = &t;
            /* Once to compact, once to delete the compacted files. */
            OK(llvs_store_compact(store, &control, NULL, &error));
            OK(llvs_store_compact(store, &control, NULL, &error));
            llvs_store_free(store);
            taken += rename(to, from) == 0;
            store = open_with(path, LLVS_COMPACTION_ON_REQUEST, 0);
            for (i = 0; i < SEGMENTS; i++) value_is(store, &head, name_of(i), name_of(i));
            OK(llvs_store_verify(store, NULL, &report, &error));
            assert_null(report->damages[0]);
            llvs_verify_report_free(report);
            llvs_store_free(store);
            free(from);
            free(to);
            free(segments);
            free(path);
            remove_directory(directory);
        }
    }
    assert_true(taken > SEGMENTS);
}

static void who_may_not_does_not(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_compaction_report report = LLVS_COMPACTION_REPORT_INIT;
    llvs_store *store;
    (void)state;
    save_often(path, 2, LLVS_COMPACTION_ON_REQUEST);
    options.compaction = 3;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "compaction", llvs_store_open(llvs_str(path), &options, &store, &error));
    options.compaction = LLVS_COMPACTION_AUTOMATIC;
    options.compaction_grace = -1;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "compaction_grace", llvs_store_open(llvs_str(path), &options, &store, &error));
    options.compaction_grace = strtod("nan", NULL);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open(llvs_str(path), &options, &store, &error));
    options.compaction_grace = strtod("inf", NULL);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open(llvs_str(path), &options, &store, &error));
    options.compaction_grace = 1e300; /* kept as long as files exist */
    options.read_only = 1;
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    FAILS(LLVS_ERROR_READ_ONLY, llvs_store_compact(store, NULL, &report, &error));
    llvs_store_free(store);
    store = open_with(path, LLVS_COMPACTION_ON_REQUEST, 0);
    report.struct_size = 8;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_compact(store, NULL, &report, &error));
    llvs_store_free(store);
    store = memory_store();
    report = compact(store);
    assert_int_equal(report.folded + report.made + report.deleted + report.bytes_written + report.bytes_deleted, 0);
    llvs_store_free(store);
    free(path);
    remove_directory(directory);
}

typedef struct folding { const char *path; uint64_t folded, deleted; } folding;
static llvs_status fold_now(void *payload, const llvs_progress *progress, llvs_error **error) {
    folding *f = payload;
    llvs_store *other;
    int i;
    (void)progress; (void)error;
    if (f->deleted > 0) return LLVS_OK;
    other = open_with(f->path, LLVS_COMPACTION_ON_REQUEST, 1e-9);
    for (i = 0; i < 2; i++) {
        llvs_compaction_report report = compact(other);
        f->folded += report.folded;
        f->deleted += report.deleted;
    }
    llvs_store_free(other);
    return LLVS_OK;
}

/* Another handle compacts and deletes segments that a verification has listed but not read yet. */
static void verification_beside_a_compaction(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_store *store;
    llvs_verify_report *report;
    llvs_control control = LLVS_CONTROL_INIT;
    folding f = { NULL, 0, 0 };
    (void)state;
    f.path = path;
    save_often(path, 12, LLVS_COMPACTION_ON_REQUEST);
    store = open_with(path, LLVS_COMPACTION_ON_REQUEST, 0);
    control.progress = fold_now;
    control.payload = &f;
    OK(llvs_store_verify(store, &control, &report, &error));
    assert_int_equal(f.folded, 12);
    assert_int_equal(f.deleted, 12);
    assert_int_equal(report->damage_count, 0);
    assert_int_equal(report->versions, 12);
    assert_int_equal(report->values, 12);
    llvs_verify_report_free(report);
    llvs_store_free(store);
    free(path);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_request_beside_another_process),
        cmocka_unit_test(nobody_waits_for_it),
        cmocka_unit_test(by_itself_unless_told_not_to),
        cmocka_unit_test(not_in_a_synced_folder_unless_told_to),
        cmocka_unit_test(progress_and_cancellation),
        cmocka_unit_test(segments_that_vanish_meanwhile_are_passed_over),
        cmocka_unit_test(who_may_not_does_not),
        cmocka_unit_test(verification_beside_a_compaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

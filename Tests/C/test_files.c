/* Files of the host: good ones and the library's own pass the suite of llvs_testing.h, broken ones fail the right check, and stores
 * exchange through them. */
#include "support.h"

#include <unistd.h>

#include "llvs_testing.h"
#include "array_files.h"

/* One shelf for each place. */
static shelf *shelves[64];
static const char *defect = "";
static llvs_files_traits files_traits;

static shelf *shelf_of(uint64_t place) {
    shelf **slot = &shelves[place % (sizeof shelves / sizeof *shelves)];
    if (!*slot) {
        *slot = malloc(sizeof **slot);
        assert_non_null(*slot);
        shelf_init(*slot);
        (*slot)->defect = defect;
    }
    return *slot;
}
static void forget_shelves(void) {
    size_t i;
    for (i = 0; i < sizeof shelves / sizeof *shelves; i++) {
        if (shelves[i]) shelf_clear(shelves[i]);
        free(shelves[i]);
        shelves[i] = NULL;
    }
}

static llvs_status make(void *payload, uint64_t place, llvs_transport **transport, llvs_error **error) {
    llvs_files_callbacks callbacks = shelf_callbacks();
    char name[32];
    (void)payload;
    callbacks.traits = files_traits;
    snprintf(name, sizeof name, "shelf %d", (int)place);
    return llvs_transport_create_on_files(llvs_str(name), &callbacks, shelf_of(place), NULL, transport, error);
}
static llvs_status disturb(void *payload, uint64_t place, llvs_disturbance what, llvs_error **error) {
    (void)payload;
    (void)error;
    shelf_of(place)->failing = what == LLVS_DISTURBANCE_FAIL;
    return LLVS_OK;
}

static llvs_check_report *check(llvs_make_transport_fn fn, llvs_disturb_fn disturbing, llvs_traits traits, const char *only) {
    llvs_transport_subject subject = LLVS_TRANSPORT_SUBJECT_INIT;
    llvs_check_report *report = NULL;
    subject.make = fn;
    subject.disturb = disturbing;
    subject.traits = traits;
    subject.only = llvs_str(only);
    OK(llvs_check_files(&subject, &report, &error));
    forget_shelves();
    return report;
}

static void all_is_well(llvs_check_report *report, int skipped) {
    size_t i;
    int skips = 0;
    for (i = 0; i < report->check_count; i++) {
        const llvs_check *one = report->checks[i];
        if (one->outcome == LLVS_CHECK_FAILED) printf("  %s: %s\n", (const char *)one->name.data, (const char *)one->message.data);
        if (one->outcome == LLVS_CHECK_SKIPPED) skips++;
        assert_string_equal((const char *)one->name.data, llvs_check_files_name(i));
    }
    assert_int_equal(report->failures, 0);
    assert_true(report->check_count > 18);
    assert_null(llvs_check_files_name(report->check_count));
    assert_int_equal(skips, skipped);
    llvs_check_report_free(report);
}

static void good_files_pass(void **state) {
    (void)state;
    all_is_well(check(make, disturb, 0, ""), 0);
    all_is_well(check(make, NULL, LLVS_TRAIT_EXCLUSIVE, ""), 4);
    /* Files that have no ranges and declare it: none are requested. */
    files_traits = LLVS_FILES_WITHOUT_RANGES;
    defect = "ignores ranges";
    all_is_well(check(make, disturb, 0, ""), 0);
    /* Files in which the last writer wins, and which declare it. */
    files_traits = LLVS_FILES_NOT_EXCLUSIVE;
    defect = "replaces what is to stay";
    all_is_well(check(make, disturb, 0, ""), 0);
    files_traits = 0;
    defect = "";
}

static char folder[] = "/tmp/llvs-files-XXXXXX";
static llvs_status make_folder(void *payload, uint64_t place, llvs_transport **transport, llvs_error **error) {
    char url[256];
    (void)payload;
    snprintf(url, sizeof url, "file://%s/%d", folder, (int)place);
    return llvs_testing_transport(llvs_str(url), NULL, transport, error);
}
static llvs_status make_memory(void *payload, uint64_t place, llvs_transport **transport, llvs_error **error) {
    (void)payload;
    (void)place;
    return llvs_testing_transport(llvs_str("memory:files"), NULL, transport, error);
}

static void folders_pass(void **state) {
    char command[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    all_is_well(check(make_folder, NULL, 0, ""), 1);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void broken_files_are_caught(void **state) {
    static const struct { const char *defect, *check; } all[] = {
        { "lists one page only", "many files are listed and read" },
        { "tells wrong sizes", "what was published is listed with its size, and nothing else" },
        { "lists what is below", "directories are separate" },
        { "ignores ranges", "parts of files are read" },
        { "cuts large files short", "large files are complete" },
        { "fails where a file is absent", "missing files are reported as missing" },
        { "shows files while they are written", "a listed file can be read completely" },
        { "replaces what is to stay", "an existing file is replaced only on request" },
        { "says that it published what was there", "if two handles publish one name at once, one of them wins" },
        { "ends files at a NUL", "files come back byte for byte" },
        { "keeps what is deleted", "deleted files are gone, and no others" },
        { "fails where nothing is to be deleted", "a new place is empty" },
        { "says that an unreachable place is empty", "an unreachable place is an error" },
    };
    size_t i, j;
    (void)state;
    for (i = 0; i < sizeof all / sizeof *all; i++) {
        llvs_check_report *report;
        int caught = 0;
        defect = all[i].defect;
        report = check(make, disturb, 0, all[i].check);
        for (j = 0; j < report->check_count; j++)
            if (report->checks[j]->outcome == LLVS_CHECK_FAILED) {
                caught = 1;
                printf("%-40s %s\n", defect, (const char *)report->checks[j]->message.data);
            }
        if (!caught) fail_msg("files that %s are not caught by \"%s\"", defect, all[i].check);
        llvs_check_report_free(report);
    }
    defect = "";
}

/* ---- stores ---- */

static llvs_exchange *open_on(llvs_store *store, shelf *s, llvs_layout layout, const char *passphrase, llvs_transport **transport) {
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_files_callbacks callbacks = shelf_callbacks();
    llvs_exchange *exchange = NULL;
    OK(llvs_transport_create_on_files(llvs_str("the shelf"), &callbacks, s, NULL, transport, &error));
    options.host_transport = *transport;
    options.layout = layout;
    options.passphrase = llvs_str(passphrase);
    OK(llvs_exchange_open(store, LLVS_NONE, &options, &exchange, &error));
    return exchange;
}
static size_t exchanged(llvs_store *store, shelf *s, llvs_layout layout, const char *passphrase) {
    llvs_transport *transport = NULL;
    llvs_exchange *exchange = open_on(store, s, layout, passphrase, &transport);
    llvs_exchange_result *got = NULL, *sent = NULL;
    size_t moved;
    OK(llvs_exchange_retrieve(exchange, NULL, &got, &error));
    OK(llvs_exchange_send(exchange, NULL, &sent, &error));
    assert_int_equal(got->problem_count + sent->problem_count, 0);
    moved = got->retrieved_count + sent->sent_count;
    llvs_exchange_result_free(got);
    llvs_exchange_result_free(sent);
    llvs_exchange_free(exchange);
    llvs_transport_free(transport);
    return moved;
}
static void stores_exchange(void **state) {
    static const llvs_layout layouts[] = { LLVS_LAYOUT_AUTOMATIC, LLVS_LAYOUT_INTERCHANGE, LLVS_LAYOUT_PACKED,
        LLVS_LAYOUT_BRIDGED };
    size_t i, j;
    (void)state;
    for (i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        llvs_store *a = memory_store(), *b = memory_store();
        int packs = 0, singles = 0, lists;
        shelf *s = malloc(sizeof *s);
        assert_non_null(s);
        shelf_init(s);
        for (j = 0; j < 5; j++) {
            char id[8];
            snprintf(id, sizeof id, "a%d", (int)j);
            (void)save(a, NULL, insert(id, "some text"));
        }
        assert_int_equal(exchanged(a, s, layouts[i], ""), 5);
        assert_int_equal(exchanged(b, s, layouts[i], ""), 5);
        lists = s->lists;
        assert_int_equal(exchanged(b, s, layouts[i], ""), 0);
        /* Without news, one listing. A new interchange exchange lists both of its folders, a new automatic one checks the layout first. */
        if (layouts[i] == LLVS_LAYOUT_PACKED) assert_int_equal(s->lists - lists, 1);
        for (j = 0; j < s->count; j++) packs += strncmp(s->files[j].name, "pack1/", 6) == 0;
        for (j = 0; j < s->count; j++) singles += strncmp(s->files[j].name, "versions/", 9) == 0;
        assert_int_equal(packs > 0, layouts[i] != LLVS_LAYOUT_INTERCHANGE);
        assert_int_equal(singles, layouts[i] == LLVS_LAYOUT_INTERCHANGE || layouts[i] == LLVS_LAYOUT_BRIDGED ? 5 : 0);
        assert_true(s->closes >= 3);
        llvs_store_free(a);
        llvs_store_free(b);
        shelf_clear(s);
        free(s);
    }
}

static void errors_are_told(void **state) {
    llvs_store *store = memory_store();
    llvs_transport *transport = NULL;
    llvs_exchange *exchange;
    shelf *s = malloc(sizeof *s);
    (void)state;
    assert_non_null(s);
    shelf_init(s);
    (void)save(store, NULL, insert("a", "some text"));
    exchange = open_on(store, s, LLVS_LAYOUT_PACKED, "", &transport);
    s->failing = 1;
    FAILS_NAMING(LLVS_ERROR_TRANSPORT, "the files the shelf", llvs_exchange_retrieve(exchange, NULL, NULL, &error));
    FAILS_NAMING(LLVS_ERROR_TRANSPORT, "the files the shelf", llvs_exchange_send(exchange, NULL, NULL, &error));
    s->failing = 0;
    OK(llvs_exchange_send(exchange, NULL, NULL, &error));
    /* An exchange that was refused neither used the transport nor closes it, so the next exchange is the first one. */
    {
        llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
        llvs_files_callbacks callbacks = shelf_callbacks();
        llvs_exchange *other = NULL;
        llvs_transport *second = NULL;
        int closes = s->closes;
        OK(llvs_transport_create_on_files(llvs_str("another"), &callbacks, s, NULL, &second, &error));
        options.host_transport = second;
        options.layout = LLVS_LAYOUT_INTERCHANGE;
        options.passphrase = llvs_str("words");
        FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_open(store, LLVS_NONE, &options, &other, &error));
        assert_int_equal(s->closes, closes);
        options.passphrase = LLVS_NONE;
        OK(llvs_exchange_open(store, LLVS_NONE, &options, &other, &error));
        llvs_exchange_free(other);
        assert_int_equal(s->closes, closes + 1);
        llvs_transport_free(second);
    }
    /* The handle serves one exchange at a time. */
    {
        llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
        llvs_exchange *other = NULL;
        options.host_transport = transport;
        FAILS(LLVS_ERROR_BUSY, llvs_exchange_open(store, LLVS_NONE, &options, &other, &error));
    }
    FAILS(LLVS_ERROR_UNSUPPORTED, llvs_transport_set_state(transport, llvs_str("x"), &error));
    llvs_exchange_free(exchange);
    llvs_transport_free(transport);
    llvs_store_free(store);
    shelf_clear(s);
    free(s);
}

static void bad_arguments_are_refused(void **state) {
    llvs_files_callbacks callbacks = shelf_callbacks();
    llvs_transport_subject subject = LLVS_TRANSPORT_SUBJECT_INIT;
    llvs_transport *transport = NULL;
    llvs_check_report *report = NULL;
    int freed = 0;
    (void)state;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "name",
                 llvs_transport_create_on_files(LLVS_NONE, &callbacks, &freed, count_free, &transport, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_transport_create_on_files(llvs_str("x"), NULL, &freed, count_free, &transport, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_transport_create_on_files(llvs_str("x"), &callbacks, &freed, count_free, NULL, &error));
    callbacks.traits = 4;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_transport_create_on_files(llvs_str("x"), &callbacks, &freed, count_free, &transport, &error));
    callbacks.traits = 0;
    callbacks.publish = NULL;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "publish",
                 llvs_transport_create_on_files(llvs_str("x"), &callbacks, &freed, count_free, &transport, &error));
    assert_int_equal(freed, 5);
    assert_null(transport);
    /* A transport that holds no files cannot be checked. */
    subject.make = make_memory;
    subject.only = llvs_str("a new place is empty");
    OK(llvs_check_files(&subject, &report, &error));
    assert_int_equal(report->failures, 1);
    llvs_check_report_free(report);
    subject.make = NULL;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_check_files(&subject, &report, &error));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_pass), cmocka_unit_test(folders_pass), cmocka_unit_test(broken_files_are_caught),
        cmocka_unit_test(stores_exchange), cmocka_unit_test(errors_are_told), cmocka_unit_test(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

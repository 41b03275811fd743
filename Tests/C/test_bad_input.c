/* Each wrong argument gives an error of its own that names it, stores nothing, and leaves the store usable. */
#include "support.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static llvs_store *store;
static llvs_version_id base;
static llvs_store *const no_store = NULL;

static int set_up(void **state) {
    (void)state;
    store = memory_store();
    base = save(store, NULL, insert("x", "1"));
    return 0;
}
/* Nothing was stored, and the store still works. */
static int tear_down(void **state) {
    llvs_version_id next;
    (void)state;
    assert_int_equal(version_count(store), 1);
    next = save(store, &base, update("x", "2"));
    value_is(store, &next, "x", "2");
    llvs_store_free(store);
    return 0;
}

#define MAKE(changes, count) \
    llvs_store_make_version(store, llvs_id(&base), changes, count, sizeof(llvs_change), NULL, NULL, NULL, &error)

static void unknown_versions(void **state) {
    llvs_change change = insert("y", "1");
    llvs_buffer data;
    llvs_version_list *list;
    llvs_revert_result *reverted;
    llvs_change_cursor *changes;
    llvs_history_cursor *history;
    llvs_value_list *values;
    llvs_bytes unknown = llvs_str("NO-SUCH-VERSION"), here = llvs_id(&base);
    llvs_history_options options = LLVS_HISTORY_OPTIONS_INIT;
    uint64_t count;
    llvs_bool answer;
    (void)state;
    FAILS_NAMING(LLVS_ERROR_UNKNOWN_PREDECESSOR, "NO-SUCH-VERSION",
                 llvs_store_make_version(store, unknown, &change, 1, sizeof change, NULL, NULL, NULL, &error));
    FAILS_NAMING(LLVS_ERROR_UNKNOWN_VERSION, "NO-SUCH-VERSION", llvs_store_value(store, llvs_str("x"), unknown, &data, NULL, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_value(store, llvs_str("x"), unknown, &data, NULL, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_versions(store, &unknown, 1, &list, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_enumerate(store, unknown, NULL, &values, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_count(store, unknown, NULL, &count, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_changes(store, unknown, NULL, NULL, &changes, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_differences(store, here, unknown, NULL, NULL, &changes, &error));
    options.from = &unknown;
    options.from_count = 1;
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_history(store, &options, NULL, &history, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_successors(store, unknown, NULL, &list, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_is_ancestor(store, here, unknown, NULL, &answer, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_merge_bases(store, unknown, here, NULL, &list, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_merge(store, here, unknown, NULL, NULL, &list, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_merge_heads(store, unknown, NULL, NULL, &list, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_revert(store, unknown, here, NULL, &reverted, &error));
    assert_null(list);
}

static void the_error_says_which(void **state) {
    llvs_error *error;
    llvs_buffer data;
    (void)state;
    assert_int_equal(llvs_store_value(store, llvs_str("x"), llvs_str("NOWHERE"), &data, NULL, &error), LLVS_ERROR_UNKNOWN_VERSION);
    assert_true(bytes_are(llvs_error_version_id(error), "NOWHERE"));
    assert_int_equal(llvs_error_value_id(error).size, 0);
    assert_int_equal(llvs_error_path(error).size, 0);
    assert_int_equal(llvs_error_user_code(error), 0);
    llvs_error_free(error);
    /* If no error is requested, none is made. */
    assert_int_equal(llvs_store_value(store, llvs_str("x"), llvs_str("NOWHERE"), &data, NULL, NULL), LLVS_ERROR_UNKNOWN_VERSION);
}

static void duplicate_ids(void **state) {
    llvs_change changes[3];
    (void)state;
    changes[0] = insert("twice", "1"); changes[1] = insert("y", "1"); changes[2] = removal("twice");
    FAILS_NAMING(LLVS_ERROR_DUPLICATE_ID, "twice", MAKE(changes, 3));
}

static void unacceptable_value_ids(void **state) {
    static char longest[LLVS_VALUE_ID_SIZE_MAX + 1];
    static const char *const invalid[] = { "\xFF", "a\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80" };
    llvs_change change = insert("", "1");
    llvs_buffer data;
    llvs_version_list *list;
    size_t i;
    (void)state;
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, MAKE(&change, 1));
    memset(longest, 'i', sizeof longest);
    change.id = llvs_bytes_make(longest, sizeof longest);
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, MAKE(&change, 1));
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, llvs_store_value(store, change.id, llvs_id(&base), &data, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, llvs_store_versions_of(store, LLVS_NONE, NULL, &list, &error));
    for (i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        change = insert(invalid[i], "1");
        FAILS(LLVS_ERROR_INVALID_UTF8, MAKE(&change, 1));
        FAILS(LLVS_ERROR_INVALID_UTF8, llvs_store_value(store, change.id, llvs_id(&base), &data, NULL, &error));
    }
}

static void unacceptable_version_ids(void **state) {
    static char longest[LLVS_VERSION_ID_SIZE_MAX + 1];
    static const char *const invalid[] = { "a b", "a/b", "..", "\xC3\xA9", "a.b", "\n" };
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_change change = insert("y", "1");
    llvs_buffer data;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        options.id = llvs_str(invalid[i]);
        FAILS(LLVS_ERROR_INVALID_VERSION_ID,
              llvs_store_make_version(store, llvs_id(&base), &change, 1, sizeof change, &options, NULL, NULL, &error));
        FAILS(LLVS_ERROR_INVALID_VERSION_ID, llvs_store_value(store, llvs_str("x"), options.id, &data, NULL, &error));
    }
    FAILS(LLVS_ERROR_INVALID_VERSION_ID, llvs_store_value(store, llvs_str("x"), LLVS_NONE, &data, NULL, &error));
    memset(longest, 'v', sizeof longest);
    options.id = llvs_bytes_make(longest, sizeof longest);
    FAILS(LLVS_ERROR_INVALID_VERSION_ID,
          llvs_store_make_version(store, llvs_id(&base), &change, 1, sizeof change, &options, NULL, NULL, &error));
}

static void what_only_coordinators_take(void **state) {
    llvs_version_options expecting = LLVS_VERSION_OPTIONS_INIT, merging = LLVS_VERSION_OPTIONS_INIT, neither = LLVS_VERSION_OPTIONS_INIT;
    llvs_change change = insert("y", "1");
    (void)state;
    expecting.expected = llvs_id(&base);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT,
          llvs_store_make_version(store, llvs_id(&base), &change, 1, sizeof change, &expecting, NULL, NULL, &error));
    merging.merges = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT,
          llvs_store_make_version(store, llvs_id(&base), &change, 1, sizeof change, &merging, NULL, NULL, &error));
    neither.merges = 2;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT,
          llvs_store_make_version(store, llvs_id(&base), &change, 1, sizeof change, &neither, NULL, NULL, &error));
}

static void impossible_sizes(void **state) {
    llvs_change change = insert("y", "1"), good = insert("y", "1");
    llvs_bytes endless = llvs_bytes_make("x", SIZE_MAX);
    llvs_buffer data;
    llvs_value_list *values;
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_metadata_entry entry;
    (void)state;
    change.data = endless;
    FAILS(LLVS_ERROR_TOO_LARGE, MAKE(&change, 1));
    change.data = llvs_bytes_make("x", (size_t)LLVS_VALUE_SIZE_MAX + 1);
    FAILS(LLVS_ERROR_TOO_LARGE, MAKE(&change, 1));
    change = good;
    change.id = endless;
    FAILS(LLVS_ERROR_TOO_LARGE, MAKE(&change, 1));
    FAILS(LLVS_ERROR_TOO_LARGE, MAKE(&good, SIZE_MAX));
    FAILS(LLVS_ERROR_TOO_LARGE, MAKE(&good, SIZE_MAX / 2));
    FAILS(LLVS_ERROR_TOO_LARGE, llvs_store_value(store, endless, llvs_id(&base), &data, NULL, &error));
    FAILS(LLVS_ERROR_TOO_LARGE, llvs_store_value(store, llvs_str("x"), endless, &data, NULL, &error));
    FAILS(LLVS_ERROR_TOO_LARGE, llvs_store_values(store, &endless, SIZE_MAX, llvs_id(&base), &values, &error));
    options.metadata = &entry;
    options.metadata_count = SIZE_MAX;
    FAILS(LLVS_ERROR_TOO_LARGE, llvs_store_make_version(store, llvs_id(&base), &good, 1, sizeof good, &options, NULL, NULL, &error));
    entry.key = llvs_str("");
    entry.value = llvs_str("1");
    options.metadata_count = 1;
    FAILS(LLVS_ERROR_INVALID_METADATA, llvs_store_make_version(store, llvs_id(&base), &good, 1, sizeof good, &options, NULL, NULL, &error));
    options.metadata_count = 0;
    options.branch = llvs_str("\xFF");
    FAILS(LLVS_ERROR_INVALID_UTF8, llvs_store_make_version(store, llvs_id(&base), &good, 1, sizeof good, &options, NULL, NULL, &error));
}

static void nulls(void **state) {
    llvs_change change = insert("y", "1");
    llvs_bytes without_data;
    llvs_buffer data;
    llvs_version_list *list;
    (void)state;
    without_data = llvs_bytes_make(NULL, 3);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_heads(no_store, NULL, &list, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_heads(store, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_value(store, llvs_str("x"), llvs_id(&base), NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_value(store, without_data, llvs_id(&base), &data, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, MAKE(NULL, 1));
    change.data = without_data;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, MAKE(&change, 1));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open(llvs_str("x"), NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_close(NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_verify(store, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_statistics(store, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_size(store, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_retrieve(NULL, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_merge(NULL, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_history_cursor_next(NULL, 0, NULL, &list, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_arbiter_builtin(LLVS_ARBITER_OURS, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_cancel_token_create(NULL, &error));
}

static void accessors_and_frees_take_null(void **state) {
    (void)state;
    assert_null(llvs_merge_fork(NULL, llvs_str("x")));
    assert_int_equal(llvs_error_code(NULL), LLVS_OK);
    assert_string_equal(llvs_error_message(NULL), "");
    assert_false(llvs_cancel_token_is_cancelled(NULL));
    assert_false(llvs_reply_is_cancelled(NULL));
    llvs_cancel_token_cancel(NULL);
    llvs_error_free(NULL); llvs_buffer_dispose(NULL); llvs_store_free(NULL); llvs_version_list_free(NULL);
    llvs_value_list_free(NULL); llvs_change_list_free(NULL); llvs_change_cursor_free(NULL); llvs_history_cursor_free(NULL);
    llvs_arbiter_free(NULL); llvs_exchange_free(NULL); llvs_exchange_result_free(NULL); llvs_snapshot_free(NULL);
    llvs_coordinator_free(NULL); llvs_storage_free(NULL); llvs_transport_free(NULL); llvs_observer_free(NULL);
    llvs_cancel_token_free(NULL); llvs_verify_report_free(NULL);
}

/* Options of a newer program: more bytes than this library knows. */
struct newer_options { llvs_store_options known; uint64_t unknown; };
struct newer_change { llvs_change known; uint64_t unknown; };

static void struct_sizes(void **state) {
    struct newer_options newer;
    struct newer_change change;
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_size_options sizes = LLVS_SIZE_OPTIONS_INIT;
    llvs_size_report *report;
    llvs_store *opened;
    llvs_version_id id;
    (void)state;
    memset(&newer, 0, sizeof newer);
    newer.known.storage = LLVS_STORAGE_MEMORY;
    newer.known.struct_size = 0;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_open(LLVS_NONE, &newer.known, &opened, &error));
    newer.known.struct_size = sizeof newer.known - 1;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_open(LLVS_NONE, &newer.known, &opened, &error));
    newer.known.struct_size = UINT32_MAX;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_open(LLVS_NONE, &newer.known, &opened, &error));
    newer.known.struct_size = sizeof newer;
    newer.unknown = 1;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_open(LLVS_NONE, &newer.known, &opened, &error));
    newer.unknown = 0;
    OK(llvs_store_open(LLVS_NONE, &newer.known, &opened, &error));
    llvs_store_free(opened);
    /* A program that is older than compaction_grace: the bytes after its shorter options are not read. */
    newer.known.struct_size = offsetof(llvs_store_options, compaction_grace);
    newer.known.compaction_grace = -1;
    OK(llvs_store_open(LLVS_NONE, &newer.known, &opened, &error));
    newer.known.compaction_grace = 0;
    /* A program that is older than `control`. */
    newer.known.struct_size = offsetof(llvs_store_options, control);
    newer.known.control = (const llvs_control *)(const void *)&newer;
    llvs_store_free(opened);
    OK(llvs_store_open(LLVS_NONE, &newer.known, &opened, &error));
    newer.known.control = NULL;
    newer.unknown = 0x5A5A5A5A5A5A5A5A;
    assert_int_equal(llvs_struct_init(&newer.known, offsetof(llvs_store_options, compaction_grace)), LLVS_OK);
    assert_true(newer.known.compaction_grace == 0 && newer.unknown == 0x5A5A5A5A5A5A5A5A);
    assert_int_equal(newer.known.struct_size, 56);
    memset(&change, 0, sizeof change);
    change.known = insert("x", "1");
    FAILS(LLVS_ERROR_STRUCT_SIZE,
          llvs_store_make_version(opened, LLVS_NONE, &change.known, 1, sizeof(llvs_change) - 8, NULL, NULL, NULL, &error));
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_make_version(opened, LLVS_NONE, &change.known, 1, 0, NULL, NULL, NULL, &error));
    /* The message has the size as an unsigned number, not -1. */
    FAILS_NAMING(LLVS_ERROR_STRUCT_SIZE, "18446744073709551615",
                 llvs_store_make_version(opened, LLVS_NONE, &change.known, 1, SIZE_MAX, NULL, NULL, NULL, &error));
    change.unknown = 1;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_make_version(opened, LLVS_NONE, &change.known, 1, sizeof change, NULL, NULL, NULL, &error));
    change.unknown = 0;
    OK(llvs_store_make_version(opened, LLVS_NONE, &change.known, 1, sizeof change, NULL, &id, NULL, &error));
    value_is(opened, &id, "x", "1");
    sizes.struct_size = 8;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_size(opened, &sizes, &report, &error));
    assert_null(report);
    statistics.struct_size = 8;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_store_statistics(opened, NULL, &statistics, &error));
    llvs_store_free(opened);
}

static void unknown_constants_and_reserved_fields(void **state) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_merge_options merge = LLVS_MERGE_OPTIONS_INIT;
    llvs_exchange_options travel = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_coordinator_options coordinating = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_change change = insert("y", "1");
    llvs_store *opened;
    llvs_exchange *exchange;
    llvs_coordinator *coordinator;
    llvs_heads_options heads = LLVS_HEADS_OPTIONS_INIT;
    llvs_arbiter *arbiter;
    llvs_version_list *list;
    (void)state;
    options.storage = 77;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open(LLVS_NONE, &options, &opened, &error));
    options.storage = LLVS_STORAGE_MEMORY;
    options.durability = 77;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open(LLVS_NONE, &options, &opened, &error));
    options.durability = LLVS_DURABILITY_FULL;
    options.read_only = 2;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open(LLVS_NONE, &options, &opened, &error));
    options.read_only = 0;
    options.storage = LLVS_STORAGE_HOST; /* and no storage */
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open(LLVS_NONE, &options, &opened, &error));
    change.kind = 0;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, MAKE(&change, 1));
    change.kind = 257;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, MAKE(&change, 1));
    change.kind = LLVS_CHANGE_REMOVE; /* with data */
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, MAKE(&change, 1));
    change = insert("y", "1");
    change.reserved = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, MAKE(&change, 1));
    change = removal("y");
    change.kind = LLVS_CHANGE_PRESERVE; /* of nothing */
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, MAKE(&change, 1));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_arbiter_builtin(9, &arbiter, &error));
    travel.durability = 2;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "durability", llvs_exchange_open(store, llvs_str("memory:x"), &travel, &exchange, &error));
    options = (llvs_store_options)LLVS_STORE_OPTIONS_INIT;
    options.storage = LLVS_STORAGE_MEMORY;
    coordinating.store = &options;
    OK(llvs_coordinator_open(LLVS_NONE, &coordinating, &coordinator, &error));
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "durability", llvs_coordinator_attach(coordinator, llvs_str("memory:x"), &travel, &error));
    llvs_coordinator_free(coordinator);
    travel.durability = LLVS_DURABILITY_NORMAL;
    travel.report_unportable = 2;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "report_unportable",
                 llvs_exchange_open(store, llvs_str("memory:x"), &travel, &exchange, &error));
    travel.report_unportable = 0;
    travel.no_other_readers = 2;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "no_other_readers",
                 llvs_exchange_open(store, llvs_str("memory:x"), &travel, &exchange, &error));
    travel.no_other_readers = 0;
    travel.reserved = 1;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "llvs_exchange_options",
                 llvs_exchange_open(store, llvs_str("memory:x"), &travel, &exchange, &error));
    travel.reserved = 0;
    travel.must_exist = 2;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "must_exist", llvs_exchange_open(store, llvs_str("memory:x"), &travel, &exchange, &error));
    heads.reserved = 1;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "reserved", llvs_store_heads(store, &heads, &list, &error));
    heads = (llvs_heads_options)LLVS_HEADS_OPTIONS_INIT;
    heads.branch = llvs_str("\xFF");
    FAILS(LLVS_ERROR_INVALID_UTF8, llvs_store_heads(store, &heads, &list, &error));
    merge.relation = 9;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_merge(store, llvs_id(&base), llvs_id(&base), NULL, &merge, &list, &error));
}

static void foreign_preserves(void **state) {
    llvs_change change = removal("x");
    (void)state;
    change.kind = LLVS_CHANGE_PRESERVE;
    change.stored_version = llvs_str("NO-SUCH-VERSION");
    FAILS(LLVS_ERROR_INVALID_REFERENCE, MAKE(&change, 1));
}

static void unusable_places(void **state) {
    char *directory = new_directory();
    char *file = join(directory, "file"), *inside = join(file, "store"), *missing = join(directory, "a/b/c"),
         *foreign = join(directory, "foreign");
    char *note = join(foreign, "note.txt"), *newer = join(directory, "newer"), *marker = join(newer, "llvs-store");
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *opened = NULL;
    llvs_error *error;
    llvs_status status;
    (void)state;
    write_file(file, "not a store");
    assert_int_equal(mkdir(foreign, 0755), 0);
    write_file(note, "mine");
    FAILS_NAMING(LLVS_ERROR_NOT_A_DIRECTORY, "file", llvs_store_open(llvs_str(file), NULL, &opened, &error));
    FAILS(LLVS_ERROR_NOT_A_DIRECTORY, llvs_store_open(llvs_str(inside), NULL, &opened, &error));
    FAILS_NAMING(LLVS_ERROR_NOT_A_STORE, "foreign", llvs_store_open(llvs_str(foreign), NULL, &opened, &error));
    assert_null(opened);
    options.must_exist = 1;
    FAILS(LLVS_ERROR_NOT_FOUND, llvs_store_open(llvs_str(missing), &options, &opened, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open(LLVS_NONE, NULL, &opened, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_open(llvs_bytes_make("a\0b", 3), NULL, &opened, &error));
    FAILS(LLVS_ERROR_INVALID_UTF8, llvs_store_open(llvs_str("/tmp/\xFF"), NULL, &opened, &error));
    /* A store of a newer format. */
    OK(llvs_store_open(llvs_str(newer), NULL, &opened, &error));
    save(opened, NULL, insert("x", "1"));
    llvs_store_free(opened);
    {
        FILE *stream = fopen(marker, "r+b");
        char text[64];
        size_t size, i;
        assert_non_null(stream);
        size = fread(text, 1, sizeof text, stream);
        for (i = 0; i < size && (text[i] < '0' || text[i] > '9'); i++) {}
        assert_true(i < size);
        assert_int_equal(fseek(stream, (long)i, SEEK_SET), 0);
        fputc('9', stream);
        fclose(stream);
    }
    FAILS_NAMING(LLVS_ERROR_NEWER_FORMAT, "newer", llvs_store_open(llvs_str(newer), NULL, &opened, &error));
    /* A write-protected directory, which does not stop root. */
    assert_int_equal(chmod(directory, 0555), 0);
    if (geteuid() != 0) {
        char *closed = join(directory, "closed");
        FAILS(LLVS_ERROR_PERMISSION, llvs_store_open(llvs_str(closed), NULL, &opened, &error));
        free(closed);
    }
    assert_int_equal(chmod(directory, 0755), 0);
    /* A file system in which no file can be created is named in the error, whatever the code is. */
    status = llvs_store_open(llvs_str("/proc/llvs-store"), NULL, &opened, &error);
    assert_true(status < 0);
    assert_non_null(strstr(llvs_error_message(error), "/proc/llvs-store"));
    llvs_error_free(error);
    free(file); free(inside); free(missing); free(foreign); free(note); free(newer); free(marker);
    remove_directory(directory);
}

/* A full disk, simulated by a limit on the size of files. */
static void a_full_disk(void **state) {
    static char large[300000];
    uint32_t noise = 1;
    size_t i;
    char *directory = new_directory(), *path = join(directory, "store");
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_change change = insert("large", NULL);
    struct rlimit whole, small;
    llvs_store *opened;
    llvs_version_id first, next;
    llvs_verify_report *report;
    llvs_error *error;
    llvs_status status;
    (void)state;
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    for (i = 0; i < sizeof large; i++) { /* xorshift: does not compress */
        noise ^= noise << 13; noise ^= noise >> 17; noise ^= noise << 5;
        large[i] = (char)noise;
    }
    change.data = llvs_bytes_make(large, sizeof large);
    OK(llvs_store_open(llvs_str(path), &options, &opened, &error));
    first = save(opened, NULL, insert("x", "1"));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
    small = whole;
    small.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = llvs_store_make_version(opened, llvs_id(&first), &change, 1, sizeof change, NULL, NULL, NULL, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
    assert_int_equal(status, LLVS_ERROR_NO_SPACE);
    assert_true(strstr(llvs_error_message(error), path) != NULL);
    llvs_error_free(error);
    assert_int_equal(version_count(opened), 1);
    /* There is space again. */
    OK(llvs_store_make_version(opened, llvs_id(&first), &change, 1, sizeof change, NULL, &next, NULL, &error));
    OK(llvs_store_verify(opened, NULL, &report, &error));
    assert_int_equal(report->versions, 2);
    llvs_verify_report_free(report);
    llvs_store_free(opened);
    OK(llvs_store_open(llvs_str(path), &options, &opened, &error));
    assert_int_equal(version_count(opened), 2);
    value_is(opened, &next, "x", "1");
    llvs_store_free(opened);
    free(path);
    remove_directory(directory);
}

static void bad_urls(void **state) {
    static const char *const invalid[] = {
        "", "folder", ":x", "file:folder", "file://host/folder", "file:///a%zz", "file:///a%0", "file:///a%00b", "memory:"
    };
    llvs_exchange *exchange;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof invalid / sizeof *invalid; i++)
        FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_open(store, llvs_str(invalid[i]), NULL, &exchange, &error));
    FAILS_NAMING(LLVS_ERROR_UNSUPPORTED, "gopher", llvs_exchange_open(store, llvs_str("gopher://x"), NULL, &exchange, &error));
    FAILS(LLVS_ERROR_INVALID_UTF8, llvs_exchange_open(store, llvs_str("file:///\xFF"), NULL, &exchange, &error));
}

static void messages_hold_no_value_bytes(void **state) {
    llvs_change changes[2];
    llvs_error *error;
    (void)state;
    changes[0] = insert("twice", "SECRET"); changes[1] = insert("twice", "SECRET");
    assert_int_equal(llvs_store_make_version(store, llvs_id(&base), changes, 2, sizeof changes[0], NULL, NULL, NULL, &error),
                     LLVS_ERROR_DUPLICATE_ID);
    assert_null(strstr(llvs_error_message(error), "SECRET"));
    assert_true(bytes_are(llvs_error_value_id(error), "twice"));
    llvs_error_free(error);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(unknown_versions),
        TEST(the_error_says_which),
        TEST(duplicate_ids),
        TEST(unacceptable_value_ids),
        TEST(unacceptable_version_ids),
        TEST(what_only_coordinators_take),
        TEST(impossible_sizes),
        TEST(nulls),
        TEST(accessors_and_frees_take_null),
        TEST(struct_sizes),
        TEST(unknown_constants_and_reserved_fields),
        TEST(foreign_preserves),
        TEST(unusable_places),
        TEST(a_full_disk),
        TEST(bad_urls),
        TEST(messages_hold_no_value_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

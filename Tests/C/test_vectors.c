/* The vectors in Tests/Vectors in their text form (see the README there): histories that are read from a folder, and the exact states,
   bases, differences and merge versions that must result. */
#include "vectors.h"

#include <sys/stat.h>

enum { LINE_MAX_SIZE = 1 << 17, WORDS_MAX = 40 };

static char line[LINE_MAX_SIZE];
static char *word[WORDS_MAX];
static int words;

/* Reads the next line and splits it at its spaces. Returns 0 at the end. */
static int next_line(FILE *file) {
    char *at = line;
    words = 0;
    if (!fgets(line, sizeof line, file)) return 0;
    line[strcspn(line, "\n")] = 0;
    while (*at && words < WORDS_MAX) {
        word[words++] = at;
        at += strcspn(at, " ");
        if (*at) *at++ = 0;
    }
    return 1;
}

static int is(const char *name) { return words > 0 && strcmp(word[0], name) == 0; }

/* Decodes hexadecimal ("-" for nothing) into a buffer that the next use of the slot overwrites. */
static llvs_bytes unhex(const char *text, int slot) {
    static uint8_t buffers[3][LINE_MAX_SIZE / 2];
    size_t size = 0;
    unsigned byte;
    if (strcmp(text, "-") != 0)
        for (; text[0] && text[1]; text += 2) {
            assert_int_equal(sscanf(text, "%2x", &byte), 1);
            buffers[slot][size++] = (uint8_t)byte;
        }
    return llvs_bytes_make(buffers[slot], size);
}

static void same_bytes(llvs_bytes found, llvs_bytes expected) {
    assert_int_equal(found.size, expected.size);
    assert_memory_equal(found.data, expected.data, expected.size);
}
static void same_text(llvs_bytes found, const char *expected) { same_bytes(found, llvs_str(strcmp(expected, "-") ? expected : "")); }

static void publish(const char *folder, const char *kind, const char *id, const char *hex) {
    char path[512];
    llvs_bytes content = unhex(hex, 0);
    FILE *file;
    snprintf(path, sizeof path, "%s/%s/%s", folder, kind, id);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content.data, 1, content.size, file), content.size);
    assert_int_equal(fclose(file), 0);
}

static void remove_all(const char *folder) {
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* Reads the lines "version" up to the next of another kind, through a folder, into a new store. */
static llvs_store *read_history(FILE *file) {
    char folder[] = "/tmp/llvs-vectors-XXXXXX", path[64], url[80], id[LLVS_VERSION_ID_SIZE_MAX + 1] = "";
    llvs_store *store = memory_store();
    llvs_exchange *exchange;
    llvs_exchange_result *result;
    size_t expected = 0, count;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/versions", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/changes", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    while (is("version") || is("versionfile") || is("changesfile")) {
        if (is("version")) {
            snprintf(id, sizeof id, "%s", word[1]);
            expected++;
        } else {
            publish(folder, is("versionfile") ? "versions" : "changes", id, word[1]);
        }
        assert_true(next_line(file));
    }
    snprintf(url, sizeof url, "file://%s", folder);
    OK(llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error));
    OK(llvs_exchange_retrieve(exchange, NULL, &result, &error));
    /* Some of the histories have timestamps in the future. */
    for (count = 0; count < result->problem_count; count++) assert_int_equal(result->problems[count]->code, LLVS_ERROR_CLOCK_AHEAD);
    count = result->retrieved_count;
    assert_int_equal(count, expected);
    llvs_exchange_result_free(result);
    llvs_exchange_free(exchange);
    remove_all(folder);
    return store;
}

/* Checks `count` lines "value" against the state at a version. Leaves the line after them. */
static void check_values(FILE *file, llvs_store *store, llvs_bytes at, unsigned long count) {
    llvs_value_list *list;
    const llvs_value_info *value;
    unsigned long index;
    OK(llvs_store_enumerate(store, at, NULL, &list, &error));
    assert_int_equal(list ? list->count : 0, count);
    for (index = 0; index < count; index++) {
        assert_true(next_line(file));
        assert_true(is("value"));
        value = list->items[index];
        same_bytes(value->id, unhex(word[1], 0));
        same_text(value->stored_version, word[2]);
        same_bytes(value->data, unhex(word[3], 1));
    }
    llvs_value_list_free(list);
    assert_true(next_line(file));
}

static void check_heads(FILE *file, llvs_store *store) {
    llvs_version_list *heads;
    size_t index = 0;
    OK(llvs_store_heads(store, NULL, &heads, &error));
    for (; is("head"); index++, assert_true(next_line(file))) {
        assert_true(index < heads->count);
        same_text(heads->items[index]->id, word[1]);
    }
    assert_int_equal(heads->count, index);
    llvs_version_list_free(heads);
}

static void check_bases(FILE *file, llvs_store *store) {
    llvs_version_list *bases;
    int index;
    OK(llvs_store_merge_bases(store, llvs_str(word[1]), llvs_str(word[2]), NULL, &bases, &error));
    assert_int_equal(bases->count, words - 3);
    for (index = 3; index < words; index++) same_text(bases->items[(size_t)index - 3]->id, word[index]);
    llvs_version_list_free(bases);
    assert_true(next_line(file));
}

static llvs_change_kind change_kind(const char *name) {
    return strcmp(name, "insert") == 0 ? LLVS_CHANGE_INSERT : strcmp(name, "update") == 0 ? LLVS_CHANGE_UPDATE : LLVS_CHANGE_REMOVE;
}

static void check_difference(FILE *file, llvs_store *store) {
    llvs_change_cursor *cursor;
    llvs_change_list *changes;
    const llvs_change_info *change;
    unsigned long index, count = strtoul(word[3], NULL, 10);
    OK(llvs_store_differences(store, llvs_str(word[1]), llvs_str(word[2]), NULL, NULL, &cursor, &error));
    assert_int_equal(llvs_change_cursor_count(cursor), count);
    OK(llvs_change_cursor_next(cursor, 0, 0, &changes, &error));
    assert_int_equal(changes ? changes->count : 0, count);
    for (index = 0; index < count; index++) {
        assert_true(next_line(file));
        change = changes->items[index];
        assert_int_equal(change->kind, change_kind(word[1]));
        same_bytes(change->id, unhex(word[2], 0));
        same_text(change->stored_version, word[3]);
    }
    llvs_change_list_free(changes);
    llvs_change_cursor_free(cursor);
    assert_true(next_line(file));
}

static llvs_arbiter_kind arbiter_kind(const char *name) {
    if (strcmp(name, "most_recent_change") == 0) return LLVS_ARBITER_MOST_RECENT_CHANGE;
    if (strcmp(name, "most_recent_branch") == 0) return LLVS_ARBITER_MOST_RECENT_BRANCH;
    return strcmp(name, "ours") == 0 ? LLVS_ARBITER_OURS : LLVS_ARBITER_THEIRS;
}

static const char *fork_names[] = { "",        "inserted",      "twice_inserted",     "updated", "twice_updated",
                                    "removed", "twice_removed", "removed_and_updated" };

/* The expected forks, line by line, for the arbiter that checks them. */
typedef struct expectation {
    char lines[64][2][8300];
    int count, asked;
} expectation;

/* Compares the forks with the expected ones, and calls the built-in arbiter. */
static llvs_status watch(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    static char found[8300];
    static const char *sides[] = {"-", "first", "second"};
    expectation *expected = payload;
    size_t index;
    (void)resolution;
    (void)error;
    expected->asked++;
    assert_int_equal(merge->fork_count, expected->count);
    for (index = 0; index < merge->fork_count; index++) {
        const llvs_fork *fork = merge->forks[index];
        same_bytes(fork->id, unhex(expected->lines[index][0], 2));
        snprintf(found, sizeof found, "%s %s %s %s %s", fork_names[fork->kind], sides[fork->side],
                 fork->first.size ? (const char *)fork->first.data : "-", fork->second.size ? (const char *)fork->second.data : "-",
                 fork->ancestor.size ? (const char *)fork->ancestor.data : "-");
        assert_string_equal(found, expected->lines[index][1]);
    }
    return LLVS_PASS;
}

static void check_merge(FILE *file, llvs_store *store) {
    static expectation expected;
    static uint8_t keys[8][256], values[8][256];
    llvs_metadata_entry entries[8];
    llvs_merge_options options = LLVS_MERGE_OPTIONS_INIT;
    char ours[LLVS_VERSION_ID_SIZE_MAX + 1], theirs[LLVS_VERSION_ID_SIZE_MAX + 1];
    llvs_arbiter *builtin, *arbiter;
    llvs_version_list *merged;
    llvs_bytes bytes;
    double timestamp;
    unsigned long long bits;
    expected.count = expected.asked = 0;
    snprintf(ours, sizeof ours, "%s", word[1]);
    snprintf(theirs, sizeof theirs, "%s", word[2]);
    OK(llvs_arbiter_builtin(arbiter_kind(word[3]), &builtin, &error));
    OK(llvs_arbiter_create(watch, &expected, NULL, builtin, &arbiter, &error));
    llvs_arbiter_free(builtin);
    for (assert_true(next_line(file)); is("metadata") || is("fork"); assert_true(next_line(file))) {
        if (is("metadata")) {
            assert_true(options.metadata_count < 8);
            bytes = unhex(word[1], 0);
            memcpy(keys[options.metadata_count], bytes.data, bytes.size);
            entries[options.metadata_count].key = llvs_bytes_make(keys[options.metadata_count], bytes.size);
            bytes = unhex(word[2], 0);
            memcpy(values[options.metadata_count], bytes.data, bytes.size);
            entries[options.metadata_count].value = llvs_bytes_make(values[options.metadata_count], bytes.size);
            options.metadata_count++;
        } else {
            assert_true(expected.count < 64);
            snprintf(expected.lines[expected.count][0], sizeof expected.lines[0][0], "%s", word[1]);
            snprintf(expected.lines[expected.count][1], sizeof expected.lines[0][1], "%s %s %s %s %s", word[2], word[3], word[4], word[5],
                     word[6]);
            expected.count++;
        }
    }
    options.metadata = entries;
    assert_true(is("result"));
    OK(llvs_store_merge(store, llvs_str(ours), llvs_str(theirs), arbiter, &options, &merged, &error));
    assert_int_equal(expected.asked, expected.count > 0 ? 1 : expected.asked);
    same_text(merged->items[0]->id, word[1]);
    bits = strtoull(word[2], NULL, 16);
    memcpy(&timestamp, &bits, sizeof timestamp);
    assert_true(merged->items[0]->timestamp == timestamp + 978307200.0);
    check_values(file, store, merged->items[0]->id, strtoul(word[3], NULL, 10));
    llvs_version_list_free(merged);
    llvs_arbiter_free(arbiter);
}

static void run(const char *name, int vectors, int states, int asked, int merges) {
    FILE *file = open_vectors(name);
    while (next_line(file)) {
        llvs_store *store;
        assert_true(is("vector"));
        assert_true(next_line(file));
        store = read_history(file);
        for (; is("state"); states--) check_values(file, store, llvs_str(word[1]), strtoul(word[2], NULL, 10));
        check_heads(file, store);
        for (; is("bases"); asked--) check_bases(file, store);
        for (; is("difference"); asked--) check_difference(file, store);
        for (; is("merge"); merges--) check_merge(file, store);
        assert_true(is("end"));
        llvs_store_free(store);
        vectors--;
    }
    close_vectors(file);
    /* There must be at least as many vectors as when this test was written. */
    assert_true(vectors <= 0 && states <= 0 && asked <= 0 && merges <= 0);
}

static void merging(void **state) { (void)state; run("merging", 14, 96, 106, 141); }
static void random_histories(void **state) { (void)state; run("random", 25, 427, 484, 200); }

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(merging), cmocka_unit_test(random_histories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

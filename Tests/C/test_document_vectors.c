/* The vectors of merging inside values (Tests/Vectors/documents, in the text form that text.py there explains): single merges by
   llvs_merge_values, and histories in stores. */
#include "vectors.h"

enum { LINE_SIZE = 1 << 17, WORDS = 9, VERSIONS = 24 };

static char line[LINE_SIZE];
static char *word[WORDS];

/* Reads the next line and splits it at its spaces. Returns 0 at the end. */
static int next_line(FILE *file) {
    char *at = line;
    int count = 0;
    if (!fgets(line, sizeof line, file)) return 0;
    line[strcspn(line, "\n")] = 0;
    for (; count < WORDS; count++) {
        word[count] = at;
        at += strcspn(at, " ");
        if (*at) *at++ = 0;
    }
    return 1;
}

/* Decodes hexadecimal into a buffer that the next use of the slot overwrites. "." is empty, "-" is no value. */
static llvs_bytes unhex(const char *text, int slot) {
    static char buffers[4][LINE_SIZE / 2];
    size_t size = 0;
    unsigned byte;
    if (strcmp(text, "-") == 0) return LLVS_NONE;
    for (; text[0] && text[1]; text += 2) {
        assert_int_equal(sscanf(text, "%2x", &byte), 1);
        buffers[slot][size++] = (char)byte;
    }
    buffers[slot][size] = 0;
    return llvs_bytes_make(buffers[slot], size);
}

static int are_same(llvs_bytes found, llvs_bytes expected) {
    if (!found.data || !expected.data) return !found.data && !expected.data;
    return found.size == expected.size && memcmp(found.data, expected.data, expected.size) == 0;
}

static void merge_values(void) {
    static const char nothing[] = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"; /* the digest for no conflicts:
                                                                                                       * "[]" */
    llvs_merge_values_options options = LLVS_MERGE_VALUES_OPTIONS_INIT;
    llvs_bytes rules = unhex(word[2], 0), base = unhex(word[3], 1), newer = unhex(word[4], 2), older = unhex(word[5], 3);
    llvs_merged_value *merged;
    options.id = llvs_str("a");
    options.saving = word[1][0] == '1';
    OK(llvs_merge_values(rules, base.data ? &base : NULL, newer.data ? &newer : NULL, older.data ? &older : NULL, &options, &merged,
                         &error));
    if (!are_same(merged->data, unhex(word[6], 0)) ||
        !are_same(merged->digest.size ? merged->digest : llvs_str(nothing), llvs_str(word[7])))
        fail_msg("%s: %s, %s", unhex(word[8], 0).data, merged->data.data ? (const char *)merged->data.data : "absent",
                 merged->digest.size ? (const char *)merged->digest.data : nothing);
    llvs_merged_value_free(merged);
}

static void each_value_is_merged_as_the_model_does(void **state) {
    FILE *file = open_vectors("documents/vectors");
    int count = 0;
    (void)state;
    for (; next_line(file) && strcmp(word[0], "merge") == 0; count++) merge_values();
    close_vectors(file);
    assert_true(count >= 1662);
}

/* The versions of a history by their names; "-" is the first one, which has the rules. */
typedef struct known {
    char name[16];
    llvs_version_id id;
} known;

static const llvs_version_id *find(const known *versions, int count, const char *name) {
    while (count-- > 0)
        if (strcmp(versions[count].name, name) == 0) return &versions[count].id;
    fail_msg("no version %s", name);
    return NULL;
}

static void check_value(llvs_store *store, const llvs_version_id *at, const char *expected, const llvs_version_id *storing) {
    llvs_bytes value = unhex(expected, 0);
    llvs_buffer data;
    llvs_version_id stored;
    OK(llvs_store_value(store, llvs_str("a"), llvs_id(at), &data, &stored, &error));
    assert_true(are_same(llvs_bytes_make(data.data, data.size), value));
    if (storing) assert_string_equal(stored.text, storing->text);
    llvs_buffer_dispose(&data);
}

static void check_conflicts(llvs_store *store, const llvs_version_id *merge, char *kinds) {
    static const char *const names[] = { "", "pick", "delete-edit", "type", "not-json", "overlap", "move-move", "contested", "bound",
                                         "limit", "arbiter" };
    llvs_conflict_list *found;
    char told[256] = "";
    size_t i;
    if (strcmp(kinds, "?") == 0) return;
    OK(llvs_store_explain(store, llvs_id(merge), NULL, &found, &error));
    for (i = 0; i < found->count; i++)
        snprintf(told + strlen(told), sizeof told - strlen(told), "%s%s", i ? "," : "", names[found->items[i]->kind]);
    assert_string_equal(*told ? told : "-", kinds);
    llvs_conflict_list_free(found);
}

static void make_merge(llvs_store *store, known *versions, int count) {
    llvs_merge_options options = LLVS_MERGE_OPTIONS_INIT;
    llvs_metadata_entry device;
    llvs_arbiter *arbiter = NULL;
    llvs_version_list *made;
    llvs_version_id *id = &versions[count].id;
    device.key = llvs_str("device");
    device.value = unhex(word[5], 0);
    options.metadata = &device;
    options.metadata_count = device.value.data ? 1 : 0;
    if (strcmp(word[4], "rules") != 0) OK(llvs_arbiter_builtin(LLVS_ARBITER_MOST_RECENT_CHANGE, &arbiter, &error));
    OK(llvs_store_merge(store, llvs_id(find(versions, count, word[2])), llvs_id(find(versions, count, word[3])), arbiter, &options,
                        &made, &error));
    id->size = (uint32_t)made->items[0]->id.size;
    memcpy(id->text, made->items[0]->id.data, id->size);
    id->text[id->size] = 0;
    llvs_version_list_free(made);
    llvs_arbiter_free(arbiter);
}

static void run_history(FILE *file) {
    llvs_store *store = memory_store();
    known versions[VERSIONS] = { { "-", { 0 } } };
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_change change = LLVS_CHANGE_INIT;
    char *kinds, *stored, *value;
    int count = 1;
    change.kind = LLVS_CHANGE_INSERT;
    change.id = llvs_str("__llvs_schema");
    change.data = unhex(word[1], 0);
    options.timestamp = 1;
    OK(llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, &options, &versions[0].id, NULL, &error));
    while (next_line(file) && strcmp(word[0], "end") != 0) {
        const int is_save = strcmp(word[0], "save") == 0;
        assert_true(count < VERSIONS && strlen(word[1]) < sizeof versions[0].name);
        kinds = is_save ? NULL : word[8];
        stored = is_save ? word[5] : word[7];
        value = is_save ? word[4] : word[6];
        if (is_save) {
            options.timestamp = strtod(word[2], NULL);
            change.data = unhex(value, 0);
            change.kind = change.data.data ? LLVS_CHANGE_UPDATE : LLVS_CHANGE_REMOVE;
            change.id = llvs_str("a");
            OK(llvs_store_make_version(store, llvs_id(find(versions, count, word[3])), &change, 1, sizeof change, &options,
                                       &versions[count].id, NULL, &error));
        } else {
            make_merge(store, versions, count);
        }
        strcpy(versions[count++].name, word[1]);
        check_value(store, &versions[count - 1].id, value, strcmp(stored, "-") ? find(versions, count, stored) : NULL);
        if (kinds) check_conflicts(store, &versions[count - 1].id, kinds);
    }
    assert_string_equal(word[0], "end");
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}

static void histories_come_to_what_the_model_says(void **state) {
    FILE *file = open_vectors("documents/vectors");
    int count = 0;
    (void)state;
    while (next_line(file))
        if (strcmp(word[0], "history") == 0) {
            run_history(file);
            count++;
        }
    close_vectors(file);
    assert_true(count >= 34);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_value_is_merged_as_the_model_does),
        cmocka_unit_test(histories_come_to_what_the_model_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

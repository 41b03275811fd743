/* Finding values: the vectors of keys (Tests/Vectors/index-keys.json, in the text form that docs/index-keys.md explains), pages, and
   wrong arguments. */
#include "vectors.h"

enum { LINE_SIZE = 1 << 17, WORDS = 256 };

static char line[LINE_SIZE];
static char *word[WORDS];
static int words;

static int next_line(FILE *file) {
    char *at = line;
    if (!fgets(line, sizeof line, file)) return 0;
    line[strcspn(line, "\n")] = 0;
    for (words = 0; words < WORDS && *at; words++) {
        word[words] = at;
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
    for (; text[0] && text[0] != '.' && text[1]; text += 2) {
        assert_int_equal(sscanf(text, "%2x", &byte), 1);
        buffers[slot][size++] = (char)byte;
    }
    buffers[slot][size] = 0;
    return llvs_bytes_make(buffers[slot], size);
}

static llvs_index *defined(llvs_store *store, llvs_bytes definition) {
    llvs_index_options options = LLVS_INDEX_OPTIONS_INIT;
    llvs_index *index;
    options.definition = definition;
    OK(llvs_index_open(store, &options, &index, &error));
    return index;
}

/* Queries as the current line says. The lines after it are the expected result. */
static void ask(llvs_index *index, FILE *file) {
    llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
    llvs_index_page *page;
    size_t count, i;
    const uint8_t *at;
    question.equal = unhex(word[1], 0);
    question.begin = unhex(word[2], 1);
    question.has_begin = word[2][0] != '-';
    question.low = unhex(word[3], 2);
    question.high = unhex(word[4], 3);
    question.low_open = word[5][0] == '1';
    question.high_open = word[6][0] == '1';
    question.want = LLVS_INDEX_KEYS | LLVS_INDEX_VALUES | LLVS_INDEX_COUNT;
    count = (size_t)atoi(word[7]);
    OK(llvs_index_find(index, LLVS_NONE, &question, NULL, &page, &error));
    assert_int_equal(page->struct_size, sizeof *page);
    assert_int_equal(page->count, count);
    assert_int_equal(page->total, count);
    assert_int_equal(page->values->count, count);
    assert_int_equal(page->cursor.size, 0);
    for (at = page->ids.data, i = 0; i < count; i++) {
        llvs_bytes id;
        assert_true(next_line(file));
        assert_string_equal(word[0], "found");
        id = unhex(word[1], 0);
        assert_int_equal(page->id_sizes[i], id.size);
        assert_memory_equal(at, id.data, id.size);
        at += id.size + 1;
    }
    llvs_index_page_free(page);
}

static void the_vectors_hold(void **state) {
    FILE *file = open_vectors("index-keys");
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_index *index = NULL;
    llvs_version_id version;
    llvs_change change = LLVS_CHANGE_INIT;
    int values = 0, keys = 0, questions = 0, i;
    (void)state;
    options.storage = LLVS_STORAGE_MEMORY;
    OK(llvs_store_open(LLVS_NONE, &options, &store, &error));
    version.size = 0;
    while (next_line(file)) {
        if (strcmp(word[0], "value") == 0) {
            change.kind = LLVS_CHANGE_INSERT;
            change.id = unhex(word[1], 0);
            change.data = unhex(word[2], 1);
            OK(llvs_store_make_version(store, llvs_id(&version), &change, 1, sizeof change, NULL, &version, NULL, &error));
            values++;
        } else if (strcmp(word[0], "definition") == 0) {
            llvs_index_free(index);
            index = defined(store, unhex(word[1], 0));
        } else if (strcmp(word[0], "keys") == 0) {
            llvs_buffer json;
            char *at, expected[64];
            OK(llvs_index_explain(index, LLVS_NONE, unhex(word[1], 0), &json, &error));
            at = strstr((const char *)json.data, "\"bytes\":[");
            assert_non_null(at);
            at += strlen("\"bytes\":[");
            for (i = 3; i < words; i++, keys++) {
                assert_int_equal(*at, '"');
                assert_int_equal(strncmp(at + 1, word[i], strlen(word[i])), 0);
                at += strlen(word[i]) + 2 + (i + 1 < words);
            }
            if (word[2][0] == '-') snprintf(expected, sizeof expected, "],\"why\":null,");
            else snprintf(expected, sizeof expected, "],\"why\":\"%s\",", word[2]);
            assert_int_equal(strncmp(at, expected, strlen(expected)), 0);
            llvs_buffer_dispose(&json);
        } else if (strcmp(word[0], "question") == 0) {
            ask(index, file);
            questions++;
        }
    }
    assert_true(values == 13 && keys >= 50 && questions >= 19);
    close_vectors(file);
    llvs_index_free(index);
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}

static llvs_store *filled(llvs_version_id *version) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_change changes[3];
    options.storage = LLVS_STORAGE_MEMORY;
    OK(llvs_store_open(LLVS_NONE, &options, &store, &error));
    changes[0] = insert("c/1", "{\"name\":\"Smith\",\"n\":1.0}");
    changes[1] = insert("c/2", "{\"name\":\"smith\"}");
    changes[2] = insert("__llvs_schema", "{\"merge\":1,\"indexes\":{\"by-name\":{\"prefix\":\"c/\",\"on\":[\"/name\",\"/n\"]}}}");
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 3, sizeof changes[0], NULL, version, NULL, &error));
    return store;
}

static void pages_go_on_behind_each_other(void **state) {
    llvs_version_id version;
    llvs_store *store = filled(&version);
    llvs_index_options options = LLVS_INDEX_OPTIONS_INIT;
    llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
    llvs_index *index;
    llvs_index_page *page, *second;
    (void)state;
    options.name = llvs_str("by-name");
    OK(llvs_index_open(store, &options, &index, &error));
    llvs_store_free(store); /* The index keeps the store open. */
    question.limit = 1;
    question.want = LLVS_INDEX_KEYS | LLVS_INDEX_COUNT;
    OK(llvs_index_find(index, llvs_id(&version), &question, NULL, &page, &error));
    assert_true(page->count == 1 && page->total == 2 && !page->values && page->cursor.size > 9);
    assert_string_equal((const char *)page->ids.data, "c/1");
    assert_string_equal((const char *)page->keys.data, "[\"Smith\",1]");
    question.after = page->cursor;
    OK(llvs_index_find(index, llvs_id(&version), &question, NULL, &second, &error));
    assert_true(second->count == 1 && second->cursor.size == 0);
    assert_string_equal((const char *)second->keys.data, "[\"smith\",{}]");
    llvs_index_page_free(second);
    question.after = llvs_str("none");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "cursor", llvs_index_find(index, LLVS_NONE, &question, NULL, &second, &error));
    assert_null(second);
    OK(llvs_index_find(index, LLVS_NONE, NULL, NULL, &second, &error));
    assert_true(second->count == 2 && !second->key_sizes && !second->values && second->total == 0);
    llvs_index_page_free(second);
    llvs_index_page_free(page);
    llvs_index_page_free(NULL);
    llvs_index_free(index);
    llvs_index_free(NULL);
}

static void wrong_arguments_are_refused(void **state) {
    llvs_version_id version;
    llvs_store *store = filled(&version);
    llvs_index_options options = LLVS_INDEX_OPTIONS_INIT;
    llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
    llvs_index *index;
    llvs_index_page *page;
    llvs_buffer json;
    (void)state;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_index_open(store, &options, &index, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_index_open(store, NULL, &index, &error));
    options.definition = llvs_str("{\"prefix\":\"c/\",\"on\":[\"/a/**\"]}");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "/on/0", llvs_index_open(store, &options, &index, &error));
    options.name = llvs_str("by-name");
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_index_open(store, &options, &index, &error));
    options.definition = LLVS_NONE;
    options.warm = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_index_open(store, &options, &index, &error));
    options.warm = 2;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_index_open(store, &options, &index, &error));
    options.warm = 0;
    options.struct_size = 8;
    FAILS(LLVS_ERROR_STRUCT_SIZE, llvs_index_open(store, &options, &index, &error));
    options.struct_size = sizeof options;
    options.name = llvs_str("other");
    OK(llvs_index_open(store, &options, &index, &error));
    FAILS_NAMING(LLVS_ERROR_NOT_FOUND, "by-name", llvs_index_find(index, LLVS_NONE, NULL, NULL, &page, &error));
    llvs_index_free(index);
    options.name = llvs_str("by-name");
    OK(llvs_index_open(store, &options, &index, &error));
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_index_find(index, llvs_str("nowhere"), NULL, NULL, &page, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_index_find(index, LLVS_NONE, NULL, NULL, NULL, &error));
    question.want = 8;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_index_find(index, LLVS_NONE, &question, NULL, &page, &error));
    question.want = 0;
    question.unique = 2;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_index_find(index, LLVS_NONE, &question, NULL, &page, &error));
    question.unique = 0;
    question.equal = llvs_str("{}");
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_index_find(index, LLVS_NONE, &question, NULL, &page, &error));
    question.equal = llvs_bytes_make(NULL, SIZE_MAX);
    FAILS(LLVS_ERROR_TOO_LARGE, llvs_index_find(index, LLVS_NONE, &question, NULL, &page, &error));
    question.equal = LLVS_NONE;
    question.has_begin = 1;
    question.begin = llvs_str("\xff");
    FAILS(LLVS_ERROR_INVALID_UTF8, llvs_index_find(index, LLVS_NONE, &question, NULL, &page, &error));
    question.begin = llvs_str("a");
    question.low = llvs_str("[1]");
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_index_find(index, LLVS_NONE, &question, NULL, &page, &error));
    FAILS(LLVS_ERROR_INVALID_VALUE_ID, llvs_index_explain(index, LLVS_NONE, LLVS_NONE, &json, &error));
    OK(llvs_store_close(store, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_index_find(index, LLVS_NONE, NULL, NULL, &page, &error));
    FAILS(LLVS_ERROR_CLOSED, llvs_index_open(store, &options, &index, &error));
    llvs_store_free(store);
}

/* Gives each word of a value with its length, unless the payload requests something else. */
static llvs_status give_words(void *payload, const llvs_bytes *id, const llvs_bytes *data, llvs_index_keys *keys, llvs_error **error) {
    const char *how = payload, *at = (const char *)data->data, *end = at + data->size;
    char tuple[6000];
    int i;
    assert_true(id->size > 2 && memcmp(id->data, "v/", 2) == 0);
    if (strcmp(how, "fail") == 0) {
        *error = llvs_error_create(77, llvs_str("no more"));
        return LLVS_ERROR_USER;
    }
    if (strcmp(how, "swallow") == 0) MAY_FAIL(llvs_index_keys_add(keys, llvs_str("[{},1]"), NULL));
    if (strcmp(how, "many") == 0) {
        for (i = 0; i < 10001; i++) {
            snprintf(tuple, sizeof tuple, "[%d,0]", i);
            if (llvs_index_keys_add(keys, llvs_str(tuple), error) != LLVS_OK) return LLVS_ERROR_USER;
        }
    }
    while (at < end) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        size_t size = (size_t)((space ? space : end) - at);
        snprintf(tuple, sizeof tuple, "[\"%.*s\",%d]", (int)size, at, (int)size);
        if (llvs_index_keys_add(keys, llvs_str(tuple), error) != LLVS_OK) return LLVS_ERROR_USER;
        at += size + 1;
    }
    return LLVS_OK;
}

static int freed;
static void count_freed(void *payload) { (void)payload; freed++; }

static llvs_index *computed(llvs_store *store, const char *how) {
    llvs_computed_index_options options = LLVS_COMPUTED_INDEX_OPTIONS_INIT;
    llvs_index *index;
    options.prefix = llvs_str("v/");
    options.parts = 2;
    OK(llvs_computed_index_open(store, &options, give_words, (void *)how, count_freed, &index, &error));
    return index;
}

static void a_callback_gives_the_keys(void **state) {
    static char long_words[2][2001];
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_computed_index_options computed_options = LLVS_COMPUTED_INDEX_OPTIONS_INIT;
    llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
    llvs_change changes[5];
    llvs_error *error = NULL;
    llvs_version_id version;
    llvs_store *store;
    llvs_index *index;
    llvs_index_page *page;
    llvs_buffer json;
    char tuple[2100];
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        memset(long_words[i], 'x', 2000);
        long_words[i][1999] = (char)('a' + i);
    }
    options.storage = LLVS_STORAGE_MEMORY;
    OK(llvs_store_open(LLVS_NONE, &options, &store, &error));
    changes[0] = insert("v/1", "b a b");
    changes[1] = insert("v/2", "a");
    changes[2] = insert("w/3", "a");
    changes[3] = insert("v/4", long_words[0]);
    changes[4] = insert("v/5", long_words[1]);
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 5, sizeof changes[0], NULL, &version, NULL, &error));
    freed = 0;
    index = computed(store, "");
    question.equal = llvs_str("[\"a\"]");
    question.want = LLVS_INDEX_KEYS | LLVS_INDEX_COUNT;
    OK(llvs_index_find(index, LLVS_NONE, &question, NULL, &page, &error));
    assert_true(page->count == 2 && page->total == 2);
    assert_string_equal((const char *)page->ids.data, "v/1");
    assert_string_equal((const char *)page->keys.data, "[\"a\",1]");
    llvs_index_page_free(page);
    /* Two keys that are equal in the part that is stored. */
    snprintf(tuple, sizeof tuple, "[\"%s\"]", long_words[1]);
    question.equal = llvs_str(tuple);
    OK(llvs_index_find(index, LLVS_NONE, &question, NULL, &page, &error));
    assert_true(page->count == 1 && page->total == 1);
    assert_string_equal((const char *)page->ids.data, "v/5");
    llvs_index_page_free(page);
    OK(llvs_index_explain(index, LLVS_NONE, llvs_str("v/2"), &json, &error));
    assert_non_null(strstr((const char *)json.data, "{\"keys\":[[\"a\",1]]"));
    llvs_buffer_dispose(&json);
    llvs_index_free(index);
    assert_int_equal(freed, 1);
    index = computed(store, "fail");
    assert_int_equal(llvs_index_find(index, LLVS_NONE, NULL, NULL, &page, &error), LLVS_ERROR_USER);
    assert_int_equal(llvs_error_user_code(error), 77);
    llvs_error_free(error);
    llvs_index_free(index);
    index = computed(store, "swallow");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "first part", llvs_index_find(index, LLVS_NONE, NULL, NULL, &page, &error));
    llvs_index_free(index);
    index = computed(store, "many");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "10001", llvs_index_find(index, LLVS_NONE, NULL, NULL, &page, &error));
    llvs_index_free(index);
    assert_int_equal(freed, 4);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_computed_index_open(store, NULL, NULL, NULL, count_freed, &index, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_computed_index_open(store, NULL, give_words, "", count_freed, NULL, &error));
    computed_options.parts = 9;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_computed_index_open(store, &computed_options, give_words, "", count_freed, &index, &error));
    computed_options.parts = 1;
    computed_options.prefix = llvs_str("\xff");
    FAILS(LLVS_ERROR_INVALID_UTF8, llvs_computed_index_open(store, &computed_options, give_words, "", count_freed, &index, &error));
    computed_options.prefix = LLVS_NONE;
    computed_options.warm = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_computed_index_open(store, &computed_options, give_words, "", count_freed, &index, &error));
    assert_int_equal(freed, 9);
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_hold), cmocka_unit_test(pages_go_on_behind_each_other),
        cmocka_unit_test(wrong_arguments_are_refused), cmocka_unit_test(a_callback_gives_the_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

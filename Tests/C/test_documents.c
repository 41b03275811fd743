/* Merging inside values. */
#include "support.h"

static llvs_merged_value *merged(const char *rules, const char *base, const char *newer, const char *older) {
    const llvs_bytes o = llvs_str(base), x = llvs_str(newer), y = llvs_str(older);
    llvs_merged_value *result;
    OK(llvs_merge_values(llvs_str(rules), base ? &o : NULL, newer ? &x : NULL, older ? &y : NULL, NULL, &result, &error));
    assert_int_equal(result->struct_size, sizeof *result);
    assert_null(result->conflicts[result->conflict_count]);
    return result;
}

static int is(llvs_bytes bytes, const char *text) {
    return text ? bytes.data && bytes.size == strlen(text) && memcmp(bytes.data, text,
        bytes.size) == 0 && bytes.data[bytes.size] == 0 : !bytes.data;
}

static void each_row(const char *rules, const char *base, const char *newer, const char *older, const char *expected,
    llvs_merged_source source) {
    llvs_merged_value *result = merged(rules, base, newer, older);
    assert_true(is(result->data, expected));
    assert_int_equal(result->source, source);
    assert_int_equal(result->conflict_count, 0);
    assert_int_equal(result->digest.size, 0);
    llvs_merged_value_free(result);
}

static void both_sides_edits_are_kept(void **state) {
    (void)state;
    each_row(NULL, "{\"a\":1}", "{\"a\":2}", "{\"a\":1,\"b\":1}", "{\"a\":2,\"b\":1}", LLVS_MERGED_COMPUTED);
    each_row("\"auto\"", "{\"a\":1}", "{ \"a\" : 2 }", "{\"a\":1}", "{ \"a\" : 2 }", LLVS_MERGED_NEWER);
    each_row("\"auto\"", "{\"a\":1}", "{\"a\":1}", NULL, NULL, LLVS_MERGED_ABSENT);
    each_row("\"auto\"", NULL, NULL, "[1]", "[1]", LLVS_MERGED_OLDER);
    each_row("{\"/n\":\"counter\"}", "{\"n\":1}", "{\"n\":2}", "{\"n\":3}", "{\"n\":4}", LLVS_MERGED_COMPUTED);
    each_row("{\"merge\":1,\"ids\":{\"\":\"text\"}}", "The cat sat.", "The cat sat down.", "A cat sat.", "A cat sat down.",
        LLVS_MERGED_COMPUTED);
    each_row("\"text\"", "", "a", "", "a", LLVS_MERGED_NEWER);
}

static void conflicts_are_told(void **state) {
    llvs_merged_value *result = merged("{\"/t\":{\"pick\":\"older\"}}", NULL, "{\"t\":\"A\"}", "{\"t\":\"B\",\"u\":1}");
    const llvs_conflict *conflict;
    (void)state;
    assert_true(is(result->data, "{\"t\":\"B\",\"u\":1}"));
    assert_int_equal(result->source, LLVS_MERGED_OLDER);
    assert_int_equal(result->conflict_count, 1);
    conflict = result->conflicts[0];
    assert_int_equal(conflict->struct_size, sizeof *conflict);
    assert_int_equal(conflict->kind, LLVS_CONFLICT_PICK);
    assert_true(is(conflict->path, "[\"t\"]"));
    assert_true(is(conflict->base, NULL));
    assert_true(is(conflict->newer, "\"A\""));
    assert_true(is(conflict->older, "\"B\""));
    assert_true(is(conflict->result, "\"B\""));
    assert_true(is(conflict->rule_prefix, ""));
    assert_true(is(conflict->rule_pattern, "/t"));
    assert_int_equal(result->digest.size, 64);
    llvs_merged_value_free(result);
    llvs_merged_value_free(NULL);
}

static void the_id_chooses_the_rules(void **state) {
    const llvs_bytes o = llvs_str("{\"n\":0}"), x = llvs_str("{\"n\":1}");
    const llvs_bytes rules = llvs_str("{\"merge\":1,\"ids\":{\"a/\":{\"/n\":\"counter\"},\"a/b/\":\"auto\"}}");
    llvs_merge_values_options options = LLVS_MERGE_VALUES_OPTIONS_INIT;
    llvs_merged_value *result;
    (void)state;
    options.id = llvs_str("a/1");
    OK(llvs_merge_values(rules, &o, &x, &x, &options, &result, &error));
    assert_true(is(result->data, "{\"n\":2}"));
    llvs_merged_value_free(result);
    options.id = llvs_str("a/b/1");
    OK(llvs_merge_values(rules, &o, &x, &x, &options, &result, &error));
    assert_true(is(result->data, "{\"n\":1}"));
    llvs_merged_value_free(result);
}

static void saving_keeps_what_the_application_does_not_know_of(void **state) {
    const llvs_bytes decoded = llvs_str("{\"a\":1,\"b\":1}"), saved = llvs_str("{\"a\":2}"),
        was = llvs_str("{\"a\":1,\"b\":1,\"new\":{\"x\":1}}");
    llvs_merge_values_options options = LLVS_MERGE_VALUES_OPTIONS_INIT;
    llvs_merged_value *result;
    (void)state;
    options.saving = 1;
    OK(llvs_merge_values(llvs_str("\"register\""), &decoded, &saved, &was, &options, &result, &error));
    assert_true(is(result->data, "{\"a\":2,\"new\":{\"x\":1}}"));
    llvs_merged_value_free(result);
}

/* Checks that a call failed with this code, at this place of the rules. */
static void refused_at(llvs_status expected, const char *place, llvs_status status, llvs_error *error) {
    assert_int_equal(status, expected);
    assert_int_equal(llvs_error_code(error), expected);
    assert_true(is(llvs_error_path(error), place));
    llvs_error_free(error);
}

static void rules_that_are_wrong_are_refused_with_their_place(void **state) {
    const llvs_bytes value = llvs_str("{}");
    llvs_merged_value *result;
    llvs_status status;
    llvs_error *error;
    (void)state;
    status = llvs_schema_check(llvs_str("{\"merge\":1,\"ids\":{\"p\":{\"/a/b\":{\"as\":\"list\",\"kex\":[]}}}}"), &error);
    refused_at(LLVS_ERROR_INVALID_ARGUMENT, "/ids/p/~1a~1b/kex", status, error);
    status = llvs_schema_check(llvs_str("{\"merge\":2}"), &error);
    refused_at(LLVS_ERROR_UNSUPPORTED, "/merge", status, error);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_schema_check(LLVS_NONE, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_schema_check(llvs_str("\"auto\""), &error));
    OK(llvs_schema_check(llvs_str("{\"merge\":1,\"ids\":{\"p\":\"auto\"},\"models\":7}"), &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_merge_values(llvs_str("\"best\""), &value, &value, &value, NULL, &result, &error));
    assert_null(result);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_merge_values(LLVS_NONE, &value, &value, &value, NULL, NULL, &error));
}

static void a_merge_can_be_cancelled(void **state) {
    const llvs_bytes o = llvs_str("[1]"), x = llvs_str("[2]"), y = llvs_str("[3]");
    llvs_merge_values_options options = LLVS_MERGE_VALUES_OPTIONS_INIT;
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_cancel_token *token;
    llvs_merged_value *result;
    (void)state;
    OK(llvs_cancel_token_create(&token, &error));
    control.token = token;
    options.control = &control;
    OK(llvs_merge_values(LLVS_NONE, &o, &x, &y, &options, &result, &error));
    llvs_merged_value_free(result);
    llvs_cancel_token_cancel(token);
    FAILS(LLVS_ERROR_CANCELLED, llvs_merge_values(LLVS_NONE, &o, &x, &y, &options, &result, &error));
    llvs_cancel_token_free(token);
}

/* Makes a store with rules and two versions that both increment a counter. The second is newer. */
static llvs_store *counted(llvs_version_id versions[2]) {
    llvs_store *store = memory_store();
    llvs_change changes[2];
    llvs_version_id base;
    int i;
    changes[0] = insert("__llvs_schema", "{\"merge\":1,\"ids\":{\"d\":{\"/n\":\"counter\"}}}");
    changes[1] = insert("d", "{\"f\":0,\"n\":1}");
    OK(llvs_store_make_version(store, LLVS_NONE, changes, 2, sizeof changes[0], NULL, &base, NULL, &error));
    for (i = 0; i < 2; i++) {
        changes[0] = update("d", i == 0 ? "{\"f\":1,\"n\":2}" : "{\"f\":2,\"n\":3}");
        OK(llvs_store_make_version(store, llvs_id(&base), changes, 1, sizeof changes[0], NULL, &versions[i], NULL, &error));
    }
    return store;
}

/* Merges the two with the arbiter, and checks the value and the metadata. */
static void merges_to(llvs_arbiter *arbiter, const char *expected, const char *mark, int has_conflicts) {
    llvs_version_id versions[2], made;
    llvs_store *store = counted(versions);
    llvs_version_list *list;
    size_t i, marks = 0, conflicts = 0;
    OK(llvs_store_merge(store, llvs_id(&versions[0]), llvs_id(&versions[1]), arbiter, NULL, &list, &error));
    for (i = 0; i < list->items[0]->metadata_count; i++) {
        const llvs_metadata_entry *entry = &list->items[0]->metadata[i];
        if (is(entry->key, "__llvs_arbiter")) { marks++; assert_true(is(entry->value, mark)); }
        if (is(entry->key, "__llvs_conflicts")) conflicts++;
    }
    assert_int_equal(marks, mark ? 1 : 0);
    assert_int_equal(conflicts, has_conflicts);
    memset(&made, 0, sizeof made);
    made.size = (uint32_t)list->items[0]->id.size;
    memcpy(made.text, list->items[0]->id.data, made.size);
    llvs_version_list_free(list);
    value_is(store, &made, "d", expected);
    llvs_store_free(store);
}

static void stores_are_merged_by_rules(void **state) {
    llvs_arbiter *arbiter;
    (void)state;
    merges_to(NULL, "{\"f\":2,\"n\":4}", "\"rules\"", 1);
    OK(llvs_arbiter_rules(LLVS_NONE, &arbiter, &error));
    merges_to(arbiter, "{\"f\":2,\"n\":4}", "\"rules\"", 1);
    llvs_arbiter_free(arbiter);
    OK(llvs_arbiter_rules(llvs_str("{\"/f\":\"counter\",\"/n\":\"counter\"}"), &arbiter, &error));
    merges_to(arbiter, "{\"f\":3,\"n\":4}", "\"rules\"", 0);
    llvs_arbiter_free(arbiter);
    OK(llvs_arbiter_builtin(LLVS_ARBITER_MOST_RECENT_CHANGE, &arbiter, &error));
    merges_to(arbiter, "{\"f\":2,\"n\":3}", NULL, 0);
    llvs_arbiter_free(arbiter);
}

static void rules_for_an_arbiter_are_checked(void **state) {
    llvs_arbiter *arbiter;
    llvs_status status;
    llvs_error *error;
    (void)state;
    status = llvs_arbiter_rules(llvs_str("{\"merge\":1,\"ids\":{\"p\":\"best\"}}"), &arbiter, &error);
    refused_at(LLVS_ERROR_INVALID_ARGUMENT, "/ids/p", status, error);
    assert_null(arbiter);
    status = llvs_arbiter_rules(llvs_str("{\"merge\":3}"), &arbiter, &error);
    refused_at(LLVS_ERROR_UNSUPPORTED, "/merge", status, error);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_arbiter_rules(LLVS_NONE, NULL, &error));
}

static void the_rules_of_a_store_are_read_and_added_to(void **state) {
    llvs_version_id versions[2];
    llvs_store *store = counted(versions);
    llvs_schema *schema;
    (void)state;
    OK(llvs_store_schema(store, llvs_id(&versions[0]), LLVS_NONE, &schema, &error));
    assert_int_equal(schema->struct_size, sizeof *schema);
    assert_true(is(schema->data, "{\"merge\":1,\"ids\":{\"d\":{\"/n\":\"counter\"}}}"));
    assert_true(schema->stored_version.size > 0 && !schema->changed && !schema->version && schema->problem.size == 0);
    llvs_schema_free(schema);
    OK(llvs_store_schema(store, llvs_id(&versions[0]), llvs_str("{\"merge\":1,\"ids\":{\"d\":{\"/n\":\"set\",\"/t\":\"set\"}}}"), &schema,
        &error));
    assert_true(is(schema->data, "{\"ids\":{\"d\":{\"/n\":\"counter\",\"/t\":\"set\"}},\"merge\":1}") && schema->changed);
    assert_int_equal(schema->contradiction_count, 1);
    assert_true(is(schema->contradictions[0]->path, "[\"ids\",\"d\",\"/n\"]") && is(schema->contradictions[0]->older, "\"set\""));
    assert_null(schema->contradictions[1]);
    llvs_schema_free(schema);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_schema(store, llvs_id(&versions[0]), llvs_str("{}"), &schema, &error));
    assert_null(schema);
    FAILS(LLVS_ERROR_UNKNOWN_VERSION, llvs_store_schema(store, llvs_str("x"), LLVS_NONE, &schema, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_schema(store, llvs_id(&versions[0]), LLVS_NONE, NULL, &error));
    llvs_schema_free(NULL);
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}

static void a_coordinator_registers_rules(void **state) {
    const llvs_bytes rules = llvs_str("{\"merge\":1,\"ids\":{\"d\":\"set\"}}");
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator_options how = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_coordinator *notes;
    llvs_change change = insert("d", "[]");
    llvs_move move = LLVS_MOVE_INIT;
    llvs_buffer data;
    llvs_schema *schema;
    (void)state;
    options.storage = LLVS_STORAGE_MEMORY;
    how.store = &options;
    OK(llvs_coordinator_open(LLVS_NONE, &how, &notes, &error));
    OK(llvs_coordinator_register_schema(notes, rules, &move, &schema, &error));
    assert_true(!move.moved && schema->changed && !schema->version);
    llvs_schema_free(schema);
    OK(llvs_coordinator_save(notes, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error));
    OK(llvs_coordinator_value(notes, llvs_str("__llvs_schema"), &data, NULL, &error));
    assert_true(data.size == rules.size);
    llvs_buffer_dispose(&data);
    OK(llvs_coordinator_register_schema(notes, llvs_str("{\"merge\":1,\"ids\":{\"e\":\"set\"}}"), &move, &schema, &error));
    assert_true(move.moved && schema->version && schema->version->id.size == move.to.size);
    llvs_schema_free(schema);
    OK(llvs_coordinator_register_schema(notes, rules, NULL, NULL, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_register_schema(notes, LLVS_NONE, NULL, NULL, &error));
    OK(llvs_coordinator_close(notes, &error));
    llvs_coordinator_free(notes);
}

static void conflicts_are_listed_explained_and_decided(void **state) {
    llvs_version_id versions[2], merge, chosen;
    llvs_store *store = counted(versions);
    llvs_conflict_options options = LLVS_CONFLICT_OPTIONS_INIT;
    llvs_conflict_list *conflicts, *explained, *open;
    llvs_version_list *merged;
    llvs_change_list *changes;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_arbiter *arbiter;
    llvs_buffer data;
    (void)state;
    OK(llvs_store_conflicts(store, llvs_id(&versions[0]), llvs_id(&versions[1]), NULL, &conflicts, &error));
    assert_int_equal(conflicts->struct_size, sizeof *conflicts);
    assert_int_equal(conflicts->count, 1);
    assert_null(conflicts->items[1]);
    assert_true(is(conflicts->items[0]->id, "d") && is(conflicts->items[0]->path, "[\"f\"]") && conflicts->items[0]->version.size == 0);
    assert_true(is(conflicts->items[0]->result, "2") && conflicts->digest.size == 64);
    OK(llvs_store_merge(store, llvs_id(&versions[0]), llvs_id(&versions[1]), NULL, NULL, &merged, &error));
    memset(&merge, 0, sizeof merge);
    merge.size = (uint32_t)merged->items[0]->id.size;
    memcpy(merge.text, merged->items[0]->id.data, merge.size);
    llvs_version_list_free(merged);
    OK(llvs_store_explain(store, llvs_id(&merge), NULL, &explained, &error));
    assert_true(explained->recorded && explained->count == 1 && explained->items[0]->version.size == merge.size);
    assert_memory_equal(explained->digest.data, conflicts->digest.data, 64);
    OK(llvs_store_open_conflicts(store, llvs_id(&merge), &options, &open, &error));
    assert_int_equal(open->count, 1);
    OK(llvs_store_choose(store, llvs_id(&merge), open->items[0], LLVS_CHOICE_OLDER, &changes, &error));
    assert_int_equal(changes->count, 1);
    change.kind = changes->items[0]->kind;
    change.id = changes->items[0]->id;
    change.data = changes->items[0]->data;
    OK(llvs_store_make_version(store, llvs_id(&merge), &change, 1, sizeof change, NULL, &chosen, NULL, &error));
    llvs_change_list_free(changes);
    OK(llvs_store_value(store, llvs_str("d"), llvs_id(&chosen), &data, NULL, &error));
    assert_string_equal((const char *)data.data, "{\"f\":1,\"n\":4}");
    llvs_buffer_dispose(&data);
    FAILS(LLVS_ERROR_MOVED, llvs_store_choose(store, llvs_id(&chosen), open->items[0], LLVS_CHOICE_OLDER, &changes, &error));
    assert_null(changes);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_choose(store, llvs_id(&merge), open->items[0], 4, &changes, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_choose(store, llvs_id(&merge), conflicts->items[0], LLVS_CHOICE_OLDER, &changes, &error));
    llvs_conflict_list_free(conflicts);
    llvs_conflict_list_free(explained);
    llvs_conflict_list_free(open);
    OK(llvs_store_open_conflicts(store, llvs_id(&chosen), NULL, &open, &error));
    assert_int_equal(open->count, 0);
    llvs_conflict_list_free(open);
    OK(llvs_arbiter_builtin(LLVS_ARBITER_OURS, &arbiter, &error));
    options.arbiter = arbiter;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_explain(store, llvs_id(&merge), &options, &open, &error));
    llvs_arbiter_free(arbiter);
    llvs_conflict_list_free(NULL);
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}

/* Joins the two sides of a whole value, and leaves parts alone. The payload can request something else. */
static llvs_status join_sides(void *payload, const llvs_value_question *question, llvs_resolution *resolution, llvs_error **error) {
    const char *how = payload;
    llvs_change change = LLVS_CHANGE_INIT;
    char text[64];
    if (strcmp(how, "pass") == 0) return LLVS_PASS;
    if (strcmp(how, "fail") == 0) { *error = llvs_error_create(7, llvs_str("no")); return LLVS_ERROR_USER; }
    if (strcmp(how, "nothing") == 0) return LLVS_OK;
    assert_int_equal(question->struct_size, sizeof *question);
    assert_true(is(question->path, "[]") && question->base.data && question->newer.data);
    snprintf(text, sizeof text, "%s+%s", (const char *)question->newer.data,
        question->older.data ? (const char *)question->older.data : "-");
    change.kind = strcmp(how, "remove") == 0 ? LLVS_CHANGE_REMOVE : LLVS_CHANGE_UPDATE;
    change.id = strcmp(how, "other") == 0 ? llvs_str("other") : question->id;
    if (change.kind == LLVS_CHANGE_UPDATE) change.data = llvs_str(text);
    return llvs_resolution_add(resolution, &change, 1, sizeof change, error);
}

static int freed;
static void count_freed(void *payload) { (void)payload; freed++; }

static void a_value_merger_is_asked(void **state) {
    const struct { const char *how, *expected; } rows[] = { { "join", "2+1" }, { "pass", "2" }, { "remove", NULL } };
    llvs_store *store = memory_store();
    llvs_change change = insert("x", "0");
    llvs_version_id base, versions[2];
    llvs_version_list *merged;
    llvs_arbiter *arbiter;
    llvs_buffer data;
    size_t i;
    (void)state;
    OK(llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, &base, NULL, &error));
    for (i = 0; i < 2; i++) {
        change = update("x", i == 0 ? "1" : "2");
        OK(llvs_store_make_version(store, llvs_id(&base), &change, 1, sizeof change, NULL, &versions[i], NULL, &error));
    }
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        OK(llvs_value_merger_create(join_sides, (void *)rows[i].how, count_freed, LLVS_NONE, &arbiter, &error));
        OK(llvs_store_merge(store, llvs_id(&versions[0]), llvs_id(&versions[1]), arbiter, NULL, &merged, &error));
        llvs_arbiter_free(arbiter);
        OK(llvs_store_value(store, llvs_str("x"), merged->items[0]->id, &data, NULL, &error));
        if (rows[i].expected) assert_string_equal((const char *)data.data, rows[i].expected);
        else assert_null(data.data);
        llvs_buffer_dispose(&data);
        llvs_version_list_free(merged);
    }
    assert_int_equal(freed, 3);
    for (i = 0; i < 3; i++) {
        static const char *const hows[] = { "fail", "nothing", "other" };
        OK(llvs_value_merger_create(join_sides, (void *)hows[i], count_freed, LLVS_NONE, &arbiter, &error));
        FAILS(i == 0 ? LLVS_ERROR_USER : LLVS_ERROR_UNRESOLVED_CONFLICT,
            llvs_store_merge(store, llvs_id(&versions[0]), llvs_id(&versions[1]), arbiter, NULL, &merged, &error));
        llvs_arbiter_free(arbiter);
    }
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_value_merger_create(NULL, NULL, count_freed, LLVS_NONE, &arbiter, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_value_merger_create(join_sides, NULL, count_freed, llvs_str("7"), &arbiter, &error));
    assert_int_equal(freed, 8);
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}

static void undoing_keeps_the_members_that_came_since(void **state) {
    llvs_version_id versions[2], later;
    llvs_store *store = counted(versions);
    llvs_merge_options options = LLVS_MERGE_OPTIONS_INIT;
    llvs_revert_result *done;
    llvs_change change;
    llvs_buffer data;
    (void)state;
    /* The undone version changed {"f":0,"n":1} to {"f":1,"n":2}; this one follows. */
    change = update("d", "{\"f\":1,\"g\":1,\"n\":5}");
    OK(llvs_store_make_version(store, llvs_id(&versions[0]), &change, 1, sizeof change, NULL, &later, NULL, &error));
    OK(llvs_store_revert(store, llvs_id(&versions[0]), llvs_id(&later), &options, &done, &error));
    assert_true(done->version && done->undone_count == 1 && done->superseded_count == 0 && done->conflict_count == 0 && !done->counts);
    assert_true(done->version_count == 1 && done->description.size == 0);
    assert_null(done->conflicts[0]);
    OK(llvs_store_value(store, llvs_str("d"), done->version->id, &data, NULL, &error));
    assert_string_equal((const char *)data.data, "{\"f\":0,\"g\":1,\"n\":4}");
    llvs_buffer_dispose(&data);
    llvs_revert_result_free(done);
    OK(llvs_store_cherry_pick(store, llvs_id(&versions[1]), llvs_id(&later), NULL, &done, &error));
    assert_true(done->version && done->counts && done->conflict_count == 1 && is(done->conflicts[0]->path, "[\"f\"]"));
    OK(llvs_store_value(store, llvs_str("d"), done->version->id, &data, NULL, &error));
    assert_string_equal((const char *)data.data, "{\"f\":2,\"g\":1,\"n\":7}");
    llvs_buffer_dispose(&data);
    llvs_revert_result_free(done);
    options.parent = LLVS_SIDE_SECOND;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_revert(store, llvs_id(&versions[0]), llvs_id(&later), &options, &done, &error));
    options.parent = 3;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_cherry_pick(store, llvs_id(&versions[0]), llvs_id(&later), &options, &done, &error));
    assert_null(done);
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
}

static void a_coordinator_undoes_its_own_saves(void **state) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator_options how = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_version_options more = LLVS_VERSION_OPTIONS_INIT;
    llvs_metadata_entry description;
    llvs_coordinator *notes;
    llvs_change change = insert("x", "1");
    llvs_move move = LLVS_MOVE_INIT;
    llvs_revert_result *done;
    llvs_buffer data;
    (void)state;
    options.storage = LLVS_STORAGE_MEMORY;
    how.store = &options;
    how.device = llvs_str("phone");
    OK(llvs_coordinator_open(LLVS_NONE, &how, &notes, &error));
    OK(llvs_coordinator_undo(notes, 0, NULL, &move, &done, &error));
    assert_true(!done && !move.moved);
    description.key = llvs_str("__llvs_description");
    description.value = llvs_str("\"Typing\"");
    more.metadata = &description;
    more.metadata_count = 1;
    OK(llvs_coordinator_save(notes, &change, 1, sizeof change, &more, NULL, NULL, NULL, &error));
    OK(llvs_coordinator_undo(notes, 1, NULL, &move, &done, &error));
    assert_true(done && !done->version && !move.moved && done->version_count == 1 && is(done->description, "Typing"));
    llvs_revert_result_free(done);
    OK(llvs_coordinator_undo(notes, 0, NULL, &move, &done, &error));
    assert_true(done->version && move.moved && done->undone_count == 1);
    llvs_revert_result_free(done);
    OK(llvs_coordinator_value(notes, llvs_str("x"), &data, NULL, &error));
    assert_null(data.data);
    OK(llvs_coordinator_redo(notes, 0, NULL, NULL, NULL, &error));
    OK(llvs_coordinator_value(notes, llvs_str("x"), &data, NULL, &error));
    assert_int_equal(data.size, 1);
    llvs_buffer_dispose(&data);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_undo(notes, 2, NULL, NULL, NULL, &error));
    OK(llvs_coordinator_close(notes, &error));
    llvs_coordinator_free(notes);
    how.device = LLVS_NONE;
    OK(llvs_coordinator_open(LLVS_NONE, &how, &notes, &error));
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_coordinator_undo(notes, 0, NULL, NULL, NULL, &error));
    OK(llvs_coordinator_close(notes, &error));
    llvs_coordinator_free(notes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_edits_are_kept),
        cmocka_unit_test(conflicts_are_told),
        cmocka_unit_test(the_id_chooses_the_rules),
        cmocka_unit_test(saving_keeps_what_the_application_does_not_know_of),
        cmocka_unit_test(rules_that_are_wrong_are_refused_with_their_place),
        cmocka_unit_test(a_merge_can_be_cancelled),
        cmocka_unit_test(the_rules_of_a_store_are_read_and_added_to),
        cmocka_unit_test(a_coordinator_registers_rules),
        cmocka_unit_test(conflicts_are_listed_explained_and_decided),
        cmocka_unit_test(a_value_merger_is_asked),
        cmocka_unit_test(undoing_keeps_the_members_that_came_since),
        cmocka_unit_test(a_coordinator_undoes_its_own_saves),
        cmocka_unit_test(stores_are_merged_by_rules),
        cmocka_unit_test(rules_for_an_arbiter_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

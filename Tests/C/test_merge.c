/* Merging with the built-in arbiters and with ones in C. */
#include "support.h"

typedef struct fixture {
    llvs_store *store;
    llvs_version_id base, left, right; /* right is the newer */
} fixture;

/* Both sides change "both", each changes a value of its own, and one removes a value that the other updates. */
static fixture diverged(void) {
    fixture f;
    llvs_change changes[5];
    f.store = memory_store();
    changes[0] = insert("both", "0"); changes[1] = insert("left", "0"); changes[2] = insert("right", "0");
    changes[3] = insert("gone", "0"); changes[4] = insert("kept", "0");
    OK(llvs_store_make_version(f.store, LLVS_NONE, changes, 5, sizeof changes[0], NULL, &f.base, NULL, &error));
    changes[0] = update("both", "L"); changes[1] = update("left", "L"); changes[2] = removal("gone"); changes[3] = insert("new", "L");
    OK(llvs_store_make_version(f.store, llvs_id(&f.base), changes, 4, sizeof changes[0], NULL, &f.left, NULL, &error));
    changes[0] = update("both", "R"); changes[1] = update("right", "R"); changes[2] = update("gone", "R"); changes[3] = insert("new", "R");
    OK(llvs_store_make_version(f.store, llvs_id(&f.base), changes, 4, sizeof changes[0], NULL, &f.right, NULL, &error));
    return f;
}

static llvs_version_id merged(fixture *f, llvs_arbiter *arbiter) {
    llvs_version_list *list;
    llvs_version_id id;
    const llvs_version_info *version;
    OK(llvs_store_merge(f->store, llvs_id(&f->left), llvs_id(&f->right), arbiter, NULL, &list, &error));
    version = list->items[0];
    assert_int_equal(version->predecessor_count, 2);
    assert_true(same_id(version->predecessors[0], &f->right));
    assert_true(same_id(version->predecessors[1], &f->left));
    memset(&id, 0, sizeof id);
    id.size = (uint32_t)version->id.size;
    memcpy(id.text, version->id.data, version->id.size);
    llvs_version_list_free(list);
    value_is(f->store, &id, "left", "L");
    value_is(f->store, &id, "right", "R");
    value_is(f->store, &id, "kept", "0");
    return id;
}

static void built_in_arbiters(void **state) {
    static const struct { llvs_arbiter_kind kind; const char *both, *gone; } cases[] = {
        { LLVS_ARBITER_MOST_RECENT_CHANGE, "R", "R" },
        { LLVS_ARBITER_MOST_RECENT_BRANCH, "R", "R" },
        { LLVS_ARBITER_OURS, "L", NULL },
        { LLVS_ARBITER_THEIRS, "R", "R" },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = diverged();
        llvs_arbiter *arbiter;
        llvs_version_id id;
        OK(llvs_arbiter_builtin(cases[i].kind, &arbiter, &error));
        id = merged(&f, arbiter);
        value_is(f.store, &id, "both", cases[i].both);
        value_is(f.store, &id, "gone", cases[i].gone);
        llvs_arbiter_free(arbiter);
        llvs_store_free(f.store);
    }
}

/* Joins the two sides' bytes, and checks on the way what the header promises. */
static llvs_status join_values(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    fixture *f = payload;
    size_t i, conflicts = 0;
    assert_true(same_id(merge->first->id, &f->right));
    assert_true(same_id(merge->second->id, &f->left));
    assert_true(same_id(merge->ours->id, &f->left));
    assert_true(same_id(merge->theirs->id, &f->right));
    assert_int_equal((merge->bases)->count, 1);
    assert_true(same_id((merge->bases)->items[0]->id, &f->base));
    assert_int_equal(merge->fork_count, 5);
    assert_null(merge->forks[5]);
    assert_null(llvs_merge_fork(merge, llvs_str("kept")));
    assert_int_equal(llvs_merge_fork(merge, llvs_str("both"))->kind, LLVS_FORK_TWICE_UPDATED);
    assert_int_equal(llvs_merge_fork(merge, llvs_str("new"))->kind, LLVS_FORK_TWICE_INSERTED);
    assert_int_equal(llvs_merge_fork(merge, llvs_str("left"))->kind, LLVS_FORK_UPDATED);
    assert_int_equal(llvs_merge_fork(merge, llvs_str("left"))->side, LLVS_SIDE_SECOND);
    assert_int_equal(llvs_merge_fork(merge, llvs_str("gone"))->kind, LLVS_FORK_REMOVED_AND_UPDATED);
    assert_int_equal(llvs_merge_fork(merge, llvs_str("gone"))->side, LLVS_SIDE_SECOND);
    for (i = 0; i < merge->fork_count; i++) {
        const llvs_fork *fork = merge->forks[i];
        llvs_change change = LLVS_CHANGE_INIT;
        char text[64] = "";
        int side;
        llvs_status status;
        assert_int_equal(fork->struct_size, sizeof *fork);
        if (!fork->conflicting) continue;
        conflicts++;
        for (side = 0; side < 2; side++) {
            llvs_bytes stored = side ? fork->second : fork->first;
            llvs_buffer data;
            if (!stored.size) continue;
            status = llvs_store_value(merge->store, fork->id, stored, &data, NULL, error);
            if (status != LLVS_OK) return status;
            strcat(text, (char *)data.data);
            llvs_buffer_dispose(&data);
        }
        change.kind = LLVS_CHANGE_UPDATE;
        change.id = fork->id;
        change.data = llvs_str(text);
        status = llvs_resolution_add(resolution, &change, 1, sizeof change, error);
        if (status != LLVS_OK) return status;
    }
    assert_int_equal(conflicts, 3);
    return LLVS_OK;
}

static void an_arbiter_in_c(void **state) {
    fixture f = diverged();
    llvs_arbiter *arbiter;
    llvs_version_id id;
    int freed = 0;
    (void)state;
    OK(llvs_arbiter_create(join_values, &f, NULL, NULL, &arbiter, &error));
    id = merged(&f, arbiter);
    value_is(f.store, &id, "both", "RL");
    value_is(f.store, &id, "gone", "R");
    value_is(f.store, &id, "new", "RL");
    llvs_arbiter_free(arbiter);
    llvs_store_free(f.store);
    OK(llvs_arbiter_create(join_values, &freed, count_free, NULL, &arbiter, &error));
    llvs_arbiter_free(arbiter);
    assert_int_equal(freed, 1);
    /* Also if registering fails. */
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_arbiter_create(NULL, &freed, count_free, NULL, &arbiter, &error));
    assert_int_equal(freed, 2);
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_arbiter_create(join_values, &freed, count_free, NULL, NULL, &error));
    assert_int_equal(freed, 3);
}

static llvs_status decide_one_and_pass(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_change change = update("both", "C");
    (void)payload; (void)merge;
    return llvs_resolution_add(resolution, &change, 1, sizeof change, error) == LLVS_OK ? LLVS_PASS : LLVS_ERROR_USER;
}

static void the_fallback_decides_the_rest(void **state) {
    fixture f = diverged();
    llvs_arbiter *ours, *arbiter;
    llvs_version_id id;
    (void)state;
    OK(llvs_arbiter_builtin(LLVS_ARBITER_OURS, &ours, &error));
    OK(llvs_arbiter_create(decide_one_and_pass, NULL, NULL, ours, &arbiter, &error));
    llvs_arbiter_free(ours); /* kept by the other */
    id = merged(&f, arbiter);
    value_is(f.store, &id, "both", "C");
    value_is(f.store, &id, "gone", NULL);
    value_is(f.store, &id, "new", "L");
    llvs_arbiter_free(arbiter);
    llvs_store_free(f.store);
}

static llvs_status leave_conflicts(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    (void)payload; (void)merge; (void)resolution; (void)error;
    return LLVS_OK;
}
static llvs_status fail_with_code(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    (void)payload; (void)merge; (void)resolution;
    *error = llvs_error_create(INT64_C(-4711471147114711), llvs_str("out of ideas"));
    return LLVS_ERROR_USER;
}
static llvs_status fail_silently(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    (void)payload; (void)merge; (void)resolution; (void)error;
    return -9999;
}
static llvs_status name_a_bad_id(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_change change = insert("\xFF", "1");
    (void)payload; (void)merge;
    return llvs_resolution_add(resolution, &change, 1, sizeof change, error);
}
static llvs_status preserve_something_foreign(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_change change = removal("both");
    (void)payload; (void)merge;
    change.kind = LLVS_CHANGE_PRESERVE;
    change.stored_version = llvs_str("NO-SUCH-VERSION");
    return llvs_resolution_add(resolution, &change, 1, sizeof change, error) == LLVS_OK ? LLVS_PASS : LLVS_ERROR_USER;
}

static void failing_arbiters_store_nothing(void **state) {
    static const struct { llvs_resolve_fn resolve; llvs_status code; const char *names; } cases[] = {
        { leave_conflicts, LLVS_ERROR_UNRESOLVED_CONFLICT, "both" },
        { decide_one_and_pass, LLVS_ERROR_UNRESOLVED_CONFLICT, "gone" }, /* no fallback */
        { fail_with_code, LLVS_ERROR_USER, "out of ideas" },
        { fail_silently, LLVS_ERROR_USER, "-9999" },
        { name_a_bad_id, LLVS_ERROR_INVALID_UTF8, "" },
    };
    fixture f = diverged();
    llvs_arbiter *arbiter, *theirs;
    llvs_version_list *list;
    llvs_error *failure;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        OK(llvs_arbiter_create(cases[i].resolve, NULL, NULL, NULL, &arbiter, &error));
        FAILS_NAMING(cases[i].code, cases[i].names,
                     llvs_store_merge(f.store, llvs_id(&f.left), llvs_id(&f.right), arbiter, NULL, &list, &error));
        assert_null(list);
        assert_int_equal(version_count(f.store), 3);
        llvs_arbiter_free(arbiter);
    }
    OK(llvs_arbiter_builtin(LLVS_ARBITER_THEIRS, &theirs, &error));
    OK(llvs_arbiter_create(preserve_something_foreign, NULL, NULL, theirs, &arbiter, &error));
    FAILS(LLVS_ERROR_INVALID_REFERENCE, llvs_store_merge(f.store, llvs_id(&f.left), llvs_id(&f.right), arbiter, NULL, NULL, &error));
    llvs_arbiter_free(arbiter);
    llvs_arbiter_free(theirs);
    OK(llvs_arbiter_create(fail_with_code, NULL, NULL, NULL, &arbiter, &error));
    assert_int_equal(llvs_store_merge(f.store, llvs_id(&f.left), llvs_id(&f.right), arbiter, NULL, &list, &failure), LLVS_ERROR_USER);
    assert_true(llvs_error_user_code(failure) == INT64_C(-4711471147114711));
    assert_string_equal(llvs_error_message(failure), "out of ideas");
    llvs_error_free(failure);
    llvs_arbiter_free(arbiter);
    assert_int_equal(version_count(f.store), 3);
    merged(&f, NULL);
    llvs_store_free(f.store);
}

static llvs_status read_and_write_the_store(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_store *store = payload;
    llvs_version_id made = save(store, NULL, insert("from the arbiter", "1"));
    (void)merge; (void)resolution; (void)error;
    value_is(store, &made, "from the arbiter", "1");
    return LLVS_PASS;
}

static void an_arbiter_may_use_the_store(void **state) {
    fixture f = diverged();
    llvs_arbiter *theirs, *arbiter;
    (void)state;
    OK(llvs_arbiter_builtin(LLVS_ARBITER_THEIRS, &theirs, &error));
    OK(llvs_arbiter_create(read_and_write_the_store, f.store, NULL, theirs, &arbiter, &error));
    merged(&f, arbiter);
    llvs_arbiter_free(arbiter);
    llvs_arbiter_free(theirs);
    llvs_store_free(f.store);
}

static void fast_forward_stores_nothing(void **state) {
    fixture f = diverged();
    llvs_version_list *list;
    (void)state;
    OK(llvs_store_merge(f.store, llvs_id(&f.base), llvs_id(&f.right), NULL, NULL, &list, &error));
    assert_true(same_id(list->items[0]->id, &f.right));
    llvs_version_list_free(list);
    assert_int_equal(version_count(f.store), 3);
    llvs_store_free(f.store);
}

static void unrelated_versions(void **state) {
    llvs_store *store = memory_store();
    llvs_version_id a = save(store, NULL, insert("a", "1")), b = save(store, NULL, insert("b", "2"));
    llvs_merge_options options = LLVS_MERGE_OPTIONS_INIT;
    llvs_version_list *list;
    (void)state;
    options.relation = LLVS_RELATION_RELATED;
    FAILS(LLVS_ERROR_NO_COMMON_ANCESTOR, llvs_store_merge(store, llvs_id(&a), llvs_id(&b), NULL, &options, &list, &error));
    OK(llvs_store_merge_bases(store, llvs_id(&a), llvs_id(&b), NULL, &list, &error));
    assert_int_equal(list->count, 0);
    llvs_version_list_free(list);
    options.relation = LLVS_RELATION_UNRELATED;
    OK(llvs_store_merge(store, llvs_id(&a), llvs_id(&b), NULL, &options, &list, &error));
    llvs_version_list_free(list);
    llvs_store_free(store);
}

static void heads_by_branch(void **state) {
    llvs_store *store = memory_store();
    llvs_version_id root = save(store, NULL, insert("x", "0"));
    llvs_version_options draft = LLVS_VERSION_OPTIONS_INIT;
    llvs_merge_options options = LLVS_MERGE_OPTIONS_INIT;
    llvs_heads_options newest = LLVS_HEADS_OPTIONS_INIT;
    llvs_version_id main_head = save(store, &root, insert("main", "1")), other = save(store, &root, insert("other", "1")), draft_head,
                    merged_id;
    llvs_change change = insert("draft", "1");
    llvs_version_list *list;
    llvs_bytes name = llvs_str("draft");
    (void)state;
    draft.branch = name;
    OK(llvs_store_make_version(store, llvs_id(&root), &change, 1, sizeof change, &draft, &draft_head, NULL, &error));
    OK(llvs_store_heads(store, NULL, &list, &error));
    assert_int_equal(list->count, 3);
    llvs_version_list_free(list);
    newest.branch = name;
    OK(llvs_store_heads(store, &newest, &list, &error));
    assert_int_equal(list->count, 1);
    assert_true(same_id(list->items[0]->id, &draft_head));
    llvs_version_list_free(list);
    OK(llvs_store_merge_heads(store, llvs_id(&main_head), NULL, NULL, &list, &error)); /* unbranched only */
    assert_int_equal(list->count, 1);
    memset(&merged_id, 0, sizeof merged_id);
    merged_id.size = (uint32_t)list->items[0]->id.size;
    memcpy(merged_id.text, list->items[0]->id.data, merged_id.size);
    llvs_version_list_free(list);
    value_is(store, &merged_id, "other", "1");
    value_is(store, &merged_id, "draft", NULL);
    OK(llvs_store_merge_heads(store, llvs_id(&merged_id), NULL, NULL, &list, &error));
    assert_null(list); /* nothing more */
    options.selection = LLVS_HEADS_BRANCHES;
    options.branches = &name;
    options.branch_count = 1;
    {
        llvs_control control = LLVS_CONTROL_INIT;
        OK(llvs_cancel_token_create(&control.token, &error));
        llvs_cancel_token_cancel(control.token);
        options.control = &control;
        FAILS(LLVS_ERROR_CANCELLED, llvs_store_merge_heads(store, llvs_id(&merged_id), NULL, &options, &list, &error));
        llvs_cancel_token_free(control.token);
        options.control = NULL;
    }
    OK(llvs_store_merge_heads(store, llvs_id(&merged_id), NULL, &options, &list, &error));
    assert_int_equal(list->count, 1);
    llvs_version_list_free(list);
    (void)other;
    llvs_store_free(store);
}

typedef struct folding {
    llvs_store *other, *self;
    llvs_arbiter *others;
    const char *name;
    int steps;
    llvs_version_id head;
} folding;

/* Sets every conflicting value to the number of the step, and from the second step on also to the name of the folding side. At the
   fourth step another handle folds the same heads, and its versions are found. */
static llvs_status decide_by_step(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    folding *f = payload;
    char text[32];
    size_t i;
    f->steps++;
    if (f->other && f->steps == 4) {
        llvs_merge_options options = LLVS_MERGE_OPTIONS_INIT;
        llvs_version_list *list;
        uint64_t added;
        options.selection = LLVS_HEADS_ALL;
        OK(llvs_store_merge_heads(f->other, llvs_id(&f->head), f->others, &options, &list, &error));
        llvs_version_list_free(list);
        OK(llvs_store_reload(f->self, NULL, &added, &error));
        assert_int_equal(added, 4);
    }
    snprintf(text, sizeof text, "%d%s", f->steps, f->steps > 1 ? f->name : "");
    for (i = 0; i < merge->fork_count; i++) {
        const llvs_fork *fork = merge->forks[i];
        llvs_change change = update("", text);
        llvs_status status;
        if (!fork->conflicting) continue;
        change.id = fork->id;
        status = llvs_resolution_add(resolution, &change, 1, sizeof change, error);
        if (status != LLVS_OK) return status;
    }
    return LLVS_OK;
}

/* After the first step, each version is built on a version of the other handle, which this handle learned later than its own. Then older
 * versions are read. */
static void folding_the_same_heads_at_once(void **state) {
    char *directory = new_directory(), *path = join(directory, "store");
    folding mine = { NULL, NULL, NULL, "mine", 0, { 0, { 0 } } }, theirs = { NULL, NULL, NULL, "theirs", 0, { 0, { 0 } } };
    llvs_merge_options options = LLVS_MERGE_OPTIONS_INIT;
    llvs_store *a, *b;
    llvs_version_id root, tip, made;
    llvs_version_list *list;
    llvs_arbiter *arbiter;
    char text[8];
    int i;
    (void)state;
    OK(llvs_store_open(llvs_str(path), NULL, &a, &error));
    root = tip = save(a, NULL, insert("x", "first"));
    for (i = 0; i < 100; i++) tip = save(a, &tip, update("y", "1"));
    for (i = 0; i < 5; i++) {
        snprintf(text, sizeof text, "h%d", i);
        mine.head = theirs.head = save(a, &tip, update("x", text));
    }
    OK(llvs_store_open(llvs_str(path), NULL, &b, &error));
    OK(llvs_arbiter_create(decide_by_step, &theirs, NULL, NULL, &mine.others, &error));
    mine.other = b;
    mine.self = a;
    OK(llvs_arbiter_create(decide_by_step, &mine, NULL, NULL, &arbiter, &error));
    options.selection = LLVS_HEADS_ALL;
    OK(llvs_store_merge_heads(a, llvs_id(&mine.head), arbiter, &options, &list, &error));
    memset(&made, 0, sizeof made);
    made.size = (uint32_t)list->items[0]->id.size;
    memcpy(made.text, list->items[0]->id.data, made.size);
    llvs_version_list_free(list);
    assert_int_equal(version_count(a), 106 + 4 + 3);
    value_is(a, &made, "x", "4mine");
    value_is(a, &root, "x", "first");
    value_is(a, &tip, "x", "first");
    OK(llvs_store_versions_of(a, llvs_str("x"), NULL, &list, &error));
    assert_int_equal(list->count, 6 + 4 + 3);
    llvs_version_list_free(list);
    llvs_arbiter_free(arbiter);
    llvs_arbiter_free(mine.others);
    llvs_store_free(b);
    llvs_store_free(a);
    free(path);
    remove_directory(directory);
}

static void reverting_keeps_what_came_since(void **state) {
    llvs_store *store = memory_store();
    llvs_version_id a = save(store, NULL, insert("x", "1")), b = save(store, &a, update("x", "2")), c = save(store, &b, insert("y", "3")),
                    d;
    llvs_revert_result *result;
    llvs_change both[2];
    (void)state;
    OK(llvs_store_revert(store, llvs_id(&b), llvs_id(&c), NULL, &result, &error));
    memset(&d, 0, sizeof d);
    d.size = (uint32_t)result->version->id.size;
    memcpy(d.text, result->version->id.data, d.size);
    assert_true(result->undone_count == 1 && bytes_are(result->undone[0], "x") && result->superseded_count == 0);
    llvs_revert_result_free(result);
    value_is(store, &d, "x", "1");
    value_is(store, &d, "y", "3");
    /* A revert in part, and one of nothing. */
    both[0] = update("x", "4");
    both[1] = update("y", "4");
    OK(llvs_store_make_version(store, llvs_id(&d), both, 2, sizeof *both, NULL, &a, NULL, &error));
    b = save(store, &a, update("x", "5"));
    OK(llvs_store_revert(store, llvs_id(&a), llvs_id(&b), NULL, &result, &error));
    assert_true(result->version->predecessor_count == 1 && result->undone_count == 1 && bytes_are(result->undone[0], "y"));
    assert_true(result->superseded_count == 1 && bytes_are(result->superseded[0], "x"));
    llvs_revert_result_free(result);
    c = save(store, &b, update("y", "5"));
    OK(llvs_store_revert(store, llvs_id(&a), llvs_id(&c), NULL, &result, &error));
    assert_true(result->version == NULL && result->undone_count == 0 && result->superseded_count == 2 &&
                bytes_are(result->superseded[1], "y"));
    llvs_revert_result_free(result);
    OK(llvs_store_revert(store, llvs_id(&a), llvs_id(&c), NULL, NULL, &error));
    llvs_revert_result_free(NULL);
    llvs_store_free(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_arbiters),
        cmocka_unit_test(an_arbiter_in_c),
        cmocka_unit_test(the_fallback_decides_the_rest),
        cmocka_unit_test(failing_arbiters_store_nothing),
        cmocka_unit_test(an_arbiter_may_use_the_store),
        cmocka_unit_test(fast_forward_stores_nothing),
        cmocka_unit_test(unrelated_versions),
        cmocka_unit_test(heads_by_branch),
        cmocka_unit_test(folding_the_same_heads_at_once),
        cmocka_unit_test(reverting_keeps_what_came_since),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Two lines of work on one note, merged by an arbiter in C that keeps both texts.
 *
 *     branch_and_merge [directory]      (nothing is written: the store lives in memory)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvs.h"

static void check(llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return;
    fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(error));
    llvs_error_free(error);
    exit(1);
}

static llvs_version_id save(llvs_store *store, llvs_bytes predecessor, const char *branch, const char *id, const char *text) {
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_version_id version;
    llvs_error *error;
    llvs_status status;
    change.kind = LLVS_CHANGE_UPDATE; /* sets the value, there or not */
    change.id = llvs_str(id);
    change.data = llvs_str(text);
    options.branch = llvs_str(branch);
    status = llvs_store_make_version(store, predecessor, &change, 1, sizeof change, &options, &version, NULL, &error);
    check(status, error);
    return version;
}

/* The bytes of one side of a fork; an empty buffer when the value is absent there. */
static llvs_status side(const llvs_merge *merge, const llvs_fork *fork, llvs_bytes stored_version, llvs_buffer *data, llvs_error **error) {
    data->data = NULL;
    data->size = 0;
    if (stored_version.size == 0) return LLVS_OK;
    return llvs_store_value(merge->store, fork->id, stored_version, data, NULL, error);
}

/* Keeps both texts, the older one first. `payload` counts the conflicts. */
static llvs_status keep_both(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    size_t i;
    for (i = 0; i < merge->fork_count; i++) {
        const llvs_fork *fork = merge->forks[i];
        llvs_change change = LLVS_CHANGE_INIT;
        llvs_buffer newer = { 0, 0 }, older = { 0, 0 };
        llvs_status status;
        char *both = NULL;
        if (!fork->conflicting) continue; /* the store brings these over by itself */
        ++*(int *)payload;
        status = side(merge, fork, fork->first, &newer, error);
        if (status == LLVS_OK) status = side(merge, fork, fork->second, &older, error);
        if (status == LLVS_OK && !(both = malloc(newer.size + older.size + 2))) {
            *error = llvs_error_make(0, llvs_str("no memory to join two notes"));
            status = LLVS_ERROR_USER;
        }
        if (status == LLVS_OK) {
            sprintf(both, "%s\n%s", older.data ? (char *)older.data : "", newer.data ? (char *)newer.data : "");
            change.kind = LLVS_CHANGE_UPDATE;
            change.id = fork->id;
            change.data = llvs_str(both);
            status = llvs_resolution_add(resolution, &change, 1, sizeof change, error);
        }
        free(both);
        llvs_buffer_dispose(&newer);
        llvs_buffer_dispose(&older);
        if (status != LLVS_OK) return status; /* nothing is stored; the error comes out of the merge */
    }
    return LLVS_OK;
}

int main(void) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_version_id base, main_line, draft;
    llvs_arbiter *arbiter;
    llvs_version_list *merged;
    llvs_buffer text;
    llvs_error *error;
    llvs_status status;
    int conflicts = 0;

    options.storage = LLVS_STORAGE_MEMORY;
    status = llvs_store_open(LLVS_NONE, &options, &store, &error);
    check(status, error);

    base = save(store, LLVS_NONE, NULL, "note", "Dear Ann,");
    main_line = save(store, llvs_id(&base), NULL, "note", "Dear Ann, see you on Monday.");
    draft = save(store, llvs_id(&base), "draft", "note", "Dear Ann, see you on Tuesday.");

    status = llvs_arbiter_create(keep_both, &conflicts, NULL, NULL, &arbiter, &error);
    check(status, error);
    status = llvs_store_merge(store, llvs_id(&main_line), llvs_id(&draft), arbiter, NULL, &merged, &error);
    check(status, error);

    status = llvs_store_value(store, llvs_str("note"), merged->items[0]->id, &text, NULL, &error);
    check(status, error);
    printf("%d conflict; the merged note:\n%s\n", conflicts, (char *)text.data);
    if (conflicts != 1 || strcmp((char *)text.data, "Dear Ann, see you on Monday.\nDear Ann, see you on Tuesday.") != 0) return 1;

    llvs_buffer_dispose(&text);
    llvs_version_list_free(merged);
    llvs_arbiter_free(arbiter);
    llvs_store_free(store);
    return 0;
}

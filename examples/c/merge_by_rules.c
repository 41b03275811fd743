/*
 * Two devices edit a contact and a drawing. Rules merge the contact member by member; a function in C merges the drawing, which is not
 * JSON. The program lists the decisions of the merge as a user would see them, and chooses the older side of each. Then it undoes a save
 * without losing later changes.
 *
 *     merge_by_rules      (writes nothing: the store is in memory)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvs.h"

static const char rules[] = "{\"merge\":1,\"ids\":{\"contact/\":{\"/visits\":\"counter\",\"/tags\":\"set\",\"/bio\":\"text\"}}}";

/* A pointer to the error: the check reads the error after the call has set it. C does not define the order in which arguments are
 * evaluated. */
static void check(llvs_status status, llvs_error **error) {
    if (status == LLVS_OK) return;
    fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(*error));
    llvs_error_free(*error);
    exit(1);
}

/* A drawing is a string of strokes, a letter each; both sides only add strokes. Keeps the strokes of both. */
static llvs_status merge_drawing(void *payload, const llvs_value_question *question, llvs_resolution *resolution, llvs_error **error) {
    const size_t base = question->base.size, newer = question->newer.size, older = question->older.size;
    llvs_change change = LLVS_CHANGE_INIT;
    char *merged;
    llvs_status status;
    (void)payload;
    /* The rules decide about other values, and about a drawing that one side removed: the newer side wins. */
    if (question->path.size != 2 || !question->older.data || newer < base || older < base) return LLVS_PASS;
    merged = malloc(newer + older - base + 1);
    if (!merged) return LLVS_ERROR_OUT_OF_MEMORY;
    /* The same on all devices: the strokes of the base, then those that the older side added, then those of the newer. */
    memcpy(merged, question->older.data, older);
    if (newer > base) memcpy(merged + older, question->newer.data + base, newer - base);
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = question->id;
    change.data = llvs_bytes_make(merged, newer + older - base);
    status = llvs_resolution_add(resolution, &change, 1, sizeof change, error);
    free(merged);
    return status;
}

static llvs_version_id save(llvs_store *store, const llvs_version_id *at, const char *contact, const char *drawing) {
    llvs_change changes[3] = { LLVS_CHANGE_INIT, LLVS_CHANGE_INIT, LLVS_CHANGE_INIT };
    llvs_version_id id;
    llvs_error *error = NULL;
    changes[0].kind = changes[1].kind = changes[2].kind = LLVS_CHANGE_UPDATE;
    changes[0].id = llvs_str("contact/1");
    changes[0].data = llvs_str(contact);
    changes[1].id = llvs_str("drawing");
    changes[1].data = llvs_str(drawing);
    changes[2].id = llvs_str("__llvs_schema");
    changes[2].data = llvs_str(rules);
    check(llvs_store_make_version(store, at ? llvs_id(at) : LLVS_NONE, changes, at ? 2 : 3, sizeof changes[0], NULL, &id, NULL, &error),
        &error);
    return id;
}

static void show(llvs_store *store, const char *what, llvs_bytes at) {
    static const char *const ids[] = { "contact/1", "drawing" };
    size_t i;
    printf("%s\n", what);
    for (i = 0; i < 2; i++) {
        llvs_buffer data;
        llvs_error *error = NULL;
        check(llvs_store_value(store, llvs_str(ids[i]), at, &data, NULL, &error), &error);
        printf("    %s: %s\n", ids[i], data.data ? (const char *)data.data : "nothing");
        llvs_buffer_dispose(&data);
    }
}

/* Prints the decisions of the merge, and chooses the older side of each. */
static llvs_version_id decide(llvs_store *store, llvs_bytes merged) {
    llvs_conflict_list *conflicts;
    llvs_version_id at;
    llvs_error *error = NULL;
    size_t i, j;
    memset(&at, 0, sizeof at);
    at.size = (uint32_t)merged.size;
    memcpy(at.text, merged.data, merged.size);
    check(llvs_store_open_conflicts(store, merged, NULL, &conflicts, &error), &error);
    for (i = 0; i < conflicts->count; i++) {
        const llvs_conflict *conflict = conflicts->items[i];
        llvs_change_list *chosen;
        printf("%s at %s: %s or %s? %s stands.\n", (const char *)conflict->id.data, (const char *)conflict->path.data,
            (const char *)conflict->newer.data, (const char *)conflict->older.data, (const char *)conflict->result.data);
        check(llvs_store_choose(store, llvs_id(&at), conflict, LLVS_CHOICE_OLDER, &chosen, &error), &error);
        for (j = 0; j < chosen->count; j++) {
            llvs_change change = LLVS_CHANGE_INIT;
            change.kind = chosen->items[j]->kind;
            change.id = chosen->items[j]->id;
            change.data = chosen->items[j]->data;
            check(llvs_store_make_version(store, llvs_id(&at), &change, 1, sizeof change, NULL, &at, NULL, &error), &error);
        }
        llvs_change_list_free(chosen);
    }
    llvs_conflict_list_free(conflicts);
    return at;
}

int main(void) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_arbiter *arbiter;
    llvs_version_list *merged;
    llvs_revert_result *undone;
    llvs_version_id base, ann, bob, decided;
    llvs_error *error = NULL;

    options.storage = LLVS_STORAGE_MEMORY;
    check(llvs_store_open(LLVS_NONE, &options, &store, &error), &error);
    base = save(store, NULL, "{\"bio\":\"The cat sat.\",\"name\":\"Cat\",\"tags\":[],\"visits\":1}", "ab");
    ann = save(store, &base, "{\"bio\":\"A cat sat.\",\"name\":\"Tom\",\"tags\":[\"pet\"],\"visits\":3}", "abX");
    bob = save(store, &base, "{\"bio\":\"The cat sat down.\",\"name\":\"Felix\",\"tags\":[\"black\"],\"visits\":2}", "abY");

    check(llvs_value_merger_create(merge_drawing, NULL, NULL, LLVS_NONE, &arbiter, &error), &error);
    check(llvs_store_merge(store, llvs_id(&ann), llvs_id(&bob), arbiter, NULL, &merged, &error), &error);
    show(store, "Merged:", merged->items[0]->id);
    decided = decide(store, merged->items[0]->id);
    show(store, "Decided:", llvs_id(&decided));

    check(llvs_store_revert(store, llvs_id(&ann), llvs_id(&decided), NULL, &undone, &error), &error);
    show(store, "Without what Ann did:", undone->version->id);

    llvs_revert_result_free(undone);
    llvs_version_list_free(merged);
    llvs_arbiter_free(arbiter);
    check(llvs_store_close(store, &error), &error);
    llvs_store_free(store);
    return 0;
}

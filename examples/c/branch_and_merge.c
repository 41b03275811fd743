/*
 * Two devices change different lines of one card. An arbiter in C merges them: it takes each line from the side that changed it.
 *
 *     branch_and_merge      (writes nothing: the store is in memory)
 *
 * The arbiter compares with all common ancestors. There are two if both devices have merged the same versions to different results (a
 * criss-cross). An arbiter that compares with only one of them would silently lose edits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvs.h"

/* A card has three lines: name, telephone, town. */
enum { LINES = 3, MOST_ANCESTORS = 8 };

typedef struct card {
    llvs_buffer data;
    llvs_bytes lines[LINES];
} card;

/* A pointer to the error: the check reads the error after the call has set it. C does not define the order in which arguments are
 * evaluated. */
static void check(llvs_status status, llvs_error **error) {
    if (status == LLVS_OK) return;
    fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(*error));
    llvs_error_free(*error);
    exit(1);
}

static int equal(llvs_bytes a, llvs_bytes b) { return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0); }

/* Reads the value that a version stored, and splits it into lines. If the version stored none, the lines are empty. */
static llvs_status read_card(const llvs_merge *merge, llvs_bytes id, llvs_bytes stored_version, card *card, llvs_error **error) {
    const uint8_t *at, *end;
    size_t i;
    memset(card, 0, sizeof *card);
    if (stored_version.size > 0) {
        llvs_status status = llvs_store_value(merge->store, id, stored_version, &card->data, NULL, error);
        if (status != LLVS_OK) return status;
    }
    at = card->data.data;
    end = at ? at + card->data.size : at;
    for (i = 0; at && i < LINES; i++) {
        const uint8_t *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end) line_end = end;
        card->lines[i] = llvs_bytes_make(at, (size_t)(line_end - at));
        at = line_end < end ? line_end + 1 : end;
    }
    return LLVS_OK;
}

/* Whether a line is that of one of the ancestors. If it is, that side has not changed it. */
static int is_old(const card *ancestors, size_t count, size_t line, llvs_bytes text) {
    size_t i;
    for (i = 0; i < count; i++) {
        if (equal(ancestors[i].lines[line], text)) return 1;
    }
    return 0;
}

/* Returns the line of the side that changed it. If both or neither did, the line of the newer version. */
static llvs_bytes merged_line(const card *newer, const card *older, const card *ancestors, size_t count, size_t line) {
    int keeps_older = is_old(ancestors, count, line, newer->lines[line]) && !is_old(ancestors, count, line, older->lines[line]);
    return keeps_older ? older->lines[line] : newer->lines[line];
}

static llvs_status merge_card(const llvs_merge *merge, const llvs_fork *fork, llvs_resolution *resolution, llvs_error **error) {
    card newer, older, ancestors[MOST_ANCESTORS];
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_status status;
    size_t count = 0, i;
    char text[300] = "";

    if (fork->ancestor_count > MOST_ANCESTORS) {
        *error = llvs_error_create(0, llvs_str("this example knows no more than eight common ancestors"));
        return LLVS_ERROR_USER;
    }
    memset(&older, 0, sizeof older);
    status = read_card(merge, fork->id, fork->first, &newer, error);
    if (status == LLVS_OK) status = read_card(merge, fork->id, fork->second, &older, error);
    for (; status == LLVS_OK && count < fork->ancestor_count; count++) {
        status = read_card(merge, fork->id, fork->ancestors[count], &ancestors[count], error);
    }
    for (i = 0; status == LLVS_OK && i < LINES; i++) {
        llvs_bytes line = merged_line(&newer, &older, ancestors, count, i);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.*s", i ? "\n" : "", (int)line.size, line.size ? (const char *)line.data : "");
    }
    if (status == LLVS_OK) {
        change.kind = LLVS_CHANGE_UPDATE;
        change.id = fork->id;
        change.data = llvs_str(text);
        status = llvs_resolution_add(resolution, &change, 1, sizeof change, error);
    }
    llvs_buffer_dispose(&newer.data);
    llvs_buffer_dispose(&older.data);
    while (count > 0) llvs_buffer_dispose(&ancestors[--count].data);
    return status; /* if it is not LLVS_OK, the merge stores nothing and returns the error */
}

/* The arbiter. `payload` counts the conflicts. */
static llvs_status merge_cards(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    size_t i;
    for (i = 0; i < merge->fork_count; i++) {
        llvs_status status;
        if (!merge->forks[i]->conflicting) continue; /* the store merges these itself */
        ++*(int *)payload;
        status = merge_card(merge, merge->forks[i], resolution, error);
        if (status != LLVS_OK) return status;
    }
    return LLVS_OK;
}

static llvs_version_id save(llvs_store *store, llvs_bytes predecessor, const char *text) {
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_version_id version;
    llvs_error *error;
    change.kind = LLVS_CHANGE_UPDATE; /* sets the value, also if it is new */
    change.id = llvs_str("card");
    change.data = llvs_str(text);
    check(llvs_store_make_version(store, predecessor, &change, 1, sizeof change, NULL, &version, NULL, &error), &error);
    return version;
}

/* Each device writes its name into its merges. Two merges of the same versions are therefore two versions. */
static llvs_version_id merge(llvs_store *store, llvs_version_id a, llvs_version_id b, llvs_arbiter *arbiter, const char *device) {
    llvs_merge_options options = LLVS_MERGE_OPTIONS_INIT;
    llvs_metadata_entry metadata;
    llvs_version_list *merged;
    llvs_version_id version;
    llvs_error *error;
    metadata.key = llvs_str("device");
    metadata.value = llvs_str(device);
    options.metadata = &metadata;
    options.metadata_count = 1;
    check(llvs_store_merge(store, llvs_id(&a), llvs_id(&b), arbiter, &options, &merged, &error), &error);
    memset(&version, 0, sizeof version);
    version.size = (uint32_t)merged->items[0]->id.size;
    memcpy(version.text, merged->items[0]->id.data, version.size);
    llvs_version_list_free(merged);
    return version;
}

static int holds(llvs_store *store, llvs_version_id version, const char *expected) {
    llvs_buffer text;
    llvs_error *error;
    int same;
    check(llvs_store_value(store, llvs_str("card"), llvs_id(&version), &text, NULL, &error), &error);
    printf("%s\n\n", (const char *)text.data);
    same = strcmp((const char *)text.data, expected) == 0;
    llvs_buffer_dispose(&text);
    return same;
}

int main(void) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    llvs_version_id root, laptop, phone, on_laptop, on_phone, both;
    llvs_arbiter *arbiter;
    llvs_error *error;
    int conflicts = 0, is_right;

    options.storage = LLVS_STORAGE_MEMORY;
    check(llvs_store_open(LLVS_NONE, &options, &store, &error), &error);
    check(llvs_arbiter_create(merge_cards, &conflicts, NULL, NULL, &arbiter, &error), &error);

    root = save(store, LLVS_NONE, "Ann\n1\nUlm");
    laptop = save(store, llvs_id(&root), "Anna\n1\nUlm");
    phone = save(store, llvs_id(&root), "Ann\n2\nUlm");
    on_laptop = merge(store, laptop, phone, arbiter, "\"laptop\"");
    is_right = holds(store, on_laptop, "Anna\n2\nUlm");

    /* Criss-cross: the phone has merged the two versions as well, and each device saves before it receives the other's merge. */
    on_phone = merge(store, phone, laptop, arbiter, "\"phone\"");
    on_laptop = save(store, llvs_id(&on_laptop), "Anna\n2\nBonn");
    on_phone = save(store, llvs_id(&on_phone), "Anna\n3\nUlm");
    both = merge(store, on_laptop, on_phone, arbiter, "\"laptop\"");
    is_right = holds(store, both, "Anna\n3\nBonn") && is_right;

    printf("%d conflicts\n", conflicts);
    llvs_arbiter_free(arbiter);
    llvs_store_free(store);
    return is_right && conflicts == 3 ? 0 : 1;
}

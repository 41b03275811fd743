/*
 * Opens a store, saves twice, and reads every version.
 *
 *     open_save_read [directory]      (default: a new one in the system's temporary directory)
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <stdio.h>
#include <stdlib.h>

#include "llvs.h"

/* Prints the error and ends the program. */
static void check(llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return;
    fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(error));
    llvs_error_free(error);
    exit(1);
}

static void print_value(llvs_store *store, const char *id, const llvs_version_id *at) {
    llvs_error *error;
    llvs_buffer data;
    llvs_status status = llvs_store_value(store, llvs_str(id), llvs_id(at), &data, NULL, &error);
    check(status, error);
    printf("  %s = %s\n", id, data.data ? (const char *)data.data : "(nothing)");
    llvs_buffer_dispose(&data);
}

int main(int argc, char **argv) {
    char made[] = "/tmp/llvs-example-XXXXXX", path[1024];
    const char *directory = argc > 1 ? argv[1] : mkdtemp(made);
    llvs_store *store;
    llvs_version_id first, second;
    llvs_change changes[2] = { LLVS_CHANGE_INIT, LLVS_CHANGE_INIT };
    llvs_history_cursor *cursor;
    llvs_error *error;
    llvs_status status;

    if (!directory) { perror("mkdtemp"); return 1; }
    snprintf(path, sizeof path, "%s/notes.llvs", directory);
    status = llvs_store_open(llvs_str(path), NULL, &store, &error);
    check(status, error);

    /* The first version: two notes. A version without a predecessor is a root. */
    changes[0].kind = LLVS_CHANGE_INSERT;
    changes[0].id = llvs_str("note/1");
    changes[0].data = llvs_str("buy milk");
    changes[1].kind = LLVS_CHANGE_INSERT;
    changes[1].id = llvs_str("note/2");
    changes[1].data = llvs_str("call Ann");
    status = llvs_store_make_version(store, LLVS_NONE, changes, 2, sizeof changes[0], NULL, &first, NULL, &error);
    check(status, error);

    /* The second version, based on the first: one note changed, one removed. */
    changes[0].kind = LLVS_CHANGE_UPDATE;
    changes[0].data = llvs_str("buy oat milk");
    changes[1].kind = LLVS_CHANGE_REMOVE;
    changes[1].data = LLVS_NONE;
    status = llvs_store_make_version(store, llvs_id(&first), changes, 2, sizeof changes[0], NULL, &second, NULL, &error);
    check(status, error);

    /* Both states remain readable. */
    printf("At the first version:\n");
    print_value(store, "note/1", &first);
    print_value(store, "note/2", &first);
    printf("At the second version:\n");
    print_value(store, "note/1", &second);
    print_value(store, "note/2", &second);

    printf("The history, newest first:\n");
    status = llvs_store_history(store, NULL, NULL, &cursor, &error);
    check(status, error);
    for (;;) {
        llvs_version_list *page;
        size_t i;
        status = llvs_history_cursor_next(cursor, 100, NULL, &page, &error);
        check(status, error);
        if (!page) break;
        for (i = 0; i < page->count; i++) {
            const llvs_version_info *version = page->items[i];
            printf("  %s, %u predecessors, %llu bytes stored\n", (const char *)version->id.data,
                   (unsigned)version->predecessor_count, (unsigned long long)version->value_data_size);
        }
        llvs_version_list_free(page);
    }
    llvs_history_cursor_free(cursor);

    status = llvs_store_close(store, &error);
    check(status, error);
    llvs_store_free(store);
    printf("The store is %s\n", path);
    return 0;
}

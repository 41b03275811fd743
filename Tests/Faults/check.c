#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"
#include "shim.h"
#include "../C/child.h"
#include "../C/folder_snapshots.h"

int run_in_child(void (*body)(void *payload), void *payload, int seconds) {
    enum child_fate fate;
    int status;
    pid_t child;
    if (planted == LOOPS) seconds = 1;
    fflush(NULL);
    child = fork();
    if (child < 0) broken("cannot fork");
    if (child == 0) {
        body(payload);
        _exit(0);
    }
    if (wait_for_child(child, (unsigned long)seconds, &status, &fate) != child) broken("cannot wait");
    return fate == CHILD_WORKS ? status : -1;
}

static int works(const char *doing, llvs_status status, llvs_error **error) {
    if (status == LLVS_OK) return 1;
    book_fail("%s: %s: %s", doing, llvs_status_name(status), llvs_error_message(*error));
    llvs_error_free(*error);
    return 0;
}

static int must_be_there(const struct check *check, const struct asked *asked) {
    if (!asked->acknowledged) return 0;
    return check->cut < 0 || (asked->durable_at > 0 && asked->durable_at - 1 <= check->cut);
}

/* ---- The contents of the store ---- */

struct found {
    char id[ID_SIZE];
    char predecessors[2][ID_SIZE];
    int has_successor;
};
/* Sorted by id. */
struct history {
    struct found *versions;
    size_t count;
};

static int by_id(const void *a, const void *b) { return strcmp(((const struct found *)a)->id, ((const struct found *)b)->id); }
static struct found *find(const struct history *history, const char *id) {
    struct found key;
    if (history->count == 0) return NULL;
    snprintf(key.id, ID_SIZE, "%s", id);
    return bsearch(&key, history->versions, history->count, sizeof key, by_id);
}

static void copy_id(char *to, llvs_bytes id) {
    size_t size = id.size < ID_SIZE ? id.size : ID_SIZE - 1;
    if (size) memcpy(to, id.data, size);
    to[size] = 0;
}

/* Whether the version was made by an erasure: it stored an order. */
static int is_order(llvs_store *store, const llvs_version_info *version) {
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_list *values = NULL;
    llvs_error *error;
    int found = 0;
    range.prefix = llvs_str("__llvs_forget/order/");
    if (!book->erased[0].key[0] || !works("looking for orders", llvs_store_enumerate(store, version->id, &range, &values, &error), &error))
        return 0;
    for (size_t i = 0; values && i < values->count; i++) {
        llvs_bytes stored = values->items[i]->stored_version;
        found |= stored.size == version->id.size && memcmp(stored.data, version->id.data, stored.size) == 0;
    }
    llvs_value_list_free(values);
    return found;
}

/* An erasure that was acknowledged, or that the opening followed: no file has the bytes any more. */
static void check_erased(const struct check *check, int must_be_gone) {
    struct tree tree;
    if (!must_be_gone || book->failure[0]) return;
    tree = read_tree(check->work->root);
    for (int value = 0; value < 2; value++) {
        const struct change_spec *erased = &book->erased[value];
        uint8_t *bytes = value_bytes(erased->seed, erased->size);
        for (size_t i = 0; i < tree.count; i++) {
            struct entry *entry = &tree.entries[i];
            if (entry->is_folder || strncmp(entry->path, "store", 5) != 0) continue;
            for (uint32_t at = 0; at + 32 <= erased->size; at += 1000)
                if (memmem(entry->bytes, entry->size, bytes + at, 32)) {
                    book_fail("the value %s was erased, and %s has bytes of it", erased->key, entry->path);
                    break;
                }
        }
        free(bytes);
    }
    free_tree(&tree);
}

/* Whatever was interrupted, the next call completes it: a value that prevails at the head is kept. */
static void check_forgotten(llvs_store *store) {
    llvs_forget_report *report = NULL;
    llvs_buffer value = { NULL, 0 };
    llvs_error *error;
    uint8_t *bytes;
    if (!book->forgets || !works("forgetting afterwards", llvs_store_forget(store, NULL, &report, &error), &error)) return;
    if (report->waiting_count) book_fail("what is forgotten waits after opening");
    llvs_forget_report_free(report);
    if (!works("reading what is kept", llvs_store_value(store, llvs_str("secret"), llvs_str("last"), &value, NULL, &error), &error)) return;
    bytes = value_bytes(KEPT_SEED, KEPT_SIZE);
    if (value.size != KEPT_SIZE || memcmp(value.data, bytes, KEPT_SIZE) != 0)
        book_fail("a value that prevails at the head has other bytes");
    llvs_buffer_dispose(&value);
    free(bytes);
}

/* Whether orders count in the store, all of them followed. (One that was saved counts once that is noted, in the same call.) */
static int is_erased(llvs_store *store) {
    llvs_erasure_list *list;
    llvs_error *error;
    size_t counting = 0, followed = 0;
    if (!works("asking for orders", llvs_store_erasures(store, &list, &error), &error)) return 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i]->state == LLVS_ERASURE_NOT_VALID) continue;
        counting++;
        if (list->items[i]->followed) followed++;
        else book_fail("an order is not followed after opening");
    }
    llvs_erasure_list_free(list);
    return counting > 0 && followed == counting;
}

/* Whether the version was requested, and is exactly as it was requested. */
static int is_whole(const struct check *check, llvs_store *store, const llvs_version_info *version) {
    static const char empty_root[] = "00000000-0000-8000-8000-000000000000";
    char id[ID_SIZE];
    uint64_t digest = 0;
    llvs_error *error;
    struct asked *asked = book_find(version->id);
    llvs_status status = version_digest(store, version, &digest, &error);
    if (planted == READS_SOMETHING_ELSE) digest = ~digest;
    copy_id(id, version->id);
    if (status == LLVS_ERROR_DAMAGED && asked && asked->is_damaged && !must_be_there(check, asked)) {
        llvs_error_free(error);
        return 0;
    }
    if (status != LLVS_OK) {
        book_fail("the version %s exists and cannot be read: %s: %s", id, llvs_status_name(status), llvs_error_message(error));
        llvs_error_free(error);
        return 0;
    }
    if (asked && asked->digest == digest) return 1;
    if (asked) {
        book_fail("the version %s differs from the one that was saved", id);
        return 0;
    }
    for (int i = 0; i < book->count; i++) if (!book->asked[i].id[0] && book->asked[i].digest == digest) return 1;
    if (strcmp(id, empty_root) == 0 || is_order(store, version)) return 1;
    book_fail("the version %s exists, and was never saved", id);
    return 0;
}

static struct history read_history(const struct check *check, llvs_store *store) {
    struct history history = {NULL, 0};
    llvs_history_cursor *cursor;
    llvs_version_list *page = NULL;
    llvs_error *error;
    size_t room = 0;
    if (!works("walking the history", llvs_store_history(store, NULL, NULL, &cursor, &error), &error)) return history;
    while (!book->failure[0] && works("walking the history", llvs_history_cursor_next(cursor, 0, NULL, &page, &error), &error) && page) {
        for (size_t i = 0; i < page->count && !book->failure[0]; i++) {
            const llvs_version_info *version = page->items[i];
            struct found *found;
            if (history.count == room) {
                room = room ? room * 2 : 64;
                history.versions = realloc(history.versions, sizeof *found * room);
                if (!history.versions) broken("out of memory");
            }
            found = &history.versions[history.count++];
            copy_id(found->id, version->id);
            found->has_successor = 0;
            for (int p = 0; p < 2; p++)
                copy_id(found->predecessors[p], p < (int)version->predecessor_count ? version->predecessors[p] : LLVS_NONE);
            if (is_sampled(history.count - 1, (size_t)book->count)) is_whole(check, store, version);
        }
        llvs_version_list_free(page);
    }
    llvs_history_cursor_free(cursor);
    if (planted == LOSES_THE_LAST && history.count) history.count--;
    if (history.count) qsort(history.versions, history.count, sizeof history.versions[0], by_id);
    return history;
}

/* The heads are the versions without successors, each listed once. */
static void check_heads(llvs_store *store, const struct history *history) {
    llvs_version_list *heads;
    llvs_error *error;
    size_t expected = 0;
    if (!works("asking for the heads", llvs_store_heads(store, NULL, &heads, &error), &error)) return;
    for (size_t i = 0; i < history->count; i++) for (int p = 0; p < 2; p++) {
        const char *predecessor = history->versions[i].predecessors[p];
        struct found *found = *predecessor ? find(history, predecessor) : NULL;
        if (found) found->has_successor = 1;
        else if (*predecessor) book_fail("%s is in the history, and its predecessor %s is not", history->versions[i].id, predecessor);
    }
    for (size_t i = 0; i < history->count; i++) expected += !history->versions[i].has_successor;
    if (heads->count != expected) book_fail("there are %zu heads, and should be %zu", heads->count, expected);
    for (size_t i = 0; i < heads->count && !book->failure[0]; i++) {
        char id[ID_SIZE];
        const struct found *found;
        copy_id(id, heads->items[i]->id);
        found = find(history, id);
        if (!found) book_fail("%s is called a head, and is not in the history", id);
        else if (found->has_successor) book_fail("%s is called a head, and has a successor", id);
    }
    llvs_version_list_free(heads);
}

/* Damage from before the workload is expected, but a repaired version has lost nothing. */
static int is_expected(const struct check *check, const llvs_damage *damage) {
    int is_damaged = 0, is_repaired = 1;
    for (int i = 0; i < book->count; i++) {
        is_damaged |= book->asked[i].is_damaged;
        is_repaired &= !book->asked[i].is_damaged || must_be_there(check, &book->asked[i]);
    }
    return is_damaged && (!is_repaired || damage->lost == LLVS_LOSS_NOTHING);
}

static void check_verification(const struct check *check, llvs_store *store) {
    llvs_verify_report *report;
    llvs_error *error;
    const llvs_damage *damage = NULL;
    if (!works("verifying", llvs_store_verify(store, NULL, &report, &error), &error)) return;
    for (size_t i = 0; (damage = report->damages[i]) && is_expected(check, damage); i++) {}
    /* Unsynced bytes may be lost in the middle of a file, which is reported as damage. */
    if (damage && check->cut < 0) {
        book_fail("a verification finds damage: %.*s at %llu: %.*s", (int)damage->file.size, (const char *)damage->file.data,
                  (unsigned long long)damage->offset, (int)damage->message.size, (const char *)damage->message.data);
    }
    if (check->cut < 0 && report->pending > 0) book_fail("%llu versions wait for others", (unsigned long long)report->pending);
    llvs_verify_report_free(report);
}

/* ---- Continuing ---- */

/* Makes the versions again that were requested and not acknowledged, and one new version. */
static void go_on(const struct check *check) {
    struct client client = client_open(check->work, "store", LLVS_DURABILITY_FULL);
    llvs_version_list *head;
    llvs_error *error;
    int count = book->count;
    char newest[ID_SIZE] = "";
    if (book->failure[0]) return;
    for (int i = 0; i < count; i++) {
        struct asked *asked = &book->asked[i];
        if (asked->can_be_repeated && !must_be_there(check, asked)) {
            struct asked copy = *asked;
            llvs_version_list *there = NULL;
            if (copy.predecessor[0]) {
                if (!works("asking for a predecessor", llvs_store_version(client.store, llvs_str(copy.predecessor), &there, &error),
                           &error))
                    return;
                llvs_version_list_free(there);
                if (!there) continue;
            }
            asked->id[0] = 0; /* the new entry takes its place */
            asked->digest = 0;
            asked->acknowledged = 0;
            client_make(&client, copy.id, copy.predecessor[0] ? copy.predecessor : NULL, copy.changes[0], copy.changes[1], copy.changes[2]);
        }
    }
    /* Versions that do not exist and cannot be made again under their ids remain absent. */
    for (int i = 0; i < count; i++) {
        struct asked *asked = &book->asked[i];
        llvs_version_list *there = NULL;
        if (asked->can_be_repeated || !asked->id[0] || must_be_there(check, asked)) continue;
        if (!works("asking for a version", llvs_store_version(client.store, llvs_str(asked->id), &there, &error), &error)) return;
        if (!there) asked->id[0] = 0;
        llvs_version_list_free(there);
    }
    for (int i = 0; i < count; i++) if (book->asked[i].is_damaged) { client_repair(&client, "folder"); break; }
    if (!works("asking for a head", llvs_store_heads(client.store, NULL, &head, &error), &error)) return;
    if (head->count > 0) copy_id(newest, head->items[0]->id);
    llvs_version_list_free(head);
    if (!newest[0] || book_find(llvs_str(newest)))
        client_make(&client, "went-on", newest[0] ? newest : NULL, put("w", 99, 10), no_change, no_change);
    client_close(&client);
}

/* ---- The whole ---- */

static llvs_store *opened(const struct check *check, const char *path) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = NULL;
    llvs_error *error;
    options.storage = check->work->storage;
    works("opening the store afterwards", llvs_store_open(llvs_str(path), &options, &store, &error), &error);
    return store;
}

static void check_contents(const struct check *check, const char *path) {
    llvs_store *store = opened(check, path);
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    struct history history;
    llvs_error *error;
    if (!store) return;
    history = read_history(check, store);
    for (int i = 0; i < book->count && !book->failure[0]; i++) {
        const struct asked *asked = &book->asked[i];
        if (must_be_there(check, asked) && !find(&history, asked->id)) book_fail("the version %s was acknowledged, and is lost", asked->id);
    }
    if (!book->failure[0]) check_heads(store, &history);
    if (!book->failure[0]) check_verification(check, store);
    int is_gone = is_erased(store);
    check_forgotten(store);
    if (book->erased_at > 0 && !is_gone) book_fail("an erasure was acknowledged, and its order is lost");
    works("asking for counts", llvs_store_statistics(store, NULL, &statistics, &error), &error);
    for (int i = 0; i < book->count; i++) if (book->asked[i].is_damaged) statistics.damaged = 0;
    if (check->cut < 0 && statistics.damaged > 0)
        book_fail("%llu damaged places were met while opening", (unsigned long long)statistics.damaged);
    free(history.versions);
    works("closing the store afterwards", llvs_store_close(store, &error), &error);
    llvs_store_free(store);
    check_erased(check, is_gone || book->forgets);
}

/* Versions that a store retrieves from the folder are whole. After the sender has sent again, they are all that the sender has. */
static void check_folder(const struct check *check, const char *path) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = opened(check, path), *other = NULL;
    llvs_exchange *exchange = NULL;
    llvs_error *error;
    char url[700];
    if (!store) return;
    options.storage = LLVS_STORAGE_MEMORY;
    snprintf(url, sizeof url, "file://%s/folder", check->work->root);
    for (int round = 0; round < 2 && !book->failure[0]; round++) {
        llvs_exchange_result *result = NULL;
        llvs_statistics ours = LLVS_STATISTICS_INIT, theirs = LLVS_STATISTICS_INIT;
        if (round == 1) {
            if (!works("opening the exchange again", llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error), &error)) break;
            works("sending again", llvs_exchange_send(exchange, NULL, NULL, &error), &error);
            llvs_exchange_free(exchange);
        }
        if (!works("opening a store in memory", llvs_store_open(LLVS_NONE, &options, &other, &error), &error)) break;
        if (!works("opening the exchange elsewhere", llvs_exchange_open(other, llvs_str(url), NULL, &exchange, &error), &error)) break;
        works("retrieving elsewhere", llvs_exchange_retrieve(exchange, NULL, &result, &error), &error);
        free(read_history(check, other).versions);
        works("counting its versions", llvs_store_statistics(store, NULL, &ours, &error), &error);
        works("counting the others", llvs_store_statistics(other, NULL, &theirs, &error), &error);
        if (round == 1 && theirs.versions < ours.versions)
            book_fail("after sending again the folder holds %llu versions of %llu", (unsigned long long)theirs.versions,
                      (unsigned long long)ours.versions);
        llvs_exchange_result_free(result);
        llvs_exchange_free(exchange);
        llvs_store_free(other);
    }
    llvs_store_free(store);
}

/* A snapshot is whole, or the error reports that it is not. */
static void check_snapshot(const struct check *check) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    char *folder = path_of(check->work->root, "folder");
    llvs_store *store;
    llvs_error *error;
    llvs_status status;
    options.storage = LLVS_STORAGE_MEMORY;
    if (works("opening a store in memory", llvs_store_open(LLVS_NONE, &options, &store, &error), &error)) {
        status = restore_snapshot_from(store, folder, NULL, &error);
        if (status == LLVS_ERROR_SNAPSHOT_MISSING || status == LLVS_ERROR_SNAPSHOT_DAMAGED) llvs_error_free(error);
        else if (works("restoring a snapshot", status, &error)) free(read_history(check, store).versions);
        llvs_store_free(store);
    }
    free(folder);
}

/* Flips a bit in the middle of the largest file of the store. */
static void spoil(const char *path) {
    struct tree tree = read_tree(path);
    struct entry *largest = NULL;
    for (size_t i = 0; i < tree.count; i++)
        if (!strstr(tree.entries[i].path, "cache") && (!largest || tree.entries[i].size > largest->size)) largest = &tree.entries[i];
    if (largest && largest->size > 0) {
        char *file = path_of(path, largest->path);
        largest->bytes[largest->size / 2] ^= 4;
        write_file(file, largest->bytes, largest->size);
        free(file);
    }
    free_tree(&tree);
}

static void check_it(void *payload) {
    const struct check *check = payload;
    char *path = path_of(check->work->root, "store"), *versions = path_of(check->work->root, "folder/versions"),
         *snapshots = path_of(check->work->root, "folder/snapshots");
    if (faults) faults->on = 0;
    if (planted == SPOILS_A_BYTE) spoil(path);
    /* Acknowledgements after the cut do not count. */
    for (int i = 0; i < book->count; i++) if (!must_be_there(check, &book->asked[i])) book->asked[i].acknowledged = 0;
    if (check->cut >= 0 && book->erased_at - 1 > check->cut) book->erased_at = 0;
    check_contents(check, path);
    if (!book->failure[0] && is_there(versions)) check_folder(check, path);
    if (!book->failure[0] && is_there(snapshots)) check_snapshot(check);
    if (!book->failure[0] && check->goes_on) {
        struct check again = *check;
        go_on(check);
        again.goes_on = 0;
        /* Everything that is acknowledged by now must exist. */
        if (again.cut >= 0) again.cut = LONG_MAX;
        if (!book->failure[0]) check_contents(&again, path);
    }
    free(path);
    free(versions);
    free(snapshots);
}

int check_store(const struct check *check) {
    int status = run_in_child(check_it, (void *)check, 120);
    if (faults) faults->on = 1;
    if (status != 0 && !book->failure[0]) {
        if (status == -1) book_fail("looking at the store afterwards does not come to an end");
        else
            book_fail("looking at the store afterwards ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    return book->failure[0] != 0;
}

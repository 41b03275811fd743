#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "workloads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "files.h"
#include "shim.h"

static struct client open_it(const struct work *work) { return client_open(work, "store", work->durability); }

/* Makes `count` versions in a row, "<name>-1" and so on, the first one on `predecessor`. */
static void chain(struct client *client, const char *name, const char *predecessor, int count) {
    char id[ID_SIZE], last[ID_SIZE];
    if (predecessor) snprintf(last, ID_SIZE, "%s", predecessor);
    for (int i = 1; i <= count; i++) {
        snprintf(id, ID_SIZE, "%s-%d", name, i);
        client_make(client, id, i == 1 ? predecessor : last, put("k", (uint64_t)i * 7919 + (uint64_t)name[0], 40),
                    i == 1 ? put(name, 5, 10) : no_change, no_change);
        snprintf(last, ID_SIZE, "%s", id);
    }
}

static void prepare_store(const struct work *work) {
    struct client client = client_open(work, "store", LLVS_DURABILITY_FULL);
    client_make(&client, "root", NULL, put("a", 1, 100), put("b", 2, 2000), no_change);
    chain(&client, "old", "root", 2);
    client_close(&client);
}

/* ---- Making a store, and versions ---- */

static void create(const struct work *work) {
    struct client client = open_it(work);
    client_make(&client, "first", NULL, put("a", 1, 20), no_change, no_change);
    client_expect_all(&client);
    client_close(&client);
}

static void commit(const struct work *work) {
    struct client client = open_it(work);
    client_make(&client, "new-1", "old-2", put("a", 11, 100), drop("b"), no_change);
    /* Larger than the buffer that collects small frames; in SQLite, larger than a piece. */
    client_make(&client, "new-2", "new-1", put("c", 12, work->storage == LLVS_STORAGE_FILE ? 300000 : 67000), put("d", 13, 700), no_change);
    client_make(&client, "new-3", "new-2", put("a", 14, 0), no_change, no_change);
    client_make(&client, "side", "root", put("s", 15, 10), no_change, no_change);
    client_expect_all(&client);
    client_close(&client);
}

static void large_values(const struct work *work) {
    struct client client = open_it(work);
    /* In file storage, values above 1 MiB are files of their own; in SQLite they only have more pieces. */
    uint32_t size = work->storage == LLVS_STORAGE_FILE ? 1 << 20 : 66000;
    client_make(&client, "large-1", "old-2", put("x", 21, size + 1), put("y", 22, 30), no_change);
    client_make(&client, "large-2", "large-1", put("z", 23, size + 4000), no_change, no_change);
    client_expect_all(&client);
    client_close(&client);
}

/* ---- Merging ---- */

static void prepare_branches(const struct work *work) {
    struct client client = client_open(work, "store", LLVS_DURABILITY_FULL);
    client_make(&client, "root", NULL, put("a", 1, 100), no_change, no_change);
    client_make(&client, "left", "root", put("l", 31, 400), no_change, no_change);
    client_make(&client, "right", "root", put("r", 32, 10), no_change, no_change);
    client_make(&client, "third", "root", put("t", 33, 10), no_change, no_change);
    client_close(&client);
}
static void merge(const struct work *work) {
    struct client client = open_it(work);
    char both[ID_SIZE] = "", all[ID_SIZE] = "";
    client_merge(&client, "left", "right", both);
    if (both[0]) client_merge(&client, both, "third", all);
    if (all[0]) client_make(&client, "after", all, put("z", 34, 10), no_change, no_change);
    client_expect_all(&client);
    client_close(&client);
}

/* ---- Exchanging ---- */

static void prepare_folder(const struct work *work) {
    struct client client = client_open(work, "other", LLVS_DURABILITY_FULL);
    client_make(&client, "root", NULL, put("a", 1, 100), no_change, no_change);
    client_make(&client, "left", "root", put("l", 31, 400), no_change, no_change);
    client_make(&client, "right", "root", put("r", 32, 10), no_change, no_change);
    char both[ID_SIZE] = "";
    client_merge(&client, "left", "right", both);
    client_send(&client, "folder");
    client_close(&client);
    char *other = path_of(work->root, "other");
    remove_tree(other);
    free(other);
    book_move_elsewhere();
    client = client_open(work, "store", LLVS_DURABILITY_FULL);
    client_make(&client, "mine", NULL, put("m", 3, 30), no_change, no_change);
    client_close(&client);
}
static void retrieve(const struct work *work) {
    struct client client = open_it(work);
    client_retrieve(&client, "folder");
    client_make(&client, "left-2", "left", put("l", 41, 20), no_change, no_change);
    client_expect_all(&client);
    client_close(&client);
}
static void send(const struct work *work) {
    struct client client = open_it(work);
    client_make(&client, "mine-2", "mine", put("m", 43, 3000), no_change, no_change);
    client_send(&client, "folder");
    client_expect_all(&client);
    client_close(&client);
}

/* ---- Repairing ---- */

/* Flips a bit wherever in the store a value begins. */
static void flip(const struct work *work, uint64_t seed, uint32_t size) {
    uint8_t *bytes = value_bytes(seed, size);
    struct tree tree = read_tree(work->root);
    int flips = 0;
    for (size_t i = 0; i < tree.count; i++) {
        struct entry *entry = &tree.entries[i];
        uint8_t *found = entry->is_folder || strncmp(entry->path, "store", 5) != 0 ? NULL : memmem(entry->bytes, entry->size, bytes, 16);
        char *path = path_of(work->root, entry->path);
        if (found) {
            found[3] ^= 16;
            write_file(path, entry->bytes, entry->size);
            flips++;
        }
        free(path);
    }
    if (!flips) broken("no value to be damaged");
    free_tree(&tree);
    free(bytes);
}

/* The size of the damaged value. In a file storage it has a file of its own; in SQLite it is in its record. */
static uint32_t damaged_size(const struct work *work) { return work->storage == LLVS_STORAGE_FILE ? (1 << 20) + 70000 : 66000; }
static void prepare_damaged(const struct work *work) {
    struct client client = client_open(work, "store", LLVS_DURABILITY_FULL);
    client_make(&client, "root", NULL, put("a", 1, 100), no_change, no_change);
    client_make(&client, "hurt", "root", put("x", 81, 90000), put("y", 82, damaged_size(work)), put("z", 83, 10));
    client_make(&client, "whole", "hurt", drop("x"), drop("y"), put("w", 84, 20));
    client_send(&client, "folder");
    client_close(&client);
    /* In SQLite the first value is in the first piece of the record, without which the version is unknown. */
    if (work->storage == LLVS_STORAGE_FILE) flip(work, 81, 90000);
    flip(work, 82, damaged_size(work));
    book_damage("hurt");
}
static void repair(const struct work *work) {
    struct client client = open_it(work);
    client_repair(&client, "folder");
    /* Readable even if a power cut undoes the repair. */
    client_make(&client, "on-it", "hurt", put("a", 85, 20), drop("x"), drop("y"));
    client_expect_all(&client);
    client_close(&client);
}

/* ---- Values as differences ---- */

/* The id of the newest version of the last preparation. A child makes the versions, so ids that a store computes come from the book. */
static const char *newest(void) {
    for (int i = book->count - 1; i >= 0; i--) if (book->asked[i].id[0]) return book->asked[i].id;
    broken("no version was made");
}
/* Makes `count` edits of a text and of a larger one, each on the one before; the first is edit `from`. */
static void edit(struct client *client, const char *on, uint32_t from, int count, uint32_t large, char *last) {
    snprintf(last, ID_SIZE, "%s", on);
    for (int i = 0; i < count && last[0]; i++) {
        char id[ID_SIZE];
        client_save(client, last, put("text", edited(91, from + (uint32_t)i), 3000),
                    i % 2 ? put("long", edited(92, from + (uint32_t)i), large) : no_change, id);
        snprintf(last, ID_SIZE, "%s", id);
    }
}
/* Larger than the buffer that collects small frames; in SQLite, larger than a piece. */
static uint32_t long_text(const struct work *work) { return work->storage == LLVS_STORAGE_FILE ? 300000 : 67000; }
static void expect_differences(struct client *client, unsigned count) {
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_error *error;
    if (llvs_store_statistics(client->store, NULL, &statistics, &error) != LLVS_OK) llvs_error_free(error);
    else if (statistics.differences < count)
        broken("%llu differences instead of %u: the workload says nothing of them", (unsigned long long)statistics.differences, count);
}
static void prepare_edits(const struct work *work) {
    struct client client = client_open(work, "store", LLVS_DURABILITY_FULL);
    char id[ID_SIZE], last[ID_SIZE];
    client_save(&client, NULL, put("text", 91, 3000), put("long", 92, long_text(work)), id);
    edit(&client, id, 1, 5, long_text(work), last);
    expect_differences(&client, 7);
    client_close(&client);
}
/* Edits, two branches of them and their merge, in two sessions. The second session finds the bases in the records. */
static void edits(const struct work *work) {
    char last[ID_SIZE], side[ID_SIZE], both[ID_SIZE] = "";
    struct client client = open_it(work);
    edit(&client, newest(), 6, 3, long_text(work), last);
    if (last[0]) {
        client_save(&client, last, put("text", edited(91, 20), 3000), no_change, side);
        client_save(&client, last, put("side", 93, 10), no_change, both);
        if (side[0] && both[0]) client_merge(&client, side, both, last);
    }
    expect_differences(&client, 4);
    client_expect_all(&client);
    client_close(&client);
    client = open_it(work);
    if (last[0]) edit(&client, last, 22, 4, long_text(work), side);
    expect_differences(&client, 4);
    client_expect_all(&client);
    client_close(&client);
}
/* The text that is stored whole is damaged. All other texts are differences from it, so none of them can be read. */
static void prepare_damaged_base(const struct work *work) {
    struct client client = client_open(work, "store", LLVS_DURABILITY_FULL);
    char first[ID_SIZE], last[ID_SIZE];
    client_save(&client, NULL, put("text", 91, 3000), put("a", 1, 10), first);
    edit(&client, first, 1, 6, 10, last);
    expect_differences(&client, 6);
    client_send(&client, "folder");
    client_close(&client);
    flip(work, 91, 3000);
    for (int i = 0; i < book->count; i++) book_damage(book->asked[i].id);
}
static void repair_base(const struct work *work) {
    struct client client = open_it(work);
    char id[ID_SIZE];
    client_repair(&client, "folder");
    /* At `normal` it must be readable even if a power cut undoes the repair. */
    struct change_spec text = work->durability == LLVS_DURABILITY_FULL ? put("text", edited(91, 30), 3000) : drop("text");
    client_save(&client, newest(), text, no_change, id);
    client_expect_all(&client);
    client_close(&client);
}

/* ---- Compaction ---- */

enum { SEGMENTS = 70 }; /* more than a close leaves uncompacted */
static void make_segments(const struct work *work, int left_open) {
    char id[ID_SIZE], last[ID_SIZE] = "";
    for (int i = 0; i < SEGMENTS; i++) {
        struct client client = client_open(work, "store", LLVS_DURABILITY_FULL);
        snprintf(id, ID_SIZE, "part-%d", i);
        client_make(&client, id, i ? last : NULL, put("k", (uint64_t)i, 30), no_change, no_change);
        snprintf(last, ID_SIZE, "%s", id);
        if (i < SEGMENTS - left_open) client_close(&client);
    }
}
/* One more close would compact them. Handles that are not closed are like those of killed processes: this process's end releases their
 * locks. */
static void prepare_segments(const struct work *work) { make_segments(work, 7); }
static void fold(const struct work *work) {
    struct client client = open_it(work);
    client_make(&client, "folding", "part-3", put("f", 51, 30), no_change, no_change);
    client_close(&client);
    client = open_it(work);
    client_expect_all(&client);
    client_close(&client);
}

/* Compacted long enough ago that the replaced segments may be deleted. */
static void prepare_folded(const struct work *work) {
    make_segments(work, 0);
    char *folder = path_of(work->root, "store/segments");
    struct tree tree = read_tree(folder);
    struct timespec times[2];
    times[0].tv_sec = times[1].tv_sec = time(NULL) - 3600;
    times[0].tv_nsec = times[1].tv_nsec = 0;
    for (size_t i = 0; i < tree.count; i++) {
        char *path = path_of(folder, tree.entries[i].path);
        if (!tree.entries[i].is_folder && utimensat(AT_FDCWD, path, times, 0) != 0) broken("cannot set the times of %s", path);
        free(path);
    }
    free_tree(&tree);
    free(folder);
}
static void delete_folded(const struct work *work) {
    struct client client = open_it(work);
    client_close(&client);
    client = open_it(work);
    client_expect_all(&client);
    client_close(&client);
}

/* ---- Snapshots, and caches ---- */

/* Makes a snapshot of `count` versions. */
static void make_snapshot(const struct work *work, int count) {
    struct client client = client_open(work, "other", LLVS_DURABILITY_NORMAL);
    /* A tree, so that no version is far from the first. */
    for (int i = 0; i < count; i++) {
        char id[ID_SIZE], predecessor[ID_SIZE];
        snprintf(id, ID_SIZE, "s-%d", i);
        snprintf(predecessor, ID_SIZE, "s-%d", i / 8);
        client_make(&client, id, i ? predecessor : NULL, put("k", (uint64_t)i, 40), no_change, no_change);
    }
    client_write_snapshot(&client, "folder");
    client_close(&client);
    char *other = path_of(work->root, "other");
    remove_tree(other);
    free(other);
    book_move_elsewhere();
}
enum { MANY = 1100, FEW = 60 }; /* With MANY, caches are written. In file storage that costs a few calls, in SQLite hundreds. */
static void prepare_snapshot(const struct work *work) { make_snapshot(work, work->storage == LLVS_STORAGE_FILE ? MANY : FEW); }
static void restore(const struct work *work) {
    struct client client = open_it(work);
    client_restore_snapshot(&client, "folder");
    client_expect_all(&client);
    client_close(&client);
}
static void prepare_cached(const struct work *work) {
    make_snapshot(work, MANY);
    restore(work);
}
static void open_cached(const struct work *work) {
    struct client client = open_it(work);
    client_make(&client, "cached-1", "s-1000", put("k", 61, 10), no_change, no_change);
    client_make(&client, "cached-2", "s-500", put("k", 62, 10), no_change, no_change);
    client_expect_all(&client);
    client_close(&client);
}

static void prepare_old_snapshot(const struct work *work) {
    struct client client = client_open(work, "store", LLVS_DURABILITY_FULL);
    client_make(&client, "root", NULL, put("a", 1, 100), no_change, no_change);
    client_write_snapshot(&client, "folder");
    client_make(&client, "next", "root", put("a", 2, 100), no_change, no_change);
    client_close(&client);
}
static void write_snapshot(const struct work *work) {
    struct client client = open_it(work);
    client_write_snapshot(&client, "folder");
    client_close(&client);
}

/* ---- Two handles that share a store ---- */

static void build_on_others(const struct work *work) {
    struct client theirs = client_open(work, "store", LLVS_DURABILITY_NORMAL);
    client_make(&theirs, "theirs-1", "old-2", put("t", 71, 100), no_change, no_change);
    struct client ours = client_open(work, "store", work->durability);
    client_make(&ours, "ours-1", "theirs-1", put("o", 72, 100), no_change, no_change);
    client_make(&theirs, "theirs-2", "ours-1", put("t", 73, work->storage == LLVS_STORAGE_FILE ? 1 << 18 : 5000), no_change, no_change);
    client_make(&ours, "ours-2", "theirs-2", put("o", 74, 100), no_change, no_change);
    client_expect_all(&ours);
    client_expect_all(&theirs);
    client_close(&ours);
    client_close(&theirs);
}
/* The other handle writes large values outside of its records. */
static void build_on_others_large(const struct work *work) {
    struct client theirs = client_open(work, "store", LLVS_DURABILITY_NORMAL);
    client_make(&theirs, "theirs-1", "old-2", put("t", 75, work->storage == LLVS_STORAGE_FILE ? (1 << 20) + 9 : 66000), no_change,
                no_change);
    struct client ours = client_open(work, "store", work->durability);
    client_make(&ours, "ours-1", "theirs-1", put("o", 76, 100), no_change, no_change);
    client_expect_all(&ours);
    client_close(&ours);
    client_close(&theirs);
}

/* ---- Erasing ---- */

static struct change_spec secret(int number, const struct work *work) {
    uint32_t large = work->storage == LLVS_STORAGE_FILE ? (1 << 20) + 9 : 66000;
    return put("secret", 80 + (uint64_t)number, number == 0 ? 3000 : large);
}
static void prepare_erasable(const struct work *work) {
    struct client client = client_open(work, "store", LLVS_DURABILITY_FULL);
    client_make(&client, "root", NULL, put("a", 1, 100), secret(0, work), put("b", 2, 2000));
    client_make(&client, "next", "root", secret(1, work), put("b", 3, 2000), no_change);
    client_close(&client);
    client = client_open(work, "store", LLVS_DURABILITY_FULL);
    client_make(&client, "last", "next", put("a", 4, 100), no_change, no_change);
    client_close(&client);
}
static void erase(const struct work *work) {
    struct client client = open_it(work);
    client_make(&client, "before", "last", put("c", 5, 100), no_change, no_change);
    client_erase(&client, "secret", secret(0, work), secret(1, work));
    client_make(&client, "after", "before", put("d", 6, 100), no_change, no_change);
    client_expect_all(&client);
    client_close(&client);
}

/* ---- Forgetting ---- */

/* The values under "secret" are not kept unless they prevail at a head. */
static void prepare_forgettable(const struct work *work) {
    struct client client = client_open(work, "store", LLVS_DURABILITY_FULL);
    client_make(&client, "root", NULL, put("a", 1, 100), secret(0, work), put("b", 2, 2000));
    client_make(&client, "next", "root", secret(1, work), put("b", 3, 2000), no_change);
    client_close(&client);
    client = client_open(work, "store", LLVS_DURABILITY_FULL);
    client_make(&client, "last", "next", put("a", 4, 100), put("secret", KEPT_SEED, KEPT_SIZE), no_change);
    /* Closing does it at most once a day. */
    client_set_forgetting(&client, "{\"keep\":{\"days\":1000}}");
    client_forget(&client, secret(0, work));
    client_set_forgetting(&client, "{\"keep\":{\"days\":1000,\"ids\":{\"secret\":{\"days\":0}}}}");
    client_close(&client);
}
static void forget(const struct work *work) {
    struct client client = open_it(work);
    client_make(&client, "before", "last", put("c", 5, 100), no_change, no_change);
    client_forget(&client, secret(0, work));
    client_make(&client, "after", "before", put("d", 6, 100), no_change, no_change);
    client_expect_all(&client);
    client_close(&client);
}

/*                                                   file  power kills
                                                     SQLite  acknowledges  large           */
const struct workload workloads[] = {
    {"create", NULL, create,                           1, 1, 1, 1, 1, 0, 0, NULL},
    {"commit", prepare_store, commit,                  1, 1, 1, 1, 1, 0, 0, NULL},
    {"large values", prepare_store, large_values,      1, 1, 1, 1, 1, 1, 0, NULL},
    {"merge", prepare_branches, merge,                 1, 1, 1, 1, 0, 0, 0, NULL},
    {"retrieve", prepare_folder, retrieve,             1, 1, 1, 1, 0, 0, 0, NULL},
    {"send", prepare_folder, send,                     1, 1, 1, 1, 0, 0, CALL_RENAME, "folder/versions/"},
    {"repair", prepare_damaged, repair,                1, 1, 1, 1, 0, 1, CALL_RENAME, "store/blobs/"},
    {"edits", prepare_edits, edits,                    1, 1, 1, 1, 1, 0, 0, NULL},
    {"repair a base", prepare_damaged_base, repair_base, 1, 1, 1, 1, 0, 0, 0, NULL},
    {"fold", prepare_segments, fold,                   1, 0, 1, 1, 1, 0, CALL_RENAME, "store/segments/0000"},
    {"delete folded", prepare_folded, delete_folded,   1, 0, 1, 0, 0, 0, CALL_UNLINK, "store/segments/"},
    {"restore", prepare_snapshot, restore,             1, 1, 1, 1, 0, 0, CALL_RENAME, "store/cache/"},
    {"open cached", prepare_cached, open_cached,       1, 1, 1, 1, 0, 0, 0, NULL},
    {"write snapshot", prepare_old_snapshot, write_snapshot, 1, 1, 0, 0, 0, 0, CALL_RENAME, "folder/snapshots/llvs-v1/manifest.json"},
    {"build on others", prepare_store, build_on_others, 1, 1, 1, 1, 1, 0, 0, NULL},
    {"erase", prepare_erasable, erase,                 1, 1, 1, 1, 1, 1, CALL_UNLINK, "store/segments/.erase-"},
    {"forget", prepare_forgettable, forget,            1, 1, 1, 1, 1, 1, CALL_UNLINK, "store/segments/.erase-"},
    {"build on others' large", prepare_store, build_on_others_large, 1, 1, 1, 1, 0, 1, 0, NULL},
};
const int workload_count = (int)(sizeof workloads / sizeof workloads[0]);

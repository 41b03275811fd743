#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "judge.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../C/child.h"
#include "../Faults/files.h"

/* Finds the entries of merges, whose ids the store computed, by a hash of the id. One merge may have several entries. */
struct merges {
    uint32_t *slots;
    uint32_t mask;
};
static uint32_t hash_of(llvs_bytes id) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < id.size; i++) hash = (hash ^ id.data[i]) * 16777619u;
    return hash;
}
static struct merges find_merges(void) {
    struct merges merges = {NULL, 1023};
    while (merges.mask < ledger->count * 2) merges.mask = merges.mask * 2 + 1;
    merges.slots = calloc((size_t)merges.mask + 1, sizeof *merges.slots);
    if (!merges.slots) broken("out of memory");
    for (uint32_t i = 1; i < ledger->count; i++) {
        const struct ledger_entry *entry = &ledger->entries[i];
        if (!entry->is_merge || entry->phase != PHASE_ACKNOWLEDGED) continue;
        uint32_t slot = hash_of(llvs_str(entry->id)) & merges.mask;
        while (merges.slots[slot]) slot = (slot + 1) & merges.mask;
        merges.slots[slot] = i;
    }
    return merges;
}

static int is_predecessor(const llvs_version_info *version, uint32_t entry) {
    const char *id = ledger->entries[entry].id;
    for (uint32_t i = 0; i < version->predecessor_count; i++) {
        if (version->predecessors[i].size == strlen(id) && memcmp(version->predecessors[i].data, id, strlen(id)) == 0) return 1;
    }
    return 0;
}
/* Whether the version has exactly the entry's predecessors. */
static int has_predecessors(const llvs_version_info *version, const struct ledger_entry *entry) {
    uint32_t expected = 0;
    for (int i = 0; i < 2; i++) {
        if (!entry->predecessors[i]) continue;
        expected++;
        if (!is_predecessor(version, entry->predecessors[i])) return 0;
    }
    return version->predecessor_count == expected;
}

static int prevails(const struct ledger_entry *entry, const uint32_t prevailing[KEYS]) {
    for (int key = 0; key < KEYS; key++) {
        if (prevailing[key] == stored_in(entry, key)) continue;
        ledger_fail("at %s the value %s is of v%u and should be of v%u", entry->id, key_name(key), prevailing[key],
                    stored_in(entry, key));
        return 0;
    }
    return 1;
}

/* Checks the values that the version itself stored. */
static void check_stored(llvs_store *store, const struct ledger_entry *entry) {
    uint32_t number = number_of(entry);
    for (int key = 0; key < KEYS && !ledger_has_failed(); key++) {
        llvs_buffer data;
        llvs_error *error;
        if (entry->state[key] != number) continue;
        if (!succeeded("reading a value that a version stored",
                       llvs_store_value(store, llvs_str(key_name(key)), llvs_str(entry->id), &data, NULL, &error), &error))
            return;
        if (!bytes_are_stored(llvs_bytes_make(data.data, data.size), number, key))
            ledger_fail("%s reads wrongly in %s", key_name(key), entry->id);
        llvs_buffer_dispose(&data);
    }
}

/* Checks a merge whose requester was killed before the answer. */
static void check_unacknowledged_merge(const llvs_version_info *version, const uint32_t prevailing[KEYS]) {
    uint32_t state[KEYS];
    for (uint32_t i = 1; i < ledger->count; i++) {
        const struct ledger_entry *entry = &ledger->entries[i];
        const char *wrong;
        if (!entry->is_merge || entry->phase != PHASE_ASKED || !has_predecessors(version, entry)) continue;
        wrong = merged_state(&ledger->entries[entry->predecessors[0]], &ledger->entries[entry->predecessors[1]], prevailing, state);
        if (wrong) ledger_fail("in the merge %.*s %s", (int)version->id.size, (const char *)version->id.data, wrong);
        return;
    }
    ledger_fail("the version %.*s was never saved", (int)version->id.size, (const char *)version->id.data);
}

static void check_version(llvs_store *store, const llvs_version_info *version, const struct merges *merges, uint8_t *is_found,
                          enum strictness strictness) {
    uint32_t number = entry_of_id(version->id), prevailing[KEYS];
    int reads = strictness != JUDGE_HISTORY;
    if (reads && !read_prevailing(store, version->id, prevailing)) return;
    if (number) {
        const struct ledger_entry *entry = &ledger->entries[number];
        is_found[number] = 1;
        if (entry->phase == PHASE_FREE || entry->is_merge || !has_predecessors(version, entry))
            ledger_fail("the version %s exists, and differs from the one that was saved", entry->id);
        if (reads && prevails(entry, prevailing)) check_stored(store, entry);
        if (reads && number % 16 == 0) check_all_values(store, entry);
        return;
    }
    for (uint32_t slot = hash_of(version->id) & merges->mask; merges->slots[slot]; slot = (slot + 1) & merges->mask) {
        const struct ledger_entry *entry = &ledger->entries[merges->slots[slot]];
        if (strlen(entry->id) != version->id.size || memcmp(entry->id, version->id.data, version->id.size) != 0) continue;
        is_found[merges->slots[slot]] = 1;
        number = merges->slots[slot];
        if (!has_predecessors(version, entry)) ledger_fail("the merge %s has other predecessors", entry->id);
        if (reads) prevails(entry, prevailing);
    }
    if (!number && reads) check_unacknowledged_merge(version, prevailing);
}

/* The heads are the versions without successors. */
struct names { char (*ids)[ID_ROOM]; size_t count, room; };
static void add_name(struct names *names, llvs_bytes id) {
    if (id.size >= ID_ROOM) return;
    if (names->count == names->room) {
        names->room = names->room ? names->room * 2 : 1024;
        names->ids = realloc(names->ids, sizeof *names->ids * names->room);
        if (!names->ids) broken("out of memory");
    }
    memset(names->ids[names->count], 0, ID_ROOM);
    memcpy(names->ids[names->count++], id.data, id.size);
}
static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static void check_heads(llvs_store *store, struct names *all, struct names *predecessors) {
    llvs_version_list *heads;
    llvs_error *error;
    size_t expected = 0;
    if (!succeeded("asking for the heads", llvs_store_heads(store, NULL, &heads, &error), &error)) return;
    if (predecessors->count) qsort(predecessors->ids, predecessors->count, ID_ROOM, by_name);
    for (size_t i = 0; i < all->count; i++)
        expected += !predecessors->count || !bsearch(all->ids[i], predecessors->ids, predecessors->count, ID_ROOM, by_name);
    for (size_t i = 0; i < heads->count; i++) {
        llvs_bytes id = heads->items[i]->id;
        char name[ID_ROOM] = "";
        if (id.size < ID_ROOM) memcpy(name, id.data, id.size);
        if (predecessors->count && bsearch(name, predecessors->ids, predecessors->count, ID_ROOM, by_name))
            ledger_fail("%s is called a head, and has a successor", name);
    }
    if (heads->count != expected) ledger_fail("there are %zu heads, and should be %zu", heads->count, expected);
    llvs_version_list_free(heads);
}

static void check_verification(llvs_store *store, enum strictness strictness) {
    llvs_verify_report *report;
    llvs_error *error;
    const llvs_damage *damage;
    if (!succeeded("verifying", llvs_store_verify(store, NULL, &report, &error), &error)) return;
    for (size_t i = 0; (damage = report->damages[i]); i++) {
        /* The record was copied before the file with its large value. The version waits, and a verification reports the missing file.
         */
        if (strictness == JUDGE_WHAT_IS_THERE && report->pending > 0 && strstr((const char *)damage->message.data, "/blobs/")) continue;
        break;
    }
    if (damage)
        ledger_fail("a verification finds damage: %.*s at %llu: %.*s", (int)damage->file.size, (const char *)damage->file.data,
                    (unsigned long long)damage->offset, (int)damage->message.size, (const char *)damage->message.data);
    if (strictness != JUDGE_WHAT_IS_THERE && report->pending > 0)
        ledger_fail("%llu versions wait for others", (unsigned long long)report->pending);
    llvs_verify_report_free(report);
}

/* After compacting until nothing is left to compact, and after another save, the store still has everything. */
static void go_on(const struct place *place) {
    struct worker worker = {place, 0, worker_open(place, 0), 1, 0, 1, 0};
    llvs_version_list *head;
    llvs_error *error;
    if (!worker.store) return;
    if (place->compaction != KEEPS_SEGMENTS) {
        for (int i = 0; i < 4; i++) succeeded("compacting in the end", llvs_store_compact(worker.store, NULL, NULL, &error), &error);
    }
    if (succeeded("asking for a head", llvs_store_heads(worker.store, NULL, &head, &error), &error)) {
        llvs_change change = LLVS_CHANGE_INIT;
        llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
        uint32_t size, base = head->count > 0 ? entry_of_id(head->items[0]->id) : 0;
        if (base) {
            struct ledger_entry *entry = ledger_ask(base, WORLD_ENDS + place->world);
            uint8_t *bytes = stored_bytes(number_of(entry), PRIVATE_KEYS, &size);
            entry->state[PRIVATE_KEYS] = number_of(entry);
            entry->phase = PHASE_ASKED;
            options.id = llvs_str(entry->id);
            change.kind = LLVS_CHANGE_INSERT;
            change.id = llvs_str(key_name(PRIVATE_KEYS));
            change.data = llvs_bytes_make(bytes, size);
            if (succeeded(
                    "making a version in the end",
                    llvs_store_make_version(worker.store, head->items[0]->id, &change, 1, sizeof change, &options, NULL, NULL, &error),
                    &error))
                ledger_acknowledge(entry);
            free(bytes);
        }
        llvs_version_list_free(head);
    }
    succeeded("closing the store in the end", llvs_store_close(worker.store, &error), &error);
    llvs_store_free(worker.store);
}

/* Applies a planted fault to the store or the ledger before they are compared. */
static void plant_it(const struct place *place) {
    struct tree tree;
    struct entry *largest = NULL;
    if (planted == LOSES_A_VERSION) ledger_acknowledge(ledger_ask(0, 0));
    if (planted == MAKES_ONE_UP && ledger->acknowledged > 0) {
        for (uint32_t i = 1; i < ledger->count; i++) {
            if (ledger->entries[i].phase != PHASE_ACKNOWLEDGED || ledger->entries[i].is_merge) continue;
            ledger->entries[i].phase = PHASE_FREE;
            break;
        }
    }
    if (planted != SPOILS_A_BYTE) return;
    tree = read_tree(place->path);
    for (size_t i = 0; i < tree.count; i++)
        if (!strstr(tree.entries[i].path, "cache") && (!largest || tree.entries[i].size > largest->size)) largest = &tree.entries[i];
    char *path = path_of(place->path, largest->path);
    /* Several places: a single one could be unused room of a page of SQLite. */
    for (size_t at = largest->size / 2; at < largest->size; at += largest->size / 16 + 1) largest->bytes[at] ^= 4;
    write_file(path, largest->bytes, largest->size);
    free(path);
    free_tree(&tree);
}

void judge(const struct place *place, enum strictness strictness, uint32_t must) {
    if (strictness != JUDGE_HISTORY) plant_it(place);
    llvs_store *store = worker_open(place, strictness == JUDGE_HISTORY);
    struct merges merges = find_merges();
    struct names all = {NULL, 0, 0}, predecessors = {NULL, 0, 0};
    uint8_t *is_found = calloc(ledger->count, 1);
    llvs_history_cursor *cursor = NULL;
    llvs_version_list *page = NULL;
    llvs_error *error;
    if (!is_found) broken("out of memory");
    if (!store || !succeeded("walking the history", llvs_store_history(store, NULL, NULL, &cursor, &error), &error)) goto done;
    while (!ledger_has_failed() && succeeded("walking the history", llvs_history_cursor_next(cursor, 0, NULL, &page, &error), &error) &&
           page) {
        for (size_t i = 0; i < page->count && !ledger_has_failed(); i++) {
            const llvs_version_info *version = page->items[i];
            add_name(&all, version->id);
            for (uint32_t p = 0; p < version->predecessor_count; p++) add_name(&predecessors, version->predecessors[p]);
            check_version(store, version, &merges, is_found, strictness);
            tally(JUDGED, 1);
        }
        llvs_version_list_free(page);
    }
    llvs_history_cursor_free(cursor);
    for (uint32_t i = 0; i < (strictness == JUDGE_WHAT_IS_THERE ? must : ledger->acknowledged) && !ledger_has_failed(); i++) {
        uint32_t number = ledger->order[i];
        if (number && ledger_sees(place->world, &ledger->entries[number]) && !is_found[number])
            ledger_fail("%s was acknowledged, and is lost", ledger->entries[number].id);
    }
    if (!ledger_has_failed()) check_heads(store, &all, &predecessors);
    if (!ledger_has_failed() && strictness != JUDGE_HISTORY) check_verification(store, strictness);
    if (!ledger_has_failed()) succeeded("closing the store afterwards", llvs_store_close(store, &error), &error);
done:
    llvs_store_free(store);
    free(is_found);
    free(merges.slots);
    free(all.ids);
    free(predecessors.ids);
    if (!ledger_has_failed() && strictness == JUDGE_WHOLE) {
        go_on(place);
        if (!ledger_has_failed()) judge(place, JUDGE_HISTORY, 0);
    }
}

void judge_in_child(const struct place *place, enum strictness strictness, uint32_t must) {
    int status;
    pid_t child = fork();
    if (child < 0) broken("cannot fork");
    if (child == 0) {
        judge(place, strictness, must);
        _exit(0);
    }
    if (wait_for_child(child, 600, &status, NULL) != child) broken("cannot wait");
    if (status != 0)
        ledger_fail("looking at the store afterwards ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

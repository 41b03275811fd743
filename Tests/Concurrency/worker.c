#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../Faults/files.h"
#include "../Faults/random.h"

int succeeded(const char *doing, llvs_status status, llvs_error **error) {
    if (status == LLVS_OK) return 1;
    ledger_fail("%s failed: %s: %s", doing, llvs_status_name(status), llvs_error_message(*error));
    llvs_error_free(*error);
    return 0;
}

/* The last warning of the library in this process. Only the warning names a damage that is otherwise just counted. */
static char last_warning[1024];

static pthread_mutex_t warning_mutex = PTHREAD_MUTEX_INITIALIZER;

static void keep_warning(void *payload, llvs_log_level level, const llvs_bytes *message) {
    (void)payload;
    (void)level;
    pthread_mutex_lock(&warning_mutex);
    snprintf(last_warning, sizeof last_warning, "%.*s", (int)message->size, (const char *)message->data);
    pthread_mutex_unlock(&warning_mutex);
}

static void observe_warnings(void) {
    llvs_observer *observer;
    llvs_error *error;
    succeeded("observing warnings", llvs_log_observe(LLVS_LOG_WARNING, keep_warning, NULL, NULL, &observer, &error), &error);
}

llvs_store *worker_open(const struct place *place, int read_only) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = NULL;
    llvs_error *error;
    pthread_once(&once, observe_warnings);
    options.storage = place->storage;
    options.durability = place->durability;
    options.read_only = (uint32_t)read_only;
    options.memory_budget = 8 << 20; /* small, so that much is read from the medium */
    options.compaction = place->compaction == KEEPS_SEGMENTS ? LLVS_COMPACTION_ON_REQUEST : LLVS_COMPACTION_ALWAYS;
    if (place->compaction == FOLDS_AND_DELETES) options.compaction_grace = 0.001;
    succeeded("opening the store", llvs_store_open(llvs_str(place->path), &options, &store, &error), &error);
    return store;
}

/* ---- Saving and merging ---- */

static void commit(struct worker *worker) {
    llvs_change changes[5];
    uint8_t *bytes[5];
    size_t count = 0, shared = random_below(&worker->random, 4);
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_error *error;
    struct ledger_entry *entry = ledger_ask(worker->current, worker->place->world);
    uint32_t number = number_of(entry), touched = 0;
    llvs_status status;
    for (size_t i = 0; i <= shared; i++) {
        int key = i == 0 ? worker->number : PRIVATE_KEYS + (int)random_below(&worker->random, SHARED_KEYS);
        int removes = random_below(&worker->random, 10) == 0;
        llvs_change change = LLVS_CHANGE_INIT;
        if (i > 0 && touched >> (key - PRIVATE_KEYS) & 1) continue;
        if (i > 0) touched |= 1u << (key - PRIVATE_KEYS);
        change.id = llvs_str(key_name(key));
        bytes[count] = NULL;
        if (removes) {
            change.kind = LLVS_CHANGE_REMOVE;
            if (stored_in(entry, key)) entry->state[key] = number | REMOVED;
        } else {
            uint32_t size;
            change.kind = LLVS_CHANGE_UPDATE;
            bytes[count] = stored_bytes(number, key, &size);
            change.data = llvs_bytes_make(bytes[count], size);
            entry->state[key] = number;
        }
        changes[count++] = change;
    }
    __atomic_store_n(&entry->phase, PHASE_ASKED, __ATOMIC_SEQ_CST);
    options.id = llvs_str(entry->id);
    status = llvs_store_make_version(worker->store, worker->current ? llvs_str(ledger->entries[worker->current].id) : LLVS_NONE, changes,
                                     count, sizeof changes[0], &options, NULL, NULL, &error);
    for (size_t i = 0; i < count; i++) free(bytes[i]);
    if (!succeeded("making a version", status, &error)) return;
    ledger_acknowledge(entry);
    worker->current = number;
    tally(COMMITS, 1);
}

int read_prevailing(llvs_store *store, llvs_bytes version, uint32_t prevailing[KEYS]) {
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_list *values;
    llvs_error *error;
    memset(prevailing, 0, sizeof prevailing[0] * KEYS);
    range.without_data = 1;
    if (!succeeded("enumerating references", llvs_store_enumerate(store, version, &range, &values, &error), &error)) return 0;
    for (size_t i = 0; values && i < values->count; i++) {
        const llvs_value_info *value = values->items[i];
        int key = key_of_id(value->id);
        if (key == KEYS)
            ledger_fail("at %.*s the value %.*s exists, which was never stored", (int)version.size, (const char *)version.data,
                        (int)value->id.size, (const char *)value->id.data);
        else if ((prevailing[key] = entry_of_id(value->stored_version)) == 0)
            ledger_fail("at %.*s the value %s is of %.*s, a version that was never made", (int)version.size, (const char *)version.data,
                        key_name(key), (int)value->stored_version.size, (const char *)value->stored_version.data);
    }
    llvs_value_list_free(values);
    return !ledger_has_failed();
}

/* Merges the worker's version with another one. The worker continues from the result. */
static void merge(struct worker *worker, uint32_t other) {
    const struct ledger_entry *ours = &ledger->entries[worker->current], *theirs = &ledger->entries[other];
    struct ledger_entry *entry;
    uint32_t prevailing[KEYS];
    llvs_version_list *version;
    const llvs_version_info *info;
    llvs_error *error;
    const char *wrong;
    if (!worker->current || !other || other == worker->current) return;
    entry = ledger_ask(worker->current, worker->place->world);
    entry->is_merge = 1;
    entry->predecessors[1] = other;
    entry->id[0] = 0;
    __atomic_store_n(&entry->phase, PHASE_ASKED, __ATOMIC_SEQ_CST);
    if (!succeeded("merging", llvs_store_merge(worker->store, llvs_str(ours->id), llvs_str(theirs->id), NULL, NULL, &version, &error),
                   &error))
        return;
    info = version->items[0];
    if (!info) {
        ledger_fail("a merge of %s and %s gives nothing", ours->id, theirs->id);
    } else if (read_prevailing(worker->store, info->id, prevailing)) {
        /* A planted fault: our side has won everywhere. */
        if (planted == MERGES_WRONGLY) for (int key = 0; key < KEYS; key++) prevailing[key] = stored_in(ours, key);
        int is_ours = info->id.size == strlen(ours->id) && memcmp(info->id.data, ours->id, info->id.size) == 0;
        int is_theirs = info->id.size == strlen(theirs->id) && memcmp(info->id.data, theirs->id, info->id.size) == 0;
        if (is_ours || is_theirs) {
            /* One version descends from the other. The entry remains a request without a result. */
            if (is_theirs) worker->current = other;
        } else if (info->id.size >= ID_ROOM || info->predecessor_count != 2) {
            ledger_fail("the merge of %s and %s is a version %.*s with %u predecessors", ours->id, theirs->id, (int)info->id.size,
                        (const char *)info->id.data, info->predecessor_count);
        } else if ((wrong = merged_state(ours, theirs, prevailing, entry->state))) {
            ledger_fail("in the merge %.*s of %s and %s %s", (int)info->id.size, (const char *)info->id.data, ours->id, theirs->id, wrong);
        } else {
            memcpy(entry->id, info->id.data, info->id.size);
            entry->id[info->id.size] = 0;
            ledger_acknowledge(entry);
            worker->current = number_of(entry);
        }
    }
    llvs_version_list_free(version);
    tally(MERGES, 1);
}

/* Merges the newest head, even if it was not acknowledged to its maker yet. */
static void merge_head(struct worker *worker) {
    llvs_version_list *head;
    llvs_error *error;
    if (!succeeded("asking for the most recent head", llvs_store_heads(worker->store, NULL, &head, &error), &error)) return;
    if (head->count > 0) merge(worker, entry_of_id(head->items[0]->id));
    llvs_version_list_free(head);
}

/* ---- Reading ---- */

static void wrong_value(const char *how, const struct ledger_entry *entry, int key, llvs_bytes stored_version, llvs_bytes data) {
    ledger_fail("%s at %s: %s should be of v%u (0: none), and has %zu bytes of \"%.*s\"", how, entry->id, key_name(key),
                stored_in(entry, key), data.size, (int)stored_version.size, stored_version.data ? (const char *)stored_version.data : "");
}
static int check_value(const char *how, const struct ledger_entry *entry, int key, llvs_bytes stored_version, llvs_bytes data,
                       int is_present) {
    uint32_t expected = stored_in(entry, key);
    if (planted == READS_SOMETHING_ELSE && is_present) data.size--;
    int is_right =
        !is_present ? expected == 0 : expected != 0 && entry_of_id(stored_version) == expected && bytes_are_stored(data, expected, key);
    if (!is_right) wrong_value(how, entry, key, stored_version, data);
    return is_right;
}

static void read_one(struct worker *worker, const struct ledger_entry *entry, int key) {
    llvs_version_id stored;
    llvs_error *error;
    if (random_below(&worker->random, 2)) {
        llvs_buffer data;
        if (!succeeded("reading a value",
                       llvs_store_value(worker->store, llvs_str(key_name(key)), llvs_str(entry->id), &data, &stored, &error), &error))
            return;
        check_value("a read", entry, key, llvs_id(&stored), llvs_bytes_make(data.data, data.size), data.data != NULL);
        llvs_buffer_dispose(&data);
    } else {
        uint8_t small[200], *room = small;
        size_t size, capacity = sizeof small;
        for (;;) {
            llvs_status status =
                llvs_store_read_value(worker->store, llvs_str(key_name(key)), llvs_str(entry->id), room, capacity, &size, &stored, &error);
            if (!succeeded("reading a value into memory", status, &error)) break;
            if (size == SIZE_MAX || size <= capacity) {
                check_value("a read into memory", entry, key, llvs_id(&stored), llvs_bytes_make(room, size), size != SIZE_MAX);
                break;
            }
            if (room != small) free(room);
            capacity = size;
            if (!(room = malloc(capacity))) broken("out of memory");
        }
        if (room != small) free(room);
    }
}

static void read_some(struct worker *worker, const struct ledger_entry *entry) {
    enum { MOST = 6 };
    llvs_bytes ids[MOST];
    int keys[MOST];
    llvs_value_list *values;
    llvs_error *error;
    for (int i = 0; i < MOST; i++) {
        keys[i] = (int)random_below(&worker->random, KEYS);
        ids[i] = llvs_str(key_name(keys[i]));
    }
    if (!succeeded("reading values", llvs_store_values(worker->store, ids, MOST, llvs_str(entry->id), &values, &error), &error)) return;
    for (int i = 0; i < MOST; i++) {
        const llvs_value_info *value = values->items[(size_t)i];
        check_value("a read of several", entry, keys[i], value->stored_version, value->data, value->present == 1);
    }
    llvs_value_list_free(values);
}

int check_all_values(llvs_store *store, const struct ledger_entry *entry) {
    llvs_value_block *block;
    llvs_error *error;
    int is_seen[KEYS] = {0};
    if (!succeeded("enumerating", llvs_store_enumerate_block(store, llvs_str(entry->id), NULL, &block, &error), &error)) return 0;
    const llvs_value_block *info = block;
    const uint8_t *id = info ? info->ids.data : NULL, *data = info ? info->data.data : NULL, *version = info ? info->versions.data : NULL;
    const char **versions = NULL;
    if (info) {
        versions = calloc((size_t)info->version_count + 1, sizeof *versions);
        if (!versions) broken("out of memory");
        for (uint32_t i = 0; i < info->version_count; i++) {
            versions[i] = (const char *)version;
            version += strlen((const char *)version) + 1;
        }
    }
    for (size_t i = 0; info && i < info->count && !ledger_has_failed(); i++) {
        int key = key_of_id(llvs_bytes_make(id, (size_t)info->id_sizes[i]));
        llvs_bytes bytes = llvs_bytes_make(data, (size_t)info->data_sizes[i]);
        if (key == KEYS) {
            ledger_fail("at %s a value exists that was never stored", entry->id);
        } else {
            is_seen[key] = 1;
            check_value("an enumeration", entry, key, llvs_str(versions[info->version_indexes[i]]), bytes, 1);
        }
        id += info->id_sizes[i] + 1;
        data += info->data_sizes[i];
    }
    for (int key = 0; key < KEYS; key++)
        if (!is_seen[key] && !ledger_has_failed()) check_value("an enumeration", entry, key, LLVS_NONE, LLVS_NONE, 0);
    free(versions);
    llvs_value_block_free(block);
    return !ledger_has_failed();
}

static void read_version(struct worker *worker, const struct ledger_entry *entry) {
    llvs_version_list *version;
    llvs_error *error;
    if (!succeeded("asking for a version", llvs_store_version(worker->store, llvs_str(entry->id), &version, &error), &error)) return;
    const llvs_version_info *info = version ? version->items[0] : NULL;
    uint32_t count = (entry->predecessors[0] != 0) + (entry->predecessors[1] != 0);
    if (!info) ledger_fail("%s was acknowledged, and another handle does not know it", entry->id);
    else if (info->predecessor_count != count) ledger_fail("%s has %u predecessors", entry->id, info->predecessor_count);
    llvs_version_list_free(version);
}

/* The differences lead from one state to the other. */
static void read_differences(struct worker *worker, const struct ledger_entry *from, const struct ledger_entry *to) {
    llvs_change_cursor *cursor;
    llvs_change_list *page;
    llvs_error *error;
    uint32_t state[KEYS];
    for (int key = 0; key < KEYS; key++) state[key] = stored_in(from, key);
    if (!succeeded("asking for differences",
                   llvs_store_differences(worker->store, llvs_str(from->id), llvs_str(to->id), NULL, NULL, &cursor, &error), &error))
        return;
    while (succeeded("reading differences", llvs_change_cursor_next(cursor, 0, 0, &page, &error), &error) && page) {
        for (size_t i = 0; i < page->count; i++) {
            const llvs_change_info *change = page->items[i];
            int key = key_of_id(change->id);
            if (key == KEYS) ledger_fail("%s and %s differ in a value that was never stored", from->id, to->id);
            else state[key] = change->kind == LLVS_CHANGE_REMOVE ? 0 : entry_of_id(change->stored_version);
        }
        llvs_change_list_free(page);
    }
    llvs_change_cursor_free(cursor);
    for (int key = 0; key < KEYS; key++)
        if (state[key] != stored_in(to, key))
            ledger_fail("the differences from %s to %s lead to v%u for %s, which is v%u", from->id, to->id, state[key], key_name(key),
                        stored_in(to, key));
}

static void read_something(struct worker *worker) {
    uint32_t number = ledger_pick(&worker->random, worker->place->world), second = ledger_pick(&worker->random, worker->place->world);
    const struct ledger_entry *entry = &ledger->entries[number];
    if (!number || !second) return;
    switch (random_below(&worker->random, 12)) {
    case 0: check_all_values(worker->store, entry); break;
    case 1: read_differences(worker, entry, &ledger->entries[second]); break;
    case 2: read_version(worker, entry); break;
    case 3: case 4: read_some(worker, entry); break;
    default: read_one(worker, entry, (int)random_below(&worker->random, KEYS)); break;
    }
    tally(READS, 1);
}

/* ---- Reading everything ---- */

/* After a reload the history has everything that was acknowledged before, by any worker. */
static void reload(struct worker *worker, int walks) {
    uint32_t count = __atomic_load_n(&ledger->count, __ATOMIC_SEQ_CST);
    uint8_t *must = calloc(count, 1);
    uint64_t commits = 0;
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_history_cursor *cursor = NULL;
    llvs_version_list *page;
    llvs_error *error;
    if (!must) broken("out of memory");
    for (uint32_t i = 1; i < count; i++) {
        const struct ledger_entry *entry = &ledger->entries[i];
        must[i] = __atomic_load_n(&entry->phase, __ATOMIC_SEQ_CST) == PHASE_ACKNOWLEDGED && !entry->is_merge &&
                  ledger_sees(worker->place->world, entry);
        commits += must[i];
    }
    if (!succeeded("a reload", llvs_store_reload(worker->store, NULL, NULL, &error), &error)) goto done;
    if (!succeeded("asking for counts", llvs_store_statistics(worker->store, NULL, &statistics, &error), &error)) goto done;
    if (statistics.versions < commits)
        ledger_fail("after a reload there are %llu versions, and %llu were acknowledged before", (unsigned long long)statistics.versions,
                    (unsigned long long)commits);
    if (statistics.damaged > 0) {
        pthread_mutex_lock(&warning_mutex);
        ledger_fail("%llu damaged places were met; the last warning: %s", (unsigned long long)statistics.damaged, last_warning);
        pthread_mutex_unlock(&warning_mutex);
    }
    if (walks) {
        if (!succeeded("walking the history", llvs_store_history(worker->store, NULL, NULL, &cursor, &error), &error)) goto done;
        while (succeeded("walking the history", llvs_history_cursor_next(cursor, 0, NULL, &page, &error), &error) && page) {
            for (size_t i = 0; i < page->count; i++) {
                uint32_t number = entry_of_id(page->items[i]->id);
                if (number < count) must[number] = 0;
            }
            llvs_version_list_free(page);
        }
        llvs_history_cursor_free(cursor);
        for (uint32_t i = 1; i < count; i++)
            if (must[i]) ledger_fail("v%u was acknowledged before a reload, and is not in the history after it", i);
    }
    tally(RELOADS, 1);
done:
    free(must);
}

static int is_missing_blob(const llvs_damage *damage) {
    static const char end[] = ".blob failed: No such file";
    for (size_t i = 0; i + sizeof end - 1 <= damage->message.size; i++)
        if (memcmp((const char *)damage->message.data + i, end, sizeof end - 1) == 0) return 1;
    return 0;
}

static void verify(struct worker *worker) {
    llvs_verify_report *report;
    llvs_error *error;
    if (!succeeded("verifying", llvs_store_verify(worker->store, NULL, &report, &error), &error)) return;
    const llvs_damage *damage;
    for (size_t i = 0; (damage = report->damages[i]); i++) {
        /* A copy of a store that was being written may lack a large value until the two are united: docs/operations.md. */
        if (worker->place->world && is_missing_blob(damage)) continue;
        ledger_fail("a verification finds damage: %.*s at %llu: %.*s", (int)damage->file.size, (const char *)damage->file.data,
                    (unsigned long long)damage->offset, (int)damage->message.size, (const char *)damage->message.data);
        break;
    }
    llvs_verify_report_free(report);
    tally(VERIFICATIONS, 1);
}

static void compact(struct worker *worker) {
    llvs_compaction_report report = LLVS_COMPACTION_REPORT_INIT;
    llvs_error *error;
    if (!succeeded("compacting", llvs_store_compact(worker->store, NULL, &report, &error), &error)) return;
    tally(COMPACTIONS, 1);
    tally(FOLDED, (long)report.folded);
    tally(DELETED, (long)report.deleted);
    llvs_buffer_dispose(&report.sync_marker);
}

static void reopen(struct worker *worker) {
    llvs_error *error;
    if (random_below(&worker->random, 4) && !succeeded("closing the store", llvs_store_close(worker->store, &error), &error)) return;
    llvs_store_free(worker->store);
    worker->store = worker_open(worker->place, 0);
    tally(OPENINGS, 1);
}

void worker_run(struct worker *worker) {
    for (; worker->operations > 0 && worker->store && !ledger_has_failed(); worker->operations--) {
        uint64_t draw = random_below(&worker->random, 1000);
        if (planted == TRAPS && worker->operations == 3) {
            signal(SIGABRT, SIG_DFL); /* without a message */
            abort();
        }
        if (planted == LOOPS && worker->operations == 3) for (;;) __asm__ volatile("");
        if (draw < 430) commit(worker);
        else if (draw < 860) read_something(worker);
        else if (draw < 930) merge(worker, ledger_pick(&worker->random, worker->place->world));
        else if (draw < 950) merge_head(worker);
        else if (draw < 970) reload(worker, draw < 953);
        else if (draw < 972) verify(worker);
        else if (draw < 990 && worker->owns_store) reopen(worker);
        else if (draw < 995 && worker->place->compaction != KEEPS_SEGMENTS) compact(worker);
        else commit(worker);
        /* Relaxed: with a stronger order, ThreadSanitizer would mistake this for the synchronization between readers and writers of a
         * store. */
        __atomic_add_fetch(&ledger->operations, 1, __ATOMIC_RELAXED);
    }
}

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "judge.h"

#include "book.h"
#include "../C/child.h"
#include "../C/folder_snapshots.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const outcome_names[OUTCOMES] = { "damages",
                                              "harmless",
                                              "told, nothing lost",
                                              "lost and told",
                                              "earlier states",
                                              "refused",
                                              "versions that could not be read",
                                              "of these named",
                                              "others that waited for them",
                                              "stores worked on",
                                              "salvages",
                                              "versions salvaged as they were",
                                              "versions made",
                                              "versions rescued that could not be read",
                                              "folders sent to again" };
const char *const plant_names[PLANTS] = { "nothing",
                                          "a library that reads wrong bytes",
                                          "a library that tells nothing of what is lost",
                                          "a library that loses a version",
                                          "a library that salvages less than can be read",
                                          "a library that opens no damaged store",
                                          "a library that traps",
                                          "a library that loops",
                                          "a library that hangs",
                                          "a library that takes all memory" };
enum plant plant;

long *outcomes;
void outcome(enum outcome which, long by) { __atomic_add_fetch(&outcomes[which], by, __ATOMIC_RELAXED); }

static char *text;
static size_t text_size;
static int fails(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int fails(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!text[0]) vsnprintf(text, text_size, format, arguments);
    va_end(arguments);
    return 1;
}
static int says_damaged(llvs_status status) {
    return status == LLVS_ERROR_DAMAGED || status == LLVS_ERROR_IO || status == LLVS_ERROR_NOT_FOUND;
}

static llvs_status open_store(const char *path, llvs_storage_kind storage, int read_only, llvs_store **store, llvs_error **error) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    options.storage = storage;
    options.read_only = read_only ? 1 : 0;
    options.durability = LLVS_DURABILITY_NORMAL;
    return llvs_store_open(llvs_str(path), &options, store, error);
}

/* ---- The versions that exist ---- */

enum { MISSING, UNREADABLE, WHOLE };
/* Finds out for each version whether the store has it, and reads it. */
static int read_all(const struct truth *truth, llvs_store *store, char *there, size_t *count) {
    llvs_error *error;
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_status status;
    *count = 0;
    for (size_t i = 0; i < truth->count; i++) {
        const struct fact *fact = &truth->facts[i];
        llvs_version_list *list = NULL;
        uint64_t state;
        there[i] = MISSING;
        status = llvs_store_version(store, llvs_str(fact->id), &list, &error);
        if (plant == LOSES_A_VERSION && i == 1) {
            llvs_version_list_free(list);
            list = NULL;
        }
        /* A planted fault: a lost version is read as if it existed. */
        int is_planted = plant == READS_WRONG_BYTES && (status != LLVS_OK || !list);
        if (status == LLVS_OK && !list && !is_planted) continue;
        ++*count;
        if (status == LLVS_OK && !is_planted && !is_sampled(i, truth->count)) {
            there[i] = WHOLE;
            llvs_version_list_free(list);
            continue;
        }
        there[i] = UNREADABLE;
        if (status != LLVS_OK && !is_planted) {
            if (!says_damaged(status)) return fails("asking for %s: %s", fact->id, llvs_error_message(error));
            llvs_error_free(error);
            continue;
        }
        const llvs_version_info *version = list ? list->items[0] : NULL;
        int same = is_planted || (version->predecessor_count == fact->predecessor_count && version->timestamp == fact->timestamp &&
                                  metadata_digest(version) == fact->metadata);
        for (uint32_t p = 0; !is_planted && same && p < fact->predecessor_count; p++)
            same = strcmp((const char *)version->predecessors[p].data, fact->predecessors[p]) == 0;
        llvs_version_list_free(list);
        if (!same) return fails("%s has other predecessors, another time or other metadata", fact->id);
        if (!is_planted) status = read_state(store, llvs_str(fact->id), &state, NULL, NULL, &error);
        if (is_planted || (plant == READS_WRONG_BYTES && status != LLVS_OK)) status = LLVS_OK, state = ~fact->state;
        if (status != LLVS_OK) {
            if (!says_damaged(status)) return fails("reading %s: %s", fact->id, llvs_error_message(error));
            llvs_error_free(error);
        } else if (state != fact->state) {
            return fails("%s shows another state than it had", fact->id);
        } else {
            there[i] = WHOLE;
        }
    }
    status = llvs_store_statistics(store, NULL, &statistics, &error);
    if (status != LLVS_OK) return fails("statistics: %s", llvs_error_message(error));
    if (statistics.versions < *count)
        return fails("%zu versions are there, and only %llu are counted", *count, (unsigned long long)statistics.versions);
    return 0;
}

/* The heads are the existing versions without an existing successor. */
static int check_heads(const struct truth *truth, llvs_store *store, const char *there, const char *added) {
    llvs_version_list *heads;
    llvs_error *error;
    size_t expected = 0, listed;
    if (llvs_store_heads(store, NULL, &heads, &error) != LLVS_OK) {
        int told = says_damaged(llvs_error_code(error));
        if (!told) fails("heads: %s", llvs_error_message(error));
        llvs_error_free(error);
        return !told;
    }
    char *built = calloc(truth->count + 1, 1);
    if (!built) broken("out of memory");
    for (size_t i = 0; i < truth->count; i++) {
        if (there[i] == MISSING) continue;
        for (uint32_t p = 0; p < truth->facts[i].predecessor_count; p++) {
            const struct fact *predecessor = truth_of(truth, llvs_str(truth->facts[i].predecessors[p]));
            if (!predecessor || there[predecessor - truth->facts] == MISSING)
                fails("the store has %s without its predecessor", truth->facts[i].id);
            else built[predecessor - truth->facts] = 1;
        }
    }
    for (size_t i = 0; i < truth->count; i++) expected += there[i] != MISSING && !built[i];
    listed = heads->count;
    for (size_t h = 0; h < heads->count; h++) {
        llvs_bytes id = heads->items[h]->id;
        const struct fact *fact = truth_of(truth, id);
        if (added && !fact) {
            listed--;
            continue;
        }
        if (!fact || there[fact - truth->facts] == MISSING || built[fact - truth->facts])
            fails("%.*s is no head", (int)id.size, (const char *)id.data);
    }
    /* An added version may have some of the heads as predecessors. */
    if (!text[0] && (added ? listed > expected : listed != expected)) fails("%zu heads instead of %zu", listed, expected);
    llvs_version_list_free(heads);
    free(built);
    return text[0] != 0;
}

/* ---- Stores ---- */

static void note_value(void *payload, uint64_t pair) {
    const struct truth *truth = payload;
    if (!is_a_value(truth, pair)) fails("a value was made up");
}

/* Checks that a salvage reports every version that it does not bring, and brings nothing else. `readable`: the versions that it must
 * bring at least. */
static int check_salvage(const struct subject *subject, const char *folder, const char *path, const char *readable, int earlier) {
    const struct truth *truth = &subject->truth;
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT, target_options = LLVS_STORE_OPTIONS_INIT;
    llvs_salvage_report *report = NULL;
    llvs_verify_report *verified;
    llvs_store *store;
    llvs_error *error;
    char *target = path_of(folder, "salvaged"), *there = calloc(truth->count + 1, 1);
    size_t count, unnamed = 0, made;
    options.storage = subject->storage;
    /* Salvage from any kind of storage into a file store. */
    llvs_status status = llvs_store_salvage(llvs_str(path), &options, llvs_str(target), &target_options, NULL, &report, &error);
    if (!there) broken("out of memory");
    if (status != LLVS_OK) {
        /* A salvage fails only if a damaged marker looks like one of a newer format. */
        if (status != LLVS_ERROR_NEWER_FORMAT || subject->storage != LLVS_STORAGE_FILE) fails("salvaging: %s", llvs_error_message(error));
        llvs_error_free(error);
        goto done;
    }
    outcome(SALVAGES, 1);
    if (open_store(target, LLVS_STORAGE_FILE, 1, &store, &error) != LLVS_OK) {
        fails("opening the salvaged store: %s", llvs_error_message(error));
        goto done;
    }
    made = report->made_count;
    read_all(truth, store, there, &count);
    if (plant == SALVAGES_TOO_LITTLE) there[truth->count - 1] = MISSING;
    size_t told = plant == TELLS_NOTHING ? 0 : report->damage_count;
    for (size_t i = 0; i < told; i++) {
        const llvs_damage *damage = report->damages[i];
        unnamed += damage->lost == LLVS_LOSS_UNFINISHED || (damage->lost == LLVS_LOSS_VERSION && damage->version.size == 0);
        if (damage->file.size == 0 || damage->message.size == 0) fails("a damage names no file");
    }
    for (size_t i = 0; i < truth->count && !text[0]; i++) {
        if (there[i] == UNREADABLE) fails("%s was salvaged and cannot be read", truth->facts[i].id);
        if (there[i] == WHOLE) {
            outcome(SALVAGED_VERSIONS, 1);
            if (readable[i] == MISSING) outcome(RESCUED, 1);
        }
    }
    /*
     * A version that could be read with all its ancestors was salvaged. A version that was not salvaged is reported, or is pending for a
     * reported one.
     */
    for (size_t i = 0; i < truth->count && !text[0]; i++) {
        int ancestors = 1, named = 0;
        if (there[i] == WHOLE) continue;
        for (uint32_t p = 0; p < truth->facts[i].predecessor_count; p++) {
            const struct fact *predecessor = truth_of(truth, llvs_str(truth->facts[i].predecessors[p]));
            ancestors = ancestors && there[predecessor - truth->facts] == WHOLE;
        }
        if (!ancestors) continue;
        for (size_t d = 0; d < told; d++) {
            const llvs_damage *damage = report->damages[d];
            named = named || (damage->version.size == strlen(truth->facts[i].id) &&
                              memcmp(damage->version.data, truth->facts[i].id, damage->version.size) == 0);
        }
        if (!named && unnamed == 0 && !earlier) fails("%s was not salvaged, and is not reported", truth->facts[i].id);
        if (readable[i] == WHOLE && !named) fails("%s could be read, was not salvaged, and is not named", truth->facts[i].id);
    }
    check_heads(truth, store, there, "those made");
    for (size_t i = 0; i < made && !text[0]; i++) {
        const llvs_salvaged *one = report->made[i];
        const struct fact *original = truth_of(truth, one->original);
        uint64_t state;
        outcome(MADE, 1);
        if (!original) fails("a version was made from one that never existed");
        else if (there[original - truth->facts] == WHOLE) fails("a version was made from one that could be read");
        else if (read_state(store, one->version, &state, note_value, (void *)truth, &error) != LLVS_OK)
            fails("reading a version that was made: %s", llvs_error_message(error));
        else if (one->is_complete && state != original->state)
            fails("a version made from %s is reported as complete, and is not", original->id);
    }
    if (!text[0] && llvs_store_verify(store, NULL, &verified, &error) != LLVS_OK) {
        fails("verifying the salvaged store: %s", llvs_error_message(error));
    } else if (!text[0]) {
        if (verified->damage_count > 0) fails("the salvaged store is damaged: %s", (const char *)verified->damages[0]->message.data);
        if (verified->pending != report->waiting) fails("%llu versions wait in the salvaged store", (unsigned long long)verified->pending);
        if (verified->versions != report->versions + report->waiting + made && made < 1) fails("the report miscounts");
        llvs_verify_report_free(verified);
    }
    llvs_store_free(store);
    llvs_salvage_report_free(report);
done:
    remove_tree(target);
    free(target);
    free(there);
    return text[0] != 0;
}

/* Everything that existed remains, and an added version exists too. */
static int check_work(const struct subject *subject, const char *path, const char *before) {
    const struct truth *truth = &subject->truth;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_version_list *version = NULL, *head = NULL;
    llvs_store *store;
    llvs_error *error;
    llvs_buffer value = {NULL, 0};
    char *there = calloc(truth->count + 1, 1);
    size_t count;
    if (!there) broken("out of memory");
    if (open_store(path, subject->storage, 0, &store, &error) != LLVS_OK) {
        /* Reading must work. A database with damaged pages may refuse writes. */
        if (subject->storage == LLVS_STORAGE_FILE) fails("opening for work: %s", llvs_error_message(error));
        llvs_error_free(error);
        free(there);
        return text[0] != 0;
    }
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = llvs_str("added");
    change.data = llvs_str("later");
    options.id = llvs_str("ADDED");
    if (llvs_store_heads(store, NULL, &head, &error) != LLVS_OK) llvs_error_free(error), head = NULL;
    llvs_status status = llvs_store_make_version(store, head && head->count > 0 ? head->items[0]->id : LLVS_NONE, &change, 1, sizeof change,
                                                 &options, NULL, NULL, &error);
    llvs_version_list_free(head);
    int added = status == LLVS_OK;
    if (!added) {
        if (subject->storage == LLVS_STORAGE_FILE && !says_damaged(status)) fails("adding a version: %s", llvs_error_message(error));
        llvs_error_free(error);
    }
    if (llvs_store_close(store, &error) != LLVS_OK) {
        if (subject->storage == LLVS_STORAGE_FILE) fails("closing: %s", llvs_error_message(error));
        llvs_error_free(error);
    }
    llvs_store_free(store);
    if (!added || text[0]) {
        free(there);
        return text[0] != 0;
    }
    outcome(WORKED_ON, 1);
    if (open_store(path, subject->storage, 1, &store, &error) != LLVS_OK) {
        free(there);
        return fails("opening after work: %s", llvs_error_message(error));
    }
    status = llvs_store_version(store, llvs_str("ADDED"), &version, &error);
    if (status != LLVS_OK || !version) fails("the version that was added is not there");
    else if (llvs_store_value(store, llvs_str("added"), llvs_str("ADDED"), &value, NULL, &error) != LLVS_OK || value.size != 5)
        fails("the version that was added cannot be read");
    llvs_buffer_dispose(&value);
    llvs_version_list_free(version);
    read_all(truth, store, there, &count);
    for (size_t i = 0; i < truth->count; i++)
        if (there[i] < before[i]) fails("%s was there before a version was added", truth->facts[i].id);
    llvs_store_free(store);
    free(there);
    return text[0] != 0;
}

static int judge_store(const struct subject *subject, const char *folder, uint64_t turn, int earlier) {
    const struct truth *truth = &subject->truth;
    llvs_store *store;
    llvs_error *error;
    llvs_verify_report *report;
    char *path = path_of(folder, "store"), *there = calloc(truth->count + 1, 1);
    size_t count, whole = 0;
    if (!there) broken("out of memory");
    llvs_status status = open_store(path, subject->storage, 1, &store, &error);
    if (status != LLVS_OK && plant == REFUSES_TO_OPEN) status = LLVS_ERROR_INTERNAL;
    if (status != LLVS_OK) {
        /* A file store opens, unless its marker seems to be of a newer format. SQLite decides whether a database opens. */
        int may = status == LLVS_ERROR_NEWER_FORMAT ||
                  (subject->storage == LLVS_STORAGE_SQLITE &&
                   (status == LLVS_ERROR_DAMAGED || status == LLVS_ERROR_NOT_A_STORE || status == LLVS_ERROR_IO));
        if (!may) fails("opening: %s", llvs_error_message(error));
        llvs_error_free(error);
        outcome(REFUSED, 1);
        if (may) check_salvage(subject, folder, path, there, earlier);
        goto done;
    }
    if (read_all(truth, store, there, &count) || check_heads(truth, store, there, NULL)) goto closing;
    for (size_t i = 0; i < truth->count; i++) whole += there[i] == WHOLE;
    status = llvs_store_verify(store, NULL, &report, &error);
    if (status != LLVS_OK) {
        fails("verifying: %s", llvs_error_message(error));
        llvs_error_free(error);
        goto closing;
    }
    size_t damages = report->damage_count, unfinished = report->unfinished_count;
    uint64_t pending = report->pending;
    if (plant == TELLS_NOTHING) damages = unfinished = 0, pending = 0;
    int told = damages + unfinished + (pending > 0) > 0;
    if (whole < truth->count && !told && earlier && whole == count) outcome(EARLIER, 1);
    else if (whole < truth->count && !told) fails("verify says that all is well, and %zu of %zu versions can be read", whole, truth->count);
    if (subject->caches_only && whole < truth->count) fails("%zu of %zu versions can be read without the caches", whole, truth->count);
    for (size_t i = 0; i < truth->count && whole < truth->count && !text[0]; i++) {
        int named = 0, waits = 0;
        if (there[i] == WHOLE) continue;
        for (uint32_t p = 0; p < truth->facts[i].predecessor_count; p++) {
            const struct fact *predecessor = truth_of(truth, llvs_str(truth->facts[i].predecessors[p]));
            waits = waits || there[predecessor - truth->facts] == MISSING;
        }
        if (waits) {
            outcome(VERSIONS_WAITING, 1);
            continue;
        }
        outcome(VERSIONS_LOST, 1);
        for (size_t d = 0; d < damages; d++) {
            const llvs_damage *damage = report->damages[d];
            named = named || (damage->version.size == strlen(truth->facts[i].id) &&
                              memcmp(damage->version.data, truth->facts[i].id, damage->version.size) == 0);
        }
        if (named) outcome(VERSIONS_NAMED, 1);
    }
    if (whole == truth->count || told) outcome(whole < truth->count ? LOST : told ? TOLD : HARMLESS, 1);
    llvs_verify_report_free(report);
    llvs_store_free(store);
    if (text[0]) goto done;
    if (turn % 3 == 0 || whole < truth->count) {
        if (check_salvage(subject, folder, path, there, earlier)) goto done;
    }
    if (turn % 5 == 0) check_work(subject, path, there);
    goto done;
closing:
    llvs_store_free(store);
done:
    free(path);
    free(there);
    return text[0] != 0;
}

/* ---- Exchange folders and snapshots ---- */

static llvs_exchange_result *exchanged(llvs_store *store, const char *folder, int sends) {
    llvs_exchange *exchange;
    llvs_exchange_result *result = NULL;
    llvs_error *error;
    char *path = path_of(folder, "shared"), url[4200];
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    options.durability = LLVS_DURABILITY_NORMAL;
    snprintf(url, sizeof url, "file://%s", path);
    free(path);
    if (llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error) != LLVS_OK) {
        fails("opening the exchange: %s", llvs_error_message(error));
        return NULL;
    }
    if ((sends ? llvs_exchange_send : llvs_exchange_retrieve)(exchange, NULL, &result, &error) != LLVS_OK)
        fails("%s: %s", sends ? "sending" : "retrieving", llvs_error_message(error));
    llvs_exchange_free(exchange);
    return result;
}

/* Retrieves into a new store: only true versions, and a problem if some are missing. Returns how many versions were received; -1: wrong. */
static long retrieve(const struct subject *subject, const char *folder) {
    const struct truth *truth = &subject->truth;
    char *there = calloc(truth->count + 1, 1);
    llvs_store *store;
    llvs_error *error;
    size_t count = 0;
    if (!there) broken("out of memory");
    must("a store", open_store("", LLVS_STORAGE_MEMORY, 0, &store, &error), error);
    llvs_exchange_result *result = exchanged(store, folder, 0);
    if (result) {
        size_t problems = plant == TELLS_NOTHING ? 0 : result->problem_count, taken;
        taken = result->retrieved_count;
        /* A planted fault: it also claims lost versions as received. */
        if (plant == READS_WRONG_BYTES) taken = truth->count;
        if (!read_all(truth, store, there, &count) && !check_heads(truth, store, there, NULL)) {
            for (size_t i = 0; i < truth->count; i++)
                if (there[i] == UNREADABLE) fails("%s was received and cannot be read", truth->facts[i].id);
            if (taken != count) fails("%zu versions were reported as received, and the store has %zu", taken, count);
            if (count < truth->count && problems == 0) fails("%zu of %zu versions arrived; no problem is reported", count, truth->count);
        }
        if (count < truth->count) outcome(VERSIONS_LOST, (long)(truth->count - count));
        llvs_exchange_result_free(result);
    }
    llvs_store_free(store);
    free(there);
    return text[0] ? -1 : (long)count;
}

static int judge_exchange(const struct subject *subject, const char *folder) {
    llvs_store *store;
    llvs_error *error;
    long came = retrieve(subject, folder), again;
    if (came < 0) return 1;
    outcome(came < (long)subject->truth.count ? LOST : HARMLESS, 1);
    if (came == (long)subject->truth.count) return 0;
    char *path = path_of(folder, "source");
    must("a store", open_store(path, LLVS_STORAGE_FILE, 1, &store, &error), error);
    free(path);
    llvs_exchange_result_free(exchanged(store, folder, 1));
    llvs_store_free(store);
    if (text[0]) return 1;
    again = retrieve(subject, folder);
    if (again < came) return fails("%ld versions were received, and %ld after the sender sent again", came, again);
    if (again == (long)subject->truth.count) outcome(SENT_AGAIN, 1);
    return 0;
}

static int judge_snapshot(const struct subject *subject, const char *folder) {
    const struct truth *truth = &subject->truth;
    char *path = path_of(folder, "dump"), *there = calloc(truth->count + 1, 1);
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_store *store;
    llvs_error *error;
    size_t count;
    if (!there) broken("out of memory");
    must("a store", open_store("", LLVS_STORAGE_MEMORY, 0, &store, &error), error);
    llvs_status status = restore_snapshot_from(store, path, NULL, &error);
    if (status != LLVS_OK && plant == TELLS_NOTHING) {
        llvs_error_free(error);
        status = LLVS_OK;
    }
    if (status == LLVS_OK) {
        if (!read_all(truth, store, there, &count) && count != truth->count)
            fails("a snapshot was restored, and %zu of %zu versions are there", count, truth->count);
        for (size_t i = 0; i < truth->count; i++) if (there[i] != WHOLE) fails("%s was restored and cannot be read", truth->facts[i].id);
        check_heads(truth, store, there, NULL);
        outcome(HARMLESS, 1);
    } else {
        if (status != LLVS_ERROR_SNAPSHOT_DAMAGED && status != LLVS_ERROR_SNAPSHOT_MISSING && status != LLVS_ERROR_FOREIGN_SNAPSHOT)
            fails("restoring: %s", llvs_error_message(error));
        llvs_error_free(error);
        must("statistics", llvs_store_statistics(store, NULL, &statistics, &error), error);
        if (statistics.versions > 0)
            fails("a snapshot was refused, and %llu versions of it are there", (unsigned long long)statistics.versions);
        outcome(REFUSED, 1);
    }
    llvs_store_free(store);
    free(path);
    free(there);
    return text[0] != 0;
}

int judge(const struct subject *subject, const char *folder, uint64_t turn, int earlier, char *message, size_t message_size) {
    text = message;
    text_size = message_size;
    text[0] = 0;
    outcome(DAMAGES, 1);
    if (plant == TRAPS) trap_on_purpose();
    if (plant == LOOPS) for (;;) __asm__ volatile("");
    if (plant == HANGS) for (;;) pause();
    if (plant == EATS_MEMORY) memset(malloc((size_t)4 << 30), 1, 1);
    switch (subject->kind) {
    case A_STORE: return judge_store(subject, folder, turn, earlier);
    case AN_EXCHANGE: return judge_exchange(subject, folder);
    default: return judge_snapshot(subject, folder);
    }
}

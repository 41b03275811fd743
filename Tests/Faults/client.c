#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "shim.h"
#include "../C/child.h"
#include "../C/folder_snapshots.h"

enum plant planted;

struct change_spec put(const char *key, uint64_t seed, uint32_t size) {
    struct change_spec change = {"", 0, size, seed};
    snprintf(change.key, KEY_SIZE, "%s", key);
    return change;
}
struct change_spec drop(const char *key) {
    struct change_spec change = {"", 1, 0, 0};
    snprintf(change.key, KEY_SIZE, "%s", key);
    return change;
}

void client_met(const struct work *work, const char *doing, llvs_status status, llvs_error *error) {
    if (planted == TRAPS) trap_on_purpose();
    if (planted == LOOPS) for (;;) __asm__ volatile("");
    if (planted == GIVES_NO_REASON) status = LLVS_ERROR_INTERNAL;
    if (!work->expects_faults || (faults && faults->fired == 0)) {
        book_fail("%s failed without a reason: %s: %s", doing, llvs_status_name(status), llvs_error_message(error));
    } else if (status == LLVS_ERROR_INTERNAL || strlen(llvs_error_message(error)) == 0) {
        book_fail("%s failed with an error without a useful message: %s: %s", doing, llvs_status_name(status), llvs_error_message(error));
    }
    if (status < 0 && status > -128) book->failed[-status]++;
    if (status == LLVS_ERROR_UNKNOWN_OUTCOME) book->unknown_outcomes++;
    llvs_error_free(error);
    if (faults) faults_stop();
}

/* Checks a call after the cause of its failure is gone: it must not fail again. */
static int goes_on(const char *doing, llvs_status status, llvs_error **error) {
    if (status == LLVS_OK) return 1;
    book_fail("with the cause gone, %s fails still: %s: %s", doing, llvs_status_name(status), llvs_error_message(*error));
    llvs_error_free(*error);
    return 0;
}

static void acknowledge(struct client *client, struct asked *asked) {
    long now = faults ? faults->op_count : 0;
    if (!asked->acknowledged) {
        asked->acknowledged = 1;
        asked->acknowledged_at = now;
        asked->handle = client->handle;
    }
    if (client->durability == LLVS_DURABILITY_FULL && !asked->durable_at) asked->durable_at = now + 1;
}

/* ---- Opening and closing ---- */

struct client client_open(const struct work *work, const char *name, llvs_durability durability) {
    struct client client = {work, NULL, durability, ++book->handles, path_of(work->root, name)};
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_error *error;
    llvs_status status;
    options.storage = work->storage;
    options.durability = durability;
    book->open_handles++;
    status = llvs_store_open(llvs_str(client.path), &options, &client.store, &error);
    if (status != LLVS_OK) {
        client_met(work, "opening the store", status, error);
        status = llvs_store_open(llvs_str(client.path), &options, &client.store, &error);
        goes_on("opening the store", status, &error);
    }
    return client;
}

void client_close(struct client *client) {
    llvs_error *error;
    llvs_status status = client->store ? llvs_store_close(client->store, &error) : LLVS_OK;
    if (status != LLVS_OK) {
        client_met(client->work, "closing the store", status, error);
    } else if (--book->open_handles == 0) {
        /* Versions that a handle at `normal` wrote are durable when it is closed, and so are versions that build on them when their
         * handle is closed too. */
        for (int i = 0; i < book->count; i++) {
            struct asked *asked = &book->asked[i];
            if (asked->acknowledged && !asked->durable_at) asked->durable_at = faults ? faults->op_count + 1 : 1;
        }
    }
    llvs_store_free(client->store);
    free(client->path);
    client->store = NULL;
}

static void expect_all(struct client *client) {
    llvs_error *error;
    llvs_status status;
    if (!goes_on("a reload", status = llvs_store_reload(client->store, NULL, NULL, &error), &error)) return;
    for (int i = 0; i < book->count; i++) {
        struct asked *asked = &book->asked[i];
        llvs_version_list *version;
        uint64_t digest = 0;
        if (!asked->acknowledged) continue;
        if (!goes_on("asking for a version", status = llvs_store_version(client->store, llvs_str(asked->id), &version, &error), &error))
            return;
        if (version && !is_sampled((size_t)i, (size_t)book->count)) {
            llvs_version_list_free(version);
            continue;
        }
        if (!version) {
            book_fail("the version %s was acknowledged, and the handle does not know it", asked->id);
            return;
        }
        status = version_digest(client->store, version->items[0], &digest, &error);
        llvs_version_list_free(version);
        if (!goes_on("reading a version", status, &error)) return;
        if (digest != asked->digest) book_fail("the version %s was acknowledged, and the handle reads something else", asked->id);
    }
}

void client_expect_all(struct client *client) {
    if (!client->store || !faults) return;
    if (client->work->expects_faults) faults_stop();
    else faults->on = 0;
    expect_all(client);
    faults->on = 1;
}

/* ---- Making versions ---- */

static struct asked *known(const char *id) {
    struct asked *asked = book_find(llvs_str(id));
    if (!asked) broken("the version %s was never asked for", id);
    return asked;
}

static llvs_status make(llvs_store *store, const struct asked *asked, llvs_version_list **made, llvs_error **error) {
    llvs_change changes[SPEC_CHANGES];
    uint8_t *bytes[SPEC_CHANGES] = {NULL, NULL, NULL};
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    size_t count = 0;
    llvs_status status;
    if (asked->id[0]) options.id = llvs_str(asked->id);
    for (int i = 0; i < SPEC_CHANGES; i++) {
        const struct change_spec *spec = &asked->changes[i];
        llvs_change change = LLVS_CHANGE_INIT;
        if (!spec->key[0]) continue;
        change.kind = spec->removes ? LLVS_CHANGE_REMOVE : LLVS_CHANGE_INSERT;
        change.id = llvs_str(spec->key);
        if (!spec->removes) {
            bytes[i] = value_bytes(spec->seed, spec->size);
            change.data = llvs_bytes_make(bytes[i], spec->size);
        }
        changes[count++] = change;
    }
    status = llvs_store_make_version(store, asked->predecessor[0] ? llvs_str(asked->predecessor) : LLVS_NONE, changes, count,
                                     sizeof changes[0], &options, NULL, made, error);
    for (int i = 0; i < SPEC_CHANGES; i++) free(bytes[i]);
    return status;
}

/* A version whose saving failed with a known outcome does not exist. */
static void expect_absent(struct client *client, const struct asked *asked) {
    llvs_version_list *version;
    llvs_error *error;
    if (!asked->id[0]) return;
    llvs_status status = llvs_store_version(client->store, llvs_str(asked->id), &version, &error);
    if (!goes_on("asking for a version", status, &error)) return;
    if (version) book_fail("making the version %s failed, and yet it exists", asked->id);
    llvs_version_list_free(version);
}

static void take_id(struct asked *asked, const llvs_version_list *version) {
    const llvs_version_info *info = version ? version->items[0] : NULL;
    if (info && info->id.size < ID_SIZE) {
        memcpy(asked->id, info->id.data, info->id.size);
        asked->id[info->id.size] = 0;
    }
}
/* `id`: NULL if the store computes it. */
static void make_it(struct client *client, const char *id, const char *predecessor, struct change_spec a, struct change_spec b,
                    struct change_spec c, char *into) {
    struct change_spec changes[SPEC_CHANGES];
    struct state state = {0, {{"", 0, 0}}};
    llvs_bytes predecessors[1];
    struct asked *asked;
    llvs_error *error;
    llvs_status status;
    if (!client->store) return;
    changes[0] = a, changes[1] = b, changes[2] = c;
    if (predecessor) {
        state = known(predecessor)->state;
        predecessors[0] = llvs_str(predecessor);
    }
    for (int i = 0; i < SPEC_CHANGES; i++) {
        if (!changes[i].key[0]) continue;
        if (changes[i].removes) state_remove(&state, changes[i].key);
        else state_set(&state, changes[i].key, changes[i].seed, changes[i].size);
    }
    asked = book_ask(id, &state, predecessors, predecessor != NULL);
    memcpy(asked->changes, changes, sizeof changes);
    if (predecessor) snprintf(asked->predecessor, ID_SIZE, "%s", predecessor);
    asked->can_be_repeated = id != NULL;
    if (planted == ACKNOWLEDGES_EARLY && id) acknowledge(client, asked);
    llvs_version_list *made = NULL, **given = id ? NULL : &made;
    status = make(client->store, asked, given, &error);
    if (status != LLVS_OK) {
        client_met(client->work, "making a version", status, error);
        if (planted == DOES_WHAT_IT_REFUSED) goes_on("making the version", make(client->store, asked, NULL, &error), &error);
        if (status != LLVS_ERROR_UNKNOWN_OUTCOME) expect_absent(client, asked);
        /* If the version exists after all, the next one has another timestamp, and so another id. */
        else if (!id) book_ask(NULL, &state, predecessors, predecessor != NULL);
        book->repeated++;
        status = make(client->store, asked, given, &error);
        if (!goes_on("making the version again", status, &error)) return;
    }
    if (!id) {
        take_id(asked, made);
        snprintf(into, ID_SIZE, "%s", asked->id);
        llvs_version_list_free(made);
    }
    acknowledge(client, asked);
}
void client_make(struct client *client, const char *id, const char *predecessor, struct change_spec a, struct change_spec b,
                 struct change_spec c) {
    make_it(client, id, predecessor, a, b, c, NULL);
}
void client_save(struct client *client, const char *predecessor, struct change_spec a, struct change_spec b, char *into) {
    into[0] = 0;
    make_it(client, NULL, predecessor, a, b, no_change, into);
}

/* ---- Merging ---- */

/* Orders the two as a merge does, newest first. */
static int order(struct client *client, const char *a, const char *b, llvs_bytes predecessors[2]) {
    llvs_bytes ids[2];
    llvs_version_list *versions;
    llvs_error *error;
    const llvs_version_info *x, *y;
    int is_first;
    ids[0] = llvs_str(a), ids[1] = llvs_str(b);
    llvs_status status = llvs_store_versions(client->store, ids, 2, &versions, &error);
    if (status != LLVS_OK) {
        client_met(client->work, "asking for versions", status, error);
        if (!goes_on("asking for versions", status = llvs_store_versions(client->store, ids, 2, &versions, &error), &error)) return 0;
    }
    x = versions->items[0], y = versions->items[1];
    is_first = x->timestamp != y->timestamp ? x->timestamp > y->timestamp : strcmp(a, b) > 0;
    predecessors[0] = llvs_str(is_first ? a : b);
    predecessors[1] = llvs_str(is_first ? b : a);
    llvs_version_list_free(versions);
    return 1;
}

void client_erase(struct client *client, const char *key, struct change_spec a, struct change_spec b) {
    llvs_erase_options options = LLVS_ERASE_OPTIONS_INIT;
    llvs_bytes id = llvs_str(key);
    llvs_erase_report *report = NULL;
    llvs_error *error;
    llvs_status status;
    if (!client->store) return;
    options.ids = &id;
    options.id_count = 1;
    book->erased[0] = a;
    book->erased[1] = b;
    status = llvs_store_erase(client->store, &options, NULL, &report, &error);
    if (status != LLVS_OK) {
        client_met(client->work, "erasing", status, error);
        if (!goes_on("erasing", status = llvs_store_erase(client->store, &options, NULL, &report, &error), &error)) return;
    }
    if (report->waiting_count)
        book_fail("an erasure waits: %.*s", (int)report->waiting[0].size, (const char *)report->waiting[0].data);
    book->erased_at = (faults ? faults->op_count : 0) + 1;
    llvs_erase_report_free(report);
}

void client_set_forgetting(struct client *client, const char *policy) {
    llvs_error *error;
    goes_on("setting what is kept", llvs_store_set_forgetting(client->store, llvs_str(policy), NULL, 0, &error), &error);
}
void client_forget(struct client *client, struct change_spec gone) {
    llvs_forget_report *report = NULL;
    llvs_error *error;
    llvs_status status;
    if (!client->store) return;
    book->forgets = 1;
    book->erased[0] = gone;
    status = llvs_store_forget(client->store, NULL, &report, &error);
    if (status != LLVS_OK) {
        client_met(client->work, "forgetting", status, error);
        if (!goes_on("forgetting", status = llvs_store_forget(client->store, NULL, &report, &error), &error)) return;
    }
    if (report->waiting_count)
        book_fail("what is forgotten waits: %.*s", (int)report->waiting[0].size, (const char *)report->waiting[0].data);
    llvs_forget_report_free(report);
}

void client_merge(struct client *client, const char *ours, const char *theirs, char *into) {
    struct state state;
    const struct state *other;
    llvs_bytes predecessors[2];
    struct asked *asked;
    llvs_version_list *version;
    llvs_error *error;
    llvs_status status;
    if (!client->store || !order(client, ours, theirs, predecessors)) return;
    state = known(ours)->state;
    other = &known(theirs)->state;
    for (int i = 0; i < other->count; i++) {
        int is_known = 0;
        for (int j = 0; j < state.count; j++) is_known |= strcmp(state.items[j].key, other->items[i].key) == 0;
        if (!is_known) state_set(&state, other->items[i].key, other->items[i].seed, other->items[i].size);
    }
    asked = book_ask(NULL, &state, predecessors, 2);
    status = llvs_store_merge(client->store, llvs_str(ours), llvs_str(theirs), NULL, NULL, &version, &error);
    if (status != LLVS_OK) {
        client_met(client->work, "merging", status, error);
        book->repeated++;
        if (!goes_on("merging again",
                     status = llvs_store_merge(client->store, llvs_str(ours), llvs_str(theirs), NULL, NULL, &version, &error), &error))
            return;
    }
    take_id(asked, version);
    snprintf(into, ID_SIZE, "%s", asked->id);
    llvs_version_list_free(version);
    acknowledge(client, asked);
}

/* ---- Exchanges and snapshots ---- */

static llvs_exchange *open_exchange(struct client *client, const char *folder) {
    char url[700];
    llvs_exchange *exchange;
    llvs_error *error;
    llvs_status status;
    snprintf(url, sizeof url, "file://%s/%s", client->work->root, folder);
    status = llvs_exchange_open(client->store, llvs_str(url), NULL, &exchange, &error);
    if (status != LLVS_OK) {
        client_met(client->work, "opening the exchange", status, error);
        status = llvs_exchange_open(client->store, llvs_str(url), NULL, &exchange, &error);
        goes_on("opening the exchange", status, &error);
    }
    return exchange;
}

static void acknowledge_ids(struct client *client, const llvs_exchange_result *result) {
    size_t count;
    const llvs_bytes *ids = result->retrieved;
    count = result->retrieved_count;
    for (size_t i = 0; i < count; i++) {
        struct asked *asked = book_find(ids[i]);
        if (asked) acknowledge(client, asked);
        else book_fail("a version was retrieved that was never made: %.*s", (int)ids[i].size, (const char *)ids[i].data);
    }
}

/* Problems are allowed as the effect of a fault, while the fault lasts. */
static int has_problems(struct client *client, const llvs_exchange_result *result, const char *doing) {
    const llvs_problem *problem = result ? result->problems[0] : NULL;
    if (!problem) return 0;
    if (!client->work->expects_faults || faults->fired == 0) {
        book_fail("%s met a problem without a reason: %.*s: %.*s", doing, (int)problem->name.size, (const char *)problem->name.data,
                  (int)problem->message.size, (const char *)problem->message.data);
    }
    return 1;
}

typedef llvs_status (*exchange_fn)(llvs_exchange *, const llvs_control *, llvs_exchange_result **, llvs_error **);
static int exchanged(struct client *client, const char *folder, exchange_fn call, const char *doing) {
    llvs_exchange *exchange;
    llvs_exchange_result *result = NULL;
    llvs_error *error;
    llvs_status status;
    int is_whole;
    if (!client->store || !(exchange = open_exchange(client, folder))) return 0;
    status = call(exchange, NULL, &result, &error);
    if (status == LLVS_OK) acknowledge_ids(client, result);
    else client_met(client->work, doing, status, error);
    if (status != LLVS_OK || has_problems(client, result, doing)) {
        faults_stop();
        llvs_exchange_result_free(result);
        result = NULL;
        status = call(exchange, NULL, &result, &error);
        if (goes_on(doing, status, &error)) acknowledge_ids(client, result);
        const llvs_problem *problem = result ? result->problems[0] : NULL;
        if (problem)
            book_fail("with the cause gone, %s meets a problem still: %.*s", doing, (int)problem->message.size,
                      (const char *)problem->message.data);
    }
    is_whole = status == LLVS_OK;
    llvs_exchange_result_free(result);
    llvs_exchange_free(exchange);
    return is_whole;
}

static void acknowledge_all(struct client *client) {
    for (int i = 0; i < book->count; i++) if (book->asked[i].id[0]) acknowledge(client, &book->asked[i]);
}
void client_retrieve(struct client *client, const char *folder) {
    /* Versions that a failed attempt had added are acknowledged by the attempt that succeeds. */
    if (exchanged(client, folder, llvs_exchange_retrieve, "retrieving")) acknowledge_all(client);
}
void client_repair(struct client *client, const char *folder) {
    if (exchanged(client, folder, llvs_exchange_verify, "repairing")) acknowledge_all(client);
}
void client_send(struct client *client, const char *folder) { exchanged(client, folder, llvs_exchange_send, "sending"); }

void client_write_snapshot(struct client *client, const char *folder) {
    char *path = path_of(client->work->root, folder);
    llvs_error *error;
    llvs_status status = write_snapshot_into(client->store, path, NULL, &error);
    if (status != LLVS_OK) {
        client_met(client->work, "writing a snapshot", status, error);
        goes_on("writing a snapshot", status = write_snapshot_into(client->store, path, NULL, &error), &error);
    }
    free(path);
}

void client_restore_snapshot(struct client *client, const char *folder) {
    char *path = path_of(client->work->root, folder);
    llvs_error *error;
    llvs_status status;
    if (!client->store) return;
    status = restore_snapshot_from(client->store, path, NULL, &error);
    if (status != LLVS_OK) {
        llvs_statistics statistics = LLVS_STATISTICS_INIT;
        client_met(client->work, "restoring a snapshot", status, error);
        if (llvs_store_statistics(client->store, NULL, &statistics, NULL) != LLVS_OK) statistics.versions = UINT64_MAX;
        /* If some versions were added, an exchange brings the rest. */
        if (statistics.versions <= 1)
            goes_on("restoring a snapshot", status = restore_snapshot_from(client->store, path, NULL, &error), &error);
    }
    if (status == LLVS_OK) for (int i = 0; i < book->count; i++) acknowledge(client, &book->asked[i]);
    free(path);
}

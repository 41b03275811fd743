/*
 * The Message, the laptop's side, in C. (phone.py is the phone's side; scripts/demo runs both in turn.)
 *
 *     demo_laptop <folder> sync | edit-1 | edit-2 | edit-3 | show
 *
 * <folder>/laptop is the laptop's own store, <folder>/shared the folder that both devices share. Each command is a process of its own: the
 * store holds everything that lasts.
 */
#include <llvs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, LANES = 16, VERSIONS = 1000 };

/* Checks the result of a call that can fail. On an error the demo prints it and ends. */
static void must(llvs_status status, llvs_error **error) {
    if (status == LLVS_OK) return;
    fprintf(stderr, "laptop: %s (%s)\n", llvs_error_message(*error), llvs_status_name(status));
    llvs_error_free(*error);
    exit(1);
}

static void print_bytes(llvs_bytes bytes) { fwrite(bytes.data, 1, bytes.size, stdout); }
static void print_short(llvs_bytes id) { printf("%.8s", (const char *)id.data); }

static int equal(llvs_bytes a, llvs_bytes b) { return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0); }

/* The text of a metadata entry that holds a JSON string, without its quotes. (The demo's strings contain no escapes.) */
static llvs_bytes text_of(const llvs_version_info *version, const char *key) {
    size_t i;
    for (i = 0; i < version->metadata_count; i++) {
        llvs_bytes value = version->metadata[i].value;
        if (equal(version->metadata[i].key, llvs_str(key)) && value.size >= 2) {
            return llvs_bytes_make(value.data + 1, value.size - 2);
        }
    }
    return llvs_str("");
}

static void print_time(double seconds_since_1970) {
    int64_t ms = (int64_t)(seconds_since_1970 * 1000.0);
    printf("%02d:%02d:%02d.%03d", (int)(ms / 3600000 % 24), (int)(ms / 60000 % 60), (int)(ms / 1000 % 60), (int)(ms % 1000));
}

/* "4F1D22A0  12:00:01.250  laptop  Ask for more guests" */
static void print_version(const llvs_version_info *version) {
    print_short(version->id);
    printf("  ");
    print_time(version->timestamp);
    printf("  ");
    if (version->predecessor_count == 0) {
        printf("the empty root, where every history begins");
    } else if (version->predecessor_count == 2) {
        printf("merge of ");
        print_short(version->predecessors[0]);
        printf(" and ");
        print_short(version->predecessors[1]);
    } else {
        printf("%-6.*s  ", (int)text_of(version, "device").size, (const char *)text_of(version, "device").data);
        print_bytes(text_of(version, "note"));
    }
    printf("\n");
}

/* ---- sync ---- */

static llvs_store *store_of(llvs_coordinator *laptop) {
    llvs_store *store;
    llvs_error *error;
    must(llvs_coordinator_store(laptop, &store, &error), &error);
    return store;
}

/* Prints the problems of an exchange. */
static void tell_problems(const llvs_exchange_result *done) {
    size_t i;
    for (i = 0; done && i < done->problem_count; i++) {
        printf("laptop: a problem with ");
        print_bytes(done->problems[i]->name);
        printf(": ");
        print_bytes(done->problems[i]->message);
        printf("\n");
    }
}

static void sync_with_others(llvs_coordinator *laptop) {
    llvs_store *store = store_of(laptop);
    llvs_sync_result *result;
    llvs_version_list *version;
    llvs_error *error;

    must(llvs_coordinator_sync(laptop, NULL, &result, &error), &error);
    tell_problems(result->before);
    tell_problems(result->after);
    printf("laptop: retrieved %zu, sent %zu%s\n", result->before->retrieved_count,
           result->before->sent_count + (result->after ? result->after->sent_count : 0), result->merged ? ", merged" : "");
    if (result->moved) {
        must(llvs_store_version(store, result->to, &version, &error), &error);
        printf("laptop: now at ");
        print_version(version->items[0]);
        llvs_version_list_free(version);
    }
    llvs_sync_result_free(result);
    llvs_store_free(store);
}

/* ---- edit ---- */

static llvs_change set(const char *id, const char *text) {
    llvs_change change = LLVS_CHANGE_INIT;
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = llvs_str(id);
    change.data = llvs_str(text);
    return change;
}

static void save(llvs_coordinator *laptop, const llvs_change *changes, size_t count, const char *note) {
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_metadata_entry metadata;
    llvs_version_list *version;
    llvs_error *error;
    char json[200];

    snprintf(json, sizeof json, "\"%s\"", note);
    metadata.key = llvs_str("note");
    metadata.value = llvs_str(json);
    options.metadata = &metadata;
    options.metadata_count = 1;
    must(llvs_coordinator_save(laptop, changes, count, sizeof *changes, &options, NULL, &version, NULL, &error), &error);
    printf("laptop: ");
    print_version(version->items[0]);
    llvs_version_list_free(version);
}

/* ---- conflicts ---- */

static const char *kind_of(llvs_fork_kind kind) {
    switch (kind) {
    case LLVS_FORK_TWICE_INSERTED: return "inserted on both sides";
    case LLVS_FORK_TWICE_UPDATED: return "changed on both sides";
    case LLVS_FORK_REMOVED_AND_UPDATED: return "removed on one side, changed on the other";
    default: return "no conflict";
    }
}

/* Prints one side of a conflict: who wrote it, when and what. */
static void print_side(llvs_store *store, llvs_bytes id, llvs_bytes stored_version) {
    llvs_version_list *version;
    llvs_buffer data;
    llvs_error *error;
    if (stored_version.size == 0) {
        printf("      removed\n");
        return;
    }
    must(llvs_store_version(store, stored_version, &version, &error), &error);
    must(llvs_store_value(store, id, stored_version, &data, NULL, &error), &error);
    printf("      %.*s at ", (int)text_of(version->items[0], "device").size,
           (const char *)text_of(version->items[0], "device").data);
    print_time(version->items[0]->timestamp);
    printf(": \"%.*s\"\n", (int)data.size, (const char *)data.data);
    llvs_buffer_dispose(&data);
    llvs_version_list_free(version);
}

static double time_of(llvs_store *store, llvs_bytes id) {
    llvs_version_list *version;
    llvs_error *error;
    double timestamp;
    must(llvs_store_version(store, id, &version, &error), &error);
    timestamp = version->items[0]->timestamp;
    llvs_version_list_free(version);
    return timestamp;
}

static int is_ours(llvs_store *store, llvs_bytes id) {
    llvs_version_list *version;
    llvs_error *error;
    llvs_bool ours;
    must(llvs_store_version(store, id, &version, &error), &error);
    ours = equal(text_of(version->items[0], "device"), llvs_str("laptop"));
    llvs_version_list_free(version);
    return ours;
}

/* An arbiter that prints the conflicts, and how its fallback, most recent change, decides them. */
static llvs_status explain(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_store *store = merge->store;
    size_t i;
    (void)payload;
    (void)resolution;
    (void)error;
    for (i = 0; i < merge->fork_count; i++) {
        const llvs_fork *fork = merge->forks[i];
        if (!fork->conflicting) continue;
        printf("  conflict in ");
        print_bytes(fork->id);
        printf(", %s:\n", kind_of(fork->kind));
        print_side(store, fork->id, fork->first);
        print_side(store, fork->id, fork->second);
        printf("      -> ");
        if (fork->first.size == 0 || fork->second.size == 0) {
            printf("the change wins: an update beats a removal\n");
        } else {
            /* Ties cannot occur: the devices' saves are at least a millisecond apart. */
            int first_is_later = time_of(store, fork->first) > time_of(store, fork->second);
            printf("the %s's wins: it is the later change\n",
                   is_ours(store, first_is_later ? fork->first : fork->second) ? "laptop" : "phone");
        }
    }
    return LLVS_PASS;
}

/* Opens the laptop's coordinator, with the shared folder, the arbiter, and the metadata that every version gets. */
static llvs_coordinator *open_laptop(const char *path, const char *shared) {
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_metadata_entry device;
    llvs_arbiter *most_recent_change, *arbiter;
    llvs_coordinator *laptop;
    llvs_error *error;
    char url[PATH_SIZE + 8];

    must(llvs_arbiter_builtin(LLVS_ARBITER_MOST_RECENT_CHANGE, &most_recent_change, &error), &error);
    must(llvs_arbiter_create(explain, NULL, NULL, most_recent_change, &arbiter, &error), &error);
    device.key = llvs_str("device");
    device.value = llvs_str("\"laptop\"");
    options.arbiter = arbiter;
    options.metadata = &device;
    options.metadata_count = 1;
    must(llvs_coordinator_open(llvs_str(path), &options, &laptop, &error), &error);
    llvs_arbiter_free(arbiter);
    llvs_arbiter_free(most_recent_change);
    snprintf(url, sizeof url, "file://%s", shared);
    must(llvs_coordinator_attach(laptop, llvs_str(url), NULL, &error), &error);
    return laptop;
}

/* ---- show ---- */

static int lane_of(const llvs_bytes *lanes, int count, llvs_bytes id) {
    int i;
    for (i = 0; i < count; i++) {
        if (equal(lanes[i], id)) return i;
    }
    return -1;
}

static void remove_lane(llvs_bytes *lanes, int *count, int index) {
    memmove(lanes + index, lanes + index + 1, (size_t)(*count - index - 1) * sizeof *lanes);
    *count -= 1;
}

/* Prints the version graph, newest first. Each lane leads down to the version that it names. */
static void print_graph(const llvs_version_info **versions, int count) {
    llvs_bytes lanes[LANES];
    int lane_count = 0, i, j;
    for (i = 0; i < count; i++) {
        const llvs_version_info *version = versions[i];
        int lane = lane_of(lanes, lane_count, version->id);
        if (lane < 0) {
            lane = lane_count++;
            lanes[lane] = version->id;
        }
        for (j = 0; j < lane_count; j++) printf(j == lane ? "* " : "| ");
        print_version(version);
        if (version->predecessor_count == 0) {
            remove_lane(lanes, &lane_count, lane);
        } else if (lane_of(lanes, lane_count, version->predecessors[0]) >= 0) {
            for (j = 0; j < lane_count - 1; j++) printf(j + 1 == lane_count - 1 ? "|/" : "| ");
            printf("\n");
            remove_lane(lanes, &lane_count, lane);
        } else {
            lanes[lane] = version->predecessors[0];
            if (version->predecessor_count == 2 && lane_count < LANES && lane_of(lanes, lane_count, version->predecessors[1]) < 0) {
                for (j = 0; j < lane_count; j++) printf(j + 1 == lane_count ? "|\\" : "| ");
                printf("\n");
                lanes[lane_count++] = version->predecessors[1];
            }
        }
    }
}

static void print_message(llvs_store *store, llvs_bytes at) {
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_list *values;
    llvs_error *error;
    size_t i;
    range.prefix = llvs_str("message/");
    must(llvs_store_enumerate(store, at, &range, &values, &error), &error);
    for (i = 0; values && i < values->count; i++) { /* NULL if there are no values, as at the empty root */
        const llvs_value_info *value = values->items[i];
        printf("    %-8s %s\n", (const char *)value->id.data + strlen("message/"), (const char *)value->data.data);
    }
    llvs_value_list_free(values);
}

static void show(llvs_store *store) {
    const llvs_version_info *versions[VERSIONS];
    llvs_history_cursor *cursor;
    llvs_version_list *page;
    llvs_error *error;
    size_t i;
    int count = 0;
    must(llvs_store_history(store, NULL, NULL, &cursor, &error), &error);
    must(llvs_history_cursor_next(cursor, VERSIONS, NULL, &page, &error), &error);
    for (i = 0; i < page->count; i++) versions[count++] = page->items[i];

    printf("The version graph, newest first:\n\n");
    print_graph(versions, count);
    printf("\nThe message at every version in time:\n");
    while (count-- > 0) {
        printf("\n  ");
        print_version(versions[count]);
        print_message(store, versions[count]->id);
    }
    llvs_version_list_free(page);
    llvs_history_cursor_free(cursor);
}

int main(int argc, char **argv) {
    char path[PATH_SIZE], shared[PATH_SIZE];
    llvs_coordinator *laptop;
    llvs_store *store;
    llvs_error *error;
    const char *command = argc == 3 ? argv[2] : "";
    llvs_change changes[2];

    snprintf(path, sizeof path, "%s/laptop", argc == 3 ? argv[1] : "");
    snprintf(shared, sizeof shared, "%s/shared", argc == 3 ? argv[1] : "");
    if (argc != 3 || argv[1][0] != '/') {
        fprintf(stderr, "usage: demo_laptop <folder, from the root> sync|edit-1|edit-2|edit-3|show\n");
        return 2;
    }
    laptop = open_laptop(path, shared);
    if (strcmp(command, "sync") == 0) {
        sync_with_others(laptop);
    } else if (strcmp(command, "edit-1") == 0) {
        changes[0] = set("message/subject", "Dinner on Saturday");
        changes[1] = set("message/guests", "Ann and Bea");
        save(laptop, changes, 2, "Move it to Saturday, invite guests");
    } else if (strcmp(command, "edit-2") == 0) {
        changes[0] = set("message/body", "Shall we meet at half past seven?");
        changes[1] = set("message/ps", "Bring the photos and a cake.");
        save(laptop, changes, 2, "Half an hour later, and a cake");
    } else if (strcmp(command, "edit-3") == 0) {
        changes[0] = set("message/guests", "Ann, Bea and Dora");
        save(laptop, changes, 1, "Invite Dora as well");
    } else if (strcmp(command, "show") == 0) {
        store = store_of(laptop);
        show(store);
        llvs_store_free(store);
    } else {
        fprintf(stderr, "laptop: unknown command %s\n", command);
        return 2;
    }
    must(llvs_coordinator_close(laptop, &error), &error);
    llvs_coordinator_free(laptop);
    return 0;
}

/* Each operation that reports progress is cancelled at its first step, its second, and so on. Nothing is left half done, and afterwards
 * the operation works. */
#include "support.h"
#include <dirent.h>

#include "array_storage.h"
#include "folder_snapshots.h"

enum { HEADS = 7, VERSIONS = HEADS + 1, LARGE = (1 << 20) + 5000, MANY = 3000 };
enum kind {
    VERIFY,
    SALVAGE,
    COMPACT,
    SEND,
    RETRIEVE,
    LOOK_AGAIN,
    IMPORT,
    WRITE_SNAPSHOT,
    RESTORE_SNAPSHOT,
    PACK,
    UNPACK,
    PUT_SNAPSHOT,
    FETCH_SNAPSHOT,
    EXCHANGE,
    BOOTSTRAP,
    MERGE_HEADS,
    MERGE_COORDINATED,
    OPEN,
    OPEN_DATABASE,
    OPEN_HOSTED,
    OPEN_COORDINATED,
    COUNT,
    MEASURE,
    ERASE,
    FORGET,
    LIST_HEADS,
    LIST_BRANCH,
    SUCCESSORS,
    ANCESTOR,
    MERGE_BASES,
    VERSION_AT,
    VERSIONS_OF,
    RELOAD,
    CHANGES,
    DIFFERENCES,
    FIND,
    PROJECT,
    CONFLICTS,
    EXPLAIN,
    OPEN_CONFLICTS,
    MERGE,
    MERGE_BY_HAND,
    REVERT,
    CHERRY_PICK,
    KINDS
};
static const char *const names[KINDS] = { "verify",
                                          "salvage",
                                          "compact",
                                          "send",
                                          "retrieve",
                                          "verify a remote",
                                          "import",
                                          "write a snapshot",
                                          "restore a snapshot",
                                          "pack",
                                          "unpack",
                                          "put a snapshot",
                                          "restore a snapshot of an exchange",
                                          "exchange",
                                          "bootstrap",
                                          "merge heads",
                                          "merge heads in a coordinator",
                                          "open",
                                          "open a database",
                                          "open a storage of the host",
                                          "open a coordinator",
                                          "count",
                                          "measure",
                                          "erase",
                                          "forget",
                                          "list heads",
                                          "list the heads of a branch",
                                          "successors",
                                          "whether it is an ancestor",
                                          "merge bases",
                                          "the version of a time",
                                          "what stored a value",
                                          "reload",
                                          "changes",
                                          "differences",
                                          "find in an index",
                                          "update a projection",
                                          "conflicts",
                                          "explain",
                                          "open conflicts",
                                          "merge",
                                          "merge with an arbiter of the host",
                                          "revert",
                                          "cherry-pick" };

/* The objects of an operation: a store with everything, a place where it can be found, and a store that receives it. */
typedef struct scene {
    enum kind kind;
    char *directory, *full, *folder, *target, *pack;
    char url[1100];
    llvs_store *store;            /* the store with everything */
    llvs_store *other;            /* the store that receives */
    llvs_exchange *sender, *receiver;
    llvs_coordinator *coordinator;
    array_storage *array;
    llvs_storage *host;
} scene;

static llvs_version_id made[VERSIONS];
/* The last version, with many changes, if the scene has one. */
static llvs_version_id many;
/* The error of the last opening. */
static llvs_error *opening;

/* A store directory of another implementation. */
static const char *const foreign = LLVS_SOURCE_DIR "/Tests/Vectors/interchange/store";
enum { FOREIGN_VERSIONS = 25 };

static llvs_store *open_at(const char *path) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store;
    options.compaction = LLVS_COMPACTION_ON_REQUEST;
    options.durability = LLVS_DURABILITY_NORMAL;
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    return store;
}

/* Makes a root and several versions on it, each from a handle of its own, so that there is something to compact. One of them has a
 * value in a file of its own. */
static char *make_original(void) {
    char *path = new_directory(), name[16];
    char *large = malloc(LARGE);
    assert_non_null(large);
    for (size_t i = 0; i < LARGE; i++) large[i] = (char)(i * i >> 7);
    for (int i = 0; i < VERSIONS; i++) {
        llvs_store *store = open_at(path);
        llvs_change change;
        snprintf(name, sizeof name, "value/%d", i);
        change = insert(name, "of its own");
        if (i == 3) change.data = llvs_bytes_make(large, LARGE);
        made[i] = save(store, i == 0 ? NULL : &made[0], change);
        llvs_store_free(store);
    }
    free(large);
    return path;
}

static void copy_directory(const char *from, const char *to) {
    char command[2500];
    snprintf(command, sizeof command, "cp -rp '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

/* Opens the objects of the scene. Checks that a failure leaves no descriptor open. */
static int descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    assert_non_null(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}
static llvs_store *open_to(scene *s, const llvs_control *control, llvs_status *status) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator_options coordinated = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_store *store = NULL;
    llvs_coordinator *coordinator = NULL;
    llvs_error *error = NULL;
    llvs_status found;
    const int before = descriptors();
    const char *path = s->kind == OPEN_DATABASE ? s->target : s->full;
    options.compaction = LLVS_COMPACTION_ON_REQUEST;
    options.durability = LLVS_DURABILITY_NORMAL;
    options.storage = s->kind == OPEN_DATABASE ? LLVS_STORAGE_SQLITE : s->kind == OPEN_HOSTED ? LLVS_STORAGE_HOST : LLVS_STORAGE_FILE;
    options.host_storage = s->host;
    options.control = control;
    coordinated.store = &options;
    if (s->kind == OPEN_COORDINATED) found = llvs_coordinator_open(llvs_str(path), &coordinated, &coordinator, &error);
    else found = llvs_store_open(llvs_str(path), &options, &store, &error);
    if (coordinator) OK(llvs_coordinator_store(coordinator, &store, &error));
    llvs_coordinator_free(coordinator);
    if (status) *status = found;
    if (found != LLVS_OK) {
        assert_true(store == NULL && coordinator == NULL);
        assert_int_equal(descriptors(), before);
    }
    opening = error;
    return store;
}

/* Writes a stream of packs to a file, and reads it. */
static llvs_status put_piece(void *payload, const llvs_bytes *piece, llvs_error **error) {
    (void)error;
    return fwrite(piece->data, 1, piece->size, payload) == piece->size ? LLVS_OK : LLVS_ERROR_IO;
}
static llvs_status get_piece(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **error) {
    (void)error;
    *size = fread(buffer, 1, capacity, payload);
    return *size ? LLVS_OK : LLVS_END;
}
static llvs_status pack_into(llvs_store *store, const char *path, const llvs_control *control, llvs_error **error) {
    FILE *file = fopen(path, "wb");
    llvs_status status;
    assert_non_null(file);
    status = llvs_store_write_pack(store, NULL, 0, NULL, put_piece, file, control, NULL, error);
    assert_int_equal(fclose(file), 0);
    return status;
}
static llvs_status unpack_from(llvs_store *store, const char *path, const llvs_control *control, llvs_error **error) {
    FILE *file = fopen(path, "rb");
    llvs_status status;
    assert_non_null(file);
    status = llvs_store_read_pack(store, NULL, get_piece, file, control, NULL, error);
    fclose(file);
    return status;
}

static scene set(enum kind kind, const char *original) {
    scene s;
    memset(&s, 0, sizeof s);
    s.kind = kind;
    s.directory = new_directory();
    s.full = join(s.directory, "full");
    s.folder = join(s.directory, "folder");
    s.target = join(s.directory, "target");
    snprintf(s.url, sizeof s.url, "file://%s", s.folder);
    copy_directory(original, s.full);
    s.store = open_at(s.full);
    OK(llvs_exchange_open(s.store, llvs_str(s.url), NULL, &s.sender, &error));
    if (kind == RETRIEVE || kind == LOOK_AGAIN || kind == EXCHANGE) OK(llvs_exchange_send(s.sender, NULL, NULL, &error));
    if (kind == RESTORE_SNAPSHOT || kind == FETCH_SNAPSHOT || kind == BOOTSTRAP)
        OK(llvs_exchange_put_snapshot(s.sender, NULL, NULL, &error));
    if (kind == EXCHANGE || kind == BOOTSTRAP || kind == MERGE_COORDINATED) {
        llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
        if (kind == MERGE_COORDINATED) copy_directory(original, s.target);
        OK(llvs_coordinator_open(llvs_str(s.target), &options, &s.coordinator, &error));
        OK(llvs_coordinator_attach(s.coordinator, llvs_str(s.url), NULL, &error));
        if (kind == MERGE_COORDINATED) OK(llvs_coordinator_set_current_version(s.coordinator, llvs_id(&made[1]), &error));
    } else if (kind == RETRIEVE || kind == UNPACK || kind == IMPORT || kind == RESTORE_SNAPSHOT || kind == FETCH_SNAPSHOT) {
        s.other = open_at(s.target);
        OK(llvs_exchange_open(s.other, llvs_str(s.url), NULL, &s.receiver, &error));
    }
    s.pack = join(s.directory, "pack");
    if (kind == UNPACK) OK(pack_into(s.store, s.pack, NULL, &error));
    if (kind >= CHANGES) {
        static char names[MANY][16];
        llvs_change *changes = calloc(MANY, sizeof *changes);
        assert_non_null(changes);
        for (int i = 0; i < MANY; i++) {
            snprintf(names[i], sizeof names[i], "many/%d", i);
            changes[i] = insert(names[i], "x");
        }
        OK(llvs_store_make_version(s.store, llvs_id(&made[0]), changes, MANY, sizeof *changes, NULL, &many, NULL, &error));
        free(changes);
    }
    if (kind == OPEN_HOSTED) {
        llvs_storage_callbacks callbacks = array_storage_callbacks();
        s.array = calloc(1, sizeof *s.array);
        assert_non_null(s.array);
        OK(llvs_storage_create(llvs_str("array"), &callbacks, s.array, NULL, &s.host, &error));
    }
    if (kind == OPEN_DATABASE || kind == OPEN_HOSTED) {
        llvs_store *store = open_to(&s, NULL, NULL);
        for (int i = 0; i < VERSIONS; i++) (void)save(store, NULL, insert("value", "of its own"));
        llvs_store_free(store);
    }
    return s;
}
static void strike(scene *s) {
    llvs_storage_free(s->host);
    if (s->array) array_storage_free(s->array);
    llvs_exchange_free(s->sender);
    llvs_exchange_free(s->receiver);
    llvs_coordinator_free(s->coordinator);
    llvs_store_free(s->store);
    llvs_store_free(s->other);
    free(s->full);
    free(s->folder);
    free(s->target);
    free(s->pack);
    remove_directory(s->directory);
}

static llvs_status leave_alone(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    (void)payload;
    (void)merge;
    (void)resolution;
    (void)error;
    return LLVS_OK;
}

static llvs_status act(scene *s, const llvs_control *control, llvs_error **error) {
    llvs_merge_options merging = LLVS_MERGE_OPTIONS_INIT;
    llvs_verify_report *verified;
    llvs_salvage_report *salvaged;
    llvs_status status;
    llvs_bool flag;
    merging.control = control;
    switch (s->kind) {
    case VERIFY:
        status = llvs_store_verify(s->store, control, &verified, error);
        if (status == LLVS_OK) assert_int_equal(verified->versions, VERSIONS);
        llvs_verify_report_free(verified);
        return status;
    case SALVAGE:
        status = llvs_store_salvage(llvs_str(s->full), NULL, llvs_str(s->target), NULL, control, &salvaged, error);
        if (status == LLVS_OK) assert_int_equal(salvaged->versions, VERSIONS);
        llvs_salvage_report_free(salvaged);
        return status;
    case COMPACT: return llvs_store_compact(s->store, control, NULL, error);
    case SEND: return llvs_exchange_send(s->sender, control, NULL, error);
    case RETRIEVE: return llvs_exchange_retrieve(s->receiver, control, NULL, error);
    case PACK: return pack_into(s->store, s->pack, control, error);
    case UNPACK: return unpack_from(s->other, s->pack, control, error);
    case LOOK_AGAIN: return llvs_exchange_verify(s->sender, control, NULL, error);
    case IMPORT: return llvs_store_import(s->other, llvs_str(foreign), NULL, control, NULL, error);
    case WRITE_SNAPSHOT: return write_snapshot_into(s->store, s->folder, control, error);
    case RESTORE_SNAPSHOT: return restore_snapshot_from(s->other, s->folder, control, error);
    case PUT_SNAPSHOT: return llvs_exchange_put_snapshot(s->sender, control, NULL, error);
    case FETCH_SNAPSHOT: return llvs_exchange_restore_snapshot(s->receiver, control, NULL, error);
    case EXCHANGE: return llvs_coordinator_exchange(s->coordinator, control, NULL, error);
    case BOOTSTRAP: return llvs_coordinator_bootstrap(s->coordinator, control, &flag, NULL, error);
    case MERGE_HEADS: return llvs_store_merge_heads(s->store, llvs_id(&made[1]), NULL, &merging, NULL, error);
    case OPEN:
    case OPEN_DATABASE:
    case OPEN_HOSTED:
    case OPEN_COORDINATED: {
        llvs_store *store = open_to(s, control, &status);
        *error = opening;
        if (status == LLVS_OK && s->kind != OPEN_COORDINATED) assert_int_equal(version_count(store), VERSIONS);
        llvs_store_free(store);
        return status;
    }
    case COUNT: {
        llvs_statistics statistics = LLVS_STATISTICS_INIT;
        status = llvs_store_statistics(s->store, control, &statistics, error);
        if (status == LLVS_OK) assert_int_equal(statistics.versions, VERSIONS);
        return status;
    }
    case ERASE: {
        llvs_erase_options options = LLVS_ERASE_OPTIONS_INIT;
        llvs_erase_report *report;
        options.dry_run = 1;
        options.containing = llvs_str("no value has this");
        status = llvs_store_erase(s->store, &options, control, &report, error);
        if (status == LLVS_OK) {
            assert_int_equal(report->values, 0);
            llvs_erase_report_free(report);
        }
        return status;
    }
    case FORGET: {
        llvs_forget_options options = LLVS_FORGET_OPTIONS_INIT;
        llvs_forget_report *report;
        options.dry_run = 1;
        options.policy = llvs_str("{\"keep\":{\"days\":1000}}");
        options.control = control;
        status = llvs_store_forget(s->store, &options, &report, error);
        if (status == LLVS_OK) llvs_forget_report_free(report);
        return status;
    }
    case MEASURE: {
        llvs_size_options options = LLVS_SIZE_OPTIONS_INIT;
        llvs_size_report *report;
        options.control = control;
        status = llvs_store_size(s->store, &options, &report, error);
        if (status == LLVS_OK) {
            assert_int_equal(report->versions, VERSIONS);
            llvs_size_report_free(report);
        }
        return status;
    }
    case LIST_HEADS:
    case LIST_BRANCH: {
        llvs_heads_options options = LLVS_HEADS_OPTIONS_INIT;
        llvs_version_list *heads;
        options.control = control;
        if (s->kind == LIST_BRANCH) options.branch = llvs_str("none of that name");
        status = llvs_store_heads(s->store, &options, &heads, error);
        assert_int_equal(heads ? heads->count : 0, status == LLVS_OK && s->kind == LIST_HEADS ? HEADS : 0);
        llvs_version_list_free(heads);
        return status;
    }
    case SUCCESSORS:
    case MERGE_BASES:
    case VERSION_AT:
    case VERSIONS_OF: {
        llvs_version_list *found;
        llvs_bytes one = llvs_id(&made[1]), two = llvs_id(&made[2]);
        if (s->kind == SUCCESSORS) status = llvs_store_successors(s->store, llvs_id(&made[0]), control, &found, error);
        else if (s->kind == MERGE_BASES) status = llvs_store_merge_bases(s->store, one, two, control, &found, error);
        else if (s->kind == VERSION_AT) status = llvs_store_version_at(s->store, 1e10, one, control, &found, error);
        else status = llvs_store_versions_of(s->store, llvs_str("value/0"), control, &found, error);
        assert_int_equal(found ? found->count : 0, status != LLVS_OK ? 0 : s->kind == SUCCESSORS ? HEADS : 1);
        llvs_version_list_free(found);
        return status;
    }
    case ANCESTOR: {
        llvs_bool is_ancestor;
        status = llvs_store_is_ancestor(s->store, llvs_id(&made[0]), llvs_id(&made[1]), control, &is_ancestor, error);
        assert_int_equal(is_ancestor, status == LLVS_OK);
        return status;
    }
    case RELOAD: {
        uint64_t added = 1;
        status = llvs_store_reload(s->store, control, &added, error);
        assert_int_equal(added, 0);
        return status;
    }
    case CHANGES:
    case DIFFERENCES: {
        llvs_change_cursor *cursor;
        status = s->kind == CHANGES ? llvs_store_changes(s->store, llvs_id(&many), NULL, control, &cursor, error)
                                    : llvs_store_differences(s->store, llvs_id(&many), llvs_id(&made[2]), NULL, control, &cursor, error);
        assert_int_equal(llvs_change_cursor_count(cursor), status != LLVS_OK ? 0 : s->kind == CHANGES ? MANY : MANY + 1);
        llvs_change_cursor_free(cursor);
        return status;
    }
    case FIND: {
        llvs_index_options options = LLVS_INDEX_OPTIONS_INIT;
        llvs_index *index;
        llvs_index_page *page;
        options.definition = llvs_str("{\"prefix\":\"\",\"on\":[\"\"]}");
        OK(llvs_index_open(s->store, &options, &index, &error));
        status = llvs_index_find(index, llvs_id(&many), NULL, control, &page, error);
        assert_true(status == LLVS_OK ? page != NULL : page == NULL);
        llvs_index_page_free(page);
        llvs_index_free(index);
        return status;
    }
    case PROJECT: {
        llvs_projection *projection;
        llvs_buffer json;
        char *folder = new_directory(), view[1100];
        snprintf(view, sizeof view, "%s/view.sqlite", folder);
        OK(llvs_projection_open(s->store, llvs_str(view), llvs_str("{\"tables\":{\"all_of_them\":{\"prefix\":\"\",\"columns\":["
                                "{\"name\":\"data\",\"pointer\":\"\",\"type\":\"json\"}]}}}"), NULL, &projection, &error));
        status = llvs_projection_update(projection, llvs_id(&many), control, NULL, error);
        OK(llvs_projection_status(projection, &json, &error));
        assert_true((strstr((const char *)json.data, "\"version\":null") == NULL) == (status == LLVS_OK));
        llvs_buffer_dispose(&json);
        llvs_projection_free(projection);
        remove_directory(folder);
        return status;
    }
    case CONFLICTS:
    case EXPLAIN:
    case OPEN_CONFLICTS: {
        llvs_conflict_options options = LLVS_CONFLICT_OPTIONS_INIT;
        llvs_conflict_list *conflicts;
        options.control = control;
        if (s->kind == CONFLICTS) status = llvs_store_conflicts(s->store, llvs_id(&many), llvs_id(&made[1]), &options, &conflicts, error);
        else if (s->kind == EXPLAIN) status = llvs_store_explain(s->store, llvs_id(&many), &options, &conflicts, error);
        else status = llvs_store_open_conflicts(s->store, llvs_id(&many), &options, &conflicts, error);
        if (status == LLVS_OK) assert_int_equal(conflicts->count, 0);
        llvs_conflict_list_free(conflicts);
        return status;
    }
    case MERGE: return llvs_store_merge(s->store, llvs_id(&many), llvs_id(&made[1]), NULL, &merging, NULL, error);
    case MERGE_BY_HAND: {
        llvs_arbiter *arbiter;
        OK(llvs_arbiter_create(leave_alone, NULL, NULL, NULL, &arbiter, &error));
        status = llvs_store_merge(s->store, llvs_id(&made[1]), llvs_id(&many), arbiter, &merging, NULL, error);
        llvs_arbiter_free(arbiter);
        return status;
    }
    case REVERT: return llvs_store_revert(s->store, llvs_id(&many), llvs_id(&many), &merging, NULL, error);
    case CHERRY_PICK: return llvs_store_cherry_pick(s->store, llvs_id(&many), llvs_id(&made[1]), &merging, NULL, error);
    default: return llvs_coordinator_merge(s->coordinator, &merging, NULL, error);
    }
}

/* Checks that the versions in the store are as they were made, with all their values, and that nothing is damaged. Returns their number. */
static int check_store(const char *path) {
    llvs_store *store = open_at(path);
    llvs_verify_report *report;
    int count = 0;
    for (int i = 0; i < VERSIONS; i++) {
        llvs_version_list *version;
        llvs_value_list *values;
        OK(llvs_store_version(store, llvs_id(&made[i]), &version, &error));
        if (version) {
            size_t expected = i == 0 ? 1 : 2;
            OK(llvs_store_enumerate(store, llvs_id(&made[i]), NULL, &values, &error));
            assert_int_equal(values->count, expected);
            for (size_t v = 0; v < expected; v++) {
                llvs_bytes data = values->items[v]->data;
                if (i == 3 && v == 1) {
                    assert_int_equal(data.size, LARGE);
                    for (size_t at = 0; at < LARGE; at++)
                        if ((char)data.data[at] != (char)(at * at >> 7)) fail_msg("byte %zu is wrong", at);
                } else {
                    assert_true(bytes_are(data, "of its own"));
                }
            }
            llvs_value_list_free(values);
            count++;
        }
        llvs_version_list_free(version);
    }
    OK(llvs_store_verify(store, NULL, &report, &error));
    assert_null(report->damages[0]);
    llvs_verify_report_free(report);
    llvs_store_free(store);
    return count;
}
/* Checks that the imported versions have the same states as after an undisturbed import. */
static int check_imported(const char *path) {
    llvs_store *store = open_at(path), *whole = memory_store();
    llvs_verify_report *report;
    llvs_history_cursor *history;
    llvs_version_list *versions;
    int count;
    OK(llvs_store_import(whole, llvs_str(foreign), NULL, NULL, NULL, &error));
    assert_int_equal(version_count(whole), FOREIGN_VERSIONS);
    OK(llvs_store_history(store, NULL, NULL, &history, &error));
    OK(llvs_history_cursor_next(history, 0, NULL, &versions, &error));
    llvs_history_cursor_free(history);
    count = versions ? (int)versions->count : 0;
    assert_int_equal(version_count(store), count);
    for (int i = 0; i < count; i++) {
        llvs_bytes id = versions->items[(size_t)i]->id;
        llvs_value_list *values, *expected;
        OK(llvs_store_enumerate(store, id, NULL, &values, &error));
        OK(llvs_store_enumerate(whole, id, NULL, &expected, &error));
        assert_int_equal(values ? values->count : 0, expected ? expected->count : 0);
        for (size_t v = 0; values && v < values->count; v++) {
            const llvs_value_info *a = values->items[v], *b = expected->items[v];
            assert_int_equal(a->id.size, b->id.size);
            assert_memory_equal(a->id.data, b->id.data, b->id.size);
            assert_int_equal(a->data.size, b->data.size);
            assert_memory_equal(a->data.data, b->data.data, b->data.size);
        }
        llvs_value_list_free(values);
        llvs_value_list_free(expected);
    }
    llvs_version_list_free(versions);
    OK(llvs_store_verify(store, NULL, &report, &error));
    assert_null(report->damages[0]);
    assert_int_equal(report->versions, count);
    llvs_verify_report_free(report);
    llvs_store_free(store);
    llvs_store_free(whole);
    return count;
}
static size_t all_versions(const char *path) {
    llvs_store *store = open_at(path);
    size_t count = version_count(store);
    llvs_store_free(store);
    return count;
}
static int has_snapshot(scene *s) {
    llvs_snapshot *snapshot;
    int has;
    OK(llvs_exchange_snapshot(s->sender, &snapshot, &error));
    has = snapshot != NULL;
    llvs_snapshot_free(snapshot);
    return has;
}

/* A restore of the snapshot, or a retrieve from the folder, yields everything. */
static void check_folder(scene *s, int by_snapshot) {
    char *path = join(s->directory, "from-the-folder");
    llvs_store *store = open_at(path);
    llvs_exchange *exchange;
    OK(llvs_exchange_open(store, llvs_str(s->url), NULL, &exchange, &error));
    OK(by_snapshot ? llvs_exchange_restore_snapshot(exchange, NULL, NULL, &error) : llvs_exchange_retrieve(exchange, NULL, NULL, &error));
    llvs_exchange_free(exchange);
    llvs_store_free(store);
    assert_int_equal(check_store(path), VERSIONS);
    remove_directory(path);
}

/* The packs yield everything. */
static void check_pack(scene *s) {
    char *path = join(s->directory, "from-the-pack");
    llvs_store *store = open_at(path);
    OK(unpack_from(store, s->pack, NULL, &error));
    llvs_store_free(store);
    assert_int_equal(check_store(path), VERSIONS);
    remove_directory(path);
}

static void check_cancelled(scene *s) {
    assert_int_equal(check_store(s->full), VERSIONS);
    assert_int_equal(all_versions(s->full), VERSIONS + (s->kind >= CHANGES));
    if (s->kind == IMPORT) assert_true(check_imported(s->target) <= FOREIGN_VERSIONS);
    else if (s->other) (void)check_store(s->target);
    if (s->kind == LOOK_AGAIN) check_folder(s, 0);
    if (s->kind == WRITE_SNAPSHOT || s->kind == PUT_SNAPSHOT) assert_false(has_snapshot(s));
    if (s->kind == MERGE_COORDINATED) {
        llvs_version_id current;
        assert_int_equal(all_versions(s->target), VERSIONS);
        OK(llvs_coordinator_current_version(s->coordinator, &current, &error));
        assert_true(same_id(llvs_id(&current), &made[1]));
    }
    if (s->kind == SALVAGE) { /* the new store is to be deleted */
        char command[1200];
        snprintf(command, sizeof command, "rm -rf '%s'", s->target);
        assert_int_equal(system(command), 0);
    }
}
static void check_done(scene *s) {
    size_t merges = s->kind == MERGE_HEADS || s->kind == MERGE_COORDINATED;
    assert_int_equal(check_store(s->full), VERSIONS);
    if (s->kind == MERGE_HEADS) assert_true(all_versions(s->full) > VERSIONS);
    else assert_int_equal(all_versions(s->full), VERSIONS + (s->kind >= CHANGES) + (s->kind >= MERGE));
    if (s->kind == IMPORT) {
        assert_int_equal(check_imported(s->target), FOREIGN_VERSIONS);
    } else if (s->kind == SALVAGE || s->other || s->coordinator) {
        assert_int_equal(check_store(s->target), VERSIONS);
        if (merges) assert_true(all_versions(s->target) > VERSIONS);
    }
    if (s->kind == SEND || s->kind == LOOK_AGAIN) check_folder(s, 0);
    if (s->kind == PACK) check_pack(s);
    if (s->kind == WRITE_SNAPSHOT || s->kind == PUT_SNAPSHOT) check_folder(s, 1);
}

typedef struct stopper { int calls, stop_at; llvs_status answer; llvs_cancel_token *token; } stopper;
static llvs_status stop(void *payload, const llvs_progress *progress, llvs_error **error) {
    stopper *s = payload;
    assert_true(progress->stage >= LLVS_STAGE_LISTING && progress->stage <= LLVS_STAGE_VERIFYING);
    assert_true(progress->total == 0 || progress->completed <= progress->total);
    if (++s->calls != s->stop_at) return LLVS_OK;
    if (s->answer == LLVS_ERROR_USER) *error = llvs_error_create(11, llvs_str("enough"));
    return s->answer;
}

/* The number of steps of an operation that is not cancelled. */
static int count_steps(enum kind kind, const char *original) {
    scene s = set(kind, original);
    stopper stopper = {0};
    llvs_control control = LLVS_CONTROL_INIT;
    control.progress = stop;
    control.payload = &stopper;
    OK(act(&s, &control, &error));
    check_done(&s);
    strike(&s);
    if (stopper.calls == 0) fail_msg("%s never reports progress", names[kind]);
    return stopper.calls;
}

/* Cancels each operation at each of its steps. At every other step the callback fails with an error of the host instead. The short run
   uses the first two steps, the last one, and one in SOME of the others. */
static void nothing_is_half_done(void **state) {
    enum { SOME = 4 };
    char *original = make_original();
    int all = 0, taken = 0;
    (void)state;
    for (enum kind kind = 0; kind < KINDS; kind++) {
        int steps = count_steps(kind, original);
        for (int stop_at = 1; is_deep() || stop_at <= steps; stop_at++) {
            if (!is_deep() && stop_at > 2 && stop_at < steps && stop_at % SOME != (int)kind % SOME) continue;
            scene s = set(kind, original);
            stopper stopper = {0, stop_at, stop_at % 2 ? LLVS_ERROR_CANCELLED : LLVS_ERROR_USER, NULL};
            llvs_control control = LLVS_CONTROL_INIT;
            llvs_error *error = NULL;
            llvs_status status;
            control.progress = stop;
            control.payload = &stopper;
            status = act(&s, &control, &error);
            if (stopper.calls < stop_at) {
                /* With several threads the number of steps can vary a little. */
                if (status != LLVS_OK) fail_msg("%s, not cancelled: %s", names[kind], llvs_error_message(error));
                check_done(&s);
                strike(&s);
                break;
            }
            /* An operation that is cancelled at its last step may be complete. */
            if (status != stopper.answer || stopper.calls != stop_at)
                fail_msg("%s, cancelled at step %d of %d: %s (%s) after %d", names[kind], stop_at, steps, llvs_status_name(status),
                         llvs_error_message(error), stopper.calls);
            if (status == LLVS_ERROR_USER) assert_int_equal(llvs_error_user_code(error), 11);
            llvs_error_free(error);
            check_cancelled(&s);
            OK(act(&s, NULL, &error));
            check_done(&s);
            strike(&s);
            taken++;
        }
        print_message("%-36s %3d steps\n", names[kind], steps);
        all += steps;
    }
    printf("cancelled at %d of %d steps; at all: scripts/test --deep c\n", taken, all);
    assert_true(all > 2 * KINDS);
    remove_directory(original);
}

/* By a token: before the call, and at one of its steps. */
static llvs_status cancel(void *payload, const llvs_progress *progress, llvs_error **error) {
    stopper *s = payload;
    (void)progress;
    (void)error;
    s->calls++;
    llvs_cancel_token_cancel(s->token);
    return LLVS_OK;
}
static void a_token_cancels(void **state) {
    char *original = make_original();
    (void)state;
    for (enum kind kind = 0; kind < KINDS; kind++) {
        scene s = set(kind, original);
        stopper stopper = {0};
        llvs_control control = LLVS_CONTROL_INIT;
        llvs_error *error = NULL;
        llvs_status status;
        OK(llvs_cancel_token_create(&control.token, &error));
        stopper.token = control.token;
        control.progress = cancel;
        control.payload = &stopper;
        status = act(&s, &control, &error);
        /* An operation with a single step is complete by then. */
        if (status == LLVS_OK) check_done(&s);
        else if (status != LLVS_ERROR_CANCELLED) fail_msg("%s: %s", names[kind], llvs_error_message(error));
        else check_cancelled(&s);
        llvs_error_free(error);
        error = NULL;
        assert_true(stopper.calls > 0);
        stopper.calls = 0;
        if (status == LLVS_ERROR_CANCELLED) {
            FAILS(LLVS_ERROR_CANCELLED, act(&s, &control, &error));
            assert_int_equal(stopper.calls, 0);
            check_cancelled(&s);
            OK(act(&s, NULL, &error));
        }
        check_done(&s);
        llvs_cancel_token_free(control.token);
        strike(&s);
    }
    remove_directory(original);
}

/* Making keys waits ten seconds between two checks, and polls meanwhile. */
static llvs_status cancel_the_wait(void *payload, const llvs_progress *progress, llvs_error **error) {
    stopper *s = payload;
    (void)progress;
    (void)error;
    return ++s->calls == 20 ? LLVS_ERROR_CANCELLED : LLVS_OK;
}
static void keys_of_places_are_cancelled(void **state) {
    char *directory = new_directory(), *keys = join(directory, "pack1/keys");
    llvs_store *store = memory_store();
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_exchange *exchange;
    llvs_member_list *members = NULL;
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_buffer identity, recipient, pairing;
    llvs_bytes secret, half;
    stopper stopper = {0};
    char url[1024];
    (void)state;
    snprintf(url, sizeof url, "file://%s", directory);
    save(store, NULL, insert("x", "1"));
    OK(llvs_identity_create(&identity, &recipient, &error));
    secret.data = identity.data;
    secret.size = identity.size;
    half.data = recipient.data;
    half.size = recipient.size;
    options.identities = &secret;
    options.identity_count = 1;
    OK(llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error));
    control.progress = cancel_the_wait;
    control.payload = &stopper;
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_send(exchange, &control, NULL, &error));
    assert_int_equal(stopper.calls, 20);
    assert_int_not_equal(access(keys, F_OK), 0);
    control.progress = NULL;
    OK(llvs_cancel_token_create(&control.token, &error));
    llvs_cancel_token_cancel(control.token);
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_members(exchange, &control, &members, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_add_member(exchange, half, LLVS_NONE, LLVS_MEMBER_DEVICE, &control, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_remove_member(exchange, half, &control, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_change_passphrase(exchange, half, 1, &control, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_pairing(exchange, 1, &control, &pairing, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_join_keys(exchange, &control, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_rekey(exchange, 1, &control, NULL, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_retire(exchange, &control, NULL, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_enable_differences(exchange, &control, NULL, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_announce_move(exchange, half, &control, NULL, &error));
    llvs_cancel_token_free(control.token);
    llvs_exchange_free(exchange);
    llvs_store_free(store);
    llvs_buffer_dispose(&identity);
    llvs_buffer_dispose(&recipient);
    free(keys);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_half_done), cmocka_unit_test(a_token_cancels), cmocka_unit_test(keys_of_places_are_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

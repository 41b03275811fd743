/* Every callback of every table returns every status from -100 to 100, with the consequences that llvs.h documents. */
#include "support.h"

#include "llvs_testing.h"

#include "array_storage.h"
#include "array_transport.h"
#include "folder_snapshots.h"

/* The callback under test, the status that it returns, and how often it was called. */
static const char *target;
static llvs_status answer;
static int asked;

#define ANSWERS(name) (strcmp(target, name) == 0 && ++asked && answer != LLVS_OK)
#define WRAPPED(name, parameters, arguments)                       \
    static llvs_status name##_answering parameters {               \
        if (ANSWERS(#name)) return answer;                         \
        return name arguments;                                     \
    }

WRAPPED(array_append, (void *p, const llvs_bytes *r, size_t n, uint64_t *places, llvs_error **e), (p, r, n, places, e))
WRAPPED(array_scan, (void *p, uint64_t *mark, llvs_reply *reply, llvs_error **e), (p, mark, reply, e))
WRAPPED(array_read, (void *p, uint64_t place, uint64_t at, uint8_t *b, size_t n, llvs_error **e), (p, place, at, b, n, e))
WRAPPED(array_sync, (void *p, llvs_error **e), (p, e))
WRAPPED(array_close, (void *p, llvs_error **e), (p, e))
WRAPPED(array_cache_get, (void *p, const llvs_bytes *name, llvs_reply *reply, llvs_error **e), (p, name, reply, e))
WRAPPED(array_cache_put, (void *p, const llvs_bytes *name, const llvs_bytes *data, llvs_error **e), (p, name, data, e))
WRAPPED(array_cache_delete, (void *p, const llvs_bytes *name, llvs_error **e), (p, name, e))
WRAPPED(area_list, (void *p, llvs_reply *reply, llvs_error **e), (p, reply, e))
WRAPPED(area_fetch_versions, (void *p, const llvs_bytes *names, size_t n, llvs_reply *reply, llvs_error **e), (p, names, n, reply, e))
WRAPPED(area_fetch_changes, (void *p, const llvs_bytes *names, size_t n, llvs_reply *reply, llvs_error **e), (p, names, n, reply, e))
WRAPPED(area_send, (void *p, const llvs_exchange_files *const *files, size_t n, llvs_reply *reply, llvs_error **e), (p, files, n, reply, e))
WRAPPED(area_unusable, (void *p, const llvs_bytes *names, size_t n, llvs_reply *reply, llvs_error **e), (p, names, n, reply, e))
WRAPPED(area_snapshot_list, (void *p, llvs_reply *reply, llvs_error **e), (p, reply, e))
WRAPPED(area_snapshot_read, (void *p, const llvs_bytes *name, llvs_reply *reply, llvs_error **e), (p, name, reply, e))
WRAPPED(area_snapshot_write, (void *p, const llvs_bytes *name, const llvs_bytes *data, llvs_error **e), (p, name, data, e))
WRAPPED(area_snapshot_delete, (void *p, const llvs_bytes *name, llvs_error **e), (p, name, e))
WRAPPED(area_close, (void *p, llvs_error **e), (p, e))

/* The codes that a table passes on; -1000 ends a list. All others become LLVS_ERROR_USER. */
static const int storage_codes[] = { LLVS_ERROR_NO_SPACE, LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_DAMAGED, LLVS_ERROR_READ_ONLY,
                                     LLVS_ERROR_NOT_FOUND, LLVS_ERROR_BUSY, LLVS_ERROR_TOO_MANY_FILES, LLVS_ERROR_UNKNOWN_OUTCOME, -1000 };
static const int transport_codes[] = { LLVS_ERROR_TRANSPORT, LLVS_ERROR_PERMISSION, LLVS_ERROR_NO_SPACE,
                                       LLVS_ERROR_IO,        LLVS_ERROR_CANCELLED,  -1000 };
static const int read_codes[] = { LLVS_ERROR_IO, LLVS_ERROR_CANCELLED, -1000 };
static const int cancelled[] = { LLVS_ERROR_CANCELLED, -1000 };
static const int no_codes[] = { -1000 };

static int is_among(const int *codes, llvs_status status) {
    for (; *codes != -1000; codes++) if (*codes == status) return 1;
    return 0;
}
static llvs_status expected_of(const int *codes) {
    return answer == LLVS_OK ? LLVS_OK : is_among(codes, answer) ? answer : LLVS_ERROR_USER;
}

static void is(llvs_status expected, llvs_status got, llvs_error *error) {
    if (got != expected)
        fail_msg("%s answered %d: expected %s, got %s (%s)", target, answer, llvs_status_name(expected), llvs_status_name(got),
                 llvs_error_message(error));
    assert_int_equal(llvs_error_code(error), expected);
    llvs_error_free(error);
}

static llvs_storage_callbacks storage_callbacks(void) {
    llvs_storage_callbacks callbacks = array_storage_callbacks();
    callbacks.append = array_append_answering;
    callbacks.scan = array_scan_answering;
    callbacks.read = array_read_answering;
    callbacks.sync = array_sync_answering;
    callbacks.close = array_close_answering;
    callbacks.cache_get = array_cache_get_answering;
    callbacks.cache_put = array_cache_put_answering;
    callbacks.cache_delete = array_cache_delete_answering;
    return callbacks;
}
static llvs_transport_callbacks transport_callbacks(void) {
    llvs_transport_callbacks callbacks = array_transport_callbacks();
    callbacks.list = area_list_answering;
    callbacks.fetch_versions = area_fetch_versions_answering;
    callbacks.fetch_changes = area_fetch_changes_answering;
    callbacks.send = area_send_answering;
    callbacks.unusable = area_unusable_answering;
    callbacks.snapshot_list = area_snapshot_list_answering;
    callbacks.snapshot_read = area_snapshot_read_answering;
    callbacks.snapshot_write = area_snapshot_write_answering;
    callbacks.snapshot_delete = area_snapshot_delete_answering;
    callbacks.close = area_close_answering;
    return callbacks;
}

#define EVERY_STATUS(name) for (target = (name), asked = 0, answer = -100; answer <= 100; answer++)
#define WAS_ASKED() do { if (asked < 201) fail_msg("%s was asked %d times", target, asked); } while (0)

static void storages(void **state) {
    static const char *const names[] = { "array_append", "array_sync",      "array_scan",     "array_read",
                                         "array_close",  "array_cache_put", "array_cache_get" };
    size_t k;
    (void)state;
    for (k = 0; k < sizeof names / sizeof *names; k++) {
        EVERY_STATUS(names[k]) {
            const char *wanted = target;
            array_storage *array = calloc(1, sizeof *array);
            llvs_storage_callbacks callbacks = storage_callbacks();
            llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
            llvs_change change = insert("a", "1");
            llvs_store *store;
            llvs_storage *storage;
            llvs_version_id first, id;
            llvs_buffer data;
            llvs_error *error;
            llvs_status status, expected = expected_of(storage_codes);
            size_t before;
            assert_non_null(array);
            OK(llvs_storage_create(llvs_str("array"), &callbacks, array, NULL, &storage, &error));
            options.storage = LLVS_STORAGE_HOST;
            options.host_storage = storage;
            target = "";
            OK(llvs_store_open(LLVS_NONE, &options, &store, &error));
            OK(llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, &first, NULL, &error));
            before = array->count;
            if (k >= 2 && k != 4) {
                OK(llvs_store_close(store, &error));
                llvs_store_free(store);
            }
            target = wanted;
            if (k == 0 || k == 1) {
                change.kind = LLVS_CHANGE_UPDATE;
                status = llvs_store_make_version(store, llvs_id(&first), &change, 1, sizeof change, NULL, &id, NULL, &error);
                /* The record was appended but not synced, so it is unknown what a power cut would leave. */
                if (k == 1 && expected != LLVS_OK) expected = LLVS_ERROR_UNKNOWN_OUTCOME;
                is(expected, status, error);
                if (k == 0) assert_int_equal(array->count, before + (expected == LLVS_OK));
                llvs_store_free(store);
            } else if (k == 2) {
                status = llvs_store_open(LLVS_NONE, &options, &store, &error);
                is(expected, status, error);
                llvs_store_free(store);
            } else if (k == 3) {
                OK(llvs_store_open(LLVS_NONE, &options, &store, &error));
                status = llvs_store_value(store, llvs_str("a"), llvs_id(&first), &data, NULL, &error);
                is(expected, status, error);
                if (status == LLVS_OK) assert_memory_equal(data.data, "1", data.size);
                llvs_buffer_dispose(&data);
                llvs_store_free(store);
            } else if (k == 4) {
                status = llvs_store_close(store, &error);
                is(expected, status, error);
                llvs_store_free(store);
            } else {
                llvs_coordinator_options opening = LLVS_COORDINATOR_OPTIONS_INIT;
                llvs_coordinator *coordinator;
                opening.store = &options;
                if (k == 5) target = "";
                status = llvs_coordinator_open(LLVS_NONE, &opening, &coordinator, &error);
                if (k == 6) {
                    is(expected, status, error);
                } else {
                    target = wanted;
                    change.kind = LLVS_CHANGE_UPDATE;
                    assert_int_equal(status, LLVS_OK);
                    /* A cache that cannot be written does not cost a version that is stored. */
                    OK(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, &id, NULL, NULL, &error));
                    target = "";
                    OK(llvs_coordinator_value(coordinator, llvs_str("a"), &data, NULL, &error));
                    llvs_buffer_dispose(&data);
                    target = wanted;
                }
                llvs_coordinator_free(coordinator);
            }
            target = wanted;
            llvs_storage_free(storage);
            for (before = 0; before < array->count; before++) free(array->records[before].data);
            for (before = 0; before < array->blob_count; before++) free(array->blobs[before].data);
            free(array);
        }
        WAS_ASKED();
    }
}

static void transports(void **state) {
    static const char *const names[] = { "area_list",          "area_fetch_versions", "area_fetch_changes",  "area_send", "area_unusable",
                                         "area_snapshot_list", "area_snapshot_read",  "area_snapshot_write", "area_close" };
    size_t k;
    (void)state;
    for (k = 0; k < sizeof names / sizeof *names; k++) {
        EVERY_STATUS(names[k]) {
            const char *wanted = target;
            array_area *area = calloc(1, sizeof *area);
            llvs_transport_callbacks callbacks = transport_callbacks();
            llvs_store *full = memory_store(), *empty = memory_store();
            llvs_transport *sending, *receiving;
            llvs_exchange *from, *to;
            llvs_change change = insert("a", "1");
            llvs_error *error = NULL;
            llvs_status status;
            int i;
            assert_non_null(area);
            OK(llvs_store_make_version(full, LLVS_NONE, &change, 1, sizeof change, NULL, NULL, NULL, &error));
            OK(llvs_transport_create(llvs_str("area"), &callbacks, area, NULL, &sending, &error));
            OK(llvs_transport_create(llvs_str("area"), &callbacks, area, NULL, &receiving, &error));
            OK(llvs_exchange_open(full, LLVS_NONE, through(sending), &from, &error));
            OK(llvs_exchange_open(empty, LLVS_NONE, through(receiving), &to, &error));
            target = "";
            if (k != 3) OK(llvs_exchange_send(from, NULL, NULL, &error));
            if (k == 5 || k == 6) OK(llvs_exchange_put_snapshot(from, NULL, NULL, &error));
            target = wanted;
            switch (k) {
            case 0: case 1: case 2: status = llvs_exchange_retrieve(to, NULL, NULL, &error); break;
            case 3: case 4: status = llvs_exchange_send(from, NULL, NULL, &error); break;
            case 6: status = llvs_exchange_restore_snapshot(to, NULL, NULL, &error); break;
            case 5: case 7: status = llvs_exchange_put_snapshot(from, NULL, NULL, &error); break;
            default: status = llvs_exchange_close(from, &error); break;
            }
            is(k == 8 ? LLVS_OK : expected_of(transport_codes), status, error);
            if (k == 3) { /* only versions that were sent count as sent */
                llvs_exchange_result *result;
                size_t count;
                target = "";
                OK(llvs_exchange_send(from, NULL, &result, &error));
                count = result->sent_count;
                assert_int_equal(count, answer == LLVS_OK ? 0 : 1);
                llvs_exchange_result_free(result);
                target = wanted;
            }
            llvs_exchange_free(from);
            llvs_exchange_free(to);
            llvs_transport_free(sending);
            llvs_transport_free(receiving);
            for (i = 0; i < 2; i++) llvs_store_free(i ? full : empty);
            area_free(area);
        }
        WAS_ASKED();
    }
}

static int pieces_left;
static llvs_status read_piece(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **error) {
    (void)payload; (void)error; (void)capacity;
    assert_int_equal(*size, 0);
    if (pieces_left-- > 0) { buffer[0] = 'x'; *size = 1; return LLVS_OK; }
    asked++;
    return answer;
}

static void sources(void **state) {
    (void)state;
    EVERY_STATUS("read") {
        llvs_store *store = memory_store();
        llvs_value_source source = LLVS_VALUE_SOURCE_INIT;
        llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
        llvs_error *error;
        llvs_status status;
        llvs_version_list *heads;
        source.id = llvs_str("a");
        source.read = read_piece;
        options.sources = &source;
        options.source_count = 1;
        options.source_size = sizeof source;
        pieces_left = 3;
        status = llvs_store_make_version(store, LLVS_NONE, NULL, 0, sizeof(llvs_change), &options, NULL, NULL, &error);
        /* Only LLVS_END ends a value. */
        is(answer == LLVS_END             ? LLVS_OK
           : answer == LLVS_OK            ? LLVS_ERROR_INVALID_ARGUMENT
           : is_among(read_codes, answer) ? answer
                                          : LLVS_ERROR_USER,
           status, error);
        OK(llvs_store_heads(store, NULL, &heads, &error));
        assert_int_equal(heads->count, answer == LLVS_END);
        llvs_version_list_free(heads);
        llvs_store_free(store);
    }
    WAS_ASKED();
}

/* ---- files of a transport in pieces ---- */

typedef struct held_file { array_area *area; size_t at, from; } held_file;
static void close_file(void *payload) { free(payload); }
static llvs_status read_file(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **error) {
    held_file *file = payload;
    size_t left = file->area->files[file->at].size - file->from;
    (void)error;
    if (left == 0 || answer != LLVS_END) { asked++; return answer; }
    if (left > capacity) left = capacity;
    memcpy(buffer, file->area->files[file->at].data + file->from, left);
    file->from += left;
    *size = left;
    return LLVS_OK;
}
static llvs_status fetch_in_pieces(void *payload, const llvs_bytes *names, size_t count, llvs_reply *reply, llvs_error **error) {
    size_t i;
    for (i = 0; i < count; i++) {
        held_file *file = calloc(1, sizeof *file);
        llvs_status status;
        assert_non_null(file);
        file->area = payload;
        file->at = area_find(payload, "changes", names[i].data, names[i].size);
        status = llvs_reply_set_source(reply, i, 0, read_file, file, close_file, error);
        if (status != LLVS_OK) return status;
    }
    return LLVS_OK;
}
static llvs_status take_piece(void *payload, const llvs_bytes *piece, llvs_error **error) {
    (void)payload; (void)piece; (void)error;
    asked++;
    return answer;
}
static llvs_status send_large(void *payload, const llvs_bytes *name, const llvs_bytes *version, llvs_outgoing *changes, llvs_reply *reply,
                              llvs_error **error) {
    (void)name; (void)version; (void)reply;
    if (strcmp(target, "send_large") == 0) { asked++; return answer; }
    return llvs_outgoing_write(changes, take_piece, payload, error);
}

static void large_files(void **state) {
    static const char *const names[] = { "read of a file", "send_large", "write" };
    static char large[1500000];
    size_t k;
    (void)state;
    memset(large, 'x', sizeof large);
    for (k = 0; k < 3; k++) {
        EVERY_STATUS(names[k]) {
            array_area *area = calloc(1, sizeof *area);
            llvs_transport_callbacks callbacks = array_transport_callbacks();
            llvs_store *full = memory_store(), *empty = memory_store();
            llvs_transport *sending, *receiving;
            llvs_exchange *from, *to;
            llvs_change change = insert("a", "1");
            llvs_error *error = NULL;
            llvs_exchange_result *result = NULL;
            llvs_status status;
            assert_non_null(area);
            if (k > 0) { change.data = llvs_bytes_make(large, sizeof large); callbacks.send_large = send_large; }
            else callbacks.fetch_changes = fetch_in_pieces;
            OK(llvs_store_make_version(full, LLVS_NONE, &change, 1, sizeof change, NULL, NULL, NULL, &error));
            OK(llvs_transport_create(llvs_str("area"), &callbacks, area, NULL, &sending, &error));
            OK(llvs_transport_create(llvs_str("area"), &callbacks, area, NULL, &receiving, &error));
            OK(llvs_exchange_open(full, LLVS_NONE, through(sending), &from, &error));
            OK(llvs_exchange_open(empty, LLVS_NONE, through(receiving), &to, &error));
            if (k > 0) {
                status = llvs_exchange_send(from, NULL, NULL, &error);
                is(expected_of(transport_codes), status, error);
            } else {
                const int is_problem = answer == LLVS_ERROR_IO || answer == LLVS_ERROR_PERMISSION || answer == LLVS_ERROR_NOT_FOUND;
                OK(llvs_exchange_send(from, NULL, NULL, &error));
                status = llvs_exchange_retrieve(to, NULL, &result, &error);
                is(answer == LLVS_END || is_problem ? LLVS_OK : answer == LLVS_OK ? LLVS_ERROR_INVALID_ARGUMENT
                   : is_among(transport_codes, answer) ? answer : LLVS_ERROR_USER, status, error);
                if (status == LLVS_OK) {
                    size_t count;
                    count = result->retrieved_count;
                    assert_int_equal(count, answer == LLVS_END);
                    assert_int_equal(result->problem_count, is_problem);
                    if (is_problem) assert_int_equal(result->problems[0]->code, answer);
                }
                llvs_exchange_result_free(result);
            }
            llvs_exchange_free(from);
            llvs_exchange_free(to);
            llvs_transport_free(sending);
            llvs_transport_free(receiving);
            llvs_store_free(full);
            llvs_store_free(empty);
            area_free(area);
        }
        WAS_ASKED();
    }
}

static llvs_status hear_progress(void *payload, const llvs_progress *progress, llvs_error **error) {
    (void)payload; (void)progress; (void)error;
    asked++;
    return answer;
}

static void progress(void **state) {
    llvs_store *store = memory_store();
    llvs_change change = insert("a", "1");
    (void)state;
    OK(llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, NULL, NULL, &error));
    EVERY_STATUS("progress") {
        llvs_control control = LLVS_CONTROL_INIT;
        llvs_error *error;
        char *directory = new_directory();
        llvs_status status;
        control.progress = hear_progress;
        status = write_snapshot_into(store, directory, &control, &error);
        is(expected_of(cancelled), status, error);
        remove_directory(directory);
    }
    WAS_ASKED();
    llvs_store_free(store);
}

static llvs_status resolve(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
    llvs_change change = LLVS_CHANGE_INIT;
    (void)payload; (void)merge;
    asked++;
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = llvs_str("a");
    change.data = llvs_str("both");
    if (llvs_resolution_add(resolution, &change, 1, sizeof change, error) != LLVS_OK) return LLVS_ERROR_USER;
    return answer;
}

/* Merges two versions that both changed one value, and releases the arbiter. */
static void merge_with(llvs_arbiter *arbiter) {
    llvs_store *store = memory_store();
    llvs_version_id root = save(store, NULL, insert("a", "0"));
    llvs_version_id ours = save(store, &root, update("a", "1")), theirs = save(store, &root, update("a", "2"));
    llvs_error *error = NULL;
    llvs_status status = llvs_store_merge(store, llvs_id(&ours), llvs_id(&theirs), arbiter, NULL, NULL, &error);
    is(answer == LLVS_PASS ? LLVS_OK : expected_of(no_codes), status, error);
    llvs_arbiter_free(arbiter);
    llvs_store_free(store);
}

static void arbiters(void **state) {
    (void)state;
    EVERY_STATUS("resolve") {
        llvs_arbiter *arbiter;
        OK(llvs_arbiter_create(resolve, NULL, NULL, NULL, &arbiter, &error));
        merge_with(arbiter);
    }
    WAS_ASKED();
}

/* Merges one value that both sides changed. */
static llvs_status merge_value(void *payload, const llvs_value_question *question, llvs_resolution *resolution, llvs_error **error) {
    llvs_change change = update("a", "both");
    (void)payload; (void)question;
    asked++;
    if (answer != LLVS_PASS && llvs_resolution_add(resolution, &change, 1, sizeof change, error) != LLVS_OK) return LLVS_ERROR_USER;
    return answer;
}

static void value_mergers(void **state) {
    (void)state;
    EVERY_STATUS("merge a value") {
        llvs_arbiter *arbiter;
        OK(llvs_value_merger_create(merge_value, NULL, NULL, LLVS_NONE, &arbiter, &error));
        merge_with(arbiter);
    }
    WAS_ASKED();
}

/* Gives the keys of one value. */
static llvs_status give_keys(void *payload, const llvs_bytes *id, const llvs_bytes *data, llvs_index_keys *keys, llvs_error **error) {
    (void)payload; (void)id; (void)data;
    asked++;
    if (llvs_index_keys_add(keys, llvs_str("[1]"), error) != LLVS_OK) return LLVS_ERROR_USER;
    return answer;
}

static void indexes(void **state) {
    (void)state;
    EVERY_STATUS("give keys") {
        llvs_store *store = memory_store();
        llvs_index *index;
        llvs_index_page *page = NULL;
        llvs_error *error = NULL;
        llvs_status status;
        save(store, NULL, insert("a", "0"));
        OK(llvs_computed_index_open(store, NULL, give_keys, NULL, NULL, &index, &error));
        status = llvs_index_find(index, LLVS_NONE, NULL, NULL, &page, &error);
        assert_int_equal(page != NULL, answer == LLVS_OK);
        is(expected_of(no_codes), status, error);
        llvs_index_page_free(page);
        llvs_index_free(index);
        llvs_store_free(store);
    }
    WAS_ASKED();
}

/* ---- other callbacks that return bytes ---- */

static llvs_status decode(void *payload, const llvs_bytes *data, llvs_reply *reply, llvs_error **error) {
    (void)payload; (void)data; (void)reply; (void)error;
    asked++;
    return answer;
}

static void decoders(void **state) {
    char *directory = new_directory(), *command = NULL, *foreign = join(directory, "store");
    static const char form[] = "cp -R '%s' '%s' && chmod -R u+w '%s' && f=$(find '%s/values/k1' -name '*.json' | head -n 1) && "
        "{ printf LLZF; cat \"$f\"; } >\"$f.x\" && mv \"$f.x\" \"$f\"";
    static const char whole[] = LLVS_SOURCE_DIR "/Tests/Vectors/interchange/store";
    size_t size = sizeof form + sizeof whole + 3 * strlen(foreign);
    (void)state;
    command = malloc(size);
    assert_non_null(command);
    snprintf(command, size, form, whole, foreign, foreign, foreign);
    assert_int_equal(system(command), 0);
    EVERY_STATUS("decode") {
        llvs_store *store = memory_store();
        llvs_import_options options = LLVS_IMPORT_OPTIONS_INIT;
        llvs_exchange_result *result = NULL;
        llvs_error *error;
        llvs_status status;
        options.decode = decode;
        status = llvs_store_import(store, llvs_str(foreign), &options, NULL, &result, &error);
        is(answer == LLVS_PASS ? LLVS_OK : LLVS_ERROR_USER, status, error);
        llvs_exchange_result_free(result);
        llvs_store_free(store);
    }
    WAS_ASKED();
    remove_directory(directory);
    free(foreign);
    free(command);
}

static llvs_status give_credentials(void *payload, const llvs_bytes *place, llvs_bool again, llvs_reply *reply, llvs_error **error) {
    (void)payload; (void)place; (void)again; (void)reply; (void)error;
    asked++;
    /* There is no server, so success would only cause repeated attempts. */
    return answer == LLVS_OK ? LLVS_ERROR_USER : answer;
}

static void credentials(void **state) {
    llvs_store *store = memory_store();
    (void)state;
    EVERY_STATUS("credentials") {
        llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
        llvs_exchange *exchange;
        llvs_error *error;
        llvs_status status;
        options.credentials = give_credentials;
        OK(llvs_exchange_open(store, llvs_str("http+webdav://127.0.0.1:9/notes/"), &options, &exchange, &error));
        status = llvs_exchange_send(exchange, NULL, NULL, &error);
        is(LLVS_ERROR_USER, status, error);
        llvs_exchange_free(exchange);
    }
    WAS_ASKED();
    llvs_store_free(store);
}

/* ---- the suites of llvs_testing.h ---- */

static llvs_status make_storage(void *payload, uint64_t place, llvs_storage **storage, llvs_error **error) {
    (void)payload; (void)place;
    if (strcmp(target, "make") == 0 && ++asked && answer != LLVS_OK) return answer;
    return llvs_testing_storage(LLVS_NONE, payload, storage, error);
}
static llvs_status make_transport(void *payload, uint64_t place, llvs_transport **transport, llvs_error **error) {
    (void)payload; (void)place;
    if (strcmp(target, "make") == 0 && ++asked && answer != LLVS_OK) return answer;
    return llvs_testing_transport(llvs_str("memory:statuses"), NULL, transport, error);
}
static llvs_status finish_check(void *payload, const llvs_check *check, llvs_error **error) {
    (void)payload; (void)check; (void)error;
    if (strcmp(target, "finished") == 0) { asked++; return answer; }
    return LLVS_OK;
}

static void suites(void **state) {
    static const char *const names[] = { "make", "finished" };
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    size_t k, i;
    (void)state;
    options.storage = LLVS_STORAGE_MEMORY;
    for (i = 0; i < 2; i++) {
        for (k = 0; k < 2; k++) {
            EVERY_STATUS(names[k]) {
                llvs_storage_subject storage = LLVS_STORAGE_SUBJECT_INIT;
                llvs_transport_subject transport = LLVS_TRANSPORT_SUBJECT_INIT;
                llvs_check_report *report = NULL;
                llvs_error *error;
                llvs_status status;
                storage.make = make_storage;
                storage.finished = finish_check;
                storage.traits = LLVS_TRAIT_VOLATILE | LLVS_TRAIT_EXCLUSIVE;
                storage.payload = &options;
                storage.only = llvs_str("records are read back");
                transport.make = make_transport;
                transport.finished = finish_check;
                transport.only = llvs_str(llvs_check_transport_name(0));
                status = i == 0 ? llvs_check_storage(&storage, &report, &error) : llvs_check_transport(&transport, &report, &error);
                is(k == 0 ? LLVS_OK : expected_of(cancelled), status, error);
                if (k == 0 && answer != LLVS_OK) assert_true(report->failures > 0);
                llvs_check_report_free(report);
            }
            WAS_ASKED();
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storages),
        cmocka_unit_test(transports),
        cmocka_unit_test(sources),
        cmocka_unit_test(large_files),
        cmocka_unit_test(progress),
        cmocka_unit_test(arbiters),
        cmocka_unit_test(value_mergers),
        cmocka_unit_test(indexes),
        cmocka_unit_test(decoders),
        cmocka_unit_test(credentials),
        cmocka_unit_test(suites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

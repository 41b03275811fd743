/* Exchanges by folder, in memory and by a transport in C; bad input in the folder; cancelling; snapshots. */
#include "support.h"

#include <sys/stat.h>

#include "array_transport.h"
#include "folder_snapshots.h"

/* A place of one of three kinds, which two exchanges reach. */
enum kind { FOLDER, MEMORY, HOST };
typedef struct place { enum kind kind; char *directory; char url[1100]; array_area *area; } place;

static place new_place(enum kind kind) {
    static int number;
    place p;
    memset(&p, 0, sizeof p);
    p.kind = kind;
    if (kind == FOLDER) {
        p.directory = new_directory();
        snprintf(p.url, sizeof p.url, "file://%s", p.directory);
    } else if (kind == MEMORY) {
        snprintf(p.url, sizeof p.url, "memory:place-%d", ++number);
    } else {
        p.area = calloc(1, sizeof *p.area);
        assert_non_null(p.area);
    }
    return p;
}
static void free_place(place *p) {
    if (p->directory) remove_directory(p->directory);
    if (p->area) area_free(p->area);
}
static llvs_exchange *exchange_with(llvs_store *store, place *p) {
    llvs_exchange *exchange;
    if (p->kind == HOST) {
        llvs_transport_callbacks callbacks = array_transport_callbacks();
        llvs_transport *transport;
        OK(llvs_transport_create(llvs_str("array"), &callbacks, p->area, NULL, &transport, &error));
        OK(llvs_exchange_open(store, LLVS_NONE, through(transport), &exchange, &error));
        llvs_transport_free(transport);
    } else {
        OK(llvs_exchange_open(store, llvs_str(p->url), NULL, &exchange, &error));
    }
    return exchange;
}
static size_t sent(llvs_exchange *exchange) {
    llvs_exchange_result *result;
    size_t count, none;
    OK(llvs_exchange_send(exchange, NULL, &result, &error));
    assert_int_equal(result->problem_count, 0);
    count = result->sent_count;
    none = result->retrieved_count;
    assert_int_equal(none, 0);
    llvs_exchange_result_free(result);
    return count;
}
static size_t retrieved(llvs_exchange *exchange) {
    llvs_exchange_result *result;
    size_t count;
    OK(llvs_exchange_retrieve(exchange, NULL, &result, &error));
    assert_int_equal(result->problem_count, 0);
    count = result->retrieved_count;
    llvs_exchange_result_free(result);
    return count;
}

static void versions_travel_both_ways(void **state) {
    enum kind kind;
    (void)state;
    for (kind = FOLDER; kind <= HOST; kind++) {
        place p = new_place(kind);
        llvs_store *one = memory_store(), *two = memory_store();
        llvs_exchange *mine = exchange_with(one, &p), *theirs = exchange_with(two, &p);
        llvs_version_id a = save(one, NULL, insert("x", "1")), b, c;
        llvs_version_list *list, *other;
        b = save(one, &a, update("x", "\xE2\x82\xAC and more"));
        assert_int_equal(sent(mine), 2);
        assert_int_equal(sent(mine), 0);
        assert_int_equal(retrieved(theirs), 2);
        assert_int_equal(retrieved(theirs), 0);
        value_is(two, &a, "x", "1");
        value_is(two, &b, "x", "\xE2\x82\xAC and more");
        OK(llvs_store_version(one, llvs_id(&b), &list, &error));
        OK(llvs_store_version(two, llvs_id(&b), &other, &error));
        assert_true(list->items[0]->timestamp == other->items[0]->timestamp);
        llvs_version_list_free(list);
        llvs_version_list_free(other);
        c = save(two, &b, removal("x"));
        assert_int_equal(sent(theirs), 1);
        assert_int_equal(retrieved(mine), 1);
        value_is(one, &c, "x", NULL);
        llvs_exchange_free(mine);
        llvs_exchange_free(theirs);
        if (p.area) assert_int_equal(p.area->closes, 2);
        llvs_store_free(one);
        llvs_store_free(two);
        free_place(&p);
    }
}

/* Replaces the C library's functions, in this program and in the library, and counts their calls. */
static int syncs;
int syncfs(int descriptor);
int fsync(int descriptor) { (void)descriptor; syncs++; return 0; }
int syncfs(int descriptor) { (void)descriptor; syncs++; return 0; }

static void what_travels_is_synced_unless_asked_not_to_be(void **state) {
    llvs_durability durability;
    (void)state;
    for (durability = LLVS_DURABILITY_FULL; durability <= LLVS_DURABILITY_NORMAL; durability++) {
        place p = new_place(FOLDER);
        llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
        llvs_coordinator_options coordinating = LLVS_COORDINATOR_OPTIONS_INIT;
        llvs_store_options in_memory = LLVS_STORE_OPTIONS_INIT;
        llvs_coordinator *coordinator;
        llvs_change change = insert("y", "1");
        llvs_store *store = memory_store();
        llvs_exchange *exchange;
        save(store, NULL, insert("x", "1"));
        options.durability = durability;
        OK(llvs_exchange_open(store, llvs_str(p.url), &options, &exchange, &error));
        syncs = 0;
        assert_int_equal(sent(exchange), 1);
        assert_true(durability == LLVS_DURABILITY_FULL ? syncs >= 3 : syncs == 0);
        llvs_exchange_free(exchange);
        llvs_store_free(store);
        in_memory.storage = LLVS_STORAGE_MEMORY;
        coordinating.store = &in_memory;
        OK(llvs_coordinator_open(LLVS_NONE, &coordinating, &coordinator, &error));
        OK(llvs_coordinator_attach(coordinator, llvs_str(p.url), &options, &error));
        OK(llvs_coordinator_save(coordinator, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error));
        syncs = 0;
        OK(llvs_coordinator_exchange(coordinator, NULL, NULL, &error));
        assert_true(durability == LLVS_DURABILITY_FULL ? syncs >= 3 : syncs == 0);
        llvs_coordinator_free(coordinator);
        free_place(&p);
    }
}

/* A place whose large files are sent and fetched in pieces. */
typedef struct piecewise {
    array_area area;
    size_t largest, pieces, opened, freed, broken_behind;
    int is_failing;
} piecewise;
typedef struct open_file {
    piecewise *place;
    const uint8_t *data;
    size_t size, at;
} open_file;

static void close_file(void *payload) {
    open_file *file = payload;
    file->place->freed++;
    free(file);
}
static llvs_status read_file(void *payload, uint8_t *buffer, size_t capacity, size_t *size, llvs_error **error) {
    open_file *file = payload;
    size_t count = file->size - file->at < 70001 ? file->size - file->at : 70001;
    (void)error;
    if (file->place->broken_behind && file->at >= file->place->broken_behind) return LLVS_ERROR_IO;
    if (count > capacity) count = capacity;
    if (count) memcpy(buffer, file->data + file->at, count);
    file->at += count;
    file->place->pieces++;
    *size = count;
    return count ? LLVS_OK : LLVS_END;
}
static llvs_status fetch_in_pieces(void *payload, const llvs_bytes *names, size_t count, llvs_reply *reply, llvs_error **error) {
    piecewise *place = payload;
    size_t i, at;
    llvs_status status = LLVS_OK;
    for (i = 0; i < count && status == LLVS_OK; i++) {
        open_file *file;
        at = area_find(&place->area, "changes", names[i].data, names[i].size);
        if (at == place->area.count) continue;
        file = malloc(sizeof *file);
        assert_non_null(file);
        file->place = place;
        file->data = place->area.files[at].data;
        file->size = place->area.files[at].size;
        file->at = 0;
        place->opened++;
        status = llvs_reply_set_source(reply, i, i % 2 ? file->size : 0, read_file, file, close_file, error);
    }
    return status;
}
typedef struct growing { piecewise *place; uint8_t *data; size_t size; } growing;
static llvs_status take_piece(void *payload, const llvs_bytes *piece, llvs_error **error) {
    growing *file = payload;
    if (file->place->is_failing && file->size > 500000) {
        *error = llvs_error_create(9, llvs_str("the disk is gone"));
        return LLVS_ERROR_USER;
    }
    file->data = realloc(file->data, file->size + piece->size);
    assert_non_null(file->data);
    memcpy(file->data + file->size, piece->data, piece->size);
    file->size += piece->size;
    if (piece->size > file->place->largest) file->place->largest = piece->size;
    return LLVS_OK;
}
static llvs_status send_in_pieces(void *payload, const llvs_bytes *name, const llvs_bytes *version, llvs_outgoing *changes,
                                  llvs_reply *reply, llvs_error **error) {
    piecewise *place = payload;
    growing file = { place, NULL, 0 };
    int time;
    llvs_status status = LLVS_OK;
    assert_false(llvs_reply_is_cancelled(reply));
    for (time = 0; time < 2 && status == LLVS_OK; time++) { /* any number of times */
        file.size = 0;
        status = llvs_outgoing_write(changes, take_piece, &file, error);
    }
    if (status == LLVS_OK) {
        assert_int_equal(file.size, llvs_outgoing_size(changes));
        area_put(&place->area, "changes", *name, llvs_bytes_make(file.data, file.size));
        area_put(&place->area, "versions", *name, *version);
    }
    free(file.data);
    return status;
}

static void large_files_travel_in_pieces(void **state) {
    enum { SIZE = 3000000 };
    piecewise *place = calloc(1, sizeof *place);
    llvs_transport_callbacks callbacks = array_transport_callbacks();
    llvs_transport *transport, *other;
    llvs_store *one = memory_store(), *two = memory_store();
    llvs_exchange *mine, *theirs;
    llvs_exchange_result *result;
    llvs_version_id a, b;
    llvs_change change = insert("large", NULL);
    llvs_buffer data;
    uint8_t *large = malloc(SIZE);
    size_t i;
    (void)state;
    assert_non_null(place);
    assert_non_null(large);
    for (i = 0; i < SIZE; i++) large[i] = (uint8_t)(i * i >> 7);
    change.data = llvs_bytes_make(large, SIZE);
    callbacks.fetch_changes = fetch_in_pieces;
    callbacks.send_large = send_in_pieces;
    OK(llvs_transport_create(LLVS_NONE, &callbacks, place, NULL, &transport, &error));
    OK(llvs_exchange_open(one, LLVS_NONE, through(transport), &mine, &error));
    a = save(one, NULL, insert("small", "1"));
    b = save(one, &a, change);
    /* An error from sending a piece is returned, and the version is sent the next time. */
    place->is_failing = 1;
    {
        llvs_error *error;
        assert_int_equal(llvs_exchange_send(mine, NULL, NULL, &error), LLVS_ERROR_USER);
        assert_int_equal(llvs_error_user_code(error), 9);
        llvs_error_free(error);
    }
    place->is_failing = 0;
    assert_int_equal(sent(mine), 1);
    assert_true(place->largest > 0 && place->largest < SIZE / 2);
    assert_int_equal(place->area.sends, 1); /* the small version, before the large one failed */
    callbacks.send_large = NULL;
    callbacks.struct_size = 80; /* of an older program, with fewer callbacks */
    OK(llvs_transport_create(LLVS_NONE, &callbacks, place, NULL, &other, &error));
    OK(llvs_exchange_open(two, LLVS_NONE, through(other), &theirs, &error));
    place->broken_behind = 2000000;
    OK(llvs_exchange_retrieve(theirs, NULL, &result, &error));
    assert_int_equal(result->problem_count, 1);
    assert_int_equal(result->problems[0]->code, LLVS_ERROR_IO);
    assert_true(same_id(result->problems[0]->name, &b));
    llvs_exchange_result_free(result);
    place->broken_behind = 0;
    place->pieces = 0;
    assert_int_equal(retrieved(theirs), 1);
    assert_true(place->pieces > SIZE / 70001);
    assert_true(place->opened > 0 && place->opened == place->freed);
    OK(llvs_store_value(two, llvs_str("large"), llvs_id(&b), &data, NULL, &error));
    assert_int_equal(data.size, SIZE);
    assert_memory_equal(data.data, large, SIZE);
    llvs_buffer_dispose(&data);
    /* Without a callback for pieces, large files are sent whole. */
    large[0]++;
    change.kind = LLVS_CHANGE_UPDATE;
    save(two, &b, change);
    place->largest = 0;
    assert_int_equal(sent(theirs), 1);
    assert_int_equal(place->area.sends, 2);
    assert_int_equal(place->largest, 0);
    assert_int_equal(retrieved(mine), 1);
    llvs_exchange_free(mine);
    llvs_exchange_free(theirs);
    llvs_transport_free(transport);
    llvs_transport_free(other);
    llvs_store_free(one);
    llvs_store_free(two);
    for (i = 0; i < place->area.count; i++) free(place->area.files[i].data);
    free(place);
    free(large);
}

/* Counts the progress calls; cancels at one of them. */
typedef struct stopper { int calls, stop_at; llvs_status answer; } stopper;
static llvs_status stop(void *payload, const llvs_progress *progress, llvs_error **error) {
    stopper *s = payload;
    assert_int_equal(progress->struct_size, sizeof *progress);
    assert_true(progress->stage >= LLVS_STAGE_LISTING && progress->stage <= LLVS_STAGE_VERIFYING);
    assert_true(progress->total == 0 || progress->completed <= progress->total);
    if (++s->calls != s->stop_at) return LLVS_OK;
    if (s->answer == LLVS_ERROR_USER) *error = llvs_error_create(11, llvs_str("enough"));
    return s->answer;
}

static void cancelling_at_each_progress_call(void **state) {
    enum kind kind;
    (void)state;
    for (kind = FOLDER; kind <= HOST; kind++) {
        int direction;
        for (direction = 0; direction < 2; direction++) {
            int stop_at, most = 1;
            for (stop_at = 1; stop_at <= most; stop_at++) {
                place p = new_place(kind);
                llvs_store *one = memory_store(), *two = memory_store();
                llvs_exchange *mine = exchange_with(one, &p), *theirs = exchange_with(two, &p);
                llvs_version_id last = save(one, NULL, insert("x", "0"));
                llvs_control control = LLVS_CONTROL_INIT;
                stopper s = { 0, 0, LLVS_ERROR_CANCELLED };
                llvs_exchange_result *result;
                llvs_verify_report *report;
                int i;
                for (i = 0; i < 5; i++) last = save(one, &last, update("x", "more"));
                control.progress = stop;
                control.payload = &s;
                if (direction == 1) assert_int_equal(sent(mine), 6);
                if (stop_at == 1) { /* how many calls there are */
                    place dry = new_place(kind);
                    llvs_exchange *count_here = direction == 0 ? exchange_with(one, &dry) : theirs;
                    OK(direction == 0 ? llvs_exchange_send(count_here, &control, NULL, &error)
                                      : llvs_exchange_retrieve(count_here, &control, NULL, &error));
                    most = s.calls;
                    assert_true(most > 0);
                    if (direction == 0) llvs_exchange_free(count_here);
                    free_place(&dry);
                    llvs_store_free(two);
                    llvs_exchange_free(theirs);
                    two = memory_store();
                    theirs = exchange_with(two, &p);
                    s.calls = 0;
                }
                s.stop_at = stop_at;
                if (direction == 0) FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_send(mine, &control, &result, &error));
                else FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_retrieve(theirs, &control, &result, &error));
                assert_null(result);
                OK(llvs_store_verify(two, NULL, &report, &error)); /* nothing partial */
                assert_int_equal(report->pending, 0);
                assert_int_equal(report->damage_count, 0);
                llvs_verify_report_free(report);
                sent(mine); /* and again, to the end */
                retrieved(theirs);
                value_is(two, &last, "x", "more");
                llvs_exchange_free(mine);
                llvs_exchange_free(theirs);
                llvs_store_free(one);
                llvs_store_free(two);
                free_place(&p);
            }
        }
    }
}

static void a_progress_callback_may_fail(void **state) {
    place p = new_place(MEMORY);
    llvs_store *store = memory_store();
    llvs_exchange *exchange = exchange_with(store, &p);
    llvs_control control = LLVS_CONTROL_INIT;
    stopper s = { 0, 1, LLVS_ERROR_USER };
    llvs_error *error;
    (void)state;
    save(store, NULL, insert("x", "1"));
    control.progress = stop;
    control.payload = &s;
    assert_int_equal(llvs_exchange_send(exchange, &control, NULL, &error), LLVS_ERROR_USER);
    assert_true(llvs_error_user_code(error) == 11);
    assert_string_equal(llvs_error_message(error), "enough");
    llvs_error_free(error);
    assert_int_equal(sent(exchange), 1);
    llvs_exchange_free(exchange);
    llvs_store_free(store);
    free_place(&p);
}

static void a_failing_transport_surfaces(void **state) {
    static const char *const callbacks[] = { "list", "fetch_versions", "fetch_changes", "send" };
    place p = new_place(HOST);
    llvs_store *one = memory_store(), *two = memory_store();
    llvs_exchange *mine = exchange_with(one, &p), *theirs = exchange_with(two, &p);
    size_t i;
    (void)state;
    save(one, NULL, insert("x", "1"));
    assert_int_equal(sent(mine), 1);
    save(one, NULL, insert("y", "1"));
    for (i = 0; i < 4; i++) {
        llvs_error *error;
        p.area->failing = callbacks[i];
        assert_int_equal(i == 3 ? llvs_exchange_send(mine, NULL, NULL, &error) : llvs_exchange_retrieve(theirs, NULL, NULL, &error),
                         LLVS_ERROR_USER);
        assert_true(llvs_error_user_code(error) == 7);
        assert_string_equal(llvs_error_message(error), "the line is dead");
        llvs_error_free(error);
        assert_int_equal(version_count(two), 0);
    }
    p.area->failing = NULL;
    assert_int_equal(sent(mine), 1);
    assert_int_equal(retrieved(theirs), 2);
    llvs_exchange_free(mine);
    llvs_exchange_free(theirs);
    llvs_store_free(one);
    llvs_store_free(two);
    free_place(&p);
}

static void a_transport_sees_the_token(void **state) {
    place p = new_place(HOST);
    llvs_store *store = memory_store();
    llvs_exchange *exchange = exchange_with(store, &p);
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_cancel_token *token;
    (void)state;
    save(store, NULL, insert("x", "1"));
    OK(llvs_cancel_token_create(&token, &error));
    control.token = token;
    p.area->cancel_while_sending = token;
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_send(exchange, &control, NULL, &error));
    assert_int_equal(p.area->sends, 1);
    assert_int_equal(p.area->count, 0);
    llvs_cancel_token_free(token);
    llvs_exchange_free(exchange);
    llvs_store_free(store);
    free_place(&p);
}

static void a_transport_serves_one_exchange_and_keeps_state(void **state) {
    llvs_transport_callbacks callbacks = array_transport_callbacks();
    array_area *area = calloc(1, sizeof *area);
    llvs_transport *transport;
    llvs_store *store = memory_store();
    llvs_exchange *exchange, *second;
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_buffer data;
    int freed = 0;
    (void)state;
    assert_non_null(area);
    OK(llvs_transport_create(llvs_str("array"), &callbacks, area, NULL, &transport, &error));
    options.host_transport = transport;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_open(store, llvs_str("memory:both"), &options, &exchange, &error));
    OK(llvs_exchange_open(store, LLVS_NONE, &options, &exchange, &error));
    OK(llvs_exchange_set_restoration_state(exchange, llvs_str("where I was"), &error));
    OK(llvs_transport_state(transport, &data, &error));
    assert_string_equal((char *)data.data, "where I was");
    llvs_buffer_dispose(&data);
    OK(llvs_transport_set_state(transport, llvs_str("further"), &error));
    OK(llvs_exchange_restoration_state(exchange, &data, &error));
    assert_string_equal((char *)data.data, "further");
    llvs_buffer_dispose(&data);
    FAILS_NAMING(LLVS_ERROR_BUSY, "array", llvs_exchange_open(store, LLVS_NONE, through(transport), &second, &error));
    OK(llvs_exchange_close(exchange, &error));
    OK(llvs_exchange_open(store, LLVS_NONE, through(transport), &second, &error));
    OK(llvs_transport_notify(transport, &error)); /* no observer is registered */
    llvs_exchange_free(second);
    llvs_exchange_free(exchange);
    llvs_transport_free(transport);
    area_free(area);
    callbacks.snapshot_read = NULL;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_transport_create(LLVS_NONE, &callbacks, &freed, count_free, &transport, &error));
    assert_int_equal(freed, 1);
    llvs_store_free(store);
}

/* ---- bad input in the folder ---- */

static const llvs_problem *problem_named(const llvs_exchange_result *result, const char *name) {
    size_t i;
    for (i = 0; i < result->problem_count; i++) {
        const llvs_problem *problem = result->problems[i];
        if (bytes_are(problem->name, name)) return problem;
    }
    return NULL;
}

#define VERSION(id, predecessors) "{\"version\":{\"identifier\":\"" id "\"," predecessors "\"timestamp\":700000000.5,\"metadata\":[]}}"
#define AFTER(id) "\"predecessors\":{\"idOfFirst\":\"" id "\"},"
#define CHANGES(base64) "[{\"insert\":{\"id\":\"x\",\"data\":\"" base64 "\"}}]"

static void bad_files_cost_their_own_version_only(void **state) {
    static const struct { const char *name, *version, *changes; llvs_status code; } files[] = {
        { "GOOD", VERSION("GOOD", ""), CHANGES("aGVsbG8="), LLVS_OK },
        { "AFTER-GOOD", VERSION("AFTER-GOOD", AFTER("GOOD")), "[]", LLVS_OK },
        { "WITHOUT-CHANGES", VERSION("WITHOUT-CHANGES", ""), NULL, LLVS_ERROR_MISSING_CHANGES },
        { "ORPHAN", VERSION("ORPHAN", AFTER("NOT-HERE")), "[]", LLVS_ERROR_MISSING_PREDECESSOR },
        { "BAD-JSON", "{\"version\":[}", "[]", LLVS_ERROR_INVALID_JSON },
        { "HALF", "{\"version\":{", "[]", LLVS_ERROR_CUT_SHORT },
        { "HALF-CHANGES", VERSION("HALF-CHANGES", ""), "[{\"ins", LLVS_ERROR_CUT_SHORT },
        { "BAD-BASE64", VERSION("BAD-BASE64", ""), CHANGES("a$b"), LLVS_ERROR_INVALID_BASE64 },
        { "OTHER-NAME", VERSION("NAME", ""), "[]", LLVS_ERROR_IDENTIFIER_MISMATCH },
        { "AFTER-BAD", VERSION("AFTER-BAD", AFTER("BAD-JSON")), "[]", LLVS_ERROR_MISSING_PREDECESSOR },
    };
    place p = new_place(FOLDER);
    llvs_store *store = memory_store();
    llvs_exchange *exchange = exchange_with(store, &p);
    llvs_exchange_result *result;
    char path[1400];
    size_t i, count;
    int round;
    (void)state;
    for (i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", p.directory, i ? "changes" : "versions");
        assert_true(mkdir(path, 0755) == 0 || access(path, W_OK) == 0);
    }
    for (i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/versions/%s", p.directory, files[i].name);
        write_file(path, files[i].version);
        snprintf(path, sizeof path, "%s/changes/%s", p.directory, files[i].name);
        if (files[i].changes) write_file(path, files[i].changes);
    }
    snprintf(path, sizeof path, "%s/versions/.syncthing.GOOD.tmp", p.directory);
    write_file(path, "{\"ver");
    snprintf(path, sizeof path, "%s/versions/GOOD (conflicted copy)", p.directory);
    write_file(path, "mine");
    snprintf(path, sizeof path, "%s/changes/LONELY", p.directory);
    write_file(path, "[]");
    snprintf(path, sizeof path, "%s/versions/EMPTY", p.directory);
    write_file(path, "");
    for (round = 0; round < 2; round++) {
        OK(llvs_exchange_retrieve(exchange, NULL, &result, &error));
        count = result->retrieved_count;
        assert_int_equal(count, round == 0 ? 2 : 0);
        for (i = 0; i < sizeof files / sizeof *files; i++) {
            const llvs_problem *problem = problem_named(result, files[i].name);
            if (files[i].code == LLVS_OK) { assert_null(problem); continue; }
            if (!problem) fail_msg("no problem is named %s", files[i].name);
            if (problem->code != files[i].code)
                fail_msg("%s: expected %s, got %s", files[i].name, llvs_status_name(files[i].code), llvs_status_name(problem->code));
            assert_true(problem->message.size > 0);
        }
        llvs_exchange_result_free(result);
    }
    {
        llvs_version_id good;
        memset(&good, 0, sizeof good);
        good.size = 4;
        memcpy(good.text, "GOOD", 4);
        value_is(store, &good, "x", "hello");
        save(store, &good, update("x", "mine"));
    }
    OK(llvs_exchange_send(exchange, NULL, NULL, &error)); /* problems do not prevent it */
    assert_int_equal(version_count(store), 3);
    llvs_exchange_free(exchange);
    llvs_store_free(store);
    snprintf(path, sizeof path, "%s/damaged-on-purpose", p.directory);
    write_file(path, "");
    free_place(&p);
}

/* Changes "some" to "tome" in the base64 of the changes file at a place. Its size stays the same, and it is still JSON. */
static void change_a_byte(place *p, const llvs_version_id *id) {
    char *bytes, *found;
    if (p->kind == HOST) {
        size_t at = area_find(p->area, "changes", (const uint8_t *)id->text, id->size);
        assert_true(at < p->area->count);
        bytes = (char *)p->area->files[at].data;
        for (found = bytes; memcmp(found, "c29t", 4) != 0; found++) assert_true(found + 4 < bytes + p->area->files[at].size);
        *found = 'd';
    } else {
        char path[1400], text[1000];
        FILE *file;
        size_t size;
        snprintf(path, sizeof path, "%s/changes/%.*s", p->directory, (int)id->size, id->text);
        file = fopen(path, "r+b");
        assert_non_null(file);
        size = fread(text, 1, sizeof text - 1, file);
        text[size] = 0;
        found = strstr(text, "c29t");
        assert_non_null(found);
        assert_int_equal(fseek(file, found - text, SEEK_SET), 0);
        assert_int_equal(fputc('d', file), 'd');
        assert_int_equal(fclose(file), 0);
    }
}

/* Retrieves with a check of all files. Returns the number of versions, and the code of the only problem, which must be of that version;
 * LLVS_OK: none.
 */
static size_t verified(llvs_exchange *exchange, const llvs_version_id *bad, llvs_status *code) {
    llvs_exchange_result *result;
    size_t count;
    OK(llvs_exchange_verify(exchange, NULL, &result, &error));
    count = result->retrieved_count;
    *code = LLVS_OK;
    if (result->problem_count > 0) {
        const llvs_problem *problem = result->problems[0];
        assert_int_equal(result->problem_count, 1);
        assert_true(same_id(problem->name, bad));
        *code = problem->code;
    }
    llvs_exchange_result_free(result);
    return count;
}

static void a_changed_file_of_a_version_that_is_here_is_found_and_mended_when_asked_for(void **state) {
    static const enum kind kinds[] = {FOLDER, HOST};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        place p = new_place(kinds[k]);
        llvs_store *one = memory_store(), *two = memory_store();
        llvs_exchange *mine = exchange_with(one, &p), *theirs = exchange_with(two, &p);
        llvs_version_id a = save(one, NULL, insert("x", "other bytes")), b = save(one, &a, update("x", "some bytes"));
        llvs_status code;
        assert_int_equal(sent(mine), 2);
        change_a_byte(&p, &b);
        /* A retrieve does not read the file again unless it is requested. A send does not either, if the transport does not report
         * changed files. */
        assert_int_equal(retrieved(mine), 0);
        if (kinds[k] == HOST) assert_int_equal(sent(mine), 0);
        assert_int_equal(verified(mine, &b, &code), 0);
        assert_int_equal(code, LLVS_ERROR_DAMAGED);
        value_is(one, &b, "x", "some bytes");
        assert_int_equal(sent(mine), 1);
        assert_int_equal(verified(mine, &b, &code), 0);
        assert_int_equal(code, LLVS_OK);
        assert_int_equal(sent(mine), 0);
        /* A verification retrieves new versions as well. */
        assert_int_equal(verified(theirs, &b, &code), 2);
        assert_int_equal(code, LLVS_OK);
        value_is(two, &b, "x", "some bytes");
        llvs_exchange_free(mine);
        llvs_exchange_free(theirs);
        llvs_store_free(one);
        llvs_store_free(two);
        free_place(&p);
    }
}

/* Also reports a name that it was not asked for. */
static llvs_status unusable_and_more(void *payload, const llvs_bytes *names, size_t count, llvs_reply *reply, llvs_error **error) {
    llvs_status status = area_unusable(payload, names, count, reply, error);
    if (status == LLVS_OK) status = llvs_reply_add(reply, llvs_str("NOBODY-ASKED"), error);
    return status == LLVS_OK ? llvs_reply_add(reply, llvs_str("\xFF"), error) : status;
}

static void a_transport_of_the_host_tells_of_files_that_are_there_in_part(void **state) {
    (void)state;
    for (int how = 0; how < 3; how++) { /* no callback; a caller that is older than the callback; with the callback */
        place p = new_place(HOST);
        llvs_store *store = memory_store();
        llvs_transport_callbacks callbacks = array_transport_callbacks();
        llvs_transport *transport;
        llvs_exchange *exchange;
        llvs_version_id a = save(store, NULL, insert("x", "1")), b = save(store, &a, update("x", "2"));
        size_t at;
        if (how == 0) callbacks.unusable = NULL;
        if (how == 1) callbacks.struct_size = offsetof(llvs_transport_callbacks, unusable);
        if (how == 2) callbacks.unusable = unusable_and_more;
        OK(llvs_transport_create(llvs_str("array"), &callbacks, p.area, NULL, &transport, &error));
        OK(llvs_exchange_open(store, LLVS_NONE, through(transport), &exchange, &error));
        assert_int_equal(sent(exchange), 2);
        at = area_find(p.area, "changes", (const uint8_t *)b.text, b.size);
        assert_true(at < p.area->count && p.area->files[at].size > 0);
        p.area->files[at].size = 0;
        assert_int_equal(sent(exchange), how == 2 ? 1 : 0);
        assert_int_equal(p.area->looks, how == 2 ? 1 : 0); /* without a callback it is not called */
        assert_int_equal(p.area->files[at].size > 0, how == 2);
        if (how == 2) {
            assert_int_equal(sent(exchange), 0);
            p.area->failing = "unusable";
            FAILS_NAMING(LLVS_ERROR_USER, "the line is dead", llvs_exchange_send(exchange, NULL, NULL, &error));
        }
        llvs_exchange_free(exchange);
        llvs_transport_free(transport);
        llvs_store_free(store);
        free_place(&p);
    }
}

static void another_version_of_the_same_id_is_reported_and_left(void **state) {
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_store *stores[2] = {memory_store(), memory_store()};
    place p = new_place(MEMORY);
    llvs_exchange *exchanges[2];
    llvs_version_id id;
    llvs_status code;
    (void)state;
    options.id = llvs_str("SAME");
    for (int i = 0; i < 2; i++) {
        llvs_change change = insert("x", i ? "theirs" : "mine");
        OK(llvs_store_make_version(stores[i], LLVS_NONE, &change, 1, sizeof change, &options, &id, NULL, &error));
        exchanges[i] = exchange_with(stores[i], &p);
    }
    assert_int_equal(sent(exchanges[1]), 1);
    assert_int_equal(retrieved(exchanges[0]), 0);
    assert_int_equal(verified(exchanges[0], &id, &code), 0);
    assert_int_equal(code, LLVS_ERROR_VERSION_MISMATCH);
    assert_int_equal(sent(exchanges[0]), 0);
    value_is(stores[0], &id, "x", "mine");
    assert_int_equal(verified(exchanges[1], &id, &code), 0);
    assert_int_equal(code, LLVS_OK);
    for (int i = 0; i < 2; i++) {
        llvs_exchange_free(exchanges[i]);
        llvs_store_free(stores[i]);
    }
    free_place(&p);
}

static void a_folder_that_is_gone_is_an_error(void **state) {
    char *directory = new_directory(), *file = join(directory, "file"), *deep = join(directory, "a/b/c");
    char url[1100];
    llvs_store *store = memory_store();
    llvs_exchange *exchange;
    (void)state;
    write_file(file, "not a folder");
    snprintf(url, sizeof url, "file://%s", file);
    FAILS_NAMING(LLVS_ERROR_NOT_A_DIRECTORY, "file", llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error));
    snprintf(url, sizeof url, "file://%s", deep);
    FAILS(LLVS_ERROR_NOT_FOUND, llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error));
    FAILS_NAMING(LLVS_ERROR_NOT_FOUND, "a/b/c", llvs_store_import(store, llvs_str(deep), NULL, NULL, NULL, &error));
    FAILS(LLVS_ERROR_NOT_A_DIRECTORY, llvs_store_import(store, llvs_str(file), NULL, NULL, NULL, &error));
    FAILS(LLVS_ERROR_NOT_A_STORE, llvs_store_import(store, llvs_str(directory), NULL, NULL, NULL, &error));
    llvs_store_free(store);
    free(file);
    free(deep);
    remove_directory(directory);
}

/* ---- snapshots ---- */

static void snapshots_bootstrap_a_store(void **state) {
    enum kind kind;
    (void)state;
    for (kind = FOLDER; kind <= HOST; kind++) {
        place p = new_place(kind);
        llvs_store *one = memory_store(), *two = memory_store();
        llvs_exchange *mine = exchange_with(one, &p), *theirs = exchange_with(two, &p);
        llvs_version_id a = save(one, NULL, insert("x", "1")), b = save(one, &a, update("x", "2"));
        llvs_snapshot *snapshot;
        const llvs_snapshot *info;
        OK(llvs_exchange_snapshot(theirs, &snapshot, &error));
        assert_null(snapshot);
        FAILS(LLVS_ERROR_SNAPSHOT_MISSING, llvs_exchange_restore_snapshot(theirs, NULL, NULL, &error));
        OK(llvs_exchange_put_snapshot(mine, NULL, &snapshot, &error));
        info = snapshot;
        assert_int_equal(info->struct_size, sizeof *info);
        assert_int_equal(info->version_count, 2);
        assert_true(info->chunk_count >= 1 && info->total_size > 0 && info->created_at > 1.7e9);
        assert_true(same_id(info->latest_version, &b));
        llvs_snapshot_free(snapshot);
        OK(llvs_exchange_restore_snapshot(theirs, NULL, NULL, &error));
        value_is(two, &a, "x", "1");
        value_is(two, &b, "x", "2");
        FAILS(LLVS_ERROR_STORE_NOT_EMPTY, llvs_exchange_restore_snapshot(theirs, NULL, NULL, &error));
        llvs_exchange_free(mine);
        llvs_exchange_free(theirs);
        llvs_store_free(one);
        llvs_store_free(two);
        free_place(&p);
    }
}

static llvs_status decode_never(void *payload, const llvs_bytes *data, llvs_reply *reply, llvs_error **e) {
    (void)payload; (void)data; (void)reply; (void)e;
    return LLVS_PASS;
}

static void ids_that_others_cannot_hold_are_listed_and_sent(void **state) {
    place p = new_place(FOLDER);
    llvs_store *store = memory_store();
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_exchange *exchange;
    llvs_exchange_result *result;
    int freed = 0;
    (void)state;
    save(store, NULL, insert("fine", "1"));
    save(store, NULL, insert("..odd", "2"));
    options.report_unportable = 1;
    options.decode = decode_never;
    options.decode_payload = &freed;
    options.decode_free = count_free;
    OK(llvs_exchange_open(store, llvs_str(p.url), &options, &exchange, &error));
    OK(llvs_exchange_send(exchange, NULL, &result, &error));
    assert_int_equal(result->sent_count, 2);
    assert_int_equal(result->problem_count, 1);
    assert_int_equal(result->problems[0]->code, LLVS_ERROR_UNPORTABLE_ID);
    llvs_exchange_result_free(result);
    assert_int_equal(freed, 0);
    llvs_exchange_free(exchange);
    assert_int_equal(freed, 1);
    /* The payload is freed once for each call, even if the call fails. */
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_open(store, llvs_str("no URL"), &options, &exchange, &error));
    assert_int_equal(freed, 2);
    options.report_unportable = 2;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_open(store, llvs_str(p.url), &options, &exchange, &error));
    assert_int_equal(freed, 3);
    llvs_store_free(store);
    free_place(&p);
}

/* Saves are refused because of other implementations only for a place with single files, and only while the exchange is open. */
static void what_others_fail_at_is_not_saved(void **state) {
    place p = new_place(FOLDER);
    llvs_store *store = memory_store();
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_exchange *exchange;
    char id[400];
    llvs_change change;
    (void)state;
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = 0;
    change = insert(id, "1");
    options.no_other_readers = 1;
    OK(llvs_exchange_open(store, llvs_str(p.url), &options, &exchange, &error));
    save(store, NULL, change);
    llvs_exchange_free(exchange);
    options.no_other_readers = 0;
    OK(llvs_exchange_open(store, llvs_str(p.url), &options, &exchange, &error));
    FAILS_NAMING(LLVS_ERROR_UNPORTABLE_ID, "no_other_readers",
                 llvs_store_make_version(store, LLVS_NONE, &change, 1, sizeof change, NULL, NULL, NULL, &error));
    llvs_exchange_free(exchange);
    save(store, NULL, change);
    llvs_store_free(store);
    free_place(&p);
}

static void imports_take_a_decoder(void **state) {
    llvs_store *store = memory_store();
    llvs_import_options options = LLVS_IMPORT_OPTIONS_INIT;
    llvs_exchange_result *result;
    int freed = 0;
    (void)state;
    options.decode = decode_never;
    options.decode_payload = &freed;
    options.decode_free = count_free;
    FAILS(LLVS_ERROR_NOT_FOUND, llvs_store_import(store, llvs_str("/nowhere/at/all"), &options, NULL, NULL, &error));
    assert_int_equal(freed, 1);
    OK(llvs_store_import(store, llvs_str(LLVS_SOURCE_DIR "/Tests/Vectors/interchange/store"), &options, NULL, &result, &error));
    assert_int_equal(result->retrieved_count, 25);
    llvs_exchange_result_free(result);
    assert_int_equal(freed, 2);
    options.reserved = 1;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_store_import(store, llvs_str("/nowhere"), &options, NULL, NULL, &error));
    assert_int_equal(freed, 3);
    llvs_store_free(store);
}

static void damaged_snapshots_leave_the_store_empty(void **state) {
    char *directory = new_directory(), *chunk = join(directory, "snapshots/llvs-v1/chunk-000"),
         *manifest = join(directory, "snapshots/llvs-v1/manifest.json"), *nothing = join(directory, "nothing");
    llvs_store *one = memory_store(), *two = memory_store();
    FILE *file;
    int was;
    (void)state;
    save(one, NULL, insert("x", "1"));
    FAILS(LLVS_ERROR_NOT_FOUND, restore_snapshot_from(two, nothing, NULL, &error));
    FAILS(LLVS_ERROR_SNAPSHOT_MISSING, restore_snapshot_from(two, directory, NULL, &error));
    OK(write_snapshot_into(one, directory, NULL, &error));
    file = fopen(chunk, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -3, SEEK_END), 0);
    was = fgetc(file);
    assert_int_equal(fseek(file, -3, SEEK_END), 0);
    fputc(was ^ 0x55, file);
    fclose(file);
    FAILS(LLVS_ERROR_SNAPSHOT_DAMAGED, restore_snapshot_from(two, directory, NULL, &error));
    assert_int_equal(version_count(two), 0);
    assert_int_equal(remove(chunk), 0);
    FAILS(LLVS_ERROR_SNAPSHOT_DAMAGED, restore_snapshot_from(two, directory, NULL, &error));
    write_file(manifest, "{");
    FAILS(LLVS_ERROR_SNAPSHOT_DAMAGED, restore_snapshot_from(two, directory, NULL, &error));
    assert_int_equal(version_count(two), 0);
    OK(write_snapshot_into(one, directory, NULL, &error));
    OK(restore_snapshot_from(two, directory, NULL, &error));
    assert_int_equal(version_count(two), 1);
    llvs_store_free(one);
    llvs_store_free(two);
    free(chunk); free(manifest); free(nothing);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_travel_both_ways),
        cmocka_unit_test(large_files_travel_in_pieces),
        cmocka_unit_test(what_travels_is_synced_unless_asked_not_to_be),
        cmocka_unit_test(cancelling_at_each_progress_call),
        cmocka_unit_test(a_progress_callback_may_fail),
        cmocka_unit_test(a_failing_transport_surfaces),
        cmocka_unit_test(a_transport_sees_the_token),
        cmocka_unit_test(a_transport_serves_one_exchange_and_keeps_state),
        cmocka_unit_test(bad_files_cost_their_own_version_only),
        cmocka_unit_test(ids_that_others_cannot_hold_are_listed_and_sent),
        cmocka_unit_test(what_others_fail_at_is_not_saved),
        cmocka_unit_test(imports_take_a_decoder),
        cmocka_unit_test(a_changed_file_of_a_version_that_is_here_is_found_and_mended_when_asked_for),
        cmocka_unit_test(a_transport_of_the_host_tells_of_files_that_are_there_in_part),
        cmocka_unit_test(another_version_of_the_same_id_is_reported_and_left),
        cmocka_unit_test(a_folder_that_is_gone_is_an_error),
        cmocka_unit_test(snapshots_bootstrap_a_store),
        cmocka_unit_test(damaged_snapshots_leave_the_store_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The suites of llvs_testing.h: the library's own backends and good ones in C pass, and broken ones fail the right check. */
#include "support.h"

#include <pthread.h>
#include <time.h>

#include "llvs_testing.h"
#include "array_storage.h"
#include "array_transport.h"

/* ---- the results of a suite ---- */

static void print_failures(const llvs_check_report *report) {
    size_t i;
    for (i = 0; i < report->check_count; i++) {
        const llvs_check *check = report->checks[i];
        if (check->outcome == LLVS_CHECK_FAILED) printf("  %s: %s\n", (const char *)check->name.data, (const char *)check->message.data);
    }
}

/* Checks that all passed, or were skipped, as many as `skipped` says (-1: any number). */
static void all_is_well(llvs_check_report *report, int skipped) {
    size_t i, count = report->check_count;
    int skips = 0;
    print_failures(report);
    assert_int_equal(report->failures, 0);
    assert_true(count > 20);
    for (i = 0; i < count; i++) {
        const llvs_check *check = report->checks[i];
        assert_int_equal(check->struct_size, sizeof *check);
        assert_true(check->name.size > 5);
        if (check->outcome == LLVS_CHECK_SKIPPED) skips++;
        else assert_int_equal(check->outcome, LLVS_CHECK_PASSED);
        assert_int_equal(check->message.size > 0, check->outcome != LLVS_CHECK_PASSED);
    }
    assert_null(report->checks[count]);
    if (skipped >= 0) assert_int_equal(skips, skipped);
    llvs_check_report_free(report);
}

/* Checks that the check of that name failed, with a message. */
static void is_caught(llvs_check_report *report, const char *defect, const char *name) {
    size_t i;
    for (i = 0; i < report->check_count; i++) {
        const llvs_check *check = report->checks[i];
        if (!bytes_are(check->name, name)) continue;
        if (check->outcome != LLVS_CHECK_FAILED) break;
        assert_true(check->message.size > 10);
        printf("%-32s %s: %s\n", defect, name, (const char *)check->message.data);
        llvs_check_report_free(report);
        return;
    }
    print_failures(report);
    fail_msg("a backend that %s is not caught by \"%s\"", defect, name);
}

/* ---- storages ---- */

typedef struct place {
    uint64_t number;
    array_storage array;
    pthread_mutex_t mutex;
    size_t synced;
    int failing;
    uint64_t cursor;
    struct place *next;
} place;
static place *places;
/* The name of the defect that all of them have. */
static const char *defect = "";
static int is_defect(const char *name) { return strcmp(defect, name) == 0; }

static place *place_of(uint64_t number) {
    place *p;
    for (p = places; p; p = p->next)
        if (p->number == number) return p;
    p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->number = number;
    pthread_mutex_init(&p->mutex, NULL);
    p->next = places;
    return places = p;
}
static void forget_places(void) {
    while (places) {
        place *next = places->next;
        size_t i;
        for (i = 0; i < places->array.count; i++) free(places->array.records[i].data);
        for (i = 0; i < places->array.blob_count; i++) free(places->array.blobs[i].data);
        pthread_mutex_destroy(&places->mutex);
        free(places);
        places = next;
    }
}

#define WITH(p, call) (pthread_mutex_lock(&(p)->mutex), status = (call), pthread_mutex_unlock(&(p)->mutex), status)

static llvs_status place_append(void *payload, const llvs_bytes *records, size_t count, uint64_t *numbers, llvs_error **error) {
    place *p = payload;
    llvs_status status;
    size_t i;
    if (p->failing && is_defect("keeps what it refuses")) {
        (void)WITH(p, array_append(&p->array, records, count, numbers, error));
        p->synced = p->array.count;
        return LLVS_ERROR_IO;
    }
    (void)WITH(p, array_append(&p->array, records, count, numbers, error));
    if (status != LLVS_OK) return status;
    if (is_defect("loses an append"))
        for (i = 0; i < count; i++)
            if (numbers[i] % 5 == 0) p->array.records[numbers[i] - 1000].size = 0;
    if (is_defect("mixes up a batch"))
        for (i = 0; i < count / 2; i++) { uint64_t n = numbers[i]; numbers[i] = numbers[count - 1 - i]; numbers[count - 1 - i] = n; }
    if (is_defect("gives one place to all"))
        for (i = 1; i < count; i++) numbers[i] = numbers[0];
    return LLVS_OK;
}
static llvs_status place_scan(void *payload, uint64_t *mark, llvs_reply *reply, llvs_error **error) {
    place *p = payload;
    llvs_status status;
    uint64_t before = *mark;
    if (is_defect("scans each record once") && p->cursor) *mark = p->cursor;
    (void)WITH(p, array_scan(&p->array, mark, reply, error));
    if (is_defect("scans each record once")) p->cursor = *mark;
    if (is_defect("never ends a scan") && p->array.count && status == LLVS_OK) {
        *mark = before + 1;
        status = llvs_reply_record(
            reply, 1000, p->array.records[0].size,
            llvs_bytes_make(p->array.records[0].data, p->array.records[0].size < 65536 ? p->array.records[0].size : 65536), error);
    }
    return status;
}
/* A scan that reports wrong lengths. */
static llvs_status lying_scan(void *payload, uint64_t *mark, llvs_reply *reply, llvs_error **error) {
    place *p = payload;
    llvs_status status = LLVS_OK;
    for (; *mark < p->array.count && status == LLVS_OK; ++*mark) {
        size_t size = p->array.records[*mark].size - 1;
        status =
            llvs_reply_record(reply, *mark + 1000, size, llvs_bytes_make(p->array.records[*mark].data, size < 65536 ? size : 65536), error);
    }
    return status;
}
static llvs_status place_read(void *payload, uint64_t number, uint64_t offset, uint8_t *buffer, size_t size, llvs_error **error) {
    place *p = payload;
    llvs_status status;
    if (is_defect("reads short") && size > 4096) return WITH(p, array_read(&p->array, number, offset, buffer, 4096, error));
    (void)WITH(p, array_read(&p->array, number, offset, buffer, size, error));
    if (is_defect("flips a bit in a large one") && offset > 1000000 && status == LLVS_OK) buffer[size / 2] ^= 1;
    return status;
}
static llvs_status place_sync(void *payload, llvs_error **error) {
    place *p = payload;
    (void)error;
    if (p->failing) return is_defect("forgets errors of syncs") ? LLVS_OK : LLVS_ERROR_IO;
    pthread_mutex_lock(&p->mutex);
    if (!is_defect("does not sync")) p->synced = p->array.count;
    pthread_mutex_unlock(&p->mutex);
    return LLVS_OK;
}
static llvs_status place_cache_get(void *payload, const llvs_bytes *name, llvs_reply *reply, llvs_error **error) {
    place *p = payload;
    llvs_bytes other = llvs_str("index");
    llvs_status status;
    return WITH(p, array_cache_get(&p->array, is_defect("mixes up caches") ? &other : name, reply, error));
}
static llvs_status place_cache_put(void *payload, const llvs_bytes *name, const llvs_bytes *data, llvs_error **error) {
    place *p = payload;
    llvs_status status;
    return WITH(p, array_cache_put(&p->array, name, data, error));
}
static llvs_status place_cache_delete(void *payload, const llvs_bytes *name, llvs_error **error) {
    place *p = payload;
    llvs_status status;
    return is_defect("keeps caches for ever") ? LLVS_OK : WITH(p, array_cache_delete(&p->array, name, error));
}

static llvs_status make_place(void *payload, uint64_t number, llvs_storage **storage, llvs_error **error) {
    llvs_storage_callbacks callbacks = LLVS_STORAGE_CALLBACKS_INIT;
    (void)payload;
    callbacks.append = place_append;
    callbacks.scan = is_defect("lies about lengths") ? lying_scan : place_scan;
    callbacks.read = place_read;
    callbacks.sync = place_sync;
    callbacks.cache_get = place_cache_get;
    callbacks.cache_put = place_cache_put;
    callbacks.cache_delete = place_cache_delete;
    return llvs_storage_create(llvs_str("array"), &callbacks, place_of(number), NULL, storage, error);
}
static llvs_status disturb_place(void *payload, uint64_t number, llvs_disturbance what, llvs_error **error) {
    place *p = place_of(number);
    (void)payload, (void)error;
    if (what == LLVS_DISTURBANCE_POWER_CUT)
        while (p->array.count > p->synced) free(p->array.records[--p->array.count].data);
    else
        p->failing = what == LLVS_DISTURBANCE_FAIL;
    return LLVS_OK;
}

static llvs_check_report *check_places(const char *only) {
    llvs_storage_subject subject = LLVS_STORAGE_SUBJECT_INIT;
    llvs_check_report *report = NULL;
    subject.make = make_place;
    subject.disturb = disturb_place;
    subject.only = llvs_str(only);
    OK(llvs_check_storage(&subject, &report, &error));
    forget_places();
    return report;
}

static void a_storage_in_c_passes(void **state) {
    (void)state;
    defect = "";
    all_is_well(check_places(""), 0);
}

static void broken_storages_are_caught(void **state) {
    static const char *const table[][2] = {
        { "loses an append", "records are read back" },
        { "mixes up a batch", "each record of a batch has a place of its own" },
        { "gives one place to all", "each record of a batch has a place of its own" },
        { "reads short", "ranges of a record are read" },
        { "lies about lengths", "records are found again after closing" },
        { "scans each record once", "records are found again after closing" },
        { "never ends a scan", "records are found again after closing" },
        { "flips a bit in a large one", "a record of several MiB is kept" },
        { "mixes up caches", "caches are kept, replaced and deleted" },
        { "keeps caches for ever", "caches are kept, replaced and deleted" },
        { "keeps what it refuses", "an append that fails leaves nothing" },
        { "forgets errors of syncs", "a failed sync is an error" },
        { "does not sync", "what was synced survives a power cut" },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof table / sizeof *table; i++) {
        defect = table[i][0];
        is_caught(check_places(table[i][1]), table[i][0], table[i][1]);
    }
    /* Every check runs to its end with each defect. */
    for (i = 0; i < sizeof table / sizeof *table; i++) {
        llvs_check_report *report;
        defect = table[i][0];
        report = check_places("");
        assert_true(report->failures > 0);
        llvs_check_report_free(report);
    }
    defect = "";
}

/* ---- the library's storages ---- */

typedef struct built_in {
    char *directory;
    llvs_storage_kind kind;
    llvs_durability durability;
} built_in;
static llvs_status make_built_in(void *payload, uint64_t number, llvs_storage **storage, llvs_error **error) {
    built_in *b = payload;
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    char path[1100];
    snprintf(path, sizeof path, "%s/%lu", b->directory, (unsigned long)number);
    options.storage = b->kind;
    options.durability = b->durability;
    return llvs_testing_storage(llvs_str(path), &options, storage, error);
}
static void the_librarys_storages_pass(void **state) {
    static const llvs_storage_kind kinds[] = { LLVS_STORAGE_FILE, LLVS_STORAGE_SQLITE, LLVS_STORAGE_MEMORY };
    int i;
    (void)state;
    for (i = 0; i < 6; i++) {
        llvs_storage_subject subject = LLVS_STORAGE_SUBJECT_INIT;
        llvs_check_report *report = NULL;
        built_in b;
        /* Syncing 10,000 records one by one takes long, so only one of them does. */
        if (i >= 3 && kinds[i % 3] != LLVS_STORAGE_FILE) continue;
        b.directory = new_directory();
        b.kind = kinds[i % 3];
        b.durability = i < 3 ? LLVS_DURABILITY_NORMAL : LLVS_DURABILITY_FULL;
        subject.make = make_built_in;
        subject.payload = &b;
        if (b.kind == LLVS_STORAGE_MEMORY) subject.traits = LLVS_TRAIT_VOLATILE | LLVS_TRAIT_EXCLUSIVE;
        OK(llvs_check_storage(&subject, &report, &error));
        all_is_well(report, -1);
        remove_directory(b.directory);
    }
}

/* ---- transports ---- */

typedef struct spot {
    uint64_t number;
    array_area area;
    pthread_mutex_t mutex;
    int failing;
    int lists, was_seen; /* how often it was listed, and whether a version without its changes may have been seen */
    llvs_transport *open[8];
    int open_count;
    struct spot *next;
} spot;
static spot *spots;

static spot *spot_of(uint64_t number) {
    spot *s;
    for (s = spots; s; s = s->next)
        if (s->number == number) return s;
    s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->number = number;
    pthread_mutex_init(&s->mutex, NULL);
    s->next = spots;
    return spots = s;
}
static void forget_spots(void) {
    while (spots) {
        spot *next = spots->next;
        size_t i;
        for (i = 0; i < spots->area.count; i++) free(spots->area.files[i].data);
        pthread_mutex_destroy(&spots->mutex);
        free(spots);
        spots = next;
    }
}

static llvs_status spot_list(void *payload, llvs_reply *reply, llvs_error **error) {
    spot *s = payload;
    llvs_status status = LLVS_OK;
    size_t i, told = 0;
    if (s->failing) return is_defect("says that an unreachable place is empty") ? LLVS_OK : LLVS_ERROR_TRANSPORT;
    if (is_defect("lists what is absent") && s->area.count) status = llvs_reply_add(reply, llvs_str("GONE"), error);
    pthread_mutex_lock(&s->mutex);
    s->lists++;
    for (i = 0; i < s->area.count && status == LLVS_OK; i++) {
        if (is_defect("lists one page only") && told == 1000) break;
        if (strncmp(s->area.files[i].name, "versions/", 9) == 0) {
            told++;
            status = llvs_reply_add(reply, llvs_str(s->area.files[i].name + 9), error);
        }
        if (is_defect("takes snapshots for versions") && strncmp(s->area.files[i].name, "snapshots/", 10) == 0)
            status = llvs_reply_add(reply, llvs_str(s->area.files[i].name + 10), error);
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}
static llvs_status spot_fetch(spot *s, const char *folder, const llvs_bytes *names, size_t count, llvs_reply *reply, llvs_error **error) {
    size_t i;
    llvs_status status = LLVS_OK;
    if (s->failing) return is_defect("says that an unreachable place is empty") ? LLVS_OK : LLVS_ERROR_TRANSPORT;
    pthread_mutex_lock(&s->mutex);
    for (i = 0; i < count && status == LLVS_OK; i++) {
        size_t at = area_find(&s->area, folder, names[i].data, names[i].size), size, to = i;
        if (is_defect("answers others' bytes")) to = count - 1 - i;
        if (at == s->area.count || !s->area.files[at].data) {
            if (is_defect("fails where a file is absent")) status = LLVS_ERROR_TRANSPORT;
            continue;
        }
        size = s->area.files[at].size;
        if (is_defect("truncates large files") && size > 1000000) size = 1000000;
        status = llvs_reply_set(reply, to, llvs_bytes_make(s->area.files[at].data, size), error);
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}
static llvs_status spot_fetch_versions(void *payload, const llvs_bytes *names, size_t count, llvs_reply *reply, llvs_error **error) {
    return spot_fetch(payload, "versions", names, count, reply, error);
}
static llvs_status spot_fetch_changes(void *payload, const llvs_bytes *names, size_t count, llvs_reply *reply, llvs_error **error) {
    return spot_fetch(payload, "changes", names, count, reply, error);
}
static llvs_status spot_put(spot *s, const char *folder, llvs_bytes name, llvs_bytes data) {
    llvs_status status;
    size_t size = data.size;
    if (is_defect("keeps what was there first") && area_find(&s->area, folder, name.data, name.size) < s->area.count) return LLVS_OK;
    /* Like an implementation that opens files as text. */
    if (is_defect("ends files at a NUL") && data.size && memchr(data.data, 0, data.size))
        size = (size_t)((const uint8_t *)memchr(data.data, 0, data.size) - data.data);
    return WITH(s, area_put(&s->area, folder, name, llvs_bytes_make(data.data, size)));
}
static llvs_status spot_send(void *payload, const llvs_exchange_files *const *files, size_t count, llvs_reply *reply, llvs_error **error) {
    spot *s = payload;
    llvs_status status = LLVS_OK;
    size_t i;
    int k;
    (void)reply;
    if (s->failing) return LLVS_ERROR_TRANSPORT;
    for (i = 0; i < count && status == LLVS_OK; i++) {
        const llvs_exchange_files *file = files[i];
        if (is_defect("publishes the version first")) {
            struct timespec moment = { 0, 5000000 };
            int before, waited;
            status = spot_put(s, "versions", file->name, file->version);
            pthread_mutex_lock(&s->mutex);
            before = s->lists;
            /* Wait until a reader that polls has polled twice, or until it is clear that none does. */
            for (waited = 0; !s->was_seen && waited < 40; waited++) {
                s->was_seen = s->lists > before + 1;
                pthread_mutex_unlock(&s->mutex);
                nanosleep(&moment, NULL);
                pthread_mutex_lock(&s->mutex);
            }
            pthread_mutex_unlock(&s->mutex);
        }
        if (status == LLVS_OK) status = spot_put(s, "changes", file->name, file->changes);
        if (status == LLVS_OK) status = spot_put(s, "versions", file->name, file->version);
    }
    if (!is_defect("keeps news to itself"))
        for (k = 0; k < s->open_count && status == LLVS_OK; k++) status = llvs_transport_notify(s->open[k], error);
    return status;
}
static llvs_status spot_unusable(void *payload, const llvs_bytes *names, size_t count, llvs_reply *reply, llvs_error **error) {
    size_t i;
    llvs_status status = LLVS_OK;
    if (!is_defect("calls whole files unusable"))
        return WITH((spot *)payload, area_unusable(&((spot *)payload)->area, names, count, reply, error));
    for (i = 0; i < count && status == LLVS_OK; i++) status = llvs_reply_add(reply, names[i], error);
    return status;
}
static llvs_status spot_snapshot_list(void *payload, llvs_reply *reply, llvs_error **error) {
    return area_snapshot_list(&((spot *)payload)->area, reply, error);
}
static llvs_status spot_snapshot_read(void *payload, const llvs_bytes *name, llvs_reply *reply, llvs_error **error) {
    return area_snapshot_read(&((spot *)payload)->area, name, reply, error);
}
static llvs_status spot_snapshot_write(void *payload, const llvs_bytes *name, const llvs_bytes *data, llvs_error **error) {
    return area_snapshot_write(&((spot *)payload)->area, name, data, error);
}
static llvs_status spot_snapshot_delete(void *payload, const llvs_bytes *name, llvs_error **error) {
    return is_defect("keeps snapshots for ever") ? LLVS_OK : area_snapshot_delete(&((spot *)payload)->area, name, error);
}
static llvs_status spot_close(void *payload, llvs_error **error) {
    /* No news are reported any more. The remaining transports are closed next. */
    (void)error;
    ((spot *)payload)->open_count = 0;
    return LLVS_OK;
}

static llvs_status make_spot(void *payload, uint64_t number, llvs_transport **transport, llvs_error **error) {
    llvs_transport_callbacks callbacks = LLVS_TRANSPORT_CALLBACKS_INIT;
    spot *s = spot_of(number);
    llvs_status status;
    (void)payload;
    callbacks.list = spot_list;
    callbacks.fetch_versions = spot_fetch_versions;
    callbacks.fetch_changes = spot_fetch_changes;
    callbacks.send = spot_send;
    callbacks.unusable = spot_unusable;
    callbacks.snapshot_list = spot_snapshot_list;
    callbacks.snapshot_read = spot_snapshot_read;
    callbacks.snapshot_write = spot_snapshot_write;
    callbacks.snapshot_delete = spot_snapshot_delete;
    callbacks.close = spot_close;
    status = llvs_transport_create(llvs_str("array"), &callbacks, s, NULL, transport, error);
    if (status == LLVS_OK && s->open_count < 8) s->open[s->open_count++] = *transport;
    return status;
}
static llvs_status disturb_spot(void *payload, uint64_t number, llvs_disturbance what, llvs_error **error) {
    (void)payload, (void)error;
    if (what == LLVS_DISTURBANCE_POWER_CUT) return LLVS_ERROR_UNSUPPORTED;
    spot_of(number)->failing = what == LLVS_DISTURBANCE_FAIL;
    return LLVS_OK;
}

static llvs_check_report *check_spots(const char *only) {
    llvs_transport_subject subject = LLVS_TRANSPORT_SUBJECT_INIT;
    llvs_check_report *report = NULL;
    subject.make = make_spot;
    subject.disturb = disturb_spot;
    subject.traits = LLVS_TRAIT_TELLS;
    subject.only = llvs_str(only);
    OK(llvs_check_transport(&subject, &report, &error));
    forget_spots();
    return report;
}

static void a_transport_in_c_passes(void **state) {
    (void)state;
    defect = "";
    all_is_well(check_spots(""), 0);
}

static void broken_transports_are_caught(void **state) {
    static const char *const table[][2] = {
        { "lists what is absent", "what was sent is listed, and nothing else" },
        { "lists one page only", "many files are listed and fetched" },
        { "takes snapshots for versions", "snapshot files are not listed as versions" },
        { "calls whole files unusable", "complete files are not reported as unusable" },
        { "answers others' bytes", "each name gets its own files" },
        { "truncates large files", "large files are complete" },
        { "fails where a file is absent", "missing files are reported as missing" },
        { "keeps what was there first", "files that are sent again are replaced" },
        { "ends files at a NUL", "unusual bytes are sent unchanged" },
        { "publishes the version first", "both files of a listed version can be fetched" },
        { "says that an unreachable place is empty", "an unreachable place is an error" },
        { "keeps snapshots for ever", "snapshot files are kept, replaced and deleted" },
        { "keeps news to itself", "observers get news" },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof table / sizeof *table; i++) {
        defect = table[i][0];
        is_caught(check_spots(table[i][1]), table[i][0], table[i][1]);
    }
    defect = "";
}

static llvs_status make_folder(void *payload, uint64_t number, llvs_transport **transport, llvs_error **error) {
    char url[1100];
    snprintf(url, sizeof url, "file://%s/%lu", (const char *)payload, (unsigned long)number);
    return llvs_testing_transport(llvs_str(url), NULL, transport, error);
}
static void the_folder_transport_passes(void **state) {
    llvs_transport_subject subject = LLVS_TRANSPORT_SUBJECT_INIT;
    llvs_check_report *report = NULL;
    char *directory = new_directory();
    (void)state;
    subject.make = make_folder;
    subject.payload = directory;
    subject.traits = LLVS_TRAIT_TELLS;
    OK(llvs_check_transport(&subject, &report, &error));
    all_is_well(report, 1 /*/* nothing makes it unreachable */);
    remove_directory(directory);
}

/* ---- the interface ---- */

static llvs_status count_checks(void *payload, const llvs_check *check, llvs_error **error) {
    int *count = payload;
    assert_true(check->name.size > 0);
    if (++*count < 3) return LLVS_OK;
    *error = llvs_error_create(31, llvs_str("three are enough"));
    return LLVS_ERROR_USER;
}
static llvs_status make_nothing(void *payload, uint64_t number, llvs_storage **storage, llvs_error **error) {
    (void)payload, (void)number, (void)error;
    *storage = NULL;
    return LLVS_OK;
}
static llvs_status refuse_to_make(void *payload, uint64_t number, llvs_storage **storage, llvs_error **error) {
    (void)payload, (void)number, (void)storage;
    *error = llvs_error_create(5, llvs_str("no room for a storage"));
    return LLVS_ERROR_USER;
}

static void checks_are_told_and_named(void **state) {
    llvs_storage_subject subject = LLVS_STORAGE_SUBJECT_INIT;
    llvs_check_report *report = NULL;
    size_t i;
    int count = 0;
    (void)state;
    subject.make = make_place;
    subject.finished = count_checks;
    subject.payload = &count;
    FAILS_NAMING(LLVS_ERROR_USER, "three are enough", llvs_check_storage(&subject, &report, &error));
    assert_null(report);
    assert_int_equal(count, 3);
    forget_places();
    subject.finished = NULL;

    subject.make = make_nothing;
    OK(llvs_check_storage(&subject, &report, &error));
    assert_true(report->failures > 15);
    llvs_check_report_free(report);
    subject.make = refuse_to_make;
    subject.only = llvs_str("a new storage is empty");
    OK(llvs_check_storage(&subject, &report, &error));
    assert_int_equal(report->check_count, 1);
    assert_non_null(strstr((const char *)report->checks[0]->message.data, "no room for a storage"));
    llvs_check_report_free(report);

    subject.make = NULL;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_check_storage(&subject, &report, &error));
    subject.make = make_place;
    subject.traits = 1u << 20;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_check_storage(&subject, &report, &error));

    for (i = 0; llvs_check_storage_name(i); i++) assert_true(strlen(llvs_check_storage_name(i)) > 5);
    assert_true(i > 20);
    for (i = 0; llvs_check_transport_name(i); i++) assert_true(strlen(llvs_check_transport_name(i)) > 5);
    assert_true(i > 20);
    assert_null(llvs_check_transport_name((size_t)-1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_storage_in_c_passes),
        cmocka_unit_test(broken_storages_are_caught),
        cmocka_unit_test(the_librarys_storages_pass),
        cmocka_unit_test(a_transport_in_c_passes),
        cmocka_unit_test(broken_transports_are_caught),
        cmocka_unit_test(the_folder_transport_passes),
        cmocka_unit_test(checks_are_told_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include "workload.h"
#include "counting/calls.h"
#include "data.h"
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const workload workloads[] = {
    { "load", EMPTY, WRITES | MEMORY | LARGE_TOO | SQLITE_TOO, 0, run_load },
    { "batches", EMPTY, WRITES | MEMORY | OURS_ONLY | UUIDS_ONLY, 0, run_batches },
    { "commits", LOADED, WRITES | MEMORY | LARGE_TOO | SQLITE_TOO, 0, run_commits },
    { "commits-full", LOADED, WRITES | LARGE_TOO | SQLITE_TOO, 0, run_commits_full },
    { "commits-full-8", LOADED, WRITES | LARGE_TOO | SQLITE_TOO, 0, run_commits_full_8 },
    { "coordinated", LOADED, WRITES | OURS_ONLY, 0, run_coordinated },
    { "fetch", UPDATED, MEMORY | LARGE_TOO | SQLITE_TOO, 0, run_fetch },
    { "fetch-first", UPDATED, LARGE_TOO | SQLITE_TOO, 0, run_fetch_first },
    { "past", UPDATED, SQLITE_TOO, 0, run_past },
    { "past-long", LONG, UUIDS_ONLY | MEMORY, 0, run_past_long },
    { "enumerate", UPDATED, MEMORY | LARGE_TOO | SQLITE_TOO, 0, run_enumerate },
    { "prefix", UPDATED, SQLITE_TOO, 0, run_prefix },
    { "open", UPDATED, SQLITE_TOO, 0, run_open },
    { "open-long", LONG, UUIDS_ONLY, 0, run_open },
    { "openings", OPENED, UUIDS_ONLY | OURS_ONLY, 1000, run_open },
    { "merge", UPDATED, WRITES | MEMORY | SQLITE_TOO, 0, run_merge },
    { "merge-same", UPDATED, WRITES | SQLITE_TOO, 0, run_merge_same },
    { "differences", UPDATED, SQLITE_TOO, 0, run_differences },
    { "differences-data", UPDATED, SQLITE_TOO, 0, run_differences_data },
    { "merge-large", LOADED, WRITES | MEMORY | SQLITE_TOO, 0, run_merge_large },
    { "merge-base", UPDATED, WRITES | UUIDS_ONLY, 0, run_merge_base },
    { "ladder", LOADED, WRITES | OURS_ONLY | UUIDS_ONLY, 0, run_ladder },
    { "heads", LOADED, WRITES | OURS_ONLY | UUIDS_ONLY, 100000, run_heads },
    { "fold", LOADED, WRITES | OURS_ONLY | UUIDS_ONLY | MEMORY, 100000, run_fold },
    { "exchange", LOADED, WRITES | OURS_ONLY | UUIDS_ONLY, 100000, run_exchange },
    { "exchange-idle", EXCHANGED, OURS_ONLY | UUIDS_ONLY, 1000, run_exchange_idle },
    { "startup", EMPTY, OURS_ONLY | UUIDS_ONLY, 0, run_startup },
};
const size_t workload_count = sizeof workloads / sizeof *workloads;

const workload *workload_named(const char *name) {
    size_t i;
    for (i = 0; i < workload_count; i++)
        if (strcmp(workloads[i].name, name) == 0) return &workloads[i];
    fail("there is no workload %s", name);
}

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "bench: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    exit(1);
}

void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) fail("out of memory");
    return memory;
}

/* Of RssAnon, in KiB. */
long own_memory(void) {
    char line[256];
    long size = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && size < 0 && fgets(line, sizeof line, file)) sscanf(line, "RssAnon: %ld", &size);
    if (file) fclose(file);
    return size;
}

void report_ready(void) {
    printf("ready %ld\n", own_memory());
    fflush(stdout);
}

void report(const char *metric, double figure) {
    printf("%s %.9g\n", metric, figure);
    fflush(stdout);
}

counts counts_now(void) {
    call_counts calls = calls_counted();
    counts now;
    now.bytes_written = (double)calls.bytes_written;
    now.syncs = (double)calls.syncs;
    return now;
}

size_t scaled(const setting *setting, size_t count) {
    size_t most = ((size_t)512 << 20) / setting->value_size;
    return count < most ? count : most;
}

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *figures, size_t count) {
    qsort(figures, count, sizeof *figures, by_size);
    return count % 2 ? figures[count / 2] : (figures[count / 2 - 1] + figures[count / 2]) / 2;
}

char *path_in(const setting *setting, const char *name) {
    size_t size = strlen(setting->folder) + strlen(name) + 2;
    char *path = allocate(size, 1);
    snprintf(path, size, "%s/%s", setting->folder, name);
    return path;
}

void *open_database(const setting *setting) {
    return setting->side->open(path_in(setting, "data"), &setting->how);
}

/* ---- notes: which versions a fixture has ---- */

notes read_notes(const setting *setting) {
    char *path = path_in(setting, "notes");
    FILE *file = fopen(path, "rb");
    notes notes;
    if (!file || fread(&notes, sizeof notes, 1, file) != 1) fail("cannot read %s", path);
    fclose(file);
    free(path);
    return notes;
}

static void write_notes(const setting *setting, notes notes) {
    char *path = path_in(setting, "notes");
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(&notes, sizeof notes, 1, file) != 1 || fclose(file) != 0) fail("cannot write %s", path);
    free(path);
}

/* ---- fixtures ---- */

/* Returns all values in the form for `load`. */
static item *all_items(const setting *setting, const char *ids) {
    item *items = allocate(setting->count, sizeof *items);
    uint8_t *data = allocate(setting->count, setting->value_size);
    size_t i;
    for (i = 0; i < setting->count; i++) {
        data_value(data + i * setting->value_size, setting->value_size, i, 0);
        items[i].id = data_id(ids, i);
        items[i].data = data + i * setting->value_size;
        items[i].size = setting->value_size;
    }
    return items;
}

version save_updates(const setting *setting, void *database, const char *ids, version at, size_t first_update, size_t count) {
    uint8_t *value = allocate(1, setting->value_size);
    size_t update;
    for (update = first_update; update < first_update + count; update++) {
        size_t i = data_updated(update, setting->count);
        item item;
        data_value(value, setting->value_size, i, update);
        item.id = data_id(ids, i);
        item.data = value;
        item.size = setting->value_size;
        at = setting->side->save(database, &at, &item, 1);
    }
    free(value);
    return at;
}

static int make_older(const char *path, const struct stat *info, int kind, struct FTW *place) {
    struct timespec times[2];
    (void)place;
    times[0] = info->st_atim;
    times[1] = info->st_mtim;
    times[1].tv_sec -= 3600;
    if (kind == FTW_F) utimensat(AT_FDCWD, path, times, 0);
    return 0;
}

/* Opens the database for each update. The clock moves an hour after every five hundred, so that the store deletes segments that it
   compacted meanwhile. */
static version save_in_openings(const setting *setting, const char *ids, version at, size_t count) {
    char *folder = path_in(setting, "data");
    size_t i;
    for (i = 0; i < count; i++) {
        void *database = open_database(setting);
        at = save_updates(setting, database, ids, at, 1 + i, 1);
        setting->side->close(database);
        if ((i + 1) % 500 == 0 && nftw(folder, make_older, 16, FTW_PHYS) != 0) fail("cannot look at %s", folder);
    }
    free(folder);
    return at;
}

void make_fixture(const setting *setting, fixture which) {
    size_t updates = which == LONG || which == EXCHANGED ? 100000 : which == UPDATED || which == OPENED ? 10000 : 0;
    char *ids = data_ids(setting->count, setting->prefix);
    notes notes;
    void *database;
    if (which == EMPTY) return;
    updates = setting->quick ? updates / (which == OPENED ? 200 : 20) : scaled(setting, updates);
    database = open_database(setting);
    notes.first = notes.head = setting->side->load(database, setting->side->pack(all_items(setting, ids), setting->count), setting->count);
    if (which != OPENED) notes.head = save_updates(setting, database, ids, notes.first, 1, updates);
    setting->side->close(database);
    if (which == OPENED) notes.head = save_in_openings(setting, ids, notes.head, updates);
    if (which == EXCHANGED) fill_exchange_folder(setting);
    write_notes(setting, notes);
}

void run_load(const setting *setting) {
    char *ids = data_ids(setting->count, setting->prefix);
    void *packed = setting->side->pack(all_items(setting, ids), setting->count), *database;
    double start, loaded;
    counts counts;
    report_ready();
    database = open_database(setting);
    start = now();
    setting->side->load(database, packed, setting->count);
    loaded = now();
    setting->side->close(database);
    report("ms", (loaded - start) * 1e3);
    report("ms_and_close", (now() - start) * 1e3);
    counts = counts_now();
    report("versions", 1);
    report("written_mb", counts.bytes_written / 1e6);
    report("syncs", counts.syncs);
}

/* Runs a program that is not linked to the library. It replaces this process, and reports. */
void run_startup(const setting *setting) {
    const char *path = LLVS_BINARY_DIR "/benchmark_helpers/benchmark_startup";
    (void)setting;
    execl(path, path, (char *)NULL);
    fail("cannot start %s", path);
}

/* Opening, and reading values at one version. */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include "data.h"
#include "workload.h"
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 8 };

typedef struct reader {
    const setting *setting;
    void *database;
    const char *ids;
    version at;
    uint64_t seed;
    size_t count;
    uint64_t sum;
} reader;

static void *fetch_from_thread(void *opaque) {
    reader *reader = opaque;
    const setting *setting = reader->setting;
    uint8_t *copy = allocate(1, setting->value_size);
    size_t i;
    for (i = 0; i < reader->count; i++) {
        const char *id = data_id(reader->ids, (size_t)(draw(&reader->seed) % setting->count));
        if (setting->side->fetch(reader->database, id, &reader->at, copy, setting->value_size) != setting->value_size)
            fail("%s is not what was stored", id);
        reader->sum += copy[0];
    }
    free(copy);
    return NULL;
}

/* Fetches random values. Returns how many per second. */
static double fetch_rate(const setting *setting, void *database, const char *ids, version at, uint64_t seed, size_t count, uint64_t *sum) {
    reader reader = { setting, database, ids, at, seed, count, 0 };
    double start = now();
    fetch_from_thread(&reader);
    if (sum) *sum = reader.sum;
    return (double)count / (now() - start);
}

static double fetch_rate_of_threads(const setting *setting, void *database, const char *ids, version at, size_t count) {
    pthread_t running[THREADS];
    reader readers[THREADS];
    double start;
    size_t i;
    for (i = 0; i < THREADS; i++) {
        reader reader = { setting, setting->side->open_reader(database), ids, at, 100 + i, count / THREADS, 0 };
        readers[i] = reader;
        readers[i].count = scaled(setting, 1000);
        fetch_from_thread(&readers[i]);
        readers[i].count = count / THREADS;
    }
    start = now();
    for (i = 0; i < THREADS; i++)
        if (pthread_create(&running[i], NULL, fetch_from_thread, &readers[i]) != 0) fail("cannot start a thread");
    for (i = 0; i < THREADS; i++) pthread_join(running[i], NULL);
    start = now() - start;
    for (i = 0; i < THREADS; i++) setting->side->close_reader(database, readers[i].database);
    return (double)count / start;
}

static char *largest;
static off_t largest_size;
static int keep_largest(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)where;
    if (type == FTW_F && status->st_size > largest_size) {
        free(largest);
        largest = strdup(path);
        largest_size = status->st_size;
    }
    return 0;
}

/* Measures one read of as many bytes as a value has, from the system's cache and not from this process's memory, at random places in the
   largest file of the database. In nanoseconds. */
static double read_cost(const setting *setting, size_t count) {
    char *folder = path_in(setting, "data");
    uint8_t *copy = allocate(1, setting->value_size);
    uint64_t seed = 6;
    double start;
    int file;
    size_t i;
    if (nftw(folder, keep_largest, 16, FTW_PHYS) != 0 || !largest || largest_size <= (off_t)setting->value_size)
        fail("there is nothing to read in %s", folder);
    if ((file = open(largest, O_RDONLY)) < 0) fail("cannot open %s", largest);
    for (start = now(), i = 0; i < 2 * count; i++) {
        if (i == count) start = now();
        if (pread(file, copy, setting->value_size, (off_t)(draw(&seed) % (uint64_t)(largest_size - (off_t)setting->value_size))) !=
            (ssize_t)setting->value_size)
            fail("cannot read %s", largest);
    }
    start = now() - start;
    close(file);
    free(copy);
    free(folder);
    return start * 1e9 / (double)count;
}

/* Reads random ids, after as many other reads: with one thread, and then with eight. */
void run_fetch(const setting *setting) {
    char *ids = data_ids(setting->count, setting->prefix);
    version head = read_notes(setting).head;
    size_t count = setting->quick ? 10000 : scaled(setting, 200000);
    uint64_t sum;
    double one, eight;
    void *database;
    report_ready();
    database = open_database(setting);
    fetch_rate(setting, database, ids, head, 3, count, NULL);
    one = fetch_rate(setting, database, ids, head, 2, count, &sum);
    report("per_second", one);
    eight = fetch_rate_of_threads(setting, database, ids, head, count * 2);
    report("per_second_8", eight);
    report("scaling", eight / one);
    report("read_ns", read_cost(setting, count));
    setting->side->close(database);
    report("versions", 10001);
    report("check", (double)sum);
}

void run_fetch_first(const setting *setting) {
    char *ids = data_ids(setting->count, setting->prefix);
    notes notes = read_notes(setting);
    size_t count = setting->quick ? 5000 : scaled(setting, 100000);
    uint64_t sum;
    double head, first, start;
    void *database;
    report_ready();
    database = open_database(setting);
    fetch_rate(setting, database, ids, notes.head, 3, count, NULL);
    head = fetch_rate(setting, database, ids, notes.head, 4, count, NULL);
    start = now();
    fetch_rate(setting, database, ids, notes.first, 5, 1, NULL);
    report("first_ms", (now() - start) * 1e3);
    fetch_rate(setting, database, ids, notes.first, 3, count, NULL);
    first = fetch_rate(setting, database, ids, notes.first, 4, count, &sum);
    setting->side->close(database);
    report("per_second", first);
    report("slower_than_head", head / first);
    report("check", (double)sum);
}

/* Reads random ids, each at a random version, after as many other reads; and pages of a few values. */
static void read_past(const setting *setting, size_t versions) {
    enum { PAGES = 50, PAGE = 20 };
    char *ids = data_ids(setting->count, setting->prefix);
    size_t count = setting->quick ? 500 : 20000, i;
    version *all = allocate(versions = setting->quick ? versions / 20 : scaled(setting, versions), sizeof *all);
    uint8_t *copy = allocate(1, setting->value_size);
    uint64_t state = 7, sum = 0;
    double start;
    void *database;
    memset(all, 1, versions * sizeof *all);
    report_ready();
    database = open_database(setting);
    setting->side->newest(database, all, versions);
    start = now();
    for (i = 0; i < 2 * count; i++) {
        const char *id = data_id(ids, (size_t)(draw(&state) % setting->count));
        if (i == count) start = now();
        if (setting->side->fetch(database, id, &all[draw(&state) % versions], copy, setting->value_size) != setting->value_size)
            fail("%s is not what was stored", id);
        sum += copy[0];
        if (i == 0) report("first_ms", (now() - start) * 1e3);
    }
    report("microseconds", (now() - start) * 1e6 / (double)count);
    start = now();
    for (i = 0; i < PAGES; i++) {
        char prefix[64];
        const char *id = data_id(ids, (size_t)(draw(&state) % setting->count));
        snprintf(prefix, sizeof prefix, "%.*s", (int)strlen(setting->prefix) + 2, id);
        setting->side->enumerate(database, &all[draw(&state) % versions], prefix, PAGE, &sum);
    }
    report("page_ms", (now() - start) * 1e3 / PAGES);
    setting->side->close(database);
    report("versions", (double)versions);
    report("check", (double)sum);
}

void run_past(const setting *setting) { read_past(setting, 10000); }
void run_past_long(const setting *setting) { read_past(setting, 100000); }

void run_enumerate(const setting *setting) {
    version head = read_notes(setting).head;
    uint64_t sum = 0;
    double figures[3], start;
    void *database;
    size_t i;
    report_ready();
    database = open_database(setting);
    for (i = 0; i < sizeof figures / sizeof *figures; i++) {
        start = now();
        sum = 0;
        if (setting->side->enumerate(database, &head, "", 0, &sum) != setting->count) fail("not all values were enumerated");
        figures[i] = (now() - start) * 1e3;
        if (i == 0) report("first_ms", figures[0]);
    }
    setting->side->close(database);
    report("ms", median(figures, sizeof figures / sizeof *figures));
    report("versions", 10001);
    report("check", (double)sum);
}

/* Reads pages of 100 values, under prefixes that at least a hundred values have. */
void run_prefix(const setting *setting) {
    enum { SCANS = 500 };
    version head = read_notes(setting).head;
    double figures[SCANS], start;
    uint64_t sum = 0, state = 6;
    char prefix[64], digits[32];
    int length = 0, round;
    size_t group, found = 0, i;
    void *database = open_database(setting);
    for (group = setting->count; group / 16 >= 150; group /= 16) length++;
    for (round = 0; round < 2; round++) {
        for (i = 0; i < SCANS; i++) {
            snprintf(digits, sizeof digits, "%08X", (unsigned)(draw(&state) >> 32));
            snprintf(prefix, sizeof prefix, "%s%.*s", setting->prefix, length, digits);
            start = now();
            found += setting->side->enumerate(database, &head, prefix, 100, &sum);
            figures[i] = (now() - start) * 1e6;
        }
    }
    setting->side->close(database);
    report("microseconds", median(figures, SCANS));
    report("found", (double)found / SCANS / 2);
    report("check", (double)sum);
}

/* Opens the database and reads one value. The clock starts before the opening. */
void run_open(const setting *setting) {
    uint64_t state = (uint64_t)(now() * 1e9);
    char *ids = data_ids(setting->count, setting->prefix);
    const char *id = data_id(ids, (size_t)(draw(&state) % setting->count));
    version head = read_notes(setting).head;
    uint8_t *copy = allocate(1, setting->value_size);
    double start = now();
    void *database = open_database(setting);
    setting->side->fetch(database, id, &head, copy, setting->value_size);
    report("ms", (now() - start) * 1e3);
    setting->side->close(database);
}

/*
 * Files that claim to be, or are, far larger than memory. A process with little memory that reads them gets an answer or an error, and does
 * not end.
 */
#define _GNU_SOURCE /* RLIMIT_AS, nftw */
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "child.h"

enum { FILES_MAX = 200, LARGE = (1 << 20) + 5000, ALLOWANCE_MIB = 256, ABSURD_MIB = 512 };

/* ---- Files that are made too large ---- */

static char *files[FILES_MAX];
static size_t file_count;
static int note(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)walk;
    if (type == FTW_F && status->st_size > 0 && file_count < FILES_MAX) {
        files[file_count] = strdup(path);
        assert_non_null(files[file_count++]);
    }
    return 0;
}
static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Makes a store with versions and a large value, its cache, and a folder with its versions and a snapshot, in "store" and "folder". */
static void make_original(const char *directory) {
    char *path = join(directory, "store"), *folder = join(directory, "folder"), *large = malloc(LARGE), url[1100];
    llvs_store *store;
    llvs_exchange *exchange;
    llvs_version_id id;
    llvs_change change = update("x", "");
    assert_non_null(large);
    for (size_t i = 0; i < LARGE; i++) large[i] = (char)(i * i >> 7);
    snprintf(url, sizeof url, "file://%s", folder);
    OK(llvs_store_open(llvs_str(path), NULL, &store, &error));
    id = save(store, NULL, insert("x", "1"));
    for (int i = 0; i < 5; i++) id = save(store, &id, update("x", "more"));
    change.data = llvs_bytes_make(large, LARGE);
    id = save(store, &id, change);
    id = save(store, &id, insert("y", "small"));
    OK(llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error));
    OK(llvs_exchange_send(exchange, NULL, NULL, &error));
    OK(llvs_exchange_put_snapshot(exchange, NULL, NULL, &error));
    llvs_exchange_free(exchange);
    llvs_store_free(store);
    free(large);
    free(path);
    free(folder);
}

static uint32_t crc32c(const uint8_t *bytes, size_t size) {
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}
static void put(uint8_t *at, uint64_t number, int size) { for (int i = 0; i < size; i++) at[i] = (uint8_t)(number >> 8 * i); }

/* Writes the first frame of a segment (docs/format.md), with valid checksums and false sizes. It claims `count` records, of which the
 * table lists `listed`. */
static void write_frame(const char *path, uint64_t body_size, uint32_t count, uint32_t listed, const uint64_t lengths[2]) {
    uint8_t bytes[48 + 4 + 24], id[16];
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pread(file, id, 16, 16), 16);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, "\xA7LVF\1", 5);
    memcpy(bytes + 8, id, 16);
    put(bytes + 24, 64, 8);
    put(bytes + 32, body_size, 8);
    put(bytes + 48, count, 4);
    for (uint32_t i = 0; i < listed; i++) put(bytes + 52 + 12 * i, lengths[i], 8);
    put(bytes + 40, crc32c(bytes + 48, 4 + 12 * (size_t)listed), 4);
    put(bytes + 44, crc32c(bytes, 44), 4);
    assert_int_equal(pwrite(file, bytes, 52 + 12 * (size_t)listed, 64), 52 + 12 * listed);
    close(file);
}

/* Writes records that claim headers of hundreds of MiB, at the place where a salvage would search behind a damaged table. */
static void write_claims(const char *path) {
    uint8_t claim[48] = {1};
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    put(claim + 4, 0x16000000, 4);
    put(claim + 28, 1, 1);
    for (int at = 64 + 52 + 12; at < 64 + 52 + 12 + 4800; at += sizeof claim)
        assert_int_equal(pwrite(file, claim, sizeof claim, at), sizeof claim);
    close(file);
}

static void resize(const char *path, int mebibytes) {
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    if (ftruncate(file, (off_t)mebibytes << 20) != 0) fail_msg("cannot make a file of %d MiB with nothing in it", mebibytes);
    close(file);
}

/* ---- The readers ---- */

static int must_succeed; /* no size is false */
static void forget(llvs_error *error) {
    if (error && must_succeed) {
        fprintf(stderr, "%s\n", llvs_error_message(error));
        _exit(82);
    }
    llvs_error_free(error);
}
static void limit_memory(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    struct rlimit limit;
    if (!file || fscanf(file, "%lu", &pages) != 1) _exit(80);
    fclose(file);
    limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)ALLOWANCE_MIB << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(81);
}

static void read_all(llvs_store *store) {
    llvs_error *error = NULL;
    llvs_history_cursor *history;
    llvs_version_list *page;
    llvs_verify_report *report;
    if (llvs_store_history(store, NULL, NULL, &history, &error) == LLVS_OK) {
        while (llvs_history_cursor_next(history, 0, NULL, &page, &error) == LLVS_OK && page) {
            for (size_t i = 0; i < page->count; i++) {
                llvs_buffer data;
                llvs_value_list *values;
                llvs_bytes id = page->items[i]->id;
                if (llvs_store_value(store, llvs_str("x"), id, &data, NULL, &error) == LLVS_OK) llvs_buffer_dispose(&data);
                else forget(error);
                if (llvs_store_enumerate(store, id, NULL, &values, &error) == LLVS_OK) llvs_value_list_free(values);
                else forget(error);
            }
            llvs_version_list_free(page);
        }
        llvs_history_cursor_free(history);
    }
    forget(error);
    error = NULL;
    if (llvs_store_verify(store, NULL, &report, &error) == LLVS_OK) llvs_verify_report_free(report);
    else forget(error);
    error = NULL;
    MAY_FAIL(llvs_store_compact(store, NULL, NULL, &error));
    forget(error);
}

static void read_everything(const char *directory) {
    char *path = join(directory, "store"), *folder = join(directory, "folder"), *salvaged = join(directory, "salvaged"), url[1100];
    llvs_store *store;
    llvs_error *error = NULL;
    llvs_salvage_report *report;
    limit_memory();
    snprintf(url, sizeof url, "file://%s", folder);
    if (llvs_store_open(llvs_str(path), NULL, &store, &error) == LLVS_OK) {
        read_all(store);
        llvs_store_free(store);
    }
    forget(error);
    error = NULL;
    if (llvs_store_salvage(llvs_str(path), NULL, llvs_str(salvaged), NULL, NULL, &report, &error) == LLVS_OK)
        llvs_salvage_report_free(report);
    else forget(error);
    for (int by_snapshot = 0; by_snapshot < 2; by_snapshot++) {
        llvs_exchange *exchange;
        store = memory_store();
        error = NULL;
        if (llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error) == LLVS_OK) {
            (void)(by_snapshot ? llvs_exchange_restore_snapshot(exchange, NULL, NULL, &error)
                               : llvs_exchange_retrieve(exchange, NULL, NULL, &error));
            llvs_exchange_free(exchange);
        }
        forget(error);
        read_all(store);
        llvs_store_free(store);
    }
    _exit(0);
}

static void check(const char *directory, const char *what, const char *file) {
    int status;
    pid_t child;
    char command[1200];
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) read_everything(directory);
    assert_int_equal(wait_for_child(child, 120, &status, NULL), child);
    if (status != 0)
        fail_msg("%s (%s): the process ended with %s %d", file, what, WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    snprintf(command, sizeof command, "rm -rf '%s/salvaged'", directory);
    assert_int_equal(system(command), 0);
}

/* ---- Tests ---- */

typedef struct copy { char *original, *directory; } copy;
static copy begin(void) {
    copy c = {new_directory(), new_directory()};
    make_original(c.original);
    return c;
}
/* Makes a fresh copy, and lists its files. */
static void renew(copy *c) {
    char command[2500];
    snprintf(command, sizeof command, "rm -rf '%s'/* && cp -rp '%s'/. '%s'", c->directory, c->original, c->directory);
    assert_int_equal(system(command), 0);
    while (file_count > 0) free(files[--file_count]);
    assert_int_equal(nftw(c->directory, note, 16, FTW_PHYS), 0);
    qsort(files, file_count, sizeof *files, by_name);
}
static void end(copy *c) {
    while (file_count > 0) free(files[--file_count]);
    remove_directory(c->original);
    remove_directory(c->directory);
}

static void little_memory_is_enough(void **state) {
    copy c = begin();
    (void)state;
    renew(&c);
    must_succeed = 1;
    check(c.directory, "nothing", "nothing");
    must_succeed = 0;
    end(&c);
}

static void files_larger_than_memory(void **state) {
    copy c = begin();
    (void)state;
    renew(&c);
    assert_true(file_count > 8);
    for (size_t i = 0; i < file_count; i++) {
        for (int emptied = 0; emptied < 2; emptied++) {
            /* The short run tests each file in one of the two ways. */
            if (!is_deep() && emptied != (int)(i % 2)) continue;
            renew(&c);
            if (emptied) resize(files[i], 0);
            resize(files[i], ABSURD_MIB);
            check(c.directory, emptied ? "zeros, larger than memory" : "zeros behind it, larger than memory", files[i]);
        }
    }
    end(&c);
}

static void frames_that_claim_absurd_sizes(void **state) {
    static const uint64_t sizes[] = {
        1u << 30, (uint64_t)ABSURD_MIB * (1 << 20) - 112, 0xFFFFFFFFu, (uint64_t)1 << 40, INT64_MAX, UINT64_MAX - 111, UINT64_MAX
    };
    static const uint32_t counts[] = {1, 2, 1 << 20, (1 << 20) + 1, 0x7FFFFFFF, 0xFFFFFFFFu};
    copy c = begin();
    (void)state;
    for (int is_long = 0; is_long < 2; is_long++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            /* Half of the counts with each size, and all of them in total. */
            for (size_t n = s % 2; n < sizeof counts / sizeof *counts; n += 2) {
                /* The short run combines each size and each count with half of the other values. */
                if (!is_deep() && (s + n / 2 + (size_t)is_long) % 2 != 0) continue;
                uint64_t lengths[2] = {sizes[s] - 4 - 12 * (uint64_t)counts[n], 0};
                const char *segment = NULL;
                renew(&c);
                for (size_t i = 0; i < file_count; i++) if (strstr(files[i], "/segments/")) segment = files[i];
                assert_non_null(segment);
                write_frame(segment, sizes[s], counts[n], counts[n] < 2 ? counts[n] : 2, lengths);
                if (is_long) {
                    write_claims(segment);
                    resize(segment, ABSURD_MIB);
                }
                check(c.directory, "a frame of absurd size", segment);
            }
        }
    }
    end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(little_memory_is_enough), cmocka_unit_test(frames_that_claim_absurd_sizes),
                                        cmocka_unit_test(files_larger_than_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

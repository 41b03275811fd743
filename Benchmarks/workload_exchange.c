/* Moves 1,000 versions from one store to another. The yardstick has no counterpart. */
#include "data.h"
#include "ours.h"
#include "workload.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static llvs_exchange *open_exchange(llvs_store *store, const char *url, int is_full) {
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_exchange *exchange;
    llvs_error *error;
    options.durability = is_full ? LLVS_DURABILITY_FULL : LLVS_DURABILITY_NORMAL;
    must(llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error), error);
    return exchange;
}

/* Returns the milliseconds of a send or a retrieve. Fails unless it moved `expected` versions. */
static double travel(llvs_exchange *exchange, int is_sending, size_t expected) {
    llvs_exchange_result *result;
    llvs_error *error;
    size_t count;
    double start = now(), milliseconds;
    if (is_sending) must(llvs_exchange_send(exchange, NULL, &result, &error), error);
    else must(llvs_exchange_retrieve(exchange, NULL, &result, &error), error);
    milliseconds = (now() - start) * 1e3;
    if (is_sending) count = result->sent_count;
    else count = result->retrieved_count;
    if (count != expected || result->problem_count) fail("%zu versions travelled instead of %zu", count, expected);
    llvs_exchange_result_free(result);
    return milliseconds;
}

static void measure(const setting *given, const char *name, const char *url, int is_full) {
    setting setting = *given;
    char *ids = data_ids(setting.count, setting.prefix), metric[64];
    version head = read_notes(&setting).head;
    size_t count = setting.quick ? 10 : 1000, rounds = setting.quick ? 1 : 3;
    llvs_exchange *from, *to;
    void *sender, *receiver;
    size_t round;
    double out[3], back[3], idle[3];
    setting.how.is_full = is_full;
    sender = open_database(&setting);
    receiver = setting.side->open(path_in(&setting, name), &setting.how);
    from = open_exchange(sender, url, is_full);
    to = open_exchange(receiver, url, is_full);
    /* Counts the versions of the fixture, and the version that an earlier call of this function made. */
    {
        llvs_exchange_result *result;
        llvs_error *error;
        must(llvs_exchange_send(from, NULL, &result, &error), error);
        llvs_exchange_result_free(result);
        must(llvs_exchange_retrieve(to, NULL, &result, &error), error);
        llvs_exchange_result_free(result);
    }
    for (round = 0; round < rounds; round++) {
        head = save_updates(&setting, sender, ids, head, 9000000 + round * count, count);
        out[round] = travel(from, 1, count);
        back[round] = travel(to, 0, count);
        idle[round] = travel(to, 0, 0);
    }
    llvs_exchange_free(from);
    llvs_exchange_free(to);
    setting.side->close(sender);
    setting.side->close(receiver);
    snprintf(metric, sizeof metric, "%s_send_ms", name);
    report(metric, median(out, rounds));
    snprintf(metric, sizeof metric, "%s_retrieve_ms", name);
    report(metric, median(back, rounds));
    snprintf(metric, sizeof metric, "%s_idle_ms", name);
    report(metric, median(idle, rounds));
    free(ids);
}

static char *folder_url(const setting *setting, const char *name) {
    char *folder = path_in(setting, name), *url = allocate(strlen(folder) + 16, 1);
    sprintf(url, "file://%s", folder);
    free(folder);
    return url;
}

/*
 * Measures how long the file system takes for the files of 1,000 versions in a folder. Each file is written under a temporary name and
 * renamed.
 */
static void measure_files(const setting *setting) {
    char *folder = path_in(setting, "files"), content[300] = "";
    size_t count = setting->quick ? 20 : 2000, rounds = setting->quick ? 1 : 3, round, i;
    double times[3];
    if (mkdir(folder, 0700) != 0) fail("%s cannot be made", folder);
    for (round = 0; round < rounds; round++) {
        double start = now();
        for (i = 0; i < count; i++) {
            char *beside = allocate(strlen(folder) + 64, 1), *place = allocate(strlen(folder) + 64, 1);
            int file;
            sprintf(beside, "%s/%zu-%zu.new", folder, round, i);
            sprintf(place, "%s/%zu-%zu", folder, round, i);
            file = open(beside, O_CREAT | O_EXCL | O_WRONLY, 0600);
            if (file < 0 || write(file, content, sizeof content) != (ssize_t)sizeof content || close(file) != 0 ||
                rename(beside, place) != 0)
                fail("%s cannot be made", place);
            free(beside);
            free(place);
        }
        times[round] = (now() - start) * 1e3;
    }
    report("files_ms", median(times, rounds));
    free(folder);
}

void run_exchange(const setting *setting) {
    char *synced = folder_url(setting, "exchange"), *unsynced = folder_url(setting, "exchange-unsynced");
    measure(setting, "memory", "memory:bench", 0);
    measure(setting, "unsynced", unsynced, 0);
    measure_files(setting);
    measure(setting, "folder", synced, 1);
    free(synced);
    free(unsynced);
}

void fill_exchange_folder(const setting *setting) {
    char *url = folder_url(setting, "exchange");
    llvs_store *store = open_database(setting);
    llvs_exchange *exchange = open_exchange(store, url, 0);
    llvs_exchange_result *result;
    llvs_error *error;
    struct timespec settled = { 2, 100000000 };
    must(llvs_exchange_send(exchange, NULL, &result, &error), error);
    llvs_exchange_result_free(result);
    llvs_exchange_free(exchange);
    setting->side->close(store);
    free(url);
    /* Wait, since the times of directories that changed a moment ago are not trusted. */
    nanosleep(&settled, NULL);
}

/*
 * Exchanges in both directions between a store with 100,000 versions and a folder with the same versions: the cost of finding nothing to
 * do.
 */
void run_exchange_idle(const setting *setting) {
    char *url = folder_url(setting, "exchange");
    llvs_store *store = open_database(setting);
    llvs_exchange *exchange = open_exchange(store, url, 0);
    report("first_ms", travel(exchange, 0, 0) + travel(exchange, 1, 0));
    report("again_ms", travel(exchange, 0, 0) + travel(exchange, 1, 0));
    llvs_exchange_free(exchange);
    setting->side->close(store);
    free(url);
}

/* 1,000 versions from one store to another, which the yardstick has no counterpart for. */
#include "data.h"
#include "ours.h"
#include "workload.h"
#include <stdio.h>
#include <stdlib.h>

static llvs_exchange *open_exchange(llvs_store *store, const char *url) {
    llvs_exchange *exchange;
    llvs_error *error;
    must(llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error), error);
    return exchange;
}

/* Milliseconds of one way; fails unless `expected` versions travelled. */
static double travel(llvs_exchange *exchange, int is_sending, size_t expected) {
    llvs_exchange_result *result;
    llvs_error *error;
    size_t count;
    double start = now(), milliseconds;
    if (is_sending) must(llvs_exchange_send(exchange, NULL, &result, &error), error);
    else must(llvs_exchange_retrieve(exchange, NULL, &result, &error), error);
    milliseconds = (now() - start) * 1e3;
    if (is_sending) llvs_exchange_result_sent(result, &count);
    else llvs_exchange_result_retrieved(result, &count);
    if (count != expected || llvs_exchange_result_problem_count(result)) fail("%zu versions travelled instead of %zu", count, expected);
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
    from = open_exchange(sender, url);
    to = open_exchange(receiver, url);
    /* What the fixture has, and the version that an earlier call of this made. */
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

void run_exchange(const setting *setting) {
    char *folder = path_in(setting, "exchange"), *url = allocate(strlen(folder) + 16, 1);
    sprintf(url, "file://%s", folder);
    measure(setting, "memory", "memory:bench", 0);
    measure(setting, "folder", url, 1);
    free(folder);
    free(url);
}

/* Versions that update one value each. */
#include "data.h"
#include "workload.h"
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 8 };

typedef struct saver {
    const setting *setting;
    void *database;
    const char *ids;
    version at;
    size_t first_update, count;
} saver;

static void *save_from_thread(void *opaque) {
    saver *saver = opaque;
    saver->at = save_updates(saver->setting, saver->database, saver->ids, saver->at, saver->first_update, saver->count);
    return NULL;
}

/* Makes `count` versions in all. Several threads make lines of their own, which begin at the newest version. */
static void run_saves(const setting *given, int is_full, size_t threads, size_t count) {
    setting setting = *given;
    char *ids = data_ids(setting.count, setting.prefix);
    version head = read_notes(&setting).head;
    pthread_t running[THREADS];
    saver savers[THREADS];
    counts before, after;
    void *database;
    double start, seconds;
    size_t i;

    count = setting.quick ? count / 20 : scaled(&setting, count);
    setting.how.is_full = is_full;
    report_ready();
    database = open_database(&setting);
    /* The first saves open files and fill caches. */
    head = save_updates(&setting, database, ids, head, 1000000, scaled(&setting, 10));
    before = counts_now();
    start = now();
    for (i = 0; i < threads; i++) {
        saver saver = { &setting, database, ids, head, 2000000 + i * 100000, count / threads };
        savers[i] = saver;
        if (threads == 1) save_from_thread(&savers[i]);
        else if (pthread_create(&running[i], NULL, save_from_thread, &savers[i]) != 0) fail("cannot start a thread");
    }
    for (i = 0; threads > 1 && i < threads; i++) pthread_join(running[i], NULL);
    seconds = now() - start;
    setting.side->close(database);
    after = counts_now();

    count = count / threads * threads;
    report("per_second", (double)count / seconds);
    report("written_per_version", (after.bytes_written - before.bytes_written) / (double)count);
    report("syncs_per_version", (after.syncs - before.syncs) / (double)count);
    report("saved", (double)count + 10);
    report("versions", (double)count + 11);
    free(ids);
}

void run_commits(const setting *setting) { run_saves(setting, 0, 1, 10000); }
void run_commits_full(const setting *setting) { run_saves(setting, 1, 1, 2000); }
void run_commits_full_8(const setting *setting) { run_saves(setting, 1, THREADS, 4000); }

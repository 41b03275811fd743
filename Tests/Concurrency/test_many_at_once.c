/*
 * Many workers at once.
 *
 * 8 threads (or 64) on a handle, 8 handles in a process, 8 processes on one store: all commit, read, merge, compact, verify, and close and
 * open again, with file and SQLite storage. Every read is exactly of the requested version, at any time. All others know an acknowledged
 * version after a reload. No call fails. Processes are killed in the middle without an effect on others. In the end another process finds
 * everything that was acknowledged.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../Faults/files.h"
#include "run.h"

struct shape {
    llvs_storage_kind storage;
    llvs_durability durability;
    int processes, handles, threads; /* 0 handles: the processes create the store at once */
    long operations;
    int kills;
};

static const struct shape shapes[] = {
    {LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL, 1, 1, 8, 1500, 0},
    {LLVS_STORAGE_FILE, LLVS_DURABILITY_FULL, 1, 8, 1, 1000, 0},
    {LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL, 8, 1, 1, 1000, 0},
    {LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL, 8, 1, 1, 1000, 12},
    {LLVS_STORAGE_FILE, LLVS_DURABILITY_FULL, 3, 2, 2, 800, 3},
    {LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL, 1, 1, 64, 100, 0},
    {LLVS_STORAGE_SQLITE, LLVS_DURABILITY_NORMAL, 1, 1, 8, 800, 0},
    {LLVS_STORAGE_SQLITE, LLVS_DURABILITY_FULL, 1, 8, 1, 600, 0},
    {LLVS_STORAGE_SQLITE, LLVS_DURABILITY_NORMAL, 8, 1, 1, 600, 0},
    {LLVS_STORAGE_SQLITE, LLVS_DURABILITY_NORMAL, 8, 1, 1, 600, 12},
    {LLVS_STORAGE_SQLITE, LLVS_DURABILITY_FULL, 3, 2, 2, 400, 3},
    {LLVS_STORAGE_SQLITE, LLVS_DURABILITY_NORMAL, 1, 1, 64, 50, 0},
    {LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL, 8, 0, 0, 12, 0},
    {LLVS_STORAGE_SQLITE, LLVS_DURABILITY_NORMAL, 8, 0, 0, 12, 0},
};
static const struct trial trials[] = {
    {"file: 8 threads on a handle", &shapes[0]},
    {"file: 8 handles in a process", &shapes[1]},
    {"file: 8 processes", &shapes[2]},
    {"file: 8 processes, some killed", &shapes[3]},
    {"file: processes with handles with threads", &shapes[4]},
    {"file: 64 threads on a handle", &shapes[5]},
    {"SQLite: 8 threads on a handle", &shapes[6]},
    {"SQLite: 8 handles in a process", &shapes[7]},
    {"SQLite: 8 processes", &shapes[8]},
    {"SQLite: 8 processes, some killed", &shapes[9]},
    {"SQLite: processes with handles with threads", &shapes[10]},
    {"SQLite: 64 threads on a handle", &shapes[11]},
    {"file: made by 8 processes at once", &shapes[12]},
    {"SQLite: made by 8 processes at once", &shapes[13]},
};

/* 8 processes find no store: all of them create it, and all work on the same one. */
static void made_at_once(const struct shape *shape, const char *folder, uint64_t seed, double scale) {
    for (long round = 0; round < scaled(shape->operations, scale) && !ledger_has_failed(); round++) {
        char name[32];
        snprintf(name, sizeof name, "store-%ld", round);
        char *path = path_of(folder, name);
        struct crew crew = {
            { path, shape->storage, shape->durability, KEEPS_SEGMENTS, 0 }, shape->processes, 1, 1, 4, 0, 0, 0, seed + (uint64_t)round
        };
        ledger_forget();
        run_crew(&crew, NULL, NULL);
        if (!ledger_has_failed()) judge_in_child(&crew.place, JUDGE_WHOLE, 0);
        free(path);
    }
}

static void run(const struct trial *trial, const char *folder, uint64_t seed, double scale) {
    const struct shape *shape = trial->what;
    if (shape->handles == 0) {
        made_at_once(shape, folder, seed, scale);
        return;
    }
    char *path = path_of(folder, "store"), *cache = path_of(folder, "store/cache");
    struct crew crew = { { path, shape->storage, shape->durability, FOLDS_AND_DELETES, 0 },
                         shape->processes,
                         shape->handles,
                         shape->threads,
                         scaled(shape->operations, scale),
                         shape->kills,
                         0,
                         0,
                         seed };
    run_crew(&crew, NULL, NULL);
    if (!ledger_has_failed()) judge_in_child(&crew.place, JUDGE_WHOLE, 0);
    if (!ledger_has_failed() && shape->storage == LLVS_STORAGE_FILE) {
        /* The caches contain only derived data. */
        remove_tree(cache);
        judge_in_child(&crew.place, JUDGE_HISTORY, 0);
    }
    free(path);
    free(cache);
}

int main(int argc, char **argv) {
    static const struct planting plantings[] = {
        {READS_SOMETHING_ELSE, "a read of something else", "file: 8 threads on a handle"},
        {LOSES_A_VERSION, "a version that is lost", "file: 8 processes"},
        {LOSES_A_VERSION, "a version that is lost", "SQLite: 8 processes, some killed"},
        {MAKES_ONE_UP, "a version that nobody asked for", "file: 8 handles in a process"},
        {MERGES_WRONGLY, "a merge of which one side wins", "SQLite: 8 threads on a handle"},
        {SPOILS_A_BYTE, "a byte that is spoiled", "file: processes with handles with threads"},
        {SPOILS_A_BYTE, "a byte that is spoiled", "SQLite: 8 handles in a process"},
        {TRAPS, "a process that traps", "file: made by 8 processes at once"},
        {LOOPS, "a process that loops", "file: 64 threads on a handle"},
        {NO_PLANT, NULL, NULL},
    };
    return run_trials("Many at once", trials, (int)(sizeof trials / sizeof trials[0]), run, plantings, argc, argv);
}

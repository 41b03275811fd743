#include "compare.h"
#include "data.h"
#include "machine.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static const char *const side_names[2] = { "ours", "yardstick" };
static const char *const fixture_names[FIXTURES] = { "empty", "loaded", "updated", "long", "opened", "exchanged" };

static metrics start(const comparison *comparison, const data_kind *kind, int side, const char *what, const char *which, const char *folder,
                     int takes_memory) {
    char count[32], value_size[32], budget[32];
    char *arguments[20];
    size_t i = 0;
    snprintf(count, sizeof count, "%zu", kind->count);
    snprintf(value_size, sizeof value_size, "%zu", kind->value_size);
    snprintf(budget, sizeof budget, "%zu", kind->budget);
#define ARGUMENT(text) (arguments[i++] = (char *)(uintptr_t)(text))
    ARGUMENT(comparison->program);
    if (comparison->is_quick) ARGUMENT("--quick");
    ARGUMENT("--side"), ARGUMENT(side_names[side]), ARGUMENT(what), ARGUMENT(which), ARGUMENT("--n"), ARGUMENT(count);
    ARGUMENT("--ids"), ARGUMENT(kind->ids), ARGUMENT("--value-size"), ARGUMENT(value_size), ARGUMENT("--budget"), ARGUMENT(budget);
    ARGUMENT("--storage"), ARGUMENT(kind->is_sqlite ? "sqlite" : "file"), ARGUMENT(folder);
#undef ARGUMENT
    arguments[i] = NULL;
    return run_process(arguments, takes_memory);
}

/* ---- fixtures of workloads ---- */

static void fixture_path(char *path, const comparison *comparison, const data_kind *kind, int side, fixture which) {
    snprintf(path, PATH_SIZE, "%s/%zu-%s-%zu-%s-%s%s", comparison->folder, kind->count, kind->ids, kind->value_size, fixture_names[which],
             side_names[side], side == 0 && kind->is_sqlite ? "-sqlite" : "");
}

static void prepare(const comparison *comparison, const data_kind *kind, int side, fixture which) {
    char path[PATH_SIZE], unfinished[PATH_SIZE + 8], number[16];
    fixture_path(path, comparison, kind, side, which);
    if (access(path, F_OK) == 0) return;
    snprintf(unfinished, sizeof unfinished, "%s.making", path);
    remove_folder(unfinished);
    if (mkdir(unfinished, 0777) != 0) fail("cannot make %s", unfinished);
    snprintf(number, sizeof number, "%d", (int)which);
    start(comparison, kind, side, "--fixture", number, unfinished, 0);
    if (rename(unfinished, path) != 0) fail("cannot make %s", path);
}

void remove_fixtures(const comparison *comparison, const data_kind *kind, const data_kind *next) {
    char path[PATH_SIZE], next_path[PATH_SIZE];
    int side, which;
    for (side = 0; side < 2; side++)
        for (which = 0; which < FIXTURES; which++) {
            fixture_path(path, comparison, kind, side, (fixture)which);
            if (next) fixture_path(next_path, comparison, next, side, (fixture)which);
            if (!next || strcmp(path, next_path) != 0) remove_folder(path);
        }
}

/* ---- one run of one side ---- */

/* Adds figures that are derived from the others and from the files on disk. */
static void derive(metrics *found, const data_kind *kind, const workload *workload, disk_size before, disk_size after) {
    double payload = (double)kind->count * (double)(kind->value_size + (strcmp(kind->ids, "long") == 0      ? LONG_ID_SIZE
                                                                        : strcmp(kind->ids, "contact") == 0 ? 44
                                                                                                            : 36));
    double saved = metric_named(found, "saved");
    if (workload->from == EMPTY) {
        set_metric(found, "disk_of_payload", after.apparent / payload);
        set_metric(found, "disk", after.apparent / 1e6);
        set_metric(found, "disk_allocated", after.allocated / 1e6);
    } else if (saved > 0) {
        set_metric(found, "disk_per_version", (after.apparent - before.apparent) / saved);
        set_metric(found, "allocated_per_version", (after.allocated - before.allocated) / saved);
    }
}

static metrics run_side(const comparison *comparison, const data_kind *kind, int side, const workload *workload, int takes_memory) {
    char from[PATH_SIZE], scratch[PATH_SIZE];
    disk_size before, after;
    metrics found;
    fixture_path(from, comparison, kind, side, workload->from);
    if (!(workload->flags & WRITES)) return start(comparison, kind, side, "--workload", workload->name, from, takes_memory);
    snprintf(scratch, sizeof scratch, "%s/scratch", comparison->folder);
    remove_folder(scratch);
    copy_folder(from, scratch, !comparison->is_quick);
    before = size_on_disk(scratch);
    found = start(comparison, kind, side, "--workload", workload->name, scratch, takes_memory);
    after = size_on_disk(scratch);
    derive(&found, kind, workload, before, after);
    remove_folder(scratch);
    return found;
}

/* ---- all runs ---- */

/* Checks that both sides read the same data, if they report what they read. */
static void check(metrics all[2][RUNS_MAX], int runs, const workload *workload) {
    int run;
    for (run = 0; run < runs; run++) {
        double our = metric_named(&all[0][run], "check"), theirs = metric_named(&all[1][run], "check");
        if (!isnan(our) && our != theirs) fail("%s: the two sides read different data (%.0f and %.0f)", workload->name, our, theirs);
    }
}

void compare(const comparison *comparison, const data_kind *kind, const workload *workload) {
    static metrics all[2][RUNS_MAX];
    int sides = workload->flags & OURS_ONLY ? 1 : 2, run, turn;
    figures figures = { NULL, NULL, 0, 0, 0 };
    moment begin;
    for (turn = 0; turn < sides; turn++) prepare(comparison, kind, turn, workload->from);
    begin = moment_now();
    for (run = 0; run < kind->runs; run++)
        for (turn = 0; turn < sides; turn++) {
            int side = sides == 2 ? (run + turn) % 2 : 0;
            all[side][run] = run_side(comparison, kind, side, workload, 0);
        }
    figures.others = share_of_others(begin);
    if (sides == 2) check(all, kind->runs, workload);
    /* Sampling a process slows it down, so memory is measured in a run of its own. */
    for (turn = 0; turn < sides && workload->flags & MEMORY; turn++) {
        metrics of_memory = run_side(comparison, kind, turn, workload, 1);
        for (run = 0; run < kind->runs; run++) set_metric(&all[turn][run], "memory", metric_named(&of_memory, "memory"));
    }
    figures.kind = kind;
    figures.all = all;
    figures.sides = sides;
    figures.is_quick = comparison->is_quick;
    print_rows(&figures, workload->name, comparison->json);
    if (figures.others > SHARE_TOLERATED && !comparison->is_quick)
        printf("  WARNING: others took %.0f %% of the processors meanwhile\n", figures.others * 100);
}

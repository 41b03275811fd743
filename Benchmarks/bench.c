/*
 * Every workload on both sides: the store, and the versioned SQLite table that a good engineer writes by hand
 * (yardstick.sql). Both get the same data, in turns, each in a process of its own that does one workload.
 *
 *     bench [--quick] [--runs 5] [--n 10000,100000] [--only load,fetch] [--ids uuid|contact|both] [--value-size 100]
 *           [--storage file|sqlite] [--budget <MiB>] [--json <file>] [--keep] <folder>
 *
 * Works in <folder>/bench, which it removes before and, without --keep, after. With --quick the figures mean nothing.
 * One process of those that it starts, to be looked at with a profiler after a run with --keep:
 *
 *     bench --side ours --workload fetch --n 100000 <folder>/bench/<fixture>
 */
#include "counting_vfs.h"
#include "process.h"
#include "rows.h"
#include "workload.h"
#include "yardstick.h"
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, RUNS_MAX = 25, SIZES_MAX = 8 };

typedef struct options {
    int quick, keep, runs, is_sqlite;
    size_t sizes[SIZES_MAX], size_count;
    const char *only, *ids, *json, *folder, *side, *workload, *fixture;
    size_t value_size, budget;
} options;

static options given = { 0, 0, 5, 0, { 10000, 100000 }, 2, NULL, "both", NULL, NULL, NULL, NULL, NULL, 100, 0 };
static const char *program;
static FILE *json;

/* ---- options ---- */

static const char *const usage =
    "usage: bench [--quick] [--runs 5] [--n 10000,100000] [--only load,fetch] [--ids uuid|contact|both] [--value-size 100]\n"
    "             [--storage file|sqlite] [--budget <MiB>] [--json <file>] [--keep] <folder>\n";

static size_t number(const char *text) {
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end) fail("%s is no number", text);
    return (size_t)number;
}

static void read_sizes(const char *text) {
    char copy[256], *size, *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    given.size_count = 0;
    for (size = strtok_r(copy, ",", &rest); size && given.size_count < SIZES_MAX; size = strtok_r(NULL, ",", &rest))
        given.sizes[given.size_count++] = number(size);
}

static void read_options(int count, char **arguments) {
    int i;
    for (i = 1; i < count; i++) {
        const char *name = arguments[i], *value;
        if (strcmp(name, "--quick") == 0) { given.quick = 1; given.runs = 1; given.size_count = 1; given.sizes[0] = 2000; continue; }
        if (strcmp(name, "--keep") == 0) { given.keep = 1; continue; }
        if (name[0] != '-' && !given.folder) { given.folder = name; continue; }
        value = ++i < count ? arguments[i] : "";
        if (strcmp(name, "--runs") == 0) given.runs = (int)number(value);
        else if (strcmp(name, "--n") == 0) read_sizes(value);
        else if (strcmp(name, "--only") == 0) given.only = value;
        else if (strcmp(name, "--ids") == 0) given.ids = value;
        else if (strcmp(name, "--value-size") == 0) given.value_size = number(value);
        else if (strcmp(name, "--storage") == 0) given.is_sqlite = strcmp(value, "sqlite") == 0;
        else if (strcmp(name, "--budget") == 0) given.budget = number(value);
        else if (strcmp(name, "--json") == 0) given.json = value;
        else if (strcmp(name, "--side") == 0) given.side = value;
        else if (strcmp(name, "--workload") == 0) given.workload = value;
        else if (strcmp(name, "--fixture") == 0) given.fixture = value;
        else { fputs(usage, stderr); exit(2); }
    }
    if (!given.folder || given.runs < 1 || given.runs > RUNS_MAX || given.size_count == 0 || given.value_size == 0) { fputs(usage, stderr); exit(2); }
}

static int is_listed(const char *list, const char *name) {
    const char *at = list;
    size_t size = strlen(name);
    while (list && (at = strstr(at, name)) != NULL) {
        if ((at == list || at[-1] == ',') && (at[size] == 0 || at[size] == ',')) return 1;
        at += size;
    }
    return !list;
}

/* ---- the process that does one side of one workload ---- */

static int run_one(void) {
    side ours_in_sqlite = ours;
    setting setting = { NULL, { LLVS_STORAGE_FILE, 0, 0 }, 0, "", 0, 0, NULL };
    setting.side = strcmp(given.side, "ours") == 0 ? &ours : &yardstick;
    setting.how.storage = given.is_sqlite ? LLVS_STORAGE_SQLITE : LLVS_STORAGE_FILE;
    setting.how.memory_budget = (uint64_t)given.budget << 20;
    setting.count = given.sizes[0];
    setting.prefix = strcmp(given.ids, "contact") == 0 ? "Contact/" : "";
    setting.value_size = given.value_size;
    setting.quick = given.quick;
    setting.folder = given.folder;
    if (setting.side == &yardstick) yardstick_set_up();
    else if (given.is_sqlite) {
        /* What reaches the files is more than the records that the store counts. */
        counting_vfs_install();
        ours_in_sqlite.counts = yardstick.counts;
        setting.side = &ours_in_sqlite;
    }
    if (given.fixture) make_fixture(&setting, (fixture)number(given.fixture));
    else workload_named(given.workload)->run(&setting);
    return 0;
}

/* ---- the process that compares ---- */

/* One kind of data: how many ids, of which form. */
typedef struct data_kind {
    size_t count;
    const char *ids;
} data_kind;

static const char *const side_names[2] = { "ours", "yardstick" };
static const char *const fixture_names[FIXTURES] = { "empty", "loaded", "updated", "long" };

static metrics start(const data_kind *kind, int side, const char *what, const char *which, const char *folder, int takes_memory) {
    char count[32], value_size[32], budget[32];
    char *arguments[20];
    size_t i = 0;
    snprintf(count, sizeof count, "%zu", kind->count);
    snprintf(value_size, sizeof value_size, "%zu", given.value_size);
    snprintf(budget, sizeof budget, "%zu", given.budget);
#define ARGUMENT(text) (arguments[i++] = (char *)(uintptr_t)(text))
    ARGUMENT(program);
    if (given.quick) ARGUMENT("--quick");
    ARGUMENT("--side"), ARGUMENT(side_names[side]), ARGUMENT(what), ARGUMENT(which), ARGUMENT("--n"), ARGUMENT(count);
    ARGUMENT("--ids"), ARGUMENT(kind->ids), ARGUMENT("--value-size"), ARGUMENT(value_size), ARGUMENT("--budget"), ARGUMENT(budget);
    ARGUMENT("--storage"), ARGUMENT(given.is_sqlite ? "sqlite" : "file"), ARGUMENT(folder);
#undef ARGUMENT
    arguments[i] = NULL;
    return run_process(arguments, takes_memory);
}

static void fixture_path(char *path, const data_kind *kind, int side, fixture which) {
    snprintf(path, PATH_SIZE, "%s/bench/%zu-%s-%s-%s", given.folder, kind->count, kind->ids, fixture_names[which], side_names[side]);
}

static void prepare(const data_kind *kind, int side, fixture which) {
    char path[PATH_SIZE], number[16];
    fixture_path(path, kind, side, which);
    if (access(path, F_OK) == 0) return;
    if (mkdir(path, 0777) != 0) fail("cannot make %s", path);
    snprintf(number, sizeof number, "%d", (int)which);
    start(kind, side, "--fixture", number, path, 0);
}

/* Figures that follow from the others and from what is on disk. */
static void derive(metrics *found, const data_kind *kind, const workload *workload, disk_size before, disk_size after) {
    double payload = (double)kind->count * (double)(given.value_size + 36 + (strcmp(kind->ids, "contact") == 0 ? 8 : 0));
    double saved = metric_named(found, "saved");
    if (workload->from == EMPTY) {
        set_metric(found, "disk_of_payload", after.apparent / payload);
        set_metric(found, "disk", after.apparent / 1e6);
        set_metric(found, "disk_allocated", after.allocated / 1e6);
        set_metric(found, "written_mb", metric_named(found, "written") / 1e6);
    } else if (saved > 0) {
        set_metric(found, "disk_per_version", (after.apparent - before.apparent) / saved);
        set_metric(found, "allocated_per_version", (after.allocated - before.allocated) / saved);
    }
}

static metrics run_side(const data_kind *kind, int side, const workload *workload, int takes_memory) {
    char from[PATH_SIZE], scratch[PATH_SIZE];
    disk_size before = { 0, 0 }, after = { 0, 0 };
    metrics found;
    fixture_path(from, kind, side, workload->from);
    if (!workload->writes) return start(kind, side, "--workload", workload->name, from, takes_memory);
    snprintf(scratch, sizeof scratch, "%s/bench/scratch", given.folder);
    remove_folder(scratch);
    copy_folder(from, scratch, !given.quick);
    before = size_on_disk(scratch);
    found = start(kind, side, "--workload", workload->name, scratch, takes_memory);
    after = size_on_disk(scratch);
    derive(&found, kind, workload, before, after);
    remove_folder(scratch);
    return found;
}

static double median_of(const metrics *all, int count, const char *name) {
    double figures[RUNS_MAX];
    int i;
    for (i = 0; i < count; i++) figures[i] = metric_named(&all[i], name);
    return isnan(figures[0]) ? NAN : median(figures, (size_t)count);
}

static void print_row(const row *row, const data_kind *kind, double our, double theirs, double versions) {
    double ratio = our / theirs, goal = row->goal, reached_by = row->kind == RATIO ? ratio : our;
    goal_kind goal_of = row->kind;
    const char *verdict = "";
    int is_meant = row->at[0] == 0 || kind->count == row->at[0] || kind->count == row->at[1];
    char goal_text[32] = "", ratio_text[32] = "", theirs_text[32] = "";
    if (given.is_sqlite) {
        goal_of = row->sqlite_goal > 0 ? RATIO : NO_GOAL;
        goal = row->sqlite_goal;
    } else if (strcmp(row->metric, "memory") == 0) {
        goal = (double)(given.budget ? given.budget : 64) + 96 * versions / 1048576;
    }
    if (goal_of != NO_GOAL) {
        int is_reached = (reached_by - goal) * row->better >= 0;
        verdict = given.quick ? "-" : is_meant ? (is_reached ? "reached" : "MISSED") : (is_reached ? "(reached)" : "(missed)");
        snprintf(goal_text, sizeof goal_text, "%s %.4g%s", row->better > 0 ? ">=" : "<=", goal, goal_of == RATIO ? "x" : "");
    }
    if (isnan(our)) return;
    if (!isnan(theirs)) {
        snprintf(theirs_text, sizeof theirs_text, "%.6g", theirs);
        if (isfinite(ratio)) snprintf(ratio_text, sizeof ratio_text, "%.3fx", ratio);
    }
    printf("  %-40s %12.6g %12s %-6s %9s  %-12s %s\n", row->label, our, theirs_text, row->unit, ratio_text, goal_text, verdict);
    fflush(stdout);
    if (!json) return;
    fprintf(json, "{\"workload\": \"%s\", \"metric\": \"%s\", \"label\": \"%s\", \"unit\": \"%s\", \"n\": %zu, \"ids\": \"%s\", \"value_size\": %zu, \"storage\": \"%s\", \"runs\": %d, \"ours\": %.9g",
            row->workload, row->metric, row->label, row->unit, kind->count, kind->ids, given.value_size, given.is_sqlite ? "sqlite" : "file", given.runs, our);
    if (!isnan(theirs)) fprintf(json, ", \"yardstick\": %.9g", theirs);
    if (isfinite(ratio)) fprintf(json, ", \"ratio\": %.6g", ratio);
    if (goal_of != NO_GOAL) fprintf(json, ", \"goal\": %.6g, \"goal_is\": \"%s\", \"goal_at_this_n\": %s, \"reached\": %s", goal, goal_of == RATIO ? "ratio" : "absolute",
                                    is_meant ? "true" : "false", (reached_by - goal) * row->better >= 0 ? "true" : "false");
    fprintf(json, ", \"better\": \"%s\"}\n", row->better > 0 ? "more" : "less");
    fflush(json);
}

static void compare(const data_kind *kind, const workload *workload) {
    static metrics all[2][RUNS_MAX];
    int sides = workload->ours_only ? 1 : 2, run, turn;
    size_t i;
    for (turn = 0; turn < sides; turn++) prepare(kind, turn, workload->from);
    for (run = 0; run < given.runs; run++)
        for (turn = 0; turn < sides; turn++) {
            int side = sides == 2 ? (run + turn) % 2 : 0;
            all[side][run] = run_side(kind, side, workload, 0);
        }
    for (run = 0; run < given.runs && sides == 2; run++) {
        double our = metric_named(&all[0][run], "check"), theirs = metric_named(&all[1][run], "check");
        if (!isnan(our) && our != theirs) fail("%s: the two sides read different data (%.0f and %.0f)", workload->name, our, theirs);
    }
    /* Looking at a process takes time from it: a run that counts for nothing else. */
    for (turn = 0; turn < sides && workload->takes_memory; turn++) {
        double memory;
        metrics of_memory = run_side(kind, turn, workload, 1);
        memory = metric_named(&of_memory, "memory");
        for (run = 0; run < given.runs; run++) set_metric(&all[turn][run], "memory", memory);
    }
    for (i = 0; i < row_count; i++)
        if (strcmp(rows[i].workload, workload->name) == 0)
            print_row(&rows[i], kind, median_of(all[0], given.runs, rows[i].metric), sides == 2 ? median_of(all[1], given.runs, rows[i].metric) : NAN,
                      metric_named(&all[0][0], "versions"));
}

static void compare_all(size_t count, const char *ids) {
    data_kind kind = { 0, NULL };
    size_t i;
    kind.count = count;
    kind.ids = ids;
    printf("\n%zu values of %zu bytes, ids like %s, medians of %d\n", count, given.value_size, strcmp(ids, "contact") == 0 ? "Contact/<UUID>" : "<UUID>", given.runs);
    printf("  %-40s %12s %12s %-6s %9s  %-12s\n", "", given.is_sqlite ? "ours (SQLite)" : "ours", "yardstick", "", "ratio", "goal");
    for (i = 0; i < workload_count; i++) {
        if (is_listed(given.only, workloads[i].name)) compare(&kind, &workloads[i]);
    }
    if (!given.keep) {
        char path[PATH_SIZE];
        int side;
        for (side = 0; side < 2; side++)
            for (i = 0; i < FIXTURES; i++) {
                fixture_path(path, &kind, side, (fixture)i);
                remove_folder(path);
            }
    }
}

int main(int count, char **arguments) {
    char folder[PATH_SIZE];
    size_t i;
    program = arguments[0];
    read_options(count, arguments);
    given.folder = absolute_path(given.folder);
    if (given.side) return run_one();
    if (snprintf(folder, sizeof folder, "%s/bench", given.folder) > PATH_SIZE - 128) fail("%s is too long", given.folder);
    remove_folder(folder);
    if (mkdir(folder, 0777) != 0) fail("cannot make %s", folder);
    if (given.json && !(json = fopen(given.json, "w"))) fail("cannot write %s", given.json);
    printf("llvs %s, SQLite %s%s\n", llvs_version_string(), sqlite3_libversion(), given.quick ? ", quick: the figures mean nothing" : "");
    for (i = 0; i < given.size_count; i++) {
        if (strcmp(given.ids, "contact") != 0) compare_all(given.sizes[i], "uuid");
        if (strcmp(given.ids, "uuid") != 0) compare_all(given.sizes[i], "contact");
    }
    printf("\nNot measured here:\n");
    for (i = 0; not_measured[i]; i++) printf("  %s\n", not_measured[i]);
    if (json) fclose(json);
    if (!given.keep) remove_folder(folder);
    return 0;
}

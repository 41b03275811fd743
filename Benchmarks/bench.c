/*
 * Runs every workload on both sides: the store, and the versioned SQLite table that a good engineer writes by hand (yardstick.sql). Both
 * get the same data, in turns. Each workload runs in a process of its own.
 *
 *     bench [--only load,fetch] [--runs 5] [--json <file>] [--keep]
 *           [--n 10000,100000] [--ids uuid|contact|both|long] [--value-size 100] [--storage file|sqlite] [--budget <MiB>]
 *           [--quick] <folder>
 *
 * Without an option of the second line, runs everything that docs/performance.md shows. With such options, runs only the workloads that use
 * such data; with --only as well, runs the named workloads on such data in any case. Works in <folder>/bench. With --keep the fixtures of
 * workloads stay there, and those of an earlier run are used, so that a figure comes sooner. (Do not use it across changes of the format.)
 * With --quick the figures mean nothing.
 *
 * To profile one of the processes that it starts, after a run with --keep:
 *
 *     bench --side ours --workload fetch --n 100000 <folder>/bench/<fixture>
 */
#include "compare.h"
#include "data.h"
#include "machine.h"
#include "yardstick.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZES_MAX = 8, KINDS_MAX = 3 * SIZES_MAX };

typedef struct options {
    int quick, keep, runs, is_sqlite, is_given;
    size_t sizes[SIZES_MAX], size_count;
    const char *only, *ids, *json, *folder, *side, *workload, *fixture;
    size_t value_size, budget;
} options;

static options given = { 0, 0, 5, 0, 0, { 10000, 100000 }, 2, NULL, "both", NULL, NULL, NULL, NULL, NULL, 100, 0 };

/* The data of a run without options. Data of the same kind are adjacent, so that they are made once. */
static const data_kind plan[] = {
    { 1000, "uuid", 100, 0, 0, 0 },     { 1000, "contact", 100, 0, 0, 0 },
    { 10000, "uuid", 100, 0, 0, 0 },    { 10000, "contact", 100, 0, 0, 0 },
    { 100000, "uuid", 100, 0, 0, 0 },   { 100000, "uuid", 100, 0, 1, 0 }, /* our SQLite storage */
    { 100000, "contact", 100, 0, 0, 0 },
    { 1000000, "uuid", 100, 0, 0, 0 },  { 1000000, "uuid", 100, 256, 0, 0 }, /* another budget */
    { 1000000, "contact", 100, 0, 0, 0 },
    { 20000, "long", 100, 0, 0, 0 }, /* ids of 4 KiB */
    { 10000, "uuid", 4096, 0, 0, 0 },   { 8, "uuid", 16 << 20, 0, 0, 0 }, /* large values */
};
static const data_kind quick_plan[] = {
    { 2000, "uuid", 100, 0, 0, 1 }, { 2000, "uuid", 100, 0, 1, 1 },   { 1000, "contact", 100, 0, 0, 1 },
    { 100, "long", 100, 0, 0, 1 },  { 20, "uuid", 70000, 256, 0, 1 },
};

/* ---- options ---- */

static const char *const usage =
    "usage: bench [--only load,fetch] [--runs 5] [--json <file>] [--keep]\n"
    "             [--n 10000,100000] [--ids uuid|contact|both|long] [--value-size 100] [--storage file|sqlite] [--budget <MiB>]\n"
    "             [--quick] <folder>\n";

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

static void refuse(void) {
    fputs(usage, stderr);
    exit(2);
}

static void read_options(int count, char **arguments) {
    int i;
    for (i = 1; i < count; i++) {
        const char *name = arguments[i], *value;
        if (strcmp(name, "--quick") == 0) { given.quick = 1; continue; }
        if (strcmp(name, "--keep") == 0) { given.keep = 1; continue; }
        if (name[0] != '-' && !given.folder) { given.folder = name; continue; }
        value = ++i < count ? arguments[i] : "";
        if (strcmp(name, "--runs") == 0) { given.runs = (int)number(value); continue; }
        if (strcmp(name, "--only") == 0) { given.only = value; continue; }
        if (strcmp(name, "--json") == 0) { given.json = value; continue; }
        if (strcmp(name, "--side") == 0) { given.side = value; continue; }
        if (strcmp(name, "--workload") == 0) { given.workload = value; continue; }
        if (strcmp(name, "--fixture") == 0) { given.fixture = value; continue; }
        given.is_given = 1;
        if (strcmp(name, "--n") == 0) read_sizes(value);
        else if (strcmp(name, "--ids") == 0) given.ids = value;
        else if (strcmp(name, "--value-size") == 0) given.value_size = number(value);
        else if (strcmp(name, "--storage") == 0) given.is_sqlite = strcmp(value, "sqlite") == 0;
        else if (strcmp(name, "--budget") == 0) given.budget = number(value);
        else refuse();
    }
    if (!given.folder || given.runs < 1 || given.runs > RUNS_MAX || given.size_count == 0 || given.value_size == 0) refuse();
}

/* Returns whether a list of names, separated by commas, has a name; false without a list. */
static int is_listed(const char *list, const char *name) {
    size_t size = strlen(name);
    while (list) {
        if (strncmp(list, name, size) == 0 && (list[size] == 0 || list[size] == ',')) return 1;
        list = strchr(list, ',');
        if (list) list++;
    }
    return 0;
}

static void check_names(const char *list) {
    char copy[512], *name, *rest = NULL;
    snprintf(copy, sizeof copy, "%s", list);
    for (name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) workload_named(name);
}

/* ---- the process that runs one side of one workload ---- */

static int run_one(void) {
    setting setting = { NULL, { LLVS_STORAGE_FILE, 0, 0 }, 0, "", 0, 0, NULL };
    setting.side = strcmp(given.side, "ours") == 0 ? &ours : &yardstick;
    setting.how.storage = given.is_sqlite ? LLVS_STORAGE_SQLITE : LLVS_STORAGE_FILE;
    setting.how.memory_budget = (uint64_t)given.budget << 20;
    setting.count = given.sizes[0];
    setting.prefix = strcmp(given.ids, "contact") == 0 ? "Contact/" : "";
    if (strcmp(given.ids, "long") == 0) data_lengthen_ids(LONG_ID_SIZE);
    setting.value_size = given.value_size;
    setting.quick = given.quick;
    setting.folder = given.folder;
    if (setting.side == &yardstick) yardstick_set_up();
    if (given.fixture) make_fixture(&setting, (fixture)number(given.fixture));
    else workload_named(given.workload)->run(&setting);
    return 0;
}

/* ---- the process that compares ---- */

static size_t given_kinds(data_kind kinds[KINDS_MAX]) {
    static const char *const all[] = { "uuid", "contact", "long" };
    size_t count = 0, i, ids;
    for (i = 0; i < given.size_count; i++)
        for (ids = 0; ids < sizeof all / sizeof *all; ids++) {
            data_kind kind = { 0, NULL, 0, 0, 0, 0 };
            kind.count = given.sizes[i];
            kind.ids = all[ids];
            kind.value_size = given.value_size;
            kind.budget = given.budget;
            kind.is_sqlite = given.is_sqlite;
            if ((strcmp(given.ids, "both") == 0 && strcmp(kind.ids, "long") != 0) || strcmp(given.ids, kind.ids) == 0)
                kinds[count++] = kind;
        }
    return count;
}

static int is_wanted(const workload *workload, const data_kind *kind) {
    if (given.only && !is_listed(given.only, workload->name)) return 0;
    if (given.only && given.is_given) return 1;
    return !(kind->is_sqlite && !(workload->flags & SQLITE_TOO)) && !(kind->value_size > 100 && !(workload->flags & LARGE_TOO))
        && !(kind->budget && !(workload->flags & MEMORY)) && !(strcmp(kind->ids, "uuid") != 0 && workload->flags & UUIDS_ONLY)
        && !(strcmp(kind->ids, "long") == 0 && !(workload->flags & MEMORY))
        && !(workload->at_most && kind->count > workload->at_most && !given.quick);
}

static void compare_all(const comparison *comparison, const data_kind *kinds, size_t count) {
    size_t i, j;
    for (i = 0; i < count; i++) {
        data_kind kind = kinds[i];
        int is_headed = 0;
        if (kind.runs == 0) kind.runs = given.quick ? 1 : given.runs;
        for (j = 0; j < workload_count; j++) {
            if (!is_wanted(&workloads[j], &kind)) continue;
            if (!is_headed++) print_heading(&kind);
            compare(comparison, &kind, &workloads[j]);
        }
        if (!given.keep) remove_fixtures(comparison, &kind, i + 1 < count ? &kinds[i + 1] : NULL);
    }
}

int main(int count, char **arguments) {
    comparison comparison = { NULL, NULL, 0, NULL };
    data_kind kinds[KINDS_MAX];
    char folder[4096];
    double start = now();
    read_options(count, arguments);
    given.folder = absolute_path(given.folder);
    if (given.side) return run_one();
    if (given.only) check_names(given.only);
    if (snprintf(folder, sizeof folder, "%s/bench", given.folder) > (int)sizeof folder - 128) fail("%s is too long", given.folder);
    if (!given.keep) remove_folder(folder);
    if (mkdir(folder, 0777) != 0 && access(folder, F_OK) != 0) fail("cannot make %s", folder);
    comparison.program = arguments[0];
    comparison.folder = folder;
    comparison.is_quick = given.quick;
    if (given.json && !(comparison.json = fopen(given.json, "w"))) fail("cannot write %s", given.json);
    describe_machine(folder, comparison.json);
    if (given.quick) printf("Quick: the figures mean nothing.\n");
    else warn_of_others();
    if (given.is_given) compare_all(&comparison, kinds, given_kinds(kinds));
    else if (given.quick) compare_all(&comparison, quick_plan, sizeof quick_plan / sizeof *quick_plan);
    else compare_all(&comparison, plan, sizeof plan / sizeof *plan);
    printf("\n%.0f seconds\n", now() - start);
    if (comparison.json) fclose(comparison.json);
    if (!given.keep) remove_folder(folder);
    return 0;
}

#include "report.h"
#include "side.h"
#include "workload.h"
#include <math.h>
#include <stdlib.h>

/* ---- earlier figures, for rows that compare our figures with each other ---- */

typedef struct finding {
    const char *workload, *metric;
    data_kind kind;
    double figures[2];
} finding;
static finding findings[2048];
static size_t finding_count;

static void remember(const row *row, const data_kind *kind, double ours, double theirs) {
    finding *finding = &findings[finding_count];
    if (finding_count == sizeof findings / sizeof *findings) fail("too many figures");
    finding_count++;
    finding->workload = row->workload;
    finding->metric = row->metric;
    finding->kind = *kind;
    finding->figures[0] = ours;
    finding->figures[1] = theirs;
}

static double found(const char *workload, const char *metric, const data_kind *kind, size_t count, int side) {
    size_t i;
    for (i = 0; i < finding_count; i++) {
        const finding *it = &findings[i];
        if (strcmp(it->workload, workload) == 0 && strcmp(it->metric, metric) == 0 && it->kind.count == count &&
            strcmp(it->kind.ids, kind->ids) == 0 && it->kind.value_size == kind->value_size && it->kind.budget == kind->budget &&
            it->kind.is_sqlite == kind->is_sqlite)
            return it->figures[side];
    }
    return NAN;
}

/* ---- one row ---- */

typedef struct judged {
    goal_kind kind;
    double goal;
    int is_meant, is_reached;
} judged;

static judged judge(const row *row, const data_kind *kind, double ours, double ratio, double versions) {
    judged judged = { NO_GOAL, 0, 0, 0 };
    int is_memory = strcmp(row->metric, "memory") == 0;
    judged.kind = row->kind;
    judged.goal = row->goal;
    judged.is_meant = row->at[0] == 0 || kind->count == row->at[0] || kind->count == row->at[1];
    if (kind->is_sqlite) {
        judged.kind = row->sqlite_goal > 0 ? RATIO : NO_GOAL;
        judged.goal = row->sqlite_goal;
        judged.is_meant = kind->count == 100000;
    } else if (is_memory) {
        judged.goal = (double)(kind->budget ? kind->budget : 64) + 96 * versions / 1048576;
        judged.is_meant |= strcmp(kind->ids, "long") == 0;
    } else if (strcmp(kind->ids, "long") == 0) {
        judged.kind = NO_GOAL;
    }
    if (kind->value_size != 100 || (kind->budget && !is_memory)) judged.kind = NO_GOAL;
    judged.is_reached = ((judged.kind == RATIO ? ratio : ours) - judged.goal) * row->better >= 0;
    return judged;
}

static void print_json(FILE *json, const row *row, const figures *figures, double ours, double theirs, judged judged) {
    const data_kind *kind = figures->kind;
    double ratio = ours / theirs;
    fprintf(json,
            "{\"workload\": \"%s\", \"metric\": \"%s\", \"label\": \"%s\", \"unit\": \"%s\", \"n\": %zu, \"ids\": \"%s\", \"value_size\": "
            "%zu, \"storage\": \"%s\", \"budget\": %zu, \"runs\": %d, \"others\": %.3f, \"ours\": %.9g",
            row->workload, row->metric, row->label, row->unit, kind->count, kind->ids, kind->value_size,
            kind->is_sqlite ? "sqlite" : "file", kind->budget ? kind->budget : 64, kind->runs, figures->others, ours);
    if (!isnan(theirs)) fprintf(json, ", \"yardstick\": %.9g", theirs);
    if (isfinite(ratio)) fprintf(json, ", \"ratio\": %.6g", ratio);
    if (judged.kind != NO_GOAL)
        fprintf(json, ", \"goal\": %.6g, \"goal_is\": \"%s\", \"goal_at_this_n\": %s, \"reached\": %s", judged.goal,
                judged.kind == RATIO ? "ratio" : "absolute", judged.is_meant ? "true" : "false", judged.is_reached ? "true" : "false");
    fprintf(json, ", \"better\": \"%s\"}\n", row->better > 0 ? "more" : "less");
    fflush(json);
}

static void print_row(const row *row, const figures *figures, double ours, double theirs, double versions, FILE *json) {
    double ratio = ours / theirs;
    judged judged = judge(row, figures->kind, ours, ratio, versions);
    const char *verdict = "";
    char goal[32] = "", ratio_text[32] = "", theirs_text[32] = "";
    if (isnan(ours)) return;
    if (judged.kind != NO_GOAL) {
        verdict = figures->is_quick ? "-"
                  : judged.is_meant ? (judged.is_reached ? "reached" : "MISSED")
                                    : (judged.is_reached ? "(reached)" : "(missed)");
        snprintf(goal, sizeof goal, "%s %.4g%s", row->better > 0 ? ">=" : "<=", judged.goal, judged.kind == RATIO ? "x" : "");
    }
    if (!isnan(theirs)) snprintf(theirs_text, sizeof theirs_text, "%.6g", theirs);
    if (isfinite(ratio)) snprintf(ratio_text, sizeof ratio_text, "%.3fx", ratio);
    printf("  %-42s %12.6g %12s %-6s %9s  %-12s %s\n", row->label, ours, theirs_text, row->unit, ratio_text, goal, verdict);
    fflush(stdout);
    if (json) print_json(json, row, figures, ours, theirs, judged);
}

/* ---- all rows of a workload ---- */

static double median_of(const metrics *all, int count, const char *name) {
    double figures[RUNS_MAX];
    int i;
    for (i = 0; i < count; i++) figures[i] = metric_named(&all[i], name);
    return isnan(figures[0]) ? NAN : median(figures, (size_t)count);
}

void print_heading(const data_kind *kind) {
    char budget[64] = "";
    if (kind->budget) snprintf(budget, sizeof budget, ", our memory budget %zu MiB", kind->budget);
    printf("\n%zu values of %zu bytes, ids like %s, medians of %d%s%s\n", kind->count, kind->value_size,
           strcmp(kind->ids, "contact") == 0 ? "Contact/<UUID>"
           : strcmp(kind->ids, "long") == 0  ? "<UUID>---..., 4,096 bytes"
                                             : "<UUID>",
           kind->runs, kind->is_sqlite ? ", our SQLite storage" : "", budget);
    printf("  %-42s %12s %12s %-6s %9s  %-12s\n", "", "ours", "yardstick", "", "ratio", "goal");
}

void print_rows(const figures *figures, const char *workload, FILE *json) {
    const data_kind *kind = figures->kind;
    double versions = metric_named(&figures->all[0][0], "versions");
    size_t i;
    for (i = 0; i < row_count; i++) {
        const row *row = &rows[i];
        double both[2];
        int side;
        if (strcmp(row->workload, workload) != 0) continue;
        for (side = 0; side < 2; side++) {
            both[side] = side < figures->sides ? median_of(figures->all[side], kind->runs, row->metric) : NAN;
            if (row->than_at && kind->count <= row->than_at) both[side] = NAN;
            if (row->than_at || row->than_workload)
                both[side] /= found(row->than_workload ? row->than_workload : workload, row->metric, kind,
                                    row->than_at ? row->than_at : kind->count, side);
        }
        if (!row->than_at && !row->than_workload) remember(row, kind, both[0], both[1]);
        print_row(row, figures, both[0], both[1], versions, json);
    }
}

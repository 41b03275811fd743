#define _XOPEN_SOURCE 700
#include "process.h"
#include "side.h"
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

void set_metric(metrics *metrics, const char *name, double figure) {
    if (metrics->count == METRICS_MAX) fail("too many metrics");
    snprintf(metrics->all[metrics->count].name, sizeof metrics->all->name, "%s", name);
    metrics->all[metrics->count++].figure = figure;
}

double metric_named(const metrics *metrics, const char *name) {
    size_t i;
    for (i = 0; i < metrics->count; i++)
        if (strcmp(metrics->all[i].name, name) == 0) return metrics->all[i].figure;
    return NAN;
}

long anonymous_memory(pid_t process) {
    char path[64], text[4096], *found;
    int file;
    ssize_t size;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)process);
    file = open(path, O_RDONLY);
    if (file < 0) return 0;
    size = read(file, text, sizeof text - 1);
    close(file);
    text[size > 0 ? size : 0] = 0;
    found = strstr(text, "\nRssAnon:");
    return found ? atol(found + strlen("\nRssAnon:")) : 0;
}

metrics run_process(char *const arguments[], int takes_memory) {
    metrics found = { { { "", 0 } }, 0 };
    long ready = -1, peak = 0;
    char text[8192], *line, *rest = NULL;
    size_t size = 0;
    int ends[2], status;
    pid_t child;
    if (pipe(ends) != 0) fail("cannot make a pipe");
    fflush(stdout);
    child = fork();
    if (child == 0) {
        /* If the comparing program is ended, the programs that it started end, too. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execv(arguments[0], arguments);
        _exit(127);
    }
    close(ends[1]);
    for (;;) {
        struct pollfd waiting = { 0, POLLIN, 0 };
        int result;
        waiting.fd = ends[0];
        result = poll(&waiting, 1, takes_memory ? 1 : -1);
        if (takes_memory && ready >= 0) {
            long memory = anonymous_memory(child);
            if (memory > peak) peak = memory;
        }
        if (result > 0) {
            ssize_t got = read(ends[0], text + size, sizeof text - 1 - size);
            if (got <= 0) break;
            size += (size_t)got;
            text[size] = 0;
            if (strncmp(text, "ready ", 6) == 0) ready = atol(text + 6);
        }
    }
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        size_t i;
        fprintf(stderr, "bench: this failed:");
        for (i = 0; arguments[i]; i++) fprintf(stderr, " '%s'", arguments[i]);
        fprintf(stderr, "\n");
        exit(1);
    }
    text[size] = 0;
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[40];
        double figure;
        if (sscanf(line, "%39s %lf", name, &figure) == 2 && strcmp(name, "ready") != 0) set_metric(&found, name, figure);
    }
    if (takes_memory && ready >= 0) set_metric(&found, "memory", (double)(peak - ready) / 1024);
    return found;
}

/* ---- files ---- */

static disk_size total;

static int add_size(const char *path, const struct stat *info, int kind, struct FTW *place) {
    if (kind == FTW_F && !(place->level == 1 && strcmp(path + place->base, "notes") == 0)) {
        total.apparent += (double)info->st_size;
        total.allocated += (double)info->st_blocks * 512;
    }
    return 0;
}

disk_size size_on_disk(const char *folder) {
    disk_size none = { 0, 0 };
    total = none;
    if (nftw(folder, add_size, 16, FTW_PHYS) != 0) fail("cannot look at %s", folder);
    return total;
}

static int sync_file(const char *path, const struct stat *info, int kind, struct FTW *place) {
    int file = kind == FTW_F || kind == FTW_D ? open(path, O_RDONLY) : -1;
    (void)info, (void)place;
    if (file >= 0) {
        fsync(file);
        close(file);
    }
    return 0;
}

static void run(const char *const arguments[]) {
    pid_t child = fork();
    int status;
    if (child == 0) {
        execvp(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) fail("%s %s failed", arguments[0], arguments[3]);
}

char *absolute_path(const char *path) {
    char *absolute = realpath(path, NULL);
    if (!absolute) fail("there is no folder %s", path);
    return absolute;
}

void remove_folder(const char *path) {
    const char *arguments[] = { "rm", "-rf", "--", path, NULL };
    run(arguments);
}

void copy_folder(const char *from, const char *to, int is_synced) {
    const char *arguments[] = { "cp", "-a", "--", from, to, NULL };
    run(arguments);
    if (is_synced && nftw(to, sync_file, 16, FTW_PHYS) != 0) fail("cannot sync %s", to);
}

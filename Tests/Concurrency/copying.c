#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "copying.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../Faults/files.h"
#include "../Faults/random.h"
#include "ledger.h"

struct files { char **paths; size_t count; };

/* Lists the files below `root`/`inside`, and makes the folders at once. */
static void list(struct files *files, const char *root, const char *to, const char *inside, int how) {
    char *folder = path_of(root, inside), *made = path_of(to, inside);
    DIR *stream = opendir(folder);
    struct dirent *next;
    if (stream) make_folder(made);
    while (stream && (next = readdir(stream))) {
        struct stat status;
        char *path, *full;
        if (next->d_name[0] == '.') continue;
        path = *inside ? path_of(inside, next->d_name) : strdup(next->d_name);
        full = path_of(root, path);
        if (stat(full, &status) == 0 && S_ISDIR(status.st_mode)) {
            if (how & COPY_CACHES || strcmp(path, "cache") != 0) list(files, root, to, path, how);
            free(path);
        } else {
            files->paths = realloc(files->paths, sizeof *files->paths * (files->count + 1));
            if (!files->paths) broken("out of memory");
            files->paths[files->count++] = path;
        }
        free(full);
    }
    if (stream) closedir(stream);
    free(folder);
    free(made);
}

/* Copies as many bytes as exist when they are read. */
static int copy_bytes(const char *from, const char *to) {
    static char buffer[1 << 16];
    ssize_t size;
    int in = open(from, O_RDONLY | O_CLOEXEC), out;
    if (in < 0) return 0;
    out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out < 0) broken("cannot make %s", to);
    while ((size = read(in, buffer, sizeof buffer)) > 0) if (write(out, buffer, (size_t)size) != size) broken("cannot write %s", to);
    close(in);
    close(out);
    return 1;
}

static int copy_file(const char *root, const char *to, const char *path, int how) {
    char *from = path_of(root, path), *target = path_of(to, path), aside[1200];
    const char *name = strrchr(target, '/') + 1;
    struct stat here, there;
    int copied = 0,
        is_needed = !(how & COPY_UNION) || stat(target, &there) != 0 || (stat(from, &here) == 0 && here.st_size > there.st_size);
    if (is_needed && how & COPY_IN_PLACE) {
        copied = copy_bytes(from, target);
    } else if (is_needed) {
        snprintf(aside, sizeof aside, "%.*s.copying.%s.tmp", (int)(name - target), target, name);
        copied = copy_bytes(from, aside);
        if (copied && rename(aside, target) != 0) broken("cannot rename %s", aside);
    }
    free(from);
    free(target);
    return copied;
}

long copy_files(const char *from, const char *to, int how, uint64_t *random) {
    struct files files = {NULL, 0};
    long copied = 0;
    list(&files, from, to, "", how);
    /* The segment whose name sorts first. */
    const char *left_out = NULL;
    for (size_t i = 0; planted == LEAVES_A_FILE_OUT && i < files.count; i++)
        if (strstr(files.paths[i], "segments/") && (!left_out || strcmp(files.paths[i], left_out) < 0)) left_out = files.paths[i];
    for (size_t left = files.count; left > 0; left--) {
        size_t next = (size_t)random_below(random, left);
        char *path = files.paths[next];
        files.paths[next] = files.paths[left - 1];
        if (path != left_out) {
            copied += copy_file(from, to, path, how);
            free(path);
        }
    }
    free((char *)left_out);
    free(files.paths);
    return copied;
}

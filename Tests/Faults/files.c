#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

void broken(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, " (%s)\n", strerror(errno));
    exit(99);
}

char *path_of(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path) broken("out of memory");
    snprintf(path, size, "%s%s%s", folder, *name ? "/" : "", name);
    return path;
}

char *new_root(const char *name) {
    static const char memory[] = "/dev/shm";
    const char *place = getenv("LLVS_FAULTS_DIR");
    struct statvfs room;
    char *root = malloc(512), *full;
    if (!root) broken("out of memory");
    if (!place)
        place = access(memory, W_OK) == 0 && statvfs(memory, &room) == 0 && (uint64_t)room.f_bavail * room.f_frsize > (uint64_t)512 << 20
                    ? memory
                    : ".";
    snprintf(root, 512, "%s/llvs-%s-XXXXXX", place, name);
    if (!mkdtemp(root) || !(full = realpath(root, NULL))) broken("cannot make %s", root);
    free(root);
    return full;
}

int is_there(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0;
}

void make_folder(const char *path) {
    if (mkdir(path, 0777) != 0 && errno != EEXIST) broken("cannot make %s", path);
}

/* Calls `body` for each name in a folder. */
static void each(const char *path, void (*body)(const char *path, const char *name, void *payload), void *payload) {
    DIR *folder = opendir(path);
    struct dirent *entry;
    if (!folder) broken("cannot list %s", path);
    while ((entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) body(path, entry->d_name, payload);
    closedir(folder);
}

static void remove_inside(const char *folder, const char *name, void *payload) {
    char *path = path_of(folder, name);
    (void)payload;
    remove_tree(path);
    free(path);
}
void remove_tree(const char *path) {
    struct stat status;
    if (lstat(path, &status) != 0) return;
    if (S_ISDIR(status.st_mode)) {
        each(path, remove_inside, NULL);
        if (rmdir(path) != 0) broken("cannot remove %s", path);
    } else if (unlink(path) != 0) {
        broken("cannot remove %s", path);
    }
}

void write_file(const char *path, const uint8_t *bytes, uint64_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    uint64_t done = 0;
    if (fd < 0) broken("cannot make %s", path);
    while (done < size) {
        ssize_t n = write(fd, bytes + done, size - done);
        if (n <= 0) broken("cannot write %s", path);
        done += (uint64_t)n;
    }
    close(fd);
}

static uint8_t *read_file(const char *path, uint64_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *bytes = malloc(size + 1);
    uint64_t done = 0;
    if (fd < 0 || !bytes) broken("cannot read %s", path);
    while (done < size) {
        ssize_t n = read(fd, bytes + done, size - done);
        if (n <= 0) broken("cannot read %s", path);
        done += (uint64_t)n;
    }
    close(fd);
    return bytes;
}

static void add(struct tree *tree, const char *root, const char *relative) {
    char *path = path_of(root, relative);
    struct stat status;
    struct entry *entry;
    DIR *folder;
    struct dirent *next;
    if (lstat(path, &status) != 0) broken("cannot read the status of %s", path);
    tree->entries = realloc(tree->entries, sizeof *entry * (tree->count + 1));
    if (!tree->entries) broken("out of memory");
    entry = &tree->entries[tree->count++];
    memset(entry, 0, sizeof *entry);
    entry->path = strdup(relative);
    entry->inode = (uint64_t)status.st_ino;
    entry->is_folder = S_ISDIR(status.st_mode);
    if (!entry->is_folder) {
        entry->size = (uint64_t)status.st_size;
        entry->bytes = read_file(path, entry->size);
    } else {
        if (!(folder = opendir(path))) broken("cannot list %s", path);
        while ((next = readdir(folder))) {
            char *inside;
            if (strcmp(next->d_name, ".") == 0 || strcmp(next->d_name, "..") == 0) continue;
            inside = *relative ? path_of(relative, next->d_name) : strdup(next->d_name);
            add(tree, root, inside);
            free(inside);
        }
        closedir(folder);
    }
    free(path);
}
struct tree read_tree(const char *root) {
    struct tree tree = {NULL, 0};
    add(&tree, root, "");
    return tree;
}
void free_tree(struct tree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        free(tree->entries[i].path);
        free(tree->entries[i].bytes);
    }
    free(tree->entries);
    tree->entries = NULL;
    tree->count = 0;
}

static void copy_inside(const char *folder, const char *name, void *to) {
    char *from = path_of(folder, name), *target = path_of(to, name);
    copy_tree(from, target);
    free(from);
    free(target);
}
void copy_tree(const char *from, const char *to) {
    struct stat status;
    struct timespec times[2];
    if (lstat(from, &status) != 0) broken("cannot read the status of %s", from);
    if (S_ISDIR(status.st_mode)) {
        make_folder(to);
        each(from, copy_inside, (void *)to);
    } else {
        uint8_t *bytes = read_file(from, (uint64_t)status.st_size);
        write_file(to, bytes, (uint64_t)status.st_size);
        free(bytes);
    }
    times[0] = status.st_atim;
    times[1] = status.st_mtim;
    if (utimensat(AT_FDCWD, to, times, 0) != 0) broken("cannot set the times of %s", to);
}

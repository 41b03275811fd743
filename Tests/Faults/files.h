/* Trees of files: copied, removed, read into memory. Failures end the test: they say nothing of the library. */
#ifndef FAULTS_FILES_H
#define FAULTS_FILES_H

#include <stddef.h>
#include <stdint.h>

/* Prints what cannot go on, and ends the process. */
void broken(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* "<folder>/<name>", to be freed. */
char *path_of(const char *folder, const char *name);

/* A new folder: in LLVS_FAULTS_DIR, or in memory if there is room for it, else in the current folder. Nothing here is about the medium, and
   memory is the fastest. To be freed. */
char *new_root(const char *name);

/* No error when there is nothing. */
void remove_tree(const char *path);
/* Times of files are kept: the library goes by them. */
void copy_tree(const char *from, const char *to);
void make_folder(const char *path);
int is_there(const char *path);

/* A file or folder below a root. */
struct entry {
    char *path; /* relative to the root; "" is the root */
    int is_folder;
    uint64_t inode;
    uint8_t *bytes;
    uint64_t size;
};
struct tree {
    struct entry *entries; /* folders before what is in them */
    size_t count;
};
struct tree read_tree(const char *root);
void free_tree(struct tree *tree);
/* A file with these bytes. */
void write_file(const char *path, const uint8_t *bytes, uint64_t size);

#endif

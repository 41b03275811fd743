/* Trees of files: copied, removed, read into memory. Failures end the test, since the library has no part in them. */
#ifndef FAULTS_FILES_H
#define FAULTS_FILES_H

#include <stddef.h>
#include <stdint.h>

/* Prints why the test cannot continue, and ends the process. */
void broken(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Returns "<folder>/<name>"; the caller frees it. */
char *path_of(const char *folder, const char *name);

/* Makes a new folder: in LLVS_FAULTS_DIR, or in memory if there is enough of it, otherwise in the current folder. The tests do not
   depend on the medium, and memory is fastest. The caller frees the result. */
char *new_root(const char *name);

/* Removing nothing is no error. */
void remove_tree(const char *path);
/* The times of files are kept, since the library uses them. */
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
    struct entry *entries; /* each folder comes before its contents */
    size_t count;
};
struct tree read_tree(const char *root);
void free_tree(struct tree *tree);
/* Writes a file with these bytes. */
void write_file(const char *path, const uint8_t *bytes, uint64_t size);

#endif

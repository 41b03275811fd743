/* Copies the directory of a store file by file, in any order, while others write to it. */
#ifndef CONCURRENCY_COPYING_H
#define CONCURRENCY_COPYING_H

#include <stdint.h>

enum copying {
    COPY_IN_PLACE = 1,   /* as cp does: existing files are truncated and rewritten; otherwise copies are written aside and renamed */
    COPY_UNION = 2,      /* only files that are missing in the target, or shorter there */
    COPY_CACHES = 4      /* derived files too */
};
/* Files that disappear meanwhile are left out. Returns how many files were copied. */
long copy_files(const char *from, const char *to, int how, uint64_t *random);

#endif

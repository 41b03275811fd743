/* Copies a store's directory file by file, in an order that is as good as any, while others write to it. */
#ifndef CONCURRENCY_COPYING_H
#define CONCURRENCY_COPYING_H

#include <stdint.h>

enum copying {
    COPY_IN_PLACE = 1,   /* as cp does: what is there is cut off and written again; else aside, and renamed */
    COPY_UNION = 2,      /* only what is missing there, or shorter */
    COPY_CACHES = 4      /* also what is derived */
};
/* What vanishes meanwhile is left out. Returns how many files were copied. */
long copy_files(const char *from, const char *to, int how, uint64_t *random);

#endif

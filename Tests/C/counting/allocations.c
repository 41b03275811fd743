#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "allocations.h"

static uint64_t counted;

uint64_t allocations_counted(void) { return __atomic_load_n(&counted, __ATOMIC_RELAXED); }

#if ALLOCATIONS_ARE_COUNTED

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* The allocator of glibc, under the names that glibc keeps for replacements. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

static void *allocated(void *block) {
    __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED);
    return block;
}

void *malloc(size_t size) { return allocated(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return allocated(__libc_calloc(count, size)); }
void *realloc(void *block, size_t size) { return allocated(__libc_realloc(block, size)); }
void *memalign(size_t alignment, size_t size) { return allocated(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return allocated(__libc_memalign(alignment, size)); }
void *valloc(size_t size) { return allocated(__libc_memalign((size_t)sysconf(_SC_PAGESIZE), size)); }
void free(void *block) { __libc_free(block); }

int posix_memalign(void **to, size_t alignment, size_t size) {
    void *block;
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
    block = allocated(__libc_memalign(alignment, size));
    if (!block) return ENOMEM;
    *to = block;
    return 0;
}

#endif

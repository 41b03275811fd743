/*
 * Counts of allocations, by any code in the process. In a program that is linked with allocations.c, malloc and related functions are
 * replaced, in all libraries that it is linked to.
 */
#ifndef LLVS_COUNTING_ALLOCATIONS_H
#define LLVS_COUNTING_ALLOCATIONS_H

#include <stdint.h>

/* Under a sanitizer, which replaces malloc itself, nothing is counted. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATIONS_ARE_COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define ALLOCATIONS_ARE_COUNTED 0
#endif
#endif
#ifndef ALLOCATIONS_ARE_COUNTED
#define ALLOCATIONS_ARE_COUNTED 1
#endif

/* The number since the process began. A block that grew or moved counts again. May be called by any thread. */
uint64_t allocations_counted(void);

#endif

/* The reserve: memory that the library holds in order to allocate its small objects while memory is short.

   The Swift runtime ends the process if malloc returns NULL. If data or arguments determine the size of an allocation, Support/Memory
   checks beforehand. The other allocations are small objects. If malloc fails for one of them, the reserve is released and malloc is
   called again. From then on, wherever it can still return an error, the library checks llvs_shim_reserve_is_whole, and continues only if
   the reserve is full.

   The shipped library contains the Swift runtime, and is linked so that the runtime's calls come here (cmake/Library.cmake: --wrap). It
   also contains the functions of std::string, which the runtime uses (strings.cpp). In other builds the `__wrap_` functions are not
   called. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CLLVSShims.h"
#include <errno.h>
#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <sys/mman.h>

/* The reserve is never written, so it takes address space and counts as committed, but uses no memory. */
enum { RESERVE = 4 << 20, PIECE = 32 << 10, MAPPED = 128 << 10 };

/* The reserve. A single mapping is its address plus 1, so that the mapping itself need not be written; pieces from malloc are a linked
   list. 0: there is none. */
uintptr_t llvs_shim_reserve;

#if defined(__linux__)
#pragma clang diagnostic ignored "-Wreserved-identifier"
extern void *__real_malloc(size_t) __attribute__((weak));
extern void *__real_calloc(size_t, size_t) __attribute__((weak));
extern void *__real_realloc(void *, size_t) __attribute__((weak));
extern void *__real_aligned_alloc(size_t, size_t) __attribute__((weak));
extern int __real_posix_memalign(void **, size_t, size_t) __attribute__((weak));
extern void *__real__Znwm(size_t) __attribute__((weak));
/* operator new(size_t, std::nothrow) */
extern void *_ZnwmRKSt9nothrow_t(size_t, const void *) __attribute__((weak));
extern const char _ZSt7nothrow __attribute__((weak));
#define ALLOCATE(size) (__real_malloc ? __real_malloc(size) : malloc(size))
#define REALLOCATE(memory, size) (__real_realloc ? __real_realloc(memory, size) : realloc(memory, size))
#else
#define ALLOCATE(size) malloc(size)
#define REALLOCATE(memory, size) realloc(memory, size)
#endif

static void let_go(uintptr_t reserve) {
    int before = errno;
    if (reserve & 1) munmap((void *)(reserve - 1), RESERVE);
    else while (reserve) {
        uintptr_t next = *(uintptr_t *)reserve;
        free((void *)reserve);
        reserve = next;
    }
    errno = before;
}

int llvs_shim_reserve_fill(void) {
    uintptr_t made = 0, none = 0;
    size_t had;
    void *mapping;
    if (llvs_shim_reserve_is_whole()) return 1;
    mapping = mmap(NULL, RESERVE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping != MAP_FAILED) made = (uintptr_t)mapping + 1;
    /* The system refuses a mapping, but the allocator may still have memory that was freed. */
    else for (had = 0; had < RESERVE; had += PIECE) {
        uintptr_t *piece = ALLOCATE(PIECE);
        if (!piece) {
            let_go(made);
            return 0;
        }
        *piece = made;
        made = (uintptr_t)piece;
    }
    if (!__atomic_compare_exchange_n(&llvs_shim_reserve, &none, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) let_go(made);
    return 1;
}

void *llvs_shim_allocate(size_t size) { return ALLOCATE(size); }
void *llvs_shim_reallocate(void *memory, size_t size) { return REALLOCATE(memory, size); }

void llvs_shim_trim(void) {
#if defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}

int llvs_shim_has_memory(size_t size) {
    void *volatile memory;
    int had;
    /* The allocator maps large pieces, but once a piece of that size was freed, it caches such pieces. So the allocator is not used if the
       system grants a mapping. */
    if (size >= MAPPED) {
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory != MAP_FAILED) return munmap(memory, size) == 0;
    }
    memory = ALLOCATE(size);
    had = memory != 0;
    free(memory);
    return had;
}

#if defined(__linux__)
/* Releases the reserve and returns 1, unless the size exceeds the reserve. Another thread may have released it just before. */
static int spare(size_t size) {
    if (size > RESERVE) return 0;
    let_go(__atomic_exchange_n(&llvs_shim_reserve, 0, __ATOMIC_ACQ_REL));
    return 1;
}
#define OR_FROM_RESERVE(size, call) \
    void *memory = call;            \
    if (__builtin_expect(!memory, 0) && spare(size)) memory = call; \
    return memory

void *__wrap_malloc(size_t size) { OR_FROM_RESERVE(size, __real_malloc(size)); }
void *__wrap_calloc(size_t count, size_t size) { OR_FROM_RESERVE(count * size, __real_calloc(count, size)); }
void *__wrap_realloc(void *old, size_t size) { OR_FROM_RESERVE(size, __real_realloc(old, size)); }
void *__wrap_aligned_alloc(size_t alignment, size_t size) { OR_FROM_RESERVE(size, __real_aligned_alloc(alignment, size)); }
int __wrap_posix_memalign(void **to, size_t alignment, size_t size) {
    int result = __real_posix_memalign(to, alignment, size);
    return result == ENOMEM && spare(size) ? __real_posix_memalign(to, alignment, size) : result;
}
/* operator new: the runtime's C++ is compiled without exceptions. */
void *__wrap__Znwm(size_t size) {
    void *memory = _ZnwmRKSt9nothrow_t(size, &_ZSt7nothrow);
    if (__builtin_expect(!memory, 0) && spare(size)) memory = _ZnwmRKSt9nothrow_t(size, &_ZSt7nothrow);
    return memory ? memory : __real__Znwm(size);
}
#endif

/* The reserve: memory that the library holds so that its small objects can be had while memory is short.

   The Swift runtime ends the process when malloc gives it nothing. Where data or arguments say how much is needed, Support/Memory asks
   first. The rest are small objects: when malloc fails for one of them, it is given a piece of the reserve. From then on the library looks
   (llvs_shim_reserve_is_whole) where it can still give an error, and goes on only with a whole reserve, or with as much from malloc.

   The pieces are cut here, and not by malloc from what it is given back: an allocator may keep what is released for the threads that had
   it, and one that has nothing left for a thread may take a page of the system's for each object.

     reserve = up to 8 mappings of 4 MiB, one of which is in use; a further one is made once objects that live long keep it from being whole
     mapping = pieces, one behind the other; once none of them is in use, it is empty again
     piece   = its size in 8 bytes, then the object, aligned to 16 bytes

   The library as it is shipped has the Swift runtime inside, and is linked so that the runtime's calls come here (cmake/Library.cmake:
   --wrap), and has the functions of std::string, which the runtime uses, inside as well (strings.cpp). Elsewhere the names with `__wrap_`
   are called by nobody. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CLLVSShims.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Never touched before memory runs out, so it is address space, and a promise of the system, but no memory in use. */
enum { RESERVE = 4 << 20, MAPPINGS = 8, PIECE = 32 << 10, MAPPED = 128 << 10 };

static struct {
    uint64_t start; /* 0: there is none */
    uint64_t state; /* bytes that were cut off, times 2^32, plus the pieces that are in use */
} mappings[MAPPINGS];
/* All mappings lie between. */
static uint64_t lowest = UINT64_MAX, highest;

/* The state of one that does not exist counts as used up. */
static uint64_t none = UINT64_MAX;
uint64_t *llvs_shim_reserve = &none;

#if defined(__linux__)
#pragma clang diagnostic ignored "-Wreserved-identifier"
extern void *__real_malloc(size_t) __attribute__((weak));
extern void *__real_calloc(size_t, size_t) __attribute__((weak));
extern void *__real_realloc(void *, size_t) __attribute__((weak));
extern void *__real_aligned_alloc(size_t, size_t) __attribute__((weak));
extern int __real_posix_memalign(void **, size_t, size_t) __attribute__((weak));
extern void __real_free(void *) __attribute__((weak));
extern size_t __real_malloc_usable_size(void *) __attribute__((weak));
extern void *__real__Znwm(size_t) __attribute__((weak));
extern void __real__ZdlPvm(void *, size_t) __attribute__((weak));
/* operator new(size_t, std::nothrow) */
extern void *_ZnwmRKSt9nothrow_t(size_t, const void *) __attribute__((weak));
extern const char _ZSt7nothrow __attribute__((weak));
#define ALLOCATE(size) (__real_malloc ? __real_malloc(size) : malloc(size))
#define REALLOCATE(memory, size) (__real_realloc ? __real_realloc(memory, size) : realloc(memory, size))
#else
#define ALLOCATE(size) malloc(size)
#define REALLOCATE(memory, size) realloc(memory, size)
#endif

/* Puts another value where nobody has changed it since; else *was is what is there. */
static inline int exchange(uint64_t *at, uint64_t *was, uint64_t by) {
    return __atomic_compare_exchange_n(at, was, by, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Whether the calling thread gets as much as the reserve from malloc: the system gives nothing more, but an allocator may have what was
   released to it. */
static int allocator_has_as_much(void) {
    uintptr_t pieces = 0;
    size_t had;
    for (had = 0; had < RESERVE; had += PIECE) {
        uintptr_t *piece = ALLOCATE(PIECE);
        if (!piece) break;
        *piece = pieces;
        pieces = (uintptr_t)piece;
    }
    while (pieces) {
        uintptr_t next = *(uintptr_t *)pieces;
        free((void *)pieces);
        pieces = next;
    }
    return had >= RESERVE;
}

/* Widens what the mappings lie between, before the first piece of a new one is given out. */
static void lies_between(uint64_t start) {
    uint64_t end = start + RESERVE, was = __atomic_load_n(&lowest, __ATOMIC_RELAXED);
    while (start < was && !exchange(&lowest, &was, start)) {}
    was = __atomic_load_n(&highest, __ATOMIC_RELAXED);
    while (end > was && !exchange(&highest, &was, end)) {}
}

int llvs_shim_reserve_fill(void) {
    size_t i;
    void *mapping;
    if (llvs_shim_reserve_is_whole()) return 1;
    mapping = MAP_FAILED;
    for (i = 0; i < MAPPINGS; i++) {
        uint64_t start = __atomic_load_n(&mappings[i].start, __ATOMIC_ACQUIRE);
        if (!start) {
            if (mapping == MAP_FAILED) mapping = mmap(NULL, RESERVE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (mapping == MAP_FAILED) break;
            lies_between((uintptr_t)mapping);
            if (exchange(&mappings[i].start, &start, (uintptr_t)mapping)) mapping = MAP_FAILED;
        }
        if (LLVS_SHIM_RESERVE_IS_WHOLE(__atomic_load_n(&mappings[i].state, __ATOMIC_RELAXED))) {
            __atomic_store_n(&llvs_shim_reserve, &mappings[i].state, __ATOMIC_RELEASE);
            if (mapping != MAP_FAILED) munmap(mapping, RESERVE);
            return 1;
        }
    }
    if (mapping != MAP_FAILED) munmap(mapping, RESERVE);
    return allocator_has_as_much() || (i == MAPPINGS && llvs_shim_has_memory(RESERVE));
}

void *llvs_shim_allocate(size_t size) { return ALLOCATE(size); }
void *llvs_shim_reallocate(void *memory, size_t size) { return REALLOCATE(memory, size); }

int llvs_shim_has_memory(size_t size) {
    void *volatile memory;
    int had;
    /* The allocator maps what is large, unless something of that size was released to it before: then it keeps such pieces. So it is
       not asked where the system gives a mapping. */
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
/* A piece of the reserve; NULL when nothing of that size is left. */
static void *cut(size_t alignment, size_t size) {
    int before = errno;
    size_t i;
    if (alignment < 16) alignment = 16;
    if (size == 0) size = 1;
    if (size > RESERVE || alignment > RESERVE) return NULL;
    for (i = 0; i < MAPPINGS; i++) {
        uint64_t start = __atomic_load_n(&mappings[i].start, __ATOMIC_ACQUIRE);
        uint64_t state = __atomic_load_n(&mappings[i].state, __ATOMIC_RELAXED);
        while (start) {
            uint64_t object = (start + (state >> 32) + sizeof(uint64_t) + alignment - 1) & ~(uint64_t)(alignment - 1);
            uint64_t end = object - start + size;
            if (end > RESERVE) break;
            if (!exchange(&mappings[i].state, &state, end << 32 | ((state & UINT32_MAX) + 1))) continue;
            ((uint64_t *)(uintptr_t)object)[-1] = size;
            errno = before;
            return (void *)(uintptr_t)object;
        }
    }
    return NULL;
}

/* Whether it is a piece; *which: of which mapping. Of other memory that is mostly seen at a glance. */
static inline int is_piece(const void *memory, size_t *which) {
    uintptr_t at = (uintptr_t)memory;
    if (__builtin_expect(at < __atomic_load_n(&lowest, __ATOMIC_RELAXED) || at >= __atomic_load_n(&highest, __ATOMIC_RELAXED), 1)) return 0;
    for (*which = 0; *which < MAPPINGS; ++*which) {
        uint64_t start = __atomic_load_n(&mappings[*which].start, __ATOMIC_ACQUIRE);
        if (start && at - start < RESERVE) return 1;
    }
    return 0;
}

static size_t size_of(const void *piece) { return ((const uint64_t *)piece)[-1]; }

static void put_back(size_t which) {
    uint64_t state = __atomic_load_n(&mappings[which].state, __ATOMIC_RELAXED), left;
    do left = (state & UINT32_MAX) == 1 ? 0 : state - 1;
    while (!exchange(&mappings[which].state, &state, left));
}

#define OR_FROM_RESERVE(alignment, size, call) \
    void *memory = call;                       \
    return __builtin_expect(!memory, 0) ? cut(alignment, size) : memory

void *__wrap_malloc(size_t size) { OR_FROM_RESERVE(16, size, __real_malloc(size)); }
void *__wrap_calloc(size_t count, size_t size) {
    void *memory = __real_calloc(count, size);
    size_t all;
    if (__builtin_expect(memory != NULL, 1) || __builtin_mul_overflow(count, size, &all) || !(memory = cut(16, all))) return memory;
    return memset(memory, 0, all);
}
void *__wrap_realloc(void *old, size_t size) {
    size_t which, had;
    void *memory;
    if (!is_piece(old, &which)) {
        memory = __real_realloc(old, size);
        if (__builtin_expect(memory != NULL, 1) || size == 0 || !(memory = cut(16, size))) return memory;
        had = old ? __real_malloc_usable_size(old) : 0;
        if (had) memcpy(memory, old, had < size ? had : size);
        __real_free(old);
        return memory;
    }
    had = size_of(old);
    memory = size ? __wrap_malloc(size) : NULL;
    if (size && !memory) return NULL;
    if (memory) memcpy(memory, old, had < size ? had : size);
    put_back(which);
    return memory;
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) { OR_FROM_RESERVE(alignment, size, __real_aligned_alloc(alignment, size)); }
int __wrap_posix_memalign(void **to, size_t alignment, size_t size) {
    int result = __real_posix_memalign(to, alignment, size);
    void *memory;
    if (result != ENOMEM || !(memory = cut(alignment, size))) return result;
    *to = memory;
    return 0;
}
void __wrap_free(void *memory) {
    size_t which;
    if (__builtin_expect(is_piece(memory, &which), 0)) put_back(which);
    else __real_free(memory);
}
size_t __wrap_malloc_usable_size(void *memory) {
    size_t which;
    return __builtin_expect(is_piece(memory, &which), 0) ? size_of(memory) : __real_malloc_usable_size(memory);
}
/* operator new: the runtime's C++ is compiled without exceptions. */
void *__wrap__Znwm(size_t size) {
    void *memory = _ZnwmRKSt9nothrow_t(size, &_ZSt7nothrow);
    if (__builtin_expect(!memory, 0)) memory = cut(16, size);
    return memory ? memory : __real__Znwm(size);
}
/* operator delete(void *, size_t) */
void __wrap__ZdlPvm(void *memory, size_t size) {
    size_t which;
    if (__builtin_expect(is_piece(memory, &which), 0)) put_back(which);
    else __real__ZdlPvm(memory, size);
}
#endif

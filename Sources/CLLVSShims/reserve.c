/* The reserve: memory that the library holds so that its small objects can be had while memory is short.

   The Swift runtime ends the process when malloc gives it nothing. Where data or arguments say how much is needed, Support/Memory asks
   first. The rest are small objects: when malloc fails for one of them, the reserve is let go of, and malloc is asked again. From then
   on the library looks (llvs_shim_reserve_is_whole) where it can still give an error, and goes on only with a whole reserve.

   The library as it is shipped has the Swift runtime inside, and is linked so that the runtime's calls come here (cmake/Library.cmake:
   --wrap), and has the functions of std::string, which the runtime uses, inside as well (strings.cpp). Elsewhere the names with `__wrap_`
   are called by nobody. */
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

/* Never touched, so it is address space, and a promise of the system, but no memory in use. */
enum { RESERVE = 4 << 20, PIECE = 32 << 10, MAPPED = 128 << 10 };

/* What malloc gave, as a list; a mapping in one is the address with 1 added, since that need not be touched. 0 while there is none. */
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
    /* The system gives nothing more, but the allocator may have what was released to it. */
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
/* Whether it is worth asking again. Another thread may have let go of it just now. */
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

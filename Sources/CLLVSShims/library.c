#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CLLVSShims.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* One lock for all libraries, since each is opened only once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#ifdef RTLD_DEEPBIND
/* Returns whether the process uses the allocator of the C library. If another one is preloaded or linked, `strdup` of the C library calls
   it, but a library with deep binding then calls the C library's `free` on the result. */
static int has_own_allocator(void) {
    static const char *const names[] = {
        "malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc", "posix_memalign",
    };
    Dl_info libc, found;
    void *known = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    if (!known || !dladdr(known, &libc)) return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = dlsym(RTLD_DEFAULT, names[i]);
        if (!function || !dladdr(function, &found) || found.dli_fbase != libc.dli_fbase) return 0;
    }
    return 1;
}
#endif

/* Returns the flags for opening a library so that it uses its own symbols, and no other code uses them, since a host may contain another
   library with the same symbols. A dynamic linker without deep binding does that anyway (Darwin) or cannot do it (musl). The runtimes of
   sanitizers end a process that requests deep binding. */
static int flags(void) {
    int found = RTLD_NOW | RTLD_LOCAL;
#ifdef RTLD_DEEPBIND
    if (has_own_allocator() && !dlsym(RTLD_DEFAULT, "__sanitizer_report_error_summary")) found |= RTLD_DEEPBIND;
#endif
    return found;
}

static int open_now(const llvs_shim_library *library, const char *file, char *problem, size_t size) {
    void *opened = dlopen(file, flags());
    if (!opened) {
        const char *why = dlerror();
        snprintf(problem, size, "%s", why ? why : file);
        return 0;
    }
    for (size_t i = 0; i < library->count; i++) {
        void *function = dlsym(opened, library->functions[i].name);
        if (!function) {
            snprintf(problem, size, "%s has no %s", file, library->functions[i].name);
            dlclose(opened);
            return 0;
        }
        memcpy((char *)library->table + library->functions[i].offset, &function, sizeof function);
    }
    /* The library stays open even if this fails: it may have started threads or registered handlers. */
    return library->start == NULL || library->start(problem, size);
}

int llvs_shim_open_library(llvs_shim_library *library, const char *file, char *problem, size_t size) {
    pthread_mutex_lock(&lock);
    if (!library->is_open) library->is_open = open_now(library, file, problem, size);
    int is_open = library->is_open;
    pthread_mutex_unlock(&lock);
    return is_open;
}

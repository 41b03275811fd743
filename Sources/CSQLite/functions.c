#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CSQLite.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static llvs_sqlite functions;
static int is_open;

/* Nobody else's symbols are taken for its own, and its own for nobody's: a host may contain another SQLite. Where the
   dynamic linker knows no deep binding it does that by itself (Darwin), or not at all (musl). The sanitizers' runtimes end
   a process that asks for it. */
static int flags(void) {
    int found = RTLD_NOW | RTLD_LOCAL;
#ifdef RTLD_DEEPBIND
    if (!dlsym(RTLD_DEFAULT, "__sanitizer_report_error_summary")) found |= RTLD_DEEPBIND;
#endif
    return found;
}

const llvs_sqlite *llvs_sqlite_open(const char *name, char *problem, size_t size) {
    pthread_mutex_lock(&lock);
    if (!is_open) {
        void *library = dlopen(name, flags());
        const char *missing = NULL;
        if (!library) {
            const char *why = dlerror();
            snprintf(problem, size, "%s", why ? why : name);
        } else {
#define LLVS_SQLITE_FIND(name)                                                         \
    if (!missing) {                                                                    \
        void *found = dlsym(library, "sqlite3_" #name);                                \
        if (found) functions.name = (__typeof__(functions.name))found; \
        else missing = "sqlite3_" #name;                                               \
    }
            LLVS_SQLITE_FUNCTIONS(LLVS_SQLITE_FIND)
            if (missing) {
                snprintf(problem, size, "%s has no %s", name, missing);
                dlclose(library);
            } else {
                is_open = 1;
            }
        }
    }
    int succeeded = is_open;
    pthread_mutex_unlock(&lock);
    return succeeded ? &functions : NULL;
}

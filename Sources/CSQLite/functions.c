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

/* How many connections are open, or about to be; and whether this is the child of a process in which one was. */
static int users, is_forked;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void in_child(void) {
    if (__atomic_load_n(&users, __ATOMIC_SEQ_CST) > 0) is_forked = 1;
}
static void notice_forks(void) { pthread_atfork(NULL, NULL, in_child); }

int llvs_sqlite_is_forked(void) { return is_forked; }

int llvs_sqlite_enter(void) {
    if (is_forked) return 0;
    pthread_once(&once, notice_forks);
    __atomic_fetch_add(&users, 1, __ATOMIC_SEQ_CST);
    return 1;
}

void llvs_sqlite_leave(void) { __atomic_fetch_sub(&users, 1, __ATOMIC_SEQ_CST); }

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

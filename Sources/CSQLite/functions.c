#include "CSQLite.h"
#include "CLLVSShims.h"
#include <pthread.h>

/* The number of connections that are open or being opened, and whether this is a child of a process that had one when it forked. */
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

#define LLVS_SQLITE_FUNCTION(name) {"sqlite3_" #name, offsetof(llvs_sqlite, name)},
static const llvs_shim_function names[] = {LLVS_SQLITE_FUNCTIONS(LLVS_SQLITE_FUNCTION)};

const llvs_sqlite *llvs_sqlite_open(const char *name, char *problem, size_t size) {
    static llvs_sqlite functions;
    static llvs_shim_library library = {names, sizeof names / sizeof names[0], &functions, NULL, 0};
    return llvs_shim_open_library(&library, name, problem, size) ? &functions : NULL;
}

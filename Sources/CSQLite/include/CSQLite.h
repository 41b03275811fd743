/* The functions of SQLite that the engine uses. The library is opened with the first store in SQLite, instead of being linked. The types
   are those of sqlite3.h. */
#ifndef CSQLITE_H
#define CSQLITE_H
#if !__has_include(<sqlite3.h>)
#error "LLVS needs the headers of SQLite: install libsqlite3-dev (Debian, Ubuntu) or sqlite-devel (Fedora)."
#endif
#include <sqlite3.h>
#include <stddef.h>

/* The names after "sqlite3_". To add a function, add its name. */
#define LLVS_SQLITE_FUNCTIONS(X)                                                                                   \
    X(bind_blob64) X(bind_double) X(bind_int64) X(bind_text) X(bind_zeroblob) X(busy_handler)                      \
    X(clear_bindings) X(close_v2) X(column_blob) X(column_bytes) X(column_int64) X(column_type) X(db_config)       \
    X(db_readonly) X(errmsg) X(errstr) X(exec) X(extended_result_codes) X(finalize) X(initialize)                  \
    X(libversion_number) X(limit) X(open_v2) X(prepare_v3) X(progress_handler) X(reset) X(step)                    \
    X(stmt_readonly) X(system_errno) X(threadsafe)

typedef struct llvs_sqlite {
#define LLVS_SQLITE_MEMBER(name) __typeof__(sqlite3_##name) *_Nonnull name;
    LLVS_SQLITE_FUNCTIONS(LLVS_SQLITE_MEMBER)
#undef LLVS_SQLITE_MEMBER
} llvs_sqlite;

/* Opens the library of that name, permanently, and returns its functions; the same pointer at every call after one succeeded. If the
   library cannot be opened or lacks a function, returns NULL and writes the reason, cut to `size` bytes, to `problem`. Any thread. */
const llvs_sqlite *_Nullable llvs_sqlite_open(const char *_Nonnull name, char *_Nonnull problem, size_t size);

/* Must be called before the first use of SQLite for a connection, and after the last use. If the process was between these calls when it
   forked, `enter` returns 0 in the child, and SQLite must not be used there; else it returns 1. Neither takes a lock that a fork could
   leave locked. */
int llvs_sqlite_enter(void);
void llvs_sqlite_leave(void);
/* Returns 1 in such a child, else 0. */
int llvs_sqlite_is_forked(void);

/* Calls sqlite3_db_config, which is variadic, for the options that are switches: 1 on, 0 off, -1 unchanged. Returns the state of the
   switch after that; -1 if SQLite does not know the option. */
static inline int llvs_sqlite_configure(const llvs_sqlite *_Nonnull functions, sqlite3 *_Nullable database, int option, int is_on) {
    int found = -1;
    return functions->db_config(database, option, is_on, &found) == SQLITE_OK ? found : -1;
}

/* SQLITE_TRANSIENT and SQLITE_STATIC are casts that Swift cannot import. */
static inline sqlite3_destructor_type _Nullable llvs_sqlite_transient(void) { return SQLITE_TRANSIENT; }
static inline sqlite3_destructor_type _Nullable llvs_sqlite_static(void) { return SQLITE_STATIC; }
#endif

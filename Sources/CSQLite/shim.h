#include <sqlite3.h>
/* SQLITE_TRANSIENT and SQLITE_STATIC are casts that Swift cannot import. */
static inline sqlite3_destructor_type llvs_sqlite_transient(void) { return SQLITE_TRANSIENT; }
static inline sqlite3_destructor_type llvs_sqlite_static(void) { return SQLITE_STATIC; }

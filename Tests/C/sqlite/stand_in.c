/*
 * A replacement for SQLite that is too old, built for one thread, or without a required function (for test_no_sqlite.c). None of its
 * functions does anything.
 */
#include <stdlib.h>

#ifdef STAND_IN_OLD
int sqlite3_libversion_number(void) { return 3007017; }
#else
int sqlite3_libversion_number(void) { return 3040001; }
#endif
#ifdef STAND_IN_UNSAFE
int sqlite3_threadsafe(void) { return 0; }
#else
int sqlite3_threadsafe(void) { return 1; }
#endif
#ifndef STAND_IN_PARTIAL
void sqlite3_prepare_v3(void) { abort(); }
#endif

#define NEVER_CALLED(name) \
    void sqlite3_##name(void) { abort(); }
NEVER_CALLED(bind_blob64)
NEVER_CALLED(bind_double)
NEVER_CALLED(bind_int64)
NEVER_CALLED(bind_text)
NEVER_CALLED(bind_zeroblob)
NEVER_CALLED(busy_handler)
NEVER_CALLED(clear_bindings)
NEVER_CALLED(close_v2)
NEVER_CALLED(column_blob)
NEVER_CALLED(column_bytes)
NEVER_CALLED(column_int64)
NEVER_CALLED(column_type)
NEVER_CALLED(db_config)
NEVER_CALLED(db_readonly)
NEVER_CALLED(errmsg)
NEVER_CALLED(errstr)
NEVER_CALLED(exec)
NEVER_CALLED(extended_result_codes)
NEVER_CALLED(finalize)
NEVER_CALLED(initialize)
NEVER_CALLED(limit)
NEVER_CALLED(progress_handler)
NEVER_CALLED(open_v2)
NEVER_CALLED(reset)
NEVER_CALLED(step)
NEVER_CALLED(stmt_readonly)
NEVER_CALLED(system_errno)

/* A hand-written versioned SQLite table: yardstick.sql, and the code that steps its statements. */
#ifndef BENCHMARKS_YARDSTICK_H
#define BENCHMARKS_YARDSTICK_H

/* Reads yardstick.sql and sets SQLite up. Once, before a database is opened. */
void yardstick_set_up(void);

#endif

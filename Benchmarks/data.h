/* The ids and values of all runs: a function of their numbers alone. */
#ifndef BENCHMARKS_DATA_H
#define BENCHMARKS_DATA_H

#include <stddef.h>
#include <stdint.h>

/* A generator with a state of its own, splitmix64. */
uint64_t draw(uint64_t *state);

/* `count` ids of upper-case UUIDs behind a prefix; ids[i] is at data_id(ids, i). */
char *data_ids(size_t count, const char *prefix);
enum { LONG_ID_SIZE = 4096 };
/* From now on each id has `size` bytes after its prefix: the UUID, and then hyphens. */
void data_lengthen_ids(size_t size);
const char *data_id(const char *ids, size_t i);
/*
 * Fills the buffer with the value that update number `update` (0: the load) writes for id `i`. The buffer must be zero, or filled by this
 * function before.
 */
void data_value(uint8_t *value, size_t size, size_t i, size_t update);
/* Returns the id that update number `update` changes. */
size_t data_updated(size_t update, size_t count);

#endif

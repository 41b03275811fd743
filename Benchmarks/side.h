/*
 * The two sides of the comparison behind one table of functions, so that each workload is written once and
 * both sides get the same data in the same order.
 */
#ifndef BENCHMARKS_SIDE_H
#define BENCHMARKS_SIDE_H

#include <llvs.h>
#include <stddef.h>
#include <stdint.h>

/* A version by the name that a side gives it. */
typedef struct version {
    llvs_version_id id; /* ours */
    int64_t number;     /* the yardstick's */
} version;

typedef struct item {
    const char *id;
    const uint8_t *data;
    size_t size;
} item;

/* How a process of either side opens its database. */
typedef struct opening {
    llvs_storage_kind storage; /* ours only */
    int is_full;               /* what was committed survives a power cut */
    uint64_t memory_budget;    /* ours only; 0: the default */
} opening;

typedef struct side {
    const char *name;
    void *(*open)(const char *path, const opening *how);
    void (*close)(void *database);
    /* Returns a database for a reading thread: `database` itself, or a new connection. */
    void *(*open_reader)(void *database);
    void (*close_reader)(void *database, void *reader);
    /* Converts the items to the form for `load`, before the clock starts. */
    void *(*pack)(const item *items, size_t count);
    version (*load)(void *database, void *packed, size_t count);
    /* Makes a version with new data for some ids. */
    version (*save)(void *database, const version *at, const item *items, size_t count);
    /* Copies the value; returns its size. */
    size_t (*fetch)(void *database, const char *id, const version *at, uint8_t *copy, size_t capacity);
    /* Reads values in the order of ids, and adds up their first bytes. Returns the number of values. limit 0: all. */
    size_t (*enumerate)(void *database, const version *at, const char *prefix, size_t limit, uint64_t *sum);
    /* Returns how many values differ, after a walk through their ids and kinds. With a `sum` reads their data, too, and adds up the first
       bytes. */
    size_t (*differences)(void *database, const version *from, const version *to, uint64_t *sum);
    version (*merge_base)(void *database, const version *a, const version *b);
    version (*merge)(void *database, const version *a, const version *b);
    /* The newest `count` versions of a linear history, newest first. */
    void (*newest)(void *database, version *versions, size_t count);
} side;

extern const side ours;
extern const side yardstick;

/* Ends the program with a message. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void *allocate(size_t count, size_t size);

#endif

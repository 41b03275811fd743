/*
 * The two sides of the comparison behind one table of functions, so that each workload is written once and
 * both sides get the same data in the same order.
 */
#ifndef BENCHMARKS_SIDE_H
#define BENCHMARKS_SIDE_H

#include <llvs.h>
#include <stddef.h>
#include <stdint.h>

/* A version as either side names it. */
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
    /* For a thread that reads: `database` itself, or a connection of its own. */
    void *(*open_reader)(void *database);
    void (*close_reader)(void *database, void *reader);
    /* The items in the form that `load` takes, made before the clock starts. */
    void *(*pack)(const item *items, size_t count);
    version (*load)(void *database, void *packed, size_t count);
    /* A version with new data for some ids. */
    version (*save)(void *database, const version *at, const item *items, size_t count);
    /* Copies the value; returns its size. */
    size_t (*fetch)(void *database, const char *id, const version *at, uint8_t *copy, size_t capacity);
    /* Reads values in the order of ids; adds up their first bytes; returns how many. limit 0: all. */
    size_t (*enumerate)(void *database, const version *at, const char *prefix, size_t limit, uint64_t *sum);
    /* How many values differ and of which kind: their ids are walked. With a `sum` their data is read, too, and its first
       bytes are added up. */
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

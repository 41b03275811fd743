/*
 * What was asked of a store, and what it answered: kept in memory that outlives a killed process, and compared with
 * what the store says afterwards. The contents of values are functions of a seed, so that the book need not hold them.
 */
#ifndef FAULTS_BOOK_H
#define FAULTS_BOOK_H

#include <stddef.h>
#include <stdint.h>

#include "llvs.h"

/* ---- States: what prevails at a version ---- */

enum { KEY_SIZE = 12, STATE_ITEMS = 24 };
struct item {
    char key[KEY_SIZE];
    uint32_t size;
    uint64_t seed;
};
/* Sorted by key. */
struct state {
    int count;
    struct item items[STATE_ITEMS];
};
void state_set(struct state *state, const char *key, uint64_t seed, uint32_t size);
void state_remove(struct state *state, const char *key);

/* The bytes of a value, to be freed. Values whose seeds come from `edited` are edits of one another. */
uint8_t *value_bytes(uint64_t seed, uint32_t size);
/* The seed of the value of `seed` with eight other bytes at one place, for each edit above 0 at another. The first 16 bytes stay. */
static inline uint64_t edited(uint64_t seed, uint32_t edit) { return (uint64_t)edit << 32 | seed; }
/* A digest of ids and contents, and of the ids of the predecessors. */
uint64_t state_digest(const struct state *state, const llvs_bytes *predecessors, size_t predecessor_count);
/* The same of a version in a store. A status and message of the library when it cannot be read. */
llvs_status version_digest(llvs_store *store, const llvs_version_info *version, uint64_t *digest, llvs_error **error);

/* Of many versions some are read, of few all: whether the one at `index` of `count` is. */
int is_sampled(size_t index, size_t count);

/* ---- The book ---- */

enum { ID_SIZE = 64, SPEC_CHANGES = 3, BOOK_MAX = 4096 };
struct change_spec {
    char key[KEY_SIZE]; /* empty: none */
    int removes;
    uint32_t size;
    uint64_t seed;
};
/* A version that was asked for. */
struct asked {
    char id[ID_SIZE]; /* empty as long as the store has not told it */
    char predecessor[ID_SIZE];
    struct change_spec changes[SPEC_CHANGES];
    int can_be_repeated; /* by predecessor and changes */
    struct state state;
    uint64_t digest;
    int acknowledged;
    /* Its bytes were damaged: until it is acknowledged anew it may be there without being readable. */
    int is_damaged;
    /* The length of the recording when it was acknowledged; when it had to be safe from a power cut; 0: never. */
    long acknowledged_at;
    long durable_at;
    int handle;
};
struct book {
    int count;
    int handles, open_handles;
    /* A call failed that had no reason to, or told something else than it should: text, empty when all is well. */
    char failure[2048];
    /* How often calls failed with the faults that were injected, by code below zero. */
    long failed[128];
    long unknown_outcomes;
    long repeated;
    struct asked asked[BOOK_MAX];
};
extern struct book *book;

/* Shared with children. Once per test process. */
struct book *book_make(void);
size_t book_size(const struct book *book);
/* Notes a failure, unless there is one already. */
void book_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct asked *book_find(llvs_bytes id);
/* A new entry. `id` may be NULL: the store will tell. */
struct asked *book_ask(const char *id, const struct state *state, const llvs_bytes *predecessors, size_t predecessor_count);
/* What was made so far was made elsewhere: in the store in question it is not, as long as nobody says so. */
void book_move_elsewhere(void);
/* This one was damaged: it is not acknowledged any more, until somebody repairs it. */
void book_damage(const char *id);

#endif

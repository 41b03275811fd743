/*
 * Records what was requested of a store, and what it answered, in memory that outlives a killed process. Later the records are compared
 * with the store. The contents of values are functions of a seed, so the book need not hold them.
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

/* The bytes of a value; the caller frees them. Values whose seeds come from `edited` are edits of one another. */
uint8_t *value_bytes(uint64_t seed, uint32_t size);
/* The seed of an edited value: eight bytes differ at one place, at a different place for each edit above 0. The first 16 bytes stay. */
static inline uint64_t edited(uint64_t seed, uint32_t edit) { return (uint64_t)edit << 32 | seed; }
/* The beginning of the keys of values that workloads erase. Digests do not cover them, and no orders to erase. */
#define ERASABLE "secret"
/* A value of such a key that is not forgotten. */
#define KEPT_SEED 90
#define KEPT_SIZE 2500
/* A digest of the ids and contents, and of the ids of the predecessors. */
uint64_t state_digest(const struct state *state, const llvs_bytes *predecessors, size_t predecessor_count);
/* The same digest for a version in a store. Returns the library's status and error if it cannot be read. */
llvs_status version_digest(llvs_store *store, const llvs_version_info *version, uint64_t *digest, llvs_error **error);

/* Whether the version at `index` of `count` is read: all of few versions, some of many. */
int is_sampled(size_t index, size_t count);

/* ---- The book ---- */

enum { ID_SIZE = 64, SPEC_CHANGES = 3, BOOK_MAX = 4096 };
struct change_spec {
    char key[KEY_SIZE]; /* empty: none */
    int removes;
    uint32_t size;
    uint64_t seed;
};
/* A version that was requested. */
struct asked {
    char id[ID_SIZE]; /* empty until the store has returned it */
    char predecessor[ID_SIZE];
    struct change_spec changes[SPEC_CHANGES];
    int can_be_repeated; /* by its predecessor and changes */
    struct state state;
    uint64_t digest;
    int acknowledged;
    /* The bytes of the version were damaged. Until it is acknowledged again it may exist without being readable. */
    int is_damaged;
    /* The length of the recording when it was acknowledged, and when it had to be safe from a power cut; 0: never. */
    long acknowledged_at;
    long durable_at;
    int handle;
};
struct book {
    int count;
    int handles, open_handles;
    /* A call failed without a reason, or returned something wrong: the message, or empty. */
    char failure[2048];
    /* How often calls failed because of injected faults, by negative code. */
    long failed[128];
    long unknown_outcomes;
    /* An erasure was acknowledged: the length of the recording then, plus 1; and the values that it erased. */
    long erased_at;
    struct change_spec erased[SPEC_CHANGES];
    /* Values are forgotten by a policy: the first of those above. */
    int forgets;
    long repeated;
    struct asked asked[BOOK_MAX];
};
extern struct book *book;

/* Shared with children. Call once in each test process. */
struct book *book_make(void);
size_t book_size(const struct book *book);
/* Records a failure, unless there is one already. */
void book_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct asked *book_find(llvs_bytes id);
/* A new entry. `id` may be NULL if the store computes it. */
struct asked *book_ask(const char *id, const struct state *state, const llvs_bytes *predecessors, size_t predecessor_count);
/* All versions so far were made in another store. They do not exist in this one until a call reports them. */
void book_move_elsewhere(void);
/* Records that a version was damaged: it is no longer acknowledged until it is repaired. */
void book_damage(const char *id);

#endif

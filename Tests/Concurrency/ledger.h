/*
 * Records what many workers requested of one store, and what it answered. The records are outside of the store, in memory that threads and
 * processes share and that outlives killed ones. Every version has its whole state here, so any reader can tell exactly what a read must
 * return. The bytes of values are functions of the version that stored them and of the id.
 *
 * A worker builds only on descendants of its own last version, and has a value id that no other worker changes. So the result of a merge is
 * known for that id. For the other ids it is known that a merge chooses one of its two sides.
 */
#ifndef CONCURRENCY_LEDGER_H
#define CONCURRENCY_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "llvs.h"

enum { PRIVATE_KEYS = 64, SHARED_KEYS = 12, KEYS = PRIVATE_KEYS + SHARED_KEYS, ID_ROOM = 40, LEDGER_MAX = 400000 };
/* Marks the number of an entry in a state: that entry removed the value. */
#define REMOVED 0x80000000u

/* Faults of a broken library or a broken disk. Each must be noticed when it is planted (--planted). */
enum plant {
    NO_PLANT,
    READS_SOMETHING_ELSE,
    LOSES_A_VERSION,
    MAKES_ONE_UP,         /* a version that no worker requested */
    MERGES_WRONGLY,
    SPOILS_A_BYTE,
    LEAVES_A_FILE_OUT,    /* of a copy */
    GIVES_ANOTHER_REASON, /* why a call is refused */
    REFUSES_NOTHING,      /* a version that does not fit is acknowledged */
    TRAPS,
    LOOPS
};
extern enum plant planted;

enum phase { PHASE_FREE, PHASE_ASKED, PHASE_ACKNOWLEDGED };
/* A version. Entry 0 is unused. */
struct ledger_entry {
    uint32_t phase;
    uint32_t is_merge;
    uint32_t world;           /* the store that has it; see ledger_sees */
    uint32_t predecessors[2]; /* entries; 0: none. In any order for a merge */
    char id[ID_ROOM];         /* empty for a merge that is not acknowledged */
    uint32_t state[KEYS];     /* for each value id the entry that changed it last; 0: none yet */
};
enum tally {
    COMMITS,
    READS,
    MERGES,
    RELOADS,
    OPENINGS,
    COMPACTIONS,
    FOLDED,
    DELETED,
    VERIFICATIONS,
    KILLS,
    COPIES,
    CONFLICTS,
    REFUSALS,
    JUDGED,
    TALLIES
};
struct ledger {
    uint32_t count;        /* entries in use, including entry 0 */
    uint32_t acknowledged; /* of `order` */
    int is_united;
    long operations;
    long tallies[TALLIES];
    int has_failed;
    char failure[2048];
    uint32_t order[LEDGER_MAX]; /* entries in the order in which they were acknowledged; 0: about to be written */
    struct ledger_entry entries[LEDGER_MAX];
};
extern struct ledger *ledger;

/* Shared with children. Call once in each process, and ledger_clear for each test. */
void ledger_make(void);
void ledger_clear(void);
/* Forgets the versions, for another store. Counts and failures remain. */
void ledger_forget(void);
void ledger_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int ledger_has_failed(void);
void tally(enum tally what, long by);

/*
 * If two stores were once one: the worlds, which tell in which of them a version is. Versions of world 0 are in all stores. Those of worlds
 * 1 and 2 were made in one of them, and are in all as soon as they are united. Versions made at the end, in worlds beyond WORLD_ENDS, are
 * only in that store.
 */
enum { WORLD_ENDS = 8 };
int ledger_sees(uint32_t world, const struct ledger_entry *entry);
/* A new entry that descends from `base` (0: from none), and has its state so far. */
struct ledger_entry *ledger_ask(uint32_t base, uint32_t world);
void ledger_acknowledge(struct ledger_entry *entry);
uint32_t number_of(const struct ledger_entry *entry);
/* An acknowledged entry in that world; 0 if none was found. */
uint32_t ledger_pick(uint64_t *random, uint32_t world);
/* The entry with an id that `ledger_ask` made; 0 if there is none. */
uint32_t entry_of_id(llvs_bytes id);

/* "mine/<number>" or "ours/<number>"; `key_of_id` gives KEYS for others. */
const char *key_name(int key);
int key_of_id(llvs_bytes id);
/* The entry that stored the prevailing value; 0 if there is none. */
uint32_t stored_in(const struct ledger_entry *entry, int key);
/* The bytes that an entry stored under a value id; the caller frees them. */
uint8_t *stored_bytes(uint32_t entry, int key, uint32_t *size);
int bytes_are_stored(llvs_bytes bytes, uint32_t entry, int key);

/*
 * Checks the values `prevailing` at a merge of two. Returns NULL, with the merge's state in `state`, or what is wrong.
 */
const char *merged_state(const struct ledger_entry *a, const struct ledger_entry *b, const uint32_t prevailing[KEYS], uint32_t state[KEYS]);

#endif

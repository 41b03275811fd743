/*
 * What many workers asked of one store, and what it answered: kept outside of the store, in memory that threads and
 * processes share and that outlives those that are killed. Every version has its whole state here, so that any reader can
 * say what exactly a read of it must give. The bytes of values are functions of the version that stored them and of the id.
 *
 * A worker builds on what descends from its own last version only, and each has a value id that nobody else changes: so
 * it is known what a merge makes of that one. Of the other ids it is known that a merge takes one of its two sides.
 */
#ifndef CONCURRENCY_LEDGER_H
#define CONCURRENCY_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "llvs.h"

enum { PRIVATE_KEYS = 64, SHARED_KEYS = 12, KEYS = PRIVATE_KEYS + SHARED_KEYS, ID_ROOM = 40, LEDGER_MAX = 400000 };
/* On the number of an entry in a state: that one removed the value. */
#define REMOVED 0x80000000u

/* What a broken library, or a broken disk, would do. Planted (--planted), each of these must be noticed. */
enum plant {
    NO_PLANT,
    READS_SOMETHING_ELSE,
    LOSES_A_VERSION,
    MAKES_ONE_UP,         /* a version that nobody asked for */
    MERGES_WRONGLY,
    SPOILS_A_BYTE,
    LEAVES_A_FILE_OUT,    /* of a copy */
    GIVES_ANOTHER_REASON, /* why a call is refused */
    REFUSES_NOTHING,      /* what does not fit is acknowledged */
    TRAPS,
    LOOPS
};
extern enum plant planted;

enum phase { PHASE_FREE, PHASE_ASKED, PHASE_ACKNOWLEDGED };
/* A version. Entry 0 is none. */
struct ledger_entry {
    uint32_t phase;
    uint32_t is_merge;
    uint32_t world;           /* in which store it is; see ledger_sees */
    uint32_t predecessors[2]; /* entries; 0: none. Of a merge in any order */
    char id[ID_ROOM];         /* of a merge that is not acknowledged: empty */
    uint32_t state[KEYS];     /* for each value id the entry that changed it last; 0: nobody yet */
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
    uint32_t count;        /* entries taken, entry 0 included */
    uint32_t acknowledged; /* of `order` */
    int is_united;
    long operations;
    long tallies[TALLIES];
    int has_failed;
    char failure[2048];
    uint32_t order[LEDGER_MAX]; /* entries as they were acknowledged; 0: in a moment */
    struct ledger_entry entries[LEDGER_MAX];
};
extern struct ledger *ledger;

/* Shared with children. Once per process; ledger_clear for each test. */
void ledger_make(void);
void ledger_clear(void);
/* The versions, for another store; what was counted and what failed is kept. */
void ledger_forget(void);
void ledger_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int ledger_has_failed(void);
void tally(enum tally what, long by);

/*
 * Where there are two stores that were one: in which of them a version is. World 0 is in all; 1 and 2 are what was made in
 * one of them, and in all as soon as they are united; what is made in the end is only there, beyond WORLD_ENDS.
 */
enum { WORLD_ENDS = 8 };
int ledger_sees(uint32_t world, const struct ledger_entry *entry);
/* A new entry that descends from `base` (0: from nothing), and is like it so far. */
struct ledger_entry *ledger_ask(uint32_t base, uint32_t world);
void ledger_acknowledge(struct ledger_entry *entry);
uint32_t number_of(const struct ledger_entry *entry);
/* One that was acknowledged and is in that world; 0 when none was found. */
uint32_t ledger_pick(uint64_t *random, uint32_t world);
/* Of an id as `ledger_ask` makes them: the entry; 0: it is none. */
uint32_t entry_of_id(llvs_bytes id);

/* "mine/<number>" or "ours/<number>"; `key_of_id` gives KEYS for others. */
const char *key_name(int key);
int key_of_id(llvs_bytes id);
/* The entry that stored what prevails, 0 when nothing does. */
uint32_t stored_in(const struct ledger_entry *entry, int key);
/* What an entry stored under a value id, to be freed. */
uint8_t *stored_bytes(uint32_t entry, int key, uint32_t *size);
int bytes_are_stored(llvs_bytes bytes, uint32_t entry, int key);

/*
 * `prevailing`, as seen at a merge of two: NULL and the merge's state in `state`, or what is wrong.
 */
const char *merged_state(const struct ledger_entry *a, const struct ledger_entry *b, const uint32_t prevailing[KEYS], uint32_t state[KEYS]);

#endif

/*
 * A user of a store who writes into the book what was asked and what was answered, and who goes on after an error: once
 * the cause is gone, the same handle must do what it refused.
 */
#ifndef FAULTS_CLIENT_H
#define FAULTS_CLIENT_H

#include "book.h"

/* What a broken library would do. Planted (--planted), each of these must be noticed. */
enum plant {
    NO_PLANT,
    ACKNOWLEDGES_EARLY,
    LOSES_THE_LAST,       /* the version that was made last is not in the history */
    READS_SOMETHING_ELSE,
    SPOILS_A_BYTE,
    GIVES_NO_REASON,      /* an error that says nothing */
    DOES_WHAT_IT_REFUSED,
    TRAPS,
    LOOPS
};
extern enum plant planted;

/* Where a workload works. */
struct work {
    const char *root;           /* the folder in which all is */
    llvs_storage_kind storage;
    llvs_durability durability; /* of clients that do not say otherwise */
    int expects_faults;         /* errors are to be expected, until `faults_stop` */
};

struct client {
    const struct work *work;
    llvs_store *store;
    llvs_durability durability;
    int handle; /* number in the book */
    char *path;
};

/* A change for client_make: put(...) or drop(...); the last one is `no_change`. */
struct change_spec put(const char *key, uint64_t seed, uint32_t size);
struct change_spec drop(const char *key);
#define no_change ((struct change_spec){"", 0, 0, 0})

/* `name`: of the store within the work's root. */
struct client client_open(const struct work *work, const char *name, llvs_durability durability);
/* Closes. With the last handle closed, all is safe from a power cut. */
void client_close(struct client *client);
/* Everything acknowledged is read through this very handle. */
void client_expect_all(struct client *client);

/* A version of up to SPEC_CHANGES changes. `predecessor`: NULL for a root. */
void client_make(struct client *client, const char *id, const char *predecessor, struct change_spec a, struct change_spec b,
                 struct change_spec c);
/* The same with an id that the store computes, which `into` receives, ID_SIZE bytes; empty if the version was not made. */
void client_save(struct client *client, const char *predecessor, struct change_spec a, struct change_spec b, char *into);
/* Merges two versions that do not conflict. `into`, ID_SIZE bytes, receives the new id. */
void client_merge(struct client *client, const char *ours, const char *theirs, char *into);
/* Retrieves from, and sends to, the exchange folder of that name within the root. */
void client_retrieve(struct client *client, const char *folder);
/* As client_retrieve, and reads all of the store: what is damaged is repaired. */
void client_repair(struct client *client, const char *folder);
void client_send(struct client *client, const char *folder);
void client_write_snapshot(struct client *client, const char *folder);
void client_restore_snapshot(struct client *client, const char *folder);

/* Notes an error, and takes away its cause; or fails the test when none was to be expected. */
void client_met(const struct work *work, const char *doing, llvs_status status, llvs_error *error);

#endif

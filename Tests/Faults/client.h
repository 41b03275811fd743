/*
 * A user of a store, which records in the book what was requested and answered, and continues after an error. Once the cause is gone, the
 * same handle must do what it refused.
 */
#ifndef FAULTS_CLIENT_H
#define FAULTS_CLIENT_H

#include "book.h"

/* Faults of a broken library. Each must be noticed when it is planted (--planted). */
enum plant {
    NO_PLANT,
    ACKNOWLEDGES_EARLY,
    LOSES_THE_LAST,       /* the version that was made last is missing from the history */
    READS_SOMETHING_ELSE,
    SPOILS_A_BYTE,
    GIVES_NO_REASON,      /* an error without a message */
    DOES_WHAT_IT_REFUSED,
    TRAPS,
    LOOPS
};
extern enum plant planted;

/* Where a workload runs. */
struct work {
    const char *root;           /* the folder with everything */
    llvs_storage_kind storage;
    llvs_durability durability; /* the default of clients */
    int expects_faults;         /* whether errors are expected, until `faults_stop` */
};

struct client {
    const struct work *work;
    llvs_store *store;
    llvs_durability durability;
    int handle; /* its number in the book */
    char *path;
};

/* A change for client_make: put(...) or drop(...); the last one is `no_change`. */
struct change_spec put(const char *key, uint64_t seed, uint32_t size);
struct change_spec drop(const char *key);
#define no_change ((struct change_spec){"", 0, 0, 0})

/* `name`: the name of the store within the work's root. */
struct client client_open(const struct work *work, const char *name, llvs_durability durability);
/* Closes the store. When the last handle is closed, everything is safe from a power cut. */
void client_close(struct client *client);
/* Reads all acknowledged versions through this handle. */
void client_expect_all(struct client *client);

/* Makes a version of up to SPEC_CHANGES changes. `predecessor`: NULL for a root. */
void client_make(struct client *client, const char *id, const char *predecessor, struct change_spec a, struct change_spec b,
                 struct change_spec c);
/* Makes a version with an id that the store computes. `into`, ID_SIZE bytes, receives the id; empty if the version was not made. */
void client_save(struct client *client, const char *predecessor, struct change_spec a, struct change_spec b, char *into);
/* Erases all values of a key that begins with ERASABLE. `a`, `b`: those that were put there. */
void client_erase(struct client *client, const char *key, struct change_spec a, struct change_spec b);
void client_set_forgetting(struct client *client, const char *policy);
/* Forgets what the policy does not keep, `gone` among it. */
void client_forget(struct client *client, struct change_spec gone);
/* Merges two versions that do not conflict. `into`, ID_SIZE bytes, receives the new id. */
void client_merge(struct client *client, const char *ours, const char *theirs, char *into);
/* Retrieves from, and sends to, the exchange folder of that name within the root. */
void client_retrieve(struct client *client, const char *folder);
/* Like client_retrieve, but reads the whole store, so that damaged versions are repaired. */
void client_repair(struct client *client, const char *folder);
void client_send(struct client *client, const char *folder);
void client_write_snapshot(struct client *client, const char *folder);
void client_restore_snapshot(struct client *client, const char *folder);

/* Records an error and removes its cause, or fails the test if no error was expected. */
void client_met(const struct work *work, const char *doing, llvs_status status, llvs_error *error);

#endif

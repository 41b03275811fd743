/* The subjects of damage: small stores, exchange folders and snapshots as trees of files, and their true contents. */
#ifndef DAMAGE_SUBJECTS_H
#define DAMAGE_SUBJECTS_H

#include "files.h"
#include "llvs.h"

enum { NAME_SIZE = 64 };
/* A version, with a digest of everything that can be read at it. */
struct fact {
    char id[NAME_SIZE];
    uint32_t predecessor_count;
    char predecessors[2][NAME_SIZE];
    double timestamp;
    uint64_t metadata; /* a digest */
    uint64_t state;    /* a digest */
};
struct truth {
    size_t count;
    struct fact *facts;
    /* The sorted digests of all pairs of a value id and bytes that any version shows. */
    size_t value_count;
    uint64_t *values;
};

enum subject_kind { A_STORE, AN_EXCHANGE, A_SNAPSHOT };
struct subject {
    const char *name;
    enum subject_kind kind;
    llvs_storage_kind storage;  /* of a store */
    const char *damaged;        /* files are damaged if their path contains it; NULL: all */
    int caches_only;            /* damaged files are not needed: everything exists nevertheless */
    uint64_t dense;             /* every offset is tried in so many bytes at the beginning and the end of a file */
    uint64_t stride;            /* one in so many of the other offsets; 1: all */
    int is_large;               /* for the long version only */
    void (*make)(const char *folder, uint64_t seed);
    /* Made by `subject_prepare`. */
    struct tree tree;
    struct truth truth;
};
extern struct subject subjects[];
extern const int subject_count;

/* Makes the tree in `folder`, which is empty, and reads the truth from an undamaged store. */
void subject_prepare(struct subject *subject, const char *folder, uint64_t seed);

/* Ends the test if a call failed that has nothing to do with the damage. */
void must(const char *doing, llvs_status status, llvs_error *error);

/* A digest of everything that prevails at a version. Passes each pair of id and bytes to `each`, unless that is NULL. */
typedef void (*each_value)(void *payload, uint64_t pair);
llvs_status read_state(llvs_store *store, llvs_bytes version, uint64_t *digest, each_value each, void *payload, llvs_error **error);
uint64_t metadata_digest(const llvs_version_info *version);
const struct fact *truth_of(const struct truth *truth, llvs_bytes id);
int is_a_value(const struct truth *truth, uint64_t pair);

#endif

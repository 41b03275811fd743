/* What is damaged: small stores, exchange folders and snapshots, as trees of files, and what is true of them. */
#ifndef DAMAGE_SUBJECTS_H
#define DAMAGE_SUBJECTS_H

#include "files.h"
#include "llvs.h"

enum { NAME_SIZE = 64 };
/* What a version is, and a digest of all that can be read at it. */
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
    /* Digests of all pairs of a value id and bytes that a version shows; sorted. */
    size_t value_count;
    uint64_t *values;
};

enum subject_kind { A_STORE, AN_EXCHANGE, A_SNAPSHOT };
struct subject {
    const char *name;
    enum subject_kind kind;
    llvs_storage_kind storage;  /* of a store */
    const char *damaged;        /* the part of the paths of the files that are damaged; NULL: all */
    int caches_only;            /* what is damaged is not needed: everything is there all the same */
    uint64_t dense;             /* bytes at the beginning and the end of a file whose every offset has its turn */
    uint64_t stride;            /* of the other offsets; 1: all */
    int is_large;               /* for the long version only */
    void (*make)(const char *folder, uint64_t seed);
    /* Made by `subject_prepare`. */
    struct tree tree;
    struct truth truth;
};
extern struct subject subjects[];
extern const int subject_count;

/* Makes the tree in `folder`, which is empty, and learns the truth of it from an undamaged store. */
void subject_prepare(struct subject *subject, const char *folder, uint64_t seed);

/* Ends the test: it says nothing of the library. */
void must(const char *doing, llvs_status status, llvs_error *error);

/* A digest of what prevails at a version. Each pair of id and bytes is handed to `each`, when that is not NULL. */
typedef void (*each_value)(void *payload, uint64_t pair);
llvs_status read_state(llvs_store *store, llvs_bytes version, uint64_t *digest, each_value each, void *payload, llvs_error **error);
uint64_t metadata_digest(const llvs_version_info *version);
const struct fact *truth_of(const struct truth *truth, llvs_bytes id);
int is_a_value(const struct truth *truth, uint64_t pair);

#endif

/* Whether what the library makes of a damaged subject is the truth, or the whole truth told otherwise. */
#ifndef DAMAGE_JUDGE_H
#define DAMAGE_JUDGE_H

#include "subjects.h"

enum outcome {
    DAMAGES,          /* bytes damaged, each in its own run */
    HARMLESS,         /* everything is there, and nothing had to be told */
    TOLD,             /* everything is there, and the damage was told */
    LOST,             /* versions or values cannot be read, and that was told */
    EARLIER,          /* a database as it was at an earlier commit: nobody can tell */
    REFUSED,          /* could not be opened, and said why */
    VERSIONS_LOST,    /* versions that could not be read, in all */
    VERSIONS_NAMED,   /* of these, named by the report */
    VERSIONS_WAITING, /* versions that were not there since what they build on was not */
    WORKED_ON,        /* stores that versions were added to */
    SALVAGES,
    SALVAGED_VERSIONS,/* versions in the new stores as they were, in all */
    MADE,             /* versions that salvages made */
    RESCUED,          /* versions that could not be read, and were salvaged as they were */
    SENT_AGAIN,       /* exchange folders that the sender completed */
    OUTCOMES
};
extern const char *const outcome_names[OUTCOMES];
extern long *outcomes; /* shared */
void outcome(enum outcome outcome, long by);

/* What a broken library would do. Planted, each of these must be noticed. */
enum plant {
    NO_PLANT,
    READS_WRONG_BYTES, /* of what is damaged it reads something else */
    TELLS_NOTHING,     /* of what is lost it tells nothing, and calls it a success */
    LOSES_A_VERSION,   /* one version is not there, whatever is damaged */
    SALVAGES_TOO_LITTLE,
    REFUSES_TO_OPEN,
    TRAPS,
    LOOPS,
    HANGS,
    EATS_MEMORY,
    PLANTS
};
extern const char *const plant_names[PLANTS];
extern enum plant plant;

/*
 * Judges the subject as it lies in `folder`. `turn` chooses what is done besides reading: every few turns the store is worked
 * with, and salvaged. `earlier`: the log of a database was cut short, which may make it a whole one of an earlier time. 0, or 1 with what
 * is wrong in `message`.
 */
int judge(const struct subject *subject, const char *folder, uint64_t turn, int earlier, char *message, size_t message_size);

#endif

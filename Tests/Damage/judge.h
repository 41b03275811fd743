/* Decides whether what the library makes of a damaged subject is true, and whether it reports what is missing. */
#ifndef DAMAGE_JUDGE_H
#define DAMAGE_JUDGE_H

#include "subjects.h"

enum outcome {
    DAMAGES,          /* damages that were tried, each in a run of its own */
    HARMLESS,         /* everything exists, and nothing needed to be reported */
    TOLD,             /* everything exists, and the damage was reported */
    LOST,             /* versions or values cannot be read, and that was reported */
    EARLIER,          /* a database as it was at an earlier commit, which cannot be noticed */
    REFUSED,          /* could not be opened, with a reason */
    VERSIONS_LOST,    /* the sum of versions that could not be read */
    VERSIONS_NAMED,   /* of these, named by the report */
    VERSIONS_WAITING, /* versions that were absent because an ancestor was */
    WORKED_ON,        /* stores to which versions were added */
    SALVAGES,
    SALVAGED_VERSIONS,/* the sum of unchanged versions in the new stores */
    MADE,             /* versions that salvages made */
    RESCUED,          /* versions that could not be read, but were salvaged unchanged */
    SENT_AGAIN,       /* exchange folders that the sender completed */
    OUTCOMES
};
extern const char *const outcome_names[OUTCOMES];
extern long *outcomes; /* shared between processes */
void outcome(enum outcome outcome, long by);

/* Faults of a broken library. Each must be noticed when it is planted. */
enum plant {
    NO_PLANT,
    READS_WRONG_BYTES, /* it reads something else instead of what is damaged */
    TELLS_NOTHING,     /* it reports no losses, and returns success */
    LOSES_A_VERSION,   /* one version is absent, whatever is damaged */
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
 * Judges the subject in `folder`. `turn` selects what is done besides reading: every few turns the store is written to, and salvaged.
 * `earlier`: the log of a database was truncated, which may make it a whole database of an earlier time. Returns 0, or 1 with the reason in
 * `message`.
 */
int judge(const struct subject *subject, const char *folder, uint64_t turn, int earlier, char *message, size_t message_size);

#endif

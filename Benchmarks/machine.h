/* Describes the machine that the figures are from, and measures whether other programs run on it. */
#ifndef BENCHMARKS_MACHINE_H
#define BENCHMARKS_MACHINE_H

#include <stdio.h>

/* Prints processor, memory, kernel and the file system of the folder; also as JSON, if `json` is given. */
void describe_machine(const char *folder, FILE *json);

/* A moment from which `share_of_others` counts. */
typedef struct moment {
    double seconds, busy, ours;
} moment;
moment moment_now(void);
/*
 * Returns the share of all processors that other programs used since then, 0 to 1. This program and the programs that it started do not
 * count.
 */
double share_of_others(moment since);
/* Waits a second, and warns if other programs run meanwhile. */
void warn_of_others(void);

/* If other processes use more than this share of the processor, the figures are doubtful. */
#define SHARE_TOLERATED 0.1

#endif

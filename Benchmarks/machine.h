/* The machine that the figures are from, and whether anything else runs on it. */
#ifndef BENCHMARKS_MACHINE_H
#define BENCHMARKS_MACHINE_H

#include <stdio.h>

/* Prints processor, memory, kernel and the file system of the folder; as JSON, too, when there is a file for it. */
void describe_machine(const char *folder, FILE *json);

/* A moment from which `share_of_others` counts. */
typedef struct moment {
    double seconds, busy, ours;
} moment;
moment moment_now(void);
/* How much of all processors others than this program and those that it started took since: 0 to 1. */
double share_of_others(moment since);
/* Waits a second and warns when others run meanwhile. */
void warn_of_others(void);

/* If other processes use more than this share of the processor, the figures are doubtful. */
#define SHARE_TOLERATED 0.1

#endif

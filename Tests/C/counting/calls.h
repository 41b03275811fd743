/*
 * Counts of the system calls by which a program reads, writes and syncs files, whoever in the process makes them.
 * A program that is linked with calls.c has these calls replaced, in all libraries that it is linked to.
 */
#ifndef LLVS_COUNTING_CALLS_H
#define LLVS_COUNTING_CALLS_H

#include <stdint.h>

typedef struct call_counts {
    uint64_t opens;         /* of files and directories, also those that failed */
    uint64_t reads;         /* calls, not of standard input */
    uint64_t bytes_read;
    uint64_t writes;        /* calls, not to standard output and error */
    uint64_t bytes_written;
    uint64_t syncs;         /* fsync, fdatasync, syncfs, sync_file_range, msync */
    uint64_t mappings;      /* of files */
} call_counts;

/* Since the process began. Any thread. */
call_counts calls_counted(void);

#endif

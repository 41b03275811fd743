/*
 * Counts of the system calls with which any code in the process reads, writes and syncs files. In a program that is linked with calls.c,
 * these calls are replaced, in all libraries that it is linked to.
 */
#ifndef LLVS_COUNTING_CALLS_H
#define LLVS_COUNTING_CALLS_H

#include <stdint.h>

typedef struct call_counts {
    uint64_t opens;         /* of files and directories, including those that failed */
    uint64_t reads;         /* calls, without those on standard input */
    uint64_t bytes_read;
    uint64_t writes;        /* calls, without those on standard output and error */
    uint64_t bytes_written;
    uint64_t syncs;         /* fsync, fdatasync, syncfs, sync_file_range, msync */
    uint64_t mappings;      /* of files */
} call_counts;

/* The counts since the process began. May be called by any thread. */
call_counts calls_counted(void);

#endif

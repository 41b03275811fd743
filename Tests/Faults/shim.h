/*
 * Intercepts the system calls of the library, and of the SQLite that it uses: counts them, kills the process at them, makes them fail,
 * shortens them, records them.
 *
 * The functions of shim.c have the names of the C library's. In a program that is linked with them they precede it in the search for
 * symbols, so libllvs.so and libsqlite3 call these. (As a shared library they could be preloaded, but a program that forks a child for each
 * fault is faster than one that is executed for each fault.) Calls that concern files below `root` are watched while `on`; all others are
 * passed on unchanged.
 */
#ifndef FAULTS_SHIM_H
#define FAULTS_SHIM_H

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of calls, to be combined. */
enum {
    CALL_OPEN = 1 << 0,     /* of an existing file */
    CALL_CREATE = 1 << 1,   /* open with O_CREAT */
    CALL_READ = 1 << 2,
    CALL_WRITE = 1 << 3,
    CALL_SYNC = 1 << 4,     /* fsync, fdatasync, syncfs, sync_file_range */
    CALL_RENAME = 1 << 5,   /* and link */
    CALL_UNLINK = 1 << 6,   /* and rmdir */
    CALL_TRUNCATE = 1 << 7,
    CALL_MKDIR = 1 << 8,
    CALL_LOCK = 1 << 9,     /* flock, and fcntl's */
    CALL_LIST = 1 << 10,    /* opendir, readdir */
    CALL_LOOK = 1 << 11,    /* stat and related calls, access */
    CALL_CLOSE = 1 << 12,
    CALL_MAP = 1 << 13,
    CALL_KINDS = 14,
    /* Calls that change something on the medium. */
    CALLS_CHANGING = CALL_CREATE | CALL_WRITE | CALL_SYNC | CALL_RENAME | CALL_UNLINK | CALL_TRUNCATE | CALL_MKDIR,
    CALLS_ALL = (1 << CALL_KINDS) - 1
};
const char *call_name(unsigned kind);

enum fault_action {
    FAULT_NONE,
    FAULT_KILL_BEFORE,
    FAULT_KILL_WITHIN, /* a write: after a part of it was done */
    FAULT_KILL_AFTER,
    FAULT_FAIL,        /* with `error`, and without effect */
    FAULT_SHORT        /* a read or write moves only a part */
};

/* A recorded call that changed something. Bytes and paths are in `log_bytes`. */
enum op_kind { OP_CREATE, OP_MKDIR, OP_WRITE, OP_TRUNCATE, OP_SYNC, OP_SYNC_ALL, OP_RENAME, OP_LINK, OP_UNLINK };
struct op {
    enum op_kind kind;
    int failed;          /* OP_SYNC, OP_SYNC_ALL: it failed, so the system may have dropped pending writes */
    uint64_t inode;      /* CREATE, MKDIR, WRITE, TRUNCATE, SYNC */
    uint64_t offset;     /* WRITE; TRUNCATE: the new size */
    uint64_t size;       /* WRITE */
    uint64_t bytes;      /* WRITE: where its data is */
    uint64_t path, to;   /* CREATE, MKDIR, RENAME, LINK, UNLINK: where the path is; relative to `root` */
};

/* A traced call: its kind, and a digest of the sort of file (digits and ids in names do not count) and of the size of a write. */
struct traced { unsigned kind; uint32_t sort; };

enum { LOG_OPS_MAX = 1 << 17, TRACE_MAX = 1 << 17 };
#define LOG_BYTES_MAX ((uint64_t)256 << 20)

/* Shared between a test and the children that it forks. */
struct faults {
    pthread_mutex_t lock;
    /* The watched folder: absolute, without a slash at its end. */
    char root[512];
    int on;
    /* The fault, and the number of the watched call of these kinds at which it happens, counting from 1. */
    enum fault_action action;
    unsigned kinds;
    long at;
    /* FAULT_FAIL, FAULT_SHORT: the number of calls in a row that are affected. LONG_MAX: until `faults_stop`. */
    long times;
    int error;
    /* FAULT_KILL_WITHIN: the part of the write that is done; FAULT_SHORT: the most bytes that are done, 0: half. */
    int part;
    /* What happened so far. */
    long seen;
    long fired;
    unsigned fired_kind;
    char fired_path[512];
    size_t fired_size;
    long count[CALL_KINDS];
    /* Tracing: the calls of `kinds` in their order. */
    int tracing;
    long trace_count;
    struct traced *trace;
    /* Recording. */
    int recording;
    int overflow;
    long op_count;
    uint64_t byte_count;
    struct op *ops;
    uint8_t *log_bytes;
};
extern struct faults *faults;

/* The number of parts into which FAULT_KILL_WITHIN divides a write. */
enum { WRITE_PARTS = 4 };

/* Makes `faults`, which watches nothing yet, with room for a recording if requested. Call once in each test process. */
void faults_make(int recording);
/* Clears all counts and the recording, and watches `root` without causing faults. */
void faults_watch(const char *root);
/* Sets the fault that is to happen. Counting restarts. */
void faults_plan(enum fault_action action, unsigned kinds, long at);
/* From now on calls of these kinds are traced, without faults. */
void faults_trace(unsigned kinds);
/* The cause is gone, and nothing is traced: from now on calls are passed on unchanged. */
void faults_stop(void);

#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "shim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct faults *faults;

/* The descriptors and directory streams of watched files in this process. */
enum { DESCRIPTORS = 65536, STREAMS = 64 };
static unsigned char watched[DESCRIPTORS];
/* Descriptors of a file whose sync failed through another descriptor. Linux reports the error once to each that was open then. */
static unsigned char owes_error[DESCRIPTORS];
static DIR *streams[STREAMS];

/* The next function of that name, which is the C library's. */
static void *next(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) {
        fprintf(stderr, "there is no %s\n", name);
        abort();
    }
    return function;
}
#define REAL(result, name, parameters)       \
    static result(*real) parameters;         \
    do {                                     \
        if (!real) *(void **)&real = next(#name); \
    } while (0)

const char *call_name(unsigned kind) {
    static const char *const names[CALL_KINDS] = { "open",     "create", "read", "write", "sync", "rename", "unlink",
                                                   "truncate", "mkdir",  "lock", "list",  "look", "close",  "map" };
    for (int i = 0; i < CALL_KINDS; i++) if (kind == 1u << i) return names[i];
    return "none";
}

/* ---- Control ---- */

static void *shared(uint64_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

void faults_make(int recording) {
    pthread_mutexattr_t attributes;
    struct faults *new = shared(sizeof *new);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&new->lock, &attributes);
    new->trace = shared(sizeof(struct traced) * TRACE_MAX);
    if (recording) {
        new->ops = shared(sizeof(struct op) * LOG_OPS_MAX);
        new->log_bytes = shared(LOG_BYTES_MAX);
    }
    faults = new;
}

void faults_watch(const char *root) {
    snprintf(faults->root, sizeof faults->root, "%s", root);
    memset(faults->count, 0, sizeof faults->count);
    faults->action = FAULT_NONE;
    faults->kinds = CALLS_ALL;
    faults->at = faults->seen = faults->fired = 0;
    faults->times = 1;
    faults->error = faults->part = 0;
    faults->fired_kind = 0;
    faults->fired_path[0] = 0;
    faults->overflow = 0;
    faults->op_count = 0;
    faults->byte_count = 1; /* 0 means no place */
    faults->recording = 0;
    faults->tracing = 0;
    faults->trace_count = 0;
    faults->on = 1;
}

void faults_plan(enum fault_action action, unsigned kinds, long at) {
    faults->action = action;
    faults->kinds = kinds;
    faults->at = at;
    faults->seen = 0;
}

void faults_trace(unsigned kinds) {
    faults_plan(FAULT_NONE, kinds, 0);
    faults->trace_count = 0;
    faults->tracing = 1;
}

void faults_stop(void) {
    faults->action = FAULT_NONE;
    faults->tracing = 0;
}

/* ---- One call ---- */

struct call {
    int looked_at; /* the lock is held */
    int fails;
    int is_short;
    int dies_within;
    int dies_after;
};

static const char *relative(const char *path) {
    size_t size;
    if (!path) return NULL;
    size = strlen(faults->root);
    if (strncmp(path, faults->root, size) != 0) return NULL;
    if (path[size] == 0) return "";
    return path[size] == '/' ? path + size + 1 : NULL;
}
static int is_watched(const char *path) { return faults && faults->on && relative(path) != NULL; }
static int is_watched_descriptor(int fd) { return faults && faults->on && fd >= 0 && fd < DESCRIPTORS && watched[fd]; }

static void die(void) {
    /* Calls of other processes continue. */
    pthread_mutex_unlock(&faults->lock);
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* The path of a call's file: relative to the root, or absolute if it is elsewhere. */
static void name_of(const char *path, int fd, char *name, size_t size) {
    char link[64], target[512];
    ssize_t length;
    if (path) {
        snprintf(name, size, "%s", relative(path));
        return;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    snprintf(name, size, "%s", relative(target) ? relative(target) : target);
}

static void trace(unsigned kind, const char *path, int fd, size_t size) {
    struct traced *traced;
    char name[512];
    uint32_t sort = 2166136261u;
    if (faults->trace_count++ >= TRACE_MAX) return;
    traced = &faults->trace[faults->trace_count - 1];
    name_of(path, fd, name, sizeof name);
    for (const char *c = name; *c; c++) {
        /* Digits and ids do not count. */
        if ((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'f') || (*c >= 'A' && *c <= 'F') || *c == '-') continue;
        sort = (sort ^ (uint32_t)*c) * 16777619u;
    }
    for (; size > 0; size /= 8) sort = (sort ^ 1) * 16777619u;
    traced->kind = kind;
    traced->sort = sort;
}

static struct call begin(int is_ours, unsigned kind, const char *path, int fd, size_t size) {
    struct call call = {0, 0, 0, 0, 0};
    if (!is_ours) return call;
    pthread_mutex_lock(&faults->lock);
    call.looked_at = 1;
    for (int i = 0; i < CALL_KINDS; i++) if (kind == 1u << i) faults->count[i]++;
    if (!(kind & faults->kinds)) return call;
    faults->seen++;
    if (faults->tracing) trace(kind, path, fd, size);
    if (faults->action == FAULT_NONE || faults->seen < faults->at || faults->seen - faults->at >= faults->times) return call;
    if (faults->action == FAULT_SHORT && (!(kind & (CALL_READ | CALL_WRITE)) || size < 2)) return call;
    faults->fired++;
    if (faults->fired == 1) {
        faults->fired_kind = kind;
        faults->fired_size = size;
        name_of(path, fd, faults->fired_path, sizeof faults->fired_path);
    }
    switch (faults->action) {
    case FAULT_KILL_BEFORE: die(); break;
    case FAULT_KILL_WITHIN: call.dies_within = 1; break;
    case FAULT_KILL_AFTER: call.dies_after = 1; break;
    case FAULT_FAIL: call.fails = 1; break;
    case FAULT_SHORT: call.is_short = 1; break;
    case FAULT_NONE: break;
    }
    return call;
}

static void end(struct call call) {
    int kept = errno;
    if (!call.looked_at) return;
    if (call.dies_after || call.dies_within) die();
    pthread_mutex_unlock(&faults->lock);
    errno = kept;
}

/* The result of a failing call. */
static int failed(struct call call) {
    end(call);
    errno = faults->error;
    return -1;
}

/* The part of a read or write that is done. */
static size_t part_of(struct call call, size_t size) {
    if (call.is_short) return faults->part > 0 ? ((size_t)faults->part < size ? (size_t)faults->part : size) : (size + 1) / 2;
    if (!call.dies_within) return size;
    switch (faults->part) {
    case 0: return size > 0;
    case 1: return size / 2;
    case 2: return size > 512 ? (size - 1) / 512 * 512 : size / 3;
    default: return size > 0 ? size - 1 : 0;
    }
}

/* ---- Recording ---- */

static uint64_t keep(const void *bytes, uint64_t size) {
    uint64_t at = faults->byte_count;
    if (size > LOG_BYTES_MAX - at) {
        faults->overflow = 1;
        return 0;
    }
    memcpy(faults->log_bytes + at, bytes, size);
    faults->byte_count += size;
    return at;
}
static uint64_t keep_path(const char *path) {
    const char *inside = relative(path);
    if (!inside) inside = "";
    return keep(inside, strlen(inside) + 1);
}
static struct op *record(struct call call, enum op_kind kind) {
    struct op *op;
    if (!call.looked_at || !faults->recording) return NULL;
    if (faults->op_count == LOG_OPS_MAX) {
        faults->overflow = 1;
        return NULL;
    }
    op = &faults->ops[faults->op_count++];
    memset(op, 0, sizeof *op);
    op->kind = kind;
    return op;
}
static uint64_t inode_of(int fd) {
    struct stat status;
    int kept = errno;
    uint64_t inode = fstat(fd, &status) == 0 ? (uint64_t)status.st_ino : 0;
    errno = kept;
    return inode;
}
static uint64_t inode_at(const char *path) {
    struct stat status;
    int kept = errno;
    uint64_t inode = lstat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
    errno = kept;
    return inode;
}
static void record_path(struct call call, enum op_kind kind, const char *path, const char *to, uint64_t inode) {
    struct op *op = record(call, kind);
    if (!op) return;
    op->path = keep_path(path);
    if (to) op->to = keep_path(to);
    op->inode = inode;
}
static void record_write(struct call call, int fd, const void *bytes, size_t size, off_t offset) {
    struct op *op = record(call, OP_WRITE);
    if (!op) return;
    op->inode = inode_of(fd);
    op->offset = (uint64_t)offset;
    op->size = size;
    op->bytes = keep(bytes, size);
}
static void record_truncate(struct call call, int fd, off_t size) {
    struct op *op = record(call, OP_TRUNCATE);
    if (!op) return;
    op->inode = inode_of(fd);
    op->offset = (uint64_t)size;
}
static void record_sync(struct call call, enum op_kind kind, int fd, int is_failure) {
    struct op *op = record(call, kind);
    if (!op) return;
    op->inode = inode_of(fd);
    op->failed = is_failure;
}

/* ---- The calls ---- */

/* The path of a name in an open directory, since watched files are recognised by their paths. "." is the directory itself. */
struct place { char path[4096]; };
static const char *path_of(int directory, const char *name, struct place *place) {
    char link[64];
    ssize_t size;
    int kept = errno;
    if (!name || name[0] == '/' || directory == AT_FDCWD) return name;
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    size = readlink(link, place->path, sizeof place->path / 2);
    errno = kept;
    if (size < 0) return name;
    place->path[size] = 0;
    if (strcmp(name, ".") != 0) snprintf(place->path + size, sizeof place->path - (size_t)size, "/%s", name);
    return place->path;
}

static int opened(const char *name, int flags, mode_t mode, int at, int (*real)(int, const char *, int, ...)) {
    struct place place;
    const char *path = path_of(at, name, &place);
    int is_ours = is_watched(path);
    struct call call = begin(is_ours, flags & O_CREAT ? CALL_CREATE : CALL_OPEN, path, -1, 0);
    int fd, is_new = 0;
    uint64_t before;
    if (call.fails) return failed(call);
    before = call.looked_at && faults->recording ? inode_at(path) : 0;
    fd = real(at, name, flags, mode);
    if (fd >= 0 && fd < DESCRIPTORS) watched[fd] = is_ours != 0;
    if (fd >= 0 && call.looked_at && faults->recording) {
        is_new = (flags & O_CREAT) && before == 0;
        if (is_new) record_path(call, OP_CREATE, path, NULL, inode_of(fd));
        else if (flags & O_TRUNC) record_truncate(call, fd, 0);
    }
    end(call);
    return fd;
}
static mode_t mode_of(int flags, va_list arguments) {
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(arguments, unsigned) : 0;
}

int openat(int at, const char *path, int flags, ...) {
    REAL(int, openat, (int, const char *, int, ...));
    va_list arguments;
    mode_t mode;
    va_start(arguments, flags);
    mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened(path, flags, mode, at, real);
}
int openat64(int at, const char *path, int flags, ...) {
    REAL(int, openat64, (int, const char *, int, ...));
    va_list arguments;
    mode_t mode;
    va_start(arguments, flags);
    mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened(path, flags, mode, at, real);
}
int open(const char *path, int flags, ...) {
    REAL(int, openat, (int, const char *, int, ...));
    va_list arguments;
    mode_t mode;
    va_start(arguments, flags);
    mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened(path, flags, mode, AT_FDCWD, real);
}
int open64(const char *path, int flags, ...) {
    REAL(int, openat64, (int, const char *, int, ...));
    va_list arguments;
    mode_t mode;
    va_start(arguments, flags);
    mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened(path, flags, mode, AT_FDCWD, real);
}
int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
    REAL(int, close, (int));
    struct call call = begin(is_watched_descriptor(fd), CALL_CLOSE, NULL, fd, 0);
    int result;
    if (fd >= 0 && fd < DESCRIPTORS) watched[fd] = owes_error[fd] = 0;
    result = real(fd);
    if (call.fails) return failed(call); /* it is closed nevertheless */
    end(call);
    return result;
}

static ssize_t written(int fd, const void *bytes, size_t size, off_t offset, ssize_t (*real)(int, const void *, size_t, off_t)) {
    struct call call = begin(is_watched_descriptor(fd), CALL_WRITE, NULL, fd, size);
    ssize_t result;
    if (call.fails) return failed(call);
    result = real(fd, bytes, part_of(call, size), offset);
    if (result > 0) record_write(call, fd, bytes, (size_t)result, offset);
    end(call);
    return result;
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    REAL(ssize_t, pwrite, (int, const void *, size_t, off_t));
    return written(fd, bytes, size, offset, real);
}
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
    REAL(ssize_t, pwrite64, (int, const void *, size_t, off64_t));
    return written(fd, bytes, size, offset, real);
}
ssize_t write(int fd, const void *bytes, size_t size) {
    REAL(ssize_t, write, (int, const void *, size_t));
    struct call call = begin(is_watched_descriptor(fd), CALL_WRITE, NULL, fd, size);
    off_t offset;
    ssize_t result;
    if (call.fails) return failed(call);
    offset = call.looked_at ? lseek(fd, 0, SEEK_CUR) : 0;
    result = real(fd, bytes, part_of(call, size));
    if (result > 0) record_write(call, fd, bytes, (size_t)result, offset);
    end(call);
    return result;
}
/* Each piece is a call of its own. */
ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset) {
    ssize_t done = 0;
    for (int i = 0; i < count; i++) {
        ssize_t result = pieces[i].iov_len ? pwrite(fd, pieces[i].iov_base, pieces[i].iov_len, offset + done) : 0;
        if (result < 0) return done > 0 ? done : -1;
        done += result;
        if ((size_t)result < pieces[i].iov_len) break;
    }
    return done;
}
ssize_t pwritev64(int fd, const struct iovec *pieces, int count, off64_t offset) { return pwritev(fd, pieces, count, offset); }
ssize_t writev(int fd, const struct iovec *pieces, int count) {
    ssize_t done = 0;
    for (int i = 0; i < count; i++) {
        ssize_t result = pieces[i].iov_len ? write(fd, pieces[i].iov_base, pieces[i].iov_len) : 0;
        if (result < 0) return done > 0 ? done : -1;
        done += result;
        if ((size_t)result < pieces[i].iov_len) break;
    }
    return done;
}

static ssize_t got(int fd, void *bytes, size_t size, off_t offset, ssize_t (*real)(int, void *, size_t, off_t)) {
    struct call call = begin(is_watched_descriptor(fd), CALL_READ, NULL, fd, size);
    ssize_t result;
    if (call.fails) return failed(call);
    result = real(fd, bytes, part_of(call, size), offset);
    end(call);
    return result;
}
ssize_t pread(int fd, void *bytes, size_t size, off_t offset) {
    REAL(ssize_t, pread, (int, void *, size_t, off_t));
    return got(fd, bytes, size, offset, real);
}
ssize_t pread64(int fd, void *bytes, size_t size, off64_t offset) {
    REAL(ssize_t, pread64, (int, void *, size_t, off64_t));
    return got(fd, bytes, size, offset, real);
}
ssize_t read(int fd, void *bytes, size_t size) {
    REAL(ssize_t, read, (int, void *, size_t));
    struct call call = begin(is_watched_descriptor(fd), CALL_READ, NULL, fd, size);
    ssize_t result;
    if (call.fails) return failed(call);
    result = real(fd, bytes, part_of(call, size));
    end(call);
    return result;
}

/* The real sync is omitted: a killed process does not need it, and a power cut is computed from the recording. */
static void tell_others(int fd) {
    uint64_t inode = inode_of(fd);
    for (int other = 0; other < DESCRIPTORS; other++) if (watched[other] && other != fd && inode_of(other) == inode) owes_error[other] = 1;
}
/* A sync of the whole file system failed after writes to this file. The next sync of the file reports it. */
static int owes_error_of_all(int fd) {
    uint64_t inode;
    int is_written = 0, owes = 0;
    if (!faults->recording) return 0;
    inode = inode_of(fd);
    for (long i = 0; i < faults->op_count; i++) {
        const struct op *op = &faults->ops[i];
        if (op->kind == OP_WRITE && op->inode == inode) is_written = 1;
        else if (op->kind == OP_SYNC && op->inode == inode) is_written = owes = 0;
        else if (op->kind == OP_SYNC_ALL && op->failed) owes |= is_written;
        else if (op->kind == OP_SYNC_ALL) is_written = 0;
    }
    return owes;
}
static int synced(int fd, enum op_kind kind) {
    struct call call = begin(is_watched_descriptor(fd), CALL_SYNC, NULL, fd, 0);
    if (call.fails && kind == OP_SYNC && faults->error == EIO) tell_others(fd);
    if (call.looked_at && kind == OP_SYNC && (owes_error[fd] || owes_error_of_all(fd))) {
        owes_error[fd] = 0;
        record_sync(call, kind, fd, 1);
        end(call);
        errno = EIO;
        return -1;
    }
    if (call.fails) {
        if (faults->error != EINTR) record_sync(call, kind, fd, 1);
        return failed(call);
    }
    if (call.looked_at) record_sync(call, kind, fd, 0);
    end(call);
    return 0;
}
int fsync(int fd) { return synced(fd, OP_SYNC); }
int fdatasync(int fd) { return synced(fd, OP_SYNC); }
int syncfs(int fd) { return synced(fd, OP_SYNC_ALL); }
/* sync_file_range promises nothing for a power cut, so it is not recorded. */
int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags) {
    struct call call = begin(is_watched_descriptor(fd), CALL_SYNC, NULL, fd, 0);
    (void)offset, (void)size, (void)flags;
    if (call.fails) return failed(call);
    end(call);
    return 0;
}

static int truncated(int fd, off_t size, int (*real)(int, off_t)) {
    struct call call = begin(is_watched_descriptor(fd), CALL_TRUNCATE, NULL, fd, 0);
    int result;
    if (call.fails) return failed(call);
    result = real(fd, size);
    if (result == 0) record_truncate(call, fd, size);
    end(call);
    return result;
}
int ftruncate(int fd, off_t size) {
    REAL(int, ftruncate, (int, off_t));
    return truncated(fd, size, real);
}
int ftruncate64(int fd, off64_t size) {
    REAL(int, ftruncate64, (int, off64_t));
    return truncated(fd, size, real);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    REAL(int, renameat, (int, const char *, int, const char *));
    struct place from_place, to_place;
    const char *from_path = path_of(from_directory, from, &from_place), *to_path = path_of(to_directory, to, &to_place);
    struct call call = begin(is_watched(to_path), CALL_RENAME, to_path, -1, 0);
    int result;
    if (call.fails) return failed(call);
    result = real(from_directory, from, to_directory, to);
    if (result == 0) record_path(call, OP_RENAME, from_path, to_path, 0);
    end(call);
    return result;
}
int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }
int link(const char *from, const char *to) {
    REAL(int, link, (const char *, const char *));
    struct call call = begin(is_watched(to), CALL_RENAME, to, -1, 0);
    int result;
    if (call.fails) return failed(call);
    result = real(from, to);
    if (result == 0) record_path(call, OP_LINK, from, to, 0);
    end(call);
    return result;
}
int unlink(const char *path) {
    REAL(int, unlink, (const char *));
    struct call call = begin(is_watched(path), CALL_UNLINK, path, -1, 0);
    int result;
    if (call.fails) return failed(call);
    result = real(path);
    if (result == 0) record_path(call, OP_UNLINK, path, NULL, 0);
    end(call);
    return result;
}
int unlinkat(int directory, const char *name, int flags) {
    REAL(int, unlinkat, (int, const char *, int));
    struct place place;
    const char *path = path_of(directory, name, &place);
    struct call call = begin(is_watched(path), CALL_UNLINK, path, -1, 0);
    int result;
    if (call.fails) return failed(call);
    result = real(directory, name, flags);
    if (result == 0) record_path(call, OP_UNLINK, path, NULL, 0);
    end(call);
    return result;
}
int rmdir(const char *path) {
    REAL(int, rmdir, (const char *));
    struct call call = begin(is_watched(path), CALL_UNLINK, path, -1, 0);
    int result;
    if (call.fails) return failed(call);
    result = real(path);
    if (result == 0) record_path(call, OP_UNLINK, path, NULL, 0);
    end(call);
    return result;
}
int mkdirat(int directory, const char *name, mode_t mode) {
    REAL(int, mkdirat, (int, const char *, mode_t));
    struct place place;
    const char *path = path_of(directory, name, &place);
    struct call call = begin(is_watched(path), CALL_MKDIR, path, -1, 0);
    int result;
    if (call.fails) return failed(call);
    result = real(directory, name, mode);
    if (result == 0) record_path(call, OP_MKDIR, path, NULL, inode_at(path));
    end(call);
    return result;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int flock(int fd, int operation) {
    REAL(int, flock, (int, int));
    struct call call = begin(is_watched_descriptor(fd), CALL_LOCK, NULL, fd, 0);
    int result;
    if (call.fails) return failed(call);
    result = real(fd, operation);
    end(call);
    return result;
}
static int controlled(int fd, int command, void *argument, int (*real)(int, int, ...)) {
    /* Releasing a lock does not fail. */
    int is_lock = (command == F_SETLK || command == F_SETLKW) && ((struct flock *)argument)->l_type != F_UNLCK;
    struct call call = begin(is_lock && is_watched_descriptor(fd), CALL_LOCK, NULL, fd, 0);
    int result;
    if (call.fails) return failed(call);
    result = real(fd, command, argument);
    end(call);
    return result;
}
int fcntl(int fd, int command, ...) {
    REAL(int, fcntl, (int, int, ...));
    va_list arguments;
    void *argument;
    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    return controlled(fd, command, argument, real);
}
int fcntl64(int fd, int command, ...) {
    REAL(int, fcntl64, (int, int, ...));
    va_list arguments;
    void *argument;
    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    return controlled(fd, command, argument, real);
}

#define LOOKING(name, type)                                                          \
    int name(const char *path, type *status) {                                       \
        REAL(int, name, (const char *, type *));                                     \
        struct call call = begin(is_watched(path), CALL_LOOK, path, -1, 0);          \
        int result;                                                                  \
        if (call.fails) return failed(call);                                         \
        result = real(path, status);                                                 \
        end(call);                                                                   \
        return result;                                                               \
    }
LOOKING(stat, struct stat)
LOOKING(stat64, struct stat64)
#undef LOOKING
#define LOOKING_AT(name, type)                                                          \
    int name(int directory, const char *path, type *status, int flags) {                \
        REAL(int, name, (int, const char *, type *, int));                              \
        struct place place;                                                             \
        const char *whole = path_of(directory, path, &place);                           \
        struct call call = begin(is_watched(whole), CALL_LOOK, whole, -1, 0);           \
        int result;                                                                     \
        if (call.fails) return failed(call);                                            \
        result = real(directory, path, status, flags);                                  \
        end(call);                                                                      \
        return result;                                                                  \
    }
LOOKING_AT(fstatat, struct stat)
LOOKING_AT(fstatat64, struct stat64)
#undef LOOKING_AT

int access(const char *path, int mode) {
    REAL(int, access, (const char *, int));
    struct call call = begin(is_watched(path), CALL_LOOK, path, -1, 0);
    int result;
    if (call.fails) return failed(call);
    result = real(path, mode);
    end(call);
    return result;
}

DIR *opendir(const char *path) {
    REAL(DIR *, opendir, (const char *));
    int is_ours = is_watched(path);
    struct call call = begin(is_ours, CALL_LIST, path, -1, 0);
    DIR *stream;
    if (call.fails) {
        failed(call);
        return NULL;
    }
    stream = real(path);
    if (stream && is_ours) for (int i = 0; i < STREAMS; i++) if (!streams[i]) { streams[i] = stream; break; }
    end(call);
    return stream;
}
DIR *fdopendir(int fd) {
    REAL(DIR *, fdopendir, (int));
    int is_ours = is_watched_descriptor(fd);
    struct call call = begin(is_ours, CALL_LIST, NULL, fd, 0);
    DIR *stream;
    if (call.fails) {
        failed(call);
        return NULL;
    }
    stream = real(fd);
    if (stream && is_ours) for (int i = 0; i < STREAMS; i++) if (!streams[i]) { streams[i] = stream; break; }
    end(call);
    return stream;
}
int closedir(DIR *stream) {
    REAL(int, closedir, (DIR *));
    int fd = dirfd(stream);
    if (fd >= 0 && fd < DESCRIPTORS) watched[fd] = 0;
    for (int i = 0; i < STREAMS; i++) if (streams[i] == stream) streams[i] = NULL;
    return real(stream);
}
static int is_watched_stream(DIR *stream) {
    if (!faults || !faults->on) return 0;
    for (int i = 0; i < STREAMS; i++) if (streams[i] == stream) return 1;
    return 0;
}
struct dirent *readdir(DIR *stream) {
    REAL(struct dirent *, readdir, (DIR *));
    struct call call = begin(is_watched_stream(stream), CALL_LIST, NULL, dirfd(stream), 0);
    struct dirent *entry;
    if (call.fails) {
        failed(call);
        return NULL;
    }
    entry = real(stream);
    end(call);
    return entry;
}

static void *mapped(void *address, size_t size, int protection, int flags, int fd, off_t offset,
                    void *(*real)(void *, size_t, int, int, int, off_t)) {
    struct call call = begin(is_watched_descriptor(fd), CALL_MAP, NULL, fd, 0);
    void *result;
    if (call.fails) {
        failed(call);
        return MAP_FAILED;
    }
    result = real(address, size, protection, flags, fd, offset);
    end(call);
    return result;
}
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    REAL(void *, mmap, (void *, size_t, int, int, int, off_t));
    return mapped(address, size, protection, flags, fd, offset, real);
}
void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t offset) {
    REAL(void *, mmap64, (void *, size_t, int, int, int, off64_t));
    return mapped(address, size, protection, flags, fd, offset, real);
}

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "calls.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static call_counts counted;

static void add(uint64_t *count, uint64_t more) { __atomic_fetch_add(count, more, __ATOMIC_RELAXED); }

static uint64_t current(const uint64_t *count) { return __atomic_load_n(count, __ATOMIC_RELAXED); }

call_counts calls_counted(void) {
    call_counts all;
    all.opens = current(&counted.opens);
    all.reads = current(&counted.reads);
    all.bytes_read = current(&counted.bytes_read);
    all.writes = current(&counted.writes);
    all.bytes_written = current(&counted.bytes_written);
    all.syncs = current(&counted.syncs);
    all.mappings = current(&counted.mappings);
    return all;
}

static ssize_t was_read(int file, ssize_t size) {
    if (file != STDIN_FILENO) {
        add(&counted.reads, 1);
        if (size > 0) add(&counted.bytes_read, (uint64_t)size);
    }
    return size;
}

static ssize_t was_written(int file, ssize_t size) {
    if (file != STDOUT_FILENO && file != STDERR_FILENO) {
        add(&counted.writes, 1);
        if (size > 0) add(&counted.bytes_written, (uint64_t)size);
    }
    return size;
}

static int was_synced(long result) {
    add(&counted.syncs, 1);
    return (int)result;
}

/* Two names of one call on 64-bit systems. */
#define BOTH(result, name, parameters, body) \
    result name parameters body              \
    result name##64 parameters body

ssize_t read(int file, void *to, size_t size) { return was_read(file, syscall(SYS_read, file, to, size)); }
ssize_t readv(int file, const struct iovec *to, int count) { return was_read(file, syscall(SYS_readv, file, to, count)); }
BOTH(ssize_t, pread, (int file, void *to, size_t size, off_t at), { return was_read(file, syscall(SYS_pread64, file, to, size, at)); })
BOTH(ssize_t, preadv, (int file, const struct iovec *to, int count, off_t at),
     { return was_read(file, syscall(SYS_preadv, file, to, count, at, 0)); })

ssize_t write(int file, const void *from, size_t size) { return was_written(file, syscall(SYS_write, file, from, size)); }
ssize_t writev(int file, const struct iovec *from, int count) { return was_written(file, syscall(SYS_writev, file, from, count)); }
BOTH(ssize_t, pwrite, (int file, const void *from, size_t size, off_t at),
     { return was_written(file, syscall(SYS_pwrite64, file, from, size, at)); })
BOTH(ssize_t, pwritev, (int file, const struct iovec *from, int count, off_t at),
     { return was_written(file, syscall(SYS_pwritev, file, from, count, at, 0)); })
ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags) {
    return was_written(to, syscall(SYS_copy_file_range, from, from_at, to, to_at, size, flags));
}

int fsync(int file) { return was_synced(syscall(SYS_fsync, file)); }
int fdatasync(int file) { return was_synced(syscall(SYS_fdatasync, file)); }
int syncfs(int file) { return was_synced(syscall(SYS_syncfs, file)); }
int sync_file_range(int file, off_t at, off_t size, unsigned flags) {
    return was_synced(syscall(SYS_sync_file_range, file, at, size, flags));
}
int msync(void *at, size_t size, int flags) { return was_synced(syscall(SYS_msync, at, size, flags)); }

static int opened(int directory, const char *path, int flags, va_list more) {
    int mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, int) : 0;
    add(&counted.opens, 1);
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

#define OPEN(name, parameters, directory)                    \
    int name parameters {                                    \
        va_list more;                                        \
        int file;                                            \
        va_start(more, flags);                               \
        file = opened(directory, path, flags, more);         \
        va_end(more);                                        \
        return file;                                         \
    }
OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD)
OPEN(openat, (int directory, const char *path, int flags, ...), directory)
OPEN(openat64, (int directory, const char *path, int flags, ...), directory)

static void *mapped(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    if (file >= 0) add(&counted.mappings, 1);
    return (void *)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    return mapped(at, size, protection, flags, file, offset);
}
void *mmap64(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    return mapped(at, size, protection, flags, file, offset);
}

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CLLVSShims.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/random.h>
#include <sys/stat.h>
#if defined(__linux__)
#include <sys/sysmacros.h>
#endif
#if defined(__linux__)
#include <stdio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#elif defined(__APPLE__)
#include <sys/mount.h>
#include <sys/param.h>
#endif
#include <unistd.h>

uint32_t llvs_shim_thread_number(void) {
    static uint32_t next = 1;
    static _Thread_local uint32_t own;
    if (!own) own = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    return own - 1;
}

/* ---- locks that a thread holds ---- */

#ifdef DEBUG
enum { MOST_LOCKS = 64 };
static _Thread_local struct {
    uint32_t count;
    uint32_t hidden; /* how many of them are ignored now */
    struct { const void *lock; uint8_t rank; } all[MOST_LOCKS];
} held;

int llvs_shim_lock_take(const void *lock, uint8_t rank) {
    uint32_t i;
    for (i = held.hidden; i < held.count; i++) if (held.all[i].rank >= rank) return held.all[i].rank;
    if (held.count == MOST_LOCKS) return -1;
    held.all[held.count].lock = lock;
    held.all[held.count].rank = rank;
    held.count++;
    return -1;
}

void llvs_shim_lock_leave(const void *lock) {
    uint32_t i = held.count;
    while (i > 0 && held.all[i - 1].lock != lock) i--;
    if (i == 0) return;
    if (i <= held.hidden) held.hidden--;
    for (; i < held.count; i++) held.all[i - 1] = held.all[i];
    held.count--;
}

int llvs_shim_lock_is_held(const void *lock) {
    uint32_t i;
    for (i = 0; i < held.count; i++) if (held.all[i].lock == lock) return 1;
    return 0;
}

uint32_t llvs_shim_locks_hide(void) {
    uint32_t before = held.hidden;
    held.hidden = held.count;
    return before;
}

void llvs_shim_locks_show(uint32_t hidden) { held.hidden = hidden < held.count ? hidden : held.count; }
#endif

/* ---- marks of calls to the host ---- */

enum { MOST_MARKS = 24 };
static _Thread_local struct {
    uint32_t count;
    struct { uintptr_t frame; void *mark; int observes; } marks[MOST_MARKS];
} host;

uint32_t llvs_shim_host_depth(void) { return host.count; }

int llvs_shim_host_observes(void) {
    uint32_t i;
    for (i = 0; i < host.count; i++) if (host.marks[i].observes) return 1;
    return 0;
}

int llvs_shim_host_enter(uintptr_t frame, void *mark, int observes) {
    if (host.count == MOST_MARKS) return 0;
    host.marks[host.count].frame = frame;
    host.marks[host.count].mark = mark;
    host.marks[host.count].observes = observes;
    host.count++;
    return 1;
}

int llvs_shim_host_leave(uintptr_t frame) {
    if (host.count == 0 || host.marks[host.count - 1].frame != frame) return 0;
    host.count--;
    return 1;
}

/* Returns whether both frames are on the thread's original stack. Frames on the stacks of coroutines cannot be compared. */
static int are_on_own_stack(uintptr_t a, uintptr_t b) {
#if defined(__linux__)
    pthread_attr_t attributes;
    void *start = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    pthread_attr_getstack(&attributes, &start, &size);
    pthread_attr_destroy(&attributes);
    return a - (uintptr_t)start < size && b - (uintptr_t)start < size;
#else
    return a != b;
#endif
}

void *llvs_shim_host_left(uintptr_t frame) {
    /* Stacks grow downwards: a frame called from the mark's frame would be below it. */
    if (host.count == 0 || host.marks[host.count - 1].frame >= frame) return NULL;
    if (!are_on_own_stack(frame, host.marks[host.count - 1].frame)) return NULL;
    return host.marks[--host.count].mark;
}

void *llvs_shim_thread_waiting(void *now) {
    static _Thread_local void *waiting;
    void *before = waiting;
    waiting = now;
    return before;
}

uint64_t llvs_shim_thread_count(uint32_t which, uint64_t more) {
    static _Thread_local uint64_t counts[16];
    return counts[which & 15] += more;
}

int llvs_shim_random(void *out, size_t size) {
    uint8_t *p = out;
    while (size) {
        size_t piece = size < 256 ? size : 256;
        if (getentropy(p, piece) != 0) return errno;
        p += piece; size -= piece;
    }
    return 0;
}

int llvs_shim_equal(const void *a, const void *b, size_t size) {
    const volatile uint8_t *x = a, *y = b;
    uint8_t differences = 0;
    for (size_t i = 0; i < size; i++) differences |= x[i] ^ y[i];
    return differences == 0;
}

int llvs_shim_identity(const char *path, uint64_t identity[3]) {
    int result;
#if defined(STATX_INO)
    struct statx status;
    do result = statx(AT_FDCWD, path, 0, STATX_INO | STATX_SIZE, &status);
    while (result != 0 && errno == EINTR);
    if (result == 0) {
        identity[0] = makedev(status.stx_dev_major, status.stx_dev_minor);
        identity[1] = status.stx_ino;
        identity[2] = status.stx_size;
        return 0;
    }
    if (errno != ENOSYS) return errno;
#endif
    struct stat other;
    do result = stat(path, &other);
    while (result != 0 && errno == EINTR);
    if (result != 0) return errno;
    identity[0] = (uint64_t)other.st_dev;
    identity[1] = (uint64_t)other.st_ino;
    identity[2] = (uint64_t)other.st_size;
    return 0;
}

/* The registered descriptors, each plus one; 0: a free slot. */
static int of_this_process[256];

/* Calls only functions that are allowed between fork() and exec(). */
static void close_in_child(void) {
    for (size_t i = 0; i < sizeof of_this_process / sizeof *of_this_process; i++) {
        int fd = __atomic_exchange_n(&of_this_process[i], 0, __ATOMIC_ACQ_REL);
        if (fd > 0) close(fd - 1);
    }
}
static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, close_in_child); }

void llvs_shim_close_in_child(int fd) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    for (size_t i = 0; i < sizeof of_this_process / sizeof *of_this_process; i++) {
        int none = 0;
        if (__atomic_compare_exchange_n(&of_this_process[i], &none, fd + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    }
}

void llvs_shim_leave_to_child(int fd) {
    for (size_t i = 0; i < sizeof of_this_process / sizeof *of_this_process; i++) {
        int known = fd + 1;
        if (__atomic_compare_exchange_n(&of_this_process[i], &known, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    }
}

int llvs_shim_may_write(uint64_t offset) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || offset < limit.rlim_cur;
}

void llvs_shim_fill_standard(void) {
    int fd;
    for (fd = 0; fd <= 2 && (fcntl(fd, F_GETFD) >= 0 || errno != EBADF); fd++) { }
    if (fd > 2) return;
    do {
        /* Read-only, so that printing still fails. */
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0) fd = open("/", O_RDONLY | O_CLOEXEC);
    } while (fd >= 0 && fd <= 2);
    if (fd > 2) close(fd);
}

int llvs_shim_open(const char *path, int flags, unsigned mode) { return llvs_shim_openat(AT_FDCWD, path, flags, mode); }

int llvs_shim_openat(int directory, const char *name, int flags, unsigned mode) {
    if ((flags & O_ACCMODE) != O_RDONLY) llvs_shim_fill_standard();
    for (;;) {
        int fd = openat(directory, name, flags | O_CLOEXEC, (mode_t)mode);
        if (fd >= 0) return fd;
        if (errno != EINTR) return -errno;
    }
}

#if defined(O_PATH)
int llvs_shim_held_directory(void) { return O_PATH | O_DIRECTORY; }
#else
int llvs_shim_held_directory(void) { return O_RDONLY | O_DIRECTORY; }
#endif

int64_t llvs_shim_next_data(int fd, int64_t offset) {
#if defined(SEEK_DATA)
    off_t found = lseek(fd, (off_t)offset, SEEK_DATA);
    if (found >= 0) return (int64_t)found;
    if (errno == ENXIO) return -1;
#else
    (void)fd;
#endif
    return offset;
}

int64_t llvs_shim_next_hole(int fd, int64_t offset) {
#if defined(SEEK_HOLE)
    return (int64_t)lseek(fd, (off_t)offset, SEEK_HOLE);
#else
    (void)fd, (void)offset;
    return -1;
#endif
}

int llvs_shim_syncfs(int fd) {
#if defined(__linux__)
    struct utsname system;
    unsigned major, minor;
    /* Before Linux 5.8, syncfs returns 0 even if writes failed. */
    if (uname(&system) != 0 || sscanf(system.release, "%u.%u", &major, &minor) != 2 || major < 5 || (major == 5 && minor < 8))
        return ENOSYS;
    while (syncfs(fd) != 0) if (errno != EINTR) return errno;
    return 0;
#else
    (void)fd;
    return ENOSYS;
#endif
}

/* LLVSServices has a definition that the linker prefers. */
__attribute__((weak)) void llvs_shim_list_services(void *list) { (void)list; }

int llvs_shim_copies_on_write(const char *path) {
#if defined(__linux__)
    struct statfs system;
    if (statfs(path, &system) != 0) return 0;
    switch ((unsigned long)system.f_type & 0xFFFFFFFF) {
    case 0x9123683E: /* Btrfs */
    case 0xF2F52010: /* F2FS */
    case 0xCA451A4E: /* Bcachefs */
    case 0x2FC12FC1: /* ZFS */
    case 0x3434:     /* NILFS2 */
        return 1;
    default: return 0;
    }
#elif defined(__APPLE__)
    struct statfs system;
    return statfs(path, &system) == 0 && strcmp(system.f_fstypename, "apfs") == 0;
#else
    (void)path;
    return 0;
#endif
}

int llvs_shim_is_local(const char *path) {
#if defined(__linux__)
    struct statfs system;
    if (statfs(path, &system) != 0) return 0;
    switch ((unsigned long)system.f_type & 0xFFFFFFFF) {
    case 0xEF53:     /* ext2, ext3, ext4 */
    case 0x58465342: /* XFS */
    case 0x9123683E: /* Btrfs */
    case 0xF2F52010: /* F2FS */
    case 0xCA451A4E: /* Bcachefs */
    case 0x2FC12FC1: /* ZFS */
    case 0x01021994: /* tmpfs */
    case 0x794C7630: /* overlayfs */
        return 1;
    default: return 0;
    }
#elif defined(__APPLE__)
    struct statfs system;
    return statfs(path, &system) == 0 && (system.f_flags & MNT_LOCAL) != 0;
#else
    (void)path;
    return 0;
#endif
}

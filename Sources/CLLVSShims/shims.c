#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define OPENSSL_SUPPRESS_DEPRECATED
#include "CLLVSShims.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
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
#include <zlib.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(llvs_shim_sha256), "the opaque context is too small");

void llvs_shim_sha256_init(llvs_shim_sha256 *c) { SHA256_Init((SHA256_CTX *)c); }
void llvs_shim_sha256_update(llvs_shim_sha256 *c, const void *data, size_t size) {
    if (size) SHA256_Update((SHA256_CTX *)c, data, size);
}
void llvs_shim_sha256_final(llvs_shim_sha256 *c, uint8_t digest[32]) { SHA256_Final(digest, (SHA256_CTX *)c); }

/* States per thread: setting one up costs more than compressing or inflating a small value. That of small input uses the Huffman code
   that deflate knows beforehand (RFC 1951, 3.2.6): to inflate some hundred bytes, zlib spends most of its time making the tables of a
   code of their own. It takes an eighth more of what is deflated, and about a third of the time to inflate; `build/benchmarks/bench_index`
   shows what that is worth. Its window and its room for symbols are large enough for all of such an input. */
enum { SMALL_INPUT = 512, SMALL_WINDOW_BITS = 10, SMALL_MEMORY = 4 };
typedef struct { z_stream general, small, fast, inflating; int has_general, has_small, has_fast, has_inflating, is_small; } zlib_states;
static pthread_key_t zlib_key;
static pthread_once_t zlib_once = PTHREAD_ONCE_INIT;
static int zlib_key_made;
static void zlib_free(void *states) {
    zlib_states *s = states;
    if (s->has_general) deflateEnd(&s->general);
    if (s->has_small) deflateEnd(&s->small);
    if (s->has_fast) deflateEnd(&s->fast);
    if (s->has_inflating) inflateEnd(&s->inflating);
    free(s);
}
static void zlib_make_key(void) { zlib_key_made = pthread_key_create(&zlib_key, zlib_free) == 0; }

static zlib_states *zlib_of_thread(void) {
    pthread_once(&zlib_once, zlib_make_key);
    if (!zlib_key_made) return NULL;
    zlib_states *s = pthread_getspecific(zlib_key);
    if (s) return s;
    s = calloc(1, sizeof *s);
    if (s && pthread_setspecific(zlib_key, s) != 0) { free(s); return NULL; }
    return s;
}

int llvs_shim_deflate_begin(const void *data, size_t size) {
    zlib_states *s = size > UINT32_MAX ? NULL : zlib_of_thread();
    if (!s) return 0;
    s->is_small = size <= SMALL_INPUT;
    z_stream *z = s->is_small ? &s->small : &s->general;
    int *has = s->is_small ? &s->has_small : &s->has_general;
    if (*has) {
        if (deflateReset(z) != Z_OK) return 0;
    } else {
        int status = s->is_small ? deflateInit2(z, 6, Z_DEFLATED, -SMALL_WINDOW_BITS, SMALL_MEMORY, Z_FIXED)
                                 : deflateInit2(z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
        if (status != Z_OK) return 0;
        *has = 1;
    }
    z->next_in = (Bytef *)(uintptr_t)data; z->avail_in = (uInt)size;
    return 1;
}

size_t llvs_shim_deflate_more(void *out, size_t capacity, int *done) {
    zlib_states *s = zlib_of_thread();
    *done = 0;
    if (!s) return 0;
    z_stream *z = s->is_small ? &s->small : &s->general;
    if (capacity > UINT32_MAX) capacity = UINT32_MAX;
    z->next_out = out; z->avail_out = (uInt)capacity;
    int status = deflate(z, Z_FINISH);
    *done = status == Z_STREAM_END;
    return status == Z_STREAM_END || status == Z_OK ? capacity - z->avail_out : 0;
}

size_t llvs_shim_deflate(const void *data, size_t size, void *out, size_t capacity) {
    int done = 0;
    if (!llvs_shim_deflate_begin(data, size)) return 0;
    size_t count = llvs_shim_deflate_more(out, capacity, &done);
    return done ? count : 0;
}

size_t llvs_shim_deflate_fast(const void *data, size_t size, void *out, size_t capacity) {
    if (size <= SMALL_INPUT) return llvs_shim_deflate(data, size, out, capacity);
    zlib_states *s = size > UINT32_MAX ? NULL : zlib_of_thread();
    if (!s) return 0;
    z_stream *z = &s->fast;
    if (s->has_fast) {
        if (deflateReset(z) != Z_OK) return 0;
    } else if (deflateInit2(z, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK) s->has_fast = 1;
    else return 0;
    if (capacity > UINT32_MAX) capacity = UINT32_MAX;
    z->next_in = (Bytef *)(uintptr_t)data; z->avail_in = (uInt)size;
    z->next_out = out; z->avail_out = (uInt)capacity;
    return deflate(z, Z_FINISH) == Z_STREAM_END ? capacity - z->avail_out : 0;
}

static int inflate_whole(const void *data, size_t size, void *out, size_t out_size, size_t room) {
    zlib_states *s = zlib_of_thread();
    if (!s) return 0;
    z_stream *z = &s->inflating;
    if (s->has_inflating) {
        if (inflateReset(z) != Z_OK) return 0;
    } else if (inflateInit2(z, -15) == Z_OK) s->has_inflating = 1;
    else return 0;
    uint8_t dummy;
    z->next_in = (Bytef *)(uintptr_t)data; z->avail_in = (uInt)size;
    z->next_out = room ? out : &dummy; z->avail_out = (uInt)room;
    return inflate(z, Z_FINISH) == Z_STREAM_END && z->total_out == out_size && z->avail_in == 0;
}

/* zlib has a quick way for as long as there is room for the longest match, and goes byte by byte behind that: of a small value that
   would be all of it. */
enum { SMALL = 2048, LONGEST_MATCH = 258, ROOM = SMALL + LONGEST_MATCH };

int llvs_shim_inflate(const void *data, size_t size, void *out, size_t out_size) {
    if (size > UINT32_MAX || out_size > UINT32_MAX) return 0;
    if (out_size <= SMALL && out_size > 0) {
        uint8_t room[ROOM];
        if (!inflate_whole(data, size, room, out_size, out_size + LONGEST_MATCH)) return 0;
        memcpy(out, room, out_size);
        return 1;
    }
    return inflate_whole(data, size, out, out_size, out_size);
}

uint32_t llvs_shim_crc32(const void *data, size_t size) { return size ? (uint32_t)crc32_z(0, data, size) : 0; }

struct llvs_shim_inflater { z_stream stream; };

llvs_shim_inflater *llvs_shim_inflater_make(void) {
    llvs_shim_inflater *inflater = calloc(1, sizeof *inflater);
    if (inflater && inflateInit2(&inflater->stream, -15) != Z_OK) { free(inflater); return NULL; }
    return inflater;
}

void llvs_shim_inflater_free(llvs_shim_inflater *inflater) {
    if (!inflater) return;
    inflateEnd(&inflater->stream);
    free(inflater);
}

int64_t llvs_shim_inflate_more(llvs_shim_inflater *inflater, const void *data, size_t size, size_t *taken, void *out, size_t capacity,
                               int *done) {
    z_stream *z = &inflater->stream;
    uint8_t dummy;
    uInt in = size < INT32_MAX ? (uInt)size : INT32_MAX, room = capacity < INT32_MAX ? (uInt)capacity : INT32_MAX;
    z->next_in = (Bytef *)(uintptr_t)data; z->avail_in = in;
    z->next_out = room ? out : &dummy; z->avail_out = room;
    int status = inflate(z, Z_NO_FLUSH);
    *taken = in - z->avail_in;
    *done = status == Z_STREAM_END;
    /* Z_BUF_ERROR: there was nothing to do with what it was given. */
    return status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR ? (int64_t)(room - z->avail_out) : -1;
}

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
    uint32_t hidden; /* so many of them do not count now */
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

/* ---- marks of calls of the host ---- */

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

/* Whether two frames are of the stack that the thread began with: of coroutines' stacks nothing can be told. */
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
    /* Stacks grow downwards: who was called from there would be below. */
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

/* Descriptors, each plus one; 0: a free place. */
static int of_this_process[256];

/* Only what may be done between fork() and exec(). */
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
        /* Only to be read, so that printing fails as it did. */
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
    /* Before Linux 5.8 it answers 0 whatever became of the writes. */
    if (uname(&system) != 0 || sscanf(system.release, "%u.%u", &major, &minor) != 2 || major < 5 || (major == 5 && minor < 8))
        return ENOSYS;
    while (syncfs(fd) != 0) if (errno != EINTR) return errno;
    return 0;
#else
    (void)fd;
    return ENOSYS;
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

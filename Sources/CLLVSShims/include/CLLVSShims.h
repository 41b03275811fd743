/* C that the engine calls: checksums, digests and compression from well-kept libraries,
   and system calls that Swift cannot import (variadic ones, macros). No state, no allocation
   that outlives a call unless a function says so; and the atomic operations that the engine needs. */
#ifndef CLLVS_SHIMS_H
#define CLLVS_SHIMS_H
#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), continued from `crc` (0 to begin).
   Source: RFC 3720, appendix B.4; the SSE 4.2 instruction where the processor has it. */
uint32_t llvs_shim_crc32c(uint32_t crc, const void *data, size_t size);

/* The checksum of bytes whose first part has checksum `a` and whose second, of `size` bytes, has `b`.
   Source: Mark Adler, zlib's crc32_combine: multiplication by x^(8 size) modulo the polynomial. */
uint32_t llvs_shim_crc32c_combine(uint32_t a, uint32_t b, uint64_t size);

/* Asks for the memory at an address, without waiting for it. */
static inline void llvs_shim_prefetch(const void *at) { __builtin_prefetch(at); }

/* SHA-256 (FIPS 180-4), by libcrypto. The context is plain memory, copied freely. */
typedef struct { uint64_t opaque[16]; } llvs_shim_sha256;
void llvs_shim_sha256_init(llvs_shim_sha256 *context);
void llvs_shim_sha256_update(llvs_shim_sha256 *context, const void *data, size_t size);
void llvs_shim_sha256_final(llvs_shim_sha256 *context, uint8_t digest[32]);

/* Returns whether deflate may make the bytes smaller. It samples parts of them, and returns 0 if these have hardly any repetition and all
   byte values are about equally frequent, as in compressed or encrypted data. The result depends on the bytes alone, not on the machine.
   Takes a small part of the time of compressing. */
int llvs_shim_may_deflate(const void *data, size_t size);

/* Compresses with raw deflate (RFC 1951) at level 6. Writes at most `capacity` bytes and returns how many; 0 if the result does not fit or
   memory is short. Up to 512 bytes are compressed with deflate's fixed Huffman code, which is quick to inflate. Larger input is compressed
   by libdeflate if the system has it, so the compressed bytes depend on the machine. They inflate to the same bytes everywhere. Retains its
   states per thread. */
size_t llvs_shim_deflate(const void *data, size_t size, void *out, size_t capacity);
/* Compresses like `llvs_shim_deflate`, but at level 1: it takes a third of the time, and the result is somewhat larger. */
size_t llvs_shim_deflate_fast(const void *data, size_t size, void *out, size_t capacity);
/* Compresses in pieces, always with zlib, so that a second pass gives the same bytes. `begin` returns 1, or 0 if memory is short. Each call
   of `more` then fills `out`, returns how many bytes it wrote, and sets `done` after the last piece. If it returns 0 without `done`, it
   failed. All calls are on one thread, and the thread compresses nothing else until the end. */
int llvs_shim_deflate_begin(const void *data, size_t size);
size_t llvs_shim_deflate_more(void *out, size_t capacity, int *done);
/* Inflates raw deflate. Returns 1 if the whole input inflates to exactly `out_size` bytes, else 0. Uses libdeflate if the system has it.
   Uses zlib for small values in the fixed Huffman code, and for input that libdeflate rejects. Retains its states per thread. */
int llvs_shim_inflate(const void *data, size_t size, void *out, size_t out_size);
/* Returns whether this thread uses libdeflate. The first use opens the library, unless the environment has LLVS_DEFLATE=zlib. */
int llvs_shim_has_libdeflate(void);
/* Makes this thread use only zlib (1), or ends that (0). Returns the previous setting. For tests. */
int llvs_shim_deflate_by_zlib(int alone);
/* Returns the CRC-32 that zip uses. */
uint32_t llvs_shim_crc32(const void *data, size_t size);
/* Inflates in pieces. `make` returns a new state, or NULL if memory is short. The caller frees it. */
typedef struct llvs_shim_inflater llvs_shim_inflater;
llvs_shim_inflater *llvs_shim_inflater_make(void);
void llvs_shim_inflater_free(llvs_shim_inflater *inflater);
/* Inflates from `data` into `out` until one of them is used up or the stream ends. Sets `taken` to how many bytes it read, and `done` if
   the stream ended. Returns how many bytes it wrote, or -1 if the input is not deflate. */
int64_t llvs_shim_inflate_more(llvs_shim_inflater *inflater, const void *data, size_t size, size_t *taken, void *out, size_t capacity,
                               int *done);

/* Differences of values. The streams are those of docs/format.md, "Values as differences", before compression. */
/* Makes a value of exactly `size` bytes in `out` from the base, and returns 1. Returns 0 if the streams are invalid or make another size;
   `out` is then undefined. Never reads or writes outside the given memory, whatever the streams hold. */
int llvs_shim_difference_apply(const void *streams, size_t streams_size, const void *base, size_t base_size, void *out, size_t size);
/* Writes the streams that make the value, of `size` bytes, from the base. Returns how many bytes they have; 0 if they have more than
   `capacity`, the two have nothing in common, or memory is short. It may overwrite all of `out`, also behind the result. */
size_t llvs_shim_difference_make(const void *base, size_t base_size, const void *value, size_t size, void *out, size_t capacity);

/* Atomic operations on memory of the caller's, for what many threads read without a lock. Swift's own atomics
   are types of their own; these work on raw memory. `ordered` is sequentially consistent. */
static inline uint32_t llvs_shim_load_ordered(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }
static inline void llvs_shim_store_ordered(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_SEQ_CST); }
static inline void llvs_shim_add_ordered(uint32_t *at, uint32_t value) { __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST); }
static inline uint32_t llvs_shim_load_acquire(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline void llvs_shim_store_release(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
static inline uint32_t llvs_shim_load_relaxed(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
static inline void llvs_shim_store_relaxed(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
static inline uint64_t llvs_shim_load_word(const uint64_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline void llvs_shim_store_word(uint64_t *at, uint64_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
/* What a processor is told while it waits for another. */
static inline void llvs_shim_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}
/* A small number of the calling thread's, from 0 up in the order in which threads first ask. Keeps four bytes per thread. */
uint32_t llvs_shim_thread_number(void);
/* The locks that the calling thread holds, for debug builds, where alone these exist; see LockRank.swift. Notes one; answers -1, or the
 * rank of a lock that is held and forbids it. */
int llvs_shim_lock_take(const void *lock, uint8_t rank);
void llvs_shim_lock_leave(const void *lock);
int llvs_shim_lock_is_held(const void *lock);
/* Begins an order of its own for code of the host; what it answers is to be given back at the end. */
uint32_t llvs_shim_locks_hide(void);
void llvs_shim_locks_show(uint32_t hidden);
/* What stays set while code of the host runs on this thread: marks, the innermost last, each with the frame that set it. See
 * HostCalls.swift. */
static inline __attribute__((always_inline)) uintptr_t llvs_shim_frame(void) { return (uintptr_t)__builtin_frame_address(0); }
/* How many there are. */
uint32_t llvs_shim_host_depth(void);
/* 1 when one of them is of an unsolicited callback. */
int llvs_shim_host_observes(void);
/* Sets one; 0 when there are too many to keep. */
int llvs_shim_host_enter(uintptr_t frame, void *mark, int observes);
/* Takes away the innermost when it was set by this frame; 0 when it was not. */
int llvs_shim_host_leave(uintptr_t frame);
/* Takes away the innermost when it was set by a frame that cannot exist any more, since a call of this frame is running; else NULL. */
void *llvs_shim_host_left(uintptr_t frame);
/* What the calling thread's waits look at; NULL at first. Returns what it was. */
void *llvs_shim_thread_waiting(void *now);
/* Adds to one of sixteen numbers of the calling thread's, 0 at first, and returns it: for what debug builds count. */
uint64_t llvs_shim_thread_count(uint32_t which, uint64_t more);

/* malloc and realloc that never use the reserve, for callers that report an error instead. Release the memory by free(). */
void *llvs_shim_allocate(size_t size);
void *llvs_shim_reallocate(void *memory, size_t size);
/* Gives back to the system what is free of the memory that the allocator holds, where it can: large pieces do not fit into what is free
 * between small ones. */
void llvs_shim_trim(void);
/* Whether so many bytes could be had right now: 1 or 0. Compilers take away a malloc whose memory is only freed, so this one is hidden from
 * them. */
int llvs_shim_has_memory(size_t size);
/* Makes the reserve whole: 1, or 0 when there is no memory for it. See reserve.c. */
int llvs_shim_reserve_fill(void);
extern uintptr_t llvs_shim_reserve;
/* Whether nothing was taken from the reserve since it was filled. */
static inline int llvs_shim_reserve_is_whole(void) { return __atomic_load_n(&llvs_shim_reserve, __ATOMIC_RELAXED) != 0; }

/* Fills with random bytes from the system; 0, or an errno. */
int llvs_shim_random(void *out, size_t size);

/* Which file a path leads to: device and number. 0, or an errno. Asks for no times: a file system that gives fine times to those who
   look (Linux from 6.13) would write the inode anew at the next write then. */
int llvs_shim_identity(const char *path, uint64_t identity[3]);

/* A descriptor that a child made by fork() closes at once, so that a lock goes with the process that took it; and one that it need not
   close any more. Of more than some hundred at a time the rest stay open there. */
void llvs_shim_close_in_child(int fd);
void llvs_shim_leave_to_child(int fd);

/* Whether a file may be written at `offset`, or made longer than that: one system call. Where the limit of the process on the size of files
   (RLIMIT_FSIZE) is reached, writing would send the signal SIGXFSZ, which ends a host that knows nothing of it. */
int llvs_shim_may_write(uint64_t offset);

/* A library of the system that is opened at its first use, not linked, and its functions in a table of pointers. */
typedef struct { const char *name; size_t offset; } llvs_shim_function;
typedef struct {
    /* The names of the functions, and where in the table each has its place. */
    const llvs_shim_function *functions;
    size_t count;
    void *table;
    /* Called once all are there; 0 when the library does not start, and why. May be NULL. */
    int (*start)(char *problem, size_t size);
    int is_open;
} llvs_shim_library;
/* Opens the library in the file of that name, for itself alone and for good, unless it is open, and fills the table. 1; 0 when it cannot be
   opened, lacks a function or does not start: then why, cut to `size` bytes, in `problem`. Any thread. */
int llvs_shim_open_library(llvs_shim_library *library, const char *file, char *problem, size_t size);

/* What is used of Avahi's client, from its headers (avahi-client/client.h, lookup.h, publish.h, avahi-common/simple-watch.h and others):
   handles are `void *` here, enums `int`. */
typedef void (*llvs_shim_avahi_changed)(void *what, int state, void *payload);
typedef void (*llvs_shim_avahi_browsed)(void *browser, int interface, int protocol, int event, const char *name, const char *kind,
    const char *domain, int flags, void *payload);
typedef void (*llvs_shim_avahi_resolved)(void *resolver, int interface, int protocol, int event, const char *name, const char *kind,
    const char *domain, const char *host, const void *address, uint16_t port, void *texts, int flags, void *payload);
typedef struct {
    void *(*simple_poll_new)(void);
    const void *(*simple_poll_get)(void *poll);
    int (*simple_poll_iterate)(void *poll, int milliseconds);
    void (*simple_poll_wakeup)(void *poll);
    void (*simple_poll_free)(void *poll);
    char *(*alternative_service_name)(const char *name);
    void (*free)(void *memory);
    const char *(*strerror)(int error);
    char *(*address_snprint)(char *text, size_t size, const void *address);
    void *(*client_new)(const void *poll, int flags, llvs_shim_avahi_changed changed, void *payload, int *error);
    void (*client_free)(void *client);
    void *(*entry_group_new)(void *client, llvs_shim_avahi_changed changed, void *payload);
    int (*entry_group_reset)(void *group);
    int (*entry_group_commit)(void *group);
    int (*entry_group_add_service_strlst)(void *group, int interface, int protocol, int flags, const char *name, const char *kind,
        const char *domain, const char *host, uint16_t port, void *texts);
    void *(*service_browser_new)(void *client, int interface, int protocol, const char *kind, const char *domain, int flags,
        llvs_shim_avahi_browsed browsed, void *payload);
    void *(*service_resolver_new)(void *client, int interface, int protocol, const char *name, const char *kind, const char *domain,
        int wanted, int flags, llvs_shim_avahi_resolved resolved, void *payload);
    int (*service_resolver_free)(void *resolver);
} llvs_shim_avahi;
/* NULL when it cannot be opened: then why. */
const llvs_shim_avahi *llvs_shim_avahi_open(const char *file, char *problem, size_t size);

/* Opens those of the descriptors 0 to 2 that are closed on /dev/null, to be read, for good: what is opened next gets another number, and
   never, not for a moment, one that the host prints to. */
void llvs_shim_fill_standard(void);
/* open(2), which is variadic. Retries EINTR. Returns a descriptor or -errno. Always close-on-exec. Fills 0 to 2 before a file is opened
   to be written. */
int llvs_shim_open(const char *path, int flags, unsigned mode);
/* The same in an open directory. */
int llvs_shim_openat(int directory, const char *name, int flags, unsigned mode);
/* The flags for a directory that is opened for what is in it. */
int llvs_shim_held_directory(void);
/* Where bytes are stored at or behind `offset`; -1: a hole follows up to the end; `offset` where nobody can tell. */
int64_t llvs_shim_next_data(int fd, int64_t offset);
/* Where a hole begins at or behind `offset`, the end of the file being one; -1 where nobody can tell. */
int64_t llvs_shim_next_hole(int fd, int64_t offset);
/* Makes durable the file system that holds `fd`, and tells of writes that failed since `fd` was opened. 0, or an
   errno; ENOSYS where there is no call that does both. */
int llvs_shim_syncfs(int fd);
/* Whether the path is on a file system of this machine whose directories' times tell each change of their names at
   once, and which nobody else writes; 0 when that is not known. */
int llvs_shim_is_local(const char *path);
#endif

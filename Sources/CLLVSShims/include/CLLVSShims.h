/* The C functions of the engine: checksums, digests, compression by established libraries, system calls that Swift cannot import
   (variadic functions, macros), and atomic operations. Unless its comment says otherwise, a function has no state, and no allocation
   outlives its call. */
#ifndef CLLVS_SHIMS_H
#define CLLVS_SHIMS_H
#include <stddef.h>
#include <stdint.h>

/* Returns the CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), continued from `crc` (0 to begin).
   Source: RFC 3720, appendix B.4. Uses the SSE 4.2 instruction if the processor has it. */
uint32_t llvs_shim_crc32c(uint32_t crc, const void *data, size_t size);

/* Returns the CRC-32C of two concatenated runs of bytes from their checksums; the second run has `size` bytes and checksum `b`.
   Source: Mark Adler, zlib's crc32_combine: multiplication by x^(8 size) modulo the polynomial. */
uint32_t llvs_shim_crc32c_combine(uint32_t a, uint32_t b, uint64_t size);

/* Requests the memory at an address for the cache, without waiting for it. */
static inline void llvs_shim_prefetch(const void *at) { __builtin_prefetch(at); }

/* SHA-256 (FIPS 180-4). The context is plain memory, and may be copied. */
typedef struct {
    uint32_t state[8];
    uint64_t size;
    uint8_t block[64];
} llvs_shim_sha256;
void llvs_shim_sha256_init(llvs_shim_sha256 *context);
void llvs_shim_sha256_update(llvs_shim_sha256 *context, const void *data, size_t size);
void llvs_shim_sha256_final(llvs_shim_sha256 *context, uint8_t digest[32]);
/* Makes the process compute digests by the processor's instructions (0), by libcrypto (1) or in C (2) from now on. Returns 0 if it lacks
   them. Otherwise the first of these that it has is used. For tests: the digests are the same. */
int llvs_shim_sha256_by(int way);

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
/* One of several differences that are applied one after another. `size` is that of the value that it makes. */
typedef struct { const void *streams; size_t streams_size, size; } llvs_shim_difference;
/* A part of a value, in memory; `end` is where it ends in the value. */
typedef struct { const uint8_t *from; size_t end; } llvs_shim_piece;
/* Makes a value in `out` from the base by `count` differences, the one of the base first, without making the values between. Returns 1.
   Returns 0 if the streams are invalid, or if some value has more pieces than half of the `room` of `memory`. It is
   as safe as `llvs_shim_difference_apply`. */
int llvs_shim_difference_apply_all(const llvs_shim_difference *steps, size_t count, const void *base, size_t base_size, void *out,
                                   llvs_shim_piece *memory, size_t room);
/* Writes the streams that make the value, of `size` bytes, from the base. Returns how many bytes they have; 0 if they have more than
   `capacity`, the two have nothing in common, or memory is short. It may overwrite all of `out`, also behind the result. */
size_t llvs_shim_difference_make(const void *base, size_t base_size, const void *value, size_t size, void *out, size_t capacity);

/* Atomic operations on the caller's raw memory, for data that many threads read without a lock. Swift's own atomics cannot be used on
   raw memory. `ordered` is sequentially consistent. */
static inline uint32_t llvs_shim_load_ordered(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }
static inline void llvs_shim_store_ordered(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_SEQ_CST); }
static inline void llvs_shim_add_ordered(uint32_t *at, uint32_t value) { __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST); }
static inline uint32_t llvs_shim_load_acquire(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline void llvs_shim_store_release(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
static inline uint32_t llvs_shim_load_relaxed(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
static inline void llvs_shim_store_relaxed(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
static inline uint64_t llvs_shim_load_word(const uint64_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline void llvs_shim_store_word(uint64_t *at, uint64_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
/* Tells the processor that this thread waits in a loop for another one. */
static inline void llvs_shim_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}
/* Returns a small number of the calling thread, from 0 in the order of the first calls. Retains four bytes per thread. */
uint32_t llvs_shim_thread_number(void);
/* The locks that the calling thread holds. These functions exist only in debug builds; see LockRank.swift. `take` records a lock. It
 * returns -1, or the rank of a held lock that forbids it. */
int llvs_shim_lock_take(const void *lock, uint8_t rank);
void llvs_shim_lock_leave(const void *lock);
int llvs_shim_lock_is_held(const void *lock);
/* Ignores the held locks while code of the host runs. Pass the result to `show` at the end. */
uint32_t llvs_shim_locks_hide(void);
void llvs_shim_locks_show(uint32_t hidden);
/* Marks of the calls to the host's code that run on this thread, the innermost last, each with the frame that set it. See
 * HostCalls.swift. */
static inline __attribute__((always_inline)) uintptr_t llvs_shim_frame(void) { return (uintptr_t)__builtin_frame_address(0); }
/* Returns how many marks are set. */
uint32_t llvs_shim_host_depth(void);
/* Returns 1 if a mark of an unsolicited callback is set, else 0. */
int llvs_shim_host_observes(void);
/* Sets a mark. Returns 1, or 0 if there are too many. */
int llvs_shim_host_enter(uintptr_t frame, void *mark, int observes);
/* Removes the innermost mark and returns 1 if this frame set it, else returns 0. */
int llvs_shim_host_leave(uintptr_t frame);
/* Removes and returns the innermost mark if the frame that set it must have ended, since this frame is running; else returns NULL. */
void *llvs_shim_host_left(uintptr_t frame);
/* Sets the pointer that the waits of the calling thread check; NULL at first. Returns the previous one. */
void *llvs_shim_thread_waiting(void *now);
/* Adds to one of sixteen counters of the calling thread, 0 at first, and returns the sum. For counts of debug builds. */
uint64_t llvs_shim_thread_count(uint32_t which, uint64_t more);

/* malloc and realloc that never use the reserve, for callers that report an error instead. Release the memory by free(). */
void *llvs_shim_allocate(size_t size);
void *llvs_shim_reallocate(void *memory, size_t size);
/* Returns free memory of the allocator to the system, if the allocator can: large allocations do not fit into the gaps between small
 * ones. */
void llvs_shim_trim(void);
/* Returns 1 if this many bytes can be allocated now, else 0. Compilers remove a malloc whose memory is only freed, so this one is hidden
 * from them. */
int llvs_shim_has_memory(size_t size);
/* Fills the reserve and returns 1, or returns 0 if memory is short. See reserve.c. */
int llvs_shim_reserve_fill(void);
extern uintptr_t llvs_shim_reserve;
/* Returns whether the reserve was not used since it was filled. */
static inline int llvs_shim_reserve_is_whole(void) { return __atomic_load_n(&llvs_shim_reserve, __ATOMIC_RELAXED) != 0; }

/* Fills memory with random bytes from the system. Returns 0 or an errno. */
int llvs_shim_random(void *out, size_t size);
/* Returns whether both are equal, in a time that does not depend on where they differ. */
int llvs_shim_equal(const void *a, const void *b, size_t size);

/* Sets the device, inode number and size of the file at a path. Returns 0 or an errno. Does not ask for times: a file system that gives
   fine timestamps to readers (Linux from 6.13) would write the inode again at the next write. */
int llvs_shim_identity(const char *path, uint64_t identity[3]);

/* Registers a descriptor that a child made by fork() closes at once, so that its lock ends with this process; `leave_to_child` ends the
   registration. Of more than 256 at a time the rest stay open in the child. */
void llvs_shim_close_in_child(int fd);
void llvs_shim_leave_to_child(int fd);

/* Returns whether a file may be written at `offset`, or made longer than that. If the limit of the process on the size of files
   (RLIMIT_FSIZE) is reached, a write would raise SIGXFSZ, which ends a host that does not handle it. Costs one system call. */
int llvs_shim_may_write(uint64_t offset);

/* A library of the system that is opened at its first use instead of being linked, with its functions in a table of pointers. */
typedef struct { const char *name; size_t offset; } llvs_shim_function;
typedef struct {
    /* The names of the functions, and their offsets in the table. */
    const llvs_shim_function *functions;
    size_t count;
    void *table;
    /* Called when all functions were found. Returns 0 and sets the reason if the library does not start. May be NULL. */
    int (*start)(char *problem, size_t size);
    int is_open;
} llvs_shim_library;
/* Opens the library in the file of that name, unless it is open, fills the table, and returns 1. The library is never closed, and its
   symbols are not visible to others. If it cannot be opened, lacks a function or does not start, returns 0 and writes the reason, cut to
   `size` bytes, to `problem`. Any thread. */
int llvs_shim_open_library(llvs_shim_library *library, const char *file, char *problem, size_t size);

/* The functions of Avahi's client that are used, by its headers (avahi-client/client.h, lookup.h, publish.h, avahi-common/simple-watch.h
   and others). Handles are `void *` here, enums `int`. */
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
/* Opens the library. If that fails, returns NULL and writes the reason to `problem`. */
const llvs_shim_avahi *llvs_shim_avahi_open(const char *file, char *problem, size_t size);

/* If one of the descriptors 0 to 2 is closed, opens it on /dev/null, for reading, permanently. A file that is opened later then never gets,
   not even for a moment, a descriptor that the host prints to. */
void llvs_shim_fill_standard(void);
/* Calls open(2), which is variadic. Retries EINTR. Returns a descriptor or -errno. Always close-on-exec. Calls
   `llvs_shim_fill_standard` before it opens a file for writing. */
int llvs_shim_open(const char *path, int flags, unsigned mode);
/* Opens a name in an open directory, in the same way as llvs_shim_open. */
int llvs_shim_openat(int directory, const char *name, int flags, unsigned mode);
/* Returns the flags for opening a directory in order to open its files. */
int llvs_shim_held_directory(void);
/* Returns the first offset at or after `offset` that has stored bytes; -1 if a hole extends to the end; `offset` if it is unknown. */
int64_t llvs_shim_next_data(int fd, int64_t offset);
/* Returns where the first hole at or after `offset` begins; the end of the file counts as one. Returns -1 if it is unknown. */
int64_t llvs_shim_next_hole(int fd, int64_t offset);
/* Syncs the file system of `fd`, and reports writes that failed since `fd` was opened. Returns 0 or an errno; ENOSYS if the system has no
   call that does both. */
int llvs_shim_syncfs(int fd);
/* Returns 1 if the path is on a local file system that no other machine writes, and that changes a directory's times at each change of
   its names. Returns 0 if that is unknown. */
int llvs_shim_is_local(const char *path);
/* Returns 1 if the file system of a path keeps the old contents of files that are overwritten, as far as that is known. */
int llvs_shim_copies_on_write(const char *path);

/* Adds the linked services to a list of Swift (RemoteService.swift). Defined by the Swift module LLVSServices. In a program without that
   module it adds none, so that URLs open folders and areas in memory alone. */
void llvs_shim_list_services(void *list);
#endif

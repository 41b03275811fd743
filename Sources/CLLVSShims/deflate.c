#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CLLVSShims.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if !__has_include(<zlib.h>)
#error "LLVS needs the headers of zlib: install zlib1g-dev (Debian, Ubuntu) or zlib-ng-compat-devel (Fedora)."
#endif
#include <zlib.h>

/* ---- libdeflate, if the system has it ---- */

/* The functions of libdeflate, as they have been since 1.0 (2018). They are declared here, so that building needs no header of libdeflate.
   The library is opened at run time and may be missing. */
struct libdeflate_compressor;
struct libdeflate_decompressor;
struct libdeflate {
    struct libdeflate_compressor *(*alloc_compressor)(int level);
    /* Returns how many bytes it wrote; 0 if they do not fit. */
    size_t (*compress)(struct libdeflate_compressor *, const void *in, size_t in_size, void *out, size_t out_room);
    void (*free_compressor)(struct libdeflate_compressor *);
    struct libdeflate_decompressor *(*alloc_decompressor)(void);
    /* Returns 0 if the input is, or begins with, a complete deflate stream, and the inflated bytes fit. */
    int (*decompress)(struct libdeflate_decompressor *, const void *in, size_t in_size, void *out, size_t out_room, size_t *in_taken,
                      size_t *out_made);
    void (*free_decompressor)(struct libdeflate_decompressor *);
};

#if defined(__APPLE__)
#define LIBDEFLATE_FILE "libdeflate.0.dylib"
#else
#define LIBDEFLATE_FILE "libdeflate.so.0"
#endif

static struct libdeflate libdeflate;
static int has_libdeflate;

static void open_libdeflate(void) {
    static const llvs_shim_function names[] = {
        {"libdeflate_alloc_compressor", offsetof(struct libdeflate, alloc_compressor)},
        {"libdeflate_deflate_compress", offsetof(struct libdeflate, compress)},
        {"libdeflate_free_compressor", offsetof(struct libdeflate, free_compressor)},
        {"libdeflate_alloc_decompressor", offsetof(struct libdeflate, alloc_decompressor)},
        {"libdeflate_deflate_decompress_ex", offsetof(struct libdeflate, decompress)},
        {"libdeflate_free_decompressor", offsetof(struct libdeflate, free_decompressor)},
    };
    static llvs_shim_library library = {names, sizeof names / sizeof names[0], &libdeflate, NULL, 0};
    char problem[256];
    const char *wanted = getenv("LLVS_DEFLATE");
    if (wanted && strcmp(wanted, "zlib") == 0) return;
    has_libdeflate = llvs_shim_open_library(&library, LIBDEFLATE_FILE, problem, sizeof problem);
}

static _Thread_local int uses_zlib_alone;
int llvs_shim_deflate_by_zlib(int alone) {
    int before = uses_zlib_alone;
    uses_zlib_alone = alone;
    return before;
}

int llvs_shim_has_libdeflate(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_libdeflate);
    return has_libdeflate && !uses_zlib_alone;
}

/* ---- states per thread ---- */

/* Each thread retains its states, because setting one up costs more than compressing or inflating a small value.
   zlib's state for small input uses deflate's fixed Huffman code (RFC 1951, 3.2.6). With a dynamic code zlib spends most of its time on
   building the tables when it inflates some hundred bytes. With the fixed code the output is an eighth larger, and inflating takes about a
   third of the time. `build/benchmarks/bench_index` measures the effect. The window and the room for symbols hold a whole small input. */
enum { SMALL_INPUT = 512, SMALL_WINDOW_BITS = 10, SMALL_MEMORY = 4 };
typedef struct {
    z_stream general, small, fast, inflating;
    int has_general, has_small, has_fast, has_inflating, is_small;
    struct libdeflate_compressor *whole, *whole_fast;
    struct libdeflate_decompressor *inflating_whole;
} states;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int is_key_made;
static void free_states(void *of_thread) {
    states *s = of_thread;
    if (s->has_general) deflateEnd(&s->general);
    if (s->has_small) deflateEnd(&s->small);
    if (s->has_fast) deflateEnd(&s->fast);
    if (s->has_inflating) inflateEnd(&s->inflating);
    if (s->whole) libdeflate.free_compressor(s->whole);
    if (s->whole_fast) libdeflate.free_compressor(s->whole_fast);
    if (s->inflating_whole) libdeflate.free_decompressor(s->inflating_whole);
    free(s);
}
static void make_key(void) { is_key_made = pthread_key_create(&key, free_states) == 0; }

static states *states_of_thread(void) {
    pthread_once(&key_once, make_key);
    if (!is_key_made) return NULL;
    states *s = pthread_getspecific(key);
    if (s) return s;
    s = calloc(1, sizeof *s);
    if (s && pthread_setspecific(key, s) != 0) { free(s); return NULL; }
    return s;
}

/* ---- deflating ---- */

int llvs_shim_deflate_begin(const void *data, size_t size) {
    states *s = size > UINT32_MAX ? NULL : states_of_thread();
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
    states *s = states_of_thread();
    *done = 0;
    if (!s) return 0;
    z_stream *z = s->is_small ? &s->small : &s->general;
    if (capacity > UINT32_MAX) capacity = UINT32_MAX;
    z->next_out = out; z->avail_out = (uInt)capacity;
    int status = deflate(z, Z_FINISH);
    *done = status == Z_STREAM_END;
    return status == Z_STREAM_END || status == Z_OK ? capacity - z->avail_out : 0;
}

/* Compresses with libdeflate and returns how many bytes it wrote; 0 if they do not fit. Returns -1 if the system has no libdeflate, or
   memory is short. */
static int64_t deflate_whole(const void *data, size_t size, void *out, size_t capacity, int level) {
    states *s = llvs_shim_has_libdeflate() ? states_of_thread() : NULL;
    if (!s) return -1;
    struct libdeflate_compressor **made = level == 1 ? &s->whole_fast : &s->whole;
    if (!*made) *made = libdeflate.alloc_compressor(level);
    return *made ? (int64_t)libdeflate.compress(*made, data, size, out, capacity) : -1;
}

size_t llvs_shim_deflate(const void *data, size_t size, void *out, size_t capacity) {
    int done = 0;
    if (size > SMALL_INPUT) {
        int64_t count = deflate_whole(data, size, out, capacity, 6);
        if (count >= 0) return (size_t)count;
    }
    if (!llvs_shim_deflate_begin(data, size)) return 0;
    size_t count = llvs_shim_deflate_more(out, capacity, &done);
    return done ? count : 0;
}

size_t llvs_shim_deflate_fast(const void *data, size_t size, void *out, size_t capacity) {
    if (size <= SMALL_INPUT) return llvs_shim_deflate(data, size, out, capacity);
    int64_t count = deflate_whole(data, size, out, capacity, 1);
    if (count >= 0) return (size_t)count;
    states *s = size > UINT32_MAX ? NULL : states_of_thread();
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

/* ---- inflating ---- */

static int inflate_by_zlib(const void *data, size_t size, void *out, size_t out_size, size_t room) {
    states *s = states_of_thread();
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

/* Returns whether the stream begins with a block in the fixed Huffman code. libdeflate builds the tables of that code each time; zlib
   contains them. */
static int begins_with_known_code(const uint8_t *data, size_t size) { return size > 0 && (data[0] >> 1 & 3) == 1; }

/* Inflates with libdeflate and returns 1. Returns 0 if the system has no libdeflate, memory is short, or libdeflate rejects the input. */
static int inflate_by_libdeflate(const void *data, size_t size, void *out, size_t out_size) {
    states *s = llvs_shim_has_libdeflate() ? states_of_thread() : NULL;
    if (!s) return 0;
    if (!s->inflating_whole) s->inflating_whole = libdeflate.alloc_decompressor();
    size_t taken = 0, made = 0;
    return s->inflating_whole && libdeflate.decompress(s->inflating_whole, data, size, out, out_size, &taken, &made) == 0 &&
           taken == size && made == out_size;
}

/* zlib uses its fast loop only while the output has room for the longest match, and then writes byte by byte. Without extra room it would
   write a small value entirely byte by byte. */
enum { SMALL = 2048, LONGEST_MATCH = 258, ROOM = SMALL + LONGEST_MATCH };

int llvs_shim_inflate(const void *data, size_t size, void *out, size_t out_size) {
    if (size > UINT32_MAX || out_size > UINT32_MAX) return 0;
    int is_small = out_size <= SMALL && out_size > 0;
    /* If libdeflate rejects the input, try zlib: a value must be readable with either library. */
    if (out_size > 0 && !(is_small && begins_with_known_code(data, size)) && inflate_by_libdeflate(data, size, out, out_size)) return 1;
    if (is_small) {
        uint8_t room[ROOM];
        if (!inflate_by_zlib(data, size, room, out_size, out_size + LONGEST_MATCH)) return 0;
        memcpy(out, room, out_size);
        return 1;
    }
    return inflate_by_zlib(data, size, out, out_size, out_size);
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
    /* Z_BUF_ERROR: no progress was possible with this input and this output. */
    return status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR ? (int64_t)(room - z->avail_out) : -1;
}

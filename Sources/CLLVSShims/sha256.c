#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CLLVSShims.h"
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

/* SHA-256 (FIPS 180-4). Compresses blocks of 64 bytes by the instructions that processors have for it; without them by libcrypto if the
   system has it, which is half as fast again as C; else in C. All give the same digests. docs/dependencies.md has the figures. */

typedef void compressor(uint32_t *state, const uint8_t *data, size_t blocks);

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const _Alignas(16) uint32_t constants[64] = {
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5, 0xD807AA98, 0x12835B01, 0x243185BE,
    0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174, 0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA,
    0x5CB0A9DC, 0x76F988DA, 0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967, 0x27B70A85,
    0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85, 0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3,
    0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070, 0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F,
    0x682E6FF3, 0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
};

/* Words are big-endian. */
static inline uint32_t read_word(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }
static inline void write_word(uint8_t *p, uint32_t x) {
    p[0] = (uint8_t)(x >> 24), p[1] = (uint8_t)(x >> 16), p[2] = (uint8_t)(x >> 8), p[3] = (uint8_t)x;
}
static inline uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void in_c(uint32_t *state, const uint8_t *p, size_t blocks) {
    for (; blocks; blocks--, p += 64) {
        uint32_t w[16], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
#pragma clang loop unroll(full)
        for (int i = 0; i < 64; i++) {
            uint32_t *word = &w[i % 16];
            if (i < 16) {
                *word = read_word(p + 4 * i);
            } else {
                uint32_t x = w[(i + 1) % 16], y = w[(i + 14) % 16];
                *word += (rotate(x, 7) ^ rotate(x, 18) ^ x >> 3) + w[(i + 9) % 16] + (rotate(y, 17) ^ rotate(y, 19) ^ y >> 10);
            }
            uint32_t first = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) + constants[i] + *word;
            uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));
            h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
        }
        state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
    }
}

/* ---- by libcrypto ---- */

/* SHA256_CTX of OpenSSL, which is the same since version 0.9.8. */
typedef struct {
    uint32_t state[8], low, high, block[16];
    unsigned pending, length;
} openssl_context;
static struct { int (*update)(openssl_context *, const void *, size_t); } libcrypto;

static void by_libcrypto(uint32_t *state, const uint8_t *p, size_t blocks) {
    openssl_context all = {.length = 32};
    memcpy(all.state, state, sizeof all.state);
    libcrypto.update(&all, p, blocks * 64);
    memcpy(state, all.state, sizeof all.state);
}
static int has_libcrypto(void) {
    static const llvs_shim_function names[] = {{"SHA256_Update", 0}};
    static llvs_shim_library library = {names, 1, &libcrypto, NULL, 0};
    char problem[1];
#if defined(__APPLE__)
    return 0;
#else
    return llvs_shim_open_library(&library, "libcrypto.so.3", problem, sizeof problem);
#endif
}

/* ---- by instructions ---- */

/* Both keep four words in a vector, and sixteen words in four of them. Each step of the inner loops does four rounds, and first makes the
   words that these need from those of the last sixteen rounds. */
#if defined(__x86_64__)
static int has_instructions(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA) != 0;
}
__attribute__((target("sha,sse4.1"))) static void by_instructions(uint32_t *state, const uint8_t *p, size_t blocks) {
    const __m128i big_endian = _mm_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203);
    /* The instructions want the words of the state in the order ABEF and CDGH, from the highest. */
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xB1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1B);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xF0);
    for (; blocks; blocks--, p += 64) {
        __m128i w[4], abef_before = abef, cdgh_before = cdgh;
#pragma clang loop unroll(full)
        for (int i = 0; i < 16; i++) {
            __m128i *words = &w[i % 4];
            if (i < 4) {
                *words = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), big_endian);
            } else {
                __m128i last = w[(i + 3) % 4], before = w[(i + 2) % 4];
                __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(*words, w[(i + 1) % 4]), _mm_alignr_epi8(last, before, 4));
                *words = _mm_sha256msg2_epu32(sum, last);
            }
            __m128i added = _mm_add_epi32(*words, _mm_load_si128((const __m128i *)(constants + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0E));
        }
        abef = _mm_add_epi32(abef, abef_before), cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1B), high = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xF0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}
#elif defined(__aarch64__)
static int has_instructions(void) {
#if defined(__linux__)
    return (getauxval(AT_HWCAP) & 1 << 6) != 0; /* HWCAP_SHA2 */
#else
    return 1; /* All of Apple's have them. */
#endif
}
__attribute__((target("sha2"))) static void by_instructions(uint32_t *state, const uint8_t *p, size_t blocks) {
    uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
    for (; blocks; blocks--, p += 64) {
        uint32x4_t w[4], abcd_before = abcd, efgh_before = efgh;
#pragma clang loop unroll(full)
        for (int i = 0; i < 16; i++) {
            uint32x4_t *words = &w[i % 4];
            if (i < 4) {
                *words = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(p + 16 * i)));
            } else {
                *words = vsha256su1q_u32(vsha256su0q_u32(*words, w[(i + 1) % 4]), w[(i + 2) % 4], w[(i + 3) % 4]);
            }
            uint32x4_t added = vaddq_u32(*words, vld1q_u32(constants + 4 * i)), first = abcd;
            abcd = vsha256hq_u32(abcd, efgh, added);
            efgh = vsha256h2q_u32(efgh, first, added);
        }
        abcd = vaddq_u32(abcd, abcd_before), efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(state, abcd);
    vst1q_u32(state + 4, efgh);
}
#else
static int has_instructions(void) { return 0; }
#define by_instructions in_c
#endif

/* ---- whichever there is ---- */

static compressor *chosen;

int llvs_shim_sha256_by(int way) {
    static compressor *const ways[] = {by_instructions, by_libcrypto, in_c};
    if (way < 0 || way > 2 || (way == 0 && !has_instructions()) || (way == 1 && !has_libcrypto())) return 0;
    __atomic_store_n(&chosen, ways[way], __ATOMIC_RELEASE);
    return 1;
}
static void compress_blocks(uint32_t *state, const uint8_t *p, size_t blocks) {
    compressor *found = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
    for (int way = 0; !found; way++) {
        if (llvs_shim_sha256_by(way)) found = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
    }
    found(state, p, blocks);
}

void llvs_shim_sha256_init(llvs_shim_sha256 *c) {
    /* The first 32 bits of the fractional parts of the square roots of the first 8 primes. */
    static const uint32_t state[8] = {
        0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
    };
    memcpy(c->state, state, sizeof state);
    c->size = 0;
}
void llvs_shim_sha256_update(llvs_shim_sha256 *c, const void *data, size_t size) {
    const uint8_t *p = data;
    size_t pending = c->size % 64;
    c->size += size;
    if (pending + size < 64) {
        if (size) memcpy(c->block + pending, p, size);
        return;
    }
    if (pending) {
        memcpy(c->block + pending, p, 64 - pending);
        compress_blocks(c->state, c->block, 1);
        p += 64 - pending, size -= 64 - pending;
    }
    if (size >= 64) compress_blocks(c->state, p, size / 64);
    if (size % 64) memcpy(c->block, p + size / 64 * 64, size % 64);
}
void llvs_shim_sha256_final(llvs_shim_sha256 *c, uint8_t digest[32]) {
    size_t pending = c->size % 64;
    c->block[pending++] = 0x80;
    if (pending > 56) {
        memset(c->block + pending, 0, 64 - pending);
        compress_blocks(c->state, c->block, 1);
        pending = 0;
    }
    memset(c->block + pending, 0, 56 - pending);
    write_word(c->block + 56, (uint32_t)(c->size >> 29));
    write_word(c->block + 60, (uint32_t)(c->size << 3));
    compress_blocks(c->state, c->block, 1);
    for (int i = 0; i < 8; i++) write_word(digest + 4 * i, c->state[i]);
}

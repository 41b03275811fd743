#include "CLLVSShims.h"
#include <pthread.h>
#include <string.h>

/* Slicing-by-8: eight tables, eight bytes a step. Source: Kounavis and Berry, "A Systematic Approach
   to Building High Performance Software-Based CRC Generators" (2005). */
static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = (c & 1) ? (c >> 1) ^ 0x82F63B78u : c >> 1;
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int t = 1; t < 8; t++)
            table[t][i] = (table[t - 1][i] >> 8) ^ table[0][table[t - 1][i] & 0xFF];
}

static uint32_t by_table(uint32_t c, const uint8_t *p, size_t n) {
    pthread_once(&once, make_tables);
    while (n >= 8) {
        uint32_t low = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        c = table[7][low & 0xFF] ^ table[6][(low >> 8) & 0xFF] ^ table[5][(low >> 16) & 0xFF] ^ table[4][low >> 24]
          ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
        p += 8; n -= 8;
    }
    while (n--) c = (c >> 8) ^ table[0][(c ^ *p++) & 0xFF];
    return c;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
__attribute__((target("sse4.2")))
static uint32_t by_instruction(uint32_t c, const uint8_t *p, size_t n) {
    uint64_t wide = c;
    while (n >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        wide = __builtin_ia32_crc32di(wide, word);
        p += 8; n -= 8;
    }
    c = (uint32_t)wide;
    if (n & 4) {
        uint32_t word;
        memcpy(&word, p, 4);
        c = __builtin_ia32_crc32si(c, word);
        p += 4;
    }
    if (n & 2) {
        uint16_t word;
        memcpy(&word, p, 2);
        c = __builtin_ia32_crc32hi(c, word);
        p += 2;
    }
    return n & 1 ? __builtin_ia32_crc32qi(c, *p) : c;
}

/* The instruction takes three cycles, and one can begin in each. So three runs of bytes are read at a time, and their checksums are
   combined. */
enum { RUN = 4096 };
static uint32_t after_run; /* x^(8 RUN) */
static pthread_once_t after_run_once = PTHREAD_ONCE_INIT;
static uint32_t times(uint32_t a, uint32_t b);
static void make_after_run(void) {
    after_run = 0x00800000u;
    for (size_t size = 1; size < RUN; size *= 2) after_run = times(after_run, after_run);
}

__attribute__((target("sse4.2")))
static uint32_t by_three(uint32_t c, const uint8_t *p, size_t n) {
    pthread_once(&after_run_once, make_after_run);
    for (; n >= 3 * RUN; p += 3 * RUN, n -= 3 * RUN) {
        uint64_t first = c, second = 0, third = 0;
        for (size_t i = 0; i < RUN; i += 8) {
            uint64_t a, b, d;
            memcpy(&a, p + i, 8);
            memcpy(&b, p + RUN + i, 8);
            memcpy(&d, p + 2 * RUN + i, 8);
            first = __builtin_ia32_crc32di(first, a);
            second = __builtin_ia32_crc32di(second, b);
            third = __builtin_ia32_crc32di(third, d);
        }
        c = times(after_run, times(after_run, (uint32_t)first) ^ (uint32_t)second) ^ (uint32_t)third;
    }
    return by_instruction(c, p, n);
}
#endif

uint32_t llvs_shim_crc32c(uint32_t crc, const void *data, size_t size) {
    if (size == 0) return crc;
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    if (__builtin_cpu_supports("sse4.2")) return ~(size < 3 * RUN ? by_instruction : by_three)(~crc, data, size);
#endif
    return ~by_table(~crc, data, size);
}

/* Multiplies polynomials over GF(2) of degree below 32, modulo that of the checksum. The highest power is in the lowest bit. */
static uint32_t times(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = 0x80000000u; bit; bit >>= 1) {
        if (a & bit) product ^= b;
        b = b & 1 ? (b >> 1) ^ 0x82F63B78u : b >> 1;
    }
    return product;
}

uint32_t llvs_shim_crc32c_combine(uint32_t a, uint32_t b, uint64_t size) {
    uint32_t power = 0x00800000u; /* x^8, squared once for each bit of the size */
    for (; size; size >>= 1) {
        if (size & 1) a = times(power, a);
        power = times(power, power);
    }
    return a ^ b;
}

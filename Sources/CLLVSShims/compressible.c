#include "CLLVSShims.h"
#include <string.h>

/* Counts of the bytes that were sampled. */
typedef struct sample {
    uint32_t counts[256];
    /* The number of bytes, and how many of them repeat earlier bytes of the same window. */
    uint64_t size, repeated;
} sample;

enum { TABLE_BITS = 12 };

static uint32_t four(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return word;
}

/* Adds a window of at most 65,535 bytes to the sample. As deflate does, it finds matches of four or more bytes by the last position with
   the same hash. */
static void look(sample *sample, const uint8_t *data, size_t size) {
    uint16_t last[1 << TABLE_BITS];
    size_t at = 0;
    memset(last, 0, sizeof last);
    sample->size += size;
    for (at = 0; at < size; at++) sample->counts[data[at]]++;
    at = 0;
    while (at + 4 <= size) {
        uint32_t word = four(data + at);
        uint16_t *slot = &last[(word * 2654435761u) >> (32 - TABLE_BITS)];
        size_t found = *slot, length = 0;
        *slot = (uint16_t)(at + 1);
        if (found && four(data + found - 1) == word)
            for (length = 4; at + length < size && data[found - 1 + length] == data[at + length];) length++;
        sample->repeated += length;
        at += length ? length : 1;
    }
}

int llvs_shim_may_deflate(const void *data, size_t size) {
    sample sample;
    uint64_t squares = 0;
    size_t part = size / 8, windows = size < 64u << 10 ? 3 : size < 1u << 20 ? 6 : 12, window, i;
    if (part < 3072) part = 3072;
    if (part > 192u << 10) part = 192u << 10;
    memset(&sample, 0, sizeof sample);
    if (size <= part) windows = 1;
    window = windows == 1 ? size : part / windows;
    for (i = 0; i < windows; i++)
        look(&sample, (const uint8_t *)data + (windows == 1 ? 0 : (size - window) / (windows - 1) * i), window);
    if (sample.repeated * 16 >= sample.size) return 1;
    /* If all byte values are equally frequent, the sum of the squares of their counts is size * size / 256. For random bytes it is larger
       by about `size`, within a tenth. */
    for (i = 0; i < 256; i++) squares += (uint64_t)sample.counts[i] * sample.counts[i];
    return squares * 256 > sample.size * sample.size + sample.size * 384;
}

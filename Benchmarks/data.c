#include "data.h"
#include "side.h"

enum { LARGE = 64 << 10, STAMP_DISTANCE = 4096 };

/* The distance from one id to the next, and the bytes of each id after its UUID. */
static size_t distance = 64, padding;

void data_lengthen_ids(size_t size) {
    padding = size - 36;
    distance = size + 64;
}

uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Formats without printf, which takes longer for a million ids than the store takes to load them. */
static char *put_hexadecimal(char *to, uint64_t number, int digits) {
    int i;
    for (i = digits - 1; i >= 0; i--, number >>= 4) to[i] = "0123456789ABCDEF"[number & 15];
    return to + digits;
}

static void put_uuid(char *to, uint64_t a, uint64_t b) {
    to = put_hexadecimal(to, a >> 32, 8);
    *to++ = '-';
    to = put_hexadecimal(to, a >> 16, 4);
    *to++ = '-', *to++ = '4';
    to = put_hexadecimal(to, a, 3);
    *to++ = '-', *to++ = 'A';
    to = put_hexadecimal(to, b >> 52, 3);
    *to++ = '-';
    *put_hexadecimal(to, b, 12) = 0;
}

char *data_ids(size_t count, const char *prefix) {
    char *ids = allocate(count, distance);
    size_t prefix_size = strlen(prefix), i;
    uint64_t state = 1;
    for (i = 0; i < count; i++) {
        uint64_t a = draw(&state), b = draw(&state);
        char *id = ids + i * distance;
        memcpy(id, prefix, prefix_size);
        put_uuid(id + prefix_size, a, b);
        memset(id + prefix_size + 36, '-', padding);
    }
    return ids;
}

const char *data_id(const char *ids, size_t i) { return ids + i * distance; }

static void fill(uint8_t *value, size_t size, uint64_t state) {
    uint64_t word;
    size_t at;
    for (at = 0; at < size; at += sizeof word) {
        word = draw(&state);
        memcpy(value + at, &word, size - at < sizeof word ? size - at : sizeof word);
    }
}

void data_value(uint8_t *value, size_t size, size_t i, size_t update) {
    uint64_t state = (uint64_t)i * 1000003 + update, word;
    size_t at;
    if (size < LARGE) {
        fill(value, size, state);
        return;
    }
    /* The bytes of a large value are drawn once for each buffer, and then only changed at some places: drawing all of them would take
       longer than storing them. */
    memcpy(&word, value, sizeof word);
    if (word == 0) fill(value, size, 1);
    for (at = 0; at + sizeof word <= size; at += STAMP_DISTANCE) {
        word = draw(&state) | 1;
        memcpy(value + at, &word, sizeof word);
    }
}

size_t data_updated(size_t update, size_t count) {
    uint64_t state = update;
    return (size_t)(draw(&state) % count);
}

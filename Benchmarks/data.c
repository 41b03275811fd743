#include "data.h"
#include "side.h"
#include <stdio.h>

enum { ID_DISTANCE = 64 };

uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

char *data_ids(size_t count, const char *prefix) {
    char *ids = allocate(count, ID_DISTANCE);
    uint64_t state = 1;
    size_t i;
    for (i = 0; i < count; i++) {
        uint64_t a = draw(&state), b = draw(&state);
        snprintf(ids + i * ID_DISTANCE, ID_DISTANCE, "%s%08X-%04X-4%03X-A%03X-%012llX", prefix, (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xFFFF),
                 (unsigned)(a & 0xFFF), (unsigned)(b >> 52), (unsigned long long)(b & 0xFFFFFFFFFFFFu));
    }
    return ids;
}

const char *data_id(const char *ids, size_t i) { return ids + i * ID_DISTANCE; }

void data_value(uint8_t *value, size_t size, size_t i, size_t update) {
    uint64_t state = (uint64_t)i * 1000003 + update, word;
    size_t at;
    for (at = 0; at < size; at += sizeof word) {
        word = draw(&state);
        memcpy(value + at, &word, size - at < sizeof word ? size - at : sizeof word);
    }
}

size_t data_updated(size_t update, size_t count) {
    uint64_t state = update;
    return (size_t)(draw(&state) % count);
}

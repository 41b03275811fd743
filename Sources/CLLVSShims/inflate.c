#include "CLLVSShims.h"
#include <pthread.h>
#include <string.h>

/* Raw deflate (RFC 1951) taken back as a whole, quicker than zlib does it for small values, of which setting a state up and making tables
   take most of the time. What it is not sure of is left to zlib, whatever the reason: a stored block, a code of more than TABLE_BITS, bytes
   that are no deflate. So it refuses nothing that zlib takes, and takes nothing that zlib refuses.

   Codes differ from value to value, so that a branch on one is foreseen by no processor: there are few. */

enum {
    /* A value of some hundred bytes has no longer codes: the rarest of n symbols in one of 13 takes some 600 of them. */
    TABLE_BITS = 12,
    /* The last two of each have codes where codes are fixed, but stand for nothing. */
    LENGTHS = 288, TRUE_LENGTHS = 286, DISTANCES = 32, TRUE_DISTANCES = 30, CODE_LENGTHS = 19,
    LITERALS = 256, END = 256,
    /* A length and a distance with what is behind each take 12 + 5 + 12 + 13 bits, of the 56 that a refill gives at least. */
    LONGEST_PAIR = 42, LONGEST_REPEAT = 14,
    /* Sizes of symbols are written so many at a time. */
    STEP = 16
};

/* What a code stands for: bits 0-7 all bits to take · 8-15 those of the code · 16-30 the literal, or with what a length or distance
   begins · 31 a literal. The end of a block is a length of 0, and NOTHING one that no small value has.
   Of how long codes are: 16-23 the length, or PREVIOUS · 24-31 how often at least. */
typedef uint32_t entry;
#define LITERAL ((entry)1 << 31)
#define NOTHING ((entry)0x7FFF << 16)
enum { PREVIOUS = 0xFF };

typedef struct reader {
    const uint8_t *bytes;
    size_t size;     /* at least 8 */
    size_t at;       /* of the next byte to be taken; behind the end there are zeros */
    uint64_t bits;   /* the next ones, the lowest first; above `count` of them there may be more, which come again */
    unsigned count;
} reader;

typedef struct table {
    unsigned bits;
    entry entries[1 << TABLE_BITS];
} table;

/* Symbols without the bits of their codes. */
static entry lengths_of[LENGTHS], distances_of[DISTANCES], code_lengths_of[CODE_LENGTHS];
static table fixed_lengths, fixed_distances;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- bits ---- */

static inline uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline void refill(reader *in) {
    uint64_t word;
    if (in->size - 8 >= in->at) word = word_at(in->bytes + in->at);
    else word = in->at < in->size ? word_at(in->bytes + in->size - 8) >> (64 - 8 * (in->size - in->at)) : 0;
    in->bits |= word << in->count;
    in->at += (63 - in->count) >> 3;
    in->count |= 56;
}

static inline void drop(reader *in, unsigned count) {
    in->bits >>= count;
    in->count -= count;
}

static inline unsigned take(reader *in, unsigned count) {
    unsigned bits = (unsigned)(in->bits & ((1u << count) - 1));
    drop(in, count);
    return bits;
}

/* What is behind a code, of the bits from its beginning on. */
static inline unsigned behind(uint64_t bits, entry found) {
    unsigned code = found >> 8 & 0xFF;
    return (unsigned)(bits >> code) & ((1u << ((found & 0xFF) - code)) - 1);
}

/* ---- tables ---- */

/* Makes a table of how long codes are, by symbol, 0 for none; there are zeros up to a multiple of 8. Answers 0 where codes are over or too
   few, or too long. */
static int make(table *table, const uint8_t *sizes, unsigned size_count, const entry *symbols) {
    unsigned counts[16] = { 0 }, starts[16], found[LENGTHS], order[LENGTHS], count = 0, most = 15, length, left = 1, next = 0, i;
    unsigned code = 0, size = 1;
    for (i = 0; i < size_count; i += 8) {
        uint64_t word = word_at(sizes + i);
        while (word) {
            unsigned shift = (unsigned)__builtin_ctzll(word) & ~7u, bits = (unsigned)(word >> shift) & 0xFF;
            found[count++] = (i + shift / 8) << 8 | bits;
            counts[bits]++;
            word &= ~((uint64_t)0xFF << shift);
        }
    }
    while (most > 0 && counts[most] == 0) most--;
    if (most == 0 || most > TABLE_BITS) return 0;
    for (length = 1; length <= most; length++) {
        left <<= 1;
        if (counts[length] > left) return 0;
        left -= counts[length];
        starts[length] = next;
        next += counts[length];
    }
    if (left != 0) return 0;
    for (i = 0; i < count; i++) order[starts[found[i] & 0xFF]++] = found[i] >> 8;
    next = 0;
    for (length = 1; length <= most; length++) {
        /* The table of codes up to one length, twice, is that of those up to the next. */
        if (length > 1) memcpy(table->entries + size, table->entries, size * sizeof(entry));
        size <<= 1;
        for (i = counts[length]; i > 0; i--) {
            unsigned rest = code ^ (size - 1), bit;
            table->entries[code] = symbols[order[next++]] + (length << 8 | length);
            /* The next code, of which the first bit is the lowest; behind the last one there is none. */
            bit = rest ? 1u << (31 - __builtin_clz(rest)) : 0;
            code = (code & (bit - 1)) | bit;
        }
    }
    table->bits = most;
    return 1;
}

static void prepare(void) {
    static const uint16_t lengths[] = { 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163,
        195, 227, 258 };
    static const uint16_t distances[] = { 1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049,
        3073, 4097, 6145, 8193, 12289, 16385, 24577 };
    uint8_t sizes[LENGTHS];
    unsigned i;
    for (i = 0; i < LITERALS; i++) lengths_of[i] = LITERAL | i << 16;
    lengths_of[END] = 0;
    for (i = END + 1; i < LENGTHS; i++) {
        unsigned number = i - END - 1, extra = number < 8 || i == TRUE_LENGTHS - 1 ? 0 : number / 4 - 1;
        lengths_of[i] = i < TRUE_LENGTHS ? (entry)lengths[number] << 16 | extra : NOTHING;
    }
    for (i = 0; i < DISTANCES; i++) distances_of[i] = i < TRUE_DISTANCES ? (entry)distances[i] << 16 | (i < 4 ? 0 : i / 2 - 1) : NOTHING;
    for (i = 0; i < 16; i++) code_lengths_of[i] = 1u << 24 | i << 16;
    code_lengths_of[16] = 3u << 24 | PREVIOUS << 16 | 2;
    code_lengths_of[17] = 3u << 24 | 3;
    code_lengths_of[18] = 11u << 24 | 7;
    for (i = 0; i < LENGTHS; i++) sizes[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make(&fixed_lengths, sizes, LENGTHS, lengths_of);
    memset(sizes, 5, DISTANCES);
    make(&fixed_distances, sizes, DISTANCES, distances_of);
}

/* The tables that a block begins with. */
static int read_tables(reader *in, table *lengths, table *distances) {
    static const uint8_t order[CODE_LENGTHS] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
    uint8_t sizes[LENGTHS + DISTANCES + STEP] = { 0 };
    unsigned length_count, distance_count, size_count, i;
    uint64_t mask;
    uint8_t before = 0, others[DISTANCES + 8] = { 0 };
    refill(in);
    length_count = 257 + take(in, 5);
    distance_count = 1 + take(in, 5);
    size_count = 4 + take(in, 4);
    if (length_count > TRUE_LENGTHS || distance_count > TRUE_DISTANCES) return 0;
    for (i = 0; i < size_count; i++) {
        if (in->count < 3) refill(in);
        sizes[order[i]] = (uint8_t)take(in, 3);
    }
    /* In the place of one that is made after it was read. */
    if (!make(distances, sizes, 24, code_lengths_of)) return 0;
    memset(sizes, 0, 24);
    mask = (1u << distances->bits) - 1;
    refill(in);
    /* Before the first there is nothing to be repeated. */
    if ((distances->entries[in->bits & mask] >> 16 & 0xFF) == PREVIOUS) return 0;
    for (i = 0; i < length_count + distance_count;) {
        entry found;
        if (in->count < LONGEST_REPEAT) refill(in);
        found = distances->entries[in->bits & mask];
        before = (found >> 16 & 0xFF) == PREVIOUS ? before : (uint8_t)(found >> 16);
        /* Zeros are there already where they are more; what is written too far is written over. */
        memset(sizes + i, before, STEP);
        i += (found >> 24) + behind(in->bits, found);
        drop(in, found & 0xFF);
    }
    if (i != length_count + distance_count) return 0;
    memcpy(others, sizes + length_count, distance_count);
    memset(sizes + length_count, 0, 8);
    return make(lengths, sizes, length_count, lengths_of) && make(distances, others, distance_count, distances_of);
}

/* ---- blocks ---- */

static inline void copy(uint8_t *at, const uint8_t *end, size_t distance, size_t length) {
    const uint8_t *from = at - distance;
    if (distance >= 8 && (size_t)(end - at) >= length + 7) {
        uint8_t *last = at + length;
        for (; at < last; at += 8, from += 8) memcpy(at, from, 8);
    } else {
        for (; length > 0; length--) *at++ = *from++;
    }
}

/* Up to the end of a block; where the output goes on then, NULL where it is not sure. */
static uint8_t *read_block(reader *shared, const table *lengths, const table *distances, const uint8_t *begin, uint8_t *at,
    const uint8_t *end) {
    reader in = *shared;
    const entry *first = lengths->entries, *second = distances->entries;
    const uint64_t first_mask = (1u << lengths->bits) - 1, second_mask = (1u << distances->bits) - 1;
    for (;;) {
        entry found;
        size_t length, distance;
        refill(&in);
        found = first[in.bits & first_mask];
        if (end - at >= 4) {
            unsigned i;
            for (i = 0; i < 4 && found & LITERAL; i++) {
                drop(&in, found & 0xFF);
                *at++ = (uint8_t)(found >> 16);
                found = first[in.bits & first_mask];
            }
            if (i == 4) continue;
        } else if (found & LITERAL) {
            if (at == end) return NULL;
            drop(&in, found & 0xFF);
            *at++ = (uint8_t)(found >> 16);
            continue;
        }
        if (in.count < LONGEST_PAIR) refill(&in);
        length = (found >> 16) + behind(in.bits, found);
        drop(&in, found & 0xFF);
        if (length == 0) {
            *shared = in;
            return at;
        }
        found = second[in.bits & second_mask];
        distance = (found >> 16) + behind(in.bits, found);
        drop(&in, found & 0xFF);
        if (distance > (size_t)(at - begin) || length > (size_t)(end - at)) return NULL;
        copy(at, end, distance, length);
        at += length;
    }
}

int llvs_shim_inflate_small(const void *data, size_t size, void *out, size_t out_size) {
    reader in = { data, size, 0, 0, 0 };
    uint8_t *at = out;
    const uint8_t *begin = out, *end = begin + out_size;
    table lengths, distances;
    unsigned is_last;
    if (size < 8 || out_size > LLVS_SHIM_INFLATE_SMALL || pthread_once(&once, prepare) != 0) return 0;
    do {
        refill(&in);
        is_last = take(&in, 1);
        switch (take(&in, 2)) {
        case 1: at = read_block(&in, &fixed_lengths, &fixed_distances, begin, at, end); break;
        case 2: at = read_tables(&in, &lengths, &distances) ? read_block(&in, &lengths, &distances, begin, at, end) : NULL; break;
        default: return 0;
        }
    } while (at && !is_last);
    /* What was taken, but for whole bytes that are left. */
    return at == end && at && in.at - (in.count >> 3) == size;
}

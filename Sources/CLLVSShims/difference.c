#include "CLLVSShims.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Applies and makes differences between two runs of bytes: docs/format.md, "Values as differences". */

/* ---- applying ---- */

/* Reads a varint of at most 10 bytes below 2^64, and returns where it ends; NULL if there is no such varint. */
static const uint8_t *read_number(const uint8_t *at, const uint8_t *end, uint64_t *number) {
    uint64_t found = 0;
    unsigned shift;
    if (at < end && *at < 128) { *number = *at; return at + 1; }
    for (shift = 0; shift < 70 && at < end; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && (byte & 0x7E)) return NULL;
        found |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) { *number = found; return at; }
    }
    return NULL;
}

/* One operation: `length` bytes of the base from `from`, or of the literals. */
typedef struct { size_t length, from; int is_copy; } operation;

/* Reads the operations of a difference one by one, and checks each. */
typedef struct {
    const uint8_t *at, *operations_end, *literals, *all_end;
    size_t base_size; /* bytes of the base */
    size_t end;       /* where the previous copy ends in the base */
    size_t left;      /* bytes of the value that have no operation yet */
} reader;

/* Returns 0 if the streams are invalid from the beginning. */
static int begin(reader *r, const void *streams, size_t streams_size, size_t base_size, size_t size) {
    uint64_t count;
    if (!streams || base_size > LLONG_MAX) return 0;
    r->all_end = (const uint8_t *)streams + streams_size;
    r->at = read_number(streams, r->all_end, &count);
    if (!r->at || count > (uint64_t)(r->all_end - r->at)) return 0;
    r->literals = r->operations_end = r->at + count;
    r->base_size = base_size;
    r->end = 0;
    r->left = size;
    return 1;
}

/* Returns 0 if the operation is invalid. For literals, `r->literals` is behind them afterwards. */
static int next(reader *r, operation *o) {
    uint64_t number, length, shift;
    if (!(r->at = read_number(r->at, r->operations_end, &number))) return 0;
    length = number >> 1;
    if (length == 0 || length > r->left) return 0;
    o->length = (size_t)length;
    o->is_copy = number & 1;
    r->left -= o->length;
    if (!o->is_copy) {
        if (length > (uint64_t)(r->all_end - r->literals)) return 0;
        r->literals += length;
        return 1;
    }
    if (!(r->at = read_number(r->at, r->operations_end, &shift))) return 0;
    uint64_t distance = shift >> 1;
    /* Zigzag coding: an even number 2n means n forwards, an odd number 2n + 1 means n + 1 backwards. */
    if (shift & 1) {
        if (distance >= r->end) return 0;
        r->end -= (size_t)distance + 1;
    } else {
        if (distance > r->base_size - r->end) return 0;
        r->end += (size_t)distance;
    }
    if (length > r->base_size - r->end) return 0;
    o->from = r->end;
    r->end += o->length;
    return 1;
}

/* Returns whether the operations made the whole value and used all literals. */
static int is_used_up(const reader *r) { return r->left == 0 && r->literals == r->all_end; }

int llvs_shim_difference_apply(const void *streams, size_t streams_size, const void *base, size_t base_size, void *out, size_t size) {
    uint8_t *to = out;
    reader r;
    operation o;
    if (!begin(&r, streams, streams_size, base_size, size)) return 0;
    while (r.at < r.operations_end) {
        if (!next(&r, &o)) return 0;
        memcpy(to, o.is_copy ? (const uint8_t *)base + o.from : r.literals - o.length, o.length);
        to += o.length;
    }
    return is_used_up(&r);
}

/* ---- applying several at once ---- */

/* A value is described by pieces of memory, in order: each is a part of the base or of literals. `end` is where the piece ends in the
   value. */
typedef llvs_shim_piece piece;
typedef struct { piece *all; size_t count, room; } pieces;

static int add_piece(pieces *p, const uint8_t *from, size_t length) {
    size_t before = p->count ? p->all[p->count - 1].end : 0;
    if (p->count) {
        piece *last = &p->all[p->count - 1];
        size_t start = p->count > 1 ? last[-1].end : 0;
        if (last->from + (last->end - start) == from) { last->end += length; return 1; }
    }
    if (p->count == p->room) return 0;
    p->all[p->count++] = (piece){from, before + length};
    return 1;
}

/* Adds the pieces of a part of another value. The part lies within the value. `near` is where the search begins, and where it ended. */
static int add_part(pieces *to, const pieces *of, size_t from, size_t length, size_t *near) {
    size_t i = *near, low = 0, high = of->count;
    if (i >= of->count || from >= of->all[i].end || (i > 0 && from < of->all[i - 1].end)) {
        while (low < high) {
            i = low + (high - low) / 2;
            if (of->all[i].end <= from) low = i + 1;
            else high = i;
        }
        i = low;
    }
    while (length > 0) {
        size_t start = i > 0 ? of->all[i - 1].end : 0, count = of->all[i].end - from;
        if (count > length) count = length;
        if (!add_piece(to, of->all[i].from + (from - start), count)) return 0;
        from += count;
        length -= count;
        if (length > 0) i++;
    }
    *near = i;
    return 1;
}

int llvs_shim_difference_apply_all(const llvs_shim_difference *steps, size_t count, const void *base, size_t base_size, void *out,
                                   llvs_shim_piece *memory, size_t room) {
    pieces before = {memory, 0, room / 2}, made = {memory + room / 2, 0, room / 2};
    if (count == 0 || room < 2) return 0;
    if (base_size > 0) add_piece(&before, base, base_size);
    for (size_t i = 0; i < count; i++) {
        const llvs_shim_difference *step = &steps[i];
        size_t near = 0;
        reader r;
        operation o;
        if (!begin(&r, step->streams, step->streams_size, base_size, step->size)) return 0;
        made.count = 0;
        while (r.at < r.operations_end) {
            if (!next(&r, &o)) return 0;
            if (!(o.is_copy ? add_part(&made, &before, o.from, o.length, &near)
                            : add_piece(&made, r.literals - o.length, o.length))) return 0;
        }
        if (!is_used_up(&r)) return 0;
        pieces other = before;
        before = made;
        made = other;
        base_size = step->size;
    }
    uint8_t *to = out;
    for (size_t i = 0, at = 0; i < before.count; at = before.all[i++].end) {
        memcpy(to + at, before.all[i].from, before.all[i].end - at);
    }
    return 1;
}

/* ---- making ---- */

enum {
    BLOCK = 16,           /* bytes of the base for each entry of the index */
    MOST_BLOCKS = 65536,  /* if the base has more blocks, only every second, third... block is indexed */
    SHORTEST = 8,         /* bytes of the shortest copy; a copy operation takes about 4 bytes */
    SEARCHED = 128 << 10, /* if this many bytes have no match, the search ends */
};

static uint64_t eight(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static uint32_t hash(const uint8_t *at) {
    uint64_t mixed = eight(at) * 0x9E3779B97F4A7C15u ^ eight(at + 8) * 0xC2B2AE3D27D4EB4Fu;
    return (uint32_t)((mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9u >> 32);
}

/* Returns the length of the common prefix of two runs of bytes, at most `most`. */
static size_t common(const uint8_t *a, const uint8_t *b, size_t most) {
    size_t count = 0;
    while (most - count >= 8) {
        uint64_t differs = eight(a + count) ^ eight(b + count);
        if (differs) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return count + (size_t)(__builtin_ctzll(differs) >> 3);
#else
            return count + (size_t)(__builtin_clzll(differs) >> 3);
#endif
        }
        count += 8;
    }
    while (count < most && a[count] == b[count]) count++;
    return count;
}

/* Returns the length of the common suffix of two runs of bytes, at most `most`. `a` and `b` are the ends of the runs. */
static size_t common_before(const uint8_t *a, const uint8_t *b, size_t most) {
    size_t count = 0;
    while (most - count >= 8 && eight(a - count - 8) == eight(b - count - 8)) count += 8;
    while (count < most && a[-1 - (ptrdiff_t)count] == b[-1 - (ptrdiff_t)count]) count++;
    return count;
}

/* Writes operations. `at` becomes NULL if the room is too small; further operations are then discarded. */
typedef struct {
    uint8_t *at, *end;
    const uint8_t *value;
    size_t base_end;  /* where the previous copy ends in the base */
    size_t value_end; /* the operations so far make the value up to here */
    size_t literals;  /* bytes of all literals so far */
} writer;

static void write_number(writer *w, uint64_t number) {
    if (!w->at) return;
    do {
        if (w->at == w->end) { w->at = NULL; return; }
        *w->at++ = (uint8_t)(number & 127) | (number > 127 ? 128 : 0);
        number >>= 7;
    } while (number);
}

static void write_literals(writer *w, size_t until) {
    size_t count = until - w->value_end;
    if (count == 0) return;
    write_number(w, (uint64_t)count << 1);
    w->literals += count;
    w->value_end = until;
}

/* Writes a copy: the `length` bytes of the value from `at` equal those of the base from `where`. The bytes before `at` that have no
   operation yet become literals. */
static void write_copy(writer *w, size_t at, size_t where, size_t length) {
    write_literals(w, at);
    write_number(w, (uint64_t)length << 1 | 1);
    write_number(w, where >= w->base_end ? (uint64_t)(where - w->base_end) << 1 : ((uint64_t)(w->base_end - where - 1) << 1 | 1));
    w->base_end = where + length;
    w->value_end = at + length;
}

/* Maps the hash of a block of the base to the offset of the block plus one; 0 means no block. Of equal blocks it holds the first. */
typedef struct { uint32_t *places; unsigned bits; } block_index;

static int make_index(block_index *index, const uint8_t *base, size_t size) {
    size_t blocks = size / BLOCK, step = BLOCK;
    if (blocks > MOST_BLOCKS) { step = BLOCK * ((blocks + MOST_BLOCKS - 1) / MOST_BLOCKS); blocks = size / step; }
    index->bits = 6;
    while ((size_t)1 << index->bits < blocks * 2) index->bits++;
    size_t room = sizeof *index->places << index->bits;
    index->places = llvs_shim_allocate(room);
    if (!index->places) return 0;
    memset(index->places, 0, room);
    for (size_t i = 0; i < blocks; i++) {
        uint32_t *place = &index->places[hash(base + i * step) >> (32 - index->bits)];
        if (!*place) *place = (uint32_t)(i * step) + 1;
    }
    return 1;
}

/* Finds and writes copies for the value between `start` and `end`. Returns 0 if the room is too small, or if SEARCHED bytes have no match
   and nothing else is in common (`is_alike`). */
static int find_copies(writer *w, const block_index *index, const uint8_t *base, size_t base_size, size_t start, size_t end, int is_alike) {
    const uint8_t *value = w->value;
    size_t at = start;
    while (end - at >= BLOCK) {
        size_t where = SIZE_MAX, length = 0;
        /* If bytes were replaced by equally many, the base continues at the same distance. */
        size_t beside = w->base_end + (at - w->value_end);
        if (beside < base_size && base_size - beside >= SHORTEST && eight(base + beside) == eight(value + at)) {
            size_t most = base_size - beside < end - at ? base_size - beside : end - at;
            where = beside;
            length = common(base + beside, value + at, most);
        }
        if (length < 2 * BLOCK) {
            uint32_t place = index->places[hash(value + at) >> (32 - index->bits)];
            if (place && memcmp(base + place - 1, value + at, BLOCK) == 0) {
                size_t found = place - 1, most = base_size - found < end - at ? base_size - found : end - at;
                size_t after = common(base + found, value + at, most);
                if (after > length) { where = found; length = after; }
            }
        }
        if (length < SHORTEST) {
            at++;
            if (!is_alike && at - start > SEARCHED) return 0;
            continue;
        }
        size_t most = at - w->value_end < where ? at - w->value_end : where, before = common_before(base + where, value + at, most);
        write_copy(w, at - before, where - before, length + before);
        if (!w->at) return 0;
        at += length;
        is_alike = 1;
    }
    return 1;
}

size_t llvs_shim_difference_make(const void *from, size_t base_size, const void *to, size_t size, void *out, size_t capacity) {
    const uint8_t *base = from, *value = to;
    enum { NUMBER = 5 }; /* room for the size of the operations, which precedes them */
    if (size == 0 || base_size == 0 || base_size > INT32_MAX || size > INT32_MAX || capacity <= NUMBER) return 0;
    if (capacity > INT32_MAX) capacity = INT32_MAX;
    uint8_t *first = out, *operations = first + NUMBER;
    writer w = {operations, first + capacity, value, 0, 0, 0};
    size_t shorter = base_size < size ? base_size : size;
    size_t head = common(base, value, shorter), tail = common_before(base + base_size, value + size, shorter - head);
    if (head < SHORTEST) head = 0;
    if (tail < SHORTEST) tail = 0;
    if (head) write_copy(&w, 0, 0, head);
    size_t end = size - tail;
    if (end - head >= 2 * BLOCK && base_size >= BLOCK) {
        block_index index;
        if (!make_index(&index, base, base_size)) return 0;
        int is_worth = find_copies(&w, &index, base, base_size, head, end, head + tail > 0);
        free(index.places);
        if (!is_worth) return 0;
    }
    if (tail) write_copy(&w, end, base_size - tail, tail);
    else write_literals(&w, size);
    if (!w.at) return 0;
    size_t count = (size_t)(w.at - operations);
    writer number = {first, operations, NULL, 0, 0, 0};
    write_number(&number, count);
    if (!number.at || w.literals > capacity - (size_t)(number.at - first) - count) return 0;
    memmove(number.at, operations, count);
    /* Collect the literals by reading the operations again. */
    const uint8_t *at = number.at, *operations_end = at + count;
    uint8_t *literals = number.at + count;
    size_t made = 0;
    while (at < operations_end) {
        uint64_t operation, shift;
        at = read_number(at, operations_end, &operation);
        size_t length = (size_t)(operation >> 1);
        if (operation & 1) at = read_number(at, operations_end, &shift);
        else { memcpy(literals, value + made, length); literals += length; }
        made += length;
    }
    return (size_t)(literals - first);
}

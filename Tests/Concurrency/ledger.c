#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ledger.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../Faults/book.h"
#include "../Faults/files.h"
#include "../Faults/random.h"

struct ledger *ledger;
enum plant planted;

void ledger_make(void) {
    ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ledger == MAP_FAILED) broken("no memory for the ledger");
    ledger_clear();
}
void ledger_forget(void) {
    size_t used = ledger->count < LEDGER_MAX ? ledger->count : LEDGER_MAX;
    memset(ledger->entries, 0, sizeof ledger->entries[0] * used);
    memset(ledger->order, 0, sizeof ledger->order[0] * used);
    ledger->count = 1;
    ledger->acknowledged = 0;
    ledger->is_united = 0;
}
void ledger_clear(void) {
    ledger_forget();
    ledger->operations = 0;
    memset(ledger->tallies, 0, sizeof ledger->tallies);
    ledger->has_failed = 0;
    ledger->failure[0] = 0;
}

void ledger_fail(const char *format, ...) {
    va_list arguments;
    if (__atomic_exchange_n(&ledger->has_failed, 1, __ATOMIC_SEQ_CST)) return;
    va_start(arguments, format);
    vsnprintf(ledger->failure, sizeof ledger->failure, format, arguments);
    va_end(arguments);
}
int ledger_has_failed(void) { return __atomic_load_n(&ledger->has_failed, __ATOMIC_SEQ_CST); }
void tally(enum tally what, long by) { __atomic_add_fetch(&ledger->tallies[what], by, __ATOMIC_RELAXED); }

int ledger_sees(uint32_t world, const struct ledger_entry *entry) {
    return entry->world == 0 || entry->world == world || entry->world == WORLD_ENDS + world ||
           (ledger->is_united && entry->world < WORLD_ENDS);
}
struct ledger_entry *ledger_ask(uint32_t base, uint32_t world) {
    uint32_t number = __atomic_fetch_add(&ledger->count, 1, __ATOMIC_SEQ_CST);
    struct ledger_entry *entry;
    if (number >= LEDGER_MAX) broken("the ledger is full");
    entry = &ledger->entries[number];
    snprintf(entry->id, sizeof entry->id, "v%u", number);
    entry->predecessors[0] = base;
    entry->world = world;
    if (base) memcpy(entry->state, ledger->entries[base].state, sizeof entry->state);
    return entry;
}
void ledger_acknowledge(struct ledger_entry *entry) {
    uint32_t place;
    __atomic_store_n(&entry->phase, PHASE_ACKNOWLEDGED, __ATOMIC_SEQ_CST);
    place = __atomic_fetch_add(&ledger->acknowledged, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ledger->order[place], number_of(entry), __ATOMIC_SEQ_CST);
}
uint32_t number_of(const struct ledger_entry *entry) { return (uint32_t)(entry - ledger->entries); }

uint32_t ledger_pick(uint64_t *random, uint32_t world) {
    uint32_t count = __atomic_load_n(&ledger->acknowledged, __ATOMIC_SEQ_CST), from = 0, number;
    if (count == 0) return 0;
    /* Prefers the newest versions, which other workers have just made. */
    if (count > 50 && random_below(random, 2)) from = count - 50;
    for (int i = 0; i < 8; i++) {
        number = __atomic_load_n(&ledger->order[from + random_below(random, count - from)], __ATOMIC_SEQ_CST);
        if (number && ledger_sees(world, &ledger->entries[number])) return number;
    }
    return 0;
}

uint32_t entry_of_id(llvs_bytes id) {
    uint32_t number = 0;
    if (id.size < 2 || id.size > 10 || id.data[0] != 'v') return 0;
    for (size_t i = 1; i < id.size; i++) {
        if (id.data[i] < '0' || id.data[i] > '9') return 0;
        number = number * 10 + (uint32_t)(id.data[i] - '0');
    }
    return number < __atomic_load_n(&ledger->count, __ATOMIC_SEQ_CST) ? number : 0;
}

/* ---- Values ---- */

static char names[KEYS][16];
__attribute__((constructor)) static void make_names(void) {
    for (int i = 0; i < KEYS; i++) snprintf(names[i], sizeof names[i], i < PRIVATE_KEYS ? "mine/%02d" : "ours/%02d", i);
}
const char *key_name(int key) { return names[key]; }
int key_of_id(llvs_bytes id) {
    for (int i = 0; i < KEYS; i++) if (id.size == strlen(names[i]) && memcmp(id.data, names[i], id.size) == 0) return i;
    return KEYS;
}
uint32_t stored_in(const struct ledger_entry *entry, int key) { return entry->state[key] & REMOVED ? 0 : entry->state[key]; }

/* Most values are small. Some are compressed or cross blocks, and few are files of their own. */
static uint32_t size_of_value(uint32_t entry, int key) {
    uint64_t random = (uint64_t)entry * KEYS + (uint64_t)key;
    uint64_t draw = random_next(&random) % 1000;
    if (key == KEYS - 1 && draw < 25) return (1 << 20) + 1 + (uint32_t)(random_next(&random) % 70000);
    if (draw < 40) return (uint32_t)(random_next(&random) % 9000);
    return (uint32_t)(random_next(&random) % 120);
}
uint8_t *stored_bytes(uint32_t entry, int key, uint32_t *size) {
    *size = size_of_value(entry, key);
    return value_bytes((uint64_t)entry * KEYS + (uint64_t)key, *size);
}
int bytes_are_stored(llvs_bytes bytes, uint32_t entry, int key) {
    uint32_t size;
    uint8_t *expected = stored_bytes(entry, key, &size);
    int are = bytes.data != NULL && bytes.size == size && memcmp(bytes.data, expected, size) == 0;
    free(expected);
    return are;
}

/* ---- Merges ---- */

const char *merged_state(const struct ledger_entry *a, const struct ledger_entry *b, const uint32_t prevailing[KEYS],
                         uint32_t state[KEYS]) {
    static __thread char wrong[160];
    for (int key = 0; key < KEYS; key++) {
        uint32_t x = a->state[key], y = b->state[key];
        uint32_t from_x = stored_in(a, key), from_y = stored_in(b, key), found = prevailing[key];
        if (key < PRIVATE_KEYS) {
            /* Only one worker changes this value, so the later of the two descends from the earlier. */
            state[key] = (x & ~REMOVED) >= (y & ~REMOVED) ? x : y;
            if (found == (state[key] & REMOVED ? 0 : state[key])) continue;
        } else {
            state[key] = found == from_x ? x : y;
            if (found == from_x || found == from_y) continue;
        }
        snprintf(wrong, sizeof wrong, "the value %s is of v%u; on the two sides it is of v%u and v%u", key_name(key), found, from_x,
                 from_y);
        return wrong;
    }
    return NULL;
}

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "book.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "files.h"

struct book *book;

/* ---- Digests ---- */

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}
static uint64_t digest_of(uint64_t hash, const uint8_t *bytes, size_t size) {
    hash = mixed(hash, size);
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = mixed(hash, word);
        bytes += 8;
        size -= 8;
    }
    for (; size > 0; size--) hash = mixed(hash, *bytes++);
    return hash;
}

uint8_t *value_bytes(uint64_t seed, uint32_t size) {
    uint8_t *bytes = malloc((size_t)size + 8);
    uint64_t edit = seed >> 32, word = (seed & UINT32_MAX) * 2 + 1;
    if (!bytes) broken("out of memory");
    for (uint32_t at = 0; at < size; at += 8) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        uint64_t mixed_word = word ^ (word >> 31);
        memcpy(bytes + at, &mixed_word, 8);
    }
    if (edit && size > 24) memcpy(bytes + 16 + edit * 7919 % (size - 23), &edit, 8);
    return bytes;
}

/* ---- States ---- */

static int place_of(const struct state *state, const char *key, int *is_there) {
    int at = 0;
    while (at < state->count && strcmp(state->items[at].key, key) < 0) at++;
    *is_there = at < state->count && strcmp(state->items[at].key, key) == 0;
    return at;
}
void state_set(struct state *state, const char *key, uint64_t seed, uint32_t size) {
    int is_known, at = place_of(state, key, &is_known);
    if (!is_known) {
        if (state->count == STATE_ITEMS || strlen(key) >= KEY_SIZE) broken("no room for %s in a state", key);
        memmove(&state->items[at + 1], &state->items[at], sizeof state->items[0] * (size_t)(state->count - at));
        state->count++;
        memset(&state->items[at], 0, sizeof state->items[at]);
        snprintf(state->items[at].key, KEY_SIZE, "%s", key);
    }
    state->items[at].seed = seed;
    state->items[at].size = size;
}
void state_remove(struct state *state, const char *key) {
    int is_known, at = place_of(state, key, &is_known);
    if (!is_known) return;
    memmove(&state->items[at], &state->items[at + 1], sizeof state->items[0] * (size_t)(state->count - at - 1));
    state->count--;
}

static uint64_t digest_of_ids(const llvs_bytes *predecessors, size_t count) {
    uint64_t hash = mixed(1, count);
    for (size_t i = 0; i < count; i++) hash = digest_of(hash, predecessors[i].data, predecessors[i].size);
    return hash;
}
static uint64_t with_value(uint64_t hash, llvs_bytes id, const uint8_t *data, size_t size) {
    return digest_of(digest_of(hash, id.data, id.size), data, size);
}

uint64_t state_digest(const struct state *state, const llvs_bytes *predecessors, size_t predecessor_count) {
    uint64_t hash = digest_of_ids(predecessors, predecessor_count);
    for (int i = 0; i < state->count; i++) {
        const struct item *item = &state->items[i];
        if (strncmp(item->key, ERASABLE, strlen(ERASABLE)) == 0) continue;
        uint8_t *bytes = value_bytes(item->seed, item->size);
        hash = with_value(hash, llvs_str(item->key), bytes, item->size);
        free(bytes);
    }
    return hash;
}

static int begins(llvs_bytes id, const char *text) { return id.size >= strlen(text) && memcmp(id.data, text, strlen(text)) == 0; }

llvs_status version_digest(llvs_store *store, const llvs_version_info *version, uint64_t *digest, llvs_error **error) {
    uint64_t hash = digest_of_ids(version->predecessors, version->predecessor_count);
    llvs_range range = LLVS_RANGE_INIT;
    char last[KEY_SIZE * 4];
    for (;;) {
        llvs_value_list *values;
        llvs_status status = llvs_store_enumerate(store, version->id, &range, &values, error);
        if (status != LLVS_OK) return status;
        if (!values) break;
        for (size_t i = 0; i < values->count; i++) {
            const llvs_value_info *value = values->items[i];
            if (!begins(value->id, ERASABLE) && !begins(value->id, "__llvs_forget/"))
                hash = with_value(hash, value->id, value->data.data, value->data.size);
            if (value->id.size < sizeof last) {
                memcpy(last, value->id.data, value->id.size);
                range.after = llvs_bytes_make(last, value->id.size);
            }
        }
        llvs_value_list_free(values);
    }
    *digest = hash;
    return LLVS_OK;
}

int is_sampled(size_t index, size_t count) { return count <= 200 || index < 4 || index + 4 >= count || index % 50 == 0; }

/* ---- The book ---- */

struct book *book_make(void) {
    struct book *new = mmap(NULL, sizeof *new, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (new == MAP_FAILED) broken("no memory for the book");
    return new;
}
size_t book_size(const struct book *of) { return offsetof(struct book, asked) + sizeof of->asked[0] * (size_t)of->count; }

void book_fail(const char *format, ...) {
    va_list arguments;
    if (book->failure[0]) return;
    va_start(arguments, format);
    vsnprintf(book->failure, sizeof book->failure, format, arguments);
    va_end(arguments);
}

struct asked *book_find(llvs_bytes id) {
    for (int i = 0; i < book->count; i++) {
        if (strlen(book->asked[i].id) == id.size && memcmp(book->asked[i].id, id.data, id.size) == 0) return &book->asked[i];
    }
    return NULL;
}

struct asked *book_ask(const char *id, const struct state *state, const llvs_bytes *predecessors, size_t predecessor_count) {
    struct asked *asked;
    if (book->count == BOOK_MAX) broken("the book is full");
    asked = &book->asked[book->count];
    memset(asked, 0, sizeof *asked);
    if (id) snprintf(asked->id, ID_SIZE, "%s", id);
    asked->state = *state;
    asked->digest = state_digest(state, predecessors, predecessor_count);
    book->count++;
    return asked;
}

void book_move_elsewhere(void) {
    for (int i = 0; i < book->count; i++) {
        struct asked *asked = &book->asked[i];
        asked->acknowledged = asked->can_be_repeated = 0;
        asked->acknowledged_at = asked->durable_at = 0;
        asked->handle = 0;
    }
}

void book_damage(const char *id) {
    struct asked *asked = book_find(llvs_str(id));
    if (!asked) return;
    asked->is_damaged = 1;
    asked->acknowledged = asked->can_be_repeated = 0;
    asked->acknowledged_at = asked->durable_at = 0;
}

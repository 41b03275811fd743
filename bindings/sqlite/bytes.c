/* Converts values to SQLite's types, and constraints to bounds of ids. */
#include "extension.h"
#include <stdlib.h>

int bytes_set(bytes *bytes, const void *data, size_t size) {
    if (!bytes->data || bytes->capacity < size + 1) {
        uint8_t *larger = sqlite3_realloc64(bytes->data, size + 1);
        if (!larger) return SQLITE_NOMEM;
        bytes->data = larger;
        bytes->capacity = size + 1;
    }
    if (size) memcpy(bytes->data, data, size);
    bytes->data[size] = 0;
    bytes->size = size;
    return SQLITE_OK;
}

void bytes_free(bytes *bytes) {
    sqlite3_free(bytes->data);
    memset(bytes, 0, sizeof *bytes);
}

llvs_bytes bytes_given(const bytes *bytes) { return llvs_bytes_make(bytes->data, bytes->size); }

/* ---- text ---- */

/* The size of the character of UTF-8 at `at`, if it is not ASCII; 0 if the bytes are no such character. */
static size_t wide_character(const uint8_t *at, size_t left) {
    uint8_t first = at[0];
    size_t size = first >= 0xC2 && first <= 0xDF ? 2 : first >= 0xE0 && first <= 0xEF ? 3 : first >= 0xF0 && first <= 0xF4 ? 4 : 0, i;
    if (size == 0 || left < size) return 0;
    for (i = 1; i < size; i++) {
        if ((at[i] & 0xC0) != 0x80) return 0;
    }
    /* Overlong, a surrogate, or beyond Unicode. */
    if ((first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] > 0x9F) || (first == 0xF0 && at[1] < 0x90) ||
        (first == 0xF4 && at[1] > 0x8F)) return 0;
    return size;
}

/* The number of bytes up to the first that is not text. */
static size_t text_size(const uint8_t *data, size_t size) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    size_t at = 0;
    while (at < size) {
        uint64_t word;
        if (size - at >= 8) {
            memcpy(&word, data + at, 8);
            if (!((word | (word - ones)) & tops)) {
                at += 8;
                continue;
            }
        }
        if (data[at] == 0) return at;
        if (data[at] < 0x80) {
            at++;
        } else {
            size_t wide = wide_character(data + at, size - at);
            if (!wide) return at;
            at += wide;
        }
    }
    return at;
}

int is_text(const uint8_t *data, size_t size) { return text_size(data, size) == size; }

/* Controls, line separators and direction marks. On a terminal they would move the cursor or the words around them. */
static int is_control(const uint8_t *at, size_t size) {
    if (size == 1) return at[0] < 0x20 || at[0] == 0x7F;
    if (size == 2) return at[0] == 0xC2 && at[1] < 0xA0;
    if (size != 3 || at[0] != 0xE2) return 0;
    return (at[1] == 0x80 && at[2] >= 0xA8 && at[2] <= 0xAE) || (at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9);
}

char *told_of(llvs_bytes name, const char *sentence) {
    char shown[256];
    size_t from = 0, to = 0;
    while (from < name.size && to < 200) {
        const uint8_t *at = name.data + from;
        size_t size = at[0] && at[0] < 0x80 ? 1 : at[0] ? wide_character(at, name.size - from) : 0;
        if (size && !is_control(at, size)) memcpy(shown + to, at, size);
        else shown[to] = '?';
        to += size && !is_control(at, size) ? size : 1;
        from += size ? size : 1;
    }
    if (from < name.size) memcpy(shown + to, "...", 3);
    shown[from < name.size ? to + 3 : to] = 0;
    return sqlite3_mprintf(sentence, shown);
}

static size_t exact_size(const uint8_t *data, size_t size) {
    size_t i;
    for (i = 0; i + 2 < size; i++) {
        if (data[i] == 0xEF && data[i + 1] == 0xBF && data[i + 2] == 0xBD) return i;
    }
    return size;
}

int is_exact(const uint8_t *data, size_t size) { return exact_size(data, size) == size; }

/* ---- results ---- */

void result_text(sqlite3_context *context, llvs_bytes text) {
    if (!text.data) sqlite3_result_null(context);
    else sqlite3_result_text64(context, (const char *)text.data, text.size, SQLITE_TRANSIENT, SQLITE_UTF8);
}

void result_state(sqlite3_context *context, llvs_value_state state) {
    if (state == LLVS_VALUE_ERASED) sqlite3_result_text(context, "erased", -1, SQLITE_STATIC);
    else if (state == LLVS_VALUE_FORGOTTEN) sqlite3_result_text(context, "forgotten", -1, SQLITE_STATIC);
    else sqlite3_result_null(context);
}

void result_data(sqlite3_context *context, llvs_bytes id, const uint8_t *data, size_t size) {
    int limit = sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1);
    if (size > (size_t)limit) {
        char *sentence = sqlite3_mprintf("the value \"%%s\" has %llu bytes, more than the %d that a value in SQL may have here",
            (unsigned long long)size, limit);
        char *message = sentence ? told_of(id, sentence) : NULL;
        sqlite3_free(sentence);
        result_failure(context, message ? SQLITE_TOOBIG : SQLITE_NOMEM, message);
        return;
    }
    /* A NULL pointer would be a NULL in SQL; "" stands for an empty text. */
    if (is_text(data, size)) sqlite3_result_text64(context, size ? (const char *)data : "", size, SQLITE_TRANSIENT, SQLITE_UTF8);
    else sqlite3_result_blob64(context, data, size, SQLITE_TRANSIENT);
}

void result_change(sqlite3_context *context, llvs_change_kind change) {
    static const char *const names[] = { NULL, "insert", "update", "remove", "preserve", "preserve removal" };
    if (change >= 1 && change <= 5) sqlite3_result_text(context, names[change], -1, SQLITE_STATIC);
    else sqlite3_result_null(context);
}

uint64_t row_number(uint64_t seed, llvs_bytes part) {
    uint64_t number = seed ^ 14695981039346656037u;
    size_t i;
    /* FNV-1a. The size distinguishes ("a", "bc") from ("ab", "c"). */
    for (i = 0; i < part.size; i++) number = (number ^ part.data[i]) * 1099511628211u;
    return (number ^ part.size) * 1099511628211u;
}

/* ---- lists ---- */

static int compare(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size) {
    size_t size = a_size < b_size ? a_size : b_size;
    int order = size ? memcmp(a, b, size) : 0;
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare_items(const void *a, const void *b) {
    const bytes *x = a, *y = b;
    return compare(x->data, x->size, y->data, y->size);
}

void texts_free(texts *texts) {
    size_t i;
    for (i = 0; i < texts->count; i++) bytes_free(&texts->items[i]);
    sqlite3_free(texts->items);
    memset(texts, 0, sizeof *texts);
}

#if SQLITE_VERSION_NUMBER >= 3038000
static int texts_add(texts *texts, const uint8_t *data, size_t size) {
    bytes added = { NULL, 0, 0 };
    int code;
    if (texts->count == texts->capacity) {
        size_t larger = texts->capacity ? 2 * texts->capacity : 16;
        bytes *items = sqlite3_realloc64(texts->items, larger * sizeof *items);
        if (!items) return SQLITE_NOMEM;
        texts->items = items;
        texts->capacity = larger;
    }
    code = bytes_set(&added, data, size);
    if (code == SQLITE_OK) texts->items[texts->count++] = added;
    return code;
}

int texts_of(const constraint *constraint, size_t longest, texts *texts, int *are_all) {
    sqlite3_value *value;
    size_t i, kept = 0;
    int code;
    *are_all = 1;
    for (code = sqlite3_vtab_in_first(constraint->value, &value); code == SQLITE_OK;
         code = sqlite3_vtab_in_next(constraint->value, &value)) {
        const uint8_t *data;
        size_t size;
        /* A NULL and a blob equal no text. */
        if (sqlite3_value_type(value) == SQLITE_NULL || sqlite3_value_type(value) == SQLITE_BLOB) continue;
        data = sqlite3_value_text(value);
        size = (size_t)sqlite3_value_bytes(value);
        if (!data) return SQLITE_NOMEM;
        if (is_number(value) || !is_exact(data, size)) *are_all = 0;
        else if (size > 0 && size <= longest && texts_add(texts, data, size) != SQLITE_OK) return SQLITE_NOMEM;
    }
    if (code != SQLITE_DONE) return code;
    if (texts->count) qsort(texts->items, texts->count, sizeof *texts->items, compare_items);
    for (i = 0; i < texts->count; i++) {
        if (kept && compare_items(&texts->items[kept - 1], &texts->items[i]) == 0) bytes_free(&texts->items[i]);
        else texts->items[kept++] = texts->items[i];
    }
    texts->count = kept;
    return SQLITE_OK;
}
#else
int texts_of(const constraint *constraint, size_t longest, texts *texts, int *are_all) {
    (void)constraint;
    (void)longest;
    (void)texts;
    *are_all = 0;
    return SQLITE_OK;
}
#endif

/* ---- bounds ---- */

void bounds_free(bounds *bounds) {
    bytes_free(&bounds->from);
    bytes_free(&bounds->to);
    bytes_free(&bounds->any_case);
    bytes_free(&bounds->one);
    texts_free(&bounds->list);
    memset(bounds, 0, sizeof *bounds);
}

static int raise_from(bounds *bounds, const void *data, size_t size) {
    if (compare(data, size, bounds->from.data, bounds->from.size) <= 0) return SQLITE_OK;
    return bytes_set(&bounds->from, data, size);
}

static int lower_to(bounds *bounds, const void *data, size_t size) {
    if (size == 0) bounds->is_empty = 1;
    if (bounds->has_to && compare(data, size, bounds->to.data, bounds->to.size) >= 0) return SQLITE_OK;
    bounds->has_to = 1;
    return bytes_set(&bounds->to, data, size);
}

/* Sets the end before the first text that is larger than every text with these first bytes. */
static int lower_to_end_of(bounds *bounds, const uint8_t *data, size_t size) {
    bytes end = { NULL, 0, 0 };
    int code = size ? bytes_set(&end, data, size) : SQLITE_OK;
    if (size && code == SQLITE_OK) {
        end.data[size - 1]++; /* cannot overflow: no byte of UTF-8 is 0xFF */
        code = lower_to(bounds, end.data, size);
    }
    bytes_free(&end);
    return code;
}

static int is_letter(uint8_t byte) { return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z'; }
static uint8_t upper(uint8_t byte) { return is_letter(byte) ? byte & ~0x20 : byte; }
static uint8_t lower(uint8_t byte) { return is_letter(byte) ? byte | 0x20 : byte; }

/* The size of the text before the first wildcard of a pattern. (A LIKE reads a pattern up to its first NUL.) */
static size_t fixed_part(const uint8_t *pattern, size_t size, const char *wildcards) {
    size_t i;
    size = exact_size(pattern, text_size(pattern, size));
    for (i = 0; i < size; i++) {
        if (strchr(wildcards, pattern[i])) return i;
    }
    return size;
}

static int narrow_like(bounds *bounds, const uint8_t *pattern, size_t size) {
    bytes changed = { NULL, 0, 0 };
    size_t i;
    int code;
    /* No id is longer than LLVS_VALUE_ID_SIZE_MAX. Only the first LIKE narrows the range. */
    if (size == 0 || size > LLVS_VALUE_ID_SIZE_MAX || bounds->any_case.size) return SQLITE_OK;
    code = bytes_set(&changed, pattern, size);
    for (i = 0; code == SQLITE_OK && i < size; i++) changed.data[i] = upper(pattern[i]);
    if (code == SQLITE_OK) code = raise_from(bounds, changed.data, size);
    if (code == SQLITE_OK) code = bytes_set(&bounds->any_case, changed.data, size);
    for (i = 0; code == SQLITE_OK && i < size; i++) changed.data[i] = lower(pattern[i]);
    if (code == SQLITE_OK) code = lower_to_end_of(bounds, changed.data, size);
    bytes_free(&changed);
    return code;
}

int bounds_narrow(bounds *bounds, const constraint *constraint) {
    const uint8_t *data;
    size_t size;
    int code;
    /* A blob is larger than every text. */
    if (sqlite3_value_type(constraint->value) == SQLITE_BLOB && constraint->operator < OP_LIKE) {
        if (constraint->operator & (OP_EQ | OP_GT | OP_GE)) bounds->is_empty = 1;
        return SQLITE_OK;
    }
    if (constraint->operator < OP_LIKE && is_number(constraint->value)) return SQLITE_OK;
    if (constraint->operator == OP_IN) {
        texts list = { NULL, 0, 0 };
        int are_all;
        code = texts_of(constraint, LLVS_VALUE_ID_SIZE_MAX, &list, &are_all);
        /* Only the first list narrows the search. */
        if (code != SQLITE_OK || !are_all || bounds->has_list) {
            texts_free(&list);
            return code;
        }
        bounds->has_list = 1;
        bounds->list = list;
        if (list.count == 0) bounds->is_empty = 1;
        return SQLITE_OK;
    }
    data = sqlite3_value_text(constraint->value);
    size = (size_t)sqlite3_value_bytes(constraint->value);
    if (!data) return SQLITE_NOMEM;
    switch (constraint->operator) {
    case OP_EQ:
        if (!is_exact(data, size)) return SQLITE_OK;
        bounds->has_one = 1;
        if (size == 0 || size > LLVS_VALUE_ID_SIZE_MAX) bounds->is_empty = 1;
        return bytes_set(&bounds->one, data, size <= LLVS_VALUE_ID_SIZE_MAX ? size : 0);
    case OP_LIKE: return narrow_like(bounds, data, fixed_part(data, size, "%_"));
    case OP_GLOB:
        size = fixed_part(data, size, "*?[");
        code = size <= LLVS_VALUE_ID_SIZE_MAX ? raise_from(bounds, data, size) : SQLITE_OK;
        return code == SQLITE_OK && size <= LLVS_VALUE_ID_SIZE_MAX ? lower_to_end_of(bounds, data, size) : code;
    /* Includes the NUL that SQLite writes after the text: the range then begins at the first larger id. A longer text is cut: no id is
     * longer. */
    case OP_GT: return raise_from(bounds, data, size < LLVS_VALUE_ID_SIZE_MAX ? size + 1 : LLVS_VALUE_ID_SIZE_MAX);
    case OP_GE: return raise_from(bounds, data, size < LLVS_VALUE_ID_SIZE_MAX ? size : LLVS_VALUE_ID_SIZE_MAX);
    case OP_LT:
    case OP_LE:
        /* The text may come from a column of numbers. An id that looks like a number is then compared as a number, and sorts before
           every text. Such ids are below ":". */
        if (size == 0 || data[0] < ':') return lower_to(bounds, (const uint8_t *)":", 1);
        return size > LLVS_VALUE_ID_SIZE_MAX ? SQLITE_OK : lower_to(bounds, data, size + (constraint->operator == OP_LE));
    default: return SQLITE_OK;
    }
}

int bounds_match(bounds *bounds, llvs_bytes id, int *next, int *code) {
    const uint8_t *wanted = bounds->any_case.data;
    size_t size = bounds->any_case.size, same = 0, i, turn;
    *next = 0;
    *code = SQLITE_OK;
    while (same < size && same < id.size && upper(id.data[same]) == wanted[same]) same++;
    if (same == size) return 1;
    /* Seeks the smallest later text with a matching prefix. Searches backwards for the last position at which a spelling of the wanted
     * letter is larger than the byte of the id. */
    turn = same;
    if (same < id.size && lower(wanted[same]) < id.data[same]) {
        while (turn > 0 && id.data[turn - 1] == lower(wanted[turn - 1])) turn--;
        if (turn == 0) return 0;
        turn--;
    }
    *code = bytes_set(&bounds->from, wanted, size);
    if (*code != SQLITE_OK) return 0;
    for (i = 0; i < turn; i++) bounds->from.data[i] = id.data[i];
    if (turn < id.size && wanted[turn] <= id.data[turn]) bounds->from.data[turn] = lower(wanted[turn]);
    *next = 1;
    return 0;
}

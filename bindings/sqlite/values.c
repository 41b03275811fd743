/* llvs_values(store, at, index_name, find, begins, low, high): the values at a version. */
#include "extension.h"

enum { ID, DATA, STORED_VERSION };

static const column columns[] = {
    { "id", PLAIN, OP_EQ | OP_GT | OP_GE | OP_LT | OP_LE | OP_LIKE | OP_GLOB },
    { "data", PLAIN, 0 },
    { "stored_version", PLAIN, 0 },
    { "store", REQUIRED, OP_EQ },
    { "at", ARGUMENT, OP_EQ },
    { "index_name", ARGUMENT, OP_EQ },
    { "find", ARGUMENT, OP_EQ },
    { "begins", ARGUMENT, OP_EQ },
    { "low", ARGUMENT, OP_EQ },
    { "high", ARGUMENT, OP_EQ },
    { "key", PLAIN, 0 },
    { "version", PLAIN, 0 },
    { "gone", PLAIN, 0 },
};

static double rows(const unsigned *given) {
    if (given[ID] & OP_EQ) return 1;
    if (given[ID] & OP_IN) return 10;
    if (given[VALUES_INDEX] && given[VALUES_FIND]) return 50;
    if (given[VALUES_INDEX]) return given[VALUES_BEGINS] ? 500 : given[VALUES_LOW] || given[VALUES_HIGH] ? 5000 : 50000;
    if (given[ID] & (OP_LIKE | OP_GLOB)) return 1000;
    if (given[ID] & (OP_GT | OP_GE) && given[ID] & (OP_LT | OP_LE)) return 1000;
    return given[ID] ? 30000 : 100000;
}

const table_kind values_kind = {
    "llvs_values",
    "llvs_values('notes.llvs')",
    "CREATE TABLE llvs_values(id TEXT, data, stored_version TEXT, store HIDDEN, at HIDDEN, index_name HIDDEN, find HIDDEN, begins HIDDEN, "
    "low HIDDEN, high HIDDEN, key TEXT HIDDEN, version TEXT HIDDEN, gone TEXT HIDDEN)",
    columns, sizeof columns / sizeof *columns, ID, 1, rows,
};

/* Pages begin small and grow, since many queries need one row. */
enum { FIRST_PAGE = 64, LARGEST_PAGE = 4096, LARGEST_PAGE_BYTES = 4 << 20 };

typedef struct values_cursor {
    cursor cursor;
    llvs_version_id at;
    /* The current row. */
    llvs_bytes id, data, stored, key;
    /* Whether the value's bytes are present: a llvs_value_state. */
    llvs_value_state state;
    /* One value by its id. */
    bytes one;
    llvs_version_id one_stored;
    /* If the rows are a range of ids: the bounds. */
    bounds bounds;
    /* If the query has IN: the number of ids searched so far. */
    size_t looked_for;
    bytes last;
    uint64_t page_size;
    llvs_value_block *block;
    /* If the query uses an index: the search. */
    search *search;
    const llvs_index_page *page;
    /* The number of rows of the block or page, and of the rows that were read. */
    size_t count, next_row;
    const uint8_t *next_id, *next_data, *next_key;
    const uint64_t *id_sizes;
    const llvs_value_block *values;
    /* The version ids of the block by their numbers; NULL before the first use. */
    const uint8_t **versions;
} values_cursor;

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **result) {
    (void)table;
    return cursor_make(sizeof(values_cursor), result);
}

static void end_page(values_cursor *cursor) {
    llvs_value_block_free(cursor->block);
    cursor->block = NULL;
    sqlite3_free(cursor->versions);
    cursor->versions = NULL;
    cursor->count = cursor->next_row = 0;
}

static void end_search(values_cursor *cursor) {
    end_page(cursor);
    search_free(cursor->search);
    cursor->search = NULL;
    cursor->page = NULL;
    bounds_free(&cursor->bounds);
    cursor->looked_for = 0;
    cursor->last.size = 0;
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    values_cursor *cursor = (values_cursor *)base;
    end_search(cursor);
    bytes_free(&cursor->last);
    bytes_free(&cursor->one);
    cursor_end(&cursor->cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int wants(const values_cursor *cursor, int column) { return cursor->cursor.columns >> column & 1; }
/* Only a read shows whether the bytes are present. */
static int wants_bytes(const values_cursor *cursor) { return wants(cursor, DATA) || wants(cursor, VALUES_GONE); }

/* ---- pages ---- */

static int next_block(values_cursor *cursor) {
    llvs_range range = LLVS_RANGE_INIT;
    llvs_error *error;
    llvs_status status;
    range.without_data = !wants_bytes(cursor);
    range.from = bytes_given(&cursor->bounds.from);
    range.to = bytes_given(&cursor->bounds.to);
    range.reverse = cursor->cursor.is_descending != 0;
    if (range.reverse) range.before = bytes_given(&cursor->last);
    else range.after = bytes_given(&cursor->last);
    range.limit = cursor->page_size;
    range.byte_limit = cursor->page_size * (LARGEST_PAGE_BYTES / LARGEST_PAGE);
    if (cursor->page_size < LARGEST_PAGE) cursor->page_size *= 4;
    end_page(cursor);
    status = llvs_store_enumerate_block(cursor->cursor.store->store, llvs_id(&cursor->at), &range, &cursor->block, &error);
    if (status != LLVS_OK) return cursor_tell(&cursor->cursor, status, error);
    if (!cursor->block || cursor->block->count == 0) {
        cursor->cursor.is_at_end = 1;
        return SQLITE_OK;
    }
    cursor->values = cursor->block;
    cursor->count = cursor->block->count;
    cursor->id_sizes = cursor->block->id_sizes;
    cursor->next_id = cursor->block->ids.data;
    cursor->next_data = cursor->block->data.data;
    return SQLITE_OK;
}

static int next_found(values_cursor *cursor) {
    int code;
    end_page(cursor);
    code = search_next(&cursor->cursor, cursor->search, &cursor->page);
    if (code != SQLITE_OK) return code;
    if (!cursor->page) {
        cursor->cursor.is_at_end = 1;
        return SQLITE_OK;
    }
    cursor->values = cursor->page->values;
    cursor->count = cursor->page->count;
    cursor->id_sizes = cursor->page->id_sizes;
    cursor->next_id = cursor->page->ids.data;
    cursor->next_key = cursor->page->key_sizes ? cursor->page->keys.data : NULL;
    cursor->next_data = cursor->values ? cursor->values->data.data : NULL;
    return SQLITE_OK;
}

/* Reads the next row of the page. */
static void take_row(values_cursor *cursor) {
    size_t row = cursor->next_row++;
    cursor->id = llvs_bytes_make(cursor->next_id, (size_t)cursor->id_sizes[row]);
    cursor->next_id += cursor->id.size + 1;
    cursor->data = LLVS_NONE;
    if (cursor->values && cursor->values->data_sizes) {
        cursor->data = llvs_bytes_make(cursor->next_data, (size_t)cursor->values->data_sizes[row]);
        if (cursor->next_data) cursor->next_data += cursor->data.size;
    }
    cursor->state = cursor->values && cursor->values->states ? cursor->values->states[row] : LLVS_VALUE_HERE;
    if (cursor->next_key) {
        cursor->key = llvs_bytes_make(cursor->next_key, (size_t)cursor->page->key_sizes[row]);
        cursor->next_key += cursor->key.size + 1;
    }
}

static int find_next(values_cursor *cursor);

static int next(sqlite3_vtab_cursor *base) {
    values_cursor *cursor = (values_cursor *)base;
    if (!cursor->search && !cursor->block) return find_next(cursor);
    for (;;) {
        int code, is_later;
        if (cursor->next_row == cursor->count) {
            code = cursor->search ? next_found(cursor) : next_block(cursor);
            if (code != SQLITE_OK || cursor->cursor.is_at_end) return code;
            if (cursor->count == 0) continue;
        }
        take_row(cursor);
        if (cursor->search) return SQLITE_OK;
        if (cursor->next_row == cursor->count) {
            code = bytes_set(&cursor->last, cursor->id.data, cursor->id.size);
            if (code != SQLITE_OK) return code;
        }
        if (bounds_match(&cursor->bounds, cursor->id, &is_later, &code)) return SQLITE_OK;
        if (code != SQLITE_OK || !is_later) {
            cursor->cursor.is_at_end = 1;
            return code;
        }
        /* Discards the rest of the page: no id before the new bound matches. */
        cursor->next_row = cursor->count;
        cursor->last.size = 0;
        cursor->page_size = FIRST_PAGE;
    }
}

/* ---- single values ---- */

static int find_one(values_cursor *cursor, llvs_bytes id) {
    llvs_store *store = cursor->cursor.store->store;
    llvs_error *error;
    llvs_status status;
    size_t size = SIZE_MAX;
    cursor->state = LLVS_VALUE_HERE;
    if (!wants_bytes(cursor)) {
        status = llvs_store_reference(store, id, llvs_id(&cursor->at), &cursor->one_stored, &error);
        if (status == LLVS_OK && cursor->one_stored.size) size = 0;
    } else {
        for (;;) {
            size_t capacity = cursor->one.capacity;
            status = llvs_store_read_value(store, id, llvs_id(&cursor->at), cursor->one.data, capacity, &size, &cursor->one_stored, &error);
            if (status != LLVS_OK || size == SIZE_MAX || size <= capacity) break;
            sqlite3_free(cursor->one.data);
            cursor->one.capacity = size;
            cursor->one.data = sqlite3_malloc64(size);
            if (!cursor->one.data) {
                cursor->one.capacity = 0;
                return SQLITE_NOMEM;
            }
        }
    }
    if (status == LLVS_ERROR_ERASED || status == LLVS_ERROR_FORGOTTEN) {
        llvs_error_free(error);
        cursor->state = status == LLVS_ERROR_ERASED ? LLVS_VALUE_ERASED : LLVS_VALUE_FORGOTTEN;
        status = llvs_store_reference(store, id, llvs_id(&cursor->at), &cursor->one_stored, &error);
        size = status == LLVS_OK && cursor->one_stored.size ? 0 : SIZE_MAX;
    }
    if (status == LLVS_ERROR_INVALID_UTF8 || status == LLVS_ERROR_INVALID_VALUE_ID) {
        llvs_error_free(error);
        size = SIZE_MAX;
    } else if (status != LLVS_OK) {
        return cursor_tell(&cursor->cursor, status, error);
    }
    cursor->cursor.is_at_end = size == SIZE_MAX;
    cursor->id = id;
    cursor->data = llvs_bytes_make(cursor->one.data, size);
    return SQLITE_OK;
}

/* Finds the next value of the list, in the order of the rows. A single value has no next one. */
static int find_next(values_cursor *cursor) {
    const texts *list = &cursor->bounds.list;
    int code = SQLITE_OK;
    cursor->cursor.is_at_end = 1;
    while (code == SQLITE_OK && cursor->cursor.is_at_end && !cursor->bounds.has_one && cursor->looked_for < list->count) {
        size_t at = cursor->looked_for++;
        code = find_one(cursor, bytes_given(&list->items[cursor->cursor.is_descending ? list->count - 1 - at : at]));
    }
    return code;
}

/* ---- callbacks of SQLite ---- */

static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int argc, sqlite3_value **argv) {
    values_cursor *cursor = (values_cursor *)base;
    constraint *constraints;
    int i, count, code;
    end_search(cursor);
    code = cursor_begin(&cursor->cursor, plan, text, argc, argv, &constraints, &count);
    for (i = 0; i < count && code == SQLITE_OK && !cursor->cursor.is_at_end; i++) code = bounds_narrow(&cursor->bounds, &constraints[i]);
    sqlite3_free(constraints);
    if (code != SQLITE_OK || cursor->cursor.is_at_end) return code;
    code = cursor_version(&cursor->cursor, VALUES_AT, &cursor->at);
    if (code != SQLITE_OK || cursor->cursor.is_at_end) return code;
    cursor->key = LLVS_NONE;
    cursor->next_key = NULL;
    code = search_begin(&cursor->cursor, &cursor->at, &cursor->search);
    if (code != SQLITE_OK) return code;
    if (!cursor->search) {
        if (cursor->bounds.is_empty) {
            cursor->cursor.is_at_end = 1;
            return SQLITE_OK;
        }
        if (cursor->bounds.has_one) return find_one(cursor, bytes_given(&cursor->bounds.one));
        if (cursor->bounds.has_list) return find_next(cursor);
        cursor->page_size = FIRST_PAGE;
        code = next_block(cursor);
        if (code != SQLITE_OK || cursor->cursor.is_at_end) return code;
    }
    return next(base);
}

static int stored_version(values_cursor *cursor, sqlite3_context *context) {
    const llvs_value_block *block = cursor->values;
    size_t i, row = cursor->next_row - 1;
    uint32_t index;
    if (!cursor->search && !cursor->block) {
        result_text(context, llvs_id(&cursor->one_stored));
        return SQLITE_OK;
    }
    if (!block) return SQLITE_OK;
    if (!cursor->versions) {
        const uint8_t *at = block->versions.data;
        cursor->versions = sqlite3_malloc64((block->version_count + (size_t)1) * sizeof *cursor->versions);
        if (!cursor->versions) return SQLITE_NOMEM;
        for (i = 0; i < block->version_count; i++) {
            cursor->versions[i] = at;
            at += strlen((const char *)at) + 1;
        }
    }
    index = block->version_indexes[row];
    if (index < block->version_count) result_text(context, llvs_str((const char *)cursor->versions[index]));
    return SQLITE_OK;
}

static int column_of(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
    values_cursor *cursor = (values_cursor *)base;
    switch (column) {
    case ID: result_text(context, cursor->id); break;
    case DATA:
        if (cursor->state == LLVS_VALUE_HERE) result_data(context, cursor->id, cursor->data.data, cursor->data.size);
        break;
    case VALUES_GONE: result_state(context, cursor->state); break;
    case STORED_VERSION: return stored_version(cursor, context);
    case VALUES_KEY: result_text(context, cursor->key); break;
    case VALUES_VERSION: result_text(context, llvs_id(&cursor->at)); break;
    default: cursor_argument(&cursor->cursor, context, column);
    }
    return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
    values_cursor *cursor = (values_cursor *)base;
    *rowid = (sqlite3_int64)row_number(row_number(row_number(cursor->cursor.seed, llvs_id(&cursor->at)), cursor->id), cursor->key);
    return SQLITE_OK;
}

const sqlite3_module values_module = TABLE_MODULE(open_cursor, close_cursor, filter, next, column_of, row_id);

/* llvs_changes(store, from_version, to_version): the changes that turn the state at one version into the state at another. */
#include "extension.h"

enum { ID, CHANGE, DATA, STORED_VERSION, SIZE, STORE, FROM, TO, GONE };

static const column columns[] = {
    { "id", PLAIN, OP_EQ | OP_GT | OP_GE | OP_LT | OP_LE | OP_LIKE | OP_GLOB },
    { "change", PLAIN, 0 },
    { "data", PLAIN, 0 },
    { "stored_version", PLAIN, 0 },
    { "size", PLAIN, 0 },
    { "store", REQUIRED, OP_EQ },
    { "from_version", REQUIRED, OP_EQ },
    { "to_version", REQUIRED, OP_EQ },
    { "gone", PLAIN, 0 },
};

static double rows(const unsigned *given) { return given[ID] & OP_EQ ? 1 : given[ID] & OP_IN ? 10 : given[ID] ? 100 : 1000; }

const table_kind changes_kind = {
    "llvs_changes",
    "llvs_changes('notes.llvs', 'from', 'to')",
    "CREATE TABLE llvs_changes(id TEXT, change TEXT, data, stored_version TEXT, size INTEGER, store HIDDEN, from_version HIDDEN, "
    "to_version HIDDEN, gone TEXT HIDDEN)",
    columns, sizeof columns / sizeof *columns, ID, 0, rows,
};

typedef struct changes_cursor {
    cursor cursor;
    llvs_change_cursor *changes;
    llvs_change_list *page;
    size_t row;
    bounds bounds;
} changes_cursor;

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **result) {
    (void)table;
    return cursor_make(sizeof(changes_cursor), result);
}

static void end_walk(changes_cursor *cursor) {
    llvs_change_list_free(cursor->page);
    llvs_change_cursor_free(cursor->changes);
    cursor->page = NULL;
    cursor->changes = NULL;
    bounds_free(&cursor->bounds);
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    changes_cursor *cursor = (changes_cursor *)base;
    end_walk(cursor);
    cursor_end(&cursor->cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base) {
    changes_cursor *cursor = (changes_cursor *)base;
    llvs_error *error;
    llvs_status status;
    if (cursor->page && ++cursor->row < cursor->page->count) return SQLITE_OK;
    llvs_change_list_free(cursor->page);
    cursor->page = NULL;
    cursor->row = 0;
    status = llvs_change_cursor_next(cursor->changes, 0,
        (cursor->cursor.columns >> DATA | cursor->cursor.columns >> GONE) & 1, &cursor->page, &error);
    if (status != LLVS_OK) return cursor_tell(&cursor->cursor, status, error);
    if (!cursor->page || cursor->page->count == 0) cursor->cursor.is_at_end = 1;
    return SQLITE_OK;
}

static int begin_walk(changes_cursor *cursor) {
    llvs_version_id from, to;
    llvs_range range = LLVS_RANGE_INIT;
    llvs_error *error;
    llvs_status status;
    watch watch;
    int code = cursor_version(&cursor->cursor, FROM, &from);
    if (code == SQLITE_OK) code = cursor_version(&cursor->cursor, TO, &to);
    if (code == SQLITE_OK && cursor->bounds.has_one) {
        /* The range holds one id. SQLite compares with the other constraints. */
        code = bytes_set(&cursor->bounds.from, cursor->bounds.one.data, cursor->bounds.one.size);
        if (code == SQLITE_OK) code = bytes_set(&cursor->bounds.to, cursor->bounds.one.data, cursor->bounds.one.size + 1);
    }
    if (code != SQLITE_OK) return code;
    if (cursor->bounds.has_list && !cursor->bounds.has_one) {
        /* The range from the first id of the list to the last. */
        const bytes *first = cursor->bounds.list.items, *last = first + cursor->bounds.list.count - 1;
        code = bytes_set(&cursor->bounds.from, first->data, first->size);
        if (code == SQLITE_OK) code = bytes_set(&cursor->bounds.to, last->data, last->size + 1);
        if (code != SQLITE_OK) return code;
    }
    range.from = bytes_given(&cursor->bounds.from);
    range.to = bytes_given(&cursor->bounds.to);
    watch_begin(&watch, ((table *)cursor->cursor.base.pVtab)->connection->db);
    status = llvs_store_differences(cursor->cursor.store->store, llvs_id(&from), llvs_id(&to), &range, &watch.control,
        &cursor->changes, &error);
    watch_end(&watch);
    return status == LLVS_OK ? SQLITE_OK : cursor_tell(&cursor->cursor, status, error);
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int argc, sqlite3_value **argv) {
    changes_cursor *cursor = (changes_cursor *)base;
    constraint *constraints;
    int i, count, code;
    end_walk(cursor);
    code = cursor_begin(&cursor->cursor, plan, text, argc, argv, &constraints, &count);
    for (i = 0; i < count && code == SQLITE_OK && !cursor->cursor.is_at_end; i++) code = bounds_narrow(&cursor->bounds, &constraints[i]);
    sqlite3_free(constraints);
    if (cursor->bounds.is_empty) cursor->cursor.is_at_end = 1;
    if (code != SQLITE_OK || cursor->cursor.is_at_end) return code;
    code = begin_walk(cursor);
    return code == SQLITE_OK && !cursor->cursor.is_at_end ? next(base) : code;
}

static int column_of(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
    changes_cursor *cursor = (changes_cursor *)base;
    const llvs_change_info *change = cursor->page->items[cursor->row];
    switch (column) {
    case ID: result_text(context, change->id); break;
    case CHANGE: result_change(context, change->kind); break;
    case DATA:
        if (change->kind != LLVS_CHANGE_REMOVE && change->state == LLVS_VALUE_HERE)
            result_data(context, change->id, change->data.data, change->data.size);
        break;
    case STORED_VERSION: if (change->stored_version.size) result_text(context, change->stored_version); break;
    case SIZE: if (change->kind != LLVS_CHANGE_REMOVE) sqlite3_result_int64(context, (sqlite3_int64)change->data_size); break;
    case GONE: result_state(context, change->state); break;
    default: cursor_argument(&cursor->cursor, context, column);
    }
    return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
    changes_cursor *cursor = (changes_cursor *)base;
    *rowid = (sqlite3_int64)row_number(cursor->cursor.seed, cursor->page->items[cursor->row]->id);
    return SQLITE_OK;
}

const sqlite3_module changes_module = TABLE_MODULE(open_cursor, close_cursor, filter, next, column_of, row_id);

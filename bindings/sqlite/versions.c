/* llvs_versions(store, ancestors_of, hiding), llvs_heads(store), llvs_history(store, id, ancestors_of, hiding): versions, newest first. */
#include "extension.h"

/* The columns that all these functions have, then those of llvs_history. */
enum { VERSION, TIME, PREDECESSOR, SECOND_PREDECESSOR, BRANCH, SIZE, METADATA, CHANGE, DATA };

#define VERSION_COLUMNS                                                                                                                    \
    { "version", PLAIN, OP_EQ }, { "time", PLAIN, 0 }, { "predecessor", PLAIN, 0 }, { "second_predecessor", PLAIN, 0 },                    \
        { "branch", PLAIN, OP_EQ }, { "size", PLAIN, 0 }, { "metadata", PLAIN, 0 }
#define VERSION_TABLE "version TEXT, time REAL, predecessor TEXT, second_predecessor TEXT, branch TEXT, size INTEGER, metadata TEXT, "

enum { VERSIONS_STORE = METADATA + 1, VERSIONS_ANCESTORS, VERSIONS_HIDING };
static const column versions_columns[] = {
    VERSION_COLUMNS,
    { "store", REQUIRED, OP_EQ },
    { "ancestors_of", ARGUMENT, OP_EQ },
    { "hiding", ARGUMENT, OP_EQ },
};
static const column heads_columns[] = { VERSION_COLUMNS, { "store", REQUIRED, OP_EQ } };
enum { HISTORY_STORE = DATA + 1, HISTORY_ID, HISTORY_ANCESTORS, HISTORY_HIDING, HISTORY_GONE };
static const column history_columns[] = {
    VERSION_COLUMNS,
    { "change", PLAIN, 0 },
    { "data", PLAIN, 0 },
    { "store", REQUIRED, OP_EQ },
    { "id", REQUIRED, OP_EQ },
    { "ancestors_of", ARGUMENT, OP_EQ },
    { "hiding", ARGUMENT, OP_EQ },
    { "gone", PLAIN, 0 },
};

static double versions_rows(const unsigned *given) {
    return given[VERSION] & OP_EQ ? 1 : given[VERSION] ? 10 : given[BRANCH] || given[VERSIONS_HIDING] ? 100 : 10000;
}
static double heads_rows(const unsigned *given) { return given[VERSION] ? 1 : 5; }
static double history_rows(const unsigned *given) { return given[VERSION] ? 2 : 20; }

const table_kind versions_kind = {
    "llvs_versions",
    "llvs_versions('notes.llvs')",
    "CREATE TABLE llvs_versions(" VERSION_TABLE "store HIDDEN, ancestors_of HIDDEN, hiding HIDDEN)",
    versions_columns, sizeof versions_columns / sizeof *versions_columns, -1, 0, versions_rows,
};
const table_kind heads_kind = {
    "llvs_heads",
    "llvs_heads('notes.llvs')",
    "CREATE TABLE llvs_heads(" VERSION_TABLE "store HIDDEN)",
    heads_columns, sizeof heads_columns / sizeof *heads_columns, -1, 0, heads_rows,
};
const table_kind history_kind = {
    "llvs_history",
    "llvs_history('notes.llvs', 'note/1')",
    "CREATE TABLE llvs_history(" VERSION_TABLE "change TEXT, data, store HIDDEN, id HIDDEN, ancestors_of HIDDEN, hiding HIDDEN, "
    "gone TEXT HIDDEN)",
    history_columns, sizeof history_columns / sizeof *history_columns, -1, 0, history_rows,
};

typedef struct versions_cursor {
    cursor cursor;
    /* A whole list, or one page of a walk. */
    llvs_version_list *page;
    llvs_history_cursor *walk;
    size_t row;
    /* The size of the walk's next page. The first page is small. */
    size_t page_size;
    /* The ids of an IN, and the number of ids searched so far. */
    texts list;
    size_t looked_for;
} versions_cursor;

static const table_kind *kind_of(const versions_cursor *cursor) { return ((const table *)cursor->cursor.base.pVtab)->kind; }
static sqlite3 *database_of(const versions_cursor *cursor) { return ((const table *)cursor->cursor.base.pVtab)->connection->db; }

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **result) {
    (void)table;
    return cursor_make(sizeof(versions_cursor), result);
}

static void end_walk(versions_cursor *cursor) {
    llvs_version_list_free(cursor->page);
    llvs_history_cursor_free(cursor->walk);
    cursor->page = NULL;
    cursor->walk = NULL;
    cursor->row = 0;
    texts_free(&cursor->list);
    cursor->looked_for = 0;
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    versions_cursor *cursor = (versions_cursor *)base;
    end_walk(cursor);
    cursor_end(&cursor->cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int find(versions_cursor *cursor, llvs_bytes id) {
    llvs_error *error;
    llvs_status status = llvs_store_version(cursor->cursor.store->store, id, &cursor->page, &error);
    if (status == LLVS_ERROR_INVALID_VERSION_ID) llvs_error_free(error);
    else if (status != LLVS_OK) return cursor_tell(&cursor->cursor, status, error);
    cursor->cursor.is_at_end = cursor->page == NULL;
    return SQLITE_OK;
}

/* Finds the next version of the list. A single version has no next one. */
static int find_next(versions_cursor *cursor) {
    int code = SQLITE_OK;
    cursor->cursor.is_at_end = 1;
    while (code == SQLITE_OK && cursor->cursor.is_at_end && cursor->looked_for < cursor->list.count)
        code = find(cursor, bytes_given(&cursor->list.items[cursor->looked_for++]));
    return code;
}

static int next_page(versions_cursor *cursor) {
    llvs_error *error;
    llvs_status status;
    watch watch;
    llvs_version_list_free(cursor->page);
    cursor->page = NULL;
    cursor->row = 0;
    if (!cursor->walk) return find_next(cursor);
    watch_begin(&watch, database_of(cursor));
    status = llvs_history_cursor_next(cursor->walk, cursor->page_size, &watch.control, &cursor->page, &error);
    watch_end(&watch);
    if (cursor->page_size < 1000) cursor->page_size *= 4;
    if (status != LLVS_OK) return cursor_tell(&cursor->cursor, status, error);
    if (!cursor->page || cursor->page->count == 0) cursor->cursor.is_at_end = 1;
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base) {
    versions_cursor *cursor = (versions_cursor *)base;
    if (++cursor->row < cursor->page->count) return SQLITE_OK;
    return next_page(cursor);
}

/* ---- constraints ---- */

typedef struct asked {
    llvs_bytes version, branch;
    int has_version, has_branch;
    /* The constraint on versions is the cursor's list. */
    int has_list;
} asked;

/* Reads the constraints. A blob equals no text. SQLite itself compares numbers and lists of branches. */
static int read_asked(const constraint *constraints, int count, texts *list, asked *asked, int *is_for_nothing) {
    int i;
    memset(asked, 0, sizeof *asked);
    for (i = 0; i < count; i++) {
        llvs_bytes text;
        if (constraints[i].operator == OP_IN) {
            int are_all, code;
            if (constraints[i].column != VERSION || asked->has_list) continue;
            code = texts_of(&constraints[i], LLVS_VERSION_ID_SIZE_MAX, list, &are_all);
            if (code != SQLITE_OK) return code;
            asked->has_list = are_all;
            continue;
        }
        if (sqlite3_value_type(constraints[i].value) == SQLITE_BLOB || sqlite3_value_type(constraints[i].value) == SQLITE_NULL) {
            *is_for_nothing = 1;
            continue;
        }
        if (is_number(constraints[i].value)) continue;
        text.data = sqlite3_value_text(constraints[i].value);
        text.size = (size_t)sqlite3_value_bytes(constraints[i].value);
        if (!text.data) return SQLITE_NOMEM;
        if (constraints[i].column == VERSION) {
            asked->version = text;
            asked->has_version = 1;
            if (text.size == 0 || text.size > LLVS_VERSION_ID_SIZE_MAX) *is_for_nothing = 1;
        } else if (constraints[i].column == BRANCH && is_exact(text.data, text.size)) {
            asked->branch = text;
            asked->has_branch = 1;
            if (text.size == 0 || text.size > 1024 || !is_text(text.data, text.size)) *is_for_nothing = 1;
        }
    }
    return SQLITE_OK;
}

static int begin_heads(versions_cursor *cursor, const asked *asked) {
    llvs_heads_options options = LLVS_HEADS_OPTIONS_INIT;
    llvs_error *error;
    llvs_status status;
    if (asked->has_branch) options.branch = asked->branch;
    status = llvs_store_heads(cursor->cursor.store->store, &options, &cursor->page, &error);
    if (status != LLVS_OK) return cursor_tell(&cursor->cursor, status, error);
    cursor->cursor.is_at_end = cursor->page->count == 0;
    return SQLITE_OK;
}

static int begin_history(versions_cursor *cursor, const asked *asked) {
    int is_history = kind_of(cursor) == &history_kind, code = SQLITE_OK;
    int from_column = is_history ? HISTORY_ANCESTORS : VERSIONS_ANCESTORS, hiding_column = is_history ? HISTORY_HIDING : VERSIONS_HIDING;
    llvs_history_options options = LLVS_HISTORY_OPTIONS_INIT;
    llvs_version_id from, hiding;
    llvs_bytes from_id, hiding_id;
    llvs_error *error;
    llvs_status status;
    watch watch;
    if (cursor->cursor.arguments[from_column]) {
        code = cursor_version(&cursor->cursor, from_column, &from);
        from_id = llvs_id(&from);
        options.from = &from_id;
        options.from_count = 1;
    }
    if (code == SQLITE_OK && cursor->cursor.arguments[hiding_column]) {
        code = cursor_version(&cursor->cursor, hiding_column, &hiding);
        hiding_id = llvs_id(&hiding);
        options.hiding = &hiding_id;
        options.hiding_count = 1;
    }
    if (code != SQLITE_OK) return code;
    if (asked->has_branch) options.branch = asked->branch;
    if (is_history) {
        sqlite3_value *id = cursor->cursor.arguments[HISTORY_ID];
        if (sqlite3_value_type(id) == SQLITE_BLOB)
            return cursor_fail(&cursor->cursor, SQLITE_ERROR, sqlite3_mprintf("the id of a value is text, not a blob"));
        options.value_id.data = sqlite3_value_text(id);
        options.value_id.size = (size_t)sqlite3_value_bytes(id);
        if (!options.value_id.data) return SQLITE_NOMEM;
        /* To the library an empty id means "any". */
        if (options.value_id.size == 0)
            return cursor_fail(&cursor->cursor, SQLITE_ERROR, sqlite3_mprintf("the id of a value cannot be empty"));
    }
    watch_begin(&watch, database_of(cursor));
    status = llvs_store_history(cursor->cursor.store->store, &options, &watch.control, &cursor->walk, &error);
    watch_end(&watch);
    if (status != LLVS_OK) return cursor_tell(&cursor->cursor, status, error);
    cursor->page_size = 16;
    return next_page(cursor);
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int argc, sqlite3_value **argv) {
    versions_cursor *cursor = (versions_cursor *)base;
    const table_kind *kind = kind_of(cursor);
    constraint *constraints;
    asked asked;
    int count, code, is_for_nothing = 0, is_alone;
    end_walk(cursor);
    code = cursor_begin(&cursor->cursor, plan, text, argc, argv, &constraints, &count);
    if (code == SQLITE_OK) code = read_asked(constraints, count, &cursor->list, &asked, &is_for_nothing);
    sqlite3_free(constraints);
    if (is_for_nothing) cursor->cursor.is_at_end = 1;
    if (code != SQLITE_OK || cursor->cursor.is_at_end) return code;
    is_alone = kind == &versions_kind && !cursor->cursor.arguments[VERSIONS_ANCESTORS] && !cursor->cursor.arguments[VERSIONS_HIDING];
    if (is_alone && asked.has_list && !asked.has_version) return find_next(cursor);
    texts_free(&cursor->list);
    if (is_alone && asked.has_version) return find(cursor, asked.version);
    if (kind == &heads_kind) return begin_heads(cursor, &asked);
    return begin_history(cursor, &asked);
}

/* ---- rows ---- */

/* The value at a version, or whether its bytes are gone. */
static int value_at(versions_cursor *cursor, sqlite3_context *context, const llvs_version_info *version, int column) {
    sqlite3_value *id = cursor->cursor.arguments[HISTORY_ID];
    llvs_bytes name = llvs_bytes_make(sqlite3_value_text(id), (size_t)sqlite3_value_bytes(id));
    llvs_buffer data;
    llvs_error *error;
    llvs_status status = llvs_store_value(cursor->cursor.store->store, name, version->id, &data, NULL, &error);
    if (status == LLVS_ERROR_ERASED || status == LLVS_ERROR_FORGOTTEN) {
        llvs_error_free(error);
        if (column == HISTORY_GONE)
            result_state(context, status == LLVS_ERROR_ERASED ? LLVS_VALUE_ERASED : LLVS_VALUE_FORGOTTEN);
        return SQLITE_OK;
    }
    if (status != LLVS_OK) {
        char *message = NULL;
        result_failure(context, tell(status, error, &message), message);
        return SQLITE_OK;
    }
    if (data.data && column == DATA) result_data(context, name, data.data, data.size);
    llvs_buffer_dispose(&data);
    return SQLITE_OK;
}

static int column_of(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
    versions_cursor *cursor = (versions_cursor *)base;
    const llvs_version_info *version = cursor->page->items[cursor->row];
    switch (column) {
    case VERSION: result_text(context, version->id); return SQLITE_OK;
    case TIME: sqlite3_result_double(context, version->made_at); return SQLITE_OK;
    case PREDECESSOR: if (version->predecessor_count > 0) result_text(context, version->predecessors[0]); return SQLITE_OK;
    case SECOND_PREDECESSOR: if (version->predecessor_count > 1) result_text(context, version->predecessors[1]); return SQLITE_OK;
    case BRANCH: result_text(context, version->branch); return SQLITE_OK;
    case SIZE: sqlite3_result_int64(context, (sqlite3_int64)version->value_data_size); return SQLITE_OK;
    case METADATA: result_metadata(context, version); return SQLITE_OK;
    default: break;
    }
    if (cursor_argument(&cursor->cursor, context, column)) return SQLITE_OK;
    if (column == CHANGE) result_change(context, version->change);
    else if (column == DATA || column == HISTORY_GONE) return value_at(cursor, context, version, column);
    return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
    versions_cursor *cursor = (versions_cursor *)base;
    *rowid = (sqlite3_int64)row_number(cursor->cursor.seed, cursor->page->items[cursor->row]->id);
    return SQLITE_OK;
}

const sqlite3_module versions_module = TABLE_MODULE(open_cursor, close_cursor, filter, next, column_of, row_id);

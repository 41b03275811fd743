/* Plans queries: which constraints SQLite passes to the functions. Also the parts that all cursors share. */
#include "extension.h"

static const struct {
    unsigned operator;
    const char *text;
} operators[] = {
    { OP_EQ, "=" }, { OP_GT, ">" }, { OP_GE, ">=" }, { OP_LT, "<" }, { OP_LE, "<=" }, { OP_LIKE, " LIKE " }, { OP_GLOB, " GLOB " },
    { OP_IN, " IN " },
};
enum { OPERATOR_COUNT = sizeof operators / sizeof *operators };

static unsigned operator_of(unsigned char op) {
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ: return OP_EQ;
    case SQLITE_INDEX_CONSTRAINT_GT: return OP_GT;
    case SQLITE_INDEX_CONSTRAINT_GE: return OP_GE;
    case SQLITE_INDEX_CONSTRAINT_LT: return OP_LT;
    case SQLITE_INDEX_CONSTRAINT_LE: return OP_LE;
    case SQLITE_INDEX_CONSTRAINT_LIKE: return OP_LIKE;
    case SQLITE_INDEX_CONSTRAINT_GLOB: return OP_GLOB;
    default: return 0;
    }
}

static const char *text_of(unsigned operator) {
    int i;
    for (i = 0; i < OPERATOR_COUNT; i++) {
        if (operators[i].operator == operator) return operators[i].text;
    }
    return "";
}

/* ---- tables ---- */

int table_connect(sqlite3 *db, void *payload, int argc, const char *const *argv, sqlite3_vtab **result, char **message) {
    const registration *registration = payload;
    table *made;
    int code = sqlite3_declare_vtab(db, registration->kind->schema);
    (void)argc;
    (void)argv;
    (void)message;
    if (code != SQLITE_OK) return code;
    /* A view or trigger in a database from another person must not read the user's stores. */
    (void)sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
    made = sqlite3_malloc(sizeof *made);
    if (!made) return SQLITE_NOMEM;
    memset(made, 0, sizeof *made);
    made->connection = registration->connection;
    made->kind = registration->kind;
    *result = &made->base;
    return SQLITE_OK;
}

int table_disconnect(sqlite3_vtab *table) {
    sqlite3_free(table);
    return SQLITE_OK;
}

/* Whether the connection compares text by the bytes of its UTF-8, the order of ids. A connection to a database in UTF-16 compares
 * otherwise. */
static int compares_utf8(sqlite3 *db) {
    sqlite3_stmt *statement;
    int is_utf8 = 0;
    if (sqlite3_prepare_v2(db, "PRAGMA encoding", -1, &statement, NULL) != SQLITE_OK) return 0;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        is_utf8 = name && strcmp(name, "UTF-8") == 0;
    }
    sqlite3_finalize(statement);
    return is_utf8;
}

/* Whether a constraint compares bytes. */
static int is_binary(sqlite3_index_info *info, int constraint) {
    const char *collation = sqlite3_vtab_collation(info, constraint);
    return collation && sqlite3_stricmp(collation, "BINARY") == 0;
}

int table_best_index(sqlite3_vtab *base, sqlite3_index_info *info) {
    table *table = (struct table *)base;
    const table_kind *kind = table->kind;
    unsigned given[COLUMN_MAX] = { 0 }, later[COLUMN_MAX] = { 0 };
    sqlite3_str *text = sqlite3_str_new(table->connection->db);
    int i, argc = 0, is_utf8 = -1, is_hopeless = 0, code = SQLITE_OK;
    unsigned used;
    for (i = 0; i < info->nConstraint; i++) {
        int at = info->aConstraint[i].iColumn;
        unsigned operator = operator_of(info->aConstraint[i].op);
        const column *column;
        if (at < 0 || at >= kind->column_count || !(kind->columns[at].operators & operator)) continue;
        column = &kind->columns[at];
        if (!info->aConstraint[i].usable) {
            later[at] |= operator;
            continue;
        }
        if (column->kind == PLAIN) {
            if (operator < OP_LIKE && !is_binary(info, i)) continue;
            if (operator > OP_EQ && operator < OP_LIKE) {
                if (is_utf8 < 0) is_utf8 = compares_utf8(table->connection->db);
                if (!is_utf8) continue;
            }
        } else if (given[at]) {
            continue;
        }
#if SQLITE_VERSION_NUMBER >= 3038000
        /* The list as a whole. Otherwise SQLite asks for each element in turn, and returns a row twice if it equals a number and a text. */
        if (column->kind == PLAIN && operator == OP_EQ && sqlite3_libversion_number() >= 3038000 && sqlite3_vtab_in(info, i, 1))
            operator = OP_IN;
#endif
        given[at] |= operator;
        info->aConstraintUsage[i].argvIndex = ++argc;
        info->aConstraintUsage[i].omit = column->kind != PLAIN;
        sqlite3_str_appendf(text, "%s%s%s?", argc > 1 ? " AND " : "", column->name, text_of(operator));
    }
    for (i = 0; i < kind->column_count; i++) {
        if (kind->columns[i].kind == PLAIN || given[i]) continue;
        /* The value comes from a table that must come first in the join. Without the argument the function would return other rows. */
        if (later[i]) {
            code = SQLITE_CONSTRAINT;
        } else if (kind->columns[i].kind == ARGUMENT && info->colUsed >> i & 1) {
            /* The constraint is not passed to the function, for example in an OR; reading the column would fail. If SQLite splits the
             * OR, the constraint is passed. */
            is_hopeless = 1;
        }
        /* cursor_begin reports a required argument that is missing. An error would be wrong here: SQLite plans the parts of an OR
         * without the constraints around it. */
    }
    info->idxNum = 0;
    if (code == SQLITE_OK && kind->sorted_by >= 0 && info->nOrderBy == 1 && info->aOrderBy[0].iColumn == kind->sorted_by &&
        !(kind == &values_kind && given[VALUES_INDEX])) {
        int is_descending = info->aOrderBy[0].desc;
        if (is_utf8 < 0) is_utf8 = compares_utf8(table->connection->db);
        if (is_utf8 && (!is_descending || (kind->either_way && !(given[kind->sorted_by] & OP_LIKE)))) {
            info->orderByConsumed = 1;
            info->idxNum |= is_descending ? PLAN_DESCENDING : 0;
            sqlite3_str_appendf(text, " ORDER BY %s%s", kind->columns[kind->sorted_by].name, is_descending ? " DESC" : "");
        }
    }
    used = (unsigned)(info->colUsed & ((1u << COLUMN_MAX) - 1));
    info->idxNum |= (int)(used << PLAN_COLUMNS);
    if (code != SQLITE_OK) {
        sqlite3_free(sqlite3_str_finish(text));
        return code;
    }
    info->estimatedRows = (sqlite3_int64)kind->rows(given);
    info->estimatedCost = is_hopeless ? 1e12 : 10 + 2 * kind->rows(given);
    code = sqlite3_str_errcode(text);
    /* NULL if no constraint is passed. */
    info->idxStr = sqlite3_str_finish(text);
    info->needToFreeIdxStr = info->idxStr != NULL;
    return code;
}

/* Reads the next constraint from the text of a plan. Returns 0 if it is none of this extension. */
static int read_constraint(const table_kind *kind, const char **text, constraint *constraint) {
    const char *at = *text, *end = strchr(at, '?');
    int i, j;
    if (!end) return 0;
    if (strncmp(at, " AND ", 5) == 0) at += 5;
    for (i = 0; i < kind->column_count; i++) {
        size_t size = strlen(kind->columns[i].name);
        if (strncmp(at, kind->columns[i].name, size) != 0) continue;
        for (j = 0; j < OPERATOR_COUNT; j++) {
            size_t left = (size_t)(end - at) - size;
            if (strlen(operators[j].text) == left && strncmp(at + size, operators[j].text, left) == 0) {
                constraint->column = i;
                constraint->operator = operators[j].operator;
                *text = end + 1;
                return 1;
            }
        }
    }
    return 0;
}

/* ---- cursors ---- */

static table *table_of(cursor *cursor) { return (table *)cursor->base.pVtab; }

int cursor_fail(cursor *cursor, int code, char *message) {
    sqlite3_vtab *table = cursor->base.pVtab;
    cursor->is_at_end = 1;
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = message;
    return code;
}

int cursor_tell(cursor *cursor, llvs_status status, llvs_error *error) {
    char *message = NULL;
    int code = tell(status, error, &message);
    return cursor_fail(cursor, code, message);
}

static void forget_arguments(cursor *cursor) {
    int i;
    for (i = 0; i < COLUMN_MAX; i++) {
        sqlite3_value_free(cursor->arguments[i]);
        cursor->arguments[i] = NULL;
    }
}

void cursor_end(cursor *cursor) {
    forget_arguments(cursor);
    sqlite3_value_free(cursor->store_given);
    cursor->store_given = NULL;
    store_leave(cursor->store);
    cursor->store = NULL;
}

/* Whether two paths are the same text. If they are, a join need not search its store again for each row. */
static int is_same(sqlite3_value *a, sqlite3_value *b) {
    return a && sqlite3_value_type(a) == SQLITE_TEXT && sqlite3_value_type(b) == SQLITE_TEXT &&
        sqlite3_value_bytes(a) == sqlite3_value_bytes(b) &&
        memcmp(sqlite3_value_text(a), sqlite3_value_text(b), (size_t)sqlite3_value_bytes(a)) == 0;
}

static int use_store(cursor *cursor, sqlite3_value *path) {
    char *message = NULL;
    open_store *store;
    int code;
    if (cursor->store && is_same(cursor->store_given, path)) return SQLITE_OK;
    code = store_use(table_of(cursor)->connection, path, &store, &message);
    store_leave(cursor->store);
    sqlite3_value_free(cursor->store_given);
    cursor->store_given = NULL;
    cursor->store = store;
    if (code != SQLITE_OK) return cursor_fail(cursor, code, message);
    cursor->store_given = sqlite3_value_dup(path);
    return cursor->store_given ? SQLITE_OK : SQLITE_NOMEM;
}

int is_number(sqlite3_value *value) {
    return sqlite3_value_type(value) == SQLITE_INTEGER || sqlite3_value_type(value) == SQLITE_FLOAT;
}

int cursor_make(size_t size, sqlite3_vtab_cursor **result) {
    cursor *made = sqlite3_malloc64(size);
    if (!made) return SQLITE_NOMEM;
    memset(made, 0, size);
    *result = &made->base;
    return SQLITE_OK;
}

int cursor_begin(cursor *cursor, int plan, const char *text, int argc, sqlite3_value **argv, constraint **constraints, int *count) {
    const table_kind *kind = table_of(cursor)->kind;
    int i, code, is_for_nothing = 0;
    *count = 0;
    *constraints = sqlite3_malloc(argc * (int)sizeof **constraints + 1);
    if (!*constraints) return SQLITE_NOMEM;
    forget_arguments(cursor);
    cursor->columns = (unsigned)plan >> PLAN_COLUMNS;
    cursor->is_descending = plan & PLAN_DESCENDING;
    cursor->is_at_end = 0;
    cursor->seed = 0;
    for (i = 0; i < argc; i++) {
        constraint *constraint = &(*constraints)[*count];
        if (!text || !read_constraint(kind, &text, constraint)) return SQLITE_MISUSE;
        constraint->value = argv[i];
        /* Nothing equals NULL, is larger or smaller, or is like it. */
        if (constraint->operator != OP_IN && sqlite3_value_type(argv[i]) == SQLITE_NULL) is_for_nothing = 1;
        if (kind->columns[constraint->column].kind == PLAIN) {
            ++*count;
        } else {
            cursor->arguments[constraint->column] = sqlite3_value_dup(argv[i]);
            if (!cursor->arguments[constraint->column]) return SQLITE_NOMEM;
        }
    }
    for (i = 0; i < kind->column_count; i++) {
        if (kind->columns[i].kind != REQUIRED || cursor->arguments[i]) continue;
        return cursor_fail(cursor, SQLITE_ERROR, sqlite3_mprintf("%s needs %s: %s", kind->name, kind->columns[i].name, kind->call));
    }
    for (i = 0; i < kind->column_count; i++) {
        sqlite3_value *given = cursor->arguments[i];
        llvs_bytes name = llvs_str(kind->columns[i].name), text = LLVS_NONE;
        if (!given) continue;
        /* sqlite3_value_text would convert a blob to text. */
        text.data = sqlite3_value_type(given) == SQLITE_BLOB ? sqlite3_value_blob(given) : sqlite3_value_text(given);
        text.size = text.data ? (size_t)sqlite3_value_bytes(given) : 0;
        cursor->seed = row_number(row_number(cursor->seed, name), text);
    }
    if (is_for_nothing) {
        cursor->is_at_end = 1;
        return SQLITE_OK;
    }
    for (i = 0; i < kind->column_count; i++) {
        if (kind->columns[i].kind != PLAIN && strcmp(kind->columns[i].name, "store") == 0) {
            code = use_store(cursor, cursor->arguments[i]);
            if (code != SQLITE_OK) return code;
        }
    }
    return SQLITE_OK;
}

int cursor_argument(cursor *cursor, sqlite3_context *context, int at) {
    const column *column = &table_of(cursor)->kind->columns[at];
    if (column->kind == PLAIN) return 0;
    if (cursor->arguments[at]) {
        sqlite3_result_value(context, cursor->arguments[at]);
    } else {
        /* The argument was compared in a way that SQLite did not pass to the function: the rows would be those of another argument. */
        char *message = sqlite3_mprintf("%s of %s is what was asked for, and nothing was: give it as an argument, or as %s = ... outside "
                                        "of OR", column->name, table_of(cursor)->kind->name, column->name);
        result_failure(context, message ? SQLITE_ERROR : SQLITE_NOMEM, message);
    }
    return 1;
}

int cursor_eof(sqlite3_vtab_cursor *base) { return ((cursor *)base)->is_at_end; }

int cursor_version(cursor *cursor, int column, llvs_version_id *version) {
    char *message = NULL;
    int code;
    if (column >= 0 && cursor->arguments[column]) code = store_version(cursor->store, cursor->arguments[column], version, &message);
    else code = store_head(cursor->store, version, &message);
    if (code != SQLITE_OK) return cursor_fail(cursor, code, message);
    if (version->size == 0) cursor->is_at_end = 1;
    return SQLITE_OK;
}

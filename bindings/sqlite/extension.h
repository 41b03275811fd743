/*
 * libllvs_sqlite: table-valued functions of SQLite over the stores of libllvs. What they answer is in docs/sqlite.md.
 *
 *   extension.c   the entry point: registers the functions with a connection
 *   connection.c  the stores that a connection has open, versions by name, errors, interrupting
 *   plan.c        what of a query is handed to us, and in which words EXPLAIN QUERY PLAN shows it
 *   bytes.c       values as SQLite takes them, bounds of ids
 *   metadata.c    metadata as JSON
 *   values.c, index.c, changes.c, versions.c   the functions
 *
 * SQLite calls everything here with the connection's mutex held, so nothing here is locked, and nothing is shared between connections.
 */
#ifndef LLVS_SQLITE_EXTENSION_H
#define LLVS_SQLITE_EXTENSION_H

#include <llvs.h>
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3

/* ---- connection.c ---- */

/* A store that a connection has open. */
typedef struct open_store {
    struct open_store *next;
    char *path;
    llvs_store *store;
    /* Cursors that read it. While there are any, it is neither reloaded nor closed: a statement sees one state. */
    unsigned users;
    /* What store_head tells, as it was when the first of the users asked. */
    int head_is_known;
    llvs_version_id head;
} open_store;

typedef struct connection {
    sqlite3 *db;
    /* The modules and functions that hold it. */
    unsigned holders;
    open_store *stores;
} connection;

void connection_release(connection *connection);
/* Opens the store at a path, or takes the one that is open, and counts a user. `*message` is to be released by sqlite3_free. */
int store_use(connection *connection, sqlite3_value *path, open_store **store, char **message);
void store_leave(open_store *store);
/* 1: it was open and is closed; 0: it was not open. */
int store_close(connection *connection, sqlite3_value *path, int *was_open, char **message);
/* The version that a text names: by its id, or as the newest head on a branch. */
int store_version(open_store *store, sqlite3_value *name, llvs_version_id *version, char **message);
/* The most recent head without a branch, else the most recent head; of a store without versions size 0. */
int store_head(open_store *store, llvs_version_id *version, char **message);
/* The code of SQLite for an error of the library, which is released; its message goes to `*message`. */
int tell(llvs_status status, llvs_error *error, char **message);
/* Fails with a code and a message, which is released; it may be NULL. */
void result_failure(sqlite3_context *context, int code, char *message);

/* Long work of the library, which sqlite3_interrupt ends. */
typedef struct watch {
    llvs_control control;
    sqlite3_stmt *statement;
    int is_interrupted;
} watch;
void watch_begin(watch *watch, sqlite3 *db);
void watch_end(watch *watch);

/* ---- plan.c ---- */

enum {
    OP_EQ = 1,
    OP_GT = 2,
    OP_GE = 4,
    OP_LT = 8,
    OP_LE = 16,
    OP_LIKE = 32,
    OP_GLOB = 64,
    /* OP_EQ with any of a list, which is handed over as a whole. */
    OP_IN = 128
};
typedef enum column_kind {
    /* A column of a row; what SQLite compares it with narrows the search, and is compared again by SQLite. */
    PLAIN,
    /* An argument: it is what was given, and cannot be read where nothing was. */
    ARGUMENT,
    /* An argument that has to be given. */
    REQUIRED
} column_kind;
typedef struct column {
    const char *name;
    column_kind kind;
    unsigned operators;
} column;

enum { COLUMN_MAX = 16 };
/* Bits of idxNum. */
enum {
    PLAN_DESCENDING = 1,
    PLAN_COLUMNS = 8 /* shifted by so many: the columns that are read */
};
typedef struct table_kind {
    const char *name;
    /* How it is called, with what is needed. */
    const char *call;
    const char *schema;
    const column *columns;
    int column_count;
    /* The column that rows come sorted by, or -1; and whether also the other way round. */
    int sorted_by, either_way;
    /* How many rows come of it when arguments and operators by column are given. */
    double (*rows)(const unsigned *given);
} table_kind;

/* What a module is registered with. */
typedef struct registration {
    connection *connection;
    const table_kind *kind;
} registration;

typedef struct table {
    sqlite3_vtab base;
    connection *connection;
    const table_kind *kind;
} table;

/* What all cursors begin with. */
typedef struct cursor {
    sqlite3_vtab_cursor base;
    open_store *store;
    sqlite3_value *store_given;
    /* Copies of the arguments, by column. */
    sqlite3_value *arguments[COLUMN_MAX];
    /* The columns that are read, a bit each. */
    unsigned columns;
    int is_descending;
    int is_at_end;
    /* A number for what was asked; see row_number. */
    uint64_t seed;
} cursor;

int table_connect(sqlite3 *db, void *registration, int argc, const char *const *argv, sqlite3_vtab **table, char **message);
int table_disconnect(sqlite3_vtab *table);
int table_best_index(sqlite3_vtab *table, sqlite3_index_info *info);

/* A module with what is a table's own; the rest is the same for all of them. */
#define TABLE_MODULE(open, close, filter, next, column, row_id)                                                                        \
    {                                                                                                                                  \
        .iVersion = 1, .xConnect = table_connect, .xDisconnect = table_disconnect, .xBestIndex = table_best_index, .xOpen = open,      \
        .xClose = close, .xFilter = filter, .xNext = next, .xEof = cursor_eof, .xColumn = column, .xRowid = row_id,                    \
    }

/* What a plan hands over. */
typedef struct constraint {
    int column;
    unsigned operator;
    sqlite3_value *value;
} constraint;
/* Makes a cursor of `size` zero bytes, which begins with a `cursor`. Release it by sqlite3_free. */
int cursor_make(size_t size, sqlite3_vtab_cursor **result);
/*
 * Begins a search: keeps the arguments, opens the store, and leaves the rest in `*constraints`, to be released by sqlite3_free. When the
 * search is for nothing (an argument is NULL) the cursor is at its end.
 */
int cursor_begin(cursor *cursor, int plan, const char *text, int argc, sqlite3_value **argv, constraint **constraints, int *count);
/*
 * Whether a value that a column of text is compared with is a number: by "=" and the like SQLite compares them as text or as numbers, and
 * only it knows which.
 */
int is_number(sqlite3_value *value);
/* Releases what cursor_begin made. */
void cursor_end(cursor *cursor);
/* 1: the column is an argument, and was answered. */
int cursor_argument(cursor *cursor, sqlite3_context *context, int column);
int cursor_eof(sqlite3_vtab_cursor *cursor);
/* The version that an argument names, by default that of store_head. Size 0: there is none, and the cursor is at its end. */
int cursor_version(cursor *cursor, int column, llvs_version_id *version);
/* Fails with a message of sqlite3_mprintf, or NULL. */
int cursor_fail(cursor *cursor, int code, char *message);
/* Fails with an error of the library. */
int cursor_tell(cursor *cursor, llvs_status status, llvs_error *error);

/* ---- bytes.c ---- */

/* Bytes of our own. */
typedef struct bytes {
    uint8_t *data;
    size_t size, capacity;
} bytes;
/* The bytes and a zero behind them that is not counted. SQLITE_OK or SQLITE_NOMEM. */
int bytes_set(bytes *bytes, const void *data, size_t size);
void bytes_free(bytes *bytes);
llvs_bytes bytes_given(const bytes *bytes);

/* Whether bytes are UTF-8 without NUL: text, as SQLite and its functions for JSON take it. */
int is_text(const uint8_t *data, size_t size);
/* A sentence with a %s for a name from outside, of which at most 200 bytes are shown, without controls. To be released by sqlite3_free. */
char *told_of(llvs_bytes name, const char *sentence);
/*
 * Whether text is what was given. A connection to a database in UTF-16 has U+FFFD in the place of some other characters, in what it hands
 * over and in what it makes of ours; so what holds one is left for SQLite to compare.
 */
int is_exact(const uint8_t *data, size_t size);
/* The bytes of a value as text where they are, else as a blob. An error where they are more than the connection takes. */
void result_data(sqlite3_context *context, llvs_bytes id, const uint8_t *data, size_t size);
void result_text(sqlite3_context *context, llvs_bytes text);
void result_change(sqlite3_context *context, llvs_change_kind change);
/*
 * A number for a row, made of what tells it from others, after another number. SQLite tells rows apart by it where it meets them twice:
 * with OR, and in RIGHT JOIN. So it is the same whenever the same is asked.
 */
uint64_t row_number(uint64_t seed, llvs_bytes part);

/* Texts in order, each once. */
typedef struct texts {
    bytes *items;
    size_t count, capacity;
} texts;
/*
 * The texts of the list of an OP_IN that have 1 byte to `longest`. `*are_all` is 0 where what else is in it may equal an id: numbers, and
 * text that is_exact leaves for SQLite to compare.
 */
int texts_of(const constraint *constraint, size_t longest, texts *texts, int *are_all);
void texts_free(texts *texts);

/* Ids not before `from` and before `to`. */
typedef struct bounds {
    bytes from, to;
    int has_to;
    int is_empty;
    /* Of a LIKE, what matching ids begin with, whatever the case of its ASCII letters; empty: anything. */
    bytes any_case;
    /* Of an equality. */
    int has_one;
    bytes one;
    /* Of an IN. */
    int has_list;
    texts list;
} bounds;
/* Narrows by what is compared with the ids. A superset: SQLite compares again. */
int bounds_narrow(bounds *bounds, const constraint *constraint);
void bounds_free(bounds *bounds);
/*
 * Whether an id begins with `any_case`, letters aside. Where it does not, `*next` is 1 when `from` was moved to the first later place at
 * which one might.
 */
int bounds_match(bounds *bounds, llvs_bytes id, int *next, int *code);

/* ---- metadata.c ---- */

void result_metadata(sqlite3_context *context, const llvs_version_info *version);

/* ---- the functions ---- */

extern const table_kind values_kind, changes_kind, versions_kind, heads_kind, history_kind;
extern const sqlite3_module values_module, changes_module, versions_module;

/* index.c: what an index finds, a page at a time. */
typedef struct search {
    llvs_index *index;
    llvs_index_page *page;
    llvs_index_question question;
    llvs_version_id at;
    bytes after;
    sqlite3 *db;
} search;
enum { VALUES_STORE = 3, VALUES_AT, VALUES_INDEX, VALUES_FIND, VALUES_BEGINS, VALUES_LOW, VALUES_HIGH, VALUES_KEY, VALUES_VERSION };
/* Asks what the arguments of the cursor ask; `*search` is NULL where they ask for nothing. */
int search_begin(cursor *cursor, const llvs_version_id *at, search **search);
/* The next page, NULL at the end. */
int search_next(cursor *cursor, search *search, const llvs_index_page **page);
void search_free(search *search);

#endif

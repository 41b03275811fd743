/*
 * libllvs_sqlite: table-valued functions of SQLite over the stores of libllvs. docs/sqlite.md describes them.
 *
 *   extension.c   the entry point: registers the functions with a connection
 *   connection.c  the stores that a connection has open, versions by name, errors, interrupts
 *   plan.c        the constraints that SQLite passes to the functions, and their text in EXPLAIN QUERY PLAN
 *   bytes.c       values in SQLite's types, bounds of ids
 *   metadata.c    metadata as JSON
 *   values.c, index.c, changes.c, versions.c   the functions
 *
 * SQLite holds the connection's mutex in every call, and connections share nothing. The extension therefore locks nothing.
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
    /* The number of cursors that read the store. While there are any, it is neither reloaded nor closed, so that a statement reads one
     * state. */
    unsigned users;
    /* The result of store_head, cached since the first of the present users asked. */
    int head_is_known;
    llvs_version_id head;
} open_store;

typedef struct connection {
    sqlite3 *db;
    /* The number of modules and functions that refer to it. */
    unsigned holders;
    open_store *stores;
} connection;

void connection_release(connection *connection);
/* Opens the store at a path, or reuses the open one, and counts a user. Release `*message` with sqlite3_free. */
int store_use(connection *connection, sqlite3_value *path, open_store **store, char **message);
void store_leave(open_store *store);
/* Closes a store. `*was_open` is 1 if it was open. */
int store_close(connection *connection, sqlite3_value *path, int *was_open, char **message);
/* The version with a name: the version with that id, or the newest head on that branch. */
int store_version(open_store *store, sqlite3_value *name, llvs_version_id *version, char **message);
/* The newest head without a branch. If every head carries a branch: the newest of all. If the store is empty, the size is 0. */
int store_head(open_store *store, llvs_version_id *version, char **message);
/* Returns SQLite's code for an error of the library, sets `*message` and releases the error. */
int tell(llvs_status status, llvs_error *error, char **message);
/* Fails with a code and a message, and releases the message, which may be NULL. */
void result_failure(sqlite3_context *context, int code, char *message);

/* Lets sqlite3_interrupt cancel a long call of the library. */
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
    /* OP_EQ with any element of a list. SQLite passes the list as a whole. */
    OP_IN = 128
};
typedef enum column_kind {
    /* A column of a row. A constraint narrows the search, and SQLite compares again. */
    PLAIN,
    /* An argument. The column holds its value, and cannot be read unless it was given. */
    ARGUMENT,
    /* An argument that must be given. */
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
    PLAN_COLUMNS = 8 /* shift: the bits from here on are the columns that the query reads */
};
typedef struct table_kind {
    const char *name;
    /* A call with the required arguments, for messages. */
    const char *call;
    const char *schema;
    const column *columns;
    int column_count;
    /* The column that sorts the rows, or -1; and whether they can also be sorted in descending order. */
    int sorted_by, either_way;
    /* Estimates the number of rows, given the operators of each column. */
    double (*rows)(const unsigned *given);
} table_kind;

/* The data of a registered module. */
typedef struct registration {
    connection *connection;
    const table_kind *kind;
} registration;

typedef struct table {
    sqlite3_vtab base;
    connection *connection;
    const table_kind *kind;
} table;

/* The first part of every cursor. */
typedef struct cursor {
    sqlite3_vtab_cursor base;
    open_store *store;
    sqlite3_value *store_given;
    /* Copies of the arguments, by column. */
    sqlite3_value *arguments[COLUMN_MAX];
    /* The columns that the query reads, a bit each. */
    unsigned columns;
    int is_descending;
    int is_at_end;
    /* A hash of the arguments; see row_number. */
    uint64_t seed;
} cursor;

int table_connect(sqlite3 *db, void *registration, int argc, const char *const *argv, sqlite3_vtab **table, char **message);
int table_disconnect(sqlite3_vtab *table);
int table_best_index(sqlite3_vtab *table, sqlite3_index_info *info);

/* A module with the functions of one table. The other functions are the same in all modules. */
#define TABLE_MODULE(open, close, filter, next, column, row_id)                                                                        \
    {                                                                                                                                  \
        .iVersion = 1, .xConnect = table_connect, .xDisconnect = table_disconnect, .xBestIndex = table_best_index, .xOpen = open,      \
        .xClose = close, .xFilter = filter, .xNext = next, .xEof = cursor_eof, .xColumn = column, .xRowid = row_id,                    \
    }

/* A constraint that the plan passes. */
typedef struct constraint {
    int column;
    unsigned operator;
    sqlite3_value *value;
} constraint;
/* Makes a zeroed cursor of `size` bytes, whose first part is a `cursor`. Release it with sqlite3_free. */
int cursor_make(size_t size, sqlite3_vtab_cursor **result);
/*
 * Begins a search: keeps the arguments, opens the store, and sets `*constraints` to the other constraints. Release these with sqlite3_free.
 * If an argument is NULL, the search has no rows and the cursor is at its end.
 */
int cursor_begin(cursor *cursor, int plan, const char *text, int argc, sqlite3_value **argv, constraint **constraints, int *count);
/*
 * Whether a value that is compared with a column of text is a number. With "=", "<" and so on SQLite compares it as text or as a number,
 * and only SQLite knows which.
 */
int is_number(sqlite3_value *value);
/* Releases the arguments and the store of cursor_begin. */
void cursor_end(cursor *cursor);
/* Returns 1 if the column is an argument, and sets the result to its value. */
int cursor_argument(cursor *cursor, sqlite3_context *context, int column);
int cursor_eof(sqlite3_vtab_cursor *cursor);
/* The version that an argument names; without one the version of store_head. If the store is empty, the size is 0 and the cursor is at
 * its end. */
int cursor_version(cursor *cursor, int column, llvs_version_id *version);
/* Fails with a message from sqlite3_mprintf, or with NULL. */
int cursor_fail(cursor *cursor, int code, char *message);
/* Fails with an error of the library. */
int cursor_tell(cursor *cursor, llvs_status status, llvs_error *error);

/* ---- bytes.c ---- */

/* Bytes that the extension allocated. */
typedef struct bytes {
    uint8_t *data;
    size_t size, capacity;
} bytes;
/* Copies bytes, and adds a zero byte that is not counted. Returns SQLITE_OK or SQLITE_NOMEM. */
int bytes_set(bytes *bytes, const void *data, size_t size);
void bytes_free(bytes *bytes);
llvs_bytes bytes_given(const bytes *bytes);

/* Whether bytes are UTF-8 without NUL. SQLite and its JSON functions accept such text. */
int is_text(const uint8_t *data, size_t size);
/* Formats a sentence with a %s for a foreign name. At most 200 bytes of the name are shown, without controls. Release it with
 * sqlite3_free. */
char *told_of(llvs_bytes name, const char *sentence);
/*
 * Whether the text is unchanged since the host gave it. A connection to a database in UTF-16 replaces some characters by U+FFFD, in both
 * directions. SQLite itself compares text that contains U+FFFD.
 */
int is_exact(const uint8_t *data, size_t size);
/* Sets the result to a text if the bytes are one, otherwise to a blob. Fails if the size exceeds the limit of the connection. */
void result_data(sqlite3_context *context, llvs_bytes id, const uint8_t *data, size_t size);
void result_text(sqlite3_context *context, llvs_bytes text);
/* 'erased' or 'forgotten' if the bytes of a value are gone, else NULL. */
void result_state(sqlite3_context *context, llvs_value_state state);
void result_change(sqlite3_context *context, llvs_change_kind change);
/*
 * Hashes a part of a row's identity into a number. SQLite compares these numbers where it meets rows twice, with OR and in RIGHT JOIN. The
 * same query must therefore give a row the same number each time.
 */
uint64_t row_number(uint64_t seed, llvs_bytes part);

/* Sorted texts without duplicates. */
typedef struct texts {
    bytes *items;
    size_t count, capacity;
} texts;
/*
 * The texts of the list of an OP_IN with 1 to `longest` bytes. `*are_all` is 0 if another element may equal an id: a number, or text that
 * is not is_exact. SQLite compares these.
 */
int texts_of(const constraint *constraint, size_t longest, texts *texts, int *are_all);
void texts_free(texts *texts);

/* Ids from `from` up to, not including, `to`. */
typedef struct bounds {
    bytes from, to;
    int has_to;
    int is_empty;
    /* The fixed prefix of a LIKE. Matching ids begin with it, in upper or lower case of ASCII letters. Empty: every id matches. */
    bytes any_case;
    /* The id of an equality. */
    int has_one;
    bytes one;
    /* The ids of an IN. */
    int has_list;
    texts list;
} bounds;
/* Narrows the range by a constraint. The range may hold more ids than match: SQLite compares again. */
int bounds_narrow(bounds *bounds, const constraint *constraint);
void bounds_free(bounds *bounds);
/*
 * Whether an id begins with `any_case`, in upper or lower case. If it does not, `*next` is 1 if `from` was moved to the first later id that
 * may match.
 */
int bounds_match(bounds *bounds, llvs_bytes id, int *next, int *code);

/* ---- metadata.c ---- */

void result_metadata(sqlite3_context *context, const llvs_version_info *version);

/* ---- the functions ---- */

extern const table_kind values_kind, changes_kind, versions_kind, heads_kind, history_kind;
extern const sqlite3_module values_module, changes_module, versions_module;

/* index.c: reads the matches of an index, page by page. */
typedef struct search {
    llvs_index *index;
    llvs_index_page *page;
    llvs_index_question question;
    llvs_version_id at;
    bytes after;
    sqlite3 *db;
} search;
enum {
    VALUES_STORE = 3, VALUES_AT, VALUES_INDEX, VALUES_FIND, VALUES_BEGINS, VALUES_LOW, VALUES_HIGH, VALUES_KEY, VALUES_VERSION, VALUES_GONE
};
/* Starts the search that the arguments of the cursor ask for. `*search` is NULL if they ask for nothing. */
int search_begin(cursor *cursor, const llvs_version_id *at, search **search);
/* Reads the next page; NULL at the end. */
int search_next(cursor *cursor, search *search, const llvs_index_page **page);
void search_free(search *search);

#endif

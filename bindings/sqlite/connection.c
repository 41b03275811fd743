/* The stores that a connection has open, versions by name, errors, interrupts. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700
#include "extension.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- errors ---- */

static int code_of(llvs_status status) {
    switch (status) {
    case LLVS_OK: return SQLITE_OK;
    case LLVS_ERROR_CANCELLED: return SQLITE_INTERRUPT;
    case LLVS_ERROR_OUT_OF_MEMORY: return SQLITE_NOMEM;
    case LLVS_ERROR_BUSY: return SQLITE_BUSY;
    /* Not SQLite's codes for a failed medium: SQLite would relate them to its own database, and roll back the host's transaction. */
    default: return SQLITE_ERROR;
    }
}

int tell(llvs_status status, llvs_error *error, char **message) {
    int code = code_of(status);
    if (code != SQLITE_OK) {
        sqlite3_free(*message);
        *message = sqlite3_mprintf("%s", status == LLVS_ERROR_CANCELLED ? "interrupted in the middle of a long step" :
            error ? llvs_error_message(error) : llvs_status_name(status));
        if (!*message) code = SQLITE_NOMEM;
    }
    llvs_error_free(error);
    return code;
}

void result_failure(sqlite3_context *context, int code, char *message) {
    /* The code is set last: a code without a message sets a message of SQLite's own. */
    if (message) sqlite3_result_error(context, message, -1);
    sqlite3_result_error_code(context, code);
    sqlite3_free(message);
}

static int say(int code, char **message, char *text) {
    sqlite3_free(*message);
    *message = text;
    return text ? code : SQLITE_NOMEM;
}

/* ---- interrupting ---- */

/* A statement that starts within the running one is interrupted together with it. sqlite3_is_interrupted would need a later SQLite than
 * this extension requires. */
static llvs_status look(void *payload, const llvs_progress *progress, llvs_error **error) {
    watch *watch = payload;
    int code;
    (void)progress;
    (void)error;
    if (!watch->statement) return watch->is_interrupted ? LLVS_ERROR_CANCELLED : LLVS_OK;
    code = sqlite3_step(watch->statement);
    sqlite3_reset(watch->statement);
    return (code & 0xFF) == SQLITE_INTERRUPT ? LLVS_ERROR_CANCELLED : LLVS_OK;
}

void watch_begin(watch *watch, sqlite3 *db) {
    static const llvs_control control = LLVS_CONTROL_INIT;
    watch->control = control;
    watch->control.progress = look;
    watch->control.payload = watch;
    watch->statement = NULL;
    /* Without the statement, for example for lack of memory, the work cannot be interrupted. If the interrupt has come already, SQLite
     * prepares no statement. */
    watch->is_interrupted = (sqlite3_prepare_v2(db, "SELECT 1", -1, &watch->statement, NULL) & 0xFF) == SQLITE_INTERRUPT;
}

void watch_end(watch *watch) { sqlite3_finalize(watch->statement); }

/* ---- stores ---- */

static void free_store(open_store *store) {
    llvs_error *error;
    if (llvs_store_close(store->store, &error) != LLVS_OK) llvs_error_free(error);
    llvs_store_free(store->store);
    sqlite3_free(store->path);
    sqlite3_free(store);
}

void connection_release(connection *connection) {
    if (--connection->holders) return;
    while (connection->stores) {
        open_store *store = connection->stores;
        connection->stores = store->next;
        free_store(store);
    }
    sqlite3_free(connection);
}

/* Finds out whether the connection has the file open as a database. */
static int is_database(sqlite3 *db, const struct stat *file, int *is_open) {
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, "PRAGMA database_list", -1, &statement, NULL);
    *is_open = 0;
    if (code != SQLITE_OK) return code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *path = (const char *)sqlite3_column_text(statement, 2);
        struct stat other;
        if (path && *path && stat(path, &other) == 0 && other.st_dev == file->st_dev && other.st_ino == file->st_ino) *is_open = 1;
    }
    return sqlite3_finalize(statement);
}

static int open_new(connection *connection, const char *path, open_store **store, char **message) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *opened;
    llvs_error *error;
    llvs_status status;
    struct stat file;
    watch watch;
    open_store *made;
    options.read_only = 1;
    options.must_exist = 1;
    if (stat(path, &file) == 0 && S_ISREG(file.st_mode)) {
        int is_open, code = is_database(connection->db, &file, &is_open);
        if (code != SQLITE_OK) return code;
        if (is_open) {
            return say(SQLITE_ERROR, message, told_of(llvs_str(path), "%s is open as a database in this "
                "connection, and would be opened twice: ask from a connection to another database, \":memory:\" say"));
        }
        options.storage = LLVS_STORAGE_SQLITE;
    }
    watch_begin(&watch, connection->db);
    options.control = &watch.control;
    status = llvs_store_open(llvs_str(path), &options, &opened, &error);
    watch_end(&watch);
    if (status != LLVS_OK) {
        int code = tell(status, error, message);
        return code == SQLITE_ERROR ? SQLITE_CANTOPEN : code;
    }
    made = sqlite3_malloc(sizeof *made);
    if (made) {
        memset(made, 0, sizeof *made);
        made->store = opened;
        made->path = sqlite3_mprintf("%s", path);
    }
    if (!made || !made->path) {
        sqlite3_free(made);
        llvs_store_free(opened);
        return SQLITE_NOMEM;
    }
    made->next = connection->stores;
    connection->stores = made;
    *store = made;
    return SQLITE_OK;
}

static void remove_store(connection *connection, open_store *store) {
    open_store **place = &connection->stores;
    while (*place != store) place = &(*place)->next;
    *place = store->next;
    free_store(store);
}

/* The path without symbolic links, to be released with free; NULL if there is no file. */
static int whole_path(sqlite3_value *given, char **path, char **message) {
    const char *text;
    *path = NULL;
    if (sqlite3_value_type(given) != SQLITE_TEXT)
        return say(SQLITE_ERROR, message, sqlite3_mprintf("the path of a store is text: llvs_values('notes.llvs')"));
    text = (const char *)sqlite3_value_text(given);
    if (!text) return SQLITE_NOMEM;
    if (strlen(text) != (size_t)sqlite3_value_bytes(given))
        return say(SQLITE_ERROR, message, sqlite3_mprintf("the path of a store cannot hold a NUL"));
    *path = realpath(text, NULL);
    return SQLITE_OK;
}

static open_store *find_store(connection *connection, const char *path) {
    open_store *store;
    for (store = connection->stores; store; store = store->next) {
        if (strcmp(store->path, path) == 0) return store;
    }
    return NULL;
}

int store_use(connection *connection, sqlite3_value *given, open_store **store, char **message) {
    char *path;
    int code = whole_path(given, &path, message);
    *store = NULL;
    if (code != SQLITE_OK) return code;
    if (!path) {
        /* No file is at the path. The path is not remembered, since it may lead to another file later. */
        llvs_bytes shown = llvs_bytes_make(sqlite3_value_text(given), (size_t)sqlite3_value_bytes(given));
        return say(SQLITE_CANTOPEN, message, told_of(shown, errno == ENOENT || errno == ENOTDIR ? "there is no store at \"%s\"" :
            "there is no store that can be reached at \"%s\""));
    }
    *store = find_store(connection, path);
    if (*store && (*store)->users == 0) {
        llvs_error *error;
        llvs_status status = llvs_store_reload((*store)->store, NULL, NULL, &error);
        (*store)->head_is_known = 0;
        if (status == LLVS_ERROR_NOT_FOUND || status == LLVS_ERROR_FORKED) {
            /* The store at the path was replaced or removed, or this process is a child of the one that opened the store. */
            llvs_error_free(error);
            remove_store(connection, *store);
            *store = NULL;
        } else if (status != LLVS_OK) {
            code = tell(status, error, message);
        }
    }
    if (code == SQLITE_OK && !*store) code = open_new(connection, path, store, message);
    if (code == SQLITE_OK) (*store)->users++;
    else *store = NULL;
    free(path);
    return code;
}

void store_leave(open_store *store) {
    if (store) store->users--;
}

int store_close(connection *connection, sqlite3_value *given, int *was_open, char **message) {
    char *path;
    open_store *store;
    int code = whole_path(given, &path, message);
    *was_open = 0;
    if (code != SQLITE_OK || !path) return code;
    store = find_store(connection, path);
    if (store && store->users) {
        code = say(SQLITE_BUSY, message, told_of(llvs_str(path), "%s is being read: end the statements that do first"));
    } else if (store) {
        remove_store(connection, store);
        *was_open = 1;
    }
    free(path);
    return code;
}

/* ---- versions ---- */

static void keep_id(llvs_version_id *version, llvs_bytes id) {
    memset(version, 0, sizeof *version);
    if (id.size > LLVS_VERSION_ID_SIZE_MAX) return;
    version->size = (uint32_t)id.size;
    memcpy(version->text, id.data, id.size);
}

/* The newest head of a branch. Without a branch: the newest head that carries none, or if every head carries one, the newest of all.
 * Size 0: the store has no such head. */
static int newest(open_store *store, llvs_bytes branch, llvs_version_id *version, char **message) {
    llvs_heads_options options = LLVS_HEADS_OPTIONS_INIT;
    llvs_version_list *heads;
    llvs_error *error;
    llvs_status status;
    size_t i = 0;
    memset(version, 0, sizeof *version);
    options.branch = branch;
    options.limit = branch.size != 0;
    status = llvs_store_heads(store->store, &options, &heads, &error);
    if (status != LLVS_OK) return tell(status, error, message);
    while (branch.size == 0 && i < heads->count && heads->items[i]->branch.data) i++;
    if (i == heads->count) i = 0;
    if (heads->count) keep_id(version, heads->items[i]->id);
    llvs_version_list_free(heads);
    return SQLITE_OK;
}

int store_head(open_store *store, llvs_version_id *version, char **message) {
    int code = SQLITE_OK;
    if (!store->head_is_known) {
        code = newest(store, LLVS_NONE, &store->head, message);
        store->head_is_known = code == SQLITE_OK;
    }
    *version = store->head;
    return code;
}

int store_version(open_store *store, sqlite3_value *given, llvs_version_id *version, char **message) {
    static const char prefix[] = "branch:";
    llvs_bytes name = LLVS_NONE;
    llvs_version_list *found;
    llvs_error *error;
    int is_branch, code;
    memset(version, 0, sizeof *version);
    if (sqlite3_value_type(given) == SQLITE_BLOB)
        return say(SQLITE_ERROR, message, sqlite3_mprintf("a version is given by its id, or by a branch, as text: not as a blob"));
    name.data = sqlite3_value_text(given);
    name.size = (size_t)sqlite3_value_bytes(given);
    if (!name.data) return SQLITE_NOMEM;
    is_branch = name.size >= sizeof prefix - 1 && memcmp(name.data, prefix, sizeof prefix - 1) == 0;
    if (!is_branch) {
        llvs_status status = llvs_store_version(store->store, name, &found, &error);
        if (status == LLVS_OK && found) {
            keep_id(version, found->items[0]->id);
            llvs_version_list_free(found);
            return SQLITE_OK;
        }
        /* A name that is no valid id may be a branch. */
        if (status == LLVS_ERROR_INVALID_VERSION_ID) llvs_error_free(error);
        else if (status != LLVS_OK) return tell(status, error, message);
    } else {
        name = llvs_bytes_make(name.data + sizeof prefix - 1, name.size - (sizeof prefix - 1));
    }
    code = name.size && name.size <= 1024 && is_text(name.data, name.size) ? newest(store, name, version, message) : SQLITE_OK;
    if (code == SQLITE_OK && version->size == 0) {
        code = say(SQLITE_ERROR, message, told_of(name, is_branch ? "there is no branch \"%s\" in this store" :
            "there is no version and no branch \"%s\" in this store"));
    }
    return code;
}

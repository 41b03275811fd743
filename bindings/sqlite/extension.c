/* The entry point: registers the functions with a connection. */
#include "extension.h"
SQLITE_EXTENSION_INIT1

/* This version of SQLite has every function that the extension calls, and the option SQLITE_VTAB_DIRECTONLY. */
enum { OLDEST = 3031000 };

#if defined(__GNUC__)
#define EXPORTED __attribute__((visibility("default")))
#else
#define EXPORTED
#endif

static const struct {
    const table_kind *kind;
    const sqlite3_module *module;
} functions[] = {
    { &values_kind, &values_module },     { &changes_kind, &changes_module },  { &versions_kind, &versions_module },
    { &heads_kind, &versions_module },    { &history_kind, &versions_module },
};

static void release_registration(void *payload) {
    registration *registration = payload;
    connection_release(registration->connection);
    sqlite3_free(registration);
}

static void release_connection(void *payload) { connection_release(payload); }

/* llvs_close(path): 1 if the connection had the store open, and closed it. */
static void close_function(sqlite3_context *context, int argc, sqlite3_value **argv) {
    char *message = NULL;
    int was_open = 0;
    int code = store_close(sqlite3_user_data(context), argv[0], &was_open, &message);
    (void)argc;
    if (code == SQLITE_OK) sqlite3_result_int(context, was_open);
    else result_failure(context, code, message);
}

static int register_all(connection *connection) {
    size_t i;
    int code = SQLITE_OK;
    for (i = 0; i < sizeof functions / sizeof *functions && code == SQLITE_OK; i++) {
        registration *registration = sqlite3_malloc(sizeof *registration);
        if (!registration) {
            code = SQLITE_NOMEM;
            break;
        }
        registration->connection = connection;
        registration->kind = functions[i].kind;
        connection->holders++;
        /* On failure SQLite releases the registration, too. */
        code = sqlite3_create_module_v2(connection->db, functions[i].kind->name, functions[i].module, registration,
            release_registration);
    }
    if (code == SQLITE_OK) {
        connection->holders++;
        code = sqlite3_create_function_v2(connection->db, "llvs_close", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, connection, close_function,
            NULL, NULL, release_connection);
    }
    /* SQLite unloads an extension at once if it fails, so no registered function may remain. */
    for (i = 0; i < sizeof functions / sizeof *functions && code != SQLITE_OK; i++)
        (void)sqlite3_create_module_v2(connection->db, functions[i].kind->name, NULL, NULL, NULL);
    return code;
}

/* Called by SQLite when it loads libllvs_sqlite.so. */
EXPORTED int sqlite3_llvssqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);
EXPORTED int sqlite3_llvssqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
    connection *made;
    int code;
#ifndef SQLITE_CORE
    /* The process has one table of SQLite's functions. Functions of one copy of SQLite must not be called with connections of another
     * copy. */
    if (api->libversion_number() < OLDEST) {
        *message = api->mprintf("libllvs_sqlite needs SQLite 3.31 or later, and this is %s", api->libversion());
        return SQLITE_ERROR;
    }
    if (!__sync_bool_compare_and_swap(&sqlite3_api, (const sqlite3_api_routines *)0, api) && sqlite3_api != api) {
        *message = api->mprintf("libllvs_sqlite is in use by another copy of SQLite in this process: close its connections, or load a copy "
                                "of the file under another path");
        return SQLITE_ERROR;
    }
#else
    (void)api;
#endif
    if (llvs_version_number() >> 8 != LLVS_VERSION_NUMBER >> 8) {
        *message = sqlite3_mprintf("libllvs_sqlite was built for libllvs %d.%d, and found %s", LLVS_VERSION_MAJOR, LLVS_VERSION_MINOR,
            llvs_version_string());
        return SQLITE_ERROR;
    }
    made = sqlite3_malloc(sizeof *made);
    if (!made) return SQLITE_NOMEM;
    made->db = db;
    made->stores = NULL;
    made->holders = 1;
    code = register_all(made);
    connection_release(made);
    return code;
}

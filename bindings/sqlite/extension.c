/* The entry point: registers the functions with a connection. */
#include "extension.h"
SQLITE_EXTENSION_INIT1

/* What is called here is all in this one; sqlite3_vtab_config knows SQLITE_VTAB_DIRECTONLY since then. */
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

/* llvs_close(path): 1 when the connection had the store open, and has it no more. */
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
        /* Releases the registration when it fails, too. */
        code = sqlite3_create_module_v2(connection->db, functions[i].kind->name, functions[i].module, registration,
            release_registration);
    }
    if (code == SQLITE_OK) {
        connection->holders++;
        code = sqlite3_create_function_v2(connection->db, "llvs_close", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, connection, close_function,
            NULL, NULL, release_connection);
    }
    /* An extension that fails is unloaded at once: nothing may lead to it any more. */
    for (i = 0; i < sizeof functions / sizeof *functions && code != SQLITE_OK; i++)
        (void)sqlite3_create_module_v2(connection->db, functions[i].kind->name, NULL, NULL, NULL);
    return code;
}

/* What SQLite calls when it loads libllvs_sqlite.so. */
EXPORTED int sqlite3_llvssqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);
EXPORTED int sqlite3_llvssqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
    connection *made;
    int code;
#ifndef SQLITE_CORE
    /* The table of functions is one for the process. The functions of one SQLite must not be called with the connections of another. */
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

/* Metadata as a JSON object: an entry that is JSON is embedded unchanged, other text becomes a string, and bytes that are no text
 * become null. */
#include "extension.h"

static void append_string(sqlite3_str *json, llvs_bytes text) {
    size_t i;
    sqlite3_str_appendchar(json, 1, '"');
    for (i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '"' || byte == '\\') sqlite3_str_appendf(json, "\\%c", byte);
        else if (byte < 0x20) sqlite3_str_appendf(json, "\\u%04x", byte);
        else sqlite3_str_appendchar(json, 1, (char)byte);
    }
    sqlite3_str_appendchar(json, 1, '"');
}

/* Whether the host's JSON functions accept the value as JSON. Their parser reads the result. */
static int is_json(sqlite3_stmt *check, llvs_bytes value) {
    int is = 0;
    if (!check || value.size > 1 << 24) return 0;
    sqlite3_bind_text64(check, 1, (const char *)value.data, value.size, SQLITE_STATIC, SQLITE_UTF8);
    if (sqlite3_step(check) == SQLITE_ROW) is = sqlite3_column_int(check, 0);
    sqlite3_reset(check);
    sqlite3_clear_bindings(check);
    return is;
}

void result_metadata(sqlite3_context *context, const llvs_version_info *version) {
    sqlite3 *db = sqlite3_context_db_handle(context);
    sqlite3_stmt *check = NULL;
    sqlite3_str *json;
    size_t i;
    int size, code;
    if (version->metadata_count == 0) {
        sqlite3_result_text(context, "{}", -1, SQLITE_STATIC);
        return;
    }
    /* If SQLite has no JSON functions, every entry becomes a string. */
    (void)sqlite3_prepare_v2(db, "SELECT json_valid(?1)", -1, &check, NULL);
    json = sqlite3_str_new(db);
    for (i = 0; i < version->metadata_count; i++) {
        const llvs_metadata_entry *entry = &version->metadata[i];
        sqlite3_str_appendchar(json, 1, i ? ',' : '{');
        append_string(json, entry->key);
        sqlite3_str_appendchar(json, 1, ':');
        if (!is_text(entry->value.data, entry->value.size)) sqlite3_str_appendall(json, "null");
        else if (is_json(check, entry->value)) sqlite3_str_append(json, (const char *)entry->value.data, (int)entry->value.size);
        else append_string(json, entry->value);
    }
    sqlite3_str_appendchar(json, 1, '}');
    sqlite3_finalize(check);
    code = sqlite3_str_errcode(json);
    size = sqlite3_str_length(json);
    if (code == SQLITE_NOMEM) sqlite3_result_error_nomem(context);
    else if (code != SQLITE_OK) sqlite3_result_error_toobig(context);
    else sqlite3_result_text64(context, sqlite3_str_value(json), (sqlite3_uint64)size, SQLITE_TRANSIENT, SQLITE_UTF8);
    sqlite3_free(sqlite3_str_finish(json));
}

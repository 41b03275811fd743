/*
 * A host that contains an SQLite of its own, linked statically, whose functions have the same names and are found first. Here they end the
 * process. The library's storage in SQLite still uses the system's SQLite throughout.
 */
#include "support.h"

/* All functions that SQLite 3.40 exports. */
#define NAMES(X) \
    X(aggregate_context) X(aggregate_count) X(auto_extension) X(autovacuum_pages) X(backup_finish) X(backup_init) \
    X(backup_pagecount) X(backup_remaining) X(backup_step) X(bind_blob) X(bind_blob64) X(bind_double) X(bind_int) X(bind_int64) \
    X(bind_null) X(bind_parameter_count) X(bind_parameter_index) X(bind_parameter_name) X(bind_pointer) X(bind_text) \
    X(bind_text16) X(bind_text64) X(bind_value) X(bind_zeroblob) X(bind_zeroblob64) X(blob_bytes) X(blob_close) X(blob_open) \
    X(blob_read) X(blob_reopen) X(blob_write) X(busy_handler) X(busy_timeout) X(cancel_auto_extension) X(changes) X(changes64) \
    X(clear_bindings) X(close) X(close_v2) X(collation_needed) X(collation_needed16) X(column_blob) X(column_bytes) \
    X(column_bytes16) X(column_count) X(column_database_name) X(column_database_name16) X(column_decltype) X(column_decltype16) \
    X(column_double) X(column_int) X(column_int64) X(column_name) X(column_name16) X(column_origin_name) X(column_origin_name16) \
    X(column_table_name) X(column_table_name16) X(column_text) X(column_text16) X(column_type) X(column_value) X(commit_hook) \
    X(compileoption_get) X(compileoption_used) X(complete) X(complete16) X(config) X(context_db_handle) X(create_collation) \
    X(create_collation16) X(create_collation_v2) X(create_filename) X(create_function) X(create_function16) \
    X(create_function_v2) X(create_module) X(create_module_v2) X(create_window_function) X(data_count) X(database_file_object) \
    X(db_cacheflush) X(db_config) X(db_filename) X(db_handle) X(db_mutex) X(db_name) X(db_readonly) X(db_release_memory) \
    X(db_status) X(declare_vtab) X(deserialize) X(drop_modules) X(enable_load_extension) X(enable_shared_cache) X(errcode) \
    X(errmsg) X(errmsg16) X(error_offset) X(errstr) X(exec) X(expanded_sql) X(expired) X(extended_errcode) \
    X(extended_result_codes) X(file_control) X(filename_database) X(filename_journal) X(filename_wal) X(finalize) X(free) \
    X(free_filename) X(free_table) X(get_autocommit) X(get_auxdata) X(get_table) X(global_recover) X(hard_heap_limit64) \
    X(initialize) X(interrupt) X(keyword_check) X(keyword_count) X(keyword_name) X(last_insert_rowid) X(libversion) \
    X(libversion_number) X(limit) X(load_extension) X(log) X(malloc) X(malloc64) X(memory_alarm) X(memory_highwater) \
    X(memory_used) X(mprintf) X(msize) X(mutex_alloc) X(mutex_enter) X(mutex_free) X(mutex_leave) X(mutex_try) X(next_stmt) \
    X(open) X(open16) X(open_v2) X(os_end) X(os_init) X(overload_function) X(prepare) X(prepare16) X(prepare16_v2) \
    X(prepare16_v3) X(prepare_v2) X(prepare_v3) X(preupdate_blobwrite) X(preupdate_count) X(preupdate_depth) X(preupdate_hook) \
    X(preupdate_new) X(preupdate_old) X(profile) X(progress_handler) X(randomness) X(realloc) X(realloc64) X(release_memory) \
    X(reset) X(reset_auto_extension) X(result_blob) X(result_blob64) X(result_double) X(result_error) X(result_error16) \
    X(result_error_code) X(result_error_nomem) X(result_error_toobig) X(result_int) X(result_int64) X(result_null) \
    X(result_pointer) X(result_subtype) X(result_text) X(result_text16) X(result_text16be) X(result_text16le) X(result_text64) \
    X(result_value) X(result_zeroblob) X(result_zeroblob64) X(rollback_hook) X(rtree_geometry_callback) X(rtree_query_callback) \
    X(serialize) X(set_authorizer) X(set_auxdata) X(set_last_insert_rowid) X(shutdown) X(sleep) X(snprintf) X(soft_heap_limit) \
    X(soft_heap_limit64) X(sourceid) X(sql) X(status) X(status64) X(step) X(stmt_busy) X(stmt_isexplain) X(stmt_readonly) \
    X(stmt_status) X(str_append) X(str_appendall) X(str_appendchar) X(str_appendf) X(str_errcode) X(str_finish) X(str_length) \
    X(str_new) X(str_reset) X(str_value) X(str_vappendf) X(strglob) X(stricmp) X(strlike) X(strnicmp) X(system_errno) \
    X(table_column_metadata) X(test_control) X(thread_cleanup) X(threadsafe) X(total_changes) X(total_changes64) X(trace) \
    X(trace_v2) X(transfer_bindings) X(txn_state) X(unlock_notify) X(update_hook) X(uri_boolean) X(uri_int64) X(uri_key) \
    X(uri_parameter) X(user_data) X(value_blob) X(value_bytes) X(value_bytes16) X(value_double) X(value_dup) X(value_encoding) \
    X(value_free) X(value_frombind) X(value_int) X(value_int64) X(value_nochange) X(value_numeric_type) X(value_pointer) \
    X(value_subtype) X(value_text) X(value_text16) X(value_text16be) X(value_text16le) X(value_type) X(vfs_find) X(vfs_register) \
    X(vfs_unregister) X(vmprintf) X(vsnprintf) X(vtab_collation) X(vtab_config) X(vtab_distinct) X(vtab_in) X(vtab_in_first) \
    X(vtab_in_next) X(vtab_nochange) X(vtab_on_conflict) X(vtab_rhs_value) X(wal_autocheckpoint) X(wal_checkpoint) \
    X(wal_checkpoint_v2) X(wal_hook)

#define ENDS_THE_PROCESS(name)                                                \
    void sqlite3_##name(void);                                                \
    void sqlite3_##name(void) {                                               \
        fprintf(stderr, "the host's sqlite3_" #name " was called\n");         \
        abort();                                                              \
    }
NAMES(ENDS_THE_PROCESS)

static llvs_store *open_at(const char *path, uint32_t must_exist) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *store = NULL;
    options.storage = LLVS_STORAGE_SQLITE;
    options.must_exist = must_exist;
    OK(llvs_store_open(llvs_str(path), &options, &store, &error));
    return store;
}

static void the_systems_is_used(void **state) {
    enum { LARGE = 1 << 20 };
    char *directory = new_directory(), *path = join(directory, "store.db"), *large = malloc(LARGE + 1);
    llvs_store *store = open_at(path, 0);
    llvs_version_id first, second;
    (void)state;
    assert_non_null(large);
    memset(large, 'x', LARGE);
    large[LARGE] = 0;
    first = save(store, NULL, insert("note", "text"));
    second = save(store, &first, insert("large", large));
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
    store = open_at(path, 1);
    assert_int_equal(version_count(store), 2);
    value_is(store, &first, "note", "text");
    value_is(store, &second, "large", large);
    OK(llvs_store_close(store, &error));
    llvs_store_free(store);
    free(large);
    free(path);
    remove_directory(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_systems_is_used) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

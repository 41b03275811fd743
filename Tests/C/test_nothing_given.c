/*
 * Every function of llvs.h and llvs_testing.h, called with nothing: NULL, 0 and empty everywhere. None may trap, and each that can fail
 * says that something is missing. test_bad_input.c has the finer cases.
 */
#include "support.h"

#include "llvs_testing.h"

#define REFUSES(call)                                                              \
    do {                                                                           \
        llvs_status status = (call);                                               \
        if (status >= 0) fail_msg("%s gives %s", #call, llvs_status_name(status)); \
    } while (0)

static void every_function_takes_nothing(void **state) {
    (void)state;
    (void)llvs_version_number();
    (void)llvs_version_string();
    (void)llvs_status_name(0);
    REFUSES(llvs_struct_init(NULL, 0));
    llvs_buffer_dispose(NULL);
    (void)llvs_error_code(NULL);
    (void)llvs_error_message(NULL);
    (void)llvs_error_value_id(NULL);
    (void)llvs_error_version_id(NULL);
    (void)llvs_error_path(NULL);
    (void)llvs_error_system_code(NULL);
    (void)llvs_error_user_code(NULL);
    llvs_error_free(llvs_error_make(0, LLVS_NONE));
    llvs_error_free(NULL);
    llvs_observer_cancel(NULL);
    llvs_observer_free(NULL);
    REFUSES(llvs_log_observe(0, NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_cancel_token_create(NULL, NULL));
    llvs_cancel_token_cancel(NULL);
    (void)llvs_cancel_token_is_cancelled(NULL);
    llvs_cancel_token_free(NULL);
    llvs_version_list_free(NULL);
    llvs_value_list_free(NULL);
    llvs_value_block_free(NULL);
    llvs_value_reader_free(NULL);
    llvs_change_list_free(NULL);
    REFUSES(llvs_store_open(LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_store_close(NULL, NULL));
    llvs_store_free(NULL);
    (void)llvs_store_path(NULL);
    REFUSES(llvs_store_reload(NULL, NULL, NULL));
    REFUSES(llvs_store_statistics(NULL, NULL, NULL));
    REFUSES(llvs_store_verify(NULL, NULL, NULL, NULL));
    llvs_verify_report_free(NULL);
    REFUSES(llvs_store_salvage(LLVS_NONE, NULL, LLVS_NONE, NULL, NULL, NULL, NULL));
    llvs_salvage_report_free(NULL);
    REFUSES(llvs_store_compact(NULL, NULL, NULL, NULL));
    REFUSES(llvs_store_make_version(NULL, LLVS_NONE, NULL, 0, 0, NULL, NULL, NULL, NULL));
    REFUSES(llvs_store_version(NULL, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_store_versions(NULL, NULL, 0, NULL, NULL));
    REFUSES(llvs_store_heads(NULL, NULL, NULL, NULL));
    REFUSES(llvs_store_successors(NULL, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_store_is_ancestor(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_store_merge_bases(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_store_versions_of(NULL, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_store_observe(NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_store_history(NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_history_cursor_next(NULL, 0, NULL, NULL, NULL));
    llvs_history_cursor_free(NULL);
    REFUSES(llvs_store_value(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_store_read_value(NULL, LLVS_NONE, LLVS_NONE, NULL, 0, NULL, NULL, NULL));
    REFUSES(llvs_store_reference(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_store_values(NULL, NULL, 0, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_store_open_value(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL, NULL, NULL));
    REFUSES(llvs_value_reader_read(NULL, 0, NULL, 0, NULL, NULL));
    REFUSES(llvs_store_value_block(NULL, LLVS_NONE, NULL, 0, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_store_enumerate(NULL, LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_store_enumerate_block(NULL, LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_store_count(NULL, LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_store_changes(NULL, LLVS_NONE, NULL, NULL, NULL, NULL));
    REFUSES(llvs_store_differences(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL, NULL, NULL));
    (void)llvs_change_cursor_count(NULL);
    REFUSES(llvs_change_cursor_next(NULL, 0, 0, NULL, NULL));
    llvs_change_cursor_free(NULL);
    (void)llvs_merge_fork(NULL, LLVS_NONE);
    REFUSES(llvs_resolution_add(NULL, NULL, 0, 0, NULL));
    REFUSES(llvs_arbiter_builtin(0, NULL, NULL));
    REFUSES(llvs_arbiter_create(NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_arbiter_rules(LLVS_NONE, NULL, NULL));
    llvs_arbiter_free(NULL);
    REFUSES(llvs_store_merge(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL, NULL, NULL));
    REFUSES(llvs_store_merge_heads(NULL, LLVS_NONE, NULL, NULL, NULL, NULL));
    REFUSES(llvs_store_revert(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL, NULL));
    llvs_revert_result_free(NULL);
    REFUSES(llvs_merge_values(LLVS_NONE, NULL, NULL, NULL, NULL, NULL, NULL));
    llvs_merged_value_free(NULL);
    REFUSES(llvs_schema_check(LLVS_NONE, NULL));
    REFUSES(llvs_store_schema(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_coordinator_register_schema(NULL, LLVS_NONE, NULL, NULL, NULL));
    llvs_schema_free(NULL);
    REFUSES(llvs_store_version_at(NULL, 0, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_store_cherry_pick(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_coordinator_undo(NULL, 0, NULL, NULL, NULL, NULL));
    REFUSES(llvs_coordinator_redo(NULL, 0, NULL, NULL, NULL, NULL));
    REFUSES(llvs_value_merger_create(NULL, NULL, NULL, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_store_conflicts(NULL, LLVS_NONE, LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_store_explain(NULL, LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_store_open_conflicts(NULL, LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_store_choose(NULL, LLVS_NONE, NULL, 0, NULL, NULL));
    llvs_conflict_list_free(NULL);
    REFUSES(llvs_exchange_open(NULL, LLVS_NONE, NULL, NULL, NULL));
    (void)llvs_exchange_url(NULL);
    REFUSES(llvs_exchange_close(NULL, NULL));
    llvs_exchange_free(NULL);
    llvs_exchange_result_free(NULL);
    REFUSES(llvs_store_write_pack(NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_store_read_pack(NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_exchange_retrieve(NULL, NULL, NULL, NULL));
    REFUSES(llvs_exchange_verify(NULL, NULL, NULL, NULL));
    REFUSES(llvs_exchange_send(NULL, NULL, NULL, NULL));
    REFUSES(llvs_exchange_observe(NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_exchange_restoration_state(NULL, NULL, NULL));
    REFUSES(llvs_exchange_set_restoration_state(NULL, LLVS_NONE, NULL));
    llvs_snapshot_free(NULL);
    REFUSES(llvs_exchange_put_snapshot(NULL, NULL, NULL, NULL));
    REFUSES(llvs_exchange_restore_snapshot(NULL, NULL, NULL, NULL));
    REFUSES(llvs_exchange_snapshot(NULL, NULL, NULL));
    REFUSES(llvs_store_import(NULL, LLVS_NONE, NULL, NULL, NULL, NULL));
    REFUSES(llvs_coordinator_open(LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_coordinator_close(NULL, NULL));
    llvs_coordinator_free(NULL);
    REFUSES(llvs_coordinator_store(NULL, NULL, NULL));
    REFUSES(llvs_coordinator_current_version(NULL, NULL, NULL));
    REFUSES(llvs_coordinator_missing_version(NULL, NULL, NULL));
    REFUSES(llvs_coordinator_set_current_version(NULL, LLVS_NONE, NULL));
    REFUSES(llvs_coordinator_save(NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_coordinator_value(NULL, LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_coordinator_attach(NULL, LLVS_NONE, NULL, NULL));
    REFUSES(llvs_coordinator_exchange(NULL, NULL, NULL, NULL));
    REFUSES(llvs_coordinator_merge(NULL, NULL, NULL, NULL));
    REFUSES(llvs_coordinator_sync(NULL, NULL, NULL, NULL));
    llvs_sync_result_free(NULL);
    REFUSES(llvs_coordinator_observe(NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_coordinator_observe_exchanges(NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_coordinator_bootstrap(NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_reply_add(NULL, LLVS_NONE, NULL));
    REFUSES(llvs_reply_set(NULL, 0, LLVS_NONE, NULL));
    REFUSES(llvs_reply_set_source(NULL, 0, 0, NULL, NULL, NULL, NULL));
    REFUSES(llvs_outgoing_write(NULL, NULL, NULL, NULL));
    (void)llvs_outgoing_size(NULL);
    REFUSES(llvs_reply_record(NULL, 0, 0, LLVS_NONE, NULL));
    (void)llvs_reply_is_cancelled(NULL);
    REFUSES(llvs_storage_create(LLVS_NONE, NULL, NULL, NULL, NULL, NULL));
    llvs_storage_free(NULL);
    REFUSES(llvs_transport_create(LLVS_NONE, NULL, NULL, NULL, NULL, NULL));
    REFUSES(llvs_transport_notify(NULL, NULL));
    REFUSES(llvs_transport_state(NULL, NULL, NULL));
    REFUSES(llvs_transport_set_state(NULL, LLVS_NONE, NULL));
    llvs_transport_free(NULL);
    REFUSES(llvs_testing_storage(LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_testing_transport(LLVS_NONE, NULL, NULL, NULL));
    REFUSES(llvs_faults_create(0, NULL, NULL));
    REFUSES(llvs_faults_add(NULL, NULL, NULL));
    REFUSES(llvs_faults_clear(NULL, NULL));
    REFUSES(llvs_faults_reset(NULL, NULL));
    (void)llvs_faults_count(NULL, 0);
    (void)llvs_faults_injected(NULL);
    REFUSES(llvs_faults_last(NULL, NULL, NULL));
    llvs_faults_free(NULL);
    REFUSES(llvs_faults_storage(NULL, NULL, NULL, NULL));
    REFUSES(llvs_faults_transport(NULL, NULL, NULL, NULL));
    llvs_check_report_free(NULL);
    REFUSES(llvs_check_storage(NULL, NULL, NULL));
    (void)llvs_check_storage_name(0);
    REFUSES(llvs_check_transport(NULL, NULL, NULL));
    (void)llvs_check_transport_name(0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_function_takes_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

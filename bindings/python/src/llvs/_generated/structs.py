"""The structs of include/llvs.h and llvs_testing.h, field by field. Written by scripts/generate_bindings.

Pointers are plain addresses (`c_void_p`): ctypes reads and writes those fastest. The code that fills a struct keeps alive what the
struct points to.
"""

import ctypes
from ctypes import c_char, c_double, c_int32, c_size_t, c_uint32, c_uint64, c_void_p


class llvs_bytes(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("size", c_size_t),
    ]


class llvs_buffer(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("size", c_size_t),
    ]


class llvs_version_id(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("text", c_char * 132),
    ]


class llvs_progress(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("stage", c_uint32),
        ("completed", c_uint64),
        ("total", c_uint64),
    ]


class llvs_control(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("progress", c_void_p),
        ("payload", c_void_p),
        ("token", c_void_p),
    ]


class llvs_metadata_entry(ctypes.Structure):
    _fields_ = [
        ("key", llvs_bytes),
        ("value", llvs_bytes),
    ]


class llvs_change(ctypes.Structure):
    _fields_ = [
        ("kind", c_uint32),
        ("reserved", c_uint32),
        ("id", llvs_bytes),
        ("data", llvs_bytes),
        ("stored_version", llvs_bytes),
    ]


class llvs_version_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("predecessor_count", c_uint32),
        ("id", llvs_bytes),
        ("predecessors", llvs_bytes * 2),
        ("timestamp", c_double),
        ("value_data_size", c_uint64),
        ("metadata", c_void_p),
        ("metadata_count", c_size_t),
        ("branch", llvs_bytes),
        ("change", c_uint32),
        ("reserved", c_uint32),
        ("made_at", c_double),
    ]


class llvs_version_list(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("count", c_size_t),
        ("items", c_void_p),
    ]


class llvs_value_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("present", c_uint32),
        ("id", llvs_bytes),
        ("data", llvs_bytes),
        ("stored_version", llvs_bytes),
        ("state", c_uint32),
        ("reserved", c_uint32),
    ]


class llvs_value_list(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("count", c_size_t),
        ("items", c_void_p),
    ]


class llvs_value_block(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("version_count", c_uint32),
        ("count", c_size_t),
        ("present_count", c_size_t),
        ("ids", llvs_bytes),
        ("id_sizes", c_void_p),
        ("data", llvs_bytes),
        ("data_sizes", c_void_p),
        ("versions", llvs_bytes),
        ("version_indexes", c_void_p),
        ("states", c_void_p),
    ]


class llvs_change_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("id", llvs_bytes),
        ("data", llvs_bytes),
        ("stored_version", llvs_bytes),
        ("data_size", c_uint64),
        ("state", c_uint32),
        ("reserved", c_uint32),
    ]


class llvs_change_list(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("count", c_size_t),
        ("items", c_void_p),
    ]


class llvs_store_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("storage", c_uint32),
        ("durability", c_uint32),
        ("read_only", c_uint32),
        ("must_exist", c_uint32),
        ("compaction", c_uint32),
        ("memory_budget", c_uint64),
        ("cache_directory", llvs_bytes),
        ("host_storage", c_void_p),
        ("compaction_grace", c_double),
        ("busy_timeout", c_double),
        ("file_mode", c_uint32),
        ("reserved", c_uint32),
        ("control", c_void_p),
        ("differences", c_uint32),
        ("reserved_2", c_uint32),
    ]


class llvs_statistics(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("versions", c_uint64),
        ("heads", c_uint64),
        ("pending", c_uint64),
        ("damaged", c_uint64),
        ("bytes", c_uint64),
        ("bytes_written", c_uint64),
        ("syncs", c_uint64),
        ("segments", c_uint64),
        ("memory_used", c_uint64),
        ("differences", c_uint64),
        ("difference_bytes", c_uint64),
        ("difference_value_bytes", c_uint64),
    ]


class llvs_size_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("depth", c_uint32),
        ("prefix", llvs_bytes),
        ("limit", c_uint64),
        ("control", c_void_p),
    ]


class llvs_size_row(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("group", c_uint32),
        ("name", llvs_bytes),
        ("combined", c_uint64),
        ("values", c_uint64),
        ("value_bytes", c_uint64),
        ("bytes", c_uint64),
        ("current_bytes", c_uint64),
        ("past_bytes", c_uint64),
    ]


class llvs_size_report(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("versions", c_uint64),
        ("unread", c_uint64),
        ("values", c_uint64),
        ("value_bytes", c_uint64),
        ("bytes", c_uint64),
        ("current_bytes", c_uint64),
        ("past_bytes", c_uint64),
        ("rows", c_void_p),
        ("row_count", c_size_t),
    ]


class llvs_erase_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("dry_run", c_uint32),
        ("ids", c_void_p),
        ("id_count", c_size_t),
        ("version", llvs_bytes),
        ("containing", llvs_bytes),
        ("replacement", llvs_bytes),
        ("why", llvs_bytes),
        ("signer", llvs_bytes),
    ]


class llvs_erasure_place(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reach", c_uint32),
        ("reason", c_uint32),
        ("reserved", c_uint32),
        ("name", llvs_bytes),
        ("last_seen", c_double),
    ]


class llvs_erase_report(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("values", c_uint64),
        ("versions", c_uint64),
        ("bytes", c_uint64),
        ("copies", c_uint64),
        ("rewritten", c_uint64),
        ("unread", c_uint64),
        ("orders", c_void_p),
        ("order_count", c_size_t),
        ("made", c_void_p),
        ("made_count", c_size_t),
        ("waiting", c_void_p),
        ("waiting_count", c_size_t),
        ("places", c_void_p),
        ("place_count", c_size_t),
    ]


class llvs_erasure(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("followed", c_uint32),
        ("id", llvs_bytes),
        ("version", llvs_bytes),
        ("made", llvs_bytes),
        ("why", llvs_bytes),
        ("values", c_uint64),
        ("state", c_uint32),
        ("of_other", c_uint32),
        ("due", c_double),
        ("places", c_void_p),
        ("place_count", c_size_t),
        ("signatures", c_uint32),
        ("needed", c_uint32),
    ]


class llvs_erasure_list(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("count", c_size_t),
        ("items", c_void_p),
    ]


class llvs_forget_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("dry_run", c_uint32),
        ("policy", llvs_bytes),
        ("control", c_void_p),
    ]


class llvs_forget_row(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("rule", c_uint32),
        ("values", c_uint64),
        ("bytes", c_uint64),
    ]


class llvs_forget_report(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("values", c_uint64),
        ("versions", c_uint64),
        ("bytes", c_uint64),
        ("rewritten", c_uint64),
        ("rows", c_void_p),
        ("row_count", c_size_t),
        ("waiting", c_void_p),
        ("waiting_count", c_size_t),
    ]


class llvs_damage(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("lost", c_uint32),
        ("file", llvs_bytes),
        ("offset", c_uint64),
        ("message", llvs_bytes),
        ("version", llvs_bytes),
        ("value_id", llvs_bytes),
        ("caused_by", llvs_bytes),
    ]


class llvs_verify_report(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("versions", c_uint64),
        ("values", c_uint64),
        ("pending", c_uint64),
        ("damages", c_void_p),
        ("damage_count", c_size_t),
        ("unfinished", c_void_p),
        ("unfinished_count", c_size_t),
        ("vouched", c_uint64),
        ("unvouched", c_uint64),
        ("forgotten", c_uint64),
    ]


class llvs_salvaged(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("is_complete", c_uint32),
        ("original", llvs_bytes),
        ("version", llvs_bytes),
    ]


class llvs_salvage_report(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("versions", c_uint64),
        ("waiting", c_uint64),
        ("made", c_void_p),
        ("made_count", c_size_t),
        ("damages", c_void_p),
        ("damage_count", c_size_t),
    ]


class llvs_compaction_report(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("folded", c_uint64),
        ("made", c_uint64),
        ("deleted", c_uint64),
        ("bytes_written", c_uint64),
        ("bytes_deleted", c_uint64),
        ("sync_marker", llvs_buffer),
    ]


class llvs_value_source(ctypes.Structure):
    _fields_ = [
        ("id", llvs_bytes),
        ("size", c_uint64),
        ("read", c_void_p),
        ("payload", c_void_p),
    ]


class llvs_version_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("merges", c_uint32),
        ("id", llvs_bytes),
        ("branch", llvs_bytes),
        ("metadata", c_void_p),
        ("metadata_count", c_size_t),
        ("sources", c_void_p),
        ("source_count", c_size_t),
        ("source_size", c_size_t),
        ("timestamp", c_double),
        ("expected", llvs_bytes),
    ]


class llvs_heads_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("branch", llvs_bytes),
        ("limit", c_uint64),
        ("control", c_void_p),
    ]


class llvs_history_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("from", c_void_p),
        ("from_count", c_size_t),
        ("hiding", c_void_p),
        ("hiding_count", c_size_t),
        ("branch", llvs_bytes),
        ("value_id", llvs_bytes),
        ("prefix", llvs_bytes),
    ]


class llvs_range(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("without_data", c_uint32),
        ("prefix", llvs_bytes),
        ("from", llvs_bytes),
        ("to", llvs_bytes),
        ("after", llvs_bytes),
        ("limit", c_uint64),
        ("byte_limit", c_uint64),
        ("before", llvs_bytes),
        ("reverse", c_uint32),
        ("reserved", c_uint32),
    ]


class llvs_fork(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("side", c_uint32),
        ("conflicting", c_uint32),
        ("id", llvs_bytes),
        ("first", llvs_bytes),
        ("second", llvs_bytes),
        ("ancestor", llvs_bytes),
        ("ancestors", c_void_p),
        ("ancestor_count", c_size_t),
    ]


class llvs_merge(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("first", c_void_p),
        ("second", c_void_p),
        ("ours", c_void_p),
        ("theirs", c_void_p),
        ("bases", c_void_p),
        ("store", c_void_p),
        ("forks", c_void_p),
        ("fork_count", c_size_t),
    ]


class llvs_value_question(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("id", llvs_bytes),
        ("path", llvs_bytes),
        ("base", llvs_bytes),
        ("newer", llvs_bytes),
        ("older", llvs_bytes),
    ]


class llvs_merge_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("relation", c_uint32),
        ("selection", c_uint32),
        ("parent", c_uint32),
        ("branches", c_void_p),
        ("branch_count", c_size_t),
        ("metadata", c_void_p),
        ("metadata_count", c_size_t),
        ("control", c_void_p),
        ("version", llvs_bytes),
    ]


class llvs_conflict(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("path", llvs_bytes),
        ("base", llvs_bytes),
        ("newer", llvs_bytes),
        ("older", llvs_bytes),
        ("result", llvs_bytes),
        ("rule_prefix", llvs_bytes),
        ("rule_pattern", llvs_bytes),
        ("id", llvs_bytes),
        ("version", llvs_bytes),
    ]


class llvs_revert_result(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("counts", c_uint32),
        ("version", c_void_p),
        ("undone", c_void_p),
        ("undone_count", c_size_t),
        ("superseded", c_void_p),
        ("superseded_count", c_size_t),
        ("conflicts", c_void_p),
        ("conflict_count", c_size_t),
        ("versions", c_void_p),
        ("version_count", c_size_t),
        ("description", llvs_bytes),
    ]


class llvs_merged_value(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("source", c_uint32),
        ("data", llvs_bytes),
        ("conflicts", c_void_p),
        ("conflict_count", c_size_t),
        ("digest", llvs_bytes),
    ]


class llvs_merge_values_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("saving", c_uint32),
        ("id", llvs_bytes),
        ("control", c_void_p),
    ]


class llvs_conflict_list(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("recorded", c_uint32),
        ("count", c_size_t),
        ("items", c_void_p),
        ("digest", llvs_bytes),
    ]


class llvs_conflict_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("value_id", llvs_bytes),
        ("arbiter", c_void_p),
        ("control", c_void_p),
    ]


class llvs_schema(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("changed", c_uint32),
        ("data", llvs_bytes),
        ("stored_version", llvs_bytes),
        ("problem", llvs_bytes),
        ("problem_path", llvs_bytes),
        ("contradictions", c_void_p),
        ("contradiction_count", c_size_t),
        ("version", c_void_p),
    ]


class llvs_exchange_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("durability", c_uint32),
        ("host_transport", c_void_p),
        ("must_exist", c_uint32),
        ("report_unportable", c_uint32),
        ("decode", c_void_p),
        ("decode_payload", c_void_p),
        ("decode_free", c_void_p),
        ("user", llvs_bytes),
        ("password", llvs_bytes),
        ("token", llvs_bytes),
        ("ca_file", llvs_bytes),
        ("proxy", llvs_bytes),
        ("timeout", c_uint32),
        ("layout", c_uint32),
        ("credentials", c_void_p),
        ("credentials_payload", c_void_p),
        ("credentials_free", c_void_p),
        ("token_file", llvs_bytes),
        ("recipients", c_void_p),
        ("recipient_count", c_size_t),
        ("identities", c_void_p),
        ("identity_count", c_size_t),
        ("passphrase", llvs_bytes),
        ("tokens", c_void_p),
        ("tokens_payload", c_void_p),
        ("tokens_free", c_void_p),
        ("key_file", llvs_bytes),
        ("known_hosts", llvs_bytes),
        ("device_name", llvs_bytes),
        ("no_other_readers", c_uint32),
        ("reserved", c_uint32),
    ]


class llvs_problem(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("code", c_int32),
        ("name", llvs_bytes),
        ("message", llvs_bytes),
    ]


class llvs_exchanged(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("place", llvs_bytes),
        ("result", c_void_p),
        ("error", c_void_p),
    ]


class llvs_exchange_result(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("moved", c_uint32),
        ("retrieved", c_void_p),
        ("retrieved_count", c_size_t),
        ("sent", c_void_p),
        ("sent_count", c_size_t),
        ("repaired", c_void_p),
        ("repaired_count", c_size_t),
        ("problems", c_void_p),
        ("problem_count", c_size_t),
        ("from", llvs_bytes),
        ("to", llvs_bytes),
        ("exchanges", c_void_p),
        ("exchange_count", c_size_t),
    ]


class llvs_member(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("name", llvs_bytes),
        ("recipient", llvs_bytes),
        ("added", llvs_bytes),
    ]


class llvs_member_list(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("count", c_size_t),
        ("items", c_void_p),
    ]


class llvs_remote_writer(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("number", c_uint32),
        ("id", llvs_bytes),
        ("last_seen", c_double),
        ("here", c_uint32),
        ("reserved", c_uint32),
        ("name", llvs_bytes),
    ]


class llvs_remote(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("layout", c_uint32),
        ("epoch", c_uint32),
        ("reserved", c_uint32),
        ("fingerprint", llvs_bytes),
        ("packs", c_uint64),
        ("bytes", c_uint64),
        ("listed", c_double),
        ("writers", c_void_p),
        ("writer_count", c_size_t),
    ]


class llvs_pack_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("recipients", c_void_p),
        ("recipient_count", c_size_t),
        ("identities", c_void_p),
        ("identity_count", c_size_t),
        ("passphrase", llvs_bytes),
    ]


class llvs_snapshot(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("chunk_count", c_uint32),
        ("id", llvs_bytes),
        ("format", llvs_bytes),
        ("latest_version", llvs_bytes),
        ("created_at", c_double),
        ("version_count", c_uint64),
        ("total_size", c_uint64),
        ("problems", c_void_p),
        ("problem_count", c_size_t),
    ]


class llvs_import_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("decode", c_void_p),
        ("decode_payload", c_void_p),
        ("decode_free", c_void_p),
    ]


class llvs_move(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("moved", c_uint32),
        ("from", llvs_version_id),
        ("to", llvs_version_id),
    ]


class llvs_coordinator_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("snapshot_policy", c_uint32),
        ("store", c_void_p),
        ("name", llvs_bytes),
        ("arbiter", c_void_p),
        ("metadata", c_void_p),
        ("metadata_count", c_size_t),
        ("device", llvs_bytes),
    ]


class llvs_sync_result(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("moved", c_uint32),
        ("from", llvs_bytes),
        ("to", llvs_bytes),
        ("before", c_void_p),
        ("after", c_void_p),
        ("merged", c_uint32),
        ("reserved", c_uint32),
    ]


class llvs_sync_place(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reason", c_uint32),
        ("place", llvs_bytes),
        ("failures", c_uint64),
        ("retry_at", c_double),
        ("last_success", c_double),
        ("error", c_void_p),
        ("problems", c_void_p),
        ("problem_count", c_size_t),
        ("http_status", c_uint32),
        ("knows_pending", c_uint32),
        ("pending_versions", c_uint64),
        ("pending_bytes", c_uint64),
        ("last_retrieve", c_double),
        ("last_send", c_double),
        ("requests", c_uint64),
        ("bytes_up", c_uint64),
        ("bytes_down", c_uint64),
        ("requests_today", c_uint64),
        ("bytes_up_today", c_uint64),
        ("bytes_down_today", c_uint64),
        ("remote", c_void_p),
        ("needs_user", c_uint32),
        ("reserved", c_uint32),
        ("unread", c_uint64),
        ("unread_since", c_double),
    ]


class llvs_sync_status(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("state", c_uint32),
        ("reason", c_uint32),
        ("stage", c_uint32),
        ("completed", c_uint64),
        ("total", c_uint64),
        ("next_round", c_double),
        ("last_success", c_double),
        ("rounds", c_uint64),
        ("retrieved", c_uint64),
        ("sent", c_uint64),
        ("merge_error", c_void_p),
        ("places", c_void_p),
        ("place_count", c_size_t),
        ("bytes_done", c_uint64),
        ("bytes_total", c_uint64),
        ("erasures_followed", c_uint64),
        ("erasures_waiting", c_uint64),
        ("erasures_announced", c_uint64),
        ("erasures_held", c_uint64),
    ]


class llvs_syncer_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("conditions", c_uint32),
        ("after_save", c_uint32),
        ("after_saves", c_uint32),
        ("poll", c_uint32),
        ("longest_poll", c_uint32),
        ("longest_pause", c_uint32),
        ("selection", c_uint32),
    ]


class llvs_index_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("warm", c_uint32),
        ("name", llvs_bytes),
        ("definition", llvs_bytes),
        ("coordinator", c_void_p),
    ]


class llvs_computed_index_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("warm", c_uint32),
        ("prefix", llvs_bytes),
        ("name", llvs_bytes),
        ("parts", c_uint32),
        ("callback_version", c_uint32),
        ("coordinator", c_void_p),
    ]


class llvs_index_question(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("want", c_uint32),
        ("equal", llvs_bytes),
        ("begin", llvs_bytes),
        ("low", llvs_bytes),
        ("high", llvs_bytes),
        ("after", llvs_bytes),
        ("limit", c_uint64),
        ("byte_limit", c_uint64),
        ("has_begin", c_uint32),
        ("low_open", c_uint32),
        ("high_open", c_uint32),
        ("reverse", c_uint32),
        ("unique", c_uint32),
        ("reserved", c_uint32),
    ]


class llvs_index_page(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("total", c_uint64),
        ("count", c_size_t),
        ("ids", llvs_bytes),
        ("id_sizes", c_void_p),
        ("keys", llvs_bytes),
        ("key_sizes", c_void_p),
        ("values", c_void_p),
        ("cursor", llvs_bytes),
    ]


class llvs_projection_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("file_mode", c_uint32),
        ("coordinator", c_void_p),
        ("busy_timeout", c_double),
    ]


class llvs_peer_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("initiator", c_uint32),
        ("pairing", llvs_bytes),
        ("identity", llvs_bytes),
        ("device", llvs_bytes),
        ("accepted", c_void_p),
        ("accepted_count", c_size_t),
        ("invitation", llvs_bytes),
        ("compares_digits", c_uint32),
        ("reserved", c_uint32),
        ("quota", c_void_p),
        ("quota_payload", c_void_p),
        ("quota_free", c_void_p),
        ("exchange", c_void_p),
        ("place", llvs_bytes),
        ("outer", llvs_bytes),
    ]


class llvs_peer_state(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("phase", c_uint32),
        ("device", llvs_bytes),
        ("key", llvs_bytes),
        ("sent", c_uint64),
        ("received", c_uint64),
        ("problems", c_void_p),
        ("problem_count", c_size_t),
        ("pairing", llvs_bytes),
        ("digits", llvs_bytes),
    ]


class llvs_storage_callbacks(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("append", c_void_p),
        ("scan", c_void_p),
        ("read", c_void_p),
        ("sync", c_void_p),
        ("close", c_void_p),
        ("cache_get", c_void_p),
        ("cache_put", c_void_p),
        ("cache_delete", c_void_p),
    ]


class llvs_exchange_files(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("name", llvs_bytes),
        ("version", llvs_bytes),
        ("changes", llvs_bytes),
    ]


class llvs_transport_callbacks(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("list", c_void_p),
        ("fetch_versions", c_void_p),
        ("fetch_changes", c_void_p),
        ("send", c_void_p),
        ("snapshot_list", c_void_p),
        ("snapshot_read", c_void_p),
        ("snapshot_write", c_void_p),
        ("snapshot_delete", c_void_p),
        ("close", c_void_p),
        ("send_large", c_void_p),
        ("unusable", c_void_p),
    ]


class llvs_files_callbacks(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("traits", c_uint32),
        ("list", c_void_p),
        ("read", c_void_p),
        ("publish", c_void_p),
        ("remove", c_void_p),
        ("close", c_void_p),
    ]


class llvs_fault(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("operations", c_uint32),
        ("code", c_int32),
        ("first", c_uint64),
        ("count", c_uint64),
        ("probability", c_double),
        ("delay_milliseconds", c_uint32),
        ("reserved", c_uint32),
    ]


class llvs_check(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("outcome", c_uint32),
        ("name", llvs_bytes),
        ("message", llvs_bytes),
    ]


class llvs_check_report(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("checks", c_void_p),
        ("check_count", c_size_t),
        ("failures", c_size_t),
    ]


class llvs_storage_subject(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("traits", c_uint32),
        ("make", c_void_p),
        ("disturb", c_void_p),
        ("finished", c_void_p),
        ("payload", c_void_p),
        ("only", llvs_bytes),
    ]


class llvs_transport_subject(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("traits", c_uint32),
        ("make", c_void_p),
        ("disturb", c_void_p),
        ("finished", c_void_p),
        ("payload", c_void_p),
        ("only", llvs_bytes),
    ]

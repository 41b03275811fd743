"""Opening stores, and their upkeep."""

import ctypes
from ctypes import c_double, c_size_t, c_uint32, c_uint64, c_void_p

from .common import llvs_bytes, llvs_buffer


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


class llvs_import_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("decode", c_void_p),
        ("decode_payload", c_void_p),
        ("decode_free", c_void_p),
    ]

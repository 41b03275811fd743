"""Exchanges, snapshots and coordinators."""

import ctypes
from ctypes import c_double, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

from .common import llvs_bytes, llvs_version_id


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
    ]


class llvs_problem(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("code", c_int32),
        ("name", llvs_bytes),
        ("message", llvs_bytes),
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


class llvs_exchanged(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("place", llvs_bytes),
        ("result", c_void_p),
        ("error", c_void_p),
    ]


class llvs_move(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("moved", c_uint32),
        ("from", llvs_version_id),
        ("to", llvs_version_id),
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


class llvs_coordinator_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("snapshot_policy", c_uint32),
        ("store", c_void_p),
        ("name", llvs_bytes),
        ("arbiter", c_void_p),
        ("metadata", c_void_p),
        ("metadata_count", c_size_t),
    ]

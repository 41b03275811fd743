"""Values and changes, versions with what they are made of, and how to walk through them."""

import ctypes
from ctypes import c_double, c_size_t, c_uint32, c_uint64, c_void_p

from .common import llvs_bytes


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
    ]


class llvs_change_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("id", llvs_bytes),
        ("data", llvs_bytes),
        ("stored_version", llvs_bytes),
        ("data_size", c_uint64),
    ]


class llvs_change_list(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("count", c_size_t),
        ("items", c_void_p),
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
        ("reserved", c_uint32),
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


class llvs_heads_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("branch", llvs_bytes),
        ("limit", c_uint64),
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

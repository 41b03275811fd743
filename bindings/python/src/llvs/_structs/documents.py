"""Merging inside values."""

import ctypes
from ctypes import c_size_t, c_uint32, c_void_p

from .common import llvs_bytes


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

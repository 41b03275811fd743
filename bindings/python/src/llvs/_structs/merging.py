"""Merging."""

import ctypes
from ctypes import c_size_t, c_uint32, c_void_p

from .common import llvs_bytes


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


class llvs_revert_result(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("version", c_void_p),
        ("undone", c_void_p),
        ("undone_count", c_size_t),
        ("superseded", c_void_p),
        ("superseded_count", c_size_t),
    ]


class llvs_merge_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("relation", c_uint32),
        ("selection", c_uint32),
        ("reserved", c_uint32),
        ("branches", c_void_p),
        ("branch_count", c_size_t),
        ("metadata", c_void_p),
        ("metadata_count", c_size_t),
        ("control", c_void_p),
    ]

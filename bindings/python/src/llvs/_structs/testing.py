"""The structs of include/llvs_testing.h."""

import ctypes
from ctypes import c_double, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

from .common import llvs_bytes


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


class llvs_transport_subject(llvs_storage_subject):
    """The same fields, for a transport."""

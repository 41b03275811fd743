"""What all sections of the header use: bytes, ids, controls, metadata."""

import ctypes
from ctypes import c_char, c_size_t, c_uint32, c_uint64, c_void_p


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

"""Storages and transports of the host."""

import ctypes
from ctypes import c_uint32, c_void_p

from .common import llvs_bytes


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

"""Every prototype of include/llvs.h and llvs_testing.h, and the one way to call them.

    lib.llvs_store_heads(pointer, byref(heads))

The `llvs_error **` that ends a C call is left out: it is supplied here, and a status below zero raises
(see `errors`). Functions are bound at their first use. A test compares the table with the headers, ownership tags
included.
"""

from __future__ import annotations

import ctypes

from . import _lib

# `import llvs` comes as far as here, so this imports no more than it needs; type checkers take the name for true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class Parameter:
    """One parameter as ctypes passes it, and what the header says of it."""

    __slots__ = ("c_type", "ctype", "ownership")

    def __init__(self, ctype: Any, c_type: str, ownership: str) -> None:
        self.ctype = ctype
        #: The C type without `const`.
        self.c_type = c_type
        #: "owned" or "borrowed" for pointers, else "".
        self.ownership = ownership


class BytesArgument(ctypes.Structure):
    """`llvs_bytes` by value, made from `bytes`, which the caller keeps alive for the call."""

    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]

    @classmethod
    def from_param(cls, value: bytes) -> BytesArgument:
        """What ctypes calls to convert an argument. Others than `bytes` proper may lie about their size: `_memory` makes those first."""
        if type(value) is not bytes:
            raise TypeError(f"bytes are wanted here, not {type(value).__name__}")
        return cls(value, len(value))


def borrowed(c_type: str) -> Parameter:
    """A pointer to what stays whose it was. As ctypes an address: also takes `byref(...)`, `bytes` and None."""
    return Parameter(ctypes.c_void_p, c_type, "borrowed")


def owned(c_type: str) -> Parameter:
    """A pointer with which ownership crosses."""
    return Parameter(ctypes.c_void_p, c_type, "owned")


STATUS = Parameter(ctypes.c_int32, "llvs_status", "")
BYTES = Parameter(BytesArgument, "llvs_bytes", "")
SIZE = Parameter(ctypes.c_size_t, "size_t", "")
U32 = Parameter(ctypes.c_uint32, "uint32_t", "")
U64 = Parameter(ctypes.c_uint64, "uint64_t", "")
I32 = Parameter(ctypes.c_int32, "int32_t", "")
I64 = Parameter(ctypes.c_int64, "int64_t", "")
BOOL = Parameter(ctypes.c_uint32, "llvs_bool", "")
TEXT = Parameter(ctypes.c_char_p, "char*", "")
POINTER = Parameter(ctypes.c_void_p, "*", "")
FUNCTION = Parameter(ctypes.c_void_p, "function", "")
ERROR = owned("llvs_error**")

#: name: (result, parameters), in the order of the headers.
PROTOTYPES: dict[str, tuple[Parameter | None, list[Parameter]]] = {
    "llvs_version_number": (U32, []),
    "llvs_version_string": (TEXT, []),
    "llvs_status_name": (TEXT, [STATUS]),
    "llvs_struct_init": (STATUS, [borrowed("void*"), SIZE]),
    "llvs_buffer_dispose": (None, [owned("llvs_buffer*")]),
    "llvs_error_code": (STATUS, [borrowed("llvs_error*")]),
    "llvs_error_message": (TEXT, [borrowed("llvs_error*")]),
    "llvs_error_value_id": (BYTES, [borrowed("llvs_error*")]),
    "llvs_error_version_id": (BYTES, [borrowed("llvs_error*")]),
    "llvs_error_path": (BYTES, [borrowed("llvs_error*")]),
    "llvs_error_system_code": (I32, [borrowed("llvs_error*")]),
    "llvs_error_user_code": (I64, [borrowed("llvs_error*")]),
    "llvs_error_make": (POINTER, [I64, BYTES]),
    "llvs_error_free": (None, [owned("llvs_error*")]),
    "llvs_observer_cancel": (None, [borrowed("llvs_observer*")]),
    "llvs_observer_free": (None, [owned("llvs_observer*")]),
    "llvs_log_observe": (STATUS, [U32, FUNCTION, owned("void*"), FUNCTION, owned("llvs_observer**"), ERROR]),
    "llvs_cancel_token_create": (STATUS, [owned("llvs_cancel_token**"), ERROR]),
    "llvs_cancel_token_cancel": (None, [borrowed("llvs_cancel_token*")]),
    "llvs_cancel_token_is_cancelled": (BOOL, [borrowed("llvs_cancel_token*")]),
    "llvs_cancel_token_free": (None, [owned("llvs_cancel_token*")]),
    "llvs_version_list_free": (None, [owned("llvs_version_list*")]),
    "llvs_value_list_free": (None, [owned("llvs_value_list*")]),
    "llvs_value_block_free": (None, [owned("llvs_value_block*")]),
    "llvs_change_list_free": (None, [owned("llvs_change_list*")]),
    "llvs_store_open": (STATUS, [BYTES, borrowed("llvs_store_options*"), owned("llvs_store**"), ERROR]),
    "llvs_store_close": (STATUS, [borrowed("llvs_store*"), ERROR]),
    "llvs_store_free": (None, [owned("llvs_store*")]),
    "llvs_store_path": (BYTES, [borrowed("llvs_store*")]),
    "llvs_store_reload": (STATUS, [borrowed("llvs_store*"), borrowed("uint64_t*"), ERROR]),
    "llvs_store_observe": (STATUS, [borrowed("llvs_store*"), FUNCTION, owned("void*"), FUNCTION, owned("llvs_observer**"), ERROR]),
    "llvs_store_statistics": (STATUS, [borrowed("llvs_store*"), borrowed("llvs_statistics*"), ERROR]),
    "llvs_store_verify": (STATUS, [borrowed("llvs_store*"), borrowed("llvs_control*"), owned("llvs_verify_report**"), ERROR]),
    "llvs_verify_report_free": (None, [owned("llvs_verify_report*")]),
    "llvs_store_salvage": (
        STATUS,
        [
            BYTES, borrowed("llvs_store_options*"), BYTES,
            borrowed("llvs_store_options*"), borrowed("llvs_control*"), owned("llvs_salvage_report**"), ERROR,
        ],
    ),
    "llvs_salvage_report_free": (None, [owned("llvs_salvage_report*")]),
    "llvs_store_compact": (STATUS, [borrowed("llvs_store*"), borrowed("llvs_control*"), owned("llvs_compaction_report*"), ERROR]),
    "llvs_store_make_version": (
        STATUS,
        [
            borrowed("llvs_store*"), BYTES, borrowed("llvs_change*"), SIZE,
            SIZE, borrowed("llvs_version_options*"), borrowed("llvs_version_id*"), owned("llvs_version_list**"), ERROR,
        ],
    ),
    "llvs_store_version": (STATUS, [borrowed("llvs_store*"), BYTES, owned("llvs_version_list**"), ERROR]),
    "llvs_store_versions": (STATUS, [borrowed("llvs_store*"), borrowed("llvs_bytes*"), SIZE, owned("llvs_version_list**"), ERROR]),
    "llvs_store_heads": (STATUS, [borrowed("llvs_store*"), borrowed("llvs_heads_options*"), owned("llvs_version_list**"), ERROR]),
    "llvs_store_successors": (STATUS, [borrowed("llvs_store*"), BYTES, owned("llvs_version_list**"), ERROR]),
    "llvs_store_is_ancestor": (STATUS, [borrowed("llvs_store*"), BYTES, BYTES, borrowed("llvs_bool*"), ERROR]),
    "llvs_store_merge_bases": (STATUS, [borrowed("llvs_store*"), BYTES, BYTES, owned("llvs_version_list**"), ERROR]),
    "llvs_store_versions_of": (STATUS, [borrowed("llvs_store*"), BYTES, owned("llvs_version_list**"), ERROR]),
    "llvs_store_history": (
        STATUS,
        [borrowed("llvs_store*"), borrowed("llvs_history_options*"), borrowed("llvs_control*"), owned("llvs_history_cursor**"), ERROR],
    ),
    "llvs_history_cursor_next": (
        STATUS,
        [borrowed("llvs_history_cursor*"), SIZE, borrowed("llvs_control*"), owned("llvs_version_list**"), ERROR],
    ),
    "llvs_history_cursor_free": (None, [owned("llvs_history_cursor*")]),
    "llvs_store_value": (STATUS, [borrowed("llvs_store*"), BYTES, BYTES, owned("llvs_buffer*"), borrowed("llvs_version_id*"), ERROR]),
    "llvs_store_read_value": (
        STATUS,
        [borrowed("llvs_store*"), BYTES, BYTES, borrowed("void*"), SIZE, borrowed("size_t*"), borrowed("llvs_version_id*"), ERROR],
    ),
    "llvs_store_open_value": (
        STATUS,
        [borrowed("llvs_store*"), BYTES, BYTES, owned("llvs_value_reader**"), borrowed("uint64_t*"), borrowed("llvs_version_id*"), ERROR],
    ),
    "llvs_value_reader_read": (STATUS, [borrowed("llvs_value_reader*"), U64, borrowed("void*"), SIZE, borrowed("size_t*"), ERROR]),
    "llvs_value_reader_free": (None, [owned("llvs_value_reader*")]),
    "llvs_store_reference": (STATUS, [borrowed("llvs_store*"), BYTES, BYTES, borrowed("llvs_version_id*"), ERROR]),
    "llvs_store_values": (STATUS, [borrowed("llvs_store*"), borrowed("llvs_bytes*"), SIZE, BYTES, owned("llvs_value_list**"), ERROR]),
    "llvs_store_value_block": (
        STATUS,
        [borrowed("llvs_store*"), BYTES, borrowed("uint64_t*"), SIZE, BYTES, owned("llvs_value_block**"), ERROR],
    ),
    "llvs_store_enumerate": (STATUS, [borrowed("llvs_store*"), BYTES, borrowed("llvs_range*"), owned("llvs_value_list**"), ERROR]),
    "llvs_store_enumerate_block": (STATUS, [borrowed("llvs_store*"), BYTES, borrowed("llvs_range*"), owned("llvs_value_block**"), ERROR]),
    "llvs_store_count": (STATUS, [borrowed("llvs_store*"), BYTES, borrowed("llvs_range*"), borrowed("uint64_t*"), ERROR]),
    "llvs_store_changes": (
        STATUS, [borrowed("llvs_store*"), BYTES, borrowed("llvs_range*"), borrowed("llvs_control*"), owned("llvs_change_cursor**"), ERROR]
    ),
    "llvs_store_differences": (
        STATUS,
        [borrowed("llvs_store*"), BYTES, BYTES, borrowed("llvs_range*"), borrowed("llvs_control*"), owned("llvs_change_cursor**"), ERROR],
    ),
    "llvs_change_cursor_count": (SIZE, [borrowed("llvs_change_cursor*")]),
    "llvs_change_cursor_next": (STATUS, [borrowed("llvs_change_cursor*"), SIZE, BOOL, owned("llvs_change_list**"), ERROR]),
    "llvs_change_cursor_free": (None, [owned("llvs_change_cursor*")]),
    "llvs_resolution_add": (STATUS, [borrowed("llvs_resolution*"), borrowed("llvs_change*"), SIZE, SIZE, ERROR]),
    "llvs_arbiter_builtin": (STATUS, [U32, owned("llvs_arbiter**"), ERROR]),
    "llvs_arbiter_rules": (STATUS, [BYTES, owned("llvs_arbiter**"), ERROR]),
    "llvs_arbiter_create": (STATUS, [FUNCTION, owned("void*"), FUNCTION, borrowed("llvs_arbiter*"), owned("llvs_arbiter**"), ERROR]),
    "llvs_arbiter_free": (None, [owned("llvs_arbiter*")]),
    "llvs_store_merge": (
        STATUS,
        [
            borrowed("llvs_store*"), BYTES, BYTES,
            borrowed("llvs_arbiter*"), borrowed("llvs_merge_options*"), owned("llvs_version_list**"), ERROR,
        ],
    ),
    "llvs_store_merge_heads": (
        STATUS,
        [borrowed("llvs_store*"), BYTES, borrowed("llvs_arbiter*"), borrowed("llvs_merge_options*"), owned("llvs_version_list**"), ERROR],
    ),
    "llvs_revert_result_free": (None, [owned("llvs_revert_result*")]),
    "llvs_store_revert": (
        STATUS,
        [borrowed("llvs_store*"), BYTES, BYTES, borrowed("llvs_merge_options*"), owned("llvs_revert_result**"), ERROR],
    ),
    "llvs_merge_values": (
        STATUS,
        [
            BYTES, borrowed("llvs_bytes*"), borrowed("llvs_bytes*"), borrowed("llvs_bytes*"),
            borrowed("llvs_merge_values_options*"), owned("llvs_merged_value**"), ERROR,
        ],
    ),
    "llvs_merged_value_free": (None, [owned("llvs_merged_value*")]),
    "llvs_schema_check": (STATUS, [BYTES, ERROR]),
    "llvs_exchange_open": (STATUS, [borrowed("llvs_store*"), BYTES, borrowed("llvs_exchange_options*"), owned("llvs_exchange**"), ERROR]),
    "llvs_exchange_url": (BYTES, [borrowed("llvs_exchange*")]),
    "llvs_exchange_close": (STATUS, [borrowed("llvs_exchange*"), ERROR]),
    "llvs_exchange_free": (None, [owned("llvs_exchange*")]),
    "llvs_exchange_result_free": (None, [owned("llvs_exchange_result*")]),
    "llvs_exchange_retrieve": (STATUS, [borrowed("llvs_exchange*"), borrowed("llvs_control*"), owned("llvs_exchange_result**"), ERROR]),
    "llvs_exchange_verify": (STATUS, [borrowed("llvs_exchange*"), borrowed("llvs_control*"), owned("llvs_exchange_result**"), ERROR]),
    "llvs_exchange_send": (STATUS, [borrowed("llvs_exchange*"), borrowed("llvs_control*"), owned("llvs_exchange_result**"), ERROR]),
    "llvs_exchange_observe": (STATUS, [borrowed("llvs_exchange*"), FUNCTION, owned("void*"), FUNCTION, owned("llvs_observer**"), ERROR]),
    "llvs_exchange_restoration_state": (STATUS, [borrowed("llvs_exchange*"), owned("llvs_buffer*"), ERROR]),
    "llvs_exchange_set_restoration_state": (STATUS, [borrowed("llvs_exchange*"), BYTES, ERROR]),
    "llvs_snapshot_free": (None, [owned("llvs_snapshot*")]),
    "llvs_exchange_put_snapshot": (STATUS, [borrowed("llvs_exchange*"), borrowed("llvs_control*"), owned("llvs_snapshot**"), ERROR]),
    "llvs_exchange_restore_snapshot": (STATUS, [borrowed("llvs_exchange*"), borrowed("llvs_control*"), owned("llvs_snapshot**"), ERROR]),
    "llvs_exchange_snapshot": (STATUS, [borrowed("llvs_exchange*"), owned("llvs_snapshot**"), ERROR]),
    "llvs_store_import": (
        STATUS,
        [borrowed("llvs_store*"), BYTES, borrowed("llvs_import_options*"), borrowed("llvs_control*"), owned("llvs_exchange_result**"), ERROR],
    ),
    "llvs_coordinator_open": (STATUS, [BYTES, borrowed("llvs_coordinator_options*"), owned("llvs_coordinator**"), ERROR]),
    "llvs_coordinator_close": (STATUS, [borrowed("llvs_coordinator*"), ERROR]),
    "llvs_coordinator_free": (None, [owned("llvs_coordinator*")]),
    "llvs_coordinator_store": (STATUS, [borrowed("llvs_coordinator*"), owned("llvs_store**"), ERROR]),
    "llvs_coordinator_current_version": (STATUS, [borrowed("llvs_coordinator*"), borrowed("llvs_version_id*"), ERROR]),
    "llvs_coordinator_missing_version": (STATUS, [borrowed("llvs_coordinator*"), borrowed("llvs_version_id*"), ERROR]),
    "llvs_coordinator_set_current_version": (STATUS, [borrowed("llvs_coordinator*"), BYTES, ERROR]),
    "llvs_coordinator_save": (
        STATUS,
        [
            borrowed("llvs_coordinator*"), borrowed("llvs_change*"), SIZE, SIZE,
            borrowed("llvs_version_options*"), borrowed("llvs_version_id*"), owned("llvs_version_list**"),
            borrowed("llvs_move*"), ERROR,
        ],
    ),
    "llvs_coordinator_value": (STATUS, [borrowed("llvs_coordinator*"), BYTES, owned("llvs_buffer*"), borrowed("llvs_version_id*"), ERROR]),
    "llvs_coordinator_attach": (STATUS, [borrowed("llvs_coordinator*"), BYTES, borrowed("llvs_exchange_options*"), ERROR]),
    "llvs_coordinator_exchange": (
        STATUS,
        [borrowed("llvs_coordinator*"), borrowed("llvs_control*"), owned("llvs_exchange_result**"), ERROR],
    ),
    "llvs_coordinator_merge": (STATUS, [borrowed("llvs_coordinator*"), borrowed("llvs_merge_options*"), borrowed("llvs_move*"), ERROR]),
    "llvs_sync_result_free": (None, [owned("llvs_sync_result*")]),
    "llvs_coordinator_sync": (STATUS, [borrowed("llvs_coordinator*"), borrowed("llvs_merge_options*"), owned("llvs_sync_result**"), ERROR]),
    "llvs_coordinator_observe": (
        STATUS,
        [borrowed("llvs_coordinator*"), FUNCTION, owned("void*"), FUNCTION, owned("llvs_observer**"), ERROR],
    ),
    "llvs_coordinator_observe_exchanges": (
        STATUS,
        [borrowed("llvs_coordinator*"), FUNCTION, owned("void*"), FUNCTION, owned("llvs_observer**"), ERROR],
    ),
    "llvs_coordinator_bootstrap": (
        STATUS, [borrowed("llvs_coordinator*"), borrowed("llvs_control*"), borrowed("llvs_bool*"), borrowed("llvs_move*"), ERROR]
    ),
    "llvs_reply_add": (STATUS, [borrowed("llvs_reply*"), BYTES, ERROR]),
    "llvs_reply_set": (STATUS, [borrowed("llvs_reply*"), SIZE, BYTES, ERROR]),
    "llvs_reply_set_source": (STATUS, [borrowed("llvs_reply*"), SIZE, U64, FUNCTION, owned("void*"), FUNCTION, ERROR]),
    "llvs_reply_record": (STATUS, [borrowed("llvs_reply*"), U64, U64, BYTES, ERROR]),
    "llvs_reply_is_cancelled": (BOOL, [borrowed("llvs_reply*")]),
    "llvs_storage_create": (STATUS, [BYTES, borrowed("llvs_storage_callbacks*"), owned("void*"), FUNCTION, owned("llvs_storage**"), ERROR]),
    "llvs_storage_free": (None, [owned("llvs_storage*")]),
    "llvs_outgoing_size": (U64, [borrowed("llvs_outgoing*")]),
    "llvs_outgoing_write": (STATUS, [borrowed("llvs_outgoing*"), FUNCTION, borrowed("void*"), ERROR]),
    "llvs_transport_create": (
        STATUS,
        [BYTES, borrowed("llvs_transport_callbacks*"), owned("void*"), FUNCTION, owned("llvs_transport**"), ERROR],
    ),
    "llvs_transport_notify": (STATUS, [borrowed("llvs_transport*"), ERROR]),
    "llvs_transport_state": (STATUS, [borrowed("llvs_transport*"), owned("llvs_buffer*"), ERROR]),
    "llvs_transport_set_state": (STATUS, [borrowed("llvs_transport*"), BYTES, ERROR]),
    "llvs_transport_free": (None, [owned("llvs_transport*")]),
    # include/llvs_testing.h
    "llvs_testing_storage": (STATUS, [BYTES, borrowed("llvs_store_options*"), owned("llvs_storage**"), ERROR]),
    "llvs_testing_transport": (STATUS, [BYTES, borrowed("llvs_exchange_options*"), owned("llvs_transport**"), ERROR]),
    "llvs_faults_create": (STATUS, [U64, owned("llvs_faults**"), ERROR]),
    "llvs_faults_add": (STATUS, [borrowed("llvs_faults*"), borrowed("llvs_fault*"), ERROR]),
    "llvs_faults_clear": (STATUS, [borrowed("llvs_faults*"), ERROR]),
    "llvs_faults_reset": (STATUS, [borrowed("llvs_faults*"), ERROR]),
    "llvs_faults_count": (U64, [borrowed("llvs_faults*"), U32]),
    "llvs_faults_injected": (U64, [borrowed("llvs_faults*")]),
    "llvs_faults_last": (STATUS, [borrowed("llvs_faults*"), owned("llvs_buffer*"), ERROR]),
    "llvs_faults_free": (None, [owned("llvs_faults*")]),
    "llvs_faults_storage": (STATUS, [borrowed("llvs_faults*"), borrowed("llvs_storage*"), owned("llvs_storage**"), ERROR]),
    "llvs_faults_transport": (STATUS, [borrowed("llvs_faults*"), borrowed("llvs_transport*"), owned("llvs_transport**"), ERROR]),
    "llvs_check_report_free": (None, [owned("llvs_check_report*")]),
    "llvs_check_storage": (STATUS, [borrowed("llvs_storage_subject*"), owned("llvs_check_report**"), ERROR]),
    "llvs_check_storage_name": (TEXT, [SIZE]),
    "llvs_check_transport": (STATUS, [borrowed("llvs_transport_subject*"), owned("llvs_check_report**"), ERROR]),
    "llvs_check_transport_name": (TEXT, [SIZE]),
}

#: Releases that may wait for other threads, or that end what calls back into Python: never with the interpreter lock.
_SLOW_RELEASES = frozenset(
    f"llvs_{name}_free"
    for name in ("observer", "store", "exchange", "coordinator", "history_cursor", "change_cursor", "value_reader", "arbiter", "storage", "transport", "faults")
)


def _keeps_interpreter_lock(name: str, result: Parameter | None) -> bool:
    # Calls without a status only look at memory: giving up the lock would cost more than they do.
    return result is not STATUS and name not in _SLOW_RELEASES


def _check(status: int, function: Any, arguments: tuple[Any, ...]) -> int:
    if status < 0:
        from . import errors

        raise errors.take(status, arguments[-1]._obj)
    return status


class Library:
    """The functions of the library, as attributes; each is bound when it is first asked for."""

    def __init__(self) -> None:
        self._releasing, self._keeping = _lib.load()

    def raw(self, name: str) -> Any:
        """The ctypes function itself, with its prototype. Raises AttributeError for a name that the header has not."""
        if name not in PROTOTYPES:
            raise AttributeError(name)
        result, parameters = PROTOTYPES[name]
        function = (self._keeping if _keeps_interpreter_lock(name, result) else self._releasing)[name]
        function.argtypes = [parameter.ctype for parameter in parameters]
        if result is BYTES:
            from . import _structs

            function.restype = _structs.llvs_bytes
        else:
            function.restype = result.ctype if result is not None else None
        if result is STATUS and parameters[-1] is ERROR:
            check: Any = _check
            function.errcheck = check
        return function

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = self.raw(name)
        call: Callable[..., Any] = function
        if PROTOTYPES[name][1][-1:] == [ERROR]:
            byref, pointer = ctypes.byref, ctypes.c_void_p

            def call(*arguments: Any) -> Any:
                try:
                    return function(*arguments, byref(pointer()))
                except ctypes.ArgumentError as error:
                    # An interruption while ctypes converts an argument: of the exception it keeps the name alone.
                    if "KeyboardInterrupt" in str(error):
                        raise KeyboardInterrupt from None
                    raise

        setattr(self, name, call)
        return call


lib: Any = Library()

"""Suites that test a storage, a transport or remote files written in Python."""

from __future__ import annotations

import ctypes
import enum
from typing import Any, Callable, NamedTuple, Optional, Union

from .. import _abi
from .._abi import callbacks as _callbacks, memory as _memory
from .._abi.enums import NamedNumber
from .._abi.handle import Handle
from .._abi.signals import holding
from .._generated import constants as c, structs as _structs
from ..exchange._carrier import Carrier
from ..exchange.remote_files import RemoteFiles
from ..exchange.transport import Transport
from ..storage import Storage
from ..store import _pages
from .faults import FaultPlan, FaultyTransport

lib = _abi.lib
_pointer, _u32, _u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64


class Outcome(enum.Enum):
    """The outcome of a check."""

    PASSED = c.CHECK_PASSED
    FAILED = c.CHECK_FAILED
    #: The property is not promised.
    SKIPPED = c.CHECK_SKIPPED


class Check(NamedTuple):
    """One check of a suite."""

    #: The checked property, as a sentence that is true if it passed: "records are read back".
    name: str
    outcome: Outcome
    #: Why it failed or was skipped.
    message: str


class CheckReport(NamedTuple):
    """The report of a suite."""

    #: All checks, in the order in which they ran.
    checks: tuple[Check, ...]

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.outcome is Outcome.FAILED)


class ConformanceError(AssertionError):
    """A storage or transport failed checks, which the message lists; `report` has them all."""

    def __init__(self, report: CheckReport) -> None:
        lines = [f"{len(report.failures)} of {len(report.checks)} checks failed:"]
        super().__init__("\n".join(lines + [f"  {check.name}: {check.message}" for check in report.failures]))
        self.report = report


class Disturbance(NamedNumber):
    """What a disturbance does to a place."""

    #: From now on the medium of the place refuses writes, and a transport cannot reach it.
    FAIL = c.DISTURBANCE_FAIL
    #: It works again.
    MEND = c.DISTURBANCE_MEND
    #: Everything that was not synced is lost.
    POWER_CUT = c.DISTURBANCE_POWER_CUT


#: Disturbs the layer below the storage or transport of a place. Raises NotImplementedError for disturbances that it does not support: such
#: checks are skipped.
Disturb = Callable[[int, Disturbance], Any]


class _Suite:
    """What the callbacks of one call of a suite share."""

    def __init__(self, factory: Callable[[int], Any], disturb: Optional[Disturb], finished: Optional[Callable[[Check], Any]]) -> None:
        self.factory, self.disturb, self.finished = factory, disturb, finished
        # A plan without rules: gives the library a handle of its own, beside ours, by which a transport reports news.
        self.plan = FaultPlan()
        self.kept: list[Handle] = []
        self.interrupt: Optional[BaseException] = None

    def make(self, place: int, wrap: Any, expected: Union[type, tuple[type, ...]], slot: int) -> None:
        """Puts what the factory makes for a place where the library looks for it."""
        try:
            made = self.factory(place)
        except Exception:
            raise
        except BaseException as problem:
            self.interrupt = problem
            raise
        if not isinstance(made, expected):
            wanted = expected if isinstance(expected, type) else expected[0]
            raise TypeError(f"the factory made {made!r}, which is no {wanted.__name__}")
        handle: Handle = made._new_handle()  # type: ignore[attr-defined]
        self.kept.append(handle)
        with self.plan._call as plan:
            wrap(plan, handle._pointer, slot)

    def close(self) -> None:
        """Lets go of everything."""
        for handle in self.kept:
            handle.close()
        self.plan.close()


def _take_check(address: int) -> Check:
    struct = _structs.llvs_check.from_address(address)
    return Check(_memory.text(struct.name), Outcome(struct.outcome), _memory.text(struct.message) if struct.message.size else "")


def _disturb(suite: _Suite, place: int, what: int) -> int:
    assert suite.disturb is not None
    try:
        suite.disturb(place, Disturbance(what))
    except NotImplementedError:
        return c.ERROR_UNSUPPORTED
    return c.OK


def _finished(suite: _Suite, check: int) -> None:
    if suite.interrupt is not None:
        raise suite.interrupt
    if suite.finished is not None:
        suite.finished(_take_check(check))


_make_storage = _callbacks.solicited([_u64, _pointer], lambda suite, place, slot: suite.make(place, lib.llvs_faults_storage, Storage, slot))
_make_transport = _callbacks.solicited(
    [_u64, _pointer], lambda suite, place, slot: suite.make(place, lib.llvs_faults_transport, Transport, slot)
)
_make_files = _callbacks.solicited(
    [_u64, _pointer], lambda suite, place, slot: suite.make(place, lib.llvs_faults_transport, (RemoteFiles, FaultyTransport), slot)
)
_disturb_thunk = _callbacks.solicited([_u64, _u32], _disturb)
_finished_thunk = _callbacks.solicited([_pointer], _finished)


def _address(thunk: Any) -> Optional[int]:
    return ctypes.cast(thunk, _pointer).value


def _run(function: Any, struct: Any, make: Any, suite: _Suite, traits: int, only: str, raises: bool) -> CheckReport:
    text = _memory.encode(only)
    buffer = ctypes.create_string_buffer(text, len(text) + 1)
    payload = _callbacks.register(suite)
    subject = struct(
        struct_size=ctypes.sizeof(struct),
        traits=traits,
        make=_address(make),
        disturb=_address(_disturb_thunk) if suite.disturb is not None else None,
        finished=_address(_finished_thunk),
        payload=payload,
    )
    if text:
        subject.only.data, subject.only.size = ctypes.addressof(buffer), len(text)
    report = ctypes.c_void_p()
    try:
        with holding:
            function(ctypes.byref(subject), ctypes.byref(report))
        made = _structs.llvs_check_report.from_address(report.value or 0)
        found = CheckReport(tuple(map(_take_check, _pages.addresses(made.checks, made.check_count))))
    finally:
        lib.llvs_check_report_free(report.value)
        _callbacks.registry.pop(payload, None)
        suite.close()
    if raises and found.failures:
        raise ConformanceError(found)
    return found


def check_storage(
    factory: Callable[[int], Storage],
    *,
    lasting: bool = True,
    shared: bool = True,
    disturb: Optional[Disturb] = None,
    only: str = "",
    finished: Optional[Callable[[Check], Any]] = None,
    raises: bool = True,
) -> CheckReport:
    """Runs the suite that the storages of the library pass.

    factory: makes a storage over the place of a number: empty the first time that the number is given, and with its contents when it is
    given again. Each check has a number of its own.
    lasting: False: its contents are lost when it is closed.
    shared: False: a place can be open only once at a time.
    disturb: makes a place fail, work again, or lose its power: so the suite sees whether the storage reports it.
    only: run the checks whose names contain this. finished: called with each check as it ends; if it raises, the suite ends. raises: False:
    return the report also if checks failed.

    Raises ConformanceError if a check failed. If the storage raises in a check, that check fails. Cost: seconds.
    """
    traits = (0 if lasting else c.TRAIT_VOLATILE) | (0 if shared else c.TRAIT_EXCLUSIVE)
    return _run(
        lib.llvs_check_storage, _structs.llvs_storage_subject, _make_storage, _Suite(factory, disturb, finished), traits, only, raises
    )


def check_transport(
    factory: Callable[[int], Transport],
    *,
    shared: bool = True,
    snapshots: bool = True,
    tells: bool = False,
    disturb: Optional[Disturb] = None,
    only: str = "",
    finished: Optional[Callable[[Check], Any]] = None,
    raises: bool = True,
) -> CheckReport:
    """Runs the suite that the transports of the library pass.

    factory: makes a transport that reaches the place of a number: empty the first time, and with its contents when the number is given
    again.
    shared: False: only one transport at a time reaches a place. snapshots: False: it does not support them.
    tells: True: it reports to observers (`Transport.notify`) what others sent. The rest is as for `check_storage`.
    """
    traits = (0 if shared else c.TRAIT_EXCLUSIVE) | (0 if snapshots else c.TRAIT_NO_SNAPSHOTS) | (c.TRAIT_TELLS if tells else 0)
    return _run(
        lib.llvs_check_transport, _structs.llvs_transport_subject, _make_transport, _Suite(factory, disturb, finished), traits, only, raises
    )


def check_files(
    factory: Callable[[int], Carrier],
    *,
    shared: bool = True,
    disturb: Optional[Disturb] = None,
    only: str = "",
    finished: Optional[Callable[[Check], Any]] = None,
    raises: bool = True,
) -> CheckReport:
    """Runs the suite that all places of named files of the library pass: folders, and servers over WebDAV, S3 and SFTP.

    factory: makes `RemoteFiles` that reach the place of a number: empty the first time, and with its contents when the number is given
    again. (A transport of `FaultPlan.transport` for a URL is accepted as well, and has no faults here.)
    shared: False: one at a time reaches a place. The rest is as for `check_storage`.
    """
    traits = 0 if shared else c.TRAIT_EXCLUSIVE
    return _run(
        lib.llvs_check_files, _structs.llvs_transport_subject, _make_files, _Suite(factory, disturb, finished), traits, only, raises
    )


def _names(function: Any) -> list[str]:
    names: list[str] = []
    while (name := function(len(names))) is not None:
        names.append(name.decode())
    return names


def storage_checks() -> list[str]:
    """The names of the checks of `check_storage`, for `pytest.mark.parametrize` and its `only`."""
    return _names(lib.llvs_check_storage_name)


def transport_checks() -> list[str]:
    """The names of the checks of `check_transport`."""
    return _names(lib.llvs_check_transport_name)


def files_checks() -> list[str]:
    """The names of the checks of `check_files`."""
    return _names(lib.llvs_check_files_name)

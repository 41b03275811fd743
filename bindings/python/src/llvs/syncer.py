"""Keeping a coordinator in step by itself, in the background."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _abi, _callbacks, _constants as c, _pages, _signals, _structs, errors
from ._enums import NamedFlags, NamedNumber
from ._handle import Handle
from ._memory import copy, decode
from .control import CancelToken, Control, Progress, ProgressCallback
from .coordinator import Coordinator
from .remote_status import RemoteStatus, read_remote_status
from .results import SyncResult, read_sync_result
from .snapshot import Problem, take_problems
from .words import HeadSelection

lib = _abi.lib
byref = ctypes.byref


class SyncState(NamedNumber):
    """What a syncer does."""

    #: Nothing any more: it or its coordinator was closed.
    OFF = c.SYNC_OFF
    #: It waits for the next round, or for something to do.
    IDLE = c.SYNC_IDLE
    #: A round runs.
    RUNNING = c.SYNC_RUNNING
    #: Every place waits: for the network, or for the end of the pause after a failure.
    WAITING = c.SYNC_WAITING
    #: The program paused it, or every place waits for somebody to do something.
    PAUSED = c.SYNC_PAUSED


class SyncReason(NamedNumber):
    """Why a place, or all of them, are not visited."""

    NONE = c.SYNC_REASON_NONE
    #: The program said that there is no network.
    OFFLINE = c.SYNC_REASON_OFFLINE
    #: The server wants to be left alone for a while.
    RATE_LIMITED = c.SYNC_REASON_RATE_LIMITED
    #: The folder or server cannot be reached.
    UNREACHABLE = c.SYNC_REASON_UNREACHABLE
    #: Something else went wrong; the error tells what.
    FAILED = c.SYNC_REASON_FAILED
    #: The user, the password or the rights are refused. Not tried again until somebody asks.
    SIGN_IN = c.SYNC_REASON_SIGN_IN
    #: Here or there is no room. Nothing is sent for an hour, or until somebody asks; what others send is received, if there is room here.
    NO_SPACE = c.SYNC_REASON_NO_SPACE
    #: The other side was written by a newer version of this library.
    UPDATE_APP = c.SYNC_REASON_UPDATE_APP
    #: The program paused the syncer.
    PAUSED = c.SYNC_REASON_PAUSED
    #: What is there is encrypted, and the passphrase or the identities do not open it, or are missing. Not tried again until somebody asks.
    PASSPHRASE = c.SYNC_REASON_PASSPHRASE
    #: A place in packs was emptied, or a place belongs to another store. If it is to be filled anew or joined, exchange with it once
    #: through an `Exchange` with the `restoration_state` `b"new"`. Otherwise bring it back.
    REMOTE_RESET = c.SYNC_REASON_REMOTE_RESET
    #: Another process exchanges with the place for this store: no failure.
    ALREADY_RUNNING = c.SYNC_REASON_ALREADY_RUNNING


class SyncConditions(NamedFlags):
    """What a program says of the device that it runs on."""

    NONE = 0
    #: There is no network: nothing is tried, but when the user asks.
    OFFLINE = c.SYNC_OFFLINE
    #: Bytes cost money: rounds without another reason are four times as seldom.
    METERED = c.SYNC_METERED
    #: The same.
    LOW_BATTERY = c.SYNC_LOW_BATTERY
    #: The program is not in front: no rounds without another reason.
    BACKGROUND = c.SYNC_BACKGROUND
    #: Nothing is done, but when the user asks.
    PAUSE = c.SYNC_PAUSE


class Traffic(NamedTuple):
    """Requests to a server, and the bytes that went and came."""

    requests: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


class SyncPlace(NamedTuple):
    """What is known of one attached exchange."""

    #: What it was called as it was attached.
    place: str
    #: What it waits for.
    reason: SyncReason
    #: Rounds that failed there, one after the other.
    failures: int
    #: When it is tried again by the clock, in seconds since 1970-01-01 UTC; None: nothing failed, or only somebody helps.
    retry_at: Optional[float]
    #: When it was exchanged with last without a failure, in seconds since 1970-01-01 UTC; None: never.
    last_success: Optional[float]
    #: Why the last round failed there; None when it did not.
    error: Optional[BaseException]
    #: What could not be taken or sent in the last round.
    problems: tuple[Problem, ...]
    #: What a server answered to the request that failed in the last round: the status of HTTP; None: no answer, or no failure.
    http_status: Optional[int] = None
    #: Versions that are here and were not sent there yet; None: nobody knows before a round there ended without a failure.
    pending_versions: Optional[int] = None
    #: Bytes of the values that they stored, as they are.
    pending_bytes: Optional[int] = None
    #: When retrieving from there ended without a failure last, in seconds since 1970-01-01 UTC; None: never.
    last_retrieve: Optional[float] = None
    #: The same of sending.
    last_send: Optional[float] = None
    #: What the last round asked and moved.
    round: Traffic = Traffic()
    #: What all rounds did since the day began (UTC), or the syncer.
    today: Traffic = Traffic()
    #: What is known of a place in packs, as of the last exchange; None: nothing, or it has none.
    remote: Optional[RemoteStatus] = None
    #: Nothing goes on there before somebody did something: `reason` tells what.
    needs_user: bool = False
    #: How many files that the place lists could not be read in the last round. A round may end without a failure although nothing comes.
    unread: int = 0
    #: Since when some could not, in seconds since 1970-01-01 UTC; None: all could.
    unread_since: Optional[float] = None


class SyncStatus(NamedTuple):
    """What a syncer does at a moment, and did so far."""

    #: What it does.
    state: SyncState
    #: Why it waits or is paused: what the first place that waits does so for.
    reason: SyncReason
    #: How far the running round has come; None when none runs.
    progress: Optional[Progress]
    #: When the next round is due, in seconds since 1970-01-01 UTC; None when only something that happens leads to one.
    next_round: Optional[float]
    #: When a round ended without any failure, in seconds since 1970-01-01 UTC; None: never.
    last_success: Optional[float]
    #: Rounds that ended, failed ones included.
    rounds: int
    #: Versions that came in them.
    retrieved: int
    #: Versions that went in them.
    sent: int
    #: Why the last merge failed; None when it did not.
    merge_error: Optional[BaseException]
    #: One for each attached exchange, in the order of attaching.
    places: tuple[SyncPlace, ...]
    #: Of the place that is exchanged with just now, while packs are retrieved or sent: bytes that came or went.
    bytes_done: int = 0
    #: Those that are to come or go, as far as is known. Each part of a round begins anew, and neither becomes less in it.
    bytes_total: int = 0


class SyncEvent(NamedTuple):
    """What a syncer tells."""

    #: What it does now.
    status: SyncStatus
    #: What a round did that has just ended, also a failed one; else None. When it `moved`, `store.diff` from its `from_version`
    #: to its `to_version` tells which values are others.
    round: Optional[SyncResult]


class Syncer(Handle):
    """Keeps a coordinator in step with its exchanges by itself, on a thread of the library.

        with llvs.Coordinator("notes.llvs", exchange="/media/shared/notes") as notes:
            with llvs.Syncer(notes, lambda event: print(event.status.state.name)):
                ...                               # save and read as ever

    It begins with a round (exchange, merge, exchange), and does one after saves, when an exchange has news, and from time to time. Saves
    of other processes and exchanges attached later are noticed, too. It ends when it is closed, or its coordinator is.

    Safe from all threads. The callback is called on the library's thread, one event at a time; what it raises goes to
    `sys.unraisablehook`. From within, everything may be called but `run`.
    """

    _release = "llvs_syncer_free"
    _warns = False
    _calls_back = True
    _exit_order = 9

    def __init__(
        self,
        coordinator: Coordinator,
        on_event: Optional[Callable[[SyncEvent], Any]] = None,
        *,
        conditions: SyncConditions = SyncConditions.NONE,
        after_save: float = 2.0,
        after_saves: float = 10.0,
        poll: float = 30.0,
        longest_poll: float = 900.0,
        longest_pause: float = 900.0,
        heads: HeadSelection = "unbranched",
    ) -> None:
        """Starts it.

        on_event: hears each end of a round, each change of the state, and at most ten times a second how far a round has come.
        conditions: what is so from the beginning.
        after_save: seconds after the last save, before it is sent; after_saves: after the first of a row of saves, at the latest.
        poll: seconds between rounds without another reason, while something comes or goes; longest_poll: when nothing does.
        longest_pause: seconds after failures, at most.
        heads: which are merged: "unbranched" or "all".
        Raises PermissionDeniedError (the store was opened for reading only), ClosedError, InvalidArgumentError, StorageError (no thread
        can be started).
        """
        if on_event is not None and not callable(on_event):
            raise TypeError(f"on_event takes a function of an llvs.SyncEvent, not {type(on_event).__name__}")
        if heads not in _HEADS:
            raise errors.InvalidArgumentError(f"{heads!r} is no selection of heads for a syncer: use unbranched or all")
        options = _structs.llvs_syncer_options(
            struct_size=ctypes.sizeof(_structs.llvs_syncer_options),
            conditions=int(conditions),
            after_save=_milliseconds(after_save, "after_save"),
            after_saves=_milliseconds(after_saves, "after_saves"),
            poll=_milliseconds(poll, "poll"),
            longest_poll=_milliseconds(longest_poll, "longest_poll"),
            longest_pause=_milliseconds(longest_pause, "longest_pause"),
            selection=_HEADS[heads],
        )
        self._conditions = SyncConditions(conditions)
        self._coordinator = coordinator
        pointer, payload = ctypes.c_void_p(), _callbacks.register(on_event)
        with coordinator._call as owner:
            # The library frees the payload also when it refuses.
            lib.llvs_syncer_start(owner, byref(options), _event_thunk, payload, _callbacks.payload_free, byref(pointer))
        super().__init__(pointer.value or 0)
        _signals.listeners.add(id(self))

    def _what(self) -> str:
        return "the syncer"

    def _detail(self) -> str:
        return "" if self._closed else self.status.state.name.lower()

    def _let_go(self) -> None:
        super()._let_go()
        _signals.listeners.discard(id(self))

    def now(self) -> None:
        """The user asks: a round begins at once, whatever the conditions. Does not wait for it."""
        self._trigger(c.SYNC_TRIGGER_USER)

    def came_to_front(self) -> None:
        """The program came to the front, or the network is back or another one: a round at once, unless one was done in the last 5 seconds.
        What had failed is tried again.
        """
        self._trigger(c.SYNC_TRIGGER_FRONT)

    def has_news(self) -> None:
        """The other side has news, as a push says."""
        self._trigger(c.SYNC_TRIGGER_NEWS)

    def _trigger(self, trigger: int) -> None:
        with self._call as pointer:
            lib.llvs_syncer_trigger(pointer, trigger)

    @property
    def conditions(self) -> SyncConditions:
        """What is so. Who leaves the background or finds a network calls `came_to_front` as well."""
        return self._conditions

    @conditions.setter
    def conditions(self, conditions: SyncConditions) -> None:
        with self._call as pointer:
            lib.llvs_syncer_set_conditions(pointer, int(conditions))
        self._conditions = SyncConditions(conditions)

    def pause(self) -> None:
        """Does nothing any more, but when the user asks, until `resume`."""
        self.conditions |= SyncConditions.PAUSE

    def resume(self) -> None:
        """Goes on after `pause`."""
        self.conditions &= ~SyncConditions.PAUSE

    def run(
        self,
        deadline: Optional[float] = None,
        *,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> bool:
        """Does a round as the user asks for it, and waits for its end; whether all was done.

        deadline: seconds; when they are over, the round is cancelled, and what it had done whole is kept. False then, and when a place
        or the merge failed, as `status` says.
        Raises CancelledError, ClosedError, BusyError from within an event, InvalidArgumentError when no exchange is attached.
        """
        done = ctypes.c_uint32()
        limit = 0 if deadline is None else max(1, _milliseconds(deadline, "deadline", least=0.0))
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_syncer_run(pointer, limit, control, byref(done))
        return done.value != 0

    @property
    def status(self) -> SyncStatus:
        """What it does now and did so far."""
        made = ctypes.c_void_p()
        with self._call as pointer:
            lib.llvs_syncer_status(pointer, byref(made))
        try:
            return _status(made.value or 0)
        finally:
            lib.llvs_sync_status_free(made.value)


_HEADS = {"unbranched": c.HEADS_UNBRANCHED, "all": c.HEADS_ALL}


def _milliseconds(seconds: Union[int, float], name: str, least: float = 0.001) -> int:
    if not isinstance(seconds, (int, float)) or not least <= seconds <= 1e6:
        raise errors.InvalidArgumentError(f"{name} takes seconds, {least:g} to 1,000,000, not {seconds!r}")
    return round(seconds * 1000)


def _time(seconds: float) -> Optional[float]:
    return seconds or None


def _error(pointer: Optional[int]) -> Optional[BaseException]:
    return errors.read(pointer, lib) if pointer else None


def _status(address: int) -> SyncStatus:
    found = _structs.llvs_sync_status.from_address(address)
    return SyncStatus(
        SyncState(found.state),
        SyncReason(found.reason),
        Progress(found.stage, found.completed, found.total) if found.stage else None,
        _time(found.next_round),
        _time(found.last_success),
        found.rounds,
        found.retrieved,
        found.sent,
        _error(found.merge_error),
        tuple(_place(one) for one in _pages.addresses(found.places, found.place_count)),
        found.bytes_done,
        found.bytes_total,
    )


def _place(address: int) -> SyncPlace:
    one = _structs.llvs_sync_place.from_address(address)
    return SyncPlace(
        decode(copy(one.place.data, one.place.size)) if one.place.size else "",
        SyncReason(one.reason),
        one.failures,
        _time(one.retry_at),
        _time(one.last_success),
        _error(one.error),
        take_problems(one.problems, one.problem_count),
        one.http_status or None,
        one.pending_versions if one.knows_pending else None,
        one.pending_bytes if one.knows_pending else None,
        _time(one.last_retrieve),
        _time(one.last_send),
        Traffic(one.requests, one.bytes_up, one.bytes_down),
        Traffic(one.requests_today, one.bytes_up_today, one.bytes_down_today),
        read_remote_status(one.remote) if one.remote else None,
        bool(one.needs_user),
        one.unread,
        _time(one.unread_since),
    )


def _tell(target: Optional[Callable[[SyncEvent], Any]], status: int, result: Optional[int]) -> None:
    if target is not None:
        target(SyncEvent(_status(status), read_sync_result(result) if result else None))


_event_thunk = _callbacks.unsolicited([ctypes.c_void_p, ctypes.c_void_p], _tell, "a callback for events of a syncer")

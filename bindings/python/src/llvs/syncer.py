"""Keeping a coordinator in sync, in the background."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _abi, errors
from ._abi import callbacks as _callbacks, signals as _signals
from ._abi.enums import NamedFlags, NamedNumber
from ._abi.handle import Handle
from ._abi.memory import copy, decode
from ._generated import constants as c, structs as _structs
from .control import CancelToken, Control, Progress, ProgressCallback
from .coordinator.coordinator import Coordinator
from .exchange.remote_status import RemoteStatus, read_remote_status
from .exchange.results import SyncResult, read_sync_result
from .store import _pages
from .store.snapshot import Problem, take_problems
from .words import HeadSelection

__all__ = ["SyncConditions", "SyncEvent", "SyncPlace", "SyncReason", "SyncState", "SyncStatus", "Syncer", "Traffic"]

lib = _abi.lib
byref = ctypes.byref


class SyncState(NamedNumber):
    """The state of a syncer."""

    #: The syncer has ended: it or its coordinator was closed.
    OFF = c.SYNC_OFF
    #: The syncer waits for the next round, or for an event.
    IDLE = c.SYNC_IDLE
    #: A round is running.
    RUNNING = c.SYNC_RUNNING
    #: Every place waits: for the network, or for the end of the pause after a failure.
    WAITING = c.SYNC_WAITING
    #: The program paused it, or every place waits for a person to act.
    PAUSED = c.SYNC_PAUSED


class SyncReason(NamedNumber):
    """Why one place, or every place, is not synced."""

    NONE = c.SYNC_REASON_NONE
    #: The program said that there is no network.
    OFFLINE = c.SYNC_REASON_OFFLINE
    #: The server limits the rate of requests.
    RATE_LIMITED = c.SYNC_REASON_RATE_LIMITED
    #: The folder or server cannot be reached.
    UNREACHABLE = c.SYNC_REASON_UNREACHABLE
    #: Another failure; see the error.
    FAILED = c.SYNC_REASON_FAILED
    #: The user, the password or the permissions are refused. If only a person can resolve it, there is no retry until the user or the
    #: program requests one; otherwise there are timed retries.
    SIGN_IN = c.SYNC_REASON_SIGN_IN
    #: This device or the place is full. Nothing is sent for an hour, or until the user or the program requests it. Versions of others are
    #: received, if this device has space.
    NO_SPACE = c.SYNC_REASON_NO_SPACE
    #: The other side was written by a newer version of this library.
    UPDATE_APP = c.SYNC_REASON_UPDATE_APP
    #: The program paused the syncer.
    PAUSED = c.SYNC_REASON_PAUSED
    #: The place is encrypted, and the passphrase or the identities do not open it (no retry until the user or the program requests one), or
    #: are missing.
    PASSPHRASE = c.SYNC_REASON_PASSPHRASE
    #: A place in the packed layout was emptied, or a place belongs to another store. To fill it again or join it, exchange with it once
    #: through an `Exchange` with the `restoration_state` `b"new"`. Otherwise restore it.
    REMOTE_RESET = c.SYNC_REASON_REMOTE_RESET
    #: Another process exchanges with the place for this store. That is not a failure.
    ALREADY_RUNNING = c.SYNC_REASON_ALREADY_RUNNING


class SyncConditions(NamedFlags):
    """The conditions of the device, as the program reports them."""

    NONE = 0
    #: There is no network: no rounds, except at the user's request.
    OFFLINE = c.SYNC_OFFLINE
    #: Data transfer costs money: timed rounds are four times less frequent.
    METERED = c.SYNC_METERED
    #: The same.
    LOW_BATTERY = c.SYNC_LOW_BATTERY
    #: The program is not in front: no timed rounds, and no timed retries.
    BACKGROUND = c.SYNC_BACKGROUND
    #: No rounds, except at the user's request.
    PAUSE = c.SYNC_PAUSE


class Traffic(NamedTuple):
    """Requests to a server, and the bytes sent and received."""

    requests: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


class SyncPlace(NamedTuple):
    """The status of one attached exchange."""

    #: The URL or name with which it was attached.
    place: str
    #: Why it waits.
    reason: SyncReason
    #: The number of consecutive rounds that failed there.
    failures: int
    #: When the next timed retry is due, in seconds since 1970-01-01 UTC; None: no failure, or only a person can resolve it.
    retry_at: Optional[float]
    #: When the last exchange without a failure ended, in seconds since 1970-01-01 UTC; None: never.
    last_success: Optional[float]
    #: Why the last round failed there; None if it did not.
    error: Optional[BaseException]
    #: Items that could not be received or sent in the last round.
    problems: tuple[Problem, ...]
    #: The HTTP status of the request that failed in the last round; None: no response, or no failure.
    http_status: Optional[int] = None
    #: Versions of the store that were not sent there yet; None: unknown until a round there has ended without a failure.
    pending_versions: Optional[int] = None
    #: Bytes of the values that these versions stored, uncompressed.
    pending_bytes: Optional[int] = None
    #: When the last retrieve without a failure ended, in seconds since 1970-01-01 UTC; None: never.
    last_retrieve: Optional[float] = None
    #: The same for sends.
    last_send: Optional[float] = None
    #: The traffic of the last round.
    round: Traffic = Traffic()
    #: The traffic of all rounds since the start of the day (UTC), or of the syncer.
    today: Traffic = Traffic()
    #: For a place in the packed layout: what this device knows about it, as of the last exchange; None: nothing, or another layout.
    remote: Optional[RemoteStatus] = None
    #: A person has to act before syncing continues there: `reason` says why.
    needs_user: bool = False
    #: How many files that the place lists could not be read in the last round. A round with such files may end without a failure although
    #: nothing arrives.
    unread: int = 0
    #: Since when there are such files, in seconds since 1970-01-01 UTC; None: none.
    unread_since: Optional[float] = None


class SyncStatus(NamedTuple):
    """The status of a syncer."""

    #: Its state.
    state: SyncState
    #: Why it waits or is paused: the reason of the first place that waits.
    reason: SyncReason
    #: Progress of the running round; None if none runs.
    progress: Optional[Progress]
    #: When the next timed round is due, in seconds since 1970-01-01 UTC; None if only an event leads to one.
    next_round: Optional[float]
    #: When the last round without any failure ended, in seconds since 1970-01-01 UTC; None: never.
    last_success: Optional[float]
    #: Completed rounds, failed ones included.
    rounds: int
    #: Versions received in these rounds.
    retrieved: int
    #: Versions sent in these rounds.
    sent: int
    #: Why the last merge failed; None if it did not.
    merge_error: Optional[BaseException]
    #: One for each attached exchange, in the order of attaching.
    places: tuple[SyncPlace, ...]
    #: While packs are retrieved from or sent to a place: bytes transferred so far.
    bytes_done: int = 0
    #: The bytes to transfer in total, as far as known. Both numbers begin at 0 in each part of a round, and do not decrease within it.
    bytes_total: int = 0
    #: The orders to erase that were followed here: `Store.erasures` lists them.
    erasures_followed: int = 0
    #: Those to be followed.
    erasures_waiting: int = 0
    #: Those of other devices that are followed once their delay is over.
    erasures_announced: int = 0
    #: Those of other devices that wait for `Store.decide_erasure`.
    erasures_held: int = 0


class SyncEvent(NamedTuple):
    """An event of a syncer."""

    #: Its status.
    status: SyncStatus
    #: The result of a round that has just ended, also of a failed one; else None. If it `moved`, `store.diff` from its `from_version` to
    #: its `to_version` lists the values that changed.
    round: Optional[SyncResult]


class Syncer(Handle):
    """Keeps a coordinator in sync with its exchanges automatically, on a thread of the library.

        with llvs.Coordinator("notes.llvs", exchange="/media/shared/notes") as notes:
            with llvs.Syncer(notes, lambda event: print(event.status.state.name)):
                ...                               # save and read as ever

    It begins with a round (exchange, merge, exchange), and runs one after saves, when a place has new versions, and from time to time. It
    also notices saves of other processes and exchanges that are attached later. Versions that arrive over a direct connection, from another
    process or by an import are merged at once, also if no exchange is attached: that is a round without exchanges. It ends when it is
    closed, or its coordinator is.

    Safe from all threads. The callback is called on the library's thread, one event at a time; its exceptions go to `sys.unraisablehook`.
    It may call everything except `run`.
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

        on_event: called at each end of a round, at each change of the state, and at most ten times a second with the progress of a round.
        conditions: the initial conditions.
        after_save: seconds between the last save and sending it; after_saves: at most, between the first of several saves and sending them.
        poll: seconds between timed rounds, if versions were transferred recently; longest_poll: at most, if not.
        longest_pause: seconds of the longest backoff after failures.
        heads: which are merged: "unbranched" or "all".
        Raises PermissionDeniedError (the store was opened for reading only), ClosedError, InvalidArgumentError, StorageError (no thread
        can be started).
        """
        if on_event is not None and not callable(on_event):
            raise TypeError(f"on_event takes a function of an llvs.syncer.SyncEvent, not {type(on_event).__name__}")
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
            # The library frees the payload also if it refuses.
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
        """Begins a round at once, at the user's request, whatever the conditions. Does not wait for it."""
        self._trigger(c.SYNC_TRIGGER_USER)

    def came_to_front(self) -> None:
        """Reports that the program came to the front, or that the network is back or has changed: a round begins at once, unless there was
        one in the last 5 seconds. Failed places are retried.
        """
        self._trigger(c.SYNC_TRIGGER_FRONT)

    def has_news(self) -> None:
        """Reports that a place has new versions, for example as a push notification says."""
        self._trigger(c.SYNC_TRIGGER_NEWS)

    def _trigger(self, trigger: int) -> None:
        with self._call as pointer:
            lib.llvs_syncer_trigger(pointer, trigger)

    @property
    def conditions(self) -> SyncConditions:
        """The conditions. When the program leaves the background or finds a network, call `came_to_front` as well."""
        return self._conditions

    @conditions.setter
    def conditions(self, conditions: SyncConditions) -> None:
        with self._call as pointer:
            lib.llvs_syncer_set_conditions(pointer, int(conditions))
        self._conditions = SyncConditions(conditions)

    def pause(self) -> None:
        """Pauses: no rounds, except at the user's request, until `resume`."""
        self.conditions |= SyncConditions.PAUSE

    def resume(self) -> None:
        """Continues after `pause`."""
        self.conditions &= ~SyncConditions.PAUSE

    def run(
        self,
        deadline: Optional[float] = None,
        *,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> bool:
        """Runs a round at the user's request, and waits for its end; returns whether all was done.

        deadline: seconds after which the round is cancelled; its completed parts stay. Then the result is False, and so it is if a place or
        the merge failed (see `status`).
        Raises CancelledError, ClosedError, BusyError from within an event, InvalidArgumentError if no exchange is attached.
        """
        done = ctypes.c_uint32()
        limit = 0 if deadline is None else max(1, _milliseconds(deadline, "deadline", least=0.0))
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_syncer_run(pointer, limit, control, byref(done))
        return done.value != 0

    @property
    def status(self) -> SyncStatus:
        """Returns the status."""
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
        found.erasures_followed,
        found.erasures_waiting,
        found.erasures_announced,
        found.erasures_held,
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

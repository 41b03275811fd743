"""Reports of a store."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Optional


class Statistics(NamedTuple):
    """Counts of a store."""

    #: Versions in the history.
    versions: int
    #: Versions without successors.
    heads: int
    #: Versions of which some ancestors are missing: they enter the history when these arrive.
    pending: int
    #: Damages found so far.
    damaged: int
    #: Bytes on the medium, caches included.
    bytes: int
    #: Bytes written by this handle.
    bytes_written: int
    #: Syncs by this handle.
    syncs: int
    #: Files of records.
    segments: int
    #: Bytes of memory that the history occupies; caches of values are bounded by the memory budget.
    memory_used: int
    #: Values that this handle stored as differences from earlier ones.
    differences: int = 0
    #: The bytes that this handle stored for these values.
    difference_bytes: int = 0
    #: Bytes that these values have.
    difference_value_bytes: int = 0


class SizeRow(NamedTuple):
    """What one group of a `SizeReport` takes."""

    #: The kind, the prefix, the month, or the id of the version; empty for combined groups, and for the ids without a "/".
    name: str
    #: Values that are stored.
    values: int
    #: Bytes that these values have.
    value_bytes: int
    #: Bytes on the medium.
    bytes: int
    #: The part of `bytes` that belongs to values that prevail at a head.
    current_bytes: int
    #: The part of `bytes` that belongs to values that prevail at no head: only the past holds them.
    past_bytes: int
    #: In the row for the groups beyond the limit: the number of these groups; otherwise 0.
    combined: int = 0


class ErasureReach(str, Enum):
    """Whether bytes that an order to erase names are at a place."""

    #: This device removed them, or found none.
    GONE = "gone"
    #: They may be there until what the reason names has happened.
    PENDING = "pending"
    #: They may be there, and nothing that this device does removes them.
    OUT_OF_REACH = "out of reach"


class ErasureReason(str, Enum):
    """What bytes at a place wait for, or why they are out of reach."""

    #: They are gone.
    NONE = "none"
    #: The next exchange of this device with the place removes them.
    EXCHANGE = "exchange"
    #: The policy of this device lets the order count for this device alone: `Store.set_forgetting`.
    POLICY = "policy"
    #: Another device has them until it follows the order. It was not seen since the order was made (pending), or decides by its own policy
    #: (out of reach).
    DEVICE = "device"
    #: The service may keep deleted files, or old versions of files.
    BIN = "bin"
    #: The file system keeps old contents of files that are overwritten.
    MEDIUM = "medium"
    #: Programs of another kind read the place, and keep what they read.
    FOREIGN = "foreign"
    #: Versions were written to streams (`Store.pack`), of which nothing is known.
    STREAM = "stream"
    #: Backups, exports and copies of the store, of which nothing is known.
    BACKUP = "backup"


class ErasurePlace(NamedTuple):
    """Where bytes that an order to erase names may be, beside the store."""

    #: The place, the device or the store; empty for backups.
    name: str
    #: Whether the bytes are there.
    reach: ErasureReach
    #: Why.
    reason: ErasureReason
    #: When this device last exchanged with it, or saw the other device, in seconds since 1970-01-01 UTC; 0: not known.
    last_seen: float


class EraseReport(NamedTuple):
    """What was erased, or would be: the report of `Store.erase`."""

    #: Values that the call erased.
    values: int
    #: Versions that stored them.
    versions: int
    #: The bytes that they had.
    bytes: int
    #: How many of these values are copies that the store had made itself: choices of conflicts.
    copies: int
    #: Other values that were differences from erased values, and are now stored whole.
    rewritten: int
    #: Versions whose records cannot be read: it is unknown whether they have the values.
    unread: int
    #: The ids of the values whose bytes are the orders; none if nothing was found, or for a dry run.
    orders: tuple[str, ...]
    #: The versions that were made: the first has the orders, and all of them remove or replace values.
    made: tuple[str, ...]
    #: Where the bytes still are in the store, and what has to happen so that they go. Empty: they are gone.
    waiting: tuple[str, ...]
    #: Where else the bytes may be, as far as this device knows. Empty if nothing was found.
    places: tuple[ErasurePlace, ...]


class ForgetRule(str, Enum):
    """What keeps a value from being forgotten."""

    #: It prevails at a head of a kept branch.
    HEADS = "heads"
    #: It prevails at a version that came to the device in the last `days`.
    DAYS = "days"
    #: It prevails at the newest version of one of the last `daily` days.
    DAILY = "daily"
    #: It prevails at the newest version of one of the last `weekly` weeks.
    WEEKLY = "weekly"
    #: It prevails at the newest version of one of the last `monthly` months.
    MONTHLY = "monthly"
    #: It is one of the newest `count` values of its id.
    COUNT = "count"
    #: A merge of heads, or with what other devices made meanwhile, may need it. Or it belongs to a merge with conflicts that came in the
    #: last 4 * `days`.
    MERGES = "merges"
    #: No place, and no other device, is known to have the version that stored it.
    UNSENT = "unsent"


class ForgetRow(NamedTuple):
    """What only one rule of a policy keeps: it would be forgotten without the rule."""

    #: The rule.
    rule: ForgetRule
    #: Values that no other rule keeps.
    values: int
    #: The bytes that these have.
    bytes: int


class ForgetReport(NamedTuple):
    """What was forgotten, or would be: the report of `Store.forget`."""

    #: Values that the call forgot.
    values: int
    #: Versions that stored them.
    versions: int
    #: The bytes that they had.
    bytes: int
    #: Other values that were differences from forgotten values, and are now stored whole.
    rewritten: int
    #: One for each rule.
    rows: tuple[ForgetRow, ...]
    #: Where bytes still are in the store, and what has to happen so that they go with a later call.
    waiting: tuple[str, ...]


class ErasureState(str, Enum):
    """Where an order to erase values stands on a device."""

    #: Nothing in the store has the bytes any more.
    FOLLOWED = "followed"
    #: The bytes are still in the store: the next opening or closing follows the order.
    WAITING = "waiting"
    #: The order of another device is followed once its delay is over: `Erasure.due`.
    ANNOUNCED = "announced"
    #: The order of another device names so much that it waits for `Store.decide_erasure`.
    HELD = "held"
    #: It was decided here to keep the bytes.
    KEPT = "kept"
    #: The policy of this device does not let the order count: it has no effect here.
    NOT_VALID = "not valid"
    #: It has no effect yet: more stewards must sign it (`Store.sign_erasure`).
    UNSIGNED = "unsigned"


class Erasure(NamedTuple):
    """An order to erase values."""

    #: The id of the value whose bytes are the order.
    id: str
    #: The version that stored it.
    version: str
    #: When it was made, in UTC: "2026-11-28T06:00:00Z".
    made: str
    #: The text that was given to `Store.erase`.
    why: str
    #: The number of values that it names.
    values: int
    #: Where it stands on this device.
    state: ErasureState
    #: Whether another device made it.
    of_other: bool
    #: When an announced order is followed, in seconds since 1970-01-01 UTC; else 0.
    due: float
    #: Where else the bytes may be, as far as this device knows. Empty if the order does not count here.
    places: tuple[ErasurePlace, ...]
    #: For the mode "stewards": how many stewards signed it. Else 0.
    signatures: int
    #: How many must.
    needed: int

    @property
    def followed(self) -> bool:
        """Whether nothing in the store has the bytes any more."""
        return self.state is ErasureState.FOLLOWED


class SizeReport(NamedTuple):
    """What takes space in a store: the report of `Store.size`.

    A value counts where it is stored, once, however many versions show it. A value that is stored as a difference counts with the bytes of
    the difference.
    """

    #: Versions whose changes were counted.
    versions: int
    #: Those of the counted versions whose tables of changes are damaged. Their unreadable parts count as "record".
    unread: int
    #: Values that are stored.
    values: int
    #: Bytes that these values have.
    value_bytes: int
    #: Bytes on the medium.
    bytes: int
    #: The part of `bytes` that belongs to values that prevail at a head.
    current_bytes: int
    #: The part of `bytes` that belongs to values that prevail at no head: only the past holds them.
    past_bytes: int
    #: By what the bytes are: "record" (headers and tables of changes), "value" (values within records), "blob" (values in files of their
    #: own), "cache" (what can be built again) and "other". They add up to the total.
    by_kind: tuple[SizeRow, ...]
    #: By the beginning of the ids, the largest first. They add up to the kinds "value" and "blob".
    by_prefix: tuple[SizeRow, ...]
    #: By the month, in UTC, in which the version was made that stored the values: "2026-11". In order of time.
    by_month: tuple[SizeRow, ...]
    #: By the version that stored the values, the largest first. As the months, they add up to "record", "value" and "blob".
    by_version: tuple[SizeRow, ...]


class Loss(str, Enum):
    """What a damage costs."""

    #: Nothing: the contents are known without it, or exist in another copy.
    NOTHING = "nothing"
    #: One or several versions; their descendants are pending until they are present again.
    VERSION = "version"
    #: The bytes of a value; the version is present, and its other values can be read.
    VALUE = "value"
    #: Perhaps something: a file ends in bytes that count as never written, or without its seal, and no process is writing it.
    UNFINISHED = "unfinished"


class Damage(NamedTuple):
    """A damage: stored bytes that differ from what was written."""

    #: The file, or the storage's name for the place.
    file: str
    #: Where in it, in bytes.
    offset: int
    #: What is wrong.
    message: str
    #: The version concerned, if known.
    version: Optional[str]
    #: What is lost.
    lost: Loss
    #: The value concerned, if there is one and it is known.
    value_id: Optional[str]
    #: In a report of `Store.verify`: the version that causes the loss. The value is stored as its difference from a value of that version,
    #: which is damaged and has an entry of its own. Repairing that version heals this value. None if the damage is the value's own.
    caused_by: Optional[str] = None


class VerifyReport(NamedTuple):
    """The report of `Store.verify`."""

    #: Versions read.
    versions: int
    #: Values read.
    values: int
    #: Versions that wait for missing ancestors.
    pending: int
    #: Damaged places.
    damages: tuple[Damage, ...]
    #: Unfinished files (`Loss.UNFINISHED`): a process was killed, or a file was cut short or damaged at its end.
    unfinished: tuple[Damage, ...]
    #: Versions that the id of a head vouches for: on a path from a head back to them, all versions have content ids that are right. So none
    #: of them was changed since the head was made.
    vouched: int
    #: All other versions of the history.
    unvouched: int
    #: Values whose bytes are gone by intent (`ForgottenError`). They are no damage, and not among `values`.
    forgotten: int = 0


class Salvaged(NamedTuple):
    """A version that `Store.salvage` made."""

    #: The newest version whose changes it contains.
    original: str
    #: The version that was made.
    version: str
    #: Whether its state is exactly that of `original`; if not, it has the newest values that could be read.
    is_complete: bool


class SalvageReport(NamedTuple):
    """The report of `Store.salvage`: what was written, and what is lost."""

    #: Versions that were copied unchanged.
    versions: int
    #: Versions that are pending in the new store, since ancestors are lost.
    waiting: int
    #: New versions, made of what could be read.
    made: tuple[Salvaged, ...]
    #: Damages, unfinished files, and missing versions that others name as predecessors.
    damages: tuple[Damage, ...]


class CompactionReport(NamedTuple):
    """The report of `Store.compact`."""

    #: Files whose records were copied into others. They stay for the grace period.
    folded: int
    #: New files with these records.
    made: int
    #: Files whose records were copied long enough ago, and that were deleted now.
    deleted: int
    #: Bytes of the new files.
    bytes_written: int
    #: Bytes of the deleted files.
    bytes_deleted: int
    #: If nothing was done because a syncing program copies the store: the path of the file that shows this; else None.
    sync_marker: Optional[str]

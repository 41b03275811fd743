"""Defines models: the prefix of their ids, how their values are written, and the rules by which they merge."""

from __future__ import annotations

import copy
import sys
from typing import Any, Callable, Generic, Mapping, NamedTuple, Optional, Sequence, TypeVar, Union

from ..merge import documents
from ..merge.documents import ConflictKind
from ._added import Added
from ._codecs import Anything, Codec, Spellings
from ._json import NotJSON, Number, canonical, parse, plain, spelled_like, write
from ._renames import Renames
from ._types import Compiler, is_pydantic, patterns, places, settle
from .errors import DecodeError, Mismatch
from .rules import MergeRule, escaped, segment, short_rule

_Model = TypeVar("_Model")
_AnyModel = TypeVar("_AnyModel", bound=type)

#: Upgrades a value from one form to the next: takes a JSON object, as a dictionary that it may change.
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
#: A rule as a model accepts it: `Counter()`, the name of a kind, or the form of "__llvs_schema".
AnyRule = Union[MergeRule, str, Mapping[str, Any]]


class Reading(NamedTuple):
    """A value as it was read, with which a save compares."""

    #: The stored bytes; None if there is no value.
    data: Optional[bytes]
    #: The model's own encoding of the value; if there is no value, the encoding of the default.
    written: Optional[bytes]


class Definition(Generic[_Model]):
    """A model: a class, the prefix of the ids of its values, and its rules. Made by `model`, found by `definition_of`."""

    #: The class.
    model: type[_Model]
    #: The prefix of the ids of its values.
    prefix: str
    #: The merge rules of the model, by pattern, in the form that "__llvs_schema" has under its prefix.
    rules: Mapping[str, Any]

    def __init__(
        self,
        model: type[_Model],
        prefix: str,
        namespace: Mapping[str, Any],
        rules: Mapping[str, AnyRule],
        upgrades: Sequence[Upgrade],
        form: str,
        encode: Optional[Callable[[Any], bytes]],
        decode: Optional[Callable[[bytes], Any]],
    ) -> None:
        """As `model`."""
        self.model, self.prefix, self._upgrades, self._form = model, prefix, tuple(upgrades), form
        self._encode, self._decode = encode, decode
        if encode is None:
            compiler = Compiler(namespace)
            self._codec: Codec = compiler.pydantic(model) if is_pydantic(model) else compiler.record(model)
            names = {name for name, _ in self._codec.parts()}
            if upgrades and form in names:
                raise TypeError(f"{model.__name__}: the member {form!r} counts the forms; give another name by form=")
            compiler.check_defaults()
            found = patterns(self._codec)
            self._places = places(self._codec, found)
        else:
            self._codec, found, self._places = Anything(), {}, frozenset()
        found = {"": {}, **found}
        for pattern, rule in rules.items():
            found[pattern] = rule.rule() if isinstance(rule, MergeRule) else {"as": rule} if isinstance(rule, str) else dict(rule)
        if self._upgrades:
            at = "/" + escaped(form)
            if found.setdefault("schema", {"at": at}).get("at") != at:  # else a merge takes the larger number by itself
                found.setdefault("/" + segment(form), {"pick": "max"})
        settle(self._codec, found, model.__name__)
        #: Patterns of members for which the model has no rule.
        self.plain = self._places - found.keys()
        self.rules = {pattern: short_rule(rule) for pattern, rule in sorted(found.items())}
        self._added = Added(found)
        try:
            documents.check_schema(write({"merge": 1, "ids": {prefix: self.rules}}))
        except (TypeError, ValueError) as problem:
            raise TypeError(f"{model.__name__}: its rules are not valid: {problem}") from None

    @property
    def form(self) -> int:
        """The number of the form that this program writes: 1, and 1 more for each upgrade."""
        return len(self._upgrades) + 1

    def read(self, data: bytes, value_id: str, stored_version: Optional[str], renames: Optional[Renames] = None) -> _Model:
        """Returns an object of the model. Raises DecodeError.

        renames: those of the store, with which a value of a later form is read; None if there are none.
        """
        try:
            if self._decode is not None:
                try:
                    made: _Model = self._decode(data)
                except Exception as problem:
                    raise Mismatch(f"cannot be decoded: {problem!r}") from problem
                return made
            tree = parse(data)
            form = self._form_of(tree)
            if form < self.form:
                tree = parse(self._lift(data, tree, form, value_id, renames))
            if renames:
                tree = renames.undone(tree, value_id, self.form)
            object: _Model = self._codec.decode(tree)
            return object
        except (Mismatch, NotJSON, RecursionError) as problem:
            raise self._refusal(problem, data, value_id, stored_version) from problem

    def reading(
        self, data: bytes, value_id: str, stored_version: Optional[str], renames: Optional[Renames] = None
    ) -> tuple[_Model, Reading]:
        """Returns an object of the model, with the data that a save compares. As `read`."""
        object = self.read(data, value_id, stored_version, renames)
        return object, Reading(data, self.write(object, value_id))

    def beginning(self, default: _Model, value_id: str) -> tuple[_Model, Reading]:
        """Returns a copy of a default, to change if there is no value, with the data that a save compares. Raises TypeError as `write`."""
        return copy.deepcopy(default), Reading(None, self.write(default, value_id))

    def write(self, object: _Model, value_id: str) -> bytes:
        """Returns the JSON text of an object. Raises TypeError if a member does not match the model."""
        if not isinstance(object, self.model):
            expected = f"an object of the class {self.model.__name__} is expected"
            raise TypeError(f"cannot save {value_id!r}: {expected}, not {type(object).__name__}")
        if self._encode is not None:
            return bytes(self._encode(object))
        try:
            tree = self._codec.encode(object)
            # (A value of a later form keeps its number, as it keeps everything that was not changed.)
            return write({**tree, self._form: self.form} if self._upgrades else tree)
        except RecursionError:
            raise TypeError(f"cannot save {value_id!r}: it is nested too deeply, or holds itself") from None
        except Mismatch as problem:
            at = f"the member {problem.pointer!r}" if problem.path else "the object"
            raise TypeError(f"cannot save {value_id!r} as {self.model.__name__}: {at} {problem.why}. Nothing was saved") from problem

    def splice(
        self, reading: Reading, object: _Model, current: Optional[bytes], value_id: str, rules: bytes, renames: Optional[Renames] = None
    ) -> Optional[bytes]:
        """Returns the bytes to save: the members of the object that differ from those read, and otherwise the stored members.

        None if there is nothing to save. current: the bytes that are stored now, which may have changed since the reading.
        Raises TypeError as `write`, DecodeError if the stored value cannot be merged.
        """
        written, before = self.write(object, value_id), reading.written
        if before is not None and before != written and self._decode is None:
            written = write(self._codec.settled(parse(written), parse(before)))
        if before is not None and _same(written, before):
            # (A default is saved even if unchanged, unless a value exists by now.)
            return written if reading.data is None and current is None else None
        if current is None:  # it was removed: an edit beats a removal, and keeps unknown members
            current = reading.data
        if current is None:
            return written
        older = current
        if self._decode is None:
            try:
                tree = parse(current)
                form = self._form_of(tree)
                older = self._lift(current, tree, form, value_id, renames) if form < self.form else current
                spellings = Spellings(self._codec, tree if older is current else parse(older))
            except (Mismatch, NotJSON) as problem:
                raise self._refusal(problem, current, value_id, None) from problem
            if spellings:
                before = before and write(spellings.apply(parse(before)))
                written = write(spellings.apply(parse(written)))
        merged = documents.merge_values(before, written, older, rules, id=value_id, saving=True)
        if self._decode is None:
            if any(record.kind is ConflictKind.NOT_JSON for record in merged.records):
                raise self._refusal(Mismatch("cannot be merged: it goes beyond the limits of docs/merging.md"), current, value_id, None)
            if merged.data is not None:
                return _respelled(merged.data, current)
        return merged.data

    def _form_of(self, tree: Any) -> int:
        if not self._upgrades or not isinstance(tree, dict) or self._form not in tree:
            return 1
        number = tree[self._form].whole() if isinstance(tree[self._form], Number) else None
        if number is None or number < 1:
            raise Mismatch("is no number of a form; forms count from 1", self._form)
        return int(number)

    def _lift(self, data: bytes, tree: Any, form: int, value_id: str, renames: Optional[Renames]) -> bytes:
        """Returns the value in the newest form; parts that the upgrades do not change keep every byte."""
        if not isinstance(tree, dict):
            return data
        before = plain(tree)
        made = copy.deepcopy(before)
        for number in range(form, self.form):
            upgrade = self._upgrades[number - 1]
            try:
                made = upgrade(made)
                made[self._form] = number + 1
                text = write(made)
            except Exception as problem:
                name = getattr(upgrade, "__name__", repr(upgrade))
                raise Mismatch(f"cannot be upgraded from form {number} to {number + 1} by {name}: {problem!r}") from problem
        if self._added.rules:
            own = self.rules.get("schema", {})
            forms = renames.standing(value_id, own) if renames else own
            twice = self._added.problem(self._renamed(data, tree, text, forms), parse(text))
            if twice is not None and forms != own:
                why = f"{twice.why}. The rules of the store have other renames than the model, which stand: {write(forms).decode()}"
                raise Mismatch(why, *twice.path)
            if twice is not None:
                raise twice
        merged = documents.merge_values(write(before), text, data, "auto", saving=True).data
        return data if merged is None else _respelled(merged, data)

    def _renamed(self, data: bytes, tree: Any, newest: bytes, forms: dict[str, Any]) -> Any:
        """Returns the old value with the renames of the rules applied, as a merge with the upgraded value does."""
        if "renames" not in forms:
            return tree
        moved = documents.merge_values(newest, write({**parse(newest), "": None}), data, {**self.rules, "schema": forms})
        if moved.data is None or any(record.kind is ConflictKind.NOT_JSON for record in moved.records):
            return tree
        return {name: value for name, value in parse(moved.data).items() if name}

    def _refusal(self, problem: Exception, data: bytes, value_id: str, stored_version: Optional[str]) -> DecodeError:
        pointer = problem.pointer if isinstance(problem, Mismatch) else ""
        if isinstance(problem, Mismatch):
            what = f"the member {pointer!r} {problem.why}" if pointer else f"it {problem.why}"
        else:
            what = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        return DecodeError(
            f"cannot read the value {value_id!r} as {self.model.__name__}: {what}. The value is in the store as it was. Give the model a "
            f"member that takes this, or an upgrade; or put the value right: its JSON is coordinator[{value_id!r}], and "
            f"coordinator.save(update=...) replaces it",
            member=pointer,
            data=data,
            value_id=value_id,
            version_id=stored_version,
        )

    def __repr__(self) -> str:
        return f"<the model {self.model.__name__} of values under {self.prefix!r}>"


def _same(one: bytes, other: bytes) -> bool:
    return one == other or canonical_bytes(one) == canonical_bytes(other)


def canonical_bytes(data: bytes) -> Any:
    """Returns bytes that are equal for texts of equal values; other bytes unchanged."""
    try:
        return canonical(parse(data))
    except NotJSON:
        return data


def _respelled(made: bytes, like: bytes) -> bytes:
    """Returns the same value, with the earlier spelling of unchanged parts; the earlier bytes if all is equal."""
    try:
        new, old = parse(made), parse(like)
    except NotJSON:
        return made
    return like if canonical(new) == canonical(old) else write(spelled_like(new, old))


def model(
    prefix: str,
    *,
    rules: Mapping[str, AnyRule] = {},
    upgrades: Sequence[Upgrade] = (),
    form: str = "form",
    encode: Optional[Callable[[Any], bytes]] = None,
    decode: Optional[Callable[[bytes], Any]] = None,
) -> Callable[[_AnyModel], _AnyModel]:
    """Makes the objects of a dataclass, or of a pydantic model, values of a store, which are merged member by member.

        @model("contact/")
        @dataclass
        class Contact:
            name: str = ""
            tags: set[str] = field(default_factory=set)
            visits: Annotated[int, Counter()] = 0

        people = coordinator.collection(Contact)
        people["1"] = Contact("Ann")                    # the value "contact/1"

    prefix: the prefix of the ids of its values. rules: by pattern, for places other than members: `{"": Identity("isbn")}`.
    upgrades: functions that upgrade a value from form 1 to 2, from 2 to 3, and so on; each takes the JSON object as a dictionary, and
    returns it. The number of a value's form is its member `form` (by default "form"); a value without it has form 1.
    encode, decode: for any other class: functions from an object to bytes, and back. Then rules are given only by `rules`.

    The class itself is not changed. Raises TypeError for a class that cannot be a model: a member has no default, a type is not known, or
    a rule is not for its type.
    """
    if not isinstance(prefix, str):
        raise TypeError("model takes the prefix of its values: write @llvs.models.model('contact/') above the class")
    if not prefix or prefix.startswith("__llvs"):
        raise ValueError(
            f"{prefix!r} cannot be the prefix of a model: the ids of its values begin with it, and those of others do not; use 'contact/'"
        )
    if (encode is None) != (decode is None):
        raise TypeError("encode and decode are given both, or neither")
    if upgrades and encode is not None:
        raise TypeError("upgrades are for dataclasses and models of pydantic; decode can do that itself")
    namespace = dict(sys._getframe(1).f_locals)

    def make(cls: _AnyModel) -> _AnyModel:
        if not isinstance(cls, type):
            raise TypeError(f"@llvs.models.model is for classes, not {type(cls).__name__}")
        if encode is None and not is_pydantic(cls) and "__dataclass_fields__" not in cls.__dict__:
            raise TypeError(f"{cls.__name__} is no dataclass: write @dataclass below @llvs.models.model(...), or give encode and decode")
        made: Definition[Any] = Definition(cls, prefix, namespace, rules, upgrades, form, encode, decode)
        setattr(cls, "__llvs_model__", made)
        return cls

    return make


def definition_of(cls: type[_Model]) -> Definition[_Model]:
    """Returns the definition that `model` made for a class. Raises TypeError for a class without `model`."""
    made = vars(cls).get("__llvs_model__") if isinstance(cls, type) else None
    if not isinstance(made, Definition):
        raise TypeError(f"{getattr(cls, '__name__', cls)!s} is no model: write @llvs.models.model('prefix/') above the class")
    return made

"""The types of the package: hints can be resolved, and names are documented where a reader looks."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
import sys
import typing
from typing import Any, Iterator

import llvs
import llvs.testing
import pytest


def modules() -> list[Any]:
    """The package and its public modules."""
    found = [llvs]
    for module in pkgutil.walk_packages(llvs.__path__, "llvs."):
        # The programs are no part of the interface. A wheel carries libraries beside the modules.
        _, first, *inner = module.name.split(".")
        if not first.startswith(("inspector", "tools", "lib")) and not any(name.startswith("_") for name in (first, *inner)):
            found.append(importlib.import_module(module.name))
    return found


def public() -> Iterator[tuple[str, Any]]:
    """Every public class, function and method of the package, with a name."""
    seen = set()
    for module in modules():
        for name in getattr(module, "__all__", None) or dir(module):
            thing = getattr(module, name)
            home = getattr(thing, "__module__", "")
            if name.startswith("_") or id(thing) in seen or not (home == module.__name__ or module is llvs and home.startswith("llvs")):
                continue
            seen.add(id(thing))
            if inspect.isfunction(thing):
                yield f"{thing.__module__}.{name}", thing
            elif inspect.isclass(thing):
                yield f"{thing.__module__}.{name}", thing
                for base in reversed(thing.__mro__):
                    for attribute, value in vars(base).items():
                        if (
                            not base.__module__.startswith("llvs")
                            or attribute.startswith("_")
                            and attribute not in ("__init__", "__getitem__", "__call__")
                        ):
                            continue
                        if isinstance(value, (classmethod, staticmethod)):
                            value = value.__func__
                        if isinstance(value, property):
                            value = value.fget
                        # Tests may have put functions of their own in place of some.
                        if inspect.isfunction(value) and value.__module__.startswith("llvs"):
                            yield f"{thing.__module__}.{name}.{attribute}", value


def test_pickles_name_no_private_module() -> None:
    """A pickle names the module of a class, and private modules change."""
    areas = {module.__name__: module for module in modules() if getattr(module, "__all__", None)}
    assert {"llvs", "llvs.exchange", "llvs.store"} <= areas.keys()
    private = [
        f"{area}.{name}: {thing.__module__}"
        for area, module in areas.items()
        for name in module.__all__
        if inspect.isclass(thing := getattr(module, name)) and "._" in thing.__module__
    ]
    assert private == []
    pack = llvs.exchange.Pack(b"packed", llvs.exchange.ExchangeResult((), ("a",), ()))
    again = pickle.loads(pickle.dumps(pack))
    assert (again, type(again), again.result) == (pack, llvs.exchange.Pack, pack.result)


def test_hints_of_everything_public_resolve() -> None:
    names, failed = set(), []
    for name, thing in public():
        names.add(name)
        try:
            hints = typing.get_type_hints(thing)
        except Exception as problem:
            failed.append(f"{name}: {problem!r}")
            continue
        # Hints that are strings inside aliases would be forward references.
        if "ForwardRef" in repr(hints):
            failed.append(f"{name}: {hints!r}")
    assert not failed, "\n".join(failed)
    assert {
        "llvs.store.store.Store.make_version", "llvs.coordinator.coordinator.Coordinator.save", "llvs.merge.arbiters.Arbiter.resolve",
        "llvs.log.log_to",
    } <= names  # fmt: skip
    assert len(names) > 300


def test_hints_say_what_is_taken() -> None:
    hints = typing.get_type_hints(llvs.Store.make_version)
    assert hints["root"] is bool and hints["return"] is llvs.Version
    assert typing.get_type_hints(llvs.merge.Arbiter.resolve)["store"] is llvs.Store
    content = typing.get_args(typing.get_type_hints(llvs.Change.insert)["data"])
    assert bytes in content and memoryview in content
    if sys.version_info >= (3, 12):
        from collections.abc import Buffer

        assert Buffer in content


def test_hints_resolve_in_a_module_that_knows_nothing_else() -> None:

    def using(
        arbiter: llvs.merge.AnyArbiter, progress: llvs.control.ProgressCallback, answer: llvs.merge.Resolution,
        place: llvs.exchange.Place, version: llvs.store.AnyVersion,
    ) -> None: ...

    assert len(typing.get_type_hints(using)) == 6


def test_everything_public_is_documented() -> None:
    bare = [name for name, thing in public() if not (inspect.getdoc(thing) or "").strip() and not name.rpartition(".")[2].startswith("__")]
    assert not bare, bare
    # Aliases and constants have no docstring of their own: the docstring of their package lists them.
    for module in (llvs, llvs.coordinator, llvs.exchange, llvs.indexes, llvs.live, llvs.merge, llvs.models, llvs.store):
        for name in module.__all__:
            thing = getattr(module, name)
            if not inspect.isclass(thing) and not inspect.isfunction(thing):
                assert f"    {name} " in (module.__doc__ or ""), f"{module.__name__}.{name}"


@pytest.mark.parametrize("thing", [llvs.control.ProgressCallback, llvs.merge.Arbiter, llvs.merge.Pass, llvs.merge.Fork])
def test_what_callbacks_are_called_with_is_documented_by_its_own_text(thing: type) -> None:
    assert len(thing.__doc__ or "") > 60


@pytest.mark.parametrize(
    "function", [llvs.Store.write_snapshot, llvs.Store.restore_snapshot, llvs.Exchange.put_snapshot, llvs.Exchange.restore_snapshot]
)
def test_a_snapshot_is_given_whenever_there_is_no_error(function: Any) -> None:
    assert function.__annotations__["return"] == "Snapshot"


def test_the_words_of_options_are_those_that_are_taken() -> None:
    """Each `Literal` has the words that the code has, no more and no fewer."""
    from llvs import syncer, words
    from llvs.coordinator import coordinator
    from llvs.exchange import members, remote
    from llvs.merge import options as _merge_options, documents
    from llvs.store import _options

    for given, taken in (
        (words.StorageKind, _options._STORAGES), (words.Durability, _options._DURABILITIES), (words.Compaction, _options._COMPACTIONS),
        (words.SnapshotPolicy, coordinator._SNAPSHOTS), (words.Relation, _merge_options._RELATIONS),
        (words.HeadSelection, _merge_options._SELECTIONS), (words.HeadSelection, syncer._HEADS), (words.Choice, documents._CHOICES),
        (words.Layout, [word for word in remote._LAYOUTS if word]),
        (words.LogLevelName, [level.name.lower() for level in llvs.log.LogLevel]),
        (words.MemberKind, [word for word in members._KINDS.values() if word != "passphrase"]),
    ):  # fmt: skip
        assert set(typing.get_args(given)) == set(taken), given
    assert typing.get_type_hints(llvs.Store.__init__)["durability"] == llvs.words.Durability


def test_numbers_of_the_library_are_shown_by_their_names() -> None:
    shown = str(llvs.syncer.SyncState.IDLE), f"{llvs.syncer.SyncReason.SIGN_IN}", f"{llvs.ErrorCode.BUSY:>6}"
    assert shown == ("idle", "sign_in", "  busy")
    assert f"{llvs.syncer.SyncState.IDLE:d}" == "1" == str(int(llvs.syncer.SyncState.IDLE)) and llvs.syncer.SyncState.IDLE == 1
    both = llvs.syncer.SyncConditions.OFFLINE | llvs.syncer.SyncConditions.PAUSE
    none = str(llvs.syncer.SyncConditions.NONE)
    assert (str(both), f"{both}", none, f"{both:d}") == ("offline|pause", "offline|pause", "none", str(int(both)))
    numbers = [thing for _, thing in public() if inspect.isclass(thing) and issubclass(thing, int) and hasattr(thing, "__members__")]
    assert len(numbers) > 6
    for kind in numbers:
        for member in kind:  # type: ignore[attr-defined]
            assert not str(member).lstrip("-").isdigit(), f"{kind.__name__}.{member.name} is shown as a number"

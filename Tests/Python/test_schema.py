"""The rules of a store: reading them, and registering those of an app."""

from __future__ import annotations

import json
from typing import Any

import llvs
import pytest


def rules(**ids: Any) -> bytes:
    return json.dumps({"merge": 1, "ids": {name + "/": rule for name, rule in ids.items()}}).encode()


def test_what_is_new_is_added_and_what_is_there_stands() -> None:
    with llvs.Store(storage="memory") as store:
        at = store.make_version(insert={"__llvs_schema": rules(a={"/n": "counter"}, b="set")})
        found = store.schema(at)
        assert (found.data, found.stored_version, found.changed) == (rules(a={"/n": "counter"}, b="set"), at.id, False)
        assert found.problem is None and found.contradictions == () and found.version is None

        more = store.schema(at, {"merge": 1, "ids": {"a/": {"/t": "set"}, "c/": "list"}, "models": {"A": {"version": 2}}})
        assert more.changed and more.rules == {
            "merge": 1, "ids": {"a/": {"/n": "counter", "/t": "set"}, "b/": "set", "c/": "list"}, "models": {"A": {"version": 2}},
        }
        assert more.contradictions == () and store.at(at)["__llvs_schema"] == rules(a={"/n": "counter"}, b="set")

        other = store.schema(at, rules(a={"/n": "register"}, b={"": "set", "/x": "counter"}))
        assert other.rules == {"merge": 1, "ids": {"a/": {"/n": "counter"}, "b/": {"": "set", "/x": "counter"}}}
        (contradiction,) = other.contradictions
        assert contradiction.path == ("ids", "a/", "/n") and contradiction.id == "__llvs_schema"
        assert (contradiction.newer, contradiction.older, contradiction.result) == (b'"counter"', b'"register"', b'"counter"')


@pytest.mark.parametrize(
    "held, given",
    [
        ({"/n": "counter"}, {"/n": {"as": "counter", "from": 0}}),
        ({"/n": {"absent": {"a": 1, "b": 1.0}}}, {"/n": {"as": "auto", "absent": {"b": 1, "a": 1}}}),
        ("set", {"": "set"}),
        ({"": {"pick": "newer"}}, "auto"),
    ],
)
def test_one_rule_written_in_two_ways_is_no_contradiction(held: Any, given: Any) -> None:
    with llvs.Store(storage="memory") as store:
        at = store.make_version(insert={"__llvs_schema": rules(a=held)})
        found = store.schema(at, rules(a=given))
        assert found.contradictions == () and not found.changed and found.data == rules(a=held)


FORMS = {"schema": {"at": "/form"}}


@pytest.mark.parametrize("held, given, expected, newer, older", [
    ({"/form": "register"}, {**FORMS, "/n": "counter"}, {"/form": "register", "/n": "counter"}, b'"register"', b'{"pick":"max"}'),
    (FORMS, {"/form": "register", "/n": "counter"}, {**FORMS, "/form": {"pick": "max"}, "/n": "counter"}, b'{"pick":"max"}',
     b'"register"'),
    ({"/v": "register", "schema": {"at": "/form"}}, {"schema": {"at": "/v"}, "/n": "counter"},
     {"/v": "register", **FORMS, "/n": "counter"}, b'"register"', b'{"pick":"max"}'),
])  # fmt: skip
def test_another_rule_for_the_form_is_a_contradiction_and_disables_no_rule(
    held: Any, given: Any, expected: Any, newer: bytes, older: bytes
) -> None:
    with llvs.Store(storage="memory") as store:
        at = store.make_version(insert={"__llvs_schema": rules(a=held)})
        found = store.schema(at, rules(a=given))
        assert found.data is not None and found.rules is not None and found.rules["ids"] == {"a/": expected}
        (contradiction,) = found.contradictions
        assert contradiction.path in (("ids", "a/", "/form"), ("ids", "a/", "/v"))
        assert (contradiction.newer, contradiction.older, contradiction.result) == (newer, older, newer)
        again = store.make_version(at, update={"__llvs_schema": found.data})
        assert not store.schema(again, rules(a=given)).changed
        # The contradiction alone changes nothing.
        alone = {pattern: rule for pattern, rule in given.items() if pattern != "/n"}
        assert not store.schema(at, rules(a=alone)).changed and store.schema(at, rules(a=alone)).data == rules(a=held)


def test_the_larger_number_of_a_form_is_no_contradiction() -> None:
    with llvs.Store(storage="memory") as store:
        at = store.make_version(insert={"__llvs_schema": rules(a={"/form": {"pick": "max"}})})
        found = store.schema(at, rules(a=FORMS))
        assert found.contradictions == () and found.rules == {"merge": 1, "ids": {"a/": {"/form": {"pick": "max"}, **FORMS}}}


def test_rules_that_are_wrong() -> None:
    with llvs.Store(storage="memory") as store:
        empty = store.make_version(insert={"a": b"1"})
        assert store.schema(empty) == llvs.merge.Schema(None, None, False, None, (), None)
        good = store.make_version(empty, update={"__llvs_schema": rules(a="set")})
        bad = store.make_version(good, update={"__llvs_schema": b'{"merge":1,"ids":{"a/":"sat"}}'})
        found = store.schema(bad)
        assert found.data == rules(a="set") and found.stored_version == good.id and found.problem is not None
        assert found.problem[1] == "/ids/a~1"
        # A registered rule replaces an invalid one.
        assert store.schema(bad, rules(a="set")).changed
        for given in (b"[1]", b'{"merge":1,"ids":{"a/":"sat"}}'):
            with pytest.raises(llvs.errors.InvalidArgumentError):
                store.schema(good, given)
        newer = store.make_version(good, update={"__llvs_schema": b'{"merge":2}'})
        assert store.schema(newer).problem is not None
        with pytest.raises(llvs.errors.UnsupportedError):
            store.schema(newer, rules(a="set"))
        with pytest.raises(llvs.errors.UnknownVersionError):
            store.schema("nowhere")


def test_a_coordinator_registers_once() -> None:
    with llvs.Coordinator(storage="memory") as notes:
        notes.save(insert={"x": b"1"})
        before = notes.current_version.id
        made = notes.register_schema(rules(a="set"))
        assert made.changed and made.version is not None and made.version.id == notes.current_version.id != before
        assert notes.schema().data == rules(a="set")
        again = notes.register_schema(rules(a="set"))
        assert not again.changed and again.version is None and notes.current_version.id == made.version.id
        # A contradiction is reported each time, and nothing is stored for it.
        other = notes.register_schema(rules(a="list"))
        assert len(other.contradictions) == 1 and other.version is None and notes["__llvs_schema"] == rules(a="set")
        with pytest.raises(llvs.errors.InvalidArgumentError):
            notes.register_schema(b"{}")


def test_devices_that_start_apart_begin_with_one_version() -> None:
    def device() -> llvs.Coordinator:
        return llvs.Coordinator(storage="memory", exchange="memory:test_schema-apart", schema={"merge": 1, "ids": {"c": "counter"}})

    with device() as a, device() as b:
        assert a.store.most_recent_head is None
        a.register_schema(rules(d="set"))
        b.register_schema(rules(d="set"))
        for notes, count in ((a, b"3"), (b, b"5")):
            saved = notes.save(insert={"c": count})
            assert saved is not None and json.loads(notes["__llvs_schema"])["ids"] == {"c": "counter", "d/": "set"}
        firsts = {next(v.id for v in notes.store.history() if notes.store.versions_of("__llvs_schema")[0].id == v.id) for notes in (a, b)}
        assert len(firsts) == 1
        for notes in (a, b, a):
            notes.sync()
        assert a["c"] == b["c"] == b"8" and a.current_version == b.current_version


def test_the_first_content_is_taken_up_before_rules_are_written() -> None:
    with llvs.Coordinator(storage="memory", exchange="memory:test_schema-first") as a:
        a.save(insert={"c": b"1"})
        a.sync()
        with llvs.Coordinator(storage="memory", exchange="memory:test_schema-first", schema={"merge": 1, "ids": {"c": "counter"}}) as b:
            b.sync()
            assert b["c"] == b"1" and b["__llvs_schema"] and len(b.store.heads()) == 1
            # The rules remain: opening the store again with them makes no version.
            head = b.current_version.id
            assert b.register_schema({"merge": 1, "ids": {"c": "counter"}}).version is None and b.current_version.id == head


def test_an_expected_version_still_holds_when_rules_wait() -> None:
    with llvs.Coordinator(storage="memory", schema={"merge": 1, "ids": {"c": "counter"}}) as notes:
        root = notes.current_version.id
        with pytest.raises(llvs.MovedError):
            notes.save(insert={"c": b"1"}, expected="elsewhere")
        assert notes.store.most_recent_head is None
        assert notes.save(insert={"c": b"1"}, expected=root) is not None and notes["__llvs_schema"]


@pytest.mark.parametrize("rule", [{"as": "list"}, {"as": "set"}, {}], ids=["list", "set", "identity"])
def test_a_key_has_at_most_16_pointers(rule: dict[str, Any]) -> None:
    """Each pointer is evaluated in each element: with more, a few kilobytes of rules could make every merge of a list take minutes."""
    member = "key" if "as" in rule else "identity"

    def schema(count: int) -> bytes:
        return json.dumps({"merge": 1, "ids": {"a": {"/l": {**rule, member: ["/id"] * count}}}}).encode()

    llvs.merge.check_schema(schema(16))
    with pytest.raises(llvs.errors.InvalidArgumentError) as refused:
        llvs.merge.check_schema(schema(17))
    assert refused.value.path == f"/ids/a/~1l/{member}/16" and "16" in str(refused.value)

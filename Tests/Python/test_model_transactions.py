"""Collections within transactions: objects of several models read and written together, and saved as one version or not at all."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Iterator

import llvs
import pytest


@llvs.models.model("account/")
@dataclass
class Account:
    owner: str = ""
    sum: int = 0
    tags: set[str] = field(default_factory=set)


@llvs.models.model("log/")
@dataclass
class Entry:
    text: str = ""


@pytest.fixture
def app() -> Iterator[llvs.Coordinator]:
    with llvs.Coordinator(storage="memory") as made:
        made.collection(Account).update({"a": Account("Ann", 100), "b": Account("Ben", 0)})
        yield made


def test_objects_of_two_models_are_saved_as_one_version(app: llvs.Coordinator) -> None:
    accounts, before = app.collection(Account), app.current_version.id
    with app.transaction() as values:
        inside, log = values.collection(Account), values.collection(Entry)
        before = app.current_version.id  # the rules of the other model are saved at once
        with inside.edit("a") as giver, inside.edit("b") as taker:
            giver.sum -= 30
            taker.sum += 30
        log["1"] = Entry("30 from a to b")
        assert inside["b"] == Account("Ben", 30) and accounts["b"] == Account("Ben", 0)
        assert dict(log) == {"1": Entry("30 from a to b")} and list(inside) == ["a", "b"] and len(inside) == 2
    assert values.saved is not None and values.saved.predecessors == (before,)
    assert dict(accounts) == {"a": Account("Ann", 70), "b": Account("Ben", 30)}
    assert app.collection(Entry)["1"].text == "30 from a to b"


def test_a_block_that_raises_saves_nothing(app: llvs.Coordinator) -> None:
    accounts = app.collection(Account)
    with pytest.raises(ZeroDivisionError), app.transaction() as values:
        with values.collection(Account).edit("a") as one:
            one.sum = 0
        1 / 0
    with app.transaction() as values:
        with pytest.raises(ZeroDivisionError), values.collection(Account).edit("a") as one:
            one.sum = 0
            1 / 0
    assert values.saved is None and accounts["a"].sum == 100


def test_as_a_mapping(app: llvs.Coordinator) -> None:
    with app.transaction() as values:
        inside = values.collection(Account)
        assert "a" in inside and "c" not in inside and inside.get("c") is None
        with pytest.raises(KeyError):
            inside["c"]
        with pytest.raises(KeyError), inside.edit("c"):
            pass
        with pytest.raises(KeyError):
            del inside["c"]
        with pytest.raises(TypeError):
            inside[1] = Account()  # type: ignore[index]
        with pytest.raises(TypeError):
            inside["c"] = Entry()  # type: ignore[assignment]
        with inside.edit("c", default=Account("Cleo")) as one:
            one.sum = 5
        del inside["a"]
        assert dict(inside) == {"b": Account("Ben"), "c": Account("Cleo", 5)}
        assert inside and "account/" in repr(inside) and inside.model is Account and inside.prefix == "account/"
    assert dict(app.collection(Account)) == {"b": Account("Ben"), "c": Account("Cleo", 5)}


def test_what_the_model_does_not_know_is_kept(app: llvs.Coordinator) -> None:
    app.save(update={"account/a": b'{"owner":"Ann","sum":1,"colour":"red"}'})
    with app.transaction() as values:
        values.collection(Account)["a"] = Account("Ann", 2)
    assert b'"colour":"red"' in app["account/a"]


def test_what_others_save_where_it_looked(app: llvs.Coordinator) -> None:
    accounts = app.collection(Account)
    with pytest.raises(llvs.MovedError) as raised, app.transaction() as values:
        with values.collection(Account).edit("a") as one:
            one.sum = 0
        with accounts.edit("a") as one:
            one.sum = 1
    assert raised.value.value_id == "account/a" and accounts["a"].sum == 1
    with pytest.raises(llvs.MovedError), app.transaction() as values:
        values["count"] = str(len(values.collection(Account))).encode()
        accounts["c"] = Account()
    # Values under other prefixes were not read.
    with app.transaction() as values:
        values["count"] = str(len(values.collection(Account))).encode()
        app.collection(Entry)["1"] = Entry()
    assert app["count"] == b"3"


def test_sums_stay_with_many_threads(app: llvs.Coordinator) -> None:
    accounts = app.collection(Account)
    accounts.update({f"{number}": Account(sum=10) for number in range(4)})

    def work(number: int) -> None:
        def give(values: llvs.Transaction) -> None:
            inside = values.collection(Account)
            with inside.edit(f"{number}") as giver, inside.edit(f"{(number + 1) % 4}") as taker:
                giver.sum -= 1
                taker.sum += 1

        for _ in range(10):
            app.transact(give)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [accounts[f"{number}"].sum for number in range(4)] == [10] * 4

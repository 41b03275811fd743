"""Two people with two devices and one contact book: what they see if they change it independently, and then sync."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Callable

import browser
import llvs
from conftest import LOCO, Device, Running

sys.path.insert(0, str(LOCO))
import faces  # noqa: E402

Open = Callable[[], tuple[Device, Device]]


def equal(laptop: Device, phone: Device) -> dict[str, Any]:
    """Waits until both devices show the same; returns the laptop's book."""
    def at(device: Device) -> Any:
        return device.look_at().book()["at"]

    laptop.wait(lambda: at(laptop) == at(phone), "the same version on both devices")
    ours, theirs = laptop.look_at().book(), phone.look_at().book()
    for name in ("contacts", "groups", "tags", "conflicts", "count"):
        assert ours[name] == theirs[name]
    return ours


def begin(devices: Open) -> tuple[Device, Device]:
    """Opens both devices with the examples, which reach the phone by syncing."""
    laptop, phone = devices()
    laptop.look_at().click("Take some examples")
    phone.look_at().wait(lambda: "Ada Ruiz" in phone.text("#list"))
    equal(laptop, phone)
    return laptop, phone


def test_apart_and_together_again(devices: Open) -> None:
    laptop, phone = begin(devices)
    for device in (laptop, phone):
        device.switch(False)
        assert "Offline, synced" in device.text("#light")

    laptop.edit("ada-ruiz", town="Basel")                                    # other members of one contact
    phone.edit("ada-ruiz", company="Ruiz & Lind", notes="Sings alto. Her studio is open on Sundays.")
    laptop.edit("dan-berg", town="Bonn")                                     # the same member
    phone.edit("dan-berg", town="Köln")
    laptop.edit("ben-okoro", tags="hiking, work, boss")                      # tags on both sides
    phone.edit("ben-okoro", tags="hiking")
    laptop.open("contact/hugo-moreau")                                       # one deletes what the other edits
    laptop.click("Delete")
    laptop.shown("start")
    phone.edit("hugo-moreau", notes="Brings the wine.")
    laptop.look_at()
    assert laptop.book()["count"] == 11 and laptop.card("ada-ruiz")["card"]["company"] == "Ruiz Architects"
    assert phone.look_at().book()["count"] == 12 and phone.book()["conflicts"] == 0

    for device in (laptop, phone):
        device.switch(True)
    book = equal(laptop, phone)
    assert book["count"] == 12 and book["conflicts"] == 2
    assert [one["id"] for one in book["contacts"] if one["conflicts"]] == ["dan-berg", "hugo-moreau"]
    ada = laptop.look_at().card("ada-ruiz")["card"]
    assert (ada["town"], ada["company"], ada["notes"]) == ("Basel", "Ruiz & Lind", "Sings alto. Her studio is open on Sundays.")
    assert laptop.card("ben-okoro")["card"]["tags"] == ["boss", "hiking"]
    assert laptop.card("dan-berg")["card"]["town"] == "Köln", "the later one stands"
    assert laptop.card("hugo-moreau")["card"]["notes"] == "Brings the wine.", "the change stands"

    phone.open("contact/dan-berg")
    phone.wait(lambda: "Which town?" in phone.text("#view"))
    sides = [side.text.split("\n") for side in phone.all(".side")]
    assert [(side[0], side[-2], side[-1]) for side in sides] == [
        ("Phone", "Köln", "Keep this"), ("Laptop", "Bonn", "Take this instead")
    ]
    phone.look("conflict")
    phone.click("Take this instead")
    phone.wait(lambda: "Which town?" not in phone.text("#view") and "Bonn" in phone.text("#view .card"))
    laptop.open("conflicts")
    laptop.wait(lambda: len(laptop.all(".conflict")) == 1, "the conflict to be closed here as well")
    assert "Hugo Moreau" in laptop.text(".conflict") and "deleted" in laptop.text(".side.older")
    laptop.look("conflicts")
    assert "Keep Hugo Moreau, or delete?" in laptop.text(".conflict") and "Brings the wine." in laptop.text(".side .now")
    laptop.click("Delete instead")
    laptop.wait(lambda: "Nothing to decide." in laptop.text("#view"))
    laptop.wait(lambda: "Undo opens the question again." in laptop.text("#said"))
    book = equal(laptop, phone)
    assert (book["count"], book["conflicts"]) == (11, 0)

    laptop.open("synced")
    laptop.wait(lambda: "merged" in laptop.text("#view") or "Dan Berg" in laptop.text("#view"))
    laptop.look("synced")


def test_undo_takes_back_what_this_device_did(devices: Open) -> None:
    laptop, phone = begin(devices)
    laptop.edit("ada-ruiz", town="Basel")
    phone.wait(lambda: phone.look_at().card("ada-ruiz")["card"]["town"] == "Basel")
    phone.edit("ada-ruiz", company="Ruiz & Lind")
    equal(laptop, phone)
    laptop.look_at().wait(lambda: laptop.find("#undo").get_attribute("title") == "Undo: Change the town of Ada Ruiz")
    laptop.find("#undo").click()
    laptop.wait(lambda: "Taken back: Change the town of Ada Ruiz." in laptop.text("#said"))
    equal(laptop, phone)
    ada = phone.look_at().card("ada-ruiz")["card"]
    assert (ada["town"], ada["company"]) == ("Bern", "Ruiz & Lind"), "what the phone did stays"
    laptop.look_at().wait(lambda: laptop.find("#redo").is_enabled())
    laptop.find("body").send_keys(laptop.KEYS.CONTROL, laptop.KEYS.SHIFT, "z")
    laptop.wait(lambda: laptop.card("ada-ruiz")["card"]["town"] == "Basel")
    # The examples were three saves and one deed.
    for _ in range(2):
        laptop.wait(lambda: laptop.find("#undo").is_enabled())
        laptop.find("#undo").click()
        laptop.wait(lambda: laptop.text("#said").startswith("Taken back"))
        laptop.script("document.getElementById('said').textContent = ''")
    laptop.wait(lambda: not laptop.find("#undo").is_enabled() and laptop.book()["count"] == 1, "what the phone changed is left")
    assert laptop.book()["groups"] == []


def test_a_form_that_is_open_while_others_save(devices: Open) -> None:
    laptop, phone = begin(devices)
    laptop.open("contact/eva-lind/edit")
    field = laptop.find("#field-company")
    field.clear()
    field.send_keys("Lind & Sons")
    phone.edit("eva-lind", town="Oslo", tags="hiking")
    laptop.look_at().wait(lambda: laptop.card("eva-lind")["card"]["town"] == "Oslo")
    assert field.get_attribute("value") == "Lind & Sons" and laptop.find("#field-town").get_attribute("value") == "Bergen"
    laptop.wait(lambda: "Town\nOslo" in laptop.text(".meanwhile") and "Tags\nhiking" in laptop.text(".meanwhile"))
    laptop.look("form")
    laptop.click("Save", "button")
    laptop.shown("contact/eva-lind")
    eva = laptop.card("eva-lind")["card"]
    assert (eva["company"], eva["town"], eva["tags"]) == ("Lind & Sons", "Oslo", ["hiking"])
    assert laptop.book()["conflicts"] == 0


def test_a_form_that_is_open_while_others_change_the_same(devices: Open) -> None:
    laptop, phone = begin(devices)
    laptop.open("contact/eva-lind/edit")
    field = laptop.find("#field-town")
    field.clear()
    field.send_keys("Turku")
    phone.edit("eva-lind", town="Oslo")
    laptop.look_at().wait(lambda: "Town\nOslo" in laptop.text(".meanwhile"))
    laptop.click("Save", "button")
    laptop.shown("contact/eva-lind")
    assert laptop.card("eva-lind")["card"]["town"] == "Turku" and laptop.book()["conflicts"] == 1
    assert equal(laptop, phone)["conflicts"] == 1
    phone.open("contact/eva-lind")
    assert "Oslo" in phone.text(".conflict") and "Turku" in phone.text(".conflict")


def test_history_and_restore(devices: Open) -> None:
    laptop, phone = begin(devices)
    phone.edit("femi-ade", town="Lyon", company="Ade Films")
    laptop.look_at().wait(lambda: laptop.card("femi-ade")["card"]["town"] == "Lyon")
    laptop.open("contact/femi-ade")
    laptop.click("Delete")
    laptop.shown("start")
    phone.look_at().wait(lambda: phone.book()["count"] == 11)
    phone.open("contact/femi-ade/history")
    steps = [step.text.split("\n") for step in phone.all(".past li")]
    assert [(step[0], step[1].split(", ")[-1]) for step in steps] == [
        ("Delete Femi Ade", "Laptop"), ("Change the company and town of Femi Ade", "Phone"), ("Add some examples", "Laptop")
    ]
    assert "Deleted here." in phone.text(".past .card")
    phone.all(".past li button")[1].click()
    phone.wait(lambda: "Ade Films" in phone.text(".past .card") and [one.text for one in phone.all("dd.now")] == ["Ade Films", "Lyon"])
    phone.look("history")

    def restored() -> bool:
        """Chooses the step again if news of the other device redrew the page with the last step chosen."""
        button = next((one for one in phone.all("button") if "Restore this" in one.text and one.is_displayed()), None)
        (button or phone.all(".past li button")[1]).click()
        return button is not None

    phone.wait(restored, "Restore this")
    phone.shown("contact/femi-ade")
    laptop.look_at().wait(lambda: laptop.card("femi-ade")["card"]["company"] == "Ade Films")


def test_search_groups_tags_and_a_photo(devices: Open, tmp_path: Path) -> None:
    laptop, phone = devices()
    laptop.look_at().look("empty")
    laptop.click("Take some examples")
    laptop.wait(lambda: "12 contacts" in laptop.text("#count"))

    def names() -> list[str]:
        return [one.text for one in laptop.all("#list .name")]

    laptop.press("/")
    for wanted, found in (("choir ada", ["Ada Ruiz"]), ("+4179655", ["Femi Ade"]), ("LETTERS", ["Liam Byrne"]), ("nobody", [])):
        field = laptop.find("#wanted")
        field.clear()
        field.send_keys(wanted)
        laptop.wait(lambda: names() == found, wanted)
    field.clear()
    laptop.wait(lambda: len(names()) == 12)
    laptop.click("hiking", ".around a")
    laptop.wait(lambda: names() == ["Ben Okoro", "Eva Lind", "Femi Ade", "Karin Vogt"])
    laptop.click("Choir", ".around a")
    laptop.wait(lambda: names() == ["Ada Ruiz", "Chiara Neri", "Greta Holm", "Ines Duarte"])
    laptop.click("New", ".around button")
    laptop.find(".around input").send_keys("Birthdays\n")
    laptop.wait(lambda: "Birthdays" in laptop.text("#around"))
    laptop.open("contact/chiara-neri")
    laptop.click("Birthdays", "#view button")
    laptop.wait(lambda: laptop.all("#view button[aria-pressed='true']")[0].text == "Birthdays")
    laptop.look("contact")

    # A photo is scaled down, reaches the other device, and is a part of the contact's history.
    picture = tmp_path / "chiara.png"
    picture.write_bytes(faces.portrait((1, 2, 3), (4, 5, 6), (200, 100, 50), (9, 9, 9), True))
    laptop.open("contact/chiara-neri/edit")
    laptop.find("input[type=file]").send_keys(str(picture))
    laptop.wait(lambda: "The new photo" in laptop.text("#view"))
    laptop.click("Save", "button")
    laptop.shown("contact/chiara-neri")
    laptop.wait(lambda: laptop.script("return document.querySelector('.face.large img')?.naturalWidth") == 160)
    phone.open("contact/chiara-neri")
    phone.wait(lambda: phone.script("return document.querySelector('.face.large img')?.naturalWidth") == 160)
    laptop.look_at().find("#undo").click()
    phone.look_at().wait(lambda: not phone.all(".face.large img"))
    laptop.look_at().wait(lambda: laptop.find("#undo").get_attribute("title") == "Undo: Add Chiara Neri to Birthdays", "one undo")


def test_a_narrow_window(devices: Open) -> None:
    laptop, phone = begin(devices)
    phone.look_at()
    browser.resize(phone.driver, 420, 800)
    try:
        phone.look("narrow")
        phone.click("Ada Ruiz", "#list a")
        phone.shown("contact/ada-ruiz")
        # A number is not broken into two lines.
        assert phone.script("return document.querySelector('.phone').getBoundingClientRect().height") < 32
        phone.look("narrow-contact")
        assert phone.script("return document.documentElement.scrollWidth") <= 420
        phone.click("All contacts", "a.back")
        phone.shown("start")
        assert phone.script("return document.documentElement.scrollWidth") <= 420
    finally:
        browser.resize(phone.driver, 1280, 800)


def test_what_others_wrote_runs_nothing(devices: Open, running: Running) -> None:
    evil = '<img src=x onerror="window.ran=1">'
    with llvs.Coordinator(storage="memory", exchange=str(running.folder / "shared"), device=evil) as other:
        other.save(update={
            "contact/evil": json.dumps(
                {"name": "\u202e" + evil, "tags": ["<b>"], "notes": "<script>window.ran=1</script>", "photo": "evil"}).encode(),
            "photo/evil": b'<svg xmlns="http://www.w3.org/2000/svg" onload="window.ran=1"></svg>',
            "contact/broken": b"[", "contact/odd": b'{"name": 5}', 'contact/"><i>': b'{"name": "Odd id"}',
        }, description=evil)
        other.sync()
    laptop, _ = devices()
    laptop.look_at().wait(lambda: "2 contacts, 2 cannot be read" in laptop.text("#count"))
    laptop.open("contact/evil")
    assert "onerror" in laptop.text("#view h2") and "<script>" in laptop.text("#view")
    laptop.open("contact/evil/history")
    assert "onerror" in laptop.text(".past")
    laptop.open("contact/broken")
    assert "Another program saved something in its place" in laptop.text("#view") and "History" in laptop.text("#view")
    laptop.click("Odd id", "#list a")
    laptop.wait(lambda: laptop.text("#view h2") == "Odd id")
    assert laptop.all("main script, main iframe, main svg") == []
    # The browser reports that it could not show the broken photo.
    laptop.driver.get_log("browser")


def test_nothing_that_is_typed_is_lost(devices: Open, running: Running) -> None:
    laptop, _ = devices()
    running.ask("Laptop", "/api/save", {"card": {"name": "Ann", "town": "Ulm"}})
    laptop.look_at().wait(lambda: "1 contact" in laptop.text("#count"))
    focused = "return document.activeElement.id || document.activeElement.getAttribute('aria-label')"

    # A form without a name reports that at the field; a draft outlives another click and a reload; a double click saves once.
    laptop.open("new")
    laptop.wait(lambda: laptop.script(focused) == "field-name")
    laptop.find("#field-town").send_keys("Bonn")
    laptop.click("Save", "button")
    assert laptop.text("#name-problem") == "A contact needs a name." and laptop.script(focused) == "field-name"
    laptop.find("#field-name").send_keys("Ben")
    laptop.click("Ann", "#list a")
    laptop.wait(lambda: "What you wrote is kept" in laptop.text("#said"))
    laptop.driver.refresh()
    laptop.wait(lambda: laptop.text("#view h2") == "Ann")
    laptop.open("new")
    assert [laptop.find("#field-" + name).get_attribute("value") for name in ("name", "town")] == ["Ben", "Bonn"]
    assert "is here again" in laptop.text("#view .draft")
    laptop.script("const one = document.querySelector('form.card button.primary'); one.click(); one.click()")
    laptop.wait(lambda: laptop.text("#view h2") == "Ben")
    assert [one["name"] for one in laptop.book()["contacts"]] == ["Ann", "Ben"]
    laptop.open("new")
    assert laptop.find("#field-name").get_attribute("value") == ""

    # News leave a half-typed name and the focus as they are.
    laptop.click("New", ".around button")
    laptop.find(".around input").send_keys("Birth")
    running.ask("Laptop", "/api/save", {"card": {"name": "Cleo"}})
    laptop.wait(lambda: "Cleo" in laptop.text("#list"))
    assert laptop.find(".around input").get_attribute("value") == "Birth" and laptop.script(focused) == "Name of the new group"
    laptop.find(".around input").send_keys("days\n")
    laptop.wait(lambda: "Birthdays" in laptop.text("#around") and not laptop.all(".around input"))

    # A deleted contact can be restored: immediately, and from the list.
    laptop.click("Cleo", "#list a")
    laptop.click("Delete", "#view button")
    laptop.wait(lambda: "Cleo was deleted." in laptop.text("#said"))
    laptop.click("Undo", "#said button")
    laptop.wait(lambda: "Cleo" in laptop.text("#list"))
    laptop.click("Cleo", "#list a")
    laptop.click("Delete", "#view button")
    laptop.click("Deleted", ".around a")
    laptop.wait(lambda: "Deleted by Laptop" in laptop.text("#view"))
    laptop.click("Restore", "#view button")
    laptop.wait(lambda: "Nothing was deleted." in laptop.text("#view") and "Cleo" in laptop.text("#list"))


def test_a_page_while_loco_is_ended_and_after_it_is_started_again(devices: Open, running: Running) -> None:
    laptop, _ = devices()
    laptop.look_at().wait(lambda: laptop.text("#light") not in ("", "Syncing"))
    before = running.place("Laptop")
    assert running.end() == 0
    laptop.wait(lambda: laptop.text("#light") == "LoCo was ended")
    laptop.find(".track").click()
    laptop.wait(lambda: "LoCo does not answer" in laptop.text("#said"))
    laptop.wait(lambda: laptop.script("return document.getElementById('online').checked"))
    # The light is drawn every second, with the same text.
    laptop.driver.execute_async_script("const done = arguments[0]; setTimeout(() => requestAnimationFrame(() => done()), 1500)")
    assert laptop.text("#light") == "LoCo was ended"
    again = Running(running.folder)
    running.process, running.addresses, running.tokens = again.process, again.addresses, again.tokens
    assert running.place("Laptop") == before
    laptop.wait(lambda: laptop.text("#light") == "LoCo was started anew")
    # After a window has entered with the new address, this one continues.
    running.ask("Laptop", "/api/save", {"card": {"name": "Ann"}})
    other = Device(laptop.driver, running.addresses["Laptop"], "Laptop")
    laptop.look_at().wait(lambda: "Ann" in laptop.text("#list") and laptop.text("#light") != "LoCo was started anew")
    other.look_at()
    laptop.driver.close()
    laptop.look_at()
    laptop.driver.get_log("browser")  # it says that LoCo did not answer


def test_long_names_groups_and_a_search_in_a_narrow_window(devices: Open, running: Running) -> None:
    laptop, _ = devices()
    long = "Incorporated" * 30
    running.ask("Laptop", "/api/save", {"card": {"name": "Ann " + long, "company": long, "town": long, "tags": [long], "notes": long}})
    (id,) = [one["id"] for one in running.ask("Laptop", "/api/book")[1]["contacts"]]
    at = running.ask("Laptop", "/api/book")[1]["at"]
    running.ask("Laptop", "/api/save", {"id": id, "at": at, "card": {"name": long, "company": long}})
    running.ask("Laptop", "/api/save", {"card": {"name": "Jutta M\u00fcller"}})
    assert running.ask("Laptop", "/api/group", {"name": long})[0] == 200
    laptop.look_at()
    browser.resize(laptop.driver, 390, 800)
    try:
        for place in ("", f"contact/{id}", f"contact/{id}/history", f"contact/{id}/edit", "synced"):
            laptop.open(place)
            assert laptop.script("return document.documentElement.scrollWidth") <= 390, place
            assert laptop.script("const one = document.getElementById('view'); return one.scrollWidth - one.clientWidth") <= 0, place
        # A search leads from the contact to its matches.
        field = laptop.find("#wanted")
        field.send_keys("muller")
        laptop.wait(lambda: laptop.text("#list .name") == "Jutta M\u00fcller")
        field.clear()
        field.send_keys("zzz")
        laptop.wait(lambda: 'Nobody matches "zzz".' in laptop.text("#list"))
        laptop.click("Clear the search")
        laptop.wait(lambda: len(laptop.all("#list a")) == 2)
        laptop.click("New", ".around button")
        laptop.find(".around input").send_keys("Choir \n")
        laptop.click("Choir", ".around a")
        assert laptop.all("#around .blank") == [], "spaces at an end are no part of a name"
        laptop.click("Rename", "#group-tools button")
        field = laptop.find(".around input")
        field.clear()
        field.send_keys("Band\n")
        laptop.click("Band", ".around a")
        laptop.click("Delete group", "#group-tools button")
        laptop.wait(lambda: "The group Band was deleted." in laptop.text("#said") and "Band" not in laptop.text("#around"))
    finally:
        browser.resize(laptop.driver, 1280, 800)

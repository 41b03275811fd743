"""Two devices in one window, and the whole book at another time; and the whole page used by keyboard alone."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any, Callable

import browser
from conftest import LOCO, Device, Running

sys.path.insert(0, str(LOCO))
import faces  # noqa: E402

Open = Callable[[str], Device]


def test_one_window_two_devices_and_a_cable(window: Open, running: Running) -> None:
    desk = window("Both")

    def within(number: int) -> Device:
        """Goes into the frame of a device."""
        desk.driver.switch_to.default_content()
        desk.driver.switch_to.frame(desk.all("iframe")[number])
        return desk

    def outside() -> Device:
        desk.driver.switch_to.default_content()
        return desk

    def dots(where: str) -> list[str]:
        return [one.text for one in desk.all(f".versions .at-{where}")]

    def look(name: str, **how: bool) -> None:
        assert desk.complaints() == []
        desk.look(name, **how)
        desk.driver.get_log("browser")  # axe asks frames of other origins, and the browser says that they do not answer

    desk.wait(lambda: len(desk.all("iframe")) == 2)
    within(0).click("Take some examples")
    within(1).wait(lambda: "Ada Ruiz" in desk.text("#list"))
    outside().wait(lambda: "Both devices have the same versions." in desk.text("#told") and dots("both"))
    assert dots("0") == dots("1") == []
    assert [one for one in dots("both") if "another program" in one] == [] and any("Set up the book" in one for one in dots("both"))
    edges = "const [name, device] = ['h1 a', '#device'].map((one) => document.querySelector(one).getBoundingClientRect())"
    assert within(0).script(f"{edges}; return device.left - name.right") >= 4, "the name and the device do not touch"
    outside()
    look("desk", narrow=True)

    desk.click("Pull out the cable")
    desk.wait(lambda: desk.text("#plug") == "Plug in the cable")
    within(1).wait(lambda: desk.text("#light").startswith("Offline"))
    assert running.ask("Laptop", "/api/delete", {"id": "jon-fry"})[0] == 200
    assert running.ask("Phone", "/api/save", {"card": {"name": "Zoe"}})[0] == 200
    outside().wait(lambda: ["Delete Jon Fry" in one for one in dots("0")] == [True] and ["Add Zoe" in one for one in dots("1")] == [True])
    assert "2 versions are not on both devices yet." in desk.text("#told")
    # Read aloud, and in a narrow window with only the newest, they are in the displayed order.
    tops = "return [...document.querySelectorAll('.versions li')].filter((one) => one.checkVisibility()).map((one) => one.style.top)"
    assert desk.script(tops) == [f"{64 * place}px" for place in range(len(desk.all(".versions li")))]
    browser.resize(desk.driver, 390, 800)
    assert desk.script(tops) == ["0px", "64px", "128px"]
    browser.resize(desk.driver, 1280, 800)
    look("desk-unplugged")

    desk.click("Plug in the cable")
    desk.wait(lambda: desk.all(".versions .at-both .merge") and not dots("0") and not dots("1"), "a merge on both devices")
    within(0).wait(lambda: "Zoe" in desk.text("#list"))
    within(1).wait(lambda: "Jon Fry" not in desk.text("#list"))
    outside()


def test_the_whole_book_at_another_time(window: Open, running: Running) -> None:
    running.ask("Laptop", "/api/examples", {})
    for id in ("ada-ruiz", "ben-okoro"):
        running.ask("Laptop", "/api/delete", {"id": id})
    running.ask("Laptop", "/api/delete-group", {"id": "choir"})
    laptop = window("Laptop")
    laptop.wait(lambda: "10 contacts" in laptop.text("#count"))
    laptop.click("Another time", ".around button")
    laptop.wait(lambda: "Delete the group Choir" in laptop.text("#past"))
    assert not laptop.find("#past .primary").is_enabled(), "it is so already"
    for _ in range(3):
        laptop.press(laptop.KEYS.ARROW_LEFT)
    laptop.wait(lambda: "12 contacts" in laptop.text("#count") and "Choir" in laptop.text("#around"))
    laptop.wait(lambda: laptop.script("return document.querySelector('#list a img')?.naturalWidth") == 160, "the face of then")
    laptop.click("Ada Ruiz", "#list a")
    laptop.wait(lambda: "Restore this contact" in laptop.text("#view") and "Edit" not in laptop.text("#view"))
    laptop.look("another-time", narrow=True)
    # Move to the first version, and to the end of a day.
    laptop.script("document.querySelector('#past input').focus()")
    laptop.press(laptop.KEYS.HOME)
    laptop.wait(lambda: "0 contacts" in laptop.text("#count") and "was not in the book at that time" in laptop.text("#view"))
    laptop.script("const one = document.querySelector('#past input[type=date]'); const now = new Date();"
                  "one.value = [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((n) => String(n).padStart(2, '0')).join('-');"
                  "one.dispatchEvent(new Event('change'))")
    laptop.wait(lambda: "10 contacts" in laptop.text("#count"))
    assert laptop.text("#past p").startswith("The end of ") and ", last changed " in laptop.text("#past p")
    laptop.click("Earlier", "#past button")
    assert laptop.script("return document.querySelector('#past input[type=date]').value") == "", "another time than that day"
    laptop.click("Earlier", "#past button")
    laptop.click("Earlier", "#past button")
    laptop.click("Restore", "#past .primary")
    laptop.wait(lambda: "The book is as it was then." in laptop.text("#said") and not laptop.find("#past").is_displayed())
    assert laptop.book()["count"] == 12 and [one["name"] for one in laptop.book()["groups"]] == ["Choir", "Hut in May"]
    laptop.find("#undo").click()
    laptop.wait(lambda: laptop.book()["count"] == 10)


def test_what_a_narrow_view_shows(window: Open, running: Running) -> None:
    running.ask("Laptop", "/api/examples", {})
    laptop = window("Laptop")
    laptop.wait(lambda: running.ask("Phone", "/api/book")[1]["count"] == 12)
    for device in ("Laptop", "Phone"):
        running.ask(device, "/api/online", {"isOnline": False})
    running.ask("Laptop", "/api/delete", {"id": "hugo-moreau"})
    hugo = running.ask("Phone", "/api/contact?id=hugo-moreau")[1]
    card = {**hugo["card"], "town": "Paris", "notes": "Brings the wine."}
    assert running.ask("Phone", "/api/save", {"id": "hugo-moreau", "at": hugo["at"], "card": card})[0] == 200
    for device in ("Laptop", "Phone"):
        running.ask(device, "/api/online", {"isOnline": True})
    laptop.wait(lambda: laptop.book()["conflicts"] == 1)
    try:
        for wide in (390, 800):
            browser.resize(laptop.driver, wide, 800)
            for place in ("contact/dan-berg/edit", "contact/dan-berg/history", "contact/hugo-moreau", "conflicts", "synced"):
                laptop.open(place)
                over = laptop.script("const one = document.getElementById('view'); return one.scrollWidth - one.clientWidth")
                assert over <= 0, (wide, place)
    finally:
        browser.resize(laptop.driver, 1280, 800)
    # The other side's changes are marked visibly.
    laptop.open("contact/hugo-moreau")
    shade = "return [...document.querySelectorAll('.side dd.now')].map((one) => getComputedStyle(one).backgroundColor)"
    assert len(laptop.script(shade)) == 2 and "rgba(0, 0, 0, 0)" not in laptop.script(shade)
    laptop.open("synced")
    assert f"Shared folder: {running.folder / 'shared'}." in laptop.text("#view")
    # A deleted contact can be restored where it appears, and the slider of the whole book leads to the contacts from a list.
    laptop.open("contact/ada-ruiz")
    laptop.click("Delete", "#view button")
    laptop.shown("start")
    laptop.open("contact/ada-ruiz")
    laptop.click("Restore", "#view button")
    laptop.wait(lambda: laptop.text("#view h2") == "Ada Ruiz")
    laptop.click("Delete", "#view button")
    laptop.shown("start")
    laptop.open("deleted")
    laptop.click("Another time", ".around button")
    laptop.wait(lambda: laptop.find("#past").is_displayed() and laptop.script("return location.hash") == "#/")
    laptop.click("Earlier", "#past button")
    laptop.wait(lambda: "Ada Ruiz" in laptop.text("#list"))


def test_photos_and_what_is_said_of_them(window: Open, running: Running, tmp_path: Path) -> None:
    running.ask("Laptop", "/api/examples", {})
    laptop = window("Laptop")
    laptop.wait(lambda: running.ask("Phone", "/api/book")[1]["count"] == 12)
    portraits = [faces.portrait((9, 9, 9), (4, 5, 6), (200, 100, 50), (9, 9, 9), long) for long in (True, False)]
    for device, portrait in zip(("Laptop", "Phone"), portraits):
        running.ask(device, "/api/online", {"isOnline": False})
        ada = running.ask(device, "/api/contact?id=ada-ruiz")[1]
        given = {"id": "ada-ruiz", "at": ada["at"], "card": ada["card"], "picture": base64.b64encode(portrait).decode()}
        assert running.ask(device, "/api/save", given)[0] == 200
    # The switch has an accessible state and description.
    laptop.wait(lambda: laptop.text("#online-text") == "Offline")
    assert laptop.find("#online").get_attribute("aria-label") == "Online"
    for device in ("Laptop", "Phone"):
        running.ask(device, "/api/online", {"isOnline": True})
    laptop.wait(lambda: "Conflicts" in laptop.text("#around"))

    # Both pictures are shown, and the one that prevails is marked.
    laptop.open("conflicts")
    assert [one.text.split("\n")[0] for one in laptop.all("#around [aria-current]")] == ["Conflicts"]
    laptop.open("contact/ada-ruiz")
    wide = "return [...document.querySelectorAll(arguments[0])].map((one) => one.naturalWidth)"
    laptop.wait(lambda: laptop.script(wide, ".conflict .side img") == [160, 160])
    assert len({one.get_attribute("src") for one in laptop.all(".conflict .side img")}) == 2
    assert "Which photo?" in laptop.text(".conflict") and "Shown now: Phone\u2019s." in laptop.text(".conflict")
    # The history shows the photo of each time, and what its shading means.
    laptop.open("contact/ada-ruiz/history")
    laptop.click("Change the photo of Ada Ruiz", ".past button")
    laptop.wait(lambda: "another photo" in laptop.text(".past .card") and laptop.script(wide, ".past .card img") == [160])
    assert laptop.text(".past .legend") == "Shaded: changed here."
    # A photo that is chosen is seen before it is saved.
    picture = tmp_path / "dan.png"
    picture.write_bytes(portraits[0])
    laptop.open("contact/dan-berg/edit")
    laptop.find("input[type=file]").send_keys(str(picture))
    laptop.wait(lambda: laptop.script(wide, ".preview img") == [160] and "is saved with the rest" in laptop.text("#view .picture"))
    laptop.click("Cancel", "#view a")
    # Tags look different from groups, and a contact that is chosen is scrolled to.
    first = "return getComputedStyle(document.querySelector(arguments[0]), '::before').content"
    assert laptop.script(first, "#around a.tag") == '"# "' != laptop.script(first, "#around a.group")
    browser.resize(laptop.driver, 1280, 400)
    laptop.open("contact/liam-byrne")
    seen = ("const one = document.querySelector('#list [aria-current]').getBoundingClientRect(),"
            "all = document.getElementById('list').getBoundingClientRect(); return one.top >= all.top && one.bottom <= all.bottom")
    assert laptop.script(seen)
    browser.resize(laptop.driver, 1280, 800)


def test_answers_that_arrive_in_another_order(window: Open, running: Running) -> None:
    """The answer to the last request is shown, whichever answer arrives last."""
    running.ask("Laptop", "/api/examples", {})
    laptop = window("Laptop")
    laptop.wait(lambda: "12 contacts" in laptop.text("#count"))
    # Enter opens the first match, even if news redraw the page before the answer has arrived.
    laptop.hold("q=berg", 2)
    laptop.script("document.getElementById('wanted').value = 'berg'; document.getElementById('search').requestSubmit();"
                  "dispatchEvent(new HashChangeEvent('hashchange'))")
    laptop.held(2)
    laptop.release()
    laptop.wait(lambda: laptop.text("#view h2") != "")
    assert laptop.text("#view h2") == "Dan Berg"
    laptop.release()
    # Changes of other devices are shown in the form of that contact, and not in the one that is open by then.
    laptop.open("contact/dan-berg/edit")
    laptop.hold("api/contact?id=dan-berg")
    running.ask("Laptop", "/api/save", {"card": {"name": "Zoe"}})
    laptop.held()
    laptop.open("contact/eva-lind/edit")
    laptop.release()
    assert laptop.text("#view h2") == "Edit Eva Lind" and laptop.text(".meanwhile") == ""


def test_everything_with_the_keyboard_alone(window: Open, running: Running) -> None:
    running.ask("Laptop", "/api/examples", {})
    at = running.ask("Laptop", "/api/book")[1]["at"]
    card: dict[str, Any] = running.ask("Laptop", "/api/contact?id=dan-berg")[1]["card"]
    for town in ("Bonn", "Turku"):
        assert running.ask("Laptop", "/api/save", {"id": "dan-berg", "at": at, "card": {**card, "town": town}})[0] == 200
    laptop = window("Laptop")
    laptop.wait(lambda: "12 contacts" in laptop.text("#count"))
    heading = "#view h2"

    # Add.
    laptop.press("n")
    laptop.shown("new")
    laptop.look("new", narrow=True)
    laptop.press(*"Zoe", laptop.KEYS.ENTER)
    laptop.wait(lambda: laptop.text(heading) == "Zoe")
    # Edit.
    laptop.press("e")
    laptop.wait(lambda: laptop.text(heading) == "Edit Zoe")
    laptop.press(laptop.KEYS.TAB, laptop.KEYS.TAB, *"Oslo", laptop.KEYS.ENTER)
    laptop.wait(lambda: laptop.text(heading) == "Zoe" and "Oslo" in laptop.text("#view .facts"))
    # Undo.
    laptop.find("body").send_keys(laptop.KEYS.CONTROL, "z")
    laptop.wait(lambda: "Taken back: Change the town of Zoe." in laptop.text("#said") and "Oslo" not in laptop.text("#view .facts"))
    # Search, and decide.
    laptop.press("/", *"berg", laptop.KEYS.ENTER)
    laptop.wait(lambda: laptop.text(heading) == "Dan Berg" and "Which town?" in laptop.text("#view"))
    laptop.look("decide", narrow=True)
    laptop.tab_to("Take this instead")
    laptop.press(laptop.KEYS.ENTER)
    laptop.wait(lambda: "Which town?" not in laptop.text("#view") and "Bonn" in laptop.text("#view .facts"))
    # Through the history.
    laptop.press("h")
    laptop.wait(lambda: laptop.text(heading) == "History of Dan Berg")
    laptop.tab_to("Add some examples")
    laptop.press(laptop.KEYS.ENTER)
    laptop.wait(lambda: "Ulm" in laptop.text(".past .card"))
    laptop.look("past", narrow=True)
    for wide in (390, 800):
        browser.resize(laptop.driver, wide, 800)
        assert laptop.collisions() == [], wide
    browser.resize(laptop.driver, 1280, 800)

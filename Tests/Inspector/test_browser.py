"""The page in a real browser. Pictures of it are written to build/inspector; look at them."""

from __future__ import annotations

import http.server
import json
import re
import threading
import time
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
import stores
from axe_core_python.selenium import Axe
from browser import Page, resize
from conftest import PICTURES

Open = Callable[..., tuple[Page, llvs.Store, Any]]


def look(page: Page, name: str, *, narrow: bool = False) -> None:
    """Takes a picture, light and dark, and checks both for accessibility; narrow: at widths of 1,400 and 390 pixels."""
    if narrow:
        for wide in (390, 1400):
            resize(page.driver, wide, 900)
            look(page, f"{name}-{wide}")
        return resize(page.driver, 1440, 900)
    for scheme in ("light", "dark"):
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme},
                                                                                {"name": "prefers-reduced-motion", "value": "reduce"}]})
        page.picture(PICTURES / f"{name}-{scheme}.png")
        found = Axe().run(page.driver)["violations"]
        told = [(one["id"], one["help"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found]
        assert found == [], json.dumps(told, indent=1)


def test_the_history(show: Open) -> None:
    page, _, made = show()
    assert page.text("#count") == "8 versions" and page.text("#name") == "contacts.llvs"
    assert [row.get_attribute("aria-posinset") for row in page.all(".version")] == [str(number) for number in range(1, 9)]
    assert "redesign" in page.text(".sizer") and "current" in page.text(".sizer")
    assert "Cleo's birthday" in page.text("#view")
    page.wait(lambda: "born" in page.text("details[open] .differences"))
    times = [time.text for time in page.all(".version .when")]
    assert all(re.search(r"\b\d{1,2}:\d\d( [AP]M)?$", time) for time in times) and re.search("(13|1):00", times[0]), times
    assert all(not page.script("return arguments[0].scrollWidth > arguments[0].clientWidth", time) for time in page.all(".version .when"))
    look(page, "history", narrow=True)


def test_what_a_version_changed_is_shown_with_it(show: Open) -> None:
    page, _, made = show()
    page.go(f"#/version/{made['second'].id}")
    page.wait(lambda: [cell.text for cell in page.all("details[open] .differences td")] == ["town", '"Ulm"', '"Bonn"'])
    facts = [fact.text for fact in page.all("#view .facts dt")]
    assert facts[:5] == ["Id", "Made", "Values", "Predecessor", "Successor"]
    signs = [page.script("return getComputedStyle(arguments[0], '::before').content", one) for one in page.all("details.change > summary")]
    assert {sign.split('"')[1] for sign in signs} == {"\u25be"}, "an open one points down, and is no minus sign"
    # If there are more than three, the user opens each.
    page.go(f"#/version/{made['tablet'].id}", "Number from the office list")
    page.click("contact/ann", "summary")
    page.wait(lambda: "Sings alto" in page.text("details[open]"))
    assert len(page.all("#view details")) == 4 and len(page.all("details[open]")) == 1
    # Values of versions that the user only passes are not requested.
    page.press("g")
    page.wait(lambda: "born" in page.text("details[open] .differences"))
    page.script("performance.clearResourceTimings();"
                "for (let n = 0; n < 5; n++) document.dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}))")
    page.wait(lambda: page.text("#view h2") == "A visit, and a photo" and len(page.all("details[open] > div > *")) == 6)
    asked = page.script("return performance.getEntriesByType('resource').filter((one) => one.name.includes('compare/value')).length")
    assert asked == 3


def test_a_page_that_connects_does_not_look_connected(show: Open) -> None:
    page, _, _ = show()
    dot = "const one = document.getElementById('live'); return [one.className, getComputedStyle(one, '::before').backgroundColor]"
    page.wait(lambda: page.script(dot)[0] == "live")
    connected = page.script(dot)[1]
    page.script("window.markup = null; fetch('/').then((answer) => answer.text()).then((text) => { window.markup = text; })")
    page.wait(lambda: page.script("return window.markup !== null"))
    # One script, since news may arrive between two scripts.
    found = page.script("const made = new DOMParser().parseFromString(window.markup, 'text/html').getElementById('live');"
                        "document.getElementById('live').className = made.className;" + dot)
    assert found == ["live waiting", "rgba(0, 0, 0, 0)"] and connected != "rgba(0, 0, 0, 0)"


def test_keys_addresses_and_back(show: Open) -> None:
    page, _, made = show()
    page.press("j", "j")
    page.wait(lambda: "Number from the office list" in page.text("#view h2"))
    page.press("k")
    page.wait(lambda: page.text("#view h2") == "Merge of tablet\u2019s and phone\u2019s changes")
    page.press("m")
    page.wait(lambda: "3 decisions" in page.text("#view"))
    address = page.script("return location.hash")
    assert address == f"#/merge/{made['merge'].id}"
    page.press("x")
    page.wait(lambda: f"{made['merge'].id[:8]} is marked" in page.text("#said"))
    page.press("d")
    page.wait(lambda: page.text("#view h2") == "Compare")
    page.driver.back()
    page.wait(lambda: "3 decisions" in page.text("#view"))
    page.driver.refresh()
    page.wait(lambda: "3 decisions" in page.text("#view"))
    page.press("?")
    page.wait(lambda: page.find("#help").is_displayed())
    low, high = (page.script(f"return document.querySelector('#help {one}').getBoundingClientRect().{edge}")
                 for one, edge in (("dl", "bottom"), ("button", "top")))
    assert high - low >= 8, "the button covers no row"
    look(page, "keys")
    page.press(page.KEYS.ESCAPE)
    page.press("/", "m", "o", "v", "e", "d", page.KEYS.ENTER)
    page.wait(lambda: "Ann has moved" in page.text("#view") and "Found for" in page.text("#view"))
    assert page.script("return location.hash") == "#/search?q=moved"
    look(page, "search", narrow=True)


def test_the_oldest_version_while_its_row_is_still_asked_for(show: Open, tmp_path: Path) -> None:
    with llvs.Store(tmp_path / "long.llvs", durability="normal") as made:
        stores.long(made, 1000, 1)
    page, _, _ = show(lambda store: None, name="long.llvs")
    page.wait(lambda: page.text("#count") == "1,000 versions")
    page.script("const f = window.fetch; window.fetch = async (...a) => { await new Promise((r) => setTimeout(r, 700)); return f(...a); };"
                "const s = document.getElementById('scroller'); s.scrollTop = s.scrollHeight")
    page.wait(lambda: page.all(".version[aria-posinset='1000']"))
    page.press("G")
    page.wait(lambda: page.text("#view h2") == "First version")


def test_what_is_damaged_or_waits_is_seen_at_once(show: Open, tmp_path: Path) -> None:
    with llvs.Store(tmp_path / "bad.llvs") as store:
        stores.long(store, 400, 3)
    for segment in (tmp_path / "bad.llvs" / "segments").iterdir():
        data = bytearray(segment.read_bytes())
        for at in range(len(data) // 2, len(data) // 2 + 2000):
            data[at] ^= 0xFF
        segment.write_bytes(bytes(data))
    page, _, _ = show(lambda store: None, name="bad.llvs")
    page.wait(lambda: "damaged place" in page.text("nav .alarm") and "waiting" in page.text("nav .alarm"))
    look(page, "damaged")
    page.click("damaged place", ".bar nav a")
    page.wait(lambda: "Bytes are not what was written." in page.text("#view"))


def test_the_key_for_merges_on_what_is_none(show: Open) -> None:
    page, _, made = show()
    page.wait(lambda: page.text("#view h2") == "Cleo's birthday")
    assert page.all("nav .alarm") == []
    page.press("m")
    page.wait(lambda: "is no merge" in page.text("#said"))
    assert page.text("#view h2") == "Cleo's birthday"


def test_a_value_is_played_through_time(show: Open) -> None:
    page, _, made = show()
    page.go("#/values/@")
    # Wait for the whole name: "ann.png" may be shown first.
    page.wait(lambda: next(link for link in page.all(".tree a") if link.text.split("\n")[0] == "ann")).click()
    page.wait(lambda: "6 of 6" in page.text(".told") and '"visits": 4' in page.text("pre.value"))
    look(page, "value", narrow=True)
    page.press("[")
    page.wait(lambda: "5 of 6" in page.text(".told") and "Sings alto" in page.text("pre.value"))
    # Press four keys before the page can react. None of them is lost.
    page.script("for (let n = 0; n < 4; n++) document.dispatchEvent(new KeyboardEvent('keydown', {key: '[', bubbles: true}))")
    page.wait(lambda: "1 of 6" in page.text(".told") and '"town": "Ulm"' in page.text("pre.value"))
    page.press("]")
    page.wait(lambda: "2 of 6" in page.text(".told"))
    page.wait(lambda: [cell.text for cell in page.all(".differences td")][:3] == ["town", '"Ulm"', '"Bonn"'])
    assert page.all(".differences del")[0].text == "Ulm"
    page.click("Play", ".slider button")
    page.wait(lambda: "6 of 6" in page.text(".told") and page.text(".slider button:nth-child(2)") == "Play")
    page.go("#/values/@?id=photo%2Fann.png", "96 × 96 pixels")
    look(page, "picture")
    page.go("#/values/@?id=raw%2Fchecksum", "00000000  0a 0b")
    look(page, "bytes")
    # A merge that takes over a side's value says so.
    kept = page.driver.execute_async_script("""
        const [id, done] = arguments;
        import("/slider.js").then(({ Slider }) => {
            const step = { id, kind: "preserve", predecessors: ["a", "b"], sides: ["ada", "ben"], who: "", time: 0 };
            const slider = new Slider("contact/ann", [step], false, document.createElement("div"), { id }, () => {});
            slider.show(id).then(() => done(slider.told.textContent));
        });""", made["merge"].id)
    assert kept.startswith("1 of 1: The merge kept this: Merge of ada\u2019s and ben\u2019s changes")
    page.find(".values input").send_keys("CLEO")
    page.wait(lambda: [link.text.split("\n")[0] for link in page.all(".tree a")] == ["contact/cleo"])


def test_two_versions_are_compared_inside_values(show: Open) -> None:
    page, _, made = show()
    page.go(f"#/compare/{made['first'].id}/@?id=plan%2Fmoving", "Call the movers")
    assert [piece.text for piece in page.all(".differences del")] == ["Monday"]
    assert [piece.text for piece in page.all(".differences ins")] == ["Friday"]
    page.click("contact/ann", "summary")
    page.wait(lambda: "visits" in page.text("details[open]"))
    look(page, "compare", narrow=True)
    page.click("Swap")
    page.wait(lambda: page.script("return location.hash").endswith(made["first"].id))


def test_a_merge_is_explained_and_decided_otherwise(show: Open) -> None:
    page, store, made = show(stores.story, "--write")
    page.go("#/conflicts", "2 decisions")
    assert "contact/ann › phone, plan/moving" in page.text("#view .list")
    page.go(f"#/merge/{made['merge'].id}", "The change of")
    assert "+49 228 9999" in page.text("article .second") and "The change of tablet stands." in page.text("article")
    look(page, "merge")
    assert [card.text.split("\n")[0] for card in page.all(".sides .card")] == [
        "last in common (base)", "tablet", "phone", "result"]
    assert [column.text.split("\n")[0] for column in page.all("article")[0].find_elements("css selector", ".four > div")] == [
        "before, in both", "tablet, newer change", "phone", "result"]
    page.click("Take the change of phone")
    page.wait(lambda: "llvs inspect" in page.text("#view") and "contact/ann" in page.text("#view"))
    store.reload()
    head = store.most_recent_head
    assert head is not None and json.loads(store.at(head)["contact/ann"])["phone"] == "+49 228 9999"
    page.wait(lambda: page.text("#count") == "9 versions")
    page.click("Undo")
    page.wait(lambda: page.text("#count") == "10 versions")
    store.reload()
    head = store.most_recent_head
    assert head is not None and json.loads(store.at(head)["contact/ann"])["phone"] == "+49 228 1000"
    page.go("#/conflicts", "decision")
    assert "plan/moving" in page.text("#view .list") and "contact/ann \u203a phone" in page.text("#view .list"), "open again"
    assert page.find("#undoing button:last-child").get_attribute("title") == 'Redo: Decide a conflict in "contact/ann"'
    look(page, "conflicts", narrow=True)
    page.go(f"#/values/{head.id}?id=settings%2Ftheme", '"dark"')
    page.click("Edit", ".shown button")
    field = page.wait(lambda: page.find("textarea"))
    field.clear()
    field.send_keys('"blue"')
    page.click("Save as a new version")
    page.wait(lambda: '"blue"' in page.text(".differences"))
    store.reload()
    head = store.most_recent_head
    assert head is not None and store.at(head)["settings/theme"] == b'"blue"'
    page.go(f"#/version/{made['second'].id}", "Take this back")
    page.wait(lambda: page.text("#count") == "11 versions")
    page.click("Take this back")
    page.wait(lambda: page.text("#count") == "12 versions")


def test_news_of_others_appear_by_themselves(show: Open, tmp_path: Path) -> None:
    page, store, made = show()
    assert "editing on" not in page.text("#live")
    with llvs.Store(tmp_path / "other.llvs") as other, llvs.Exchange(other, tmp_path / "shared") as there:
        with llvs.Exchange(store, tmp_path / "shared") as here:
            here.send()
            there.retrieve()
            metadata = {"author": "watch", "message": "From the watch"}
            other.make_version(other.most_recent_head, update={"contact/dora": b"{}"}, metadata=metadata)
            there.send()
            here.retrieve()
    page.wait(lambda: page.text("#count") == "9 versions" and "From the watch" in page.text(".sizer"))
    page.go("#/exchanges", "watch")
    look(page, "exchanges", narrow=True)
    page.click("Verify the store")
    page.wait(lambda: "All of it is what was written." in page.text("#view"))
    page.go("#/heads", "2 heads")


def test_bars_of_what_takes_space_lead_to_the_values(show: Open) -> None:
    page, store, made = show()
    page.go("#/size", "Beginnings of ids")
    report = store.size()
    names = [cell.text for cell in page.all(".card:has(.push) tbody td:first-child")]
    assert names == [row.name or "ids without \u201c/\u201d" for row in report.by_prefix]
    # A bar's length is in proportion to its bytes: the part of the past within the part of the values.
    row = next(row for row in report.by_prefix if row.name == "contact/")
    wide = page.script(
        "const row = [...document.querySelectorAll('.bars tr')].find((row) => row.textContent.startsWith(arguments[0]));"
        "return ['now', 'past'].map((kind) => row.querySelector('.' + kind).getBoundingClientRect().width)", row.name)
    assert wide[1] > 0 and abs(wide[0] / wide[1] - row.current_bytes / row.past_bytes) < 0.05
    look(page, "size", narrow=True)
    page.click("contact/", ".bars a")
    page.wait(lambda: "Size of contact/" in page.text("#view h2"))
    page.click("Each id", "#view a")
    page.wait(lambda: "contact/bob" in page.text(".bars"))
    assert page.all(".card:has(.push) tbody tr") and len(page.all(".card:has(.push) tbody tr")) == 3
    page.click("contact/ann", ".bars a")
    page.wait(lambda: page.script("return document.querySelector('.shown')?.valueId") == "contact/ann")
    page.wait(lambda: "Bonn" in page.text(".shown"))
    # New versions count at once.
    page.go("#/size", "Beginnings of ids")
    store.make_version(made["after"], insert={"video/1": bytes(range(256)) * 3})
    page.wait(lambda: "video/" in page.text("#view"))


def test_names_are_shown_as_the_vectors_say(show: Open) -> None:
    page = show(stores.story)[0]
    vectors = json.loads((Path(__file__).parents[1] / "Vectors" / "escaping.json").read_text("utf-8"))["vectors"]
    found = page.driver.execute_async_script("""
        const [texts, done] = arguments;
        import("/dom.js").then(({ spoken, named, el }) => {
            done(texts.map((text) => [spoken(text), el("p", {}, ...named(text)).textContent]));
        });
    """, [vector["text"] for vector in vectors])
    assert found == [[vector["shown"]] * 2 for vector in vectors]


def test_hostile_ids_and_values_run_nothing(show: Open) -> None:
    page, store, made = show(stores.hostile)
    page.go(f"#/version/{made.id}", "script")
    look(page, "hostile")
    ids = list(store.at(made))
    assert len(ids) > 15
    for id in ids:
        page.script("location.hash = '#/values/@?id=' + encodeURIComponent(arguments[0])", id)
        page.wait(lambda: page.script("return document.querySelector('.shown')?.valueId") == id, id)
        page.wait(lambda: page.all(".shown pre.value, .shown img"))
        assert page.all("main script, main iframe, main object, main embed, main svg") == []
    page.go(f"#/compare/@~1/{made.id}", "evil.html")
    for summary in page.all("details.change summary"):
        summary.click()
    page.go("#/search?q=%3Cscript%3E", "Found for")
    page.go("#/heads", "head")
    page.drawn()
    assert page.script("return [document.scripts.length, document.images.length, window.ran ?? null]") == [1, 0, None]


def test_a_clock_that_is_ahead_is_reported(show: Open) -> None:
    def fill(store: llvs.Store) -> None:
        root = store.make_version(insert={"a": b"1"}, timestamp=stores.BEGIN)
        store.make_version(root, update={"a": b"2"}, timestamp=time.time() + 40 * 86400, metadata={"message": "From next month"})

    page, _, _ = show(fill)
    page.wait(lambda: [row.text.startswith("\u2248") for row in page.all(".version .when")] == [True, False])
    assert "clock is ahead" in (page.all(".version")[0].get_attribute("aria-label") or "")
    page.wait(lambda: "will be made in 40 days" in page.text("#view .problem"))
    look(page, "clock")


def test_a_value_of_100_megabytes(show: Open) -> None:
    line = b"0123456789abcdef" * 4 + b"\n"

    def fill(store: llvs.Store) -> None:
        store.make_version(insert={"large": (line * 16384 for _ in range(100))})

    page, _, _ = show(fill)
    page.go("#/values/@?id=large", "The first")
    page.click("End")
    page.wait(lambda: "of 106,496,000" in page.text(".shown") and "106,49" in page.text(".shown p.row-of"))
    assert page.script("return performance.memory.usedJSHeapSize") < 200_000_000


def test_another_origin_and_a_rebound_name_get_nothing(show: Open) -> None:
    page, _, _ = show(stores.story, "--write")
    address = page.address

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title>")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for host in ("localhost", "127.0.0.1"):
            page.driver.get(f"http://{host}:{server.server_port}/")
            got = page.driver.execute_async_script(
                """const [address, done] = arguments; const got = [];
                const tries = [];
                const ask = (path, more) => tries.push(fetch(address + path, {credentials: "include", ...more}).then(
                    async (answer) => got.push((await answer.text()).length), () => got.push(0)));
                for (const mode of ["cors", "no-cors"]) for (const path of ["/api/summary", "/main.js", "/api/history"]) ask(path, {mode});
                ask("/api/change/edit", {method: "POST", mode: "no-cors", body: JSON.stringify({at: "@", id: "x", text: "y"})});
                tries.push(new Promise((end) => { const s = document.createElement("script"); s.src = address + "/main.js";
                    s.onload = () => { got.push(1); end(); }; s.onerror = () => { got.push(0); end(); }; document.body.append(s); }));
                Promise.all(tries).then(() => done(got));""", address)
            assert got == [0] * 8
            framed = page.driver.execute_async_script(
                """const [address, done] = arguments; const f = document.createElement("iframe"); f.src = address + "/";
                document.body.append(f);
                f.onload = () => { try { done(f.contentDocument?.body.textContent ?? "closed"); } catch { done("closed"); } };""", address)
            assert "History" not in framed
        page.driver.get_log("browser")
    finally:
        server.shutdown()
        server.server_close()
    port = address.rsplit(":", 1)[1]
    page.driver.get(f"http://rebound.example:{port}/#key=x")
    assert "use the address that it printed" in page.text("body") and page.driver.get_cookies() == []
    page.driver.get_log("browser")
    page.driver.get(address + "/")
    page.wait(lambda: page.text("#count") == "8 versions")


def test_no_other_port_gets_anything(show: Open) -> None:
    """A browser sends cookies of 127.0.0.1 to the programs on all its ports, also to those of another user."""
    page, _, _ = show()
    got: list[str] = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(f"{self.path}\n{self.headers}")
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>other</title><link rel=icon href=data:,>")

        def log_message(self, *_: object) -> None:
            pass

    token = page.script("return sessionStorage.getItem('llvs-token')")
    assert len(token) == 32 and token not in page.driver.current_url and "key=" not in page.driver.current_url
    assert page.script("return document.cookie") == "" and page.driver.get_cookies() == []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page.driver.get(f"http://127.0.0.1:{server.server_port}/")
        page.wait(lambda: page.driver.title == "other")
        page.driver.execute_async_script("const done = arguments[0]; fetch('/again', { credentials: 'include' }).then(() => done())")
        assert page.script("return sessionStorage.length + localStorage.length") == 0
    finally:
        server.shutdown()
        server.server_close()
    assert len(got) == 2 and not any("cookie" in one.lower() or token in one for one in got)
    page.driver.get_log("browser")


def test_windows_of_one_browser_share_the_token(show: Open) -> None:
    page, _, made = show()
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    try:
        page.driver.get(f"{page.address}/#/version/{made['merge'].id}")
        page.wait(lambda: page.script("return document.body.dataset.ready") == "yes")
        assert made["merge"].id[:8] in page.text("body")
        # A window that was never admitted, while no other window is open, says what to do.
        page.driver.switch_to.window(first)
        page.driver.get("about:blank")
        page.driver.switch_to.window([one for one in page.driver.window_handles if one != first][0])
        page.script("sessionStorage.clear()")
        page.driver.get("about:blank")
        page.driver.get(f"{page.address}/")
        page.wait(lambda: "use the newest address that it printed" in page.text("#view"))
        page.driver.get_log("browser")
    finally:
        page.driver.close()
        page.driver.switch_to.window(first)


def test_a_narrow_window_and_an_empty_store(show: Open) -> None:
    page, store, _ = show(lambda store: None)
    page.wait(lambda: "no version yet" in page.text("#view"))
    look(page, "empty")
    store.make_version(insert={"a": b"1"}, metadata={"message": "The first of all"})
    page.wait(lambda: "The first of all" in page.text(".sizer"))
    resize(page.driver, 420, 800)
    try:
        look(page, "narrow")
        assert page.script("return document.documentElement.scrollWidth") <= 420
        page.find(".version").click()
        page.wait(lambda: "What it changed" in page.text("#view"))
        look(page, "narrow-version")
        assert page.script("return document.documentElement.scrollWidth") <= 420
    finally:
        resize(page.driver, 1440, 900)


def test_what_the_library_says_of_versions_is_explained(show: Open, tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "app.llvs", device="laptop") as application:
        base = application.save(update={"__llvs_schema": stores.RULES, "contact/a": b'{"x":0}'}, description="Begin", group="g").id
        application.store.make_version(base, update={"contact/a": b'{"x":1}'}, metadata={"device": "phone"})
        application.save(update={"contact/a": b'{"x":2}'})
        application.merge()
        application.save(update={"contact/a": b'{"x":3}'}, description="Edit")
        application.undo()
        application.redo()
    page, store, _ = show(lambda store: None, name="app.llvs")
    found: set[str] = set()
    for version in store.history():
        page.go(f"#/version/{version.id}")
        page.wait(lambda: page.text("#view .facts dd") == version.id)
        found |= set(page.script("return [...document.querySelectorAll('#view dt')].map((one) => one.innerText)"))
    assert found >= {"Description", "Device", "Undo group", "Decided by", "Decided", "Undoes", "Takes back"}
    assert [one for one in found if "_" in one] == []


def test_changes_one_after_the_other_while_the_application_is_closed(show: Open, tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "app.llvs", device="laptop") as application:
        base = application.save(update={"__llvs_schema": stores.RULES, "contact/a": b'{"x":0,"y":0}'}).id
        application.store.make_version(base, update={"contact/a": b'{"x":1,"y":1}'}, metadata={"device": "phone"})
        application.save(update={"contact/a": b'{"x":2,"y":2}'})
        application.merge()
    page, store, _ = show(lambda store: None, "--write", name="app.llvs")
    said = "return document.getElementById('said').textContent"  # also after it was hidden again
    for member in ("x", "y"):
        page.go("#/conflicts", "Conflicts that nobody has looked at")
        assert (f"contact/a \u203a {member}" if member == "x" else "contact/a") in page.text("#view .list")
        page.find("#view .list a").click()
        page.wait(lambda: "Take the change of" in page.text("#view"))
        page.click("Take the change of", f"article[aria-label$=', {member}'] button")
        page.wait(lambda: page.text("#view h2") == 'Decide a conflict in "contact/a"')
        assert page.script(said) == "The decision was saved as a new version."
        page.wait(lambda: "edited here" in page.text(".sizer"))
        assert "The application is at another one" in page.text("#view")
    page.driver.refresh()
    page.wait(lambda: page.text("#count") == "7 versions" and page.text("#view h2") == 'Decide a conflict in "contact/a"')
    assert page.text("#said") == "" and page.text("#live") == "Live, editing on"
    page.go("#/conflicts", "There are none.")
    look(page, "edited-here")
    page.click("Undo")
    page.wait(lambda: page.text("#count") == "8 versions")
    assert page.script(said) == 'Taken back: Decide a conflict in "contact/a".'
    store.reload()
    assert store.most_recent_head is not None
    assert json.loads(store.at(store.most_recent_head)["contact/a"]) in ({"x": 1, "y": 2}, {"x": 2, "y": 1})

    # Text that is not JSON is not saved without a confirmation, and the field says so.
    page.go("#/values/@?id=contact%2Fa", '"x"')
    page.click("Edit", ".shown button")
    field = page.wait(lambda: page.find("textarea"))
    field.clear()
    field.send_keys('{"x": 1,}')
    page.click("Save as a new version")
    page.wait(lambda: "This is not JSON (line 1, column" in page.text("#edit-problem"))
    page.driver.get_log("browser")  # it says that a request was refused
    assert page.script("return document.activeElement.tagName") == "TEXTAREA" and field.get_attribute("value") == '{"x": 1,}'
    look(page, "no-json", narrow=True)
    field.clear()
    field.send_keys('{"x": 7}')
    assert page.text("#edit-problem") == ""
    page.script("const one = [...document.querySelectorAll('.shown button')].find((b) => b.textContent.startsWith('Save'));"
                "one.click(); one.click()")
    page.wait(lambda: "7" in page.text(".differences"))
    page.wait(lambda: page.text("#count") == "9 versions")


def test_large_json_has_lines_and_narrow_bytes_have_their_text(show: Open) -> None:
    def fill(store: llvs.Store) -> llvs.Version:
        large = json.dumps({"list": list(range(50_000)), "end": "\u202eend"}, ensure_ascii=False).encode()
        base = store.make_version(insert={
            "__llvs_schema": stores.RULES, "large": large, "raw": bytes(range(200)), "plan/a": b"a cat\nand\n"})
        sides = [store.make_version(base, update={"plan/a": text}) for text in (b"a fox\nand\n", b"a bee\nand\n")]
        return store.merge(*sides)

    page, _, merge = show(fill)
    page.go("#/values/@?id=large", "JSON")
    page.wait(lambda: page.text("pre.value").startswith('{\n  "list": [\n    0,\n    1,')
              and '"end": "\ufffdend"' in page.text("pre.value"))
    assert len(page.all("pre.value *")) == 0
    page.go(f"#/merge/{merge.id}", "decision")
    assert page.text("article .base pre") == "a cat"
    resize(page.driver, 390, 800)
    try:
        page.go("#/values/@?id=raw", "00000000  00 01 02 03  \u00b7")
        assert page.script("const one = document.querySelector('pre.value'); return one.scrollWidth <= one.clientWidth")
    finally:
        resize(page.driver, 1440, 900)


def test_a_merge_shows_pictures_words_and_who_wrote_them(show: Open) -> None:
    def fill(store: llvs.Store) -> tuple[llvs.Version, llvs.Version, llvs.Version]:
        notes = "Sings alto. Her studio is open on Mondays. Bring cake."
        base = store.make_version(timestamp=stores.BEGIN, insert={
            "__llvs_schema": stores.RULES, "photo": stores.picture(9, 9, (1, 2, 3)), " ": b"a space",
            "contact/ann": stores.card(notes=notes)})
        sides = [store.make_version(base, timestamp=stores.BEGIN + at, metadata={"author": who, "device": device}, update={
            "photo": stores.picture(9, 9, (0, 0, at)),
            "contact/ann": stores.card(notes=notes.replace("Mondays", day).replace("Bring", bring)),
        }) for at, who, device, day, bring in ((5, "ada", "phone", "Sundays", "Bring"), (9, "ben", "laptop", "Fridays", "Take"))]
        merge = store.merge(*sides)
        other = store.make_version(base, timestamp=stores.BEGIN + 3, update={" ": b"b", "x": b"", "y": b""})
        # The device's clock was ahead, so the version sorts after later ones. Its own time is shown nevertheless.
        ahead = store.make_version(base, timestamp=time.time() + 9 * 86400, metadata={"message": "ahead"})
        store.make_version(ahead, metadata={"message": "made first"})
        store.make_version(base, metadata={"message": "made last"})
        return merge, other, base

    page, _, (merge, other, base) = show(fill, "--write")
    page.go(f"#/merge/{merge.id}", "Who wrote what")
    assert page.text("#view h2") == "Merge of ben on laptop\u2019s and ada on phone\u2019s changes"
    page.wait(lambda: page.script("return [...document.querySelectorAll('article .thumb img')].map((one) => one.naturalWidth)") == [9] * 4)
    marked = [[one.text for one in column.find_elements("css selector", "mark")] for column in page.all("article .four")[0].find_elements(
        "css selector", ".first, .second")]
    assert marked == [["Fridays", "Take"], ["Sundays"]]
    columns = [one.text for one in page.all("article .four")[0].find_elements("css selector", ".first pre, .second pre")]
    assert columns == [f"Sings alto. Her studio is open on {end}" for end in ("Fridays. Take cake.", "Sundays. Bring cake.")]
    assert [(one.text, one.get_attribute("title")) for one in page.all(".written pre ins")] == [
        ("Fridays", "ben on laptop"), ("Take", "ben on laptop")]
    assert page.all("article .reason")[0].text == "both rewrote the same words"
    look(page, "merge-of-pictures", narrow=True)
    page.go("#/values/@?id=%20", "stored by")
    assert page.script("const one = document.querySelector('.tree a bdi.blank'); return one.getBoundingClientRect().width") > 3

    # Heads are sorted by the displayed time, the newest first. A version without a description is named after its changes.
    page.go("#/heads", "4 heads")
    assert [one.text for one in page.all("#view .list a > .clip")] == [
        "made last", "made first", "Merge of ben on laptop\u2019s and ada on phone\u2019s changes", 'Change " ", x and more']
    page.go(f"#/compare/{merge.id}/{other.id}", "Preview a merge of these two")
    page.click("Preview a merge of these two")
    page.wait(lambda: page.text("#view h2") == "Preview of a merge")
    page.click("Make this merge")
    page.wait(lambda: "The merge was made as a new version." in page.text("#said") and page.text("#count") == "9 versions")


def test_answers_that_arrive_in_another_order(show: Open) -> None:
    """The answer to the last request is shown, whichever answer arrives last."""
    def fill(store: llvs.Store) -> llvs.Version:
        raw = b"\xf1" * 512 + b"\xf2" * 512 + b"\xf3" * 512
        base = store.make_version(insert={"text": b"one", "raw": raw, **{f"many/{n:03}": b"" for n in range(450)}})
        return store.make_version(base, update={"text": b"two"})

    page, store, made = show(fill, "--write")
    # Pages of bytes.
    page.go("#/values/@?id=raw", "00000000  f1 f1")
    page.hold("offset=512")
    page.script("const one = [...document.querySelectorAll('.shown button')].find((b) => b.textContent === 'After');"
                "one.click(); one.click()")
    page.wait(lambda: page.text("pre.value").startswith("00000400  f3"))
    page.release()
    assert page.text("pre.value").startswith("00000400  f3")
    # A field to edit a value, before the value itself has arrived.
    page.hold("compare/value")
    page.go("#/values/@?id=text")
    page.click("Edit", ".shown button")
    page.wait(lambda: page.all("textarea"))
    page.find("textarea").send_keys(" and three")
    page.release()
    assert page.find("textarea").get_attribute("value") == "two and three"
    # A list that is requested again before it has arrived, because of news.
    page.hold("api/heads")
    page.go("#/heads")
    page.held()
    store.make_version(made.predecessors[0], update={"text": b"three"})
    page.wait(lambda: "2 heads" in page.text("#view"))
    page.release()
    assert "2 heads" in page.text("#view")
    # Rows of the history.
    page.hold("api/history")
    store.make_version(made, update={"text": b"four"})
    page.held()
    store.make_version(made, update={"text": b"five"})
    page.wait(lambda: page.text("#count") == "5 versions")
    page.release()
    assert page.text("#count") == "5 versions" and len(page.all(".version:not([hidden])")) == 5
    # More of a list, by a second click while the first is on its way.
    page.go("#/values/@")
    page.wait(lambda: page.all(".tree details"))
    page.click("many/", "summary")
    page.wait(lambda: len(page.all(".tree .tree a")) == 200)
    page.script("const one = [...document.querySelectorAll('.tree button')].at(-1); one.click(); one.click()")
    page.wait(lambda: len(page.all(".tree .tree a")) > 200)
    page.drawn()
    assert len(page.all(".tree .tree a")) == 400


def test_lists_in_a_narrow_view_and_a_decision_that_was_made(show: Open) -> None:
    page, store, made = show(stores.story, "--write")
    page.go(f"#/merge/{made['merge'].id}", "Who wrote what")
    page.click("Go to the 3 decisions")
    page.wait(lambda: page.script("return document.activeElement.getAttribute('aria-label')") == "Conflict in contact/ann, phone")
    top = "return document.querySelector('article').getBoundingClientRect().top"
    assert 0 <= page.script(top) < 300
    page.click("Take the change of phone")
    page.wait(lambda: page.text("#view h2") == 'Decide a conflict in "contact/ann"')
    page.driver.back()
    page.wait(lambda: "This was changed since the merge" in page.text("article[aria-label$=', phone']"))
    buttons = "article[aria-label$=', phone'] button, article[aria-label$=', phone'] a.button"
    assert [one.text for one in page.all(buttons)] == ["Edit the value"], "nothing that would be refused is offered"
    page.press("u")
    page.wait(lambda: page.text("#view h2").startswith("Undo: "))

    cut = ("return [...document.querySelectorAll(arguments[0])].filter((one) => one.scrollWidth > one.clientWidth)"
           ".map((one) => one.textContent)")
    try:
        for wide in (390, 800):
            resize(page.driver, wide, 800)
            for place in ("heads", "conflicts", "search?q=ann", "compare/@~1/@"):
                page.go("#/" + place)
                page.wait(lambda: page.all("#view .list a"))
                assert page.script(cut, "#view .list .clip") == [], (wide, place)
            page.go("#/")
            page.wait(lambda: page.script("return document.querySelector('.version .what').clientWidth") >= 80, str(wide))
            edge = "return [...document.querySelectorAll('.version:not([hidden]) .when')].map((one) => one.getBoundingClientRect().right)"
            inside = page.script("return document.getElementById('scroller').getBoundingClientRect().right")
            assert max(page.script(edge)) <= inside, wide
    finally:
        resize(page.driver, 1440, 900)
    # A redo whose answer arrives late does not lead away from where the user went meanwhile.
    page.hold("change/redo")
    page.click("Redo")
    page.held()
    page.go("#/heads", "heads")
    page.release()
    assert page.script("return location.hash") == "#/heads"


def test_the_words_of_a_merge_are_in_sight(show: Open) -> None:
    def fill(store: llvs.Store) -> llvs.Version:
        lines = {f"line {number:02}": number for number in range(40)}
        base = store.make_version(insert={"__llvs_schema": stores.RULES, "contact/long": json.dumps({**lines, "town": "Ulm"}).encode()})
        towns = (json.dumps({**lines, "town": town}).encode() for town in ("Bonn", "Bern"))
        return store.merge(*(store.make_version(base, update={"contact/long": town}) for town in towns))

    page, _, merge = show(fill)
    page.go(f"#/merge/{merge.id}", "Who wrote what")
    assert "Go to the decision" in page.text("#view")
    inside = ("const [text, word] = ['.written pre', '.written pre ins'].map((one) => document.querySelector(one).getBoundingClientRect());"
              "return word.top >= text.top && word.bottom <= text.bottom")
    assert page.script(inside)


def test_a_head_that_is_chosen_is_in_sight(show: Open) -> None:
    name = "Incorporated" * 20

    def fill(store: llvs.Store) -> llvs.Version:
        stores.long(store, 400, 50)
        base = store.make_version(store.most_recent_head, update={
            "__llvs_schema": stores.RULES, name: b"1", "contact/" + name: b'{"name":"x"}'}, branch=name[:60],
                                  metadata={"author": name, "message": "Long " + name, name: name})
        ada, ben = (store.make_version(base, update={"contact/" + name: json.dumps({"name": who + name}).encode()},
                                       metadata={"author": who + name}) for who in ("ada", "ben"))
        return store.merge(ada, ben)

    page, store, merge = show(fill, "--write")
    # Beside long names and many lanes nothing is outside of the visible part.
    outside = ("return [document.getElementById('view'),"
               " ...document.querySelectorAll('#view .list a, #view .tree a, .version:not([hidden])')]"
               ".filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth).map((one) => one.textContent.slice(0, 99))")
    lines = ("return [...document.querySelectorAll('#view .list a > code, #view .tree .push')]"
             ".map((one) => one.getBoundingClientRect().height).filter((high) => high > 32)")
    try:
        for wide in (390, 800, 1400):
            resize(page.driver, wide, 900)
            for place in (f"version/{merge.predecessors[0]}", f"merge/{merge.id}", "heads", f"values/@?id={name}",
                          f"compare/@~1/{merge.id}", "conflicts", "exchanges", f"search?q={name}"):
                page.go("#/" + place)
                page.wait(lambda: page.script("return document.getElementById('view').dataset.view") == re.split(r"\W", place)[0], place)
                page.wait(lambda: "Incorporated" in page.text("#view"), place)
                page.drawn()
                assert page.script(outside) == [] and page.script(lines) == [], (wide, place)
    finally:
        resize(page.driver, 1440, 900)
    page.go("#/heads", "heads")
    page.all("#view .list a")[-1].click()
    page.wait(lambda: page.all(".version[aria-selected='true']"))
    inside = ("const one = document.querySelector('.version[aria-selected=true]').getBoundingClientRect(),"
              "all = document.getElementById('scroller').getBoundingClientRect(); return one.top >= all.top && one.bottom <= all.bottom")
    page.wait(lambda: page.script(inside))


def test_the_history_is_replayed(show: Open) -> None:
    page, _, made = show()
    rows = "return [...document.querySelectorAll('.version')].filter((one) => !one.hidden).length"
    # The versions that are shown, step by step; the replay is paused at the merge.
    page.script("window.steps = []; addEventListener('hashchange', () => { steps.push(location.hash.split('/')[2]);"
                "if (location.hash.startsWith('#/merge/')) document.getElementById('replay').click(); })")
    page.click("Play", "#replay")
    page.wait(lambda: "Who wrote what" in page.text("#view") and page.script(rows) == 7)
    written = [(one.text, one.get_attribute("title")) for one in page.all(".written pre ins")]
    for word, device in (("choir", "phone"), ("Friday", "tablet"), ("Sings alto", "tablet"), ("1000", "tablet")):
        assert [who for text, who in written if word in text] == [device], (word, written)
    assert page.text("#replay") == "Play"
    assert page.script("return steps") == [made[name].id for name in ("first", "second", "third", "draft", "phone", "tablet", "merge")]
    look(page, "replay")
    page.press("p")
    page.wait(lambda: page.text("#view h2") == "Cleo's birthday" and page.script(rows) == 8 and page.text("#replay") == "Play")


def test_everything_with_the_keyboard_alone(show: Open) -> None:
    page, store, made = show(stores.story, "--write")
    focused = "const one = document.activeElement; return one.getAttribute('aria-label') || one.textContent"

    def tab_to(text: str, most: int = 25) -> None:
        """Presses the Tab key until the element with a text has the focus, at most this many times."""
        for _ in range(most):
            page.press(page.KEYS.TAB)
            if text in page.script(focused):
                return
        raise AssertionError(f"{text} is not reached; the focus is at {page.script(focused)}")

    # Through the history, and a search.
    page.press("j")
    page.wait(lambda: page.text("#view h2").startswith("Merge of"))
    page.press("/", *"moved", page.KEYS.ENTER)
    page.wait(lambda: "Found for" in page.text("#view"))
    tab_to("Ann has moved")
    page.press(page.KEYS.ENTER)
    page.wait(lambda: page.text("#view h2") == "Ann has moved")
    # Decide. The merge is two rows above, and its buttons follow its contents.
    page.go(f"#/merge/{made['merge'].id}", "Who wrote what")
    tab_to("Take the change of phone")
    page.press(page.KEYS.ENTER)
    page.wait(lambda: page.text("#view h2") == 'Decide a conflict in "contact/ann"')
    # Undo.
    page.press("u")
    page.wait(lambda: page.text("#view h2") == 'Undo: Decide a conflict in "contact/ann"')
    # Edit.
    page.go("#/values/@?id=settings%2Ftheme", '"dark"')
    tab_to("Edit")
    page.press(page.KEYS.ENTER)
    page.wait(lambda: page.script("return document.activeElement.tagName") == "TEXTAREA")
    page.press(page.KEYS.END, page.KEYS.BACKSPACE, *'er"')
    tab_to("Save as a new version", 2)
    page.press(page.KEYS.ENTER)
    page.wait(lambda: '"darker"' in page.text(".differences"))

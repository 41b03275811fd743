// The history, drawn as it scrolls: the page contains only the visible rows, whatever the number of versions.

import { get } from "./api.js";
import { el, named, spoken } from "./dom.js";
import { Graph, width } from "./graph.js";
import { bytes, clockNote, counted, exactly, number, stamp } from "./time.js";

const HIGH = 40;
const PAGE = 100;
const KEPT = 40;

/** The title of a version: what it did, as far as its metadata describe it. */
export function titleOf(version) {
  if (version.what) return version.what.split("\n", 1)[0];
  if (version.isEmptyRoot) return "Empty root";
  if (version.predecessors.length > 1) return titleOfMerge(...(version.sides ?? []));
  if (!version.predecessors.length) return "First version";
  // A space at an end would be invisible.
  const ids = (version.ids ?? []).map((id) => (id === id.trim() && id ? id : JSON.stringify(id)));
  return ids.length ? `Change ${ids.slice(0, 2).join(", ")}${ids.length > 2 ? " and more" : ""}` : "Saved without a change";
}

function titleOfMerge(first, second) {
  if (!first || !second) return "Merge";
  return first === second ? `Merge of changes by ${first}` : `Merge of ${first}\u2019s and ${second}\u2019s changes`;
}

export class History {
  /** onChoose(row): is called when the user chooses a version, by mouse or keyboard. */
  constructor(scroller, onChoose) {
    this.scroller = scroller;
    this.sizer = scroller.querySelector(".sizer");
    this.graph = new Graph(scroller.querySelector("canvas"));
    this.graph.again = () => this.soon();
    this.onChoose = onChoose;
    this.pages = new Map();
    this.loading = new Map();
    this.pool = [];
    this.total = 0;
    this.lanes = 1;
    this.generation = 0;
    this.renewals = this.renewed = 0;
    this.chosen = null;
    /** The number of newest rows that are not shown: a replay shows them later. */
    this.hidden = 0;
    scroller.addEventListener("scroll", () => this.soon(), { passive: true });
    new ResizeObserver(() => this.soon()).observe(scroller);
    scroller.addEventListener("click", (event) => {
      const row = event.target.closest(".version")?.shown;
      if (row) this.onChoose(row);
    });
  }

  rowAt(place) {
    return this.pages.get(Math.floor(place / PAGE))?.[place % PAGE];
  }

  /** The chosen row, if it is loaded. */
  get row() {
    if (!this.chosen) return null;
    for (const page of this.pages.values()) for (const row of page) if (row.id === this.chosen) return row;
    return null;
  }

  soon() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  /** Called when the store has changed: requests all rows again, and keeps the row at the top in its place. */
  async renew() {
    const number = ++this.renewals;
    const place = Math.floor(this.scroller.scrollTop / HIGH);
    const anchor = place > 0 ? this.rowAt(place)?.id : null;
    const offset = this.scroller.scrollTop - place * HIGH;
    const old = this.pages;
    const first = await get("history", { first: 0, count: PAGE });
    const found = anchor ? await get("row", { version: anchor }).catch(() => null) : null;
    const at = found?.row ?? 0;
    const page = Math.floor(at / PAGE);
    const answer = page ? await get("history", { first: page * PAGE, count: PAGE }) : first;
    // A later call has shown its rows already.
    if (number < this.renewed) return;
    this.renewed = number;
    this.pages = new Map([[0, first.rows]]);
    if (answer.rows.length) this.pages.set(page, answer.rows);
    this.taken(answer);
    if (anchor && old.size) this.scroller.scrollTop = at * HIGH + offset;
    for (const line of this.pool) line.shown = undefined;
    this.draw();
  }

  taken(answer) {
    this.generation = answer.generation;
    this.lanes = Math.max(this.lanes, Math.min(answer.lanes, 21));
    if (answer.total !== this.total) {
      this.total = answer.total;
      this.sizer.style.height = this.total * HIGH + "px";
      // For screen readers, a list box without options is not a list box.
      this.scroller.setAttribute("role", this.total ? "listbox" : "group");
      document.getElementById("count").textContent = counted(this.total, "version");
    }
    this.scroller.style.setProperty("--graph", width(this.lanes) + "px");
  }

  /** Loads a page, unless another call is loading it. Resolves when the page is loaded, or loading it failed. */
  load(page) {
    if (this.pages.has(page)) return undefined;
    if (!this.loading.has(page)) {
      this.loading.set(page, this.read(page).finally(() => {
        this.loading.delete(page);
        this.soon();
      }));
    }
    return this.loading.get(page);
  }

  async read(page) {
    const count = document.getElementById("count");
    try {
      for (;;) {
        const answer = await get("history", { first: page * PAGE, count: PAGE });
        // After the last news the rows have other numbers.
        if (answer.generation < this.generation) {
          await new Promise((later) => setTimeout(later, 50));
          continue;
        }
        if (answer.rows.length >= Math.min(PAGE, answer.total - page * PAGE)) {
          count.textContent = counted(answer.total, "version");
          this.pages.set(page, answer.rows);
          this.taken(answer);
          this.forget(page);
          return;
        }
        // The server is still reading the history: show its progress, and request the rows again.
        count.textContent = `Reading: ${number(answer.known)} of ${number(answer.total)} versions`;
        await new Promise((later) => setTimeout(later, 50));
      }
    } catch (problem) {
      count.textContent = problem.message;
    }
  }

  /** Drops pages far from the visible one, so that memory stays bounded. */
  forget(around) {
    while (this.pages.size > KEPT) {
      let farthest = around;
      for (const page of this.pages.keys()) if (Math.abs(page - around) > Math.abs(farthest - around)) farthest = page;
      this.pages.delete(farthest);
    }
  }

  draw() {
    const high = this.scroller.clientHeight, room = this.scroller.clientWidth - width(this.lanes);
    const told = room < 200 ? "none" : room < 300 ? "little" : room < 480 ? "some" : "much";
    if (this.scroller.dataset.room !== told) this.scroller.dataset.room = told;
    const top = this.scroller.scrollTop;
    const first = Math.max(this.hidden, Math.floor(top / HIGH) - 2);
    const last = Math.min(this.total - 1, Math.ceil((top + high) / HIGH) + 2);
    const wanted = Math.max(0, last - first + 1);
    while (this.pool.length < wanted) this.pool.push(this.makeRow());
    const used = new Set();
    for (let place = first; place <= last; place++) {
      const line = this.pool[place % this.pool.length];
      used.add(line);
      this.show(line, place);
    }
    for (const line of this.pool) if (!used.has(line)) line.hidden = true;
    this.graph.resize(width(this.lanes), high);
    this.graph.draw((place) => this.rowAt(place), first, last, top, HIGH, this.lanes);
    if (this.total) {
      this.load(Math.floor(first / PAGE));
      this.load(Math.floor(Math.max(last, 0) / PAGE));
    }
  }

  makeRow() {
    const line = el("div", { class: "version", role: "option" });
    line.parts = {
      graph: el("span", { class: "graph" }), chips: el("span", { class: "row-of" }), what: el("span", { class: "what clip" }),
      who: el("span", { class: "who clip" }), bytes: el("span", { class: "bytes number" }), when: el("span", { class: "when" }),
      short: el("span", { class: "short" }),
    };
    line.append(...Object.values(line.parts));
    this.sizer.append(line);
    return line;
  }

  show(line, place) {
    const row = this.rowAt(place);
    line.hidden = false;
    const isChosen = Boolean(row) && row.id === this.chosen;
    if (line.place === place && line.shown === row && line.isChosen === isChosen && row) return;
    [line.place, line.shown, line.isChosen] = [place, row, isChosen];
    line.style.transform = `translateY(${place * HIGH}px)`;
    line.id = "version-" + place;
    line.setAttribute("aria-setsize", this.total);
    line.setAttribute("aria-posinset", place + 1);
    line.setAttribute("aria-selected", isChosen);
    line.classList.toggle("waiting", !row);
    const parts = line.parts;
    if (!row) {
      line.setAttribute("aria-label", "Loading");
      for (const part of Object.values(parts)) part.textContent = "";
      return;
    }
    const said = row.said ??= prepared(row);
    line.setAttribute("aria-label", said.label);
    if (isChosen) this.scroller.setAttribute("aria-activedescendant", line.id);
    parts.chips.replaceChildren(...said.chips);
    parts.what.textContent = said.title;
    parts.who.textContent = said.who;
    parts.bytes.textContent = said.bytes;
    parts.when.textContent = row.isEmptyRoot ? "" : (said.note ? "\u2248 " : "") + stamp(row.time);
    parts.when.title = said.exactly + (said.note ? "\n" + said.note : "");
    parts.when.classList.toggle("doubtful", Boolean(said.note));
    parts.short.textContent = row.id.slice(0, 8);
  }

  /** Shows all rows except the `count` newest ones, and scrolls to the first of them. Returns that row. */
  async hide(count) {
    if (!this.rowAt(count)) await this.load(Math.floor(count / PAGE));
    this.hidden = count;
    this.scroller.scrollTop = Math.max(0, count * HIGH - this.scroller.clientHeight / 3);
    this.soon();
    return this.rowAt(count);
  }

  /** Marks a version, and scrolls to it. */
  async choose(id, bring = true) {
    this.chosen = id;
    this.soon();
    if (!id || !bring) return;
    const row = this.row;
    const place = row ? row.row : (await get("row", { version: id }).catch(() => null))?.row;
    if (place === undefined || place === null || this.chosen !== id) return;
    const top = place * HIGH;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop || top + HIGH > scrollTop + clientHeight) this.scroller.scrollTop = Math.max(0, top - clientHeight / 3);
    this.soon();
  }

  /** Returns the row that is `by` rows below the chosen one. */
  async beside(by) {
    // If the chosen row is not loaded, start from the visible rows. A step to either end works from anywhere.
    const from = this.row?.row ?? (Math.abs(by) < this.total ? Math.floor(this.scroller.scrollTop / HIGH) - by : 0);
    const place = Math.min(this.total - 1, Math.max(0, from + by));
    if (!this.rowAt(place)) await this.load(Math.floor(place / PAGE));
    return this.rowAt(place);
  }
}

/** The texts of a row, made once. Names are cut: a row has one line, and authors may have made them long. */
function prepared(row) {
  const title = spoken(titleOf(row).slice(0, 300));
  const who = spoken(row.who.slice(0, 100));
  const date = exactly(row.time);
  const chips = chipsOf(row), note = row.isEmptyRoot ? "" : clockNote(row);
  if (row.beyond > 0 && row.lane >= 20) chips.push(el("span", { class: "muted small" }, `+${row.beyond}`));
  return { title, who, exactly: date, note, chips, bytes: row.bytes ? bytes(row.bytes) : "",
    label: `${title}, ${who}, ${date}${row.head ? ", head" : ""}${note ? ". " + note : ""}` };
}

/** The marks of a version: current, edited here, head, branch. */
export function chipsOf(row) {
  return [
    row.current && el("span", { class: "chip here", title: "The version that the application is at" }, "current"),
    row.work && !row.current && el("span", { class: "chip here", title: "What you change here goes on from this version" }, "edited here"),
    row.branch !== null && row.branch !== undefined && el("span", { class: "chip branch", title: "On the branch " + spoken(row.branch) },
      ...named(row.branch)),
    row.head && !row.current && !row.work && row.branch === null &&
      el("span", { class: "chip", title: "A head: no other version was saved on it yet" }, "head"),
  ].filter(Boolean);
}

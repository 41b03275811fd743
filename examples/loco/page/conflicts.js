// What merges had to decide: both sides, who wrote them and when, and which stands. Choosing is a save like any other.

import { el, empty, named } from "/dom.js";
import { act } from "/parts.js";
import { exactly, when } from "/time.js";

function side(id, conflict, one) {
  const about = { id, version: conflict.version, mark: conflict.mark };
  return el("div", { class: `side ${one.side}` + (one.stands ? "" : " lost") },
    el("header", {}, el("b", {}, named(one.by)),
      one.time ? el("time", { class: "muted small", title: exactly(one.time) }, when(one.time)) : null,
      one.stands ? el("span", { class: "chip here push" }, "stands") : null),
    el("div", { class: "value" }, one.value === null ? el("em", {}, conflict.path.length ? "empty" : "deleted") : one.value === "" ? "empty"
      : el("bdi", {}, one.value)),
    el("button", {
      type: "button", class: one.stands ? "primary" : "",
      onclick: () => act("choose", { ...about, choice: one.stands ? "result" : one.side }),
    }, one.stands ? "Keep this" : "Take this instead"));
}

/** One conflict, to be looked at and decided. */
export function conflictCard(id, conflict, name = null) {
  return el("article", { class: "card conflict" },
    el("h3", {}, name === null ? `Which ${conflict.what}?`
      : [el("a", { href: "#/contact/" + encodeURIComponent(id) }, named(name)), `: which ${conflict.what}?`]),
    el("div", { class: "muted" }, conflict.why, conflict.base ? [" Before: ", el("bdi", {}, conflict.base), "."] : null),
    el("div", { class: "sides" }, conflict.sides.map((one) => side(id, conflict, one))),
    conflict.result === null ? null : el("p", { class: "row-of" }, "What stands now: ", el("bdi", {}, conflict.result),
      el("button", {
        type: "button", class: "primary",
        onclick: () => act("choose", { id, version: conflict.version, mark: conflict.mark, choice: "result" }),
      }, "Keep it")));
}

export function showConflicts(conflicts) {
  if (!conflicts.length) {
    return empty("Nothing to decide.", "When two devices change the same thing while they are apart, both sides are shown here.");
  }
  return el("div", {}, el("div", { class: "head" }, el("h2", {}, "Conflicts")),
    conflicts.map((conflict) => conflictCard(conflict.contact, conflict, conflict.name)));
}

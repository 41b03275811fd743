// Conflicts of merges: both sides, their authors and times, and which side prevails. A choice is an ordinary save.

import { facts } from "/contact.js";
import { el, empty, named } from "/dom.js";
import { act, face } from "/parts.js";
import { exactly, when } from "/time.js";

/** The content of a side: a picture, a text with its differences marked, the edit of what the other side deleted, or a value. */
function valueOf(conflict, one) {
  if (one.changed) {
    return el("div", { class: "edited" }, el("p", { class: "muted small" }, "What it changed is marked:"),
      facts(one.changed.card, one.changed.members));
  }
  if (conflict.member === "photo") return one.photo ? face({ name: "", photo: one.photo }, "", "large") : el("em", {}, "no photo");
  if (one.value === null) return el("em", {}, conflict.isDeletion ? "deleted" : "empty");
  if (one.words) return el("bdi", {}, one.words.map(([sign, text]) => (sign === "=" ? text : el("mark", {}, text))));
  return one.value === "" ? el("em", {}, "empty") : el("bdi", {}, one.value);
}

function choose(id, conflict, choice) {
  return act("choose", { id, version: conflict.version, marks: conflict.marks, choice });
}

function side(id, conflict, one) {
  const isRemoval = conflict.isDeletion && one.value === null;
  const taking = one.stands ? "Keep this" : isRemoval ? "Delete instead" : "Take this instead";
  return el("div", { class: `side ${one.side}` + (one.stands ? "" : " lost") },
    el("header", {}, el("b", {}, named(one.by)),
      one.time ? el("time", { class: "muted small", title: exactly(one.time) }, when(one.time)) : null,
      one.stands ? el("span", { class: "chip here push" }, "shown now") : null),
    el("div", { class: "value" }, valueOf(conflict, one)),
    el("button", {
      type: "button", class: one.stands ? "primary" : "", onclick: () => choose(id, conflict, one.stands ? "result" : one.side),
    }, taking));
}

/** The question of a conflict. name: of the contact, if the page is not about it alone. */
function questionOf(id, conflict, name) {
  const link = (text) => (name === null ? named(text) : el("a", { href: "#/contact/" + encodeURIComponent(id) }, named(text)));
  if (!conflict.path.length && conflict.isDeletion) {
    const kept = conflict.sides.find((one) => one.changed)?.changed.card.name;
    return ["Keep ", link(kept ?? name ?? "this contact"), ", or delete?"];
  }
  const which = conflict.isDeletion ? `Keep the ${conflict.what}, or delete it?`
    : conflict.member === "phones" && conflict.what !== "phone" ? "Which phones?" : `Which ${conflict.what}?`;
  return name === null ? which : [link(name), ": " + which[0].toLowerCase() + which.slice(1)];
}

/** One conflict, with buttons that decide it. */
export function conflictCard(id, conflict, name = null) {
  const shown = conflict.sides.find((one) => one.stands);
  return el("article", { class: "card conflict" },
    el("h3", {}, questionOf(id, conflict, name)),
    el("div", { class: "muted" }, conflict.why, shown ? [" Shown now: ", el("bdi", {}, shown.by), "\u2019s."] : null,
      conflict.base ? [" Before: ", el("bdi", {}, conflict.base), /[.!?]$/.test(conflict.base) ? "" : "."] : null),
    el("div", { class: "sides" }, conflict.sides.map((one) => side(id, conflict, one))),
    conflict.result === null ? null : el("p", { class: "row-of" }, "Shown now, made of both: ", el("bdi", {}, conflict.result),
      el("button", { type: "button", class: "primary", onclick: () => choose(id, conflict, "result") }, "Keep it")));
}

export function showConflicts(conflicts) {
  if (!conflicts.length) {
    return empty("Nothing to decide.", "When two devices change the same thing while they are apart, both sides are shown here.");
  }
  return el("div", {}, el("div", { class: "head" }, el("h2", {}, "Conflicts")),
    conflicts.map((conflict) => conflictCard(conflict.contact, conflict, conflict.name)));
}

// The history of a contact: each version, and the contact at that version.

import { facts } from "/contact.js";
import { el, empty, fill, named } from "/dom.js";
import { act, face } from "/parts.js";
import { exactly, when } from "/time.js";

/** chosen: the version to show, when the page is drawn again. onChoose(version): called when another one is shown. */
export function showHistory(id, past, chosen, onChoose) {
  const path = "#/contact/" + encodeURIComponent(id);
  if (!past.length) return empty("There is no such contact.", el("a", { href: "#/" }, "All contacts"));
  const shown = el("div", { class: "card" });
  const buttons = past.map((one) => el("li", {}, el("button", { type: "button", onclick: () => choose(one) },
    el("div", {}, named(one.what)),
    el("div", { class: "muted small" }, el("time", { title: exactly(one.time) }, when(one.time)), ", ", named(one.by)))));
  function choose(one) {
    onChoose(one.version);
    buttons.forEach((button, at) => button.firstChild.setAttribute("aria-pressed", String(past[at] === one)));
    fill(shown, el("div", { class: "row-of" }, el("h3", {}, exactly(one.time)),
      one.card && one !== past[0] ? el("button", {
        type: "button", class: "push",
        onclick: () => act("restore", { id, version: one.version }, () => { location.hash = path; }),
      }, "Restore this") : null),
    one.card ? el("div", {}, el("p", { class: "row-of" }, face(one.card, id, one.changed.includes("photo") ? "now" : ""),
      el("span", { class: "name" }, named(one.card.name)),
      one.changed.includes("photo") ? el("span", { class: "muted small" }, one.card.photo ? "another photo" : "the photo was removed")
        : null),
    facts(one.card, one.changed),
    one.changed.length ? el("p", { class: "legend small muted" }, el("span", { class: "now" }, "Shaded"), ": changed here.") : null)
      : el("p", { class: "muted" }, one.isUnreadable ? "This cannot be read: another program saved it." : "Deleted here."));
  }
  choose(past.find((one) => one.version === chosen) ?? past[0]);
  const name = past.find((one) => one.card)?.card.name ?? "a contact";
  return el("div", {},
    el("div", { class: "head" }, el("h2", {}, "History of ", named(name)), el("a", { class: "button", href: path }, "Back")),
    el("div", { class: "past" }, el("ol", {}, buttons), shown));
}

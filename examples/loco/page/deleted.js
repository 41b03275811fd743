// Deleted contacts: who deleted them, when, and a button that restores them.

import { el, empty, named, spoken } from "/dom.js";
import { act, face } from "/parts.js";
import { exactly, when } from "/time.js";

export function showDeleted(deleted) {
  if (!deleted.length) return empty("Nothing was deleted.", "What is deleted is listed here, and can be restored.");
  return el("div", {}, el("div", { class: "head" }, el("h2", {}, "Deleted")),
    el("ul", { class: "list card" }, deleted.map((one) => el("li", { class: "gone" }, face(one, one.id),
      el("span", { class: "what" }, el("span", { class: "name" }, named(one.name)),
        el("span", { class: "small muted" }, "Deleted by ", named(one.by), " ", el("time", { title: exactly(one.time) }, when(one.time)))),
      el("a", {
        class: "button", href: `#/contact/${encodeURIComponent(one.id)}/history`, "aria-label": "History of " + spoken(one.name),
      }, "History"),
      el("button", {
        type: "button", class: "primary", "aria-label": "Restore " + spoken(one.name), onclick: () => act("undelete", { id: one.id }),
      }, "Restore")))));
}

// One contact, with its conflicts.

import { conflictCard } from "/conflicts.js";
import { el, empty, named, say, spoken } from "/dom.js";
import { act, face } from "/parts.js";

/** A value for people; nothing for an empty one. */
function fact(name, value) {
  return value === null || value === "" ? null : [el("dt", {}, name), el("dd", {}, value)];
}

/** All members of a card; those in `changed` are marked. */
export function facts(card, changed = []) {
  const mark = (name, children) => children && [children[0], changed.includes(name) ? (children[1].classList.add("now"), children[1])
    : children[1]];
  return el("dl", { class: "facts" },
    mark("company", fact("Company", card.company && named(card.company))),
    mark("town", fact("Town", card.town && named(card.town))),
    mark("phones", card.phones.length ? fact("Phones", card.phones.map((phone) => el("div", { class: "phone" },
      el("span", {}, phone.label ? named(phone.label) : "phone"), el("span", {}, named(phone.number))))) : null),
    mark("email", fact("E-mail", card.email && named(card.email))),
    mark("tags", card.tags.length ? fact("Tags", el("span", { class: "row-of" }, card.tags.map((tag) => el("span", { class: "chip tag" },
      named(tag))))) : null),
    mark("notes", fact("Notes", card.notes && el("bdi", {}, card.notes))));
}

/** Deletes a contact. The message has a button that restores it. */
function remove(id, name) {
  return act("delete", { id }, () => {
    location.hash = "#/";
    say(`${spoken(name)} was deleted.`, { text: "Undo", run: () => act("undelete", { id }) });
  });
}

export function showContact(contact) {
  const { id, card } = contact;
  const path = "#/contact/" + encodeURIComponent(id);
  if (contact.problem) {
    return el("div", {}, el("div", { class: "head" }, el("h2", {}, "This contact cannot be read"),
      el("a", { class: "button primary", href: path + "/history" }, "History")),
    el("p", {}, "Another program saved something in its place that is no contact. Its history has what it was before, if it was one."),
    el("details", {}, el("summary", {}, "For programmers"), el("code", {}, named(contact.problem))));
  }
  if (!card && contact.isPast) return empty("This contact was not in the book at that time.", "Go to another time.");
  if (!card) {
    return empty("This contact was deleted.", el("p", {}, "Restore it as it was last, or as it was at a time in its ",
      el("a", { href: path + "/history" }, "history"), "."),
    el("button", { type: "button", class: "primary", onclick: () => act("undelete", { id }) }, "Restore"));
  }
  return el("div", {},
    el("div", { class: "head" }, face(card, id, "large"), el("div", {}, el("h2", {}, named(card.name)),
      el("div", { class: "muted" }, named([card.company, card.town].filter(Boolean).join(", ") || " "))),
    contact.isPast ? el("button", { type: "button", onclick: () => act("restore", { id, version: contact.at }) }, "Restore this contact")
      : el("div", { class: "row-of" }, el("a", { class: "button primary", href: path + "/edit" }, "Edit"),
        el("a", { class: "button", href: path + "/history" }, "History"),
        el("button", { type: "button", onclick: () => remove(id, card.name) }, "Delete"))),
    contact.conflicts.map((conflict) => conflictCard(id, conflict)),
    el("div", { class: "card" }, facts(card)),
    contact.groups.length ? el("div", { class: "row-of" }, el("span", { class: "muted small" }, "Groups"), contact.groups.map((group) =>
      el("button", {
        type: "button", class: "chip", "aria-pressed": String(group.isMember), disabled: contact.isPast,
        onclick: () => act("member", { group: group.id, id, isMember: !group.isMember }),
      }, named(group.name)))) : null);
}

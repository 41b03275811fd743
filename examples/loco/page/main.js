// The frame: the list, what is around it, and which view is shown. Each view has an address; news draw it again.

import { get } from "/api.js";
import { showConflicts } from "/conflicts.js";
import { showContact } from "/contact.js";
import { el, empty, fill, named, spoken } from "/dom.js";
import { showForm, showMeanwhile } from "/form.js";
import { showHistory } from "/history.js";
import { lightText, showSynced } from "/light.js";
import { act, face } from "/parts.js";
import { counted, exactly } from "/time.js";
import { enter, hear } from "/token.js";

const $ = (id) => document.getElementById(id);
const view = $("view");
let latest = null;
let drawn = 0;

function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query ?? "") };
}

const chosen = { group: "", tag: "" };

async function draw() {
  const number = ++drawn;
  const { parts } = place();
  const [what, id, how] = parts;
  document.body.classList.toggle("reading", parts.length > 0);
  let book;
  try {
    book = await get("book", { q: $("wanted").value, group: chosen.group, tag: chosen.tag });
    if (number !== drawn) return;
    frame(book, what === "contact" ? id : null);
    // A form that is open stays as it is, and says what came meanwhile.
    const address = parts.join("/");
    if ((how === "edit" || what === "new") && view.dataset.shown === address) {
      if (how === "edit") showMeanwhile(view, await get("contact", { id }));
      return;
    }
    const made = await content(what, id, how, book);
    if (number !== drawn) return;
    fill(view, parts.length ? el("a", { class: "back", href: "#/" }, "All contacts") : null, made);
    if (view.dataset.shown !== address) view.scrollTop = 0;
    view.dataset.shown = address;
    document.body.dataset.ready = address || "start";
  } catch (problem) {
    if (number === drawn) fill(view, el("p", { class: "problem" }, problem.message));
  }
}

async function content(what, id, how, book) {
  if (what === "new") return showForm(null);
  if (what === "conflicts") return showConflicts(await get("conflicts"));
  if (what === "synced") return showSynced(book.light);
  if (what === "contact" && how === "history") return showHistory(id, await get("history", { id }));
  if (what === "contact") return (how === "edit" ? showForm : showContact)(await get("contact", { id }));
  if (book.count) return empty("Nobody is chosen.", "Choose a contact from the list, or search with /.");
  return empty("The book is empty.", el("p", {}, "Add the first contact, or ",
    el("button", { type: "button", onclick: () => act("examples") }, "Take some examples"), " to look at."));
}

function frame(book, id) {
  latest = book;
  document.title = `LoCo on ${spoken(book.device)}`;
  fill($("device"), named(book.device));
  for (const word of ["undo", "redo"]) {
    $(word).disabled = book[word] === null;
    $(word).title = book[word] === null ? `There is nothing to ${word}` : `${word === "undo" ? "Undo" : "Redo"}: ${spoken(book[word])}`;
  }
  $("online").checked = book.light.isOnline;
  glow();
  around(book);
  const filters = [chosen.group && book.groups.find((group) => group.id === chosen.group)?.name, chosen.tag].filter(Boolean);
  $("count").textContent = counted(book.contacts.length, "contact") + (filters.length ? " in " + filters.map(spoken).join(", ") : "")
    + (book.unreadable ? `, ${book.unreadable} cannot be read` : "");
  const top = $("list").scrollTop;
  fill($("list"), book.contacts.length ? book.contacts.map((contact) => el("li", {}, el("a", {
    href: "#/contact/" + encodeURIComponent(contact.id), "aria-current": contact.id === id ? "true" : null,
  }, face(contact, contact.id), el("span", {}, el("span", { class: "name clip" }, named(contact.name)),
    el("span", { class: "small clip" }, contact.about ? named(contact.about) : "")),
  contact.conflicts ? el("span", { class: "asks", role: "img", "aria-label": "has a conflict", title: "Look at this" }) : null)))
    : el("li", {}, empty("No contacts here.", book.count ? "Search for something else, or choose another group." : "")));
  $("list").scrollTop = top;
}

function around(book) {
  const choice = (text, count, to, isChosen, more = "") => el("a", {
    href: "#/", class: more, "aria-current": isChosen ? "true" : null,
    onclick: (event) => { event.preventDefault(); Object.assign(chosen, { group: "", tag: "" }, to); draw(); },
  }, el("span", { class: "clip" }, named(text)), el("span", { class: "push" }, count));
  fill($("around"),
    choice("All contacts", book.count, {}, !chosen.group && !chosen.tag),
    book.conflicts ? el("a", { href: "#/conflicts", class: "asking", "aria-current": place().parts[0] === "conflicts" ? "true" : null },
      "Conflicts", el("span", { class: "push" }, book.conflicts)) : null,
    el("h2", {}, "Groups", el("button", { type: "button", class: "plain push", onclick: addGroup, "aria-label": "New group" }, "New")),
    book.groups.map((group) => choice(group.name, group.count, { group: group.id }, chosen.group === group.id)),
    book.groups.length ? null : el("p", { class: "muted small plain" }, "None yet."),
    book.tags.length ? el("h2", {}, "Tags") : null,
    book.tags.map((tag) => choice(tag.name, tag.count, { tag: tag.name }, chosen.tag === tag.name)));
}

function addGroup() {
  const field = el("input", { type: "text", "aria-label": "Name of the new group", placeholder: "Name" });
  const form = el("form", { onsubmit: (event) => { event.preventDefault(); act("group", { name: field.value }); } }, field);
  $("around").querySelector("h2").after(form);
  field.focus();
}

function glow() {
  if (!latest) return;
  const [state, text] = lightText(latest.light);
  $("light").className = "light " + state;
  $("light").textContent = text;
  $("light").title = latest.light.last ? "In step as of " + exactly(latest.light.last) : "Not synced yet";
}

$("undo").addEventListener("click", () => act("undo"));
$("redo").addEventListener("click", () => act("redo"));
$("online").addEventListener("change", (event) => act("online", { isOnline: event.target.checked }));
$("search").addEventListener("submit", (event) => event.preventDefault());
$("wanted").addEventListener("input", draw);
document.addEventListener("keydown", (event) => {
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.altKey) return;
  const isCommand = event.ctrlKey || event.metaKey;
  if (event.key === "/" && !isCommand) { event.preventDefault(); $("wanted").focus(); }
  if (event.key.toLowerCase() === "z" && isCommand) { event.preventDefault(); act(event.shiftKey ? "redo" : "undo"); }
});
addEventListener("hashchange", draw);
setInterval(glow, 1000);
try {
  await enter();
} catch (problem) {
  fill(view, el("p", { class: "problem" }, problem.message));
}
hear("/api/news", draw, () => { $("light").className = "light failed"; $("light").textContent = "LoCo was ended"; });
draw();

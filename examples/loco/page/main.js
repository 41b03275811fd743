// The frame: the list, the sections beside it, and the view. Each view has an address; news redraw it.

import { get } from "/api.js";
import { showConflicts } from "/conflicts.js";
import { showContact } from "/contact.js";
import { showDeleted } from "/deleted.js";
import { el, empty, fill, named, say, spoken } from "/dom.js";
import { hasDraft, showForm, showMeanwhile } from "/form.js";
import { showHistory } from "/history.js";
import { lightText, showSynced } from "/light.js";
import { act, face, refill } from "/parts.js";
import { Past } from "/past.js";
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
/** By contact, the version that is chosen in its history. */
const looked = new Map();
const NARROW = matchMedia("(max-width: 760px)");

/** The book at another time. The slider moves faster than the page draws, so drawings run one after the other. */
const past = new Past($("past"), async () => {
  isMoved = true;
  if (isMoving) return;
  isMoving = true;
  while (isMoved) {
    isMoved = false;
    await draw();
  }
  isMoving = false;
});
let isMoving = false, isMoved = false;

/** Draws the current state. Returns false if a later drawing began meanwhile, which replaces this one. */
async function draw() {
  const number = ++drawn;
  const { parts } = place();
  const [what, id, how] = parts;
  // The list and the cards show the other time; all other views show the current state.
  if (past.version && what && (what !== "contact" || how)) past.close();
  const then = past.version ?? "";
  document.body.classList.toggle("reading", parts.length > 0);
  let book;
  try {
    book = await get("book", { q: $("wanted").value, group: chosen.group, tag: chosen.tag, then });
    if (number !== drawn) return false;
    const address = parts.join("/"), isOther = view.dataset.shown !== address;
    frame(book, what === "contact" ? id : null, isOther);
    // An open form stays as it is, and shows what arrived meanwhile.
    const isForm = how === "edit" || what === "new";
    if (isForm && !isOther) {
      const now = how === "edit" ? await get("contact", { id }) : null;
      if (number !== drawn) return false;
      if (now) showMeanwhile(view, now);
      return true;
    }
    const { data, make } = await content(what, id, how, book, address, then);
    if (number !== drawn) return false;
    // After a step to another view the next Tab leads into that view, unless the user is typing a search.
    const focus = document.activeElement;
    const follows = isOther && !$("past").contains(focus) && view.dataset.shown !== undefined && focus !== $("wanted") && !groupForm;
    if (isOther && hasDraft(view.dataset.shown ?? "")) say("What you wrote is kept: open the form again to go on with it.");
    refill(view, [address, data], () => [parts.length ? el("a", { class: "back", href: "#/" }, "All contacts") : null, make()]);
    if (isOther) view.scrollTop = 0;
    view.dataset.shown = address;
    if (isForm) showMeanwhile(view, data ?? {});
    if (follows) (isForm ? $("field-name") ?? view : view).focus({ preventScroll: true });
    document.body.dataset.ready = address || "start";
  } catch (problem) {
    if (number !== drawn) return false;
    view.drawnOf = null;
    fill(view, el("p", { class: "problem" }, problem.message));
  }
  return true;
}

/** Opens the slider. Only the list and a contact can be shown at another time, so it leads there from all other views. */
function openPast() {
  const [what, id, how] = place().parts;
  if (what === "contact" && how) location.hash = "#/contact/" + encodeURIComponent(id);
  else if (what && what !== "contact") location.hash = "#/";
  return past.open().catch((problem) => say(problem.message));
}

/** Returns the data of a view, and the function that makes the view of them. The view is redrawn only if the data changed. */
async function content(what, id, how, book, address, then) {
  const of = (data, make) => ({ data, make: () => make(data) });
  const again = () => {
    view.dataset.shown = view.drawnOf = "";
    draw();
  };
  if (what === "new") return of(null, () => showForm(null, address, again));
  if (what === "conflicts") return of(await get("conflicts"), showConflicts);
  if (what === "deleted") return of(await get("deleted"), showDeleted);
  if (what === "synced") return of(book.light, showSynced);
  if (what === "contact" && how === "history") {
    return of(await get("history", { id }), (past) => showHistory(id, past, looked.get(id), (version) => looked.set(id, version)));
  }
  if (what === "contact" && how === "edit") return of(await get("contact", { id }), (contact) => showForm(contact, address, again));
  if (what === "contact") {
    looked.delete(id);
    return of(await get("contact", { id, then }), showContact);
  }
  if (book.count) return of("none", () => empty("Nobody is chosen.", "Choose a contact from the list, or search with /."));
  if (then) return of("empty then", () => empty("The book was empty then.", "Go to a later time."));
  return of("empty", () => empty("The book is empty.", "Add the first contact, or take some examples to look at."));
}

function examplesButton() {
  return el("button", { type: "button", onclick: () => act("examples") }, "Take some examples");
}

function frame(book, id, isOther) {
  latest = book;
  document.title = `LoCo on ${spoken(book.device)}`;
  if ($("device").textContent !== book.device) fill($("device"), named(book.device));
  for (const word of ["undo", "redo"]) {
    $(word).disabled = book[word] === null;
    $(word).title = book[word] === null ? `There is nothing to ${word}` : `${word === "undo" ? "Undo" : "Redo"}: ${spoken(book[word])}`;
  }
  $("online").checked = book.light.isOnline;
  $("online-text").textContent = book.light.isOnline ? "Online" : "Offline";
  glow();
  around(book);
  const group = book.groups.find((one) => one.id === chosen.group);
  const filters = [chosen.group && group?.name, chosen.tag].filter(Boolean);
  $("count").textContent = counted(book.contacts.length, "contact") + (filters.length ? " in " + filters.map(spoken).join(", ") : "")
    + (book.unreadable.length ? `, ${book.unreadable.length} cannot be read` : "");
  refill($("group-tools"), group ?? null, () => (group ? [
    el("button", { type: "button", class: "plain", onclick: () => nameGroup(group) }, "Rename"),
    el("button", { type: "button", class: "plain", onclick: () => removeGroup(group) }, "Delete group")] : []));
  const wanted = $("wanted").value.trim(), isAll = !wanted && !filters.length;
  refill($("list"), [book.contacts, book.unreadable, id, wanted, filters], () => [
    book.contacts.map((contact) => el("li", {}, el("a", {
      href: "#/contact/" + encodeURIComponent(contact.id), "aria-current": contact.id === id ? "true" : null,
    }, face(contact, contact.id), el("span", {}, el("span", { class: "name clip" }, named(contact.name)),
      el("span", { class: "small clip" }, contact.about ? named(contact.about) : "")),
    contact.conflicts ? el("span", { class: "asks", role: "img", "aria-label": "has a conflict", title: "Look at this" }) : null))),
    isAll ? book.unreadable.map((one) => el("li", {}, el("a", {
      href: "#/contact/" + encodeURIComponent(one), "aria-current": one === id ? "true" : null,
    }, el("span", { class: "face tint-3", "aria-hidden": "true" }, "!"), el("span", {},
      el("span", { class: "name clip" }, "Cannot be read"),
      el("span", { class: "small clip" }, named(one)))))) : [],
    book.contacts.length || isAll && book.unreadable.length ? null : el("li", {}, nobody(book, wanted, filters)),
  ]);
  if (isOther) $("list").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

/** The content of the empty list. */
function nobody(book, wanted, filters) {
  // In a narrow window only the list is visible.
  if (!book.count) return past.version ? empty("No contacts then.") : empty("No contacts here.", examplesButton());
  const among = filters.length ? ` in ${filters.map(spoken).join(", ")}` : "";
  if (!wanted) return empty(`No contacts${among}.`, "Choose another group, or add contacts to this one on their page.");
  return empty(`Nobody${among} matches "${spoken(wanted)}".`, el("p", {}, el("button", { type: "button", onclick: () => {
    $("wanted").value = "";
    $("wanted").focus();
    draw();
  } }, "Clear the search")));
}

/** The form for the name of a group while it is open. It stays when the page is redrawn. */
let groupForm = null;

function around(book) {
  const at = place().parts[0];
  const isAList = at !== "conflicts" && at !== "deleted";
  const choice = (text, count, to, isChosen, more = "") => el("a", {
    href: "#/", class: more, "aria-current": isChosen && isAList ? "true" : null,
    onclick: (event) => {
      event.preventDefault();
      Object.assign(chosen, { group: "", tag: "" }, to);
      if (!isAList || NARROW.matches && at) location.hash = "#/";
      else draw();
    },
  }, el("span", { class: "clip" }, named(text)), el("span", { class: "push" }, count));
  const link = (name, text, count, more = "") => el("a", {
    href: "#/" + name, class: more, "aria-current": at === name ? "true" : null,
  }, text, el("span", { class: "push" }, count));
  refill($("around"), [book.count, book.conflicts, book.deleted, book.groups, book.tags, chosen, isAList ? "" : at, Boolean(groupForm),
    NARROW.matches && at, Boolean(past.version)], () => [
    choice("All contacts", book.count, {}, !chosen.group && !chosen.tag),
    book.conflicts ? link("conflicts", "Conflicts", book.conflicts, "asking") : null,
    book.deleted ? link("deleted", "Deleted", book.deleted) : null,
    el("button", { type: "button", class: "plain", "aria-pressed": String(Boolean(past.version)),
      onclick: () => (past.version ? past.close() : openPast()) }, "Another time"),
    el("h2", {}, "Groups", el("button", { type: "button", class: "plain push", onclick: () => nameGroup(null), "aria-label": "New group" },
      "New")),
    groupForm,
    book.groups.map((group) => choice(group.name, group.count, { group: group.id }, chosen.group === group.id, "group")),
    book.groups.length ? null : el("p", { class: "muted small plain none" }, "None yet."),
    book.tags.length ? el("h2", {}, "Tags") : null,
    book.tags.map((tag) => choice(tag.name, tag.count, { tag: tag.name }, chosen.tag === tag.name, "tag"))]);
}

/** Asks for the new name of a group, or for the name of a new group. */
function nameGroup(group) {
  const close = () => {
    groupForm?.remove();
    groupForm = null;
    draw();
  };
  const field = el("input", { type: "text", "aria-label": group ? "New name of the group" : "Name of the new group", placeholder: "Name",
    value: group?.name ?? "", onkeydown: (event) => { if (event.key === "Escape") close(); } });
  groupForm?.remove();
  const problem = el("p", { class: "wrong small", id: "group-problem", role: "alert" });
  field.setAttribute("aria-describedby", "group-problem");
  groupForm = el("form", { class: "naming", onsubmit: (event) => {
    event.preventDefault();
    if (!field.value.trim()) {
      problem.textContent = "A group needs a name.";
      field.setAttribute("aria-invalid", "true");
      return field.focus();
    }
    return act("group", { id: group?.id, name: field.value }, close);
  } }, field, el("button", { type: "submit", class: "plain" }, "Save"),
  el("button", { type: "button", class: "plain", onclick: close }, "Cancel"), problem);
  $("around").querySelector("h2").after(groupForm);
  field.focus();
}

function removeGroup(group) {
  return act("delete-group", { id: group.id }, () => {
    chosen.group = "";
    say(`The group ${spoken(group.name)} was deleted. Its contacts stay.`, { text: "Undo", run: () => act("undo") });
    draw();
  });
}

/** Why the light does not show the book's state, because LoCo does not answer; otherwise "". */
let lost = "";

function glow() {
  if (!latest) return;
  const [state, text] = lost ? ["failed", lost] : lightText(latest.light);
  $("light").className = "light " + state;
  $("light").textContent = text;
  $("light").title = lost ? "Start it again with scripts/loco. This page comes back by itself."
    : latest.light.last ? "In step as of " + exactly(latest.light.last) : "Not synced yet";
}

$("undo").addEventListener("click", () => act("undo"));
$("redo").addEventListener("click", () => act("redo"));
$("online").addEventListener("change", async ({ target }) => {
  if (!await act("online", { isOnline: target.checked })) target.checked = Boolean(latest?.light.isOnline);
});
$("search").addEventListener("submit", async (event) => {
  event.preventDefault();
  // Enter leads to the first match. If news redraw the page meanwhile, the list may not yet be that of this search.
  const wanted = $("wanted").value;
  while (!await draw()) if ($("wanted").value !== wanted) return;
  const first = $("wanted").value.trim() && $("list").querySelector("a");
  if (first) {
    $("wanted").blur();
    location.hash = first.getAttribute("href");
  }
});
$("wanted").addEventListener("input", () => {
  // In a narrow window the list replaces the contact.
  if (NARROW.matches && place().parts.length) location.hash = "#/";
  else draw();
});
document.addEventListener("keydown", (event) => {
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.altKey) return;
  const isCommand = event.ctrlKey || event.metaKey;
  if (event.key === "/" && !isCommand) { event.preventDefault(); $("wanted").focus(); }
  const [what, id, how] = place().parts;
  const ways = { n: "new", ...(what === "contact" && how !== "edit" ? { e: `contact/${encodeURIComponent(id)}/edit`,
    h: `contact/${encodeURIComponent(id)}/history` } : {}) };
  if (!isCommand && Object.hasOwn(ways, event.key)) { event.preventDefault(); location.hash = "#/" + ways[event.key]; }
  if (event.key.toLowerCase() === "z" && isCommand) { event.preventDefault(); act(event.shiftKey ? "redo" : "undo"); }
});
addEventListener("hashchange", draw);
setInterval(glow, 1000);
try {
  await enter();
} catch (problem) {
  fill(view, el("p", { class: "problem" }, problem.message));
}
hear("/api/news", () => {
  lost = "";
  draw();
}, (isOtherRun) => {
  lost = isOtherRun ? "LoCo was started anew" : "LoCo was ended";
  glow();
});
draw();

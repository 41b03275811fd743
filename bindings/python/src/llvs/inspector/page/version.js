// One version: its author, time, predecessors, and changes.

import { change, get } from "./api.js";
import { KINDS, changeOf, moreButton } from "./changes.js";
import { el, empty, fill, named, say, shortId, spoken } from "./dom.js";
import { chipsOf, titleOf } from "./history.js";
import { at, go } from "./routes.js";
import { bytes, clockNote, counted, exactly, when } from "./time.js";

/** How many changes are opened at once, and after how many milliseconds without a step to another version. */
const OPENED = 3, LOOKED = 200;

/** Names and descriptions of the metadata that the library writes. */
const KNOWN = {
  __llvs_device: ["Device", "The device that saved this version"],
  __llvs_description: ["Description", "What the application says of this version"],
  __llvs_branch: ["Branch", "The branch that this version is on"],
  __llvs_group: ["Undo group", "Versions with the same one are undone together"],
  __llvs_clock: ["Clock", "When this version was made by the device's own clock, if its time differs"],
  __llvs_chosen: ["Chosen", "The decisions of merges that this version makes otherwise"],
  __llvs_conflicts: ["Decided", "What this merge had to decide"],
  __llvs_arbiter: ["Decided by", "What decided this merge: the rules of the store, or the application itself (host)"],
  __llvs_undo: ["Undoes", "This version takes back what these versions did"],
  __llvs_redo: ["Takes back", "The undo that this version takes back"],
  __llvs_salvaged: ["Salvaged", "This version was restored from a damaged store"],
};

/** The head of every view of one version: its title, and links to its views. */
export function headOf(version, tab) {
  const isMerge = version.predecessors.length > 1;
  const tabs = [["version", "Changes", at("version", [version.id])], ["values", "Values", at("values", [version.id])]];
  if (version.predecessors.length) tabs.push(["compare", "Compare", at("compare", [version.predecessors[0], version.id])]);
  if (isMerge) tabs.push(["merge", "Merge", at("merge", [version.id])]);
  return [
    el("div", { class: "row-of" }, ...chipsOf(version), isMerge && el("span", { class: "chip" }, "merge"), shortId(version.id),
      el("span", { class: "muted small", title: exactly(version.time) }, version.isEmptyRoot ? "" : when(version.time)),
      version.who ? el("span", { class: "muted small" }, "by ", ...named(version.who)) : null),
    el("h2", { class: "title" }, ...named(titleOf(version))),
    el("nav", { class: "tabs", "aria-label": "Ways to look at this version" },
      ...tabs.map(([name, text, address]) => el("a", { href: address, "aria-current": name === tab ? "page" : null }, text))),
  ];
}

/** A link to a version, as a line. */
export function linkTo(version, more = null) {
  return el("a", { href: at("version", [version.id]) },
    ...chipsOf(version), el("span", { class: "clip" }, ...named(titleOf(version))),
    el("span", { class: "push muted small" }, more || (version.who ? spoken(version.who) + " · " : "") + when(version.time)),
    el("code", { class: "muted" }, version.id.slice(0, 8)));
}

export async function showVersion(view, route, app) {
  const version = await get("version", { version: route.parts[0] || "@" });
  if (!app.isAt(route)) return;
  const facts = el("dl", { class: "facts" });
  const fact = (name, ...content) => facts.append(el("dt", {}, name), el("dd", {}, ...content));
  fact("Id", el("code", {}, version.id));
  if (!version.isEmptyRoot) fact("Made", el("span", { title: String(version.time) }, exactly(version.time)));
  fact("Values", el("a", { href: at("values", [version.id]) }, counted(version.values, "value")),
    ` at this version; it stored ${bytes(version.bytes)}`);
  if (version.before.length) fact(version.before.length > 1 ? "Predecessors" : "Predecessor", ...version.before.flatMap((one, place) => [
    el("a", { href: at("version", [one.id]), class: version.before.length > 1 ? ["side-first", "side-second"][place] : null },
      ...named(titleOf(one)), " ", el("code", {}, one.id.slice(0, 8))), el("br")]));
  const successors = version.successors.length > 1 ? "Successors" : "Successor";
  if (version.successors.length) fact(successors, ...version.successors.slice(0, 8).flatMap((one) => [
    el("a", { href: at("version", [one.id]) }, ...named(titleOf(one)), " ", el("code", {}, one.id.slice(0, 8))), el("br")]),
  version.successors.length > 8 ? el("span", { class: "muted" }, `and ${version.successors.length - 8} more`) : null);
  for (const [key, value] of Object.entries(version.metadata)) {
    if (key === "__llvs_conflicts" && version.predecessors.length > 1) {
      fact("Decided", el("a", { href: at("merge", [version.id]), title: spoken(value) }, "What this merge had to decide, and how"));
      continue;
    }
    const known = KNOWN[key];
    facts.append(el("dt", { class: "clip", title: known ? `${known[1]} (${key})` : spoken(key) }, ...(known ? [known[0]] : named(key))),
      el("dd", {}, el("pre", {}, spokenLines(value))));
  }
  const list = el("ul", { class: "list" }), note = clockNote(version);
  fill(view, ...headOf(version, "version"), ...placeOf(version, app), note ? el("p", { class: "problem" }, note) : null,
    el("div", { class: "card" }, facts),
    el("div", { class: "card" }, el("div", { class: "row-of" }, el("h3", {},
      version.predecessors.length > 1 ? "What the merge brought over" : "What it changed"),
      app.write && version.predecessors.length
        ? el("button", { class: "push", onclick: () => revert(version, app) }, "Take this back") : null), list));
  addChanges(list, version, version);
  const rows = [...list.querySelectorAll("details")];
  if (rows.length <= OPENED) setTimeout(() => { if (app.isAt(route)) rows.forEach((row) => { row.open = true; }); }, LOOKED);
}

/** Where changes are saved, if that is not the application's current version; and a button to save them on another head. */
function placeOf(version, app) {
  if (version.work && !version.current) {
    return [el("p", { class: "muted" }, "What you change here goes on from this version. The application is at another one, and gets your ",
      "changes when it merges next.")];
  }
  if (!app.write || version.work || !version.head) return [];
  return [el("p", { class: "row-of" }, el("span", { class: "muted" }, "This is a head: a version that no other was saved on yet."),
    el("button", { onclick: () => workOn(version) }, "Go on from this version"))];
}

async function workOn(version) {
  try {
    say((await change("work", { at: version.id })).message);
    // Makes the page load the view again.
    dispatchEvent(new HashChangeEvent("hashchange"));
  } catch (problem) {
    say(problem.message);
  }
}

function addChanges(list, version, page) {
  if (!page.entries.length && !list.children.length) {
    list.append(el("li", {}, empty("Nothing was changed here.", "Look at its values, or at the version before it.")));
  }
  for (const entry of page.entries) {
    const before = version.predecessors[0];
    list.append(el("li", {}, before ? changeOf(entry, before, version.id)
      : el("a", { href: at("values", [version.id], { id: entry.id }) },
        el("span", { class: "kind " + entry.kind }, KINDS[entry.kind]), el("code", { class: "clip" }, named(entry.id)))));
  }
  if (page.next === null || page.next === undefined) return;
  const more = el("li", {}, moreButton(async () => {
    const rest = await get("version", { version: version.id, after: page.next, count: 500 });
    more.remove();
    addChanges(list, version, rest);
  }));
  list.append(more);
}

/** Text of several lines, with invisible characters made visible. */
export function spokenLines(text) {
  return text.split("\n").map(spoken).join("\n");
}

async function revert(version, app) {
  try {
    const done = await change("revert", { version: version.id, at: app.head() });
    say(done.message);
    if (done.version) go(at("version", [done.version.id]));
  } catch (problem) {
    say(problem.message);
  }
}

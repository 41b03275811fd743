// Two versions side by side: the values that differ, and the differences inside them.

import { get } from "./api.js";
import { KINDS, changeOf, moreButton } from "./changes.js";
import { el, empty, fill } from "./dom.js";
import { titleOf } from "./history.js";
import { at, go } from "./routes.js";
import { number } from "./time.js";
import { linkTo } from "./version.js";

export async function showCompare(view, route, app) {
  const [a = "@~1", b = "@"] = route.parts;
  const wanted = route.query.get("id");
  const found = await get("compare", { a, b });
  if (!app.isAt(route)) return;
  const first = el("input", { type: "text", id: "compare-a", value: a, spellcheck: "false" });
  const second = el("input", { type: "text", id: "compare-b", value: b, spellcheck: "false" });
  const form = el("form", { class: "pair", onsubmit: (event) => {
    event.preventDefault();
    go(at("compare", [first.value || "@", second.value || "@"]));
  } },
  el("div", {}, el("label", { for: "compare-a" }, "From version"), first),
  el("button", { type: "button", onclick: () => go(at("compare", [b, a])), "aria-label": "Swap the two versions" }, "Swap"),
  el("div", {}, el("label", { for: "compare-b" }, "To version"), second),
  el("button", { type: "submit" }, "Compare"));
  const list = el("div", {});
  const counts = found.counts;
  const total = counts.insert + counts.update + counts.remove;
  fill(view, el("h2", { class: "title" }, "Compare"), el("div", { class: "card" }, form,
    el("ul", { class: "list" }, el("li", {}, linkTo(found.a)), el("li", {}, linkTo(found.b)))),
  el("div", { class: "card" }, el("div", { class: "counts" }, ...["insert", "update", "remove"].map((kind) => (
    el("span", {}, el("strong", { class: "kind " + kind }, number(counts[kind])), " ", KINDS[kind])))),
  total ? list : empty("These two versions have equal values.", "Choose another version in the history, and press d."),
  app.canForesee(found) ? el("p", {}, el("a", { class: "button", href: at("merge", [found.a.id, found.b.id]) },
    "Preview a merge of these two")) : null));
  addEntries(list, found, found, wanted);
  if (wanted !== null && !found.entries.some((entry) => entry.id === wanted)) list.prepend(entryOf({ id: wanted, kind: "update" }, found,
    true));
}

function entryOf(entry, found, isOpen) {
  const row = changeOf(entry, found.a.id, found.b.id, titleOf(found.a), titleOf(found.b));
  row.open = isOpen;
  return row;
}

function addEntries(list, found, page, wanted) {
  page.entries.forEach((entry) => list.append(entryOf(entry, found, wanted === null ? page.entries.length <= 3 : entry.id === wanted)));
  if (!page.next) return;
  const more = moreButton(async () => {
    const rest = await get("compare", { a: found.a.id, b: found.b.id, after: page.next });
    more.remove();
    addEntries(list, found, rest, wanted);
  });
  list.append(more);
}

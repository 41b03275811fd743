// What takes space: bars by prefix and by month, which lead to the values.

import { get } from "./api.js";
import { el, empty, fill, named } from "./dom.js";
import { at } from "./routes.js";
import { bytes, counted, number } from "./time.js";

const KINDS = {
  record: "Versions, without their values", value: "Values", blob: "Values in files of their own",
  hollow: "Values whose bytes are gone", cache: "Caches, which can be built again",
  other: "All else: frames, reserved room, second copies",
};

export async function showSizes(view, route, app) {
  const prefix = route.query.get("prefix") || "", each = route.query.get("each") === "id";
  const found = await get("size", { prefix, each: each ? "id" : "" });
  if (!app.isAt(route)) return;
  const below = (row) => row.name.length > prefix.length ? { prefix: row.name } : { prefix, each: "id" };
  const link = (row) => each ? at("values", ["@"], { id: row.name }) : at("size", [], below(row));
  const what = each ? "Ids" : "Beginnings of ids";
  const toggle = el("a", { class: "push", href: at("size", [], each ? { prefix } : { prefix, each: "id" }) },
    each ? "By beginnings of ids" : "Each id");
  fill(view, el("h2", { class: "title" }, "Size", prefix ? [" of ", ...named(prefix)] : null),
    el("p", { class: "muted" }, `${bytes(found.bytes)}: ${bytes(found.current)} of values now, ${bytes(found.past)} of values that only the`
      + " past holds. A value counts with the bytes that it takes, in the version that stored it."),
    prefix ? el("p", {}, el("a", { href: at("size") }, "All of the store")) : null,
    el("p", { class: "bars-of small muted" }, el("i", { class: "now" }), "now", el("i", { class: "past" }), "only in the past",
      prefix ? null : [el("i", { class: "rest" }), "beside values"]),
    card(what, found.prefixes, (row) => row.combined ? counted(row.combined, "other") : el("a", { href: link(row) }, ...(
      row.name === "" ? ["ids without \u201c/\u201d"] : named(row.name))), toggle),
    card("Months in which values were stored", found.months, (row) => row.name),
    prefix ? null : card("Kinds", found.kinds.filter((row) => row.bytes), (row) => KINDS[row.name] ?? row.name),
    card("Largest versions", found.versions, (row) => row.combined ? counted(row.combined, "other") : el("a",
      { href: at("version", [row.name]) }, el("code", {}, row.name.slice(0, 8)))),
    found.unread ? el("p", { class: "problem" }, `${counted(found.unread, "version")} damaged: verifying the store tells which.`) : null);
}

/** Rows of one kind, each with its bar; bars are as long as the largest row is wide. */
function card(title, rows, name, more) {
  const most = Math.max(1, ...rows.filter((row) => !row.combined).map((row) => row.bytes));
  const head = el("div", { class: "row-of" }, el("h3", {}, title), more);
  return el("div", { class: "card" }, head, rows.length ? el("table", { class: "bars" },
    el("thead", {}, el("tr", {}, ...["name", "bar", "bytes", "past", "values"].map((text, i) => el("th",
      { scope: "col", class: i > 1 ? "number" : null }, i === 1 ? el("span", { class: "unseen" }, text) : text)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, el("td", {}, name(row)), el("td", {}, bar(row, most)),
      el("td", { class: "number", title: counted(row.bytes, "byte") }, bytes(row.bytes)),
      el("td", { class: "number", title: counted(row.past, "byte") }, bytes(row.past)),
      el("td", { class: "number" }, number(row.values)))))) : empty("There is no value.", "Save something, and it appears here."));
}

function bar(row, most) {
  const parts = [["now", row.current], ["past", row.past], ["rest", row.bytes - row.current - row.past]].map(([kind, count]) => {
    const part = el("i", { class: kind });
    part.style.width = `${100 * Math.min(1, count / most)}%`;
    return part;
  });
  return el("div", { class: "bar-of", "aria-hidden": "true" }, ...parts);
}

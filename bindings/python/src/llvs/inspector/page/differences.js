// Differences inside a value: by member, or by line and word, side by side.

import { el, empty, spoken } from "./dom.js";
import { bytes, counted } from "./time.js";
import { visible } from "./viewer.js";

/** A path in a JSON document, for people: `tags › 2`. */
export function pathOf(path) {
  if (!path.length) return "the whole value";
  return path.map((part) => (typeof part === "string" ? spoken(part)
    : typeof part === "number" ? `[${part}]`
    : part.key !== undefined ? `[${JSON.stringify(part.key)}]` : `[${part.index}]`)).join(" › ");
}

function pieces(words, side) {
  const skip = side === "was" ? "+" : "-";
  const tag = side === "was" ? "del" : "ins";
  return words.filter(([kind]) => kind !== skip).map(([kind, text]) => (kind === "=" ? visible(text) : el(tag, {}, visible(text))));
}

function member(row) {
  const was = row.was === undefined ? null : row.words ? ['"', ...pieces(row.words, "was"), '"'] : [el("del", {}, visible(row.was))];
  const now = row.now === undefined ? null : row.words ? ['"', ...pieces(row.words, "now"), '"'] : [el("ins", {}, visible(row.now))];
  return el("tr", {}, el("td", { class: "path" }, pathOf(row.path)),
    el("td", { class: "side" + (was ? " was" : "") }, was || el("span", { class: "muted" }, "absent")),
    el("td", { class: "side" + (now ? " now" : "") }, now || el("span", { class: "muted" }, "absent")));
}

function line(row) {
  if (row.kind === "skip") return el("tr", { class: "skip" }, el("td", { colspan: 4 }, counted(row.count, "equal line")));
  if (row.kind === "same") {
    return el("tr", {}, el("td", { class: "number" }, row.a), el("td", { class: "side" }, visible(row.text)),
      el("td", { class: "number" }, row.b), el("td", { class: "side" }, visible(row.text)));
  }
  return el("tr", {}, el("td", { class: "number" }, row.a), el("td", { class: "side" + (row.a === null ? "" : " was") },
    row.a === null ? "" : pieces(row.words, "was")),
    el("td", { class: "number" }, row.b), el("td", { class: "side" + (row.b === null ? "" : " now") },
      row.b === null ? "" : pieces(row.words, "now")));
}

/** The differences as a table; `before` and `after` are the names of its sides. */
export function insideOf(inside, before = "before", after = "after") {
  if (inside.by === "bytes") {
    const told = (side) => (side ? `${bytes(side.size)}, ${side.kind}` : "absent");
    return el("p", { class: "muted" }, `No text on both sides: ${told(inside.a)} ${before}, ${told(inside.b)} ${after}.`);
  }
  const rows = inside.by === "member" ? inside.members : inside.rows;
  if (!rows.some((row) => row.kind !== "same")) return empty("Nothing differs inside.", "The same was saved again.");
  const heads = inside.by === "member"
    ? [el("th", { scope: "col" }, "member"), el("th", { scope: "col" }, before), el("th", { scope: "col" }, after)]
    : [el("th", { scope: "col", class: "number" }, "line"), el("th", { scope: "col" }, before), el("th", { scope: "col",
      class: "number" }, "line"), el("th", { scope: "col" }, after)];
  return el("div", {}, el("table", { class: "differences" + (inside.by === "member" ? " members" : "") }, el("thead", {}, el("tr", {},
    ...heads)),
    el("tbody", {}, ...rows.map(inside.by === "member" ? member : line))),
  inside.cut ? el("p", { class: "muted small" }, "Only the beginning of the difference is shown: it is too long.") : null);
}


// A value that differs between two versions: a row that opens and shows the differences inside.

import { get } from "./api.js";
import { insideOf } from "./differences.js";
import { el, fill, named, say } from "./dom.js";
import { at } from "./routes.js";

export const KINDS = { insert: "inserted", update: "updated", remove: "removed", preserve: "kept", preserve_removal: "removed" };

/** A button that loads more of a list. It is disabled while it loads, so that a second click does not load the same entries. */
export function moreButton(bring) {
  const button = el("button", { class: "plain", onclick: async () => {
    button.disabled = true;
    try {
      await bring();
    } catch (problem) {
      say(problem.message);
      button.disabled = false;
    }
  } }, "Show more");
  return button;
}

/** The row for `{id, kind}`, from version `a` to version `b` (ids); `before` and `after` are the names of the two sides. */
export function changeOf(entry, a, b, before, after) {
  const kind = entry.kind.replace("preserve_removal", "remove"), isGone = kind === "remove";
  const place = el("div", {});
  const details = el("details", { class: "change" }, el("summary", {},
    el("span", { class: "kind " + kind }, KINDS[entry.kind] || entry.kind),
    el("code", { class: "clip" }, isGone ? el("del", {}, ...named(entry.id)) : named(entry.id))), place);
  const link = el("p", { class: "small" }, el("a", { href: at("values", [isGone ? a : b], { id: entry.id }) }, "The value through time"));
  details.addEventListener("toggle", async () => {
    if (!details.open || place.children.length) return;
    try {
      fill(place, link, insideOf(await get("compare/value", { a, b, id: entry.id }), before, after));
    } catch (problem) {
      fill(place, el("p", { class: "problem" }, problem.message));
    }
  });
  return details;
}

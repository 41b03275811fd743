// A merge explained: its bases and sides, each decision with why, and choosing otherwise.

import { change, get } from "./api.js";
import { pathOf } from "./differences.js";
import { el, empty, fill, named, say, spoken } from "./dom.js";
import { titleOf } from "./history.js";
import { at, go } from "./routes.js";
import { bytes, counted, exactly, number, stamp, when } from "./time.js";
import { headOf } from "./version.js";
import { visible } from "./viewer.js";

/** What the two sides are called in all that is said of a merge: by their devices, where both are known and differ. */
function namesOf(found) {
  const first = found.first.who, second = found.second.who;
  return first && second && first !== second ? { first, second } : { first: "first side", second: "second side" };
}

function side(name, kind, version) {
  return el("div", { class: "card " + kind }, el("div", { class: "small muted" }, ...named(name)),
    version ? [el("a", { href: at("version", [version.id]) }, ...named(titleOf(version))),
      el("div", { class: "small muted" }, version.who ? [...named(version.who), " · "] : "",
        version.isEmptyRoot ? "the empty beginning" : when(version.time))]
      : el("div", { class: "muted" }, "none in common"));
}

/** A text of several lines as such, and not as JSON writes it. */
function plain(text) {
  if (!/^"[^]*\\n[^]*"$/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function shown(part) {
  if (!part) return el("pre", { class: "muted" }, "absent");
  if (part.text === null) return el("pre", { class: "muted" }, `${bytes(part.size)}, no text`);
  return el("pre", {}, visible(plain(part.text)), part.isWhole ? null : el("span", { class: "muted" }, ` … ${bytes(part.size)} in all`));
}

function conflictOf(record, found, names, app) {
  const first = record.newerIs === "first" ? "newer" : "older";
  const second = first === "newer" ? "older" : "newer";
  const stands = record.stands;
  const column = (name, kind, part, isLost) => el("div", { class: kind + (isLost ? " lost" : "") }, el("div", { class: "small muted" },
    ...named(name), kind === record.newerIs ? ", newer change" : ""), shown(part));
  const winner = stands === first ? names.first : stands === second ? names.second : null;
  const card = el("article", { class: "card", "aria-label": `Conflict in ${spoken(record.id)}, ${pathOf(record.path)}` },
    el("div", { class: "row-of" }, el("h3", {}, el("code", {}, ...named(record.id))), el("span", { class: "muted" }, pathOf(record.path)),
      el("span", { class: "push chip" }, record.kind.replace("-", " "))),
    el("div", { class: "four" },
      column("base", "base", record.base, false),
      column(names.first, "first", record[first], stands === second),
      column(names.second, "second", record[second], stands === first),
      column(found.version ? "result" : "would be", "result", record.result, false)),
    el("p", { class: "small" }, record.why, " ", el("strong", {},
      winner === null ? "The result was made of both. " : ["The change of ", ...named(winner), " stands. "]), el("span", { class: "muted" },
      record.rule ? ["By the rule ", record.rule[1] ? [el("code", {}, ...named(record.rule[1])), " "] : "", "for ids that begin with ",
        el("code", {}, ...named(record.rule[0])), "."] : "No rule is for this place.")));
  if (app.write && found.version) {
    const choose = (choice) => decide(found.version, record, choice, app);
    card.append(el("div", { class: "row-of" },
      record.hasSides && stands !== first &&
        el("button", { onclick: () => choose(first) }, "Take the change of ", ...named(names.first)),
      record.hasSides && stands !== second &&
        el("button", { onclick: () => choose(second) }, "Take the change of ", ...named(names.second)),
      el("button", { onclick: () => choose("result") }, "Keep the result"),
      el("a", { class: "button", href: at("values", [app.head()], { id: record.id }) }, "Edit the value")));
  }
  return card;
}

async function decide(version, record, choice, app) {
  try {
    const done = await change("choose", { version: version.id, id: record.id, mark: record.mark, choice, at: app.head() });
    say(done.message);
    go(at("version", [done.version.id]));
  } catch (problem) {
    say(problem.message);
  }
}

export async function showMerge(view, route, app) {
  const [a = "@", b] = route.parts;
  const found = b ? await get("merge/foreseen", { a, b }) : await get("merge", { version: a });
  if (!app.isAt(route)) return;
  const names = namesOf(found);
  const bases = found.bases.length ? found.bases.slice(0, 3).map((base) => side(found.bases.length > 1 ? "one of the bases" : "base",
    "base", base)) : [side("base", "base", null)];
  fill(view, ...(found.version ? headOf(found.version, "merge") : [el("h2", { class: "title" }, "A merge that was not made")]),
    el("div", { class: "sides" }, ...bases, side(names.first, "first", found.first), side(names.second, "second", found.second),
      found.version && side("result", "result", found.version)),
    found.recorded ? null : el("p", { class: "problem" },
      "Other rules than those of the store made this merge, or the application itself: here is how the rules of the store decide."),
    el("h3", {}, found.count ? counted(found.count, "decision") : "Decisions"),
    ...found.conflicts.map((record) => conflictOf(record, found, names, app)),
    found.conflicts.length ? null : empty("Nothing had to be decided.", "Both sides changed different things, and all of it was kept."),
    found.count > found.conflicts.length ? el("p", { class: "muted" }, `Only the first ${found.conflicts.length} are shown.`) : null);
}

/** What the conflicts of a merge are about: `contact/ann › phone`, some of them. */
function ofWhat(merge) {
  const told = merge.of.flatMap((one, place) => [place ? ", " : "", el("code", {}, ...named(one.id)),
    one.path.length ? " › " + pathOf(one.path) : ""]);
  return merge.count > merge.of.length ? [...told, ` and ${number(merge.count - merge.of.length)} more`] : told;
}

export async function showConflicts(view, route, app) {
  const found = await get("conflicts", { at: route.parts[0] || "@" });
  if (!app.isAt(route)) return;
  fill(view, el("h2", { class: "title" }, "Conflicts that nobody has looked at"),
    el("p", { class: "muted" }, "Merges decided them, and what they decided still stands."),
    el("div", { class: "card" }, found.merges.length ? el("ul", { class: "list" }, ...found.merges.map((merge) => (
      el("li", {}, el("a", { href: at("merge", [merge.id]) }, el("span", { class: "clip" }, ...ofWhat(merge)),
        el("span", { class: "chip" }, counted(merge.count, "decision")),
        el("span", { class: "push muted small", title: exactly(merge.time) }, stamp(merge.time)),
          el("code", { class: "muted" }, merge.id.slice(0, 8))))))
    ) : empty("There are none.", "Where two devices change the same, the merge is listed here until somebody looks at it.")));
}

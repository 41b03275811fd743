// A merge explained: its bases and sides, each decision with its reason, and buttons to choose otherwise.

import { change, data, get } from "./api.js";
import { pathOf } from "./differences.js";
import { el, empty, fill, named, say, spoken } from "./dom.js";
import { titleOf } from "./history.js";
import { at, go } from "./routes.js";
import { bytes, counted, exactly, number, stamp, when } from "./time.js";
import { headOf } from "./version.js";
import { visible } from "./viewer.js";

const LARGEST_PICTURE = 4 * 1024 * 1024;

/** The names of the two sides in all texts about a merge: their devices, if both are known and differ. */
function namesOf(found) {
  const first = found.first.who, second = found.second.who;
  if (first && second && first !== second) return { first, second };
  const of = (side, name) => (side.who ? `${side.who}, ${stamp(side.time)}` : name);
  const names = { first: of(found.first, "first side"), second: of(found.second, "second side") };
  return names.first === names.second ? { first: names.first + " (first)", second: names.second + " (second)" } : names;
}

/** Why a merge had to decide, in a few words for the corner of a decision. The sentence below it has more detail. */
const REASONS = {
  pick: "both changed it", "delete-edit": "removed and changed", type: "different types", "not-json": "no JSON",
  overlap: "both rewrote the same words", "move-move": "both moved it", contested: "decided before", bound: "out of bounds",
  limit: "too different", arbiter: "left to the application",
};
const BASE = "The last version that both sides had in common";

function side(name, kind, version) {
  return el("div", { class: "card " + kind }, el("div", { class: "small muted", title: kind === "base" ? BASE : null }, ...named(name)),
    version ? [el("a", { href: at("version", [version.id]) }, ...named(titleOf(version))),
      el("div", { class: "small muted" }, version.who ? [...named(version.who), " · "] : "",
        version.isEmptyRoot ? "the empty beginning" : when(version.time))]
      : el("div", { class: "muted" }, "none: they begin apart"));
}

/** A text of several lines, unescaped, instead of as a JSON string. */
function plain(text) {
  if (!/^"[^]*\\n[^]*"$/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function shown(id, part) {
  if (!part) return el("pre", { class: "muted" }, "absent");
  if (part.picture) return pictureOf(id, part);
  if (part.words) return el("pre", {}, part.words.map(([sign, text]) => (sign === "=" ? visible(text) : el("mark", {}, visible(text)))));
  if (part.text === null) return el("pre", { class: "muted" }, `${bytes(part.size)}, no text`);
  return el("pre", {}, visible(plain(part.text)), part.isWhole ? null : el("span", { class: "muted" }, ` … ${bytes(part.size)} in all`));
}

function conflictOf(record, found, names, app) {
  const first = record.newerIs === "first" ? "newer" : "older";
  const second = first === "newer" ? "older" : "newer";
  const stands = record.stands;
  const column = (name, kind, part, isLost) => el("div", { class: kind + (isLost ? " lost" : "") }, el("div", { class: "small muted" },
    ...named(name), kind === record.newerIs ? ", newer change" : ""), shown(record.id, part));
  const winner = stands === first ? names.first : stands === second ? names.second : null;
  const card = el("article", { class: "card", tabindex: -1, "aria-label": `Conflict in ${spoken(record.id)}, ${pathOf(record.path)}` },
    el("div", { class: "row-of" }, el("h3", {}, el("code", {}, ...named(record.id))), el("span", { class: "muted" }, pathOf(record.path)),
      el("span", { class: "push chip reason" }, REASONS[record.kind])),
    el("div", { class: "four" },
      column("before, in both", "base", record.base, false),
      column(names.first, "first", record[first], stands === second),
      column(names.second, "second", record[second], stands === first),
      column(found.version ? "result" : "would be", "result", record.result, false)),
    el("p", { class: "small" }, record.why, " ", el("strong", {},
      winner === null ? "The result was made of both. " : ["The change of ", ...named(winner), " stands. "]), el("span", { class: "muted" },
      record.rule ? ["By the rule ", record.rule[1] ? [el("code", {}, ...named(record.rule[1])), " "] : "", "for ids that begin with ",
        el("code", {}, ...named(record.rule[0])), "."] : "No rule is for this place.")));
  if (app.write && found.version) {
    const choose = (choice) => decide(found.version, record, choice, app);
    const can = record.canChoose;
    if (!can) card.append(el("p", { class: "muted" }, "This was changed since the merge, perhaps by a decision. Edit what is there now."));
    card.append(el("div", { class: "row-of" },
      can && record.hasSides && stands !== first &&
        el("button", { onclick: () => choose(first) }, "Take the change of ", ...named(names.first)),
      can && record.hasSides && stands !== second &&
        el("button", { onclick: () => choose(second) }, "Take the change of ", ...named(names.second)),
      can && el("button", { onclick: () => choose("result") }, "Keep the result"),
      el("a", { class: "button", href: at("values", [app.head()], { id: record.id }) }, "Edit the value")));
  }
  return card;
}

/** Shows a message if the promise fails. */
function tell(deed) {
  return deed.catch((problem) => say(problem.message));
}

function decide(version, record, choice, app) {
  return tell(change("choose", { version: version.id, id: record.id, mark: record.mark, choice, at: app.head() }).then((done) => {
    say(done.message);
    go(at("version", [done.version.id]));
  }));
}

export async function showMerge(view, route, app) {
  const [a = "@", b] = route.parts;
  const found = b ? await get("merge/foreseen", { a, b }) : await get("merge", { version: a });
  if (!app.isAt(route)) return;
  const names = namesOf(found);
  const bases = found.bases.length ? found.bases.slice(0, 3).map((base) => side(
    found.bases.length > 1 ? "one of the last in common" : "last in common (base)", "base", base))
    : [side("last in common (base)", "base", null)];
  fill(view, ...(found.version ? headOf(found.version, "merge") : previewOf(found, app)),
    el("div", { class: "sides" }, ...bases, side(names.first, "first", found.first), side(names.second, "second", found.second),
      found.version && side("result", "result", found.version)),
    toDecisions(found),
    writtenOf(found, names),
    found.recorded ? null : el("p", { class: "problem" },
      "Other rules than those of the store made this merge, or the application itself: here is how the rules of the store decide."),
    el("h3", {}, found.count ? counted(found.count, "decision") : "Decisions"),
    ...found.conflicts.map((record) => conflictOf(record, found, names, app)),
    found.conflicts.length ? null : empty("Nothing had to be decided.", "Both sides changed different things, and all of it was kept."),
    found.count > found.conflicts.length ? el("p", { class: "muted" }, `Only the first ${found.conflicts.length} are shown.`) : null);
  // In a long text, scroll to the first word that a side wrote.
  for (const text of view.querySelectorAll(".written pre")) {
    const first = text.querySelector("ins");
    if (!first) continue;
    const [word, around] = [first, text].map((one) => one.getBoundingClientRect());
    text.scrollTop += word.top - around.top - around.height / 2;
  }
}

/** A button that scrolls to the decisions, if something is shown above them. */
function toDecisions(found) {
  if (!found.conflicts.length || !found.written?.length) return null;
  const show = () => {
    const first = document.querySelector("#view article");
    first.scrollIntoView({ block: "start" });
    first.focus({ preventScroll: true });
  };
  const told = found.count === 1 ? "Go to the decision" : `Go to the ${number(found.count)} decisions`;
  return el("p", {}, el("button", { onclick: show }, told));
}

/** The head of a merge that is not made yet, and a button that makes it. */
function previewOf(found, app) {
  const make = () => tell(change("merge", { a: found.first.id, b: found.second.id }).then((done) => {
    say(done.message);
    go(at("merge", [done.version.id]));
  }));
  return [el("h2", { class: "title" }, "Preview of a merge"),
    el("p", { class: "row-of" }, el("span", { class: "muted" }, "Nothing is saved: this is what a merge of these two would decide."),
      app.write ? el("button", { class: "primary", onclick: make }, "Make this merge") : null)];
}

/** The texts of a merge, with the author of each word. */
function writtenOf(found, names) {
  if (!found.written?.length) return null;
  const classes = ["", "first", "second", "both", "made"];
  const said = ["", names.first, names.second, "both", "the merge"].map(spoken);
  return el("div", { class: "card written" }, el("h3", {}, "Who wrote what"),
    el("p", { class: "row-of small" }, el("ins", { class: "first" }, ...named(names.first)),
      el("ins", { class: "second" }, ...named(names.second)), el("ins", { class: "both" }, "both"),
      el("span", { class: "muted" }, "not shaded: as before")),
    found.written.map((one) => [el("div", { class: "small muted" }, el("code", {}, ...named(one.id))), el("pre", {},
      one.pieces.map(([of, text]) => (of ? el("ins", { class: classes[of], title: said[of] }, visible(text)) : visible(text))))]));
}

/** A side that is a picture, shown as one. */
function pictureOf(id, part) {
  const image = el("img", { alt: "The picture on this side" });
  data(id, part.at, 0, Math.min(part.size, LARGEST_PICTURE)).then((bytes) => {
    const address = URL.createObjectURL(new Blob([bytes], { type: part.picture }));
    image.addEventListener("load", () => URL.revokeObjectURL(address));
    image.src = address;
  }, () => image.replaceWith("The picture cannot be read."));
  return el("div", { class: "thumb" }, image, el("div", { class: "small muted" }, bytes(part.size)));
}

/** The places of some conflicts of a merge: `contact/ann › phone`. */
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

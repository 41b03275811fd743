// Makes elements. Text is always text: no function here reads a string as HTML.

// Characters that are escaped, as in llvs/tools/escape.py: control characters, direction marks, invisible characters. Joiners remain: a
// joiner between letters that can be joined (JOINED) or after a virama, forms of ideographs, and the flags of three countries.
const CONTROLS = "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff"
  + "\\ufff9-\\ufffb\\ud800-\\udfff\\u{e0000}-\\u{e00ff}\\u{e01f0}-\\u{e0fff}";
const JOINED = "\\u0590-\\u061b\\u061d-\\u167f\\u1681-\\u180d\\u180f-\\u1dff\\u2190-\\u2bff\\u2e80-\\u2fff\\u3001-\\ud7ff\\uf900-\\ufefe"
  + "\\u{10000}-\\u{dffff}";
const VIRAMA = "\\u094d\\u09cd\\u0a4d\\u0acd\\u0b4d\\u0bcd\\u0c4d\\u0ccd\\u0d4d\\u0dca";
const IDEOGRAPHS = "\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
const FLAGS = ["gbeng", "gbsct", "gbwls"]
  .map((name) => [...name].map((letter) => String.fromCodePoint(0xe0000 + letter.codePointAt(0))).join(""));
const HARMFUL = new RegExp(`\\u{1f3f4}(?:${FLAGS.join("|")})\\u{e007f}|[${CONTROLS}]|(?<![${JOINED}])[\\u200c\\u200d]`
  + `|(?<![${VIRAMA}])[\\u200c\\u200d](?![${JOINED}])|(?<![${IDEOGRAPHS}])[\\u{e0100}-\\u{e01ef}]`, "gu");
const NAMES = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** An element: `el("a", {class: "x", href: "#/", onclick: f}, "text", child)`. */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "disabled" || name === "hidden" || name === "open") made[name] = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Replaces all children. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return parent;
}

function escaped(character) {
  if (NAMES[character]) return NAMES[character];
  const number = character.codePointAt(0);
  if (number >= 0x10000) return "\\U" + number.toString(16).padStart(8, "0");
  return number < 0x100 ? "\\x" + number.toString(16).padStart(2, "0") : "\\u" + number.toString(16).padStart(4, "0");
}

/** Splits a text into pieces that are shown unchanged and pieces that are escaped (`isEscaped`). */
function pieces(text) {
  const made = [];
  let at = 0;
  for (const { 0: found, index } of text.matchAll(HARMFUL)) {
    if (found.startsWith("\u{1f3f4}")) continue;
    if (index > at) made.push({ text: text.slice(at, index), isEscaped: false });
    made.push({ text: escaped(found), isEscaped: true });
    at = index + found.length;
  }
  if (at < text.length) made.push({ text: text.slice(at), isEscaped: false });
  return made;
}

/** A name from any author, in one line, with invisible characters made visible. */
export function named(text) {
  if (text === "") return [el("span", { class: "muted" }, "(empty)")];
  // A space at an end would be invisible.
  const isBlank = text !== text.trim();
  return [el("bdi", isBlank ? { class: "blank", title: "There are spaces at an end of this name" } : {}, ...pieces(text).map((piece) => (
    piece.isEscaped ? el("span", { class: "escaped" }, piece.text) : piece.text)))];
}

/** The same as plain text, for labels and titles. */
export function spoken(text) {
  return pieces(text).map((piece) => piece.text).join("");
}

/** The first 8 characters of a version's id. A click copies the whole id. */
export function shortId(id) {
  return el("button", {
    class: "id", title: id + " (click to copy)", "aria-label": "Copy the id " + id, onclick: (event) => {
      event.stopPropagation();
      event.preventDefault();
      navigator.clipboard?.writeText(id).then(() => say("The id was copied."), () => say("The browser does not let this page copy."));
    },
  }, id.slice(0, 8));
}

let saying = 0;
/** Shows a message for some seconds. action: `{text, run}`, a button beside it; then the message stays longer. */
export function say(text, action = null) {
  const place = document.getElementById("said");
  fill(place, text, action ? el("button", { type: "button", onclick: () => { place.hidden = true; action.run(); } }, action.text) : null);
  place.hidden = false;
  clearTimeout(saying);
  saying = setTimeout(() => { place.hidden = true; }, action ? 15000 : 5000);
}

/** The content of an empty list: why it is empty, and what to do next. */
export function empty(what, ...next) {
  return el("div", { class: "empty" }, el("strong", {}, what), ...next);
}

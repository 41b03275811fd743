// Making elements. Text is always text: nothing here reads a string as HTML.

const HARMFUL = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]/u;
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

/** Takes the place of all children. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return parent;
}

function escaped(character) {
  if (NAMES[character]) return NAMES[character];
  const number = character.codePointAt(0);
  return number < 0x100 ? "\\x" + number.toString(16).padStart(2, "0") : "\\u" + number.toString(16).padStart(4, "0");
}

/** A name that anybody may have given, in one line, with what cannot be seen made visible. */
export function named(text) {
  if (text === "") return [el("span", { class: "muted" }, "(empty)")];
  if (!HARMFUL.test(text)) return [el("bdi", {}, text)];
  const parts = [];
  let plain = "";
  for (const character of text) {
    if (!HARMFUL.test(character)) { plain += character; continue; }
    if (plain) parts.push(plain);
    plain = "";
    parts.push(el("span", { class: "escaped" }, escaped(character)));
  }
  if (plain) parts.push(plain);
  return [el("bdi", {}, ...parts)];
}

/** The same as plain text, for labels and titles. */
export function spoken(text) {
  return !HARMFUL.test(text) ? text : [...text].map((character) => (HARMFUL.test(character) ? escaped(character) : character)).join("");
}

/** The first 8 characters of a version's id, which copies the whole. */
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
/** Tells something for some seconds. */
export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  place.hidden = false;
  clearTimeout(saying);
  saying = setTimeout(() => { place.hidden = true; }, 5000);
}

/** What an empty list says: what is so, and what to do next. */
export function empty(what, ...next) {
  return el("div", { class: "empty" }, el("strong", {}, what), ...next);
}

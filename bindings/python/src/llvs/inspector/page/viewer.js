// Shows a value by its kind: JSON, text, a picture, or bytes. No part of it is read as HTML.

import { data } from "./api.js";
import { el, fill } from "./dom.js";
import { bytes, number } from "./time.js";

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const COLOURED = 200_000;
const LARGEST_PICTURE = 32 * 1024 * 1024;
const LINES = 16;
const KINDS = { json: "JSON", text: "Text", image: "Picture", binary: "Bytes", gone: "Bytes gone" };

/** Shows a value that the server described. */
export function showValue(place, value) {
  const told = el("p", { class: "muted small" },
    `${KINDS[value.kind]}, ${bytes(value.size)} · stored by `,
    el("code", {}, value.storedBy.slice(0, 8)));
  const body = el("div", {});
  fill(place, told, body);
  if (value.size === 0) fill(body, el("pre", { class: "value", tabindex: 0 }, el("span", { class: "faint" }, "(empty: 0 bytes)")));
  else if (value.kind === "gone") fill(body, el("p", { class: "muted" }, "Its bytes are gone. Its size and digest remain."));
  else if (value.kind === "json") fill(body, json(value.text));
  else if (value.kind === "text") fill(body, text(value));
  else if (value.kind === "image") picture(body, value);
  else fill(body, hex(value));
}

/** JSON, indented, with the spelling of every number and string preserved. */
export function json(source) {
  const place = el("pre", { class: "value", tabindex: 0, "aria-label": "The value" });
  // Very long documents have no colours, because each coloured piece would be an element of the page.
  const isLong = source.length > COLOURED, text = [];
  const append = (...parts) => (isLong ? text.push(...parts) : place.append(...parts));
  const tokens = source.match(TOKEN) || [];
  let deep = 0;
  const line = () => "\n" + "  ".repeat(Math.min(deep, 40));
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    if (token === "{" || token === "[") {
      deep += 1;
      append(token, next === "}" || next === "]" ? "" : line());
    } else if (token === "}" || token === "]") {
      deep -= 1;
      append(tokens[index - 1] === "{" || tokens[index - 1] === "[" ? "" : line(), token);
    } else if (token === ",") {
      append(",", line());
    } else if (token === ":") {
      append(": ");
    } else {
      const kind = token[0] === '"' ? (next === ":" ? "key" : "string") : "literal";
      append(isLong ? visible(token) : el("span", { class: kind }, visible(token)));
    }
  });
  if (isLong) place.textContent = text.join("");
  return place;
}

/** Text with control characters and direction marks made visible. */
export function visible(source) {
  return source.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (character) => (
    character === "\r" ? "\u240d" : character < " " ? String.fromCharCode(0x2400 + character.charCodeAt(0)) : "\ufffd"));
}

function text(value) {
  const place = el("pre", { class: "value", tabindex: 0, "aria-label": "The value" }, visible(value.text));
  if (value.isWhole) return place;
  const told = el("p", { class: "muted small" },
    `The first ${bytes(value.text.length)} of ${bytes(value.size)}. As bytes it can be looked at to its end:`);
  return el("div", {}, place, told, hex(value));
}

async function picture(place, value) {
  if (value.size > LARGEST_PICTURE) {
    fill(place, hex(value));
    return;
  }
  const pieces = [];
  for (let offset = 0; offset < value.size; offset += 4 * 1024 * 1024) pieces.push(await data(value.id, value.at, offset, 4 * 1024 * 1024));
  const address = URL.createObjectURL(new Blob(pieces, { type: value.type }));
  const image = el("img", { alt: `The picture under this id, ${value.type}` });
  const told = el("p", { class: "muted small" });
  image.addEventListener("load", () => {
    told.textContent = `${number(image.naturalWidth)} × ${number(image.naturalHeight)} pixels, ${value.type}`;
    URL.revokeObjectURL(address);
  });
  image.addEventListener("error", () => {
    URL.revokeObjectURL(address);
    fill(place, el("p", { class: "muted small" }, "It begins like a picture, and is none. Its bytes:"), hex(value));
  });
  image.src = address;
  fill(place, el("div", { class: "picture" }, image, told));
}

/** Bytes, in pages. */
function hex(value) {
  const place = el("pre", { class: "value hex", tabindex: 0, "aria-label": "The bytes of the value" });
  const told = el("span", { class: "muted small number", role: "status" });
  let offset = 0;
  const size = LINES * 32;
  const show = async (to) => {
    offset = Math.max(0, Math.min(to, Math.floor((value.size - 1) / size) * size));
    const from = offset, bytes = new Uint8Array(await data(value.id, value.at, offset, size));
    if (from !== offset) return;
    // A narrow view shows fewer bytes in a line, so that their text fits beside them.
    fill(place, ...lines(bytes, offset, place.clientWidth < 360 ? 4 : place.clientWidth < 640 ? 8 : 16));
    told.textContent = `${number(offset)} to ${number(offset + bytes.length)} of ${number(value.size)}`;
    before.disabled = offset === 0;
    after.disabled = offset + size >= value.size;
  };
  const before = el("button", { onclick: () => show(offset - size) }, "Before");
  const after = el("button", { onclick: () => show(offset + size) }, "After");
  const last = el("button", { onclick: () => show(value.size) }, "End");
  show(0).catch((problem) => { place.textContent = problem.message; });
  return el("div", {}, place, value.size > size ? el("p", { class: "row-of" }, before, after, last, told) : null);
}

function* lines(found, offset, perLine) {
  for (let at = 0; at < found.length; at += perLine) {
    const part = found.subarray(at, at + perLine);
    const digits = Array.from(part, (byte) => byte.toString(16).padStart(2, "0"));
    const spaced = digits.slice(0, 8).join(" ").padEnd(Math.min(perLine, 8) * 3 - 1)
      + (perLine > 8 ? "  " + digits.slice(8).join(" ").padEnd(23) : "");
    const letters = Array.from(part, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    yield el("span", { class: "faint" }, (offset + at).toString(16).padStart(8, "0"));
    yield `  ${spaced}  ${letters}\n`;
  }
}


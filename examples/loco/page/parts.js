// Parts of all views: actions, and faces.

import { photo, post } from "/api.js";
import { el, fill, say } from "/dom.js";

const going = new Set();

/** Does something, and shows a message if it fails. Returns whether it was done. */
export async function act(what, given, after = () => {}) {
  // A double click does it once. But several undos in a row are intended.
  const deed = what === "undo" || what === "redo" ? {} : what + JSON.stringify(given);
  if (going.has(deed)) return false;
  going.add(deed);
  try {
    const done = await post(what, given);
    if (done.said) say(done.said);
    after(done);
    return true;
  } catch (problem) {
    say(problem.message);
    return false;
  } finally {
    going.delete(deed);
  }
}

/** Returns a key by which an element is found again after its place was redrawn. */
function nameOf(element) {
  return [element.tagName, element.id, element.getAttribute("href"), element.getAttribute("aria-label"), element.name,
    element.id ? "" : element.textContent].join("\n");
}

/** Redraws a place if `data` differs from the data of the last drawing. The focus and the scroll position stay. */
export function refill(place, data, make) {
  const key = JSON.stringify(data);
  if (place.drawnOf === key && place.firstChild) return;
  place.drawnOf = key;
  const focused = place !== document.activeElement && place.contains(document.activeElement) ? document.activeElement : null;
  const name = focused && nameOf(focused), top = place.scrollTop;
  fill(place, make());
  place.scrollTop = top;
  if (!focused) return;
  const again = focused.isConnected ? focused : [...place.querySelectorAll(focused.tagName)].find((one) => nameOf(one) === name);
  again?.focus({ preventScroll: true });
}

/** A face: the photo, or the initials. */
export function face(contact, id, size = "") {
  if (contact.photo) {
    const picture = el("img", { alt: "" });
    photo(contact.photo).then((address) => { picture.src = address; }, () => picture.remove());
    return el("span", { class: "face " + size }, picture);
  }
  const words = contact.name.trim().split(/\s+/);
  const letters = [...(words[0] || "?")][0] + (words.length > 1 ? [...words.at(-1)][0] : "");
  const tint = [...id].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % 4;
  return el("span", { class: `face tint-${tint} ${size}`, "aria-hidden": "true" }, letters.toUpperCase());
}

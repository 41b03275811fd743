// What all views use: doing something, and faces.

import { photo, post } from "/api.js";
import { el, say } from "/dom.js";

/** Does something; what goes wrong is told. */
export async function act(what, given, after = () => {}) {
  try {
    const done = await post(what, given);
    if (done.said) say(done.said);
    after(done);
  } catch (problem) {
    say(problem.message);
  }
}

/** A face: the photo, or the first letters of the name. */
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

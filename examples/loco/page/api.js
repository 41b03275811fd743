// Requests to the device's process.

import { fetchWithToken } from "/token.js";

async function take(request) {
  let answer;
  try {
    answer = await request;
  } catch {
    throw new Error("LoCo does not answer. Was it ended? Start it again with scripts/loco.");
  }
  if (answer.headers.get("content-type") !== "application/json") throw new Error(await answer.text());
  const content = await answer.json();
  // If the user may confirm the refused request, the answer has the value with which the request is repeated.
  if (!answer.ok) throw Object.assign(new Error(content.error), { confirm: content.confirm });
  return content;
}

/** Returns what the server has to show. Throws an Error with a sentence for people. */
export function get(name, query = {}) {
  return take(fetchWithToken("/api/" + name + "?" + new URLSearchParams(query)));
}

/** Does something in the book. */
export function post(what, given = {}) {
  return take(fetchWithToken("/api/" + what, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(given),
  }));
}

/** Decodes Base64. */
export function bytesOf(packed) {
  return Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
}

const photos = new Map();

/** Returns the address of a photo within this window. A photo never changes. */
export function photo(id) {
  if (!photos.has(id)) {
    photos.set(id, fetchWithToken("/photo/" + encodeURIComponent(id)).then(async (answer) => {
      if (!answer.ok) throw new Error("There is no such photo.");
      return URL.createObjectURL(await answer.blob());
    }));
    // A photo that could not be loaded is requested again when it is shown next.
    photos.get(id).catch(() => photos.delete(id));
  }
  return photos.get(id);
}

// Requests to the server. A request that takes longer than 150 ms shows that it is under way.

import { fetchWithToken } from "./token.js";

let waiting = 0;
let timer = 0;

function begin() {
  if (waiting++ === 0) timer = setTimeout(() => document.getElementById("busy").classList.add("on"), 150);
}

function end() {
  if (--waiting > 0) return;
  clearTimeout(timer);
  document.getElementById("busy").classList.remove("on");
}

async function take(request) {
  begin();
  try {
    const answer = await request;
    if (answer.headers.get("content-type") === "application/json") {
      const content = await answer.json();
      // If the change can be made nevertheless, the answer has the value to confirm it with.
      if (!answer.ok) throw Object.assign(new Error(content.error), { confirm: content.confirm });
      return content;
    }
    if (!answer.ok) throw new Error(await answer.text());
    return await answer.arrayBuffer();
  } catch (problem) {
    if (problem instanceof TypeError) throw new Error("The inspector does not answer. Was it ended? Start it again: llvs inspect.");
    throw problem;
  } finally {
    end();
  }
}

function address(name, query) {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined && value !== null) given.set(key, value);
  return "/api/" + name + "?" + given;
}

/** Returns the answer of an endpoint. Throws an Error with a sentence for people. */
export function get(name, query = {}, signal = undefined) {
  return take(fetchWithToken(address(name, query), { signal }));
}

/** Returns a part of a value, as an ArrayBuffer. */
export function data(id, at, offset, length) {
  return get("data", { id, at, offset, length });
}

/** Changes the store, if that is allowed. */
export function change(what, given) {
  return take(fetchWithToken("/api/change/" + what, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(given),
  }));
}

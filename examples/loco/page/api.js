// Asking the device's program.

async function take(request) {
  let answer;
  try {
    answer = await request;
  } catch {
    throw new Error("LoCo does not answer. Was it ended? Start it again with scripts/loco.");
  }
  if (answer.headers.get("content-type") !== "application/json") throw new Error(await answer.text());
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

/** What there is to show. Throws an Error with a sentence for people. */
export function get(name, query = {}) {
  return take(fetch("/api/" + name + "?" + new URLSearchParams(query)));
}

/** Something to do. */
export function post(what, given = {}) {
  return take(fetch("/api/" + what, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(given) }));
}

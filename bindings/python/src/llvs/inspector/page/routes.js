// Each view has an address after the #, so that "back" works and addresses can be saved.

/** Returns the parts of the address: `{view, parts, query}`. */
export function here() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  let parts = [];
  try {
    parts = path.split("/").filter((part) => part !== "").map(decodeURIComponent);
  } catch {
    // Not an address of this page.
  }
  return { view: parts[0] || "history", parts: parts.slice(1), query: new URLSearchParams(query || "") };
}

/** Returns the address of a view: `at("values", [version], {id})`. */
export function at(view, parts = [], query = {}) {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined && value !== null && value !== "") given.set(key, value);
  const text = given.toString();
  return "#/" + [view, ...parts].map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

/** Goes to an address. "Back" returns from it, unless `instead` is set. */
export function go(address, instead = false) {
  if (instead) location.replace(address);
  else location.hash = address;
}

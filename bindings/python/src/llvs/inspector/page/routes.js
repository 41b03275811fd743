// Each thing that can be looked at has an address, behind the #: so back works, and an address can be kept.

/** What the address says: `{view, parts, query}`. */
export function here() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  let parts = [];
  try {
    parts = path.split("/").filter((part) => part !== "").map(decodeURIComponent);
  } catch {
    // Not an address of ours.
  }
  return { view: parts[0] || "history", parts: parts.slice(1), query: new URLSearchParams(query || "") };
}

/** The address of something: `at("values", [version], {id})`. */
export function at(view, parts = [], query = {}) {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined && value !== null && value !== "") given.set(key, value);
  const text = given.toString();
  return "#/" + [view, ...parts].map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

/** Goes there; back comes back here unless `instead`. */
export function go(address, instead = false) {
  if (instead) location.replace(address);
  else location.hash = address;
}

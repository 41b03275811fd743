// The keys of the page.

import { el, fill, say } from "./dom.js";
import { at, go } from "./routes.js";
import { sliderShown } from "./values.js";

const KEYS = [
  ["j, k", "the next older, the next newer version"], ["g, G", "the newest, the oldest version"], ["Enter", "look at the chosen version"],
  ["v", "its values"], ["[ and ]", "earlier and later, through the changes of a value"],
  ["p", "play or pause them; without a value, the history"],
  ["d", "compare it with the version before it; with the one that was marked by x"], ["x", "mark it, to compare with"],
  ["m", "explain the merge"], ["u, U", "undo, redo what was changed here"],
  ["/", "search"], ["?", "these keys"], ["Esc", "leave a field, close this"],
];

/** Listens for keys. */
export function listen(app) {
  const help = document.getElementById("help");
  fill(help, el("h2", { id: "help-title" }, "Keys"), el("dl", { class: "facts" }, ...KEYS.flatMap(([key, what]) => [el("dt", {}, el("kbd",
    {}, key)), el("dd", {}, what)])),
    el("button", { onclick: () => help.close() }, "Close"));
  document.getElementById("keys").addEventListener("click", () => help.showModal());
  let marked = null;
  const actions = {
    j: () => app.walk(1), k: () => app.walk(-1), ArrowDown: () => app.walk(1), ArrowUp: () => app.walk(-1), g: () => app.walk(-1e9),
      G: () => app.walk(1e9),
    Enter: () => app.chosen() && go(at("version", [app.chosen()])),
    v: () => app.chosen() && go(at("values", [app.chosen()])),
    x: () => {
      marked = app.chosen();
      if (marked) say(`${marked.slice(0, 8)} is marked: choose another version, and press d.`);
    },
    d: () => {
      const to = app.chosen();
      const from = marked && marked !== to ? marked : app.predecessor();
      if (to && from) go(at("compare", [from, to]));
    },
    m: () => {
      if (app.isMerge() === false) say("This version is no merge: it was made from one version, or from none.");
      else if (app.chosen()) go(at("merge", [app.chosen()]));
    },
    "[": () => sliderShown()?.step(-1), "]": () => sliderShown()?.step(1), p: () => (sliderShown() ?? app.replay).play(),
    u: () => app.takeBack("undo"), U: () => app.takeBack("redo"),
    "/": () => document.getElementById("search").focus(), "?": () => help.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const inField = event.target.closest?.("input:not([type=range]), textarea, select, dialog");
    if (event.key === "Escape" && inField) event.target.blur();
    if (inField || !actions[event.key]) return;
    const arrow = event.key.startsWith("Arrow") || event.key === "Enter";
    if (arrow && event.target.id !== "scroller") return;
    event.preventDefault();
    actions[event.key]();
  });
}

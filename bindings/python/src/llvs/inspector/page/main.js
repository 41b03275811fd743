// The inspector: connects the history, the view and the news.

import { change, get } from "./api.js";
import { showCompare } from "./compare.js";
import { el, empty, fill, say, spoken } from "./dom.js";
import { History } from "./history.js";
import { listen } from "./keys.js";
import { showConflicts, showMerge } from "./merge.js";
import { showExchanges, showHeads, showSearch } from "./others.js";
import { Replay } from "./replay.js";
import { at, go, here } from "./routes.js";
import { showSizes } from "./sizes.js";
import { counted, number } from "./time.js";
import { enter, hear } from "./token.js";
import { showValues } from "./values.js";
import { showVersion } from "./version.js";

const VIEWS = {
  version: showVersion, values: showValues, compare: showCompare, merge: showMerge, conflicts: showConflicts, heads: showHeads,
  exchanges: showExchanges, search: showSearch, size: showSizes,
};
const view = document.getElementById("view");
const live = document.getElementById("live");
let summary = null;
let address = null;
let asked = 0, shown = 0;
let walking = Promise.resolve();

const history = new History(document.getElementById("scroller"), (row) => {
  replay.end();
  go(at("version", [row.id]));
});

const replay = new Replay(history, document.getElementById("replay"), (row) => {
  go(at(row.predecessors.length > 1 ? "merge" : "version", [row.id]), true);
}, () => summary?.work);

const app = {
  replay,
  takeBack: (what) => (summary?.write ? takeBack(what) : undefined),
  get write() { return Boolean(summary?.write); },
  /** Returns whether an answer is still wanted, and records that it is shown. It is not if the answer to a later request is shown already.
  */
  isAt: (route) => {
    const isWanted = route.address === address && route.number >= shown;
    if (isWanted) shown = route.number;
    return isWanted;
  },
  /** The version on which changes are saved here. */
  head: () => summary?.work,
  chosen: () => history.chosen,
  predecessor: () => history.row?.predecessors[0],
  /** Whether the chosen version is a merge; undefined until it is loaded. */
  isMerge: () => history.row && history.row.predecessors.length > 1,
  canForesee: (found) => found.a.id !== found.b.id,
  // Steps run one after the other, each from the result of the last one: keys come faster than rows load.
  walk: (by) => walking = walking.then(async () => {
    replay.end();
    const row = await history.beside(by);
    if (!row) return;
    history.choose(row.id);
    // Walking through versions replaces the address, so that "back" leads to where the walk began.
    const isWalk = here().view === "version";
    go(at("version", [row.id]), isWalk);
  }),
};

/** Shows the view that the address names. */
async function show() {
  // News may request an address again while a request for it is under way.
  const route = { ...here(), address: location.hash, number: ++asked };
  address = route.address;
  const part = ["heads", "conflicts", "exchanges", "size"].includes(route.view) ? route.view : "history";
  for (const link of document.querySelectorAll(".bar nav a")) {
    if (link.dataset.part === part) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.body.classList.toggle("on-history", route.view === "history");
  const chosen = route.view === "compare" ? route.parts[1] : ["version", "values",
    "merge"].includes(route.view) ? route.parts[0] : history.chosen;
  if (chosen !== history.chosen) point(chosen);
  const shows = VIEWS[route.view];
  if (!shows) {
    // The history alone: a wide window shows the version "@" beside it.
    if (summary?.work) {
      // At first, scroll to it. Later the user may have scrolled elsewhere.
      history.choose(summary.work, view.dataset.view === undefined);
      view.dataset.view ??= "history";
      await showVersion(view, { ...route, parts: [summary.work] }, app).catch(failed);
    } else {
      fill(view, empty("This store has no version yet.",
        "Save something with the application, or with ", el("code", {}, "llvs set"), ". It appears here by itself."));
    }
    return;
  }
  document.title = `${spoken(summary?.name || "Store")} · ${route.view}`;
  await shows(view, route, app).catch((problem) => { if (app.isAt(route)) failed(problem); });
  if (!app.isAt(route)) return;
  if (view.dataset.view !== route.view) view.scrollTop = 0;
  view.dataset.view = route.view;
}

/** Marks in the history the version with a name. */
async function point(name) {
  if (!name) return history.choose(null);
  const before = address;
  const found = name === "@" ? { id: summary?.work } : name.length < 32 ? await get("row",
    { version: name }).catch(() => null) : { id: name };
  if (before !== address) return undefined;
  return history.choose(found?.id ?? null);
}

function failed(problem) {
  fill(view, el("p", { class: "problem", role: "alert" }, problem.message));
}

/** Shows the state of the store in the frame of the page. Returns whether the view has to change. */
function frame(now) {
  const before = summary;
  summary = now;
  const name = document.getElementById("name");
  name.textContent = spoken(now.name);
  name.title = spoken(now.path);
  live.classList.remove("waiting", "lost");
  live.textContent = now.write ? "Live, editing on" : "Live, read only";
  live.title = now.write ? "What you change is saved as new versions. The application gets them when it merges next."
    : "Start the inspector with --write to change the store.";
  const troubles = [now.damaged && counted(now.damaged, "damaged place"), now.pending && `${number(now.pending)} waiting`].filter(Boolean);
  fill(document.querySelector("nav [data-part='exchanges']"), "Exchanges",
    troubles.length ? el("span", { class: "chip alarm" }, troubles.join(", ")) : null);
  const undoing = document.getElementById("undoing");
  fill(undoing, now.write ? [["undo", "Undo", now.canUndo], ["redo", "Redo", now.canRedo]].map(([what, text, can]) => (
    el("button", { class: "plain", disabled: !can, title: can ? `${text}: ${spoken(now[what])}` : `There is nothing to ${what}`,
      onclick: () => takeBack(what) }, text))) : null);
  return !before || before.generation !== now.generation || before.current !== now.current || before.work !== now.work;
}

async function takeBack(what) {
  const from = location.hash;
  try {
    const done = await change(what, { at: summary.work });
    say(done.message);
    // Whoever went to another view meanwhile stays there.
    if (done.version && location.hash === from) go(at("version", [done.version.id]));
  } catch (problem) {
    say(problem.message);
  }
}

function follow() {
  hear("/api/news", async (now) => {
    // Changes that were made here show their own messages.
    const came = summary ? now.versions - summary.versions - (now.madeHere - summary.madeHere) : 0;
    if (!frame(now)) return;
    await history.renew();
    if (came > 0) say(`${counted(came, "new version")} from others.`);
    // A view of fixed versions stays, because versions never change. Only views of the current state are loaded again.
    if (["history", "heads", "conflicts", "exchanges", "size"].includes(here().view)) show();
  }, () => {
    live.classList.remove("waiting");
    live.classList.add("lost");
    live.textContent = "Not connected";
  });
}

document.getElementById("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const wanted = document.getElementById("search").value.trim();
  if (wanted) go(at("search", [], { q: wanted }));
});
// Of several quick steps only the last one is shown. An event that the page itself made loads the same address again.
addEventListener("hashchange", (event) => { if (!event.isTrusted || location.hash !== address) show(); });
listen(app);
try {
  await enter();
  const [now] = await Promise.all([get("summary"), history.renew()]);
  frame(now);
  await show();
  document.body.dataset.ready = "yes";
  follow();
} catch (problem) {
  failed(problem);
}

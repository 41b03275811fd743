// The values at a version as a tree, and the value that is shown.

import { change, get } from "./api.js";
import { moreButton } from "./changes.js";
import { el, empty, fill, named, say, spoken } from "./dom.js";
import { at, go } from "./routes.js";
import { Slider } from "./slider.js";
import { bytes, counted } from "./time.js";
import { headOf } from "./version.js";
import { showValue } from "./viewer.js";

let scene = null;

/** Shows the values at a version. If that version is shown already, the tree stays. */
export async function showValues(view, route, app) {
  const name = route.parts[0] || "@";
  if (!scene || scene.name !== name || !view.contains(scene.tree)) {
    const version = await get("version", { version: name, count: 1 });
    if (!app.isAt(route)) return;
    scene = makeScene(view, version, name, app);
    scene.chosen = route.query.get("id");
    await scene.list("");
    if (!app.isAt(route)) return;
  }
  const id = scene.chosen = route.query.get("id");
  for (const link of scene.tree.querySelectorAll("a")) link.setAttribute("aria-current", link.valueId === id);
  if (id !== null) await scene.open(id, route.query.get("at"), route);
  else fill(scene.shown, empty("Choose a value.", "Its history can be played with the slider, or with the keys [ and ]."));
}

/** The slider of the value that is shown, for the keyboard. */
export function sliderShown() {
  return scene?.shown.isConnected ? scene.slider : null;
}

function makeScene(view, version, name, app) {
  const made = { name, version, app, slider: null };
  made.tree = el("div", { class: "card" });
  made.shown = el("div", { class: "card shown" });
  const filter = el("input", { type: "text", placeholder: "Filter ids", "aria-label": "Filter the ids of values", spellcheck: "false" });
  let timer = 0;
  filter.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => made.list(filter.value), 150);
  });
  const place = el("div", {});
  made.tree.append(filter, place);
  made.list = async (wanted) => {
    const page = await get("state", { at: version.id, filter: wanted });
    if (wanted !== filter.value) return;
    const list = el("ul", { class: "tree", "aria-label": "Ids of values" });
    if (!page.entries.length) {
      fill(place, empty(wanted ? "No id contains this." : "There is no value here.",
        wanted ? "Ids are searched, not what is in values." : "Choose a later version."));
      return;
    }
    fill(place, list);
    addEntries(made, list, page, "", wanted);
  };
  made.open = (id, step, route) => openValue(made, id, step, route);
  fill(view, ...headOf(version, "values"), el("div", { class: "values" }, made.tree, made.shown));
  return made;
}

function addEntries(made, list, page, prefix, wanted) {
  for (const entry of page.entries) {
    if (entry.prefix === undefined) {
      const link = el("a", { href: at("values", [made.name], { id: entry.id }), title: spoken(entry.id) },
        el("span", { class: "clip" }, ...named(entry.name)), el("span", { class: "push muted small number" }, bytes(entry.size ?? 0)));
      link.valueId = entry.id;
      link.setAttribute("aria-current", entry.id === made.chosen);
      list.append(el("li", {}, link));
      continue;
    }
    const below = el("ul", { class: "tree" });
    let asked = false;
    const group = el("details", {}, el("summary", {}, el("span", { class: "clip" }, ...named(entry.name)),
      el("span", { class: "push muted small number" }, counted(entry.count, "value"))), below);
    group.addEventListener("toggle", async () => {
      // The user may close and open it again before the answer arrives.
      if (!group.open || asked) return;
      asked = true;
      try {
        addEntries(made, below, await get("state", { at: made.version.id, prefix: entry.prefix }), entry.prefix, "");
      } catch (problem) {
        say(problem.message);
        asked = false;
      }
    });
    if (page.entries.length < 12 && entry.count <= 24) group.open = true;
    list.append(el("li", {}, group));
  }
  if (!page.next) return;
  const more = el("li", {}, moreButton(async () => {
    const rest = await get("state", { at: made.version.id, prefix, filter: wanted, after: page.next });
    more.remove();
    addEntries(made, list, rest, prefix, wanted);
  }));
  list.append(more);
}

async function openValue(made, id, step, route) {
  if (made.slider?.id === id && made.shown.contains(made.slider.element)) {
    await made.slider.show(step);
    return;
  }
  const { steps, cut } = await get("steps", { at: made.version.id, id });
  if (!made.app.isAt(route)) return;
  made.shown.valueId = id;
  const content = el("div", {});
  const buttons = el("span", { class: "push row-of" });
  made.slider = new Slider(id, steps, cut, content, made.version, (version) => {
    go(at("values", [made.name], { id, at: version === made.version.id ? null : version }), true);
  });
  fill(made.shown, el("div", { class: "row-of" }, el("h3", {}, el("code", {}, ...named(id))), buttons),
    id === "__llvs_schema" ? el("p", { class: "small muted" }, "The rules by which merges decide, and the indexes of this store.") : null,
    made.slider.element, content);
  if (made.app.write && made.version.id === made.app.head()) {
    buttons.append(el("button", { onclick: () => edit(made, id, content) }, "Edit"),
      el("button", { onclick: () => save(made, "remove", { id }) }, "Remove"));
  }
  await made.slider.show(step);
  return showValue;
}

async function edit(made, id, content) {
  const number = made.slider.leave();
  const value = await get("value", { at: made.version.id, id }).catch(() => ({ kind: "text", text: "", isWhole: true }));
  // Meanwhile the slider was moved, or another value was chosen.
  if (number !== made.slider.asked || made.slider.id !== id) return;
  if (value.text === undefined || !value.isWhole) {
    say("Only texts that are shown as a whole can be edited here.");
    return;
  }
  const text = el("textarea", { "aria-label": "The new value", "aria-describedby": "edit-problem", spellcheck: "false" });
  text.value = value.text;
  const told = el("div", { id: "edit-problem", role: "alert" });
  const send = (confirmed) => save(made, "edit", { id, text: text.value, confirmed }, (problem) => {
    fill(told, el("p", { class: "problem" }, problem.message), problem.confirm
      ? el("button", { onclick: () => send(problem.confirm) }, "Save it all the same") : null);
    text.setAttribute("aria-invalid", "true");
    text.focus();
  });
  text.addEventListener("input", () => {
    fill(told);
    text.removeAttribute("aria-invalid");
  });
  fill(content, text, told, el("div", { class: "row-of" },
    el("button", { class: "primary", onclick: () => send() }, "Save as a new version"),
    el("button", { onclick: () => made.slider.show(null, true) }, "Leave it as it is")));
  text.focus();
}

async function save(made, what, given, onProblem = (problem) => say(problem.message)) {
  // Ignores a second click, which would save twice.
  if (made.isSaving) return;
  made.isSaving = true;
  try {
    const done = await change(what, { ...given, at: made.version.id });
    say(done.message);
    go(at("compare", [made.version.id, done.version.id], { id: given.id }));
  } catch (problem) {
    onProblem(problem);
  } finally {
    made.isSaving = false;
  }
}

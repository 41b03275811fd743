// The light: whether this device is in sync with the others, and what was received and sent when.

import { el, empty, named } from "/dom.js";
import { act } from "/parts.js";
import { counted, exactly, when } from "/time.js";

/** Returns the state of the light, and its text. */
export function lightText(light) {
  const last = light.last ? when(Math.min(light.last, Date.now() / 1000)) : null;
  if (!light.isOnline) return ["offline", last ? `Offline, synced ${last}` : "Offline"];
  if (light.state === "running") return ["running", "Syncing"];
  if (light.error || light.problems.length) return ["failed", "Not reached"];
  return ["", last ? `Synced ${last}` : "Not synced yet"];
}

export function showSynced(light) {
  const row = (round) => el("tr", {},
    el("td", {}, round.time ? el("time", { title: exactly(round.time) }, when(round.time)) : ""),
    el("td", { class: "number" }, round.came), el("td", { class: "number" }, round.went),
    el("td", {}, round.changed.length ? [round.merged ? "merged: " : "", named(round.changed.slice(0, 5).join(", ")
      + (round.changed.length > 5 ? " and " + (round.changed.length - 5) + " more" : ""))] : round.merged ? "merged" : ""));
  return el("div", {},
    el("div", { class: "head" }, el("h2", {}, lightText(light)[1]),
      el("button", { type: "button", disabled: !light.isOnline, onclick: () => act("sync") }, "Sync now")),
    light.isOnline ? null : el("p", {}, "This device is offline: it keeps what is saved, and sends it when the switch is on again."),
    light.error ? el("p", { class: "problem" }, light.error) : null,
    light.problems.length ? el("p", { class: "problem" }, light.problems.join(" ")) : null,
    el("p", { class: "muted" }, light.places.map((place) => [/^[a-z+]{2,}:/.test(place) ? "Shared server: " : "Shared folder: ",
      named(place), ". "]),
      `Since LoCo was started ${counted(light.came, "version was", "versions were")} received, and ${light.went} sent.`),
    light.rounds.length ? el("div", { class: "card" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "when"),
      el("th", { scope: "col", class: "number" }, "received"), el("th", { scope: "col", class: "number" }, "sent"),
      el("th", { scope: "col" }, "changed here"))), el("tbody", {}, light.rounds.map(row))))
      : empty("Nothing was received or sent yet.", "What is saved here goes to the other devices by itself."));
}

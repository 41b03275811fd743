// One window with both devices. The page of each device is in a frame; this page has the cable, and shows which device has which version.

import { get, post } from "/api.js";
import { el, fill, named, say, spoken } from "/dom.js";
import { counted } from "/time.js";
import { enter, hear } from "/token.js";

const HIGH = 64;
const $ = (id) => document.getElementById(id);
const lines = new Map();
let isPlugged = true;
let asked = 0;

/** Draws a version in its line. The dot is beside the device that has it, or in the middle if both have it. */
function draw(version, place, devices) {
  let line = lines.get(version.id);
  if (!line) {
    line = el("li", {}, el("span", { class: "dot", "aria-hidden": "true" }), el("span", { class: "text" }));
    lines.set(version.id, line);
    // New lines are inserted in their order; the others stay in the page, so that their movement is visible.
    $("versions").insertBefore(line, $("versions").children[place] ?? null);
  }
  const [first, second] = version.at;
  const where = first && second ? "both" : first ? "0" : "1";
  line.className = "at-" + where;
  line.style.top = place * HIGH + "px";
  line.firstChild.className = "dot" + (version.isMerge ? " merge" : version.by === devices[1] ? " by-1" : "");
  fill(line.lastChild, named(version.what), el("span", { class: "unseen" }, where === "both" ? ", on both devices"
    : `, only on ${spoken(devices[Number(where)])}`));
}

async function renew() {
  const number = ++asked;
  const desk = await get("desk");
  // Answers may arrive in another order than the requests: only that of the last request counts.
  if (number !== asked) return;
  isPlugged = desk.isPlugged;
  document.body.classList.toggle("unplugged", !isPlugged);
  $("plug").textContent = isPlugged ? "Pull out the cable" : "Plug in the cable";
  $("plug").disabled = false;
  desk.versions.forEach((version, place) => draw(version, place, desk.devices));
  const shown = new Set(desk.versions.map((version) => version.id));
  for (const [id, line] of lines) if (!shown.has(id)) { line.remove(); lines.delete(id); }
  $("versions").style.height = desk.versions.length * HIGH + "px";
  const apart = desk.versions.filter((version) => version.at.includes(false)).length;
  $("told").textContent = apart ? `${counted(apart, "version is", "versions are")} not on both devices yet.`
    : isPlugged ? "Both devices have the same versions." : "Change something on both devices, then plug in the cable.";
}

$("plug").addEventListener("click", () => post("plug", { isPlugged: !isPlugged }).catch((problem) => say(problem.message)));
try {
  await enter();
  const [{ addresses }, desk] = await Promise.all([post("enter"), get("desk")]);
  addresses.forEach((src, place) => $("desk").append(el("iframe", { src, title: spoken(desk.devices[place]), class: "device-" + place })));
  document.body.dataset.ready = "start";
  hear("/api/news", () => renew().catch((problem) => say(problem.message)), (isOtherRun) => {
    $("plug").disabled = true;
    $("told").textContent = isOtherRun ? "LoCo was started anew. Open its newest address."
      : "LoCo was ended. Start it again with scripts/loco.";
  });
} catch (problem) {
  $("told").textContent = problem.message;
}

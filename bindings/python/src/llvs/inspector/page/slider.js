// The versions of one value over time, step by step or played.

import { get } from "./api.js";
import { KINDS } from "./changes.js";
import { insideOf } from "./differences.js";
import { el, empty, fill, named, spoken } from "./dom.js";
import { titleOf } from "./history.js";
import { at } from "./routes.js";
import { exactly, when } from "./time.js";
import { showValue } from "./viewer.js";

const PACE = 1200;

export class Slider {
  /** steps: the versions that changed the value, the oldest first. onMove(version): called when another one is shown. */
  constructor(id, steps, cut, content, version, onMove) {
    Object.assign(this, { id, steps, cut, content, version, onMove, place: -1, asked: 0 });
    this.range = el("input", {
      type: "range", min: 0, max: Math.max(0, steps.length - 1), "aria-label": "The versions of this value, in time",
      oninput: () => this.move(Number(this.range.value)),
    });
    this.earlier = el("button", { onclick: () => this.step(-1), "aria-label": "Earlier change", title: "Earlier: [" }, "Earlier");
    this.later = el("button", { onclick: () => this.step(1), "aria-label": "Later change", title: "Later: ]" }, "Later");
    this.button = el("button", { onclick: () => this.play() }, "Play");
    this.told = el("div", { class: "told small muted", role: "status" });
    this.ticks = el("div", { class: "ticks", "aria-hidden": "true" });
    this.element = steps.length ? el("div", { class: "slider" }, this.earlier, this.button, this.later, this.range, this.ticks,
      this.told) : el("div", {});
    const step = Math.max(1, Math.ceil(steps.length / 200));
    for (let place = 0; place < steps.length; place += step) {
      const tick = el("i", { class: steps[place].predecessors.length > 1 ? "merge" : null });
      tick.style.left = steps.length > 1 ? `${(place / (steps.length - 1)) * 100}%` : "0";
      this.ticks.append(tick);
    }
    this.every = step;
  }

  step(by) {
    this.move(Math.max(0, Math.min(this.steps.length - 1, this.place + by)));
  }

  move(place) {
    if (place === this.place || !this.steps[place]) return;
    const version = place === this.steps.length - 1 ? this.version.id : this.steps[place].id;
    // Shown before the address changes, because the next key press may come earlier and must start from here.
    this.show(version);
    this.onMove(version);
  }

  /** Shows the value as it was at a version; at the last one if none is named. */
  async show(version, again = false) {
    let place = version ? this.steps.findIndex((step) => step.id === version) : this.steps.length - 1;
    if (place < 0 && version) place = this.steps.length - 1;
    if (place === this.place && !again) return;
    const number = ++this.asked;
    this.place = place;
    this.range.value = place;
    this.earlier.disabled = place <= 0;
    this.later.disabled = place >= this.steps.length - 1;
    [...this.ticks.children].forEach((tick, number) => tick.classList.toggle("now", number === Math.round(place / this.every)));
    const step = this.steps[place];
    const where = step ? step.id : this.version.id;
    if (step) {
      this.range.setAttribute("aria-valuetext", `${place + 1} of ${this.steps.length}, ${spoken(titleOf(step))}, ${exactly(step.time)}`);
      fill(this.told, `${place + 1} of ${this.steps.length}${this.cut ? " (the newest)" : ""}: `,
        step.kind === "preserve" ? "The merge kept this: " : [KINDS[step.kind] || step.kind, " by "],
        el("a", { href: at("version", [step.id]) }, ...named(titleOf(step))), step.who ? [" · ", ...named(step.who)] : "", " · ",
        el("span", { title: exactly(step.time) }, when(step.time)));
    }
    const before = this.steps[place - 1];
    const [value, inside] = await Promise.all([
      get("value", { at: where, id: this.id }).catch((problem) => problem),
      before ? get("compare/value", { a: before.id, b: where, id: this.id }).catch(() => null) : null,
    ]);
    if (number !== this.asked) return;
    const shown = el("div", {});
    if (value instanceof Error) fill(shown, empty("There is no value here.", step ? "It was removed by this version." : value.message));
    else showValue(shown, value);
    const differs = inside && inside.by !== "bytes" && !(value instanceof Error) ? insideOf(inside) : null;
    fill(this.content, differs ? el("div", { class: "changed-now" }, el("h3", {}, "What changed in this step"), differs) : null, shown);
  }

  /** Discards answers that are still under way, because something else is to be shown. Returns the new value of `asked`. */
  leave() {
    return ++this.asked;
  }

  /** Plays the steps: from the first one if the last one is shown. */
  play() {
    if (this.timer) return this.stop();
    this.button.textContent = "Pause";
    if (this.place >= this.steps.length - 1) this.move(0);
    this.timer = setInterval(() => {
      if (!this.element.isConnected || this.place >= this.steps.length - 1) this.stop();
      else this.step(1);
    }, PACE);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.button.textContent = "Play";
  }
}

// The whole book at another time: a slider through its versions. The list, faces and groups are those of that time.

import { get } from "/api.js";
import { el, fill, named, spoken } from "/dom.js";
import { act } from "/parts.js";
import { exactly } from "/time.js";

const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full" });

export class Past {
  /** place: the element for the slider. onMove(): called when another version is shown, or the current one again. */
  constructor(place, onMove) {
    Object.assign(this, { place, onMove, moments: null, at: 0 });
    const follow = () => this.move(Number(this.range.value));
    this.range = el("input", { type: "range", min: 0, "aria-label": "Time of the book", oninput: follow });
    this.told = el("p", { role: "status" });
    this.day = el("input", { type: "date", "aria-label": "The end of a day", onchange: () => this.moveTo(this.day.value) });
    this.restore = el("button", { type: "button", class: "primary", onclick: () => this.bringBack() }, "Restore");
    fill(place, el("div", { class: "row-of" },
      el("button", { type: "button", onclick: () => this.move(this.at - 1) }, "Earlier"), this.range,
      el("button", { type: "button", onclick: () => this.move(this.at + 1) }, "Later"), this.day, this.restore,
      el("button", { type: "button", onclick: () => this.close() }, "Back to now")), this.told);
  }

  /** The version that is shown; null for the current one. */
  get version() {
    return this.moments?.[this.at]?.version ?? null;
  }

  async open() {
    this.moments = await get("moments");
    this.range.max = this.moments.length - 1;
    this.place.hidden = false;
    this.move(this.moments.length - 1);
    this.range.focus();
  }

  close() {
    if (!this.moments) return;
    this.moments = null;
    this.place.hidden = true;
    this.onMove();
  }

  /** day: the date in the field, if the user chose one. */
  move(at, day = "") {
    if (!this.moments?.length) return;
    this.day.value = day;
    this.at = Math.max(0, Math.min(this.moments.length - 1, at));
    const one = this.moments[this.at];
    this.range.value = this.at;
    this.range.setAttribute("aria-valuetext", `${exactly(one.time)}, ${spoken(one.what)}`);
    this.restore.disabled = this.at === this.moments.length - 1;
    const last = [named(one.what), ", ", named(one.by)];
    if (day) {
      const end = "The end of " + whole.format(new Date(day + "T12:00"));
      fill(this.told, el("b", {}, end), ", last changed ", exactly(one.time), ": ", last);
    } else fill(this.told, el("b", {}, exactly(one.time)), " after: ", last);
    this.onMove();
  }

  /** Goes to the last version of a day, or of an earlier day if it has none. */
  moveTo(day) {
    const end = new Date(day + "T23:59:59.999").getTime() / 1000;
    if (Number.isNaN(end)) return;
    this.move(Math.max(0, this.moments.findLastIndex((one) => one.time <= end)), day);
  }

  bringBack() {
    return act("restore-all", { version: this.version }, () => this.close());
  }
}

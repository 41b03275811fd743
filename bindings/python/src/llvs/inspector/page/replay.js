// Plays the history from the first version on: lanes grow, and each merge shows the author of each word.

/** Milliseconds for which a version is shown, and for which a merge is shown. */
const PACE = 700, LONG = 3000;

export class Replay {
  /** show(row): shows a version. work(): returns the id of the version from which the next replay begins at the first version. */
  constructor(history, button, show, work) {
    Object.assign(this, { history, button, show, work, timer: 0, steps: 0, isPaused: false });
    button.addEventListener("click", () => this.play());
    this.told();
  }

  told() {
    this.button.textContent = this.timer ? "Pause" : "Play";
    this.button.title = this.timer ? "Pause: p" : "Play the history from the chosen version, or from the first: p";
  }

  /** Plays, or pauses. */
  play() {
    if (this.timer) return this.pause();
    if (!this.history.total) return undefined;
    if (!this.isPaused) {
      const row = this.history.row;
      this.place = row && row.row > 0 && row.id !== this.work() ? row.row + 1 : this.history.total;
    }
    this.isPaused = false;
    return this.step();
  }

  async step() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.step(), LONG);
    this.told();
    if (--this.place < 0) return this.end();
    const number = ++this.steps;
    const row = await this.history.hide(this.place);
    if (!this.timer || number !== this.steps) return undefined;
    if (!row) return this.end();
    this.show(row);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.step(), row.predecessors.length > 1 ? LONG : PACE);
    return undefined;
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.isPaused = true;
    this.told();
  }

  /** Shows all versions again. */
  end() {
    if (!this.timer && !this.isPaused) return;
    clearTimeout(this.timer);
    this.timer = this.history.hidden = 0;
    this.isPaused = false;
    this.history.soon();
    this.told();
  }
}

// Draws the lanes of the history for the visible rows.

const COLOURS = 7;
const DRAWN = 20;

/** The width of a lane, chosen so that all of them fit. */
export function pitch(lanes) {
  return Math.max(7, Math.min(16, 168 / (Math.min(lanes, DRAWN) + 1)));
}

/** The width of the drawing. */
export function width(lanes) {
  return Math.ceil(pitch(lanes) * (Math.min(lanes, DRAWN + 1) + 0.5) + 12);
}

export class Graph {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.readColours(); this.again?.(); });
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.lanes = Array.from({ length: COLOURS }, (_, lane) => style.getPropertyValue("--lane-" + lane).trim());
    this.ground = style.getPropertyValue("--panel").trim();
    this.accent = style.getPropertyValue("--accent").trim();
    this.muted = style.getPropertyValue("--muted").trim();
  }

  /** Fits the canvas to the window. */
  resize(wide, high) {
    const ratio = devicePixelRatio || 1;
    if (this.wide === wide && this.high === high && this.ratio === ratio) return;
    [this.wide, this.high, this.ratio] = [wide, high, ratio];
    this.canvas.width = Math.ceil(wide * ratio);
    this.canvas.height = Math.ceil(high * ratio);
    this.canvas.style.width = wide + "px";
    this.canvas.style.height = high + "px";
    this.canvas.style.marginBottom = -high + "px";
  }

  colour(lane) {
    return lane >= DRAWN ? this.muted : this.lanes[lane % COLOURS];
  }

  /** Draws rows: `rowAt(number)` returns one, or nothing while it is loading. */
  draw(rowAt, first, last, top, high, lanes) {
    const context = this.context;
    const step = pitch(lanes);
    const x = (lane) => 16 + step * lane;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.wide, this.high);
    context.lineWidth = step < 10 ? 1.5 : 2;
    this.paths = new Map();
    for (let number = first; number <= last; number++) {
      const row = rowAt(number);
      if (!row) continue;
      const y = number * high - top;
      const middle = y + high / 2;
      for (const lane of row.passing) this.line(x(lane), y, x(lane), y + high, lane);
      if (row.beyond > 0) for (let dash = 0; dash < high; dash += 5) this.line(x(DRAWN), y + dash, x(DRAWN), y + dash + 2, DRAWN);
      if (row.arrives) this.line(x(row.lane), y, x(row.lane), middle, row.lane);
      for (const lane of row.leaving) {
        if (lane === row.lane) this.line(x(lane), middle, x(lane), y + high, lane);
        else this.curve(x(row.lane), middle, x(lane), y + high, Math.max(lane, row.lane) === lane ? lane : row.lane);
      }
    }
    for (const [colour, path] of this.paths) {
      context.strokeStyle = colour;
      context.stroke(path);
    }
    for (let number = first; number <= last; number++) {
      const row = rowAt(number);
      if (row) this.node(row, x(row.lane), number * high - top + high / 2, step);
    }
  }

  /** The path that collects all lines of one colour: drawing them at once keeps scrolling fast. */
  path(lane) {
    const colour = this.colour(lane);
    if (!this.paths.has(colour)) this.paths.set(colour, new Path2D());
    return this.paths.get(colour);
  }

  line(x, y, toX, toY, lane) {
    const path = this.path(lane);
    path.moveTo(x, y);
    path.lineTo(toX, toY);
  }

  curve(x, y, toX, toY, lane) {
    const path = this.path(lane);
    path.moveTo(x, y);
    path.bezierCurveTo(x, (y + toY) / 2, toX, (y + toY) / 2, toX, toY);
  }

  node(row, x, y, step) {
    const context = this.context;
    const size = Math.min(5.5, step * 0.36);
    const colour = this.colour(row.lane);
    context.fillStyle = this.ground;
    context.beginPath();
    context.arc(x, y, size + 2, 0, 7);
    context.fill();
    context.beginPath();
    if (row.predecessors.length > 1) {
      // A merge is a diamond.
      context.moveTo(x, y - size - 1);
      context.lineTo(x + size + 1, y);
      context.lineTo(x, y + size + 1);
      context.lineTo(x - size - 1, y);
      context.closePath();
    } else {
      context.arc(x, y, size, 0, 7);
    }
    context.fillStyle = row.head ? this.ground : colour;
    context.strokeStyle = row.current ? this.accent : colour;
    context.fill();
    context.stroke();
    if (row.current) {
      context.fillStyle = this.accent;
      context.beginPath();
      context.arc(x, y, size * 0.5, 0, 7);
      context.fill();
    }
  }
}

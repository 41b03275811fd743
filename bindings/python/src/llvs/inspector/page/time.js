// Times and numbers for people, in the time zone and language of the browser.

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const dayAndTime = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" });
const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "short" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const numbers = new Intl.NumberFormat();
const UNITS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 7]];

/** "3 hr. ago", or a date for times that are longer ago. Seconds since 1970. */
export function when(seconds) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return "no date";
  let left = seconds - Date.now() / 1000;
  if (Math.abs(left) < 7 * 86400) {
    for (const [unit, size] of UNITS) {
      if (Math.abs(left) < size) return relative.format(Math.round(left), unit);
      left /= size;
    }
  }
  return (date.getFullYear() === new Date().getFullYear() ? day : dayOfYear).format(date);
}

/** "14:05" for today, "2 Nov, 14:05" for this year, a short date with the time for other years. Seconds since 1970. */
export function stamp(seconds) {
  const date = new Date(seconds * 1000), today = new Date();
  if (Number.isNaN(date.getTime())) return "no date";
  if (date.toDateString() === today.toDateString()) return clock.format(date);
  return (date.getFullYear() === today.getFullYear() ? dayAndTime : dateAndTime).format(date);
}

/** The exact time, for a tooltip. */
export function exactly(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? `${seconds} seconds since 1970, which no calendar holds` : whole.format(date);
}

/** A number with separators between thousands. */
export function number(count) {
  return numbers.format(count);
}

/** "1 value", "3 values". */
export function counted(count, one, many = one + "s") {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** "12 B", "3.4 kB". */
export function bytes(count) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (count < 1000 || unit === "GB") return `${count < 10 && unit !== "B" ? count.toFixed(1) : Math.round(count)} ${unit}`;
    count /= 1000;
  }
  return "";
}

/** A sentence about a wrong clock behind a version's time; "" if the time agrees with its ancestors and with the clock here. */
export function clockNote(version) {
  if (version.clock > 0) {
    return `This device's clock was wrong: the version says it was made ${span(version.clock)} before its own predecessor.`;
  }
  if (version.ahead > 300) {
    return `This device's clock was ${span(version.ahead)} ahead: the time shown is when the version was received.`;
  }
  const ahead = version.time - Date.now() / 1000;
  if (ahead > 300) return `This device's clock is ahead, or this one's is behind: the version says it will be made in ${span(ahead)}.`;
  return "";
}

/** A duration, rounded: "2 h", "5 min". */
export function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

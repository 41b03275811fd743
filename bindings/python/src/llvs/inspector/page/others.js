// Heads, exchanges, problems, and the results of a search.

import { change, get } from "./api.js";
import { el, empty, fill, named, say } from "./dom.js";
import { at } from "./routes.js";
import { counted, exactly, number, when } from "./time.js";
import { linkTo } from "./version.js";

export async function showHeads(view, route, app) {
  const found = await get("heads", { count: 500 });
  if (!app.isAt(route)) return;
  fill(view, el("h2", { class: "title" }, counted(found.count, "head")), el("p", { class: "muted" },
    "A head is a version that no other was saved on yet: the newest of a device or branch. Two of them can be merged. The newest first."),
    el("div", { class: "card" }, found.heads.length ? el("ul", { class: "list" }, ...found.heads.map((head) => el("li", {}, linkTo(head))))
      : empty("There is no version yet.", "Save something with the application, or with ", el("code", {}, "llvs set"), ".")),
    found.count > found.heads.length ? el("p", { class: "muted" }, `The newest ${found.heads.length} are shown.`) : null);
}

export async function showExchanges(view, route, app) {
  const found = await get("exchanges");
  if (!app.isAt(route)) return;
  const report = el("div", {});
  const verify = el("button", { onclick: async () => {
    verify.disabled = true;
    fill(report, el("p", { class: "muted" }, "Everything is being read and compared with its checksums."));
    try {
      fill(report, ...reportOf(await get("verify")));
    } catch (problem) {
      fill(report, el("p", { class: "problem" }, problem.message));
    }
    verify.disabled = false;
  } }, "Verify the store");
  fill(view, el("h2", { class: "title" }, "Exchanges"),
    el("div", { class: "card" }, el("h3", {}, "Remotes"), found.remotes.length ? el("ul", { class: "list" }, ...found.remotes.map(remoteOf))
      : empty("No remote is kept with this store.",
        "Add one with ", el("code", {}, "llvs remote add NAME URL"), ". What applications attach by themselves is not listed.")),
    el("div", { class: "card" }, el("h3", {}, "Who made versions"), found.devices.length ? el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "device or author"), el("th", { scope: "col", class: "number" },
        "versions"), el("th", { scope: "col" }, "last"), el("th", { scope: "col" }, "version"))),
      el("tbody", {}, ...found.devices.map((device) => el("tr", {}, el("td", {}, ...named(device.name)), el("td", { class: "number" },
        number(device.versions)),
        el("td", { title: exactly(device.last) }, when(device.last)), el("td", {}, el("a", { href: at("version", [device.version]) },
          el("code", {}, device.version.slice(0, 8)))))))
    ) : empty("No version says who made it.", "Give saves a device or an author in their metadata."),
    found.isAll ? null : el("p", { class: "muted small" }, `Of the newest ${number(found.looked)} versions.`)),
    el("div", { class: "card" }, el("div", { class: "row-of" }, el("h3", {}, "Problems"), el("span", { class: "push" }, verify)),
      found.problems.length ? el("ul", { class: "list" }, ...found.problems.map((problem) => el("li", { class: "problem" }, el("strong",
        {}, `${problem.name}: ${number(problem.count)}`), " ", problem.what)))
        : empty("None is known.", "Verifying reads everything again, and finds damage that nobody met yet."), report));
}

function remoteOf(remote) {
  const did = remote.last === undefined ? "not exchanged since this inspector was started"
    : remote.error ? [el("strong", {}, "failed "), when(remote.last), ": ", ...named(remote.error)]
    : `${when(remote.last)}: ${counted(remote.retrieved, "version")} received, ${number(remote.sent)} sent`;
  const now = el("button", { class: "push", onclick: async () => {
    now.disabled = true;
    say((await change("exchange", { remote: remote.name }).catch((problem) => problem)).message);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } }, "Exchange now");
  return el("li", {}, el("div", { class: "entry" }, el("strong", {}, ...named(remote.name)), el("code", {}, ...named(remote.url)),
    remote.canExchange && now), el("p", { class: "small muted" }, did),
  ...(remote.problems || []).map((problem) => el("p", { class: "problem" }, el("code", {}, ...named(problem.name)), " ", problem.reason)));
}

function reportOf(report) {
  const told = el("p", {}, `${counted(report.versions, "version")} and ${counted(report.values, "value")} were read.`);
  if (!report.damages.length) return [told, el("p", {}, "All of it is what was written.")];
  return [told, el("ul", { class: "list" }, ...report.damages.map((damage) => el("li", { class: "problem" },
    el("strong", {}, ...named(damage.message)), " ", el("code", {}, ...named(damage.file)), ` at ${number(damage.offset)}`,
    damage.value !== null ? [", value ", el("code", {}, ...named(damage.value))] : "")))];
}

export async function showSearch(view, route, app) {
  const wanted = route.query.get("q") || "";
  const found = await get("search", { q: wanted });
  if (!app.isAt(route)) return;
  fill(view, el("h2", { class: "title" }, "Found for ", ...named(wanted)),
    el("div", { class: "card" }, found.found.length ? el("ul", { class: "list" }, ...found.found.map((version) => el("li", {},
      linkTo(version, `${version.why} · ${when(version.time)}`))))
      : empty("Nothing was found.",
        "Search for the beginning of an id, words of a description, a whole value id, a branch, or a day such as 2026-11-20.")),
    found.cut ? el("p", { class: "muted" }, "Only the first ones are shown: write more to find fewer.") : null);
}

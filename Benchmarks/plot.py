"""Draws the figures of the benchmark and writes them into docs/performance.md, between its markers.

    python3 Benchmarks/plot.py docs/performance.md figures.json...

The JSON files have one line for each row, as `bench --json` writes them. The page receives the figures with a goal. All figures
(figures.md) and two pictures are written into build/performance, which is not in the repository: how much better or worse than the
yardstick each workload is (ratio.svg), and our costs by the number of values (cost.svg).
"""

import json
import math
import sys
import textwrap
from pathlib import Path
from xml.sax.saxutils import escape

COLOURS = ["#1b6ca8", "#d1495b", "#3d9970", "#e09f3e", "#6a4c93", "#5c677d", "#9c6644", "#118ab2", "#8ac926", "#ff595e"]
FONT = 'font-family="sans-serif" font-size="12"'
# The workloads that are drawn over N, all in microseconds for one operation.
COSTS = {
    ("fetch", "per_second"): ("fetch", lambda x: 1e6 / x),
    ("commits", "per_second"): ("one-value version, normal", lambda x: 1e6 / x),
    ("prefix", "microseconds"): ("prefix scan of 100 ids", lambda x: x),
    ("differences", "ms"): ("difference of 10 versions", lambda x: x * 1e3),
    ("merge", "ms"): ("merge, 100 + 100 ids", lambda x: x * 1e3),
    ("merge-base", "near_ms"): ("merge base near the end", lambda x: x * 1e3),
    ("open", "ms"): ("open 10,000 versions and read", lambda x: x * 1e3),
    ("enumerate", "ms"): ("enumerate all", lambda x: x * 1e3),
    ("load", "ms"): ("load all", lambda x: x * 1e3),
}


def text(x, y, content, anchor="start", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {FONT} {extra}>{escape(content)}</text>'


def line(x1, y1, x2, y2, colour="#ddd", width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def svg(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def times_better(row):
    """Returns how many times better than the yardstick a figure is; below 1 it is worse."""
    return row["ratio"] if row["better"] == "more" else 1 / row["ratio"]


def is_plain(row):
    """Returns whether a row has the data of most figures: values of 100 bytes in file storage, with our default budget."""
    return row["storage"] == "file" and row["value_size"] == 100 and row.get("budget", 64) == 64


def is_detail(row):
    """Returns whether a row is a detail, which is indented below the row that it belongs to."""
    return row["label"].startswith("  ")


def main_figures(rows):
    """Returns the figures with a yardstick by workload and number of values, without details."""
    figures = {}
    for row in rows:
        if row.get("ratio", 0) > 0 and is_plain(row) and row["ids"] == "uuid" and not is_detail(row):
            figures.setdefault(row["label"], {})[row["n"]] = row
    return figures


def draw_ratios(rows):
    figures = main_figures(rows)
    if not figures:
        return svg(100, 20, [])
    sizes = sorted({n for by_n in figures.values() for n in by_n})
    values = [times_better(row) for by_n in figures.values() for row in by_n.values()]
    low, high = math.floor(min(map(math.log10, values + [1]))), math.ceil(max(map(math.log10, values + [1])))
    left, right, top, step = 300, 40, 50, 14 * len(sizes) + 10
    width, height = 960, top + step * len(figures) + 30

    def x_of(value):
        return left + (math.log10(value) - low) / max(high - low, 1) * (width - left - right)

    parts = [text(left, 18, "Times better than the hand-written SQLite (left of 1: worse), ids are UUIDs")]
    for i, n in enumerate(sizes):
        parts.append(f'<rect x="{left + i * 130}" y="26" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>')
        parts.append(text(left + i * 130 + 15, 35, f"N = {n:,}"))
    for power in range(low, high + 1):
        x = x_of(10.0**power)
        parts += [line(x, top, x, height - 25, "#555" if power == 0 else "#ddd"), text(x, height - 10, f"{10.0**power:g}", "middle")]
    for index, (label, by_n) in enumerate(figures.items()):
        y = top + index * step + 6
        parts.append(text(left - 8, y + 7 * len(sizes) + 4, label.strip(), "end"))
        for i, n in enumerate(sizes):
            if n in by_n:
                a, b = sorted((x_of(1), x_of(times_better(by_n[n]))))
                parts.append(
                    f'<rect x="{a:.1f}" y="{y + 14 * i:.1f}" width="{max(b - a, 1):.1f}" height="12" fill="{COLOURS[i % len(COLOURS)]}"/>'
                )
    return svg(width, height, parts)


def draw_costs(rows):
    lines = {}
    for row in rows:
        key = (row["workload"], row["metric"])
        if key in COSTS and row["ids"] == "uuid" and is_plain(row) and row["ours"] > 0:
            name, cost = COSTS[key]
            lines.setdefault(name, {})[row["n"]] = cost(row["ours"])
    sizes = sorted({n for points in lines.values() for n in points})
    costs = [cost for points in lines.values() for cost in points.values()]
    if not costs:
        return svg(100, 20, [])
    low, high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)))
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])
    left, right, top, bottom, width, height = 80, 240, 40, 45, 960, 560

    def place(n, cost):
        across = (math.log10(n) - first) / ((last - first) or 1)
        up = (math.log10(cost) - low) / max(high - low, 1)
        return left + across * (width - left - right), height - bottom - up * (height - top - bottom)

    parts = [text(left, 18, "What an operation of ours costs over the number of values, in microseconds (both axes logarithmic)")]
    for power in range(low, high + 1):
        x, y = place(sizes[0], 10.0**power)
        parts += [line(x, y, width - right, y), text(x - 8, y + 4, f"{10.0**power:g}", "end")]
    for n in sizes:
        x, y = place(n, 10.0**low)
        parts += [line(x, top, x, y), text(x, y + 18, f"{n:,}", "middle")]
    labels = sorted(((place(max(points), points[max(points)])[1], name) for name, points in lines.items()))
    heights, below = {}, 0
    for y, name in labels:
        heights[name] = below = max(y, below + 15)
    for i, (name, points) in enumerate(lines.items()):
        colour = COLOURS[i % len(COLOURS)]
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(n, points[n]) for n in sorted(points)))
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="3" fill="{colour}"/>' for p in way.split()]
        parts.append(text(width - right + 10, heights[name] + 4, name, extra=f'fill="{colour}"'))
    return svg(width, height, parts)


def figure(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def goal_of(row):
    if "goal" not in row:
        return ""
    return f"{'≥' if row['better'] == 'more' else '≤'} {row['goal']:.4g}{' x' if row['goal_is'] == 'ratio' else ''}"


def verdict_of(row):
    return ("reached" if row["reached"] else "**missed**") if row.get("goal_at_this_n") else ""


def cells(row):
    theirs = figure(row["yardstick"]) if "yardstick" in row else ""
    ratio = f"{row['ratio']:.3g}" if "ratio" in row else ""
    return [row["unit"], figure(row["ours"]), theirs, ratio, goal_of(row), verdict_of(row)]


def kind_of(row):
    return row["n"], row["ids"], row["value_size"], row["storage"], row.get("budget", 64)


IDS = {"uuid": "UUIDs", "contact": "`Contact/<UUID>`", "long": "UUIDs and 4,060 bytes more"}


def name_of(kind):
    n, ids, size, storage, budget = kind
    return (f"{n:,} values of {size:,} bytes, ids are {IDS[ids]}"
            f"{', SQLite storage' if storage == 'sqlite' else ''}{f', our memory budget {budget} MiB' if budget != 64 else ''}")


def table(heads, lines):
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "|".join("---:" if head in ("ours", "yardstick", "ratio") else "---" for head in heads) + "|",
        *("| " + " | ".join(line) + " |" for line in lines),
        "",
    ]


def name_of_row(row, main):
    """Returns the name of a row; that of a detail includes the row that it belongs to."""
    return f"{main.split(': ')[0]}: {row['label'].strip()}" if is_detail(row) else row["label"]


def distance_from_goal(row):
    """Returns how far a figure is from its goal; above 1 it missed the goal."""
    reached = row["ratio"] if row["goal_is"] == "ratio" else row["ours"]
    return (row["goal"] / max(reached, 1e-12)) if row["better"] == "more" else reached / row["goal"]


def goals(rows):
    """Returns the rows with a goal, at the number of values for which it was set. If a goal holds for any number, the row is that in which
    it is hardest to reach."""
    named, main = {}, ""
    for row in rows:
        main = row["label"] if not is_detail(row) else main
        if row.get("goal_at_this_n") and row["ids"] == "uuid":
            key = (name_of_row(row, main), row["storage"], row.get("budget", 64))
            named.setdefault(key, []).append(row)
    lines, verdicts = [], []
    for (name, storage, budget), found in named.items():
        if len(found) > 2:
            found = [max(found, key=distance_from_goal)]
        for row in found:
            at = f"{row['n']:,}{', SQLite storage' if storage == 'sqlite' else ''}{f', budget {budget} MiB' if budget != 64 else ''}"
            lines.append([name, at, *cells(row)])
            verdicts.append(row["reached"])
    return [
        f"{sum(verdicts)} of {len(verdicts)} reached.",
        "",
        *table(["", "values", "unit", "ours", "yardstick", "ratio", "to reach", ""], lines),
    ]


def all_tables(rows):
    out = []
    for kind in dict.fromkeys(map(kind_of, rows)):
        chosen = [row for row in rows if kind_of(row) == kind]
        out += [f"## {name_of(kind)}", "", f"Medians of {chosen[0]['runs']}.", ""]
        out += table(
            ["", "unit", "ours", "yardstick", "ratio", "to reach", ""], [[row["label"].replace("  ", "– "), *cells(row)] for row in chosen]
        )
    return out


def about(entries, rows):
    lines = []
    for entry in entries:
        lines.append(
            f"{entry['processor']}, {entry['cores']} cores, {entry['gigabytes']} GiB of memory, {entry['file_system']}, Linux"
            f" {entry['kernel']}, SQLite {entry['sqlite']}."
        )
    shares = [row["others"] for row in rows if "others" in row]
    if shares and max(shares) > 0.1:
        lines.append(
            f"While the workloads ran, other programs took {sum(shares) / len(shares):.0%} of the processors (at most {max(shares):.0%}): "
            "the ratios can be trusted to some tens of percent, the absolute times less."
        )
    elif shares:
        lines.append("Nothing else ran meanwhile.")
    return textwrap.fill(" ".join(dict.fromkeys(lines)), 138)


def replace_between_markers(document, content):
    begin, end = "<!-- figures: begin -->", "<!-- figures: end -->"
    before, rest = document.read_text().split(begin, 1)
    document.write_text(f"{before}{begin}\n\n{content}\n{end}{rest.split(end, 1)[1]}")


def main():
    document, paths = Path(sys.argv[1]), sys.argv[2:]
    entries = [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]
    rows = [entry for entry in entries if "workload" in entry]
    rows.sort(key=lambda row: (row["value_size"], row["storage"] != "file", row.get("budget", 64), row["ids"] != "uuid", row["n"]))
    note = about([entry["about"] for entry in entries if "about" in entry], rows)
    pictures = Path(__file__).resolve().parent.parent / "build/performance"
    pictures.mkdir(parents=True, exist_ok=True)
    (pictures / "ratio.svg").write_text(draw_ratios(rows))
    (pictures / "cost.svg").write_text(draw_costs(rows))
    (pictures / "figures.md").write_text(
        "\n".join(
            [
                "# All figures",
                "",
                "Written by `scripts/bench --plot`; [performance.md](../../docs/performance.md) says how they are measured.",
                "",
                note,
                "",
                *all_tables(rows),
            ]
        )
    )
    replace_between_markers(document, "\n".join([note, "", *goals(rows)]))


main()

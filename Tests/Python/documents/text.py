"""The three-way merge of texts by lines: sections 4 and 6 of the specification of texts (texts.md). Rules are named by number.

Readings of the specification where it leaves a choice:
- 4.2: A line "that stands in the place on both sides" is a line of a side that the other side has too, anywhere in the place. With o `a b`,
  x `a c` + `a b d`, y `a c` + `q`, x's `a c` weighs 2, as `a b d` does, and comes first. So it is the pair of `a b`.
- 4.2: The words and lines that are counted are those of the hunk. A hunk that stays unpaired because of its cost takes no steps and makes
  no record `limit`: its result is an overlap or a cluster, which is recorded.
- 4.3: A pair of 4.2 may be of equal lines (if an alignment kept another one, or none). On one side alone it is a kept line.
- 4.4: An insertion of one side is left out only if the other side's text at that place is in the result: the result of the cluster of the
  touching lines has to begin or end with it too. With o `s` + `t`, x `p` + `s` + `T u v`, y `p` + `q` (in the place of both), the cluster
  is an overlap that x wins, so x's `p` is written.
- 4.5: The code point order of two insertions is that of their texts. With `pick: older` it is still Y's lines and then X's.
- 4.6: The lines without a word of O directly after a hunk end where the cluster ends, or where the next hunk of that side begins.
- 4.7: A line of O is paired if it is kept or paired by 4.2, on either side. The record has the lines that are left without the shared ones.
- 6: An empty part is the empty string, not an absent value.
- 6: If the result of a record ends where a text without last end ends, all four parts are written without that end. If one of them is a
  blank line alone, all are written with it.
- 6: If a record has a line end that the text lacks, it is about the part with that end: its range ends after the text.
- 6, choose: The texts are compared as they are merged (line ends converted if each has one kind, each line with an end). The text keeps its
  own style and last end. The lines of the part are replaced, but not lines that were added beside them since: merged `a` + `R` + `b`, now
  `a` + `new` + `R` + `b`. If the part is written without its end, a line with an end is that part too.
- 7: Steps are used in the order of the text: pairing X, pairing Y of a place; then its lines and insertions in order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Iterable, Optional, Sequence

from .alignment import Budget, Hunk, Pair, align, hunks
from .tokens import convert, has_last_end, has_word, lines, merged_last_end, merged_style, style, whole_lines, words
from .words import borders, is_inside, merge_line

#: The maximum number of units for pairing one hunk.
MAX_UNITS = 1 << 22

Lines = list[str]


@dataclass
class Conflict:
    """A part of a text that both sides changed: its kind, the text of each side, and the text in the result."""

    kind: str
    base: str
    newer: str
    older: str
    result: str
    #: Where the part begins in the merged text.
    start: int = 0


@dataclass
class MergedText:
    """The result of merging a text."""

    text: str
    conflicts: list[Conflict]
    #: Whether both sides changed the line ends differently.
    picked_style: bool
    #: Whether an alignment met a limit.
    limited: bool


def merge_text(
    base: str, newer: str, older: str, unit: str, newer_wins: bool = True, budget: Optional[Budget] = None, undone: bool = False
) -> MergedText:
    """Merges three texts.

    `newer_wins`: which side's lines win if both wrote. `budget` is that of the whole value, however many texts it contains.
    `undone`: lines that the newer side only removed stay removed.
    """
    budget = budget or Budget()
    budget.limited = False
    texts = [base, newer, older]
    styles = [style(text) for text in texts]
    end, picked = "\n", False
    is_of_one_kind = None not in styles
    if is_of_one_kind:  # 2.2
        end, picked = merged_style(styles[0] or "", styles[1] or "", styles[2] or "", newer_wins)
        texts = [convert(text, "\n") for text in texts]
    merge = _Lines(unit, newer_wins, budget, undone)
    merge.text(*map(whole_lines, texts))
    made = "".join(merge.out)
    has_end = merged_last_end(*map(has_last_end, texts))  # 2.3
    conflicts = [_told(one, made, has_end) for one in merge.conflicts]
    made = made if has_end else _without_last_end(made)
    if is_of_one_kind:
        for one in conflicts:
            one.start = len(convert(made[: one.start], end))
            one.base, one.newer, one.older, one.result = (convert(part, end) for part in (one.base, one.newer, one.older, one.result))
        made = convert(made, end)
    return MergedText(made, conflicts, picked, budget.limited)


def _without_last_end(text: str) -> str:
    return text[: -2 if text.endswith("\r\n") else -1] if text and text[-1] in "\r\n" else text


def _told(one: Conflict, made: str, has_end: bool) -> Conflict:
    """Removes the last end from the parts, if the text ends without one there."""
    parts = [one.base, one.newer, one.older, one.result]
    shorter = [_without_last_end(part) for part in parts]
    if has_end or one.start + len(one.result) < len(made) or any(part and not short for part, short in zip(parts, shorter)):
        return one
    return Conflict(one.kind, shorter[0], shorter[1], shorter[2], shorter[3], one.start)


# 4.2


def pair_hunk(base: Lines, side: Lines, both: set[str], budget: Budget) -> list[Pair]:
    """Returns the pairs of alike lines of a hunk; `both` has the lines that stand in the place on both sides."""
    of_base, of_side = [words(line) for line in base], [words(line) for line in side]
    units = len(side) * (sum(map(len, of_base)) + len(base)) + len(base) * (sum(map(len, of_side)) + len(side))
    if units > MAX_UNITS or units > budget.left:
        return []
    budget.steps += units
    weights = [[_weight(a, b) * (2 if line in both else 1) for b, line in zip(of_side, side)] for a in of_base]
    # largest[i][k]: the largest sum of weights of base[i:] and side[k:].
    largest = [[0] * (len(side) + 1) for _ in range(len(base) + 1)]
    for i in range(len(base) - 1, -1, -1):
        for k in range(len(side) - 1, -1, -1):
            paired = weights[i][k] + largest[i + 1][k + 1] if weights[i][k] else 0
            largest[i][k] = max(largest[i + 1][k], largest[i][k + 1], paired)
    pairs, i, k = [], 0, 0
    while i < len(base) and k < len(side):
        if weights[i][k] and weights[i][k] + largest[i + 1][k + 1] == largest[i][k]:
            pairs.append((i, k))
            i, k = i + 1, k + 1
        elif largest[i + 1][k] == largest[i][k]:
            i += 1
        else:
            k += 1
    return pairs


def _weight(base: list[str], side: list[str]) -> int:
    """Returns the number of words that both have if they are alike, else 0."""
    common = sum((Counter(base) & Counter(side)).values())
    return common if 2 * common >= len(base) and 3 * common >= len(side) else 0


# 4.4 to 4.7


@dataclass(frozen=True)
class _SideHunk:
    """A hunk of one side, with its lines."""

    is_newer: bool
    hunk: Hunk
    lines: tuple[str, ...]


@dataclass
class _Cluster:
    """Hunks that are merged together, of one side or of both, and their result."""

    hunks: list[_SideHunk]
    result: Lines = field(default_factory=list)
    conflict: Optional[Conflict] = None
    #: The number of lines of the result before those of the conflict.
    before: int = 0

    @property
    def start(self) -> int:
        return min(one.hunk.start for one in self.hunks)

    @property
    def end(self) -> int:
        return max(one.hunk.end for one in self.hunks)

    def of_side(self, is_newer: bool) -> list[_SideHunk]:
        return [one for one in self.hunks if one.is_newer == is_newer]

    def only_removes(self, is_newer: bool) -> bool:
        return all(one.hunk.removes for one in self.of_side(is_newer))

    def lines(self, is_newer: bool, base: Lines) -> Lines:
        """Returns the side's text in the range of the cluster: its hunks, and the lines that it kept."""
        found: Lines = []
        at = self.start
        for one in self.of_side(is_newer):
            found += [*base[at : one.hunk.start], *one.lines]
            at = one.hunk.end
        return found + base[at : self.end]


def clusters(found: Sequence[_SideHunk]) -> list[_Cluster]:
    """Returns the clusters of hunks, in the order of the text (4.4)."""
    made: list[_Cluster] = []
    for one in sorted(found, key=lambda one: (one.hunk.start, one.hunk.end, one.is_newer)):
        joined = [cluster for cluster in made if any(_meet(one, other) for other in cluster.hunks)]
        made = [cluster for cluster in made if cluster not in joined]
        made.append(_Cluster([*(other for cluster in joined for other in cluster.hunks), one]))
    return sorted(made, key=lambda cluster: (cluster.start, cluster.end))


def _meet(one: _SideHunk, other: _SideHunk) -> bool:
    a, b = one.hunk, other.hunk
    if one.is_newer == other.is_newer:
        return False
    share = max(a.start, b.start) < min(a.end, b.end)
    return share or is_inside(a, b) or is_inside(b, a) or (a.inserts and b.inserts and a.start == b.start)


def insertions(newer: Lines, older: Lines, budget: Budget) -> tuple[Lines, bool]:
    """Returns the result of two insertions at one place, and whether that is an overlap (4.5)."""
    smaller, larger = sorted((newer, older), key="".join)
    pairs = align(smaller, larger, budget)
    if len(pairs) == len(older):
        return newer, False
    if len(pairs) == len(newer):
        return older, False
    common = sum(has_word(smaller[index]) for index, _ in pairs)
    if 2 * common <= min(sum(map(has_word, side)) for side in (newer, older)):
        return older + newer, False
    if smaller is older:
        pairs = [(mine, other) for other, mine in pairs]
    made: Lines = []
    mine = other = 0
    for to_mine, to_other in [*pairs, (len(newer), len(older))]:
        made += [*older[other:to_other], *newer[mine:to_mine], *newer[to_mine : to_mine + 1]]
        mine, other = to_mine + 1, to_other + 1
    return made, True


def shared(base: Lines, newer: Lines, older: Lines) -> Pair:
    """Returns how many first and last lines with words both wrote: in total at most as many as the base has lines (4.7)."""
    most = min(map(len, (base, newer, older)))
    first = 0
    while first < most and newer[first] == older[first] and has_word(newer[first]):
        first += 1
    last = 0
    while first + last < most and newer[-1 - last] == older[-1 - last] and has_word(newer[-1 - last]):
        last += 1
    return first, last


class _Lines:
    """The merge of lines that all have ends."""

    def __init__(self, unit: str, newer_wins: bool, budget: Budget, undone: bool) -> None:
        self.unit, self.newer_wins, self.budget, self.undone = unit, newer_wins, budget, undone
        self.out: Lines = []
        self.conflicts: list[Conflict] = []
        self.size = 0

    def add(self, found: Iterable[str]) -> None:
        """Adds lines to the result."""
        for line in found:
            self.out.append(line)
            self.size += len(line)

    def text(self, o: Lines, x: Lines, y: Lines) -> None:
        """4.1: the places between lines that both sides kept."""
        to_x, to_y = dict(align(o, x, self.budget)), dict(align(o, y, self.budget))
        start = first_x = first_y = 0
        for end in [*(index for index in range(len(o)) if index in to_x and index in to_y), len(o)]:
            last_x, last_y = to_x.get(end, len(x)), to_y.get(end, len(y))
            kept_x = [(index - start, to_x[index] - first_x) for index in range(start, end) if index in to_x]
            kept_y = [(index - start, to_y[index] - first_y) for index in range(start, end) if index in to_y]
            self.place(o[start:end], x[first_x:last_x], y[first_y:last_y], kept_x, kept_y)
            self.add(o[end : end + 1])
            start, first_x, first_y = end + 1, last_x + 1, last_y + 1

    def is_of_one_side(self, o: Lines, x: Lines, y: Lines) -> bool:
        """X=O → Y; Y=O or X=Y → X."""
        if x != o and y != o and x != y:
            return False
        self.add(y if x == o else x)
        return True

    def place(self, o: Lines, x: Lines, y: Lines, kept_x: list[Pair], kept_y: list[Pair]) -> None:
        """4.2 and 4.3: pairs lines, merges each line that is paired on both sides by itself, and what is between them by clusters."""
        if self.is_of_one_side(o, x, y):
            return
        both = set(x) & set(y)
        to_x, to_y = (dict(self.paired(o, side, kept, both)) for side, kept in ((x, kept_x), (y, kept_y)))
        start = first_x = first_y = 0
        for end in [*(index for index in range(len(o)) if index in to_x and index in to_y), len(o)]:
            last_x, last_y = to_x.get(end, len(x)), to_y.get(end, len(y))
            section = _Section(
                self, o, x, y, {index: k for index, k in to_x.items() if start <= index < end},
                {index: k for index, k in to_y.items() if start <= index < end}, (start, end), (first_x, last_x), (first_y, last_y),
            )  # fmt: skip
            section.merge()
            if end < len(o):
                self.line(o[end], x[last_x], y[last_y])
            start, first_x, first_y = end + 1, last_x + 1, last_y + 1

    def paired(self, o: Lines, side: Lines, kept: list[Pair], both: set[str]) -> list[Pair]:
        """Returns the kept lines of a place, and the paired ones in its hunks."""
        pairs = list(kept)
        for hunk in hunks(kept, (0, len(o)), (0, len(side))):
            found = pair_hunk(o[hunk.start : hunk.end], side[hunk.first : hunk.last], both, self.budget)
            pairs += [(hunk.start + index, hunk.first + k) for index, k in found]
        return sorted(pairs)

    def line(self, o: str, x: str, y: str) -> None:
        """5: a line that both sides have."""
        merged = merge_line(o, x, y, self.unit, self.budget)
        if merged is None:
            merged = x if self.newer_wins else y
            self.conflicts.append(Conflict("overlap", o, x, y, merged, self.size))
        self.add([merged])


@dataclass
class _Section:
    """The lines between two that are paired on both sides. Pairs are of one side only; ranges are those of the section."""

    merge_of: _Lines
    o: Lines
    x: Lines
    y: Lines
    to_x: dict[int, int]
    to_y: dict[int, int]
    of_o: Pair
    of_x: Pair
    of_y: Pair

    def merge(self) -> None:
        """4.4"""
        o, x, y = self.o[slice(*self.of_o)], self.x[slice(*self.of_x)], self.y[slice(*self.of_y)]
        if self.merge_of.is_of_one_side(o, x, y):
            return
        found = clusters([*self.hunks(True), *self.hunks(False)])
        for cluster in found:
            self.resolve(cluster)
        for cluster in found:
            if self.is_written_elsewhere(cluster, found):
                continue
            if cluster.conflict is not None:
                cluster.conflict.start = self.merge_of.size + sum(map(len, cluster.result[: cluster.before]))
                self.merge_of.conflicts.append(cluster.conflict)
            self.merge_of.add(cluster.result)

    def hunks(self, is_newer: bool) -> list[_SideHunk]:
        """The hunks of a side: between the lines that it kept. (4.3: other pairs count as replaced.)"""
        side, pairs, of_side = (self.x, self.to_x, self.of_x) if is_newer else (self.y, self.to_y, self.of_y)
        kept = [(index, k) for index, k in sorted(pairs.items()) if self.o[index] == side[k]]
        return [_SideHunk(is_newer, hunk, tuple(side[hunk.first : hunk.last])) for hunk in hunks(kept, self.of_o, of_side)]

    def is_written_elsewhere(self, cluster: _Cluster, found: list[_Cluster]) -> bool:
        """Whether the cluster is an insertion with a word that the other side wrote too, in the place of the touching lines."""
        inserted = cluster.hunks[0]
        new = list(inserted.lines)
        if len(cluster.hunks) > 1 or not inserted.hunk.inserts or not any(map(has_word, new)):
            return False
        for other in found:
            for replaced in other.of_side(not inserted.is_newer):
                by = list(replaced.lines)
                touches = not replaced.hunk.inserts and inserted.hunk.start in (replaced.hunk.start, replaced.hunk.end)
                for part in (slice(0, len(new)), slice(-len(new), None)):
                    if touches and by[part] == new == other.result[part]:
                        return True
        return False

    def resolve(self, cluster: _Cluster) -> None:
        """Writes the result of a cluster."""
        if len(cluster.hunks) == 1:
            cluster.result = list(cluster.hunks[0].lines)
            return
        o = self.o[cluster.start : cluster.end]
        x, y = cluster.lines(True, self.o), cluster.lines(False, self.o)
        if not o:
            self.insert(cluster, x, y)
        elif x == y:
            cluster.result = x
        elif cluster.only_removes(True) or cluster.only_removes(False):
            self.delete_or_edit(cluster, o, x, y)
        else:
            self.both_wrote(cluster, o, x, y)

    def insert(self, cluster: _Cluster, x: Lines, y: Lines) -> None:
        """4.5"""
        cluster.result, is_overlap = insertions(x, y, self.merge_of.budget)
        if is_overlap:
            self.record(cluster, "overlap", [], x, y)

    def delete_or_edit(self, cluster: _Cluster, o: Lines, x: Lines, y: Lines) -> None:
        """4.6: keeps the new lines of the side that edited, and the lines without a word after each of its hunks."""
        if cluster.only_removes(True) and cluster.only_removes(False):
            return
        if self.merge_of.undone and cluster.only_removes(True):
            return self.record(cluster, "delete-edit", o, x, y)
        edits = cluster.of_side(cluster.only_removes(False))
        for number, one in enumerate(edits):
            cluster.result += one.lines
            end = edits[number + 1].hunk.start if number + 1 < len(edits) else cluster.end
            for line in self.o[one.hunk.end : end]:
                if has_word(line):
                    break
                cluster.result.append(line)
        self.record(cluster, "delete-edit", o, x, y)

    def both_wrote(self, cluster: _Cluster, o: Lines, x: Lines, y: Lines) -> None:
        """4.7"""
        first, last = 0, 0
        if not any(index in self.to_x or index in self.to_y for index in range(cluster.start, cluster.end)):
            first, last = shared(o, x, y)
        before, behind = x[:first], x[len(x) - last :]
        o, x, y = (side[first : len(side) - last] for side in (o, x, y))
        if x == o or y == o:
            cluster.result = y if x == o else x
        elif not o:
            self.insert(cluster, x, y)
        elif not x or not y:
            cluster.result = x if self.merge_of.undone else x or y
            self.record(cluster, "delete-edit", o, x, y)
        else:
            cluster.result = x if self.merge_of.newer_wins else y
            self.record(cluster, "overlap", o, x, y)
        cluster.result = before + cluster.result + behind
        cluster.before = first

    def record(self, cluster: _Cluster, kind: str, o: Lines, x: Lines, y: Lines) -> None:
        cluster.conflict = Conflict(kind, "".join(o), "".join(x), "".join(y), "".join(cluster.result))


# 6


@dataclass
class _Compared:
    """Two texts in the form in which they are merged: their lines, and the lines that are equal."""

    before: Lines
    now: Lines
    pairs: dict[int, int]

    @staticmethod
    def of(before: str, now: str) -> _Compared:
        texts = [before, now]
        if None not in map(style, texts):
            texts = [convert(text, "\n") for text in texts]
        a, b = map(whole_lines, texts)
        return _Compared(a, b, dict(align(a, b, Budget())))

    def region(self, part: Pair) -> Pair:
        """Returns the lines that are now between the kept lines around a part."""
        before = [k for index, k in self.pairs.items() if index < part[0]]
        behind = [k for index, k in self.pairs.items() if index >= part[1]]
        return max(before) + 1 if before else 0, min(behind) if behind else len(self.now)


def lines_of_part(text: str, start: int, count: int) -> Optional[Pair]:
    """Returns which lines of a text a part of it covers; None if it does not cover whole lines. A part may lack its line end, or have one
    that the text lacks.
    """
    places = [0]
    for line in lines(text):
        places.append(places[-1] + len(line))
    end = start + count
    if end not in places and text[end:] in ("\n", "\r\n", "\r"):
        end = len(text)
    if len(text) < end <= len(text) + 2 and has_last_end(text) is False:
        end = len(text)
    return (places.index(start), places.index(end)) if start in places and end in places else None


def told_part(text: str, start: int, count: int) -> str:
    """Returns a part in the form in which records have it."""
    return text[start : start + count] + ((style(text) or "\n") if start + count > len(text) else "")


def part_in(base: str, side: str, start: int, end: int) -> Optional[str]:
    """Returns a side's text in the place of a part of its base, in the form of the part; None if the part does not cover whole lines."""
    part = lines_of_part(base, start, end - start)
    if part is None:
        return None
    compared = _Compared.of(base, side)
    found = "".join(compared.now[slice(*compared.region(part))])
    own = style(base)
    found = convert(found, own) if own and style(side) is not None else found
    is_without_end = start < end <= len(base) and base[end - 1] not in "\r\n"
    return (_without_last_end(found) or found) if is_without_end else found


def choose(made: str, start: int, count: int, chosen: str, now: str) -> Optional[str]:
    """Returns a later text in which other lines replace the result of a record; None unless that occurs exactly once."""
    part = lines_of_part(made, start, count)
    if part is None or part[0] == part[1]:
        return None
    compared = _Compared.of(made, now)
    result, (first, last) = compared.before[slice(*part)], compared.region(part)
    found = [at for at in range(first, last - len(result) + 1) if compared.now[at : at + len(result)] == result]
    if len(found) != 1:
        return None
    own, is_of_one_kind = style(now), None not in map(style, (made, now))
    new = whole_lines(convert(chosen, "\n") if is_of_one_kind else chosen)
    text = "".join([*compared.now[: found[0]], *new, *compared.now[found[0] + len(result) :]])
    text = text if has_last_end(now) else _without_last_end(text)
    return convert(text, own or style(made) or "\n") if is_of_one_kind else text

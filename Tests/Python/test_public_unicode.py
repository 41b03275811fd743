"""Unicode's test files, for the promises of the documents: how keys of indexes are folded (docs/index-keys.md), how texts are split
(docs/merging-texts.md), which ids other systems treat as equal (docs/interchange.md), and that a passphrase may be composed either way
(docs/encryption.md). public_inputs.py says where to find them."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Iterable, Iterator

import llvs
from documents import tokens as k
from keys.folding import fold
from public_inputs import needs_unicode, unicode_lines
from sampling import sample
from test_documents_engine import compare


def text(scalars: str) -> str:
    return "".join(chr(int(scalar, 16)) for scalar in scalars.split())


@lru_cache(maxsize=None)
def newer() -> frozenset[str]:
    """The scalars that later versions than Unicode 14.0 have assigned, of which the table of foldings was made."""
    found = set()
    for line in unicode_lines("DerivedAge.txt"):
        scalars, version = (word.strip() for word in line.split(";"))
        if float(version) > 14.0:
            first, _, last = scalars.partition("..")
            found |= set(map(chr, range(int(first, 16), int(last or first, 16) + 1)))
    return frozenset(found)


def normalization() -> list[tuple[str, ...]]:
    """The five columns of each line: a source, its NFC, NFD, NFKC and NFKD."""
    lines = [line for line in unicode_lines("NormalizationTest.txt") if not line.startswith("@")]
    found = [tuple(text(column) for column in line.split(";")[:5]) for line in lines]
    assert len(found) > 18_000
    return found


def folded(store: llvs.Store, texts: Iterable[str]) -> dict[str, str]:
    """Returns the engine's folding of each text, from the keys of an index."""
    wanted = list(dict.fromkeys(texts))
    pieces = {f"v{start}": wanted[start : start + 5_000] for start in range(0, len(wanted), 5_000)}
    store.make_version(insert={id: json.dumps({"v": piece}).encode() for id, piece in pieces.items()})
    index, found = store.index(definition={"prefix": "", "on": ["/v/*"], "text": "fold"}), {}
    for id, piece in pieces.items():
        for key in index.explain(id).key_bytes:
            part, spelling, end = key.split(b"\0", 2)
            assert part.startswith(b"\x08") and end == b"\0"
            found[spelling.decode()] = part[1:].decode()
    assert found.keys() == set(wanted)
    return found


@needs_unicode()
def test_what_case_folding_makes_one_is_one_key(memory: llvs.Store) -> None:
    """Scalars with the same folding have one key: by the foldings C, F and S, without those of Turkish."""
    pairs = []
    for line in unicode_lines("CaseFolding.txt"):
        scalar, status, mapping = (word.strip() for word in line.split(";")[:3])
        if status in "CFS" and not newer() & {text(scalar), *text(mapping)}:
            pairs.append((text(scalar), text(mapping)))
    assert len(pairs) > 1_500
    found = folded(memory, (one for pair in pairs for one in pair))
    for one, other in pairs:
        assert found[one] == found[other] == fold(one), ascii((one, other))


@needs_unicode()
def test_compositions_of_a_text_are_one_key(memory: llvs.Store) -> None:
    """NFC and NFD have one key. So has the source, unless its remaining marks are in another order. Texts that are equal only by
    compatibility have different keys, unless case folding unites them."""
    lines = sample(normalization()[::5] + normalization()[-800:], normalization())
    lines = [line for line in lines if not newer() & set("".join(line))]
    found = folded(memory, (one for line in lines for one in line))
    for one, other in found.items():
        assert other == fold(one), ascii(one)
    cased = {text(line.split(";")[0]) for line in unicode_lines("CaseFolding.txt")}
    marks, apart = classes(), 0
    for source, nfc, nfd, nfkc, _ in lines:
        assert found[nfc] == found[nfd], ascii(source)
        assert found[source] == found[nfd] or not is_ordered(found[source], marks), ascii(source)
        if source == nfd != nfkc and source not in cased and len(source) == 1:
            assert found[source] == source, ascii(source)
            apart += 1
    assert apart > 400


def classes() -> dict[str, int]:
    """The canonical combining class of each mark."""
    rows = (line.split(";") for line in unicode_lines("UnicodeData.txt"))
    return {chr(int(row[0], 16)): int(row[3]) for row in rows if row[3] != "0"}


def is_ordered(string: str, marks: dict[str, int]) -> bool:
    """Returns whether the marks are in canonical order."""
    order = [marks.get(char, 0) for char in string]
    return all(second == 0 or first <= second for first, second in zip(order, order[1:]))


@needs_unicode()
def test_scalars_that_are_newer_than_the_table_fold_to_themselves(memory: llvs.Store) -> None:
    found = folded(memory, newer())
    assert found and all(one == other for one, other in found.items())


def broken(name: str) -> Iterator[tuple[str, frozenset[int]]]:
    """The texts of a file of breaks, and where each may be broken."""
    for line in unicode_lines(f"auxiliary/{name}"):
        string, breaks = "", set()
        for word in line.split():
            if word == "÷":
                breaks.add(len(string))
            elif word != "×":
                string += chr(int(word, 16))
        yield string, frozenset(breaks)


def starts(string: str) -> set[int]:
    """Returns where lines, their ends and tokens of a text begin (docs/merging-texts.md, 2.1 and 2.5)."""
    found, at = set(), 0
    for line in k.lines(string):
        body, end = k.split_end(line)
        for piece in [*k.tokens(body), end]:
            found.add(at)
            at += len(piece)
    return found


@needs_unicode()
def test_no_grapheme_is_split_but_beside_white_space() -> None:
    texts = split = 0
    for string, breaks in broken("GraphemeBreakTest.txt"):
        texts += 1
        for at in starts(string) - breaks:
            split += 1
            assert string[at - 1] in "\t \u3000" or string[at] in "\t \u3000", ascii(string)
    assert texts > 500 and split


@needs_unicode()
def test_texts_with_all_kinds_of_breaks_merge_as_the_page_says() -> None:
    """The engine beside the model: the sides change neighbours, which is an overlap unless a token ends between these."""
    kinds = [text for name in ("GraphemeBreakTest.txt", "WordBreakTest.txt") for text, _ in broken(name)]
    # JSON has no lone surrogates. These versions of the files have none either, so all their texts can be merged.
    assert len(kinds) > 2_000 and not any(0xD800 <= ord(char) < 0xE000 for char in "".join(kinds))
    for string in sample(kinds[::29], kinds):
        base = f"a {string}b {string} c"
        for at in range(2, 3 + len(string)):
            newer_side, older_side = base[: at - 1] + "x" + base[at:], base[:at] + "y" + base[at + 1 :]
            compare({"": {"as": "text"}}, base.encode(), newer_side.encode(), older_side.encode())


@needs_unicode()
def test_ids_that_other_systems_confuse_are_reported(memory: llvs.Store, tmp_path: Path) -> None:
    """The NFC and NFD of a text are reported as twins. Texts that are equal only by compatibility are not."""
    first, second, twins = {}, {}, set()
    for number, (source, nfc, nfd, nfkc, nfkd) in enumerate(normalization()[::40]):
        if newer() & set(source + nfkd):
            continue
        first[f"{number}/{nfc}"] = second[f"{number}/{nfd}"] = b"1"
        if nfc != nfd:
            twins.add(number)
        if nfd != nfkd:
            second[f"{number}/{nfkc}"] = b"1"
    assert len(twins) > 200
    version = memory.make_version(insert=first)
    new = {id: data for id, data in second.items() if id not in first}
    memory.make_version(version, insert=new)
    with llvs.Exchange(memory, tmp_path / "place", report_unportable=True) as exchange:
        problems = exchange.send().problems
    assert {problem.code for problem in problems} == {llvs.ErrorCode.UNPORTABLE_ID}
    assert len(problems) == len(twins)
    for number in twins:
        assert any(f"{number}/" in problem.reason for problem in problems), number


@needs_unicode()
def test_a_passphrase_may_be_composed_either_way(memory: llvs.Store) -> None:
    """The longest source of all, and a syllable of Hangul."""
    memory.make_version(insert={"a": b"1"})
    lines = [line for line in normalization() if not newer() & set("".join(line))]
    longest = max(lines, key=lambda line: len(line[2]))
    syllable = next(line for line in lines if line[0] == "\uac01")
    for written, read in ((longest[2], longest[1]), (longest[1], longest[0]), (syllable[2], syllable[1])):
        with llvs.Store(storage="memory") as other:
            other.unpack(memory.pack(passphrase=written), passphrase=read)
            assert len(list(other)) == 1

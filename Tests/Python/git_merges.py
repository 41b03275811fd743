"""Compares merges of a git repository with what the engine gives, file by file.

    git_merges.py <repository> [<most merges>]

For each merge commit with two parents and one merge base, each file is taken that both parents changed differently and that is UTF-8 in the
base and in both parents. `git merge-file` merges it, and `llvs.merge.merge_values` with the rule `text`. Counted are:

- files that git merges without a conflict, and how many of these the engine merges to the same bytes;
- files with conflicts in git, and for how many of these the engine has a record; and those without a record that came out as neither side
  nor as the commit has it, which are listed. (Git does not merge the words of a line.)

The newer side is the first parent. The last line has the counts. The exit status is 1 if a clean merge has other bytes and no line of the
base is there twice. (Repeated lines have more than one alignment.)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Iterator, Optional

import llvs

Three = tuple[bytes, bytes, bytes]


def git(repository: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *words], check=True, capture_output=True).stdout


def blob(repository: Path, version: str, name: str) -> Optional[bytes]:
    """Returns a file at a version, or None if it is not there."""
    found = subprocess.run(["git", "-C", str(repository), "cat-file", "blob", f"{version}:{name}"], capture_output=True)
    return found.stdout if found.returncode == 0 else None


def files(repository: Path, most: int) -> Iterator[tuple[str, str, Three]]:
    """Yields merge, name and the three texts of files that both parents changed differently."""
    lines = git(repository, "log", "--merges", "--all", f"--max-count={most}", "--format=%H %P").decode().split("\n")
    for merge, first, second, *more in (line.split() for line in lines if line):
        bases = git(repository, "merge-base", "--all", first, second).decode().split() if not more else []
        if len(bases) != 1:
            continue
        names = ("diff", "--name-only", "-z", "--no-renames", bases[0])
        changed = [set(git(repository, *names, side).split(b"\0")) for side in (first, second)]
        for name in sorted(name.decode() for name in changed[0] & changed[1] if name):
            texts = [blob(repository, version, name) for version in (bases[0], first, second)]
            o, x, y = texts
            if o is None or x is None or y is None or x == y:
                continue
            try:
                for text in (o, x, y):
                    text.decode()
            except UnicodeDecodeError:
                continue
            yield merge, name, (o, x, y)


def by_git(three: Three, folder: Path) -> Optional[bytes]:
    """Returns what `git merge-file` gives, or None if it has a conflict."""
    names = [folder / name for name in ("base", "first", "second")]
    for name, text in zip(names, three):
        name.write_bytes(text)
    done = subprocess.run(["git", "merge-file", "-p", "-q", str(names[1]), str(names[0]), str(names[2])], capture_output=True)
    return done.stdout if done.returncode == 0 else None


def main() -> int:
    repository, most = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 30
    counts: Counter[str] = Counter()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for merge, name, three in files(repository, most):
            expected, found = by_git(three, Path(folder)), llvs.merge.merge_values(*three, "text")
            if expected is not None:
                counts["clean in git"] += 1
                if found.data == expected:
                    counts["the same"] += 1
                else:
                    lines = Counter(three[0].split(b"\n"))
                    is_repeated = max(lines.values()) > 1
                    bad += not is_repeated
                    print(f"other bytes: {merge[:12]} {name}{' (the base repeats lines)' if is_repeated else ''}")
            else:
                counts["conflicts in git"] += 1
                if found.records:
                    counts["with a record"] += 1
                elif found.data not in three[1:] and found.data != blob(repository, merge, name):
                    # A clean merge by words, or equal insertions, which git does not have.
                    counts["merged by words"] += 1
                    print(f"no record: {merge[:12]} {name}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()) or "no file was changed on both sides")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

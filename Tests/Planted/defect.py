"""An entry of the list: a defect, and the commands of the short run that have to notice it."""

from __future__ import annotations

from dataclasses import dataclass

#: The harm of a defect to a user, or to a maintainer.
KINDS = {
    "lost version", "wrong merge", "wrong bytes", "wrong answer", "missed damage", "missed cut", "race", "deadlock", "leak",
    "unbounded cost", "wrong error", "wrong type", "told secret", "hostile input accepted", "broken example", "stale document",
    "stale file", "broken layer",
}


@dataclass(frozen=True)
class Command:
    """One way to run tests."""

    #: swift, c, cpp, program, python, module, check, example or document: see the functions below.
    way: str
    #: The name of the test, script or file.
    name: str
    #: Arguments after it on the command line.
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.name, *(f"'{option}'" if " " in option else option for option in self.options)])


def swift(name: str) -> Command:
    """A test of Tests/LLVS*Tests: "Suite/function"."""
    return Command("swift", name)


def c(name: str, *options: str) -> Command:
    """A program of Tests/C, by the name of its source without the suffix."""
    return Command("c", name, options)


def cpp(name: str) -> Command:
    """A program of Tests/C in C++, which is compiled again: for defects in the wrapper."""
    return Command("cpp", name)


def program(name: str, *options: str) -> Command:
    """A program of Tests/Faults, which counts its own tests: "faults/test_crash"."""
    return Command("program", name, options)


def python(name: str, *options: str) -> Command:
    """A test for pytest: "Tests/Python/test_store.py::test_name"."""
    return Command("python", name, options)


def check(name: str, *options: str) -> Command:
    """A script of the tree that a suite runs, and that reports failure by its exit status."""
    return Command("check", name, options)


def module(name: str, *options: str) -> Command:
    """A program of Python's environment, such as mypy."""
    return Command("module", name, options)


def example(name: str) -> Command:
    """An example program, in an empty folder: "examples/python/notes.py"."""
    return Command("example", name)


def document(name: str, number: int) -> Command:
    """A block of Python in a document, by its number there, in an empty folder."""
    return Command("document", name, (str(number),))


@dataclass(frozen=True)
class Edit:
    """One place of a file that a defect changes."""

    file: str
    #: Occurs exactly once in the file.
    old: str
    #: In a source of the engine, `PLANTED` stands for the expression that is true if this defect is switched on.
    new: str


@dataclass(frozen=True)
class Defect:
    """A defect. Each of its commands has to fail once it is planted, and to pass without it."""

    name: str
    kind: str
    #: One sentence: what is broken.
    what: str
    edits: tuple[Edit, ...]
    noticed_by: tuple[Command, ...]
    #: The command may hang: then the defect counts as noticed after this many seconds.
    hangs_after: int = 0

    @property
    def is_of_engine(self) -> bool:
        """Whether it is compiled into the library, behind a switch."""
        return self.edits[0].file.startswith("Sources/") and "PLANTED" in self.edits[0].new


def defect(
    name: str, kind: str, what: str, file: str, old: str, new: str, *noticed_by: Command, also: tuple[Edit, ...] = (), hangs_after: int = 0
) -> Defect:
    """A defect in one place; `also` names further places."""
    return Defect(name, kind, what, (Edit(file, old, new), *also), noticed_by, hangs_after)

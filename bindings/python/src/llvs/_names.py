"""How a package finds its public names: each is imported at its first use, so that `import llvs` loads little."""

from __future__ import annotations

import sys

# `import llvs` imports this module, so it imports no more than it needs. Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


#: The modules of llvs that have public names.
_areas: list[str] = []


def _elsewhere(name: str) -> str | None:
    """Returns the full name of a class that another module of llvs has. The import of a module looks here for the
    module's own name, which begins with a small letter: that must not import all of llvs."""
    for area in _areas if name[:1].isupper() else ():
        if name in getattr(__import__(f"llvs.{area}", fromlist=["__all__"]), "__all__", ()):
            return f"llvs.{area}.{name}"
    return None


def attach(package: str, modules: dict[str, str], submodules: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Returns `__getattr__`, `__dir__` and `__all__` for a package.

    modules: for each module of llvs that defines names of the package, the module within llvs ("store.versions") and the names.
    submodules: the modules of the package that are usable without an import of their own.

    Type checkers read imports instead, which the package repeats; a test compares the two.
    """
    places = {name: f"llvs.{module}" for module, names in modules.items() for name in names.split()}
    inner = {name: f"{package}.{name}" for name in submodules.split()}
    if package == "llvs":
        _areas[:] = inner

    def find(name: str) -> Any:
        module = inner.get(name) or places.get(name)
        if module is None:
            place = _elsewhere(name)
            hint = f"; it is {place}" if place else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        found = __import__(module, fromlist=["__name__"])
        found = vars(sys.modules[package])[name] = found if name in inner else getattr(found, name)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places, *inner})

    return find, names, sorted(places)

"""Indexes, which find values by their contents at any version.

    MISSING      the part of a key in an index that a value lacks
    KeyPart      a part of a key in an index: None, a bool, a number, a str, or `MISSING`
    GivenPart    the same in a query: also a date or a time
    KeyFunction  a function that computes the keys of a value, instead of a definition
"""

from __future__ import annotations

# Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .indexes import Explanation as Explanation, Found as Found, Index as Index, IndexEntry as IndexEntry, IndexPage as IndexPage
    from .keys import MISSING as MISSING, GivenPart as GivenPart, KeyFunction as KeyFunction, KeyPart as KeyPart, Missing as Missing
else:
    from .._names import attach

    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "indexes.indexes": "Explanation Found Index IndexEntry IndexPage",
            "indexes.keys": "MISSING GivenPart KeyFunction KeyPart Missing",
        },
    )

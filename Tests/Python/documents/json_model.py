"""JSON texts as trees that preserve the spelling of numbers; equality, order and canonical output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Optional, Union

#: Constants of merge semantics 1, which cannot be configured.
MAX_SIZE = 64 << 20
MAX_DEPTH = 128
MAX_DIGITS = 400
MAX_EXPONENT = 9999


class NotMergeable(Exception):
    """The bytes are not mergeable JSON; the message has the reason."""


@dataclass(frozen=True)
class Decimal:
    """An exact decimal, `coefficient * 10 ** exponent`, without zeros at the end of the coefficient; zero is (0, 0)."""

    coefficient: int
    exponent: int

    @staticmethod
    def of(coefficient: int, exponent: int) -> Decimal:
        """Returns the number in this unique form."""
        if coefficient == 0:
            return Decimal(0, 0)
        while coefficient % 10 == 0:
            coefficient //= 10
            exponent += 1
        return Decimal(coefficient, exponent)

    def aligned(self, exponent: int) -> int:
        """Returns the number in units of `10 ** exponent`, which is not above its own exponent."""
        return self.coefficient * 10 ** (self.exponent - exponent)

    def plus(self, other: Decimal, sign: int = 1) -> Decimal:
        """Returns the exact sum, or with sign -1 the difference."""
        exponent = min(self.exponent, other.exponent)
        return Decimal.of(self.aligned(exponent) + sign * other.aligned(exponent), exponent)

    def compare(self, other: Decimal) -> int:
        """Returns a number below, at or above zero, as this one is below, equal to or above the other."""
        difference = self.plus(other, -1).coefficient
        return (difference > 0) - (difference < 0)

    @property
    def fits(self) -> bool:
        """Returns whether it can be merged: it has at most 400 digits from the first to the last one that is not zero, and the power of
        ten of its first digit is between -9999 and 9999.
        """
        digits = len(str(abs(self.coefficient))) if abs(self.coefficient) < 10**MAX_DIGITS else MAX_DIGITS + 1
        return digits <= MAX_DIGITS and (self.coefficient == 0 or abs(self.exponent + digits - 1) <= MAX_EXPONENT)

    def text(self) -> str:
        """Returns the shortest plain decimal; beyond 21 digits the exponent form of RFC 8785 (ECMAScript's Number::toString)."""
        if self.coefficient == 0:
            return "0"
        sign = "-" if self.coefficient < 0 else ""
        digits = str(abs(self.coefficient))
        k, n = len(digits), len(digits) + self.exponent
        if k <= n <= 21:
            return sign + digits + "0" * (n - k)
        if 0 < n <= 21:
            return f"{sign}{digits[:n]}.{digits[n:]}"
        if -6 < n <= 0:
            return f"{sign}0.{'0' * -n}{digits}"
        mantissa = digits if k == 1 else f"{digits[0]}.{digits[1:]}"
        return f"{sign}{mantissa}e{'+' if n > 0 else '-'}{abs(n - 1)}"


@dataclass(frozen=True)
class Number:
    """A number: its spelling, and its value."""

    lexeme: str
    value: Decimal


@dataclass(frozen=True)
class String:
    """A string of scalar values."""

    text: str


@dataclass(frozen=True)
class Array:
    """An array."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Object:
    """An object; names are unique."""

    members: tuple[tuple[str, Node], ...]

    def get(self, name: str) -> Optional[Node]:
        """Returns the member with a name."""
        return next((value for key, value in self.members if key == name), None)


@dataclass(frozen=True)
class Literal:
    """null (None), false or true."""

    value: Optional[bool]


Node = Union[Literal, Number, String, Array, Object]

NULL, FALSE, TRUE = Literal(None), Literal(False), Literal(True)


def number(lexeme: str) -> Number:
    """Returns the number of a lexeme that the grammar accepts; NotMergeable beyond the limits."""
    mantissa, _, written = lexeme.lower().partition("e")
    exponent = written.lstrip("+-").lstrip("0") or "0"
    if len(exponent) > 4:
        raise NotMergeable("an exponent above 9999")
    power = -int(exponent) if written.startswith("-") else int(exponent)
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if len(digits.rstrip("0")) > MAX_DIGITS:
        raise NotMergeable("a number of more than 400 significant digits")
    if digits and abs(power - len(fraction) + len(digits) - 1) > MAX_EXPONENT:
        raise NotMergeable("an exponent above 9999")
    coefficient = int(digits or "0")
    return Number(lexeme, Decimal.of(-coefficient if lexeme.startswith("-") else coefficient, power - len(fraction) if digits else 0))


_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SPACE = " \t\n\r"


class _Parser:
    """Parses one text of RFC 8259."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, what: str) -> NotMergeable:
        return NotMergeable(f"{what} at character {self.at}")

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def space(self) -> None:
        while self.peek() and self.peek() in _SPACE:
            self.at += 1

    def take(self, what: str) -> None:
        if not self.text.startswith(what, self.at):
            raise self.fail(f"no {what!r}")
        self.at += len(what)

    def document(self) -> Node:
        self.space()
        node = self.value(1)
        self.space()
        if self.at != len(self.text):
            raise self.fail("more than one text")
        return node

    def value(self, depth: int) -> Node:
        char = self.peek()
        if char and char in "[{":
            if depth > MAX_DEPTH:
                raise self.fail("nested more than 128 deep")
            return self.array(depth) if char == "[" else self.object(depth)
        if char == '"':
            return String(self.string())
        for word, node in (("null", NULL), ("true", TRUE), ("false", FALSE)):
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return node
        return self.number()

    def array(self, depth: int) -> Node:
        self.take("[")
        items: list[Node] = []
        self.space()
        if self.peek() == "]":
            self.at += 1
            return Array(())
        while True:
            self.space()
            items.append(self.value(depth + 1))
            self.space()
            if self.peek() == "]":
                self.at += 1
                return Array(tuple(items))
            self.take(",")

    def object(self, depth: int) -> Node:
        self.take("{")
        members: dict[str, Node] = {}
        self.space()
        if self.peek() == "}":
            self.at += 1
            return Object(())
        while True:
            self.space()
            name = self.string()
            if name in members:
                raise self.fail(f"the name {name!r} twice")
            self.space()
            self.take(":")
            self.space()
            members[name] = self.value(depth + 1)
            self.space()
            if self.peek() == "}":
                self.at += 1
                return Object(tuple(members.items()))
            self.take(",")

    def string(self) -> str:
        self.take('"')
        units: list[str] = []
        while True:
            char = self.peek()
            if not char or char < " ":
                raise self.fail("a string that does not end")
            self.at += 1
            if char == '"':
                break
            units.append(self.escape() if char == "\\" else char)
        try:
            # Two escapes of a surrogate pair become their scalar; a lone one cannot be encoded.
            return "".join(units).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise self.fail("a lone surrogate") from None

    def escape(self) -> str:
        char = self.peek()
        self.at += 1
        if char in _ESCAPES:
            return _ESCAPES[char]
        digits = self.text[self.at : self.at + 4]
        if char != "u" or len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
            raise self.fail("an unknown escape")
        self.at += 4
        return chr(int(digits, 16))

    def digits(self) -> None:
        start = self.at
        while self.peek() and self.peek() in "0123456789":
            self.at += 1
        if self.at == start:
            raise self.fail("no JSON value")

    def number(self) -> Node:
        start = self.at
        if self.peek() == "-":
            self.at += 1
        if self.peek() == "0":
            self.at += 1
        else:
            self.digits()
        if self.peek() == ".":
            self.at += 1
            self.digits()
        if self.peek() and self.peek() in "eE":
            self.at += 1
            if self.peek() and self.peek() in "+-":
                self.at += 1
            self.digits()
        return number(self.text[start : self.at])


def parse(data: bytes, *, scalar: bool = False) -> Node:
    """Returns the tree of mergeable JSON. `scalar` allows a top level that is neither an object nor an array."""
    if len(data) > MAX_SIZE:
        raise NotMergeable("more than 64 MiB")
    if data.startswith(b"\xef\xbb\xbf"):
        raise NotMergeable("a byte order mark")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise NotMergeable("not UTF-8") from None
    node = _Parser(text).document()
    if not scalar and not isinstance(node, (Array, Object)):
        raise NotMergeable("neither an object nor an array")
    return node


def rank(node: Node) -> int:
    """Returns the rank of the type: null, bool, number, string, array, object."""
    if isinstance(node, Literal):
        return 0 if node.value is None else 1
    return {Number: 2, String: 3, Array: 4, Object: 5}[type(node)]


def compare(a: Node, b: Node) -> int:
    """Returns a number below, at or above zero. Zero is equality as JSON values: numbers by value, objects as maps."""
    if rank(a) != rank(b):
        return rank(a) - rank(b)
    if isinstance(a, Number) and isinstance(b, Number):
        return a.value.compare(b.value)
    if isinstance(a, Array) and isinstance(b, Array):
        for left, right in zip(a.items, b.items):
            if order := compare(left, right):
                return order
        return len(a.items) - len(b.items)
    if isinstance(a, Object) and isinstance(b, Object):
        ours, theirs = by_name(a), by_name(b)
        for (name, left), (other, right) in zip(ours, theirs):
            if name != other:
                return -1 if name.encode() < other.encode() else 1
            if order := compare(left, right):
                return order
        return len(ours) - len(theirs)
    if isinstance(a, String) and isinstance(b, String):
        return (a.text.encode() > b.text.encode()) - (a.text.encode() < b.text.encode())
    assert isinstance(a, Literal) and isinstance(b, Literal)
    return bool(a.value) - bool(b.value)


def equal(a: Optional[Node], b: Optional[Node]) -> bool:
    """Returns equality as JSON values; two absent values are equal."""
    if a is None or b is None:
        return a is b
    return compare(a, b) == 0


def by_name(node: Object) -> list[tuple[str, Node]]:
    """Returns the members in the byte order of their names."""
    return sorted(node.members, key=lambda member: member[0].encode())


def _quote(text: str) -> Iterator[str]:
    short = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    yield '"'
    for char in text:
        yield short.get(char) or (f"\\u{ord(char):04x}" if char < " " else char)
    yield '"'


def _write(node: Node, plain: bool) -> str:
    if isinstance(node, Literal):
        return {None: "null", True: "true", False: "false"}[node.value]
    if isinstance(node, Number):
        return node.value.text() if plain else node.lexeme
    if isinstance(node, String):
        return "".join(_quote(node.text))
    if isinstance(node, Array):
        return "[" + ",".join(_write(item, plain) for item in node.items) + "]"
    return "{" + ",".join("".join(_quote(name)) + ":" + _write(value, plain) for name, value in by_name(node)) + "}"


def canonical(node: Node) -> bytes:
    """Returns the output form: no white space, members sorted, only necessary escapes, numbers in their spelling."""
    return _write(node, False).encode()


def identity(node: Node) -> bytes:
    """Returns canonical bytes in which equal numbers have one spelling. Two values have the same ones exactly if they are equal."""
    return _write(node, True).encode()


def sort_by_identity(nodes: list[Node]) -> list[Node]:
    """Sorts by canonical bytes."""
    return sorted(nodes, key=identity)


def resolve(node: Optional[Node], pointer: tuple[str, ...]) -> Optional[Node]:
    """Returns what an RFC 6901 pointer names; None if there is nothing."""
    for segment in pointer:
        if isinstance(node, Object):
            node = node.get(segment)
        elif isinstance(node, Array) and segment.isascii() and segment.isdigit() and (segment == "0" or segment[0] != "0"):
            node = node.items[int(segment)] if int(segment) < len(node.items) else None
        else:
            return None
    return node



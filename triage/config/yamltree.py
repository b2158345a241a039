"""YAML text to plain values that remember their lines. Bounded: no file can make it run long or grow large.

Scalars follow YAML 1.2: only true and false are booleans, so `id: no` stays a word. Days stay days.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import yaml

from triage.config.problems import Problem
from triage.domain.errors import ConfigError

MAX_BYTES = 8_000_000
MAX_DEPTH = 20
MAX_VALUES = 300_000

_TAG = "tag:yaml.org,2002:"
Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """The values of one file, the line of each, and what the YAML itself has wrong (duplicate keys, tags)."""

    path: Path
    data: object
    lines: dict[Loc, int]
    problems: tuple[Problem, ...] = ()

    def line(self, loc: Sequence[str | int]) -> int:
        """The line of a place, or of the nearest place around it that the file has."""
        known: Loc = ()
        for step in loc:
            if (*known, step) in self.lines:
                known = (*known, step)
        return self.lines.get(known, 1)

    def where(self, loc: Sequence[str | int]) -> str:
        """File and line of a place, `config/triage.yaml:41`."""
        return Problem(self.line(loc), "").at(self.path).removesuffix(": ")


def read_tree(path: Path) -> Tree:
    """Read one YAML file. Raises ConfigError when it cannot be read as YAML at all."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(Problem(1, f"cannot be read: {error.strerror or error}").at(path)) from None
    return parse_tree(raw, path)


def parse_tree(raw: bytes, path: Path) -> Tree:
    """Read YAML from bytes; `path` is only for messages. Raises ConfigError when it is not YAML at all."""
    if len(raw) > MAX_BYTES:
        raise ConfigError(Problem(1, f"is larger than {MAX_BYTES:,} bytes; this cannot be the right file").at(path))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(Problem(line, "is not UTF-8 text; save the file as UTF-8").at(path)) from None
    try:
        root = _Loader(text).get_single_node()
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(_syntax(error, text).at(path)) from None
    if root is None:
        raise ConfigError(Problem(1, "is empty; `triage init` writes a file to start from").at(path))
    reader = _Reader()
    try:
        data = reader.value(root, (), frozenset())
    except _TooMany as error:
        raise ConfigError(Problem(error.line, f"holds more than {MAX_VALUES:,} values").at(path)) from None
    return Tree(path, data, reader.lines, tuple(reader.problems))


class _Loader(yaml.SafeLoader):
    """PyYAML's composer with a bound on depth and the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own protocol

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"nested more than {MAX_DEPTH} deep", problem_mark=mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]{1,18}", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("timestamp", r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(_TAG + _tag, re.compile(rf"^(?:{_pattern})$"), list(_first))


class _TooMany(Exception):
    def __init__(self, line: int) -> None:
        self.line = line


class _Reader:
    """Turns nodes into values. An alias is read anew at each use, and each use counts towards the bound."""

    def __init__(self) -> None:
        self.lines: dict[Loc, int] = {}
        self.problems: list[Problem] = []
        self._values = 0

    def value(self, node: yaml.Node, loc: Loc, around: frozenset[int]) -> object:
        line = node.start_mark.line + 1
        self._values += 1
        if self._values > MAX_VALUES:
            raise _TooMany(line)
        self.lines.setdefault(loc, line)
        if id(node) in around:
            self.problems.append(Problem(line, f"{spell(loc)} contains itself through an alias"))
            return None
        within = around | {id(node)}
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, loc, within)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.value(item, (*loc, i), within) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return _SCALARS[node.tag](node.value)
        self.problems.append(Problem(line, f"{spell(loc)} has a YAML tag (!...); tags mean nothing here, remove it"))
        return None

    def _mapping(self, node: yaml.MappingNode, loc: Loc, around: frozenset[int]) -> dict[str, object]:
        found: dict[str, object] = {}
        merged: dict[str, object] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem(line, f"{spell(loc)} has a key that is not a word"))
                continue
            if key_node.tag == _TAG + "merge":
                merged = self._merged(value_node, loc, around) | merged
                continue
            key = key_node.value
            if key in found:
                first = self.lines[(*loc, key)]
                text = f"{spell((*loc, key))} is written twice (first on line {first}); keep one"
                self.problems.append(Problem(line, text))
                continue
            self.lines[(*loc, key)] = line
            found[key] = self.value(value_node, (*loc, key), around)
        return merged | found

    def _merged(self, node: yaml.Node, loc: Loc, around: frozenset[int]) -> dict[str, object]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, object] = {}
        for each in nodes:
            value = self.value(each, loc, around)
            if not isinstance(value, dict):
                line = each.start_mark.line + 1
                self.problems.append(Problem(line, f"{spell(loc)}: << takes a block of keys (an alias of one)"))
                continue
            merged = value | merged
        return merged


def _day_or_text(text: str) -> date | str:
    with suppress(ValueError):
        return date.fromisoformat(text)
    return text


_SCALARS: dict[str, Callable[[str], object]] = {
    _TAG + "str": str,
    _TAG + "int": int,
    _TAG + "float": float,
    _TAG + "null": lambda _: None,
    _TAG + "bool": lambda text: text.casefold() == "true",
    _TAG + "timestamp": _day_or_text,
}


def spell(loc: Sequence[str | int]) -> str:
    """A place as an operator reads it: `accounts[0].port`; the whole file is "the file"."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{_printable(step)}" for step in loc)
    return text.removeprefix(".") or "the file"


def _printable(key: str) -> str:
    return key if len(key) <= 40 and key.isprintable() else f"{key[:20]!r}..."


def _syntax(error: Exception, text: str) -> Problem:
    """What PyYAML has to say, without the piece of the file it likes to quote: that may be a password."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return Problem(line, "holds a control character; remove it")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark is not None else 1
    lines = text.splitlines()
    indent = re.match(r"\s*", lines[line - 1]) if line <= len(lines) else None
    if indent is not None and "\t" in indent.group():
        return Problem(line, "is indented with a tab; YAML wants spaces")
    what = getattr(error, "problem", None) or "cannot be read"
    if "undefined alias" in what:
        return Problem(line, "uses an alias that is defined nowhere; text that begins with * must be in quotes")
    if "but found another document" in what:
        return Problem(line, "holds a second document (---); one file is one document")
    what = re.sub(r"'([^']*)'", lambda m: m[0] if len(m[1]) == 1 or m[1].startswith("<") else "it", what)
    return Problem(line, f"is not valid YAML: {what}; check indentation, colons and quotes here")

"""Types as SQL text, the way Spark's catalogs write them: `array<struct<id:bigint,name:string>>`.

The text has no room for everything that a type of the log says: whether elements, values and nested fields may be null
gets lost, and so does the metadata of nested fields. What is read from text is as permissive as it can be.
"""

from __future__ import annotations

import re
from typing import Final

from tidegate.domain.columns import ArrayType, DataType, Field, MapType, StructType, is_known_primitive
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.json_values import NESTING_MAX

_TO_SQL: Final = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_FROM_SQL: Final = {
    **{sql: plain for plain, sql in _TO_SQL.items()},
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
    "null": "void",
}
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNIT = "(?:year|month|day|hour|minute|second)"

_IGNORING_CASE = re.IGNORECASE | re.DOTALL
_NESTED: Final = re.compile(r"\s*+(array|map|struct)\s*<", _IGNORING_CASE)
_WORD: Final = re.compile(r"\s*+([a-z_][a-z0-9_]*)", _IGNORING_CASE)
_PARAMETERS: Final = re.compile(r"\s*+\(([^()]*)\)")
_INTERVAL: Final = re.compile(rf"\s++({_UNIT}(?:\s++to\s++{_UNIT})?)", _IGNORING_CASE)
_COLLATION: Final = re.compile(r"\s++collate\s++([^\s<>,]+)", _IGNORING_CASE)
_FIELD_NAME: Final = re.compile(r"\s*+(?:`((?:[^`]|``)++)`\s*+|([^`:<>,]++)):")
_NOT_NULL: Final = re.compile(r"\s++not\s++null", _IGNORING_CASE)
_COMMENT: Final = re.compile(r"\s++comment\s++'((?:[^'\\]|\\.)*)'", _IGNORING_CASE)
_SIGNS: Final = {sign: re.compile(rf"\s*+{sign}") for sign in (",", ">")}


def sql_type(data_type: DataType) -> str:
    match data_type:
        case str():
            return _TO_SQL.get(data_type, data_type)
        case ArrayType(element):
            return f"array<{sql_type(element)}>"
        case MapType(key, value):
            return f"map<{sql_type(key)},{sql_type(value)}>"
        case StructType(fields):
            return f"struct<{','.join(f'{_quoted(field.name)}:{sql_type(field.type)}' for field in fields)}>"


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def parse_sql_type(text: str) -> DataType:
    """The type that the text names, or InvalidRequest."""
    reader = _Reader(text)
    found = reader.type(depth=1)
    if reader.rest().strip():
        raise reader.unreadable()
    return found


class _Reader:
    """Reads from left to right; `_at` is how far it came."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def type(self, *, depth: int) -> DataType:
        if depth > NESTING_MAX + 1:
            raise InvalidRequest(f"The type {self._text[:100]!r} is nested more than {NESTING_MAX} levels deep.")
        nested = self._match(_NESTED)
        if nested is None:
            return self._primitive()
        match nested[1].lower():
            case "array":
                element = self.type(depth=depth + 1)
                self._expect(">")
                return ArrayType(element, contains_null=True)
            case "map":
                key = self.type(depth=depth + 1)
                self._expect(",")
                value = self.type(depth=depth + 1)
                self._expect(">")
                return MapType(key, value, value_contains_null=True)
            case _:
                return StructType(tuple(self._fields(depth=depth)))

    def rest(self) -> str:
        return self._text[self._at :]

    def unreadable(self) -> InvalidRequest:
        here = f" from {self.rest()[:50]!r} on" if 0 < self._at < len(self._text) else ""
        example = "array<struct<id:bigint>>"
        return InvalidRequest(
            f"The type {self._text[:100]!r} cannot be read{here}. Write it as SQL does, such as {example}."
        )

    def _fields(self, *, depth: int) -> list[Field]:
        fields: list[Field] = []
        if self._takes(">"):
            return fields
        while True:
            name = self._match(_FIELD_NAME)
            if name is None:
                raise self.unreadable()
            data_type = self.type(depth=depth + 1)
            nullable = self._match(_NOT_NULL) is None
            comment = self._match(_COMMENT)
            metadata = {} if comment is None else {"comment": re.sub(r"\\(.)", r"\1", comment[1])}
            plain = name[2].strip() if name[1] is None else name[1].replace("``", "`")
            fields.append(Field(plain, data_type, nullable, metadata))
            if self._takes(">"):
                return fields
            self._expect(",")

    def _primitive(self) -> str:
        start = self._at
        word = self._match(_WORD)
        if word is None:
            raise self.unreadable()
        name = _FROM_SQL.get(word[1].lower(), word[1].lower())
        match name:
            case "interval":
                units = self._match(_INTERVAL)
                name = name if units is None else f"interval {' '.join(units[1].lower().split())}"
            case "string":
                collation = self._match(_COLLATION)
                name = name if collation is None else f"string collate {collation[1]}"
            case _:
                name += self._parameters(name)
        if not is_known_primitive(name):
            self._at = start
            raise self.unreadable()
        return name

    def _parameters(self, name: str) -> str:
        found = self._match(_PARAMETERS)
        if name == "decimal":
            given = [] if found is None else [part.strip() for part in found[1].split(",")]
            # SQL's own: a decimal without a scale has none, and without a precision ten digits.
            return f"({','.join([*given, *('10', '0')[len(given) :]])})"
        return "" if found is None else f"({found[1].strip()})"

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _takes(self, sign: str) -> bool:
        return self._match(_SIGNS[sign]) is not None

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise self.unreadable()

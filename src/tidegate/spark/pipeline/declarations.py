"""What a pipeline is made of: tables and views, each a function of the tables and views that its parameters name.

Nothing here needs Spark; a declaration that makes no sense is refused when it is made.
"""

from __future__ import annotations

import hashlib
import inspect
import marshal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from tidegate.spark.pipeline.errors import DeclarationError
from tidegate.spark.pipeline.expectations import Expectation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SESSION = "spark"
"""The parameter that is the session, not a table."""

Function = Callable[..., "DataFrame"]
Kind = Literal["stream", "upsert", "batch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A DataFrame that others read. It is not stored."""

    name: str
    function: Function
    inputs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    snapshot: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """What the function takes; parameters with a default are its own business."""
        parameters = inspect.signature(self.function).parameters.values()
        return tuple(p.name for p in parameters if p.default is p.empty and p.kind in _NAMED)

    @property
    def uses_session(self) -> bool:
        return SESSION in self.parameters

    @property
    def sources(self) -> tuple[str, ...]:
        """The parameters that are tables or views."""
        return tuple(parameter for parameter in self.parameters if parameter != SESSION)

    def __post_init__(self) -> None:
        _require(self.name != SESSION, f"A function named {SESSION} cannot be read by others: choose another name.")
        for option, names in (("inputs", self.inputs), ("snapshot", self.snapshot)):
            unknown = [name for name in names if name not in self.sources]
            _require(
                not unknown,
                f"{self.name}: {option}= names {listed(unknown)}, and the function takes {listed(self.sources)}.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(View):
    """A stored table: `stream` adds what is new, with `keys` by upserts; otherwise it is computed as a whole."""

    full_name: str
    stream: bool = False
    keys: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    expect: tuple[Expectation, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    evolve: bool = False

    @property
    def kind(self) -> Kind:
        if not self.stream:
            return "batch"
        return "upsert" if self.keys else "stream"

    def __post_init__(self) -> None:
        # A slotted dataclass is a new class, which the bare super() of the old one does not know.
        View.__post_init__(self)
        _require(
            self.stream or not (self.keys or self.snapshot or self.evolve),
            f"{self.name}: keys=, snapshot= and evolve= are for streaming tables; add stream=True, or leave them out "
            "(a batch table is computed as a whole, with the columns its function returns).",
        )
        _require(
            bool(self.keys) == bool(self.sequence_by),
            f"{self.name}: keys= and sequence_by= go together: keys says which rows are the same, sequence_by which of "
            "them is the newest.",
        )
        names = [expectation.name for expectation in self.expect]
        twice = sorted({name for name in names if names.count(name) > 1})
        _require(
            not twice, f"{self.name}: there are several expectations named {listed(twice)}; give each its own name."
        )


def fingerprint(table: Table, views: Iterable[View]) -> str:
    """Changes when the code of the table or of a view behind it does. Functions that those call are not seen."""
    parts = [repr((table.expect, table.partitioned_by))]
    for declared in (table, *views):
        parts += [declared.name, repr(sorted(declared.inputs.items())), _source(declared.function)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def names(given: str | Iterable[str]) -> tuple[str, ...]:
    """One name or several."""
    return (given,) if isinstance(given, str) else tuple(given)


def listed(of: Iterable[str]) -> str:
    return ", ".join(of) or "none"


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise DeclarationError(otherwise)


def _source(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # typed at a prompt, or loaded from somewhere that keeps no source
        return marshal.dumps(function.__code__).hex()

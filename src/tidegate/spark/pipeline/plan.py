"""The plan of a run: which tables, in which order, read how. Pure: it needs neither Spark nor a catalog.

Order is by need, and among tables that do not need each other by declaration. A view is no step: what it reads counts
as read by the tables that take it, as a stream for a streaming table and as it is now for a batch table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from tidegate.spark.pipeline.declarations import SESSION, Table, View, listed, names
from tidegate.spark.pipeline.errors import DeclarationError

Declared = Mapping[str, "Table | View"]


@dataclass(frozen=True, slots=True)
class Read:
    """A table that is read: as a stream, or as it is now."""

    source: str
    """Its full name."""
    table: str | None
    """What the pipeline calls it, if it is one of its own."""
    streamed: bool

    def __str__(self) -> str:
        return (self.table or self.source) + (" (stream)" if self.streamed else "")


@dataclass(frozen=True, slots=True)
class Step:
    table: Table
    reads: tuple[Read, ...]
    views: tuple[View, ...]
    refresh: bool
    """Computed again from nothing."""

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(read.table for read in self.reads if read.table is not None))

    @property
    def uses_session(self) -> bool:
        """It may read what the plan does not know of."""
        return any(declared.uses_session for declared in (self.table, *self.views))


@dataclass(frozen=True, slots=True)
class Plan:
    """What would run, in order. `print(plan)` shows it."""

    pipeline: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        width = max((len(step.table.name) for step in self.steps), default=0)
        lines = [f"{n}. {step.table.name:{width}}  {_described(step)}" for n, step in enumerate(self.steps, 1)]
        return "\n".join([f"{self.pipeline}: {len(self.steps)} tables", *lines])


def make_plan(
    pipeline: str, declared: Declared, *, only: str | Iterable[str] | None, full_refresh: bool | str | Iterable[str]
) -> Plan:
    """The steps for the tables in `only`, or for all. Fails if the declarations do not fit together."""
    order = _in_order(declared)
    known = [table.name for table in order]
    chosen = set(known) if only is None else _known_names("only", only, known)
    if isinstance(full_refresh, bool):
        asked = chosen if full_refresh else set[str]()
    else:
        asked = _known_names("full_refresh", full_refresh, known)
    steps: list[Step] = []
    refreshed: set[str] = set()
    for table in order:
        step = _step(declared, table, asked, refreshed)
        if step.refresh:
            _require_chosen(step, chosen, refreshed)
            refreshed.add(table.name)
        steps.append(step)
    return Plan(pipeline, tuple(step for step in steps if step.table.name in chosen))


def resolve(declared: Declared, reader: View, parameter: str) -> str | View:
    """What a parameter stands for: a table or view of the pipeline, or the full name of a table outside."""
    target = reader.inputs.get(parameter, parameter)
    if target in declared:
        return declared[target]
    for candidate in declared.values():
        if isinstance(candidate, Table) and candidate.full_name == target:
            return candidate
    if parameter in reader.inputs:
        return target
    raise DeclarationError(
        f"{reader.name} takes {parameter}, which is no table of the pipeline: it knows {listed(declared)}, and "
        f"{SESSION} for the session. For a table outside write inputs={{{parameter!r}: 'catalog.schema.table'}}."
    )


def _in_order(declared: Declared) -> list[Table]:
    """The tables, each after those that it needs."""
    position = {name: index for index, name in enumerate(declared)}
    sources = {name: [resolve(declared, one, parameter) for parameter in one.sources] for name, one in declared.items()}
    sorter = TopologicalSorter({n: {s.name for s in found if isinstance(s, View)} for n, found in sources.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        raise DeclarationError(f"Tables cannot need each other: {' -> '.join(circle)}.") from None
    order: list[Table | View] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=position.__getitem__)
        sorter.done(*ready)
        order += [declared[name] for name in ready]
    return [one for one in order if isinstance(one, Table)]


def _step(declared: Declared, table: Table, asked: set[str], refreshed: set[str]) -> Step:
    reads: dict[Read, None] = {}
    views: dict[str, View] = {}

    def collect(reader: View, streamed: bool) -> None:
        for parameter in reader.sources:
            source = resolve(declared, reader, parameter)
            as_stream = streamed and parameter not in reader.snapshot
            if isinstance(source, Table):
                _require_append_only(table, source, as_stream)
                reads[Read(source.full_name, source.name, as_stream)] = None
            elif isinstance(source, View):
                views[source.name] = source
                collect(source, as_stream)
            else:
                reads[Read(source, None, as_stream)] = None

    collect(table, table.stream)
    # A stream cannot go on behind a table that was computed again: what it has read before is no longer there.
    rebuilt = any(read.streamed and read.table in refreshed for read in reads)
    return Step(table, tuple(reads), tuple(views.values()), refresh=table.name in asked or rebuilt)


def _require_append_only(reader: Table, source: Table, streamed: bool) -> None:
    if streamed and source.kind != "stream":
        how = "is upserted by its keys" if source.kind == "upsert" else "is computed as a whole"
        raise DeclarationError(
            f"{reader.name} cannot stream from {source.name}, which {how}: only tables that are added to can be "
            f"streamed from. Make {reader.name} a batch table, or read {source.name} as it is now with snapshot=[...]."
        )


def _require_chosen(step: Step, chosen: set[str], refreshed: set[str]) -> None:
    if step.table.name not in chosen:
        why = [f"it streams from {read.table}" for read in step.reads if read.streamed and read.table in refreshed]
        raise DeclarationError(
            f"{step.table.name} has to be refreshed ({listed(why or ['full_refresh= names it'])}), and only= leaves it "
            "out: add it there."
        )


def _known_names(option: str, given: str | Iterable[str], known: Iterable[str]) -> set[str]:
    wanted = names(given)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise DeclarationError(f"{option}= names {listed(unknown)}; the tables of the pipeline are {listed(known)}.")
    return set(wanted)


def _described(step: Step) -> str:
    table = step.table
    by = f" by {listed(table.keys)}" if table.keys else ""
    reads = [*(str(read) for read in step.reads), *([SESSION] if step.uses_session else [])]
    expects = f"; expects {listed(f'{e.name} ({e.action})' for e in table.expect)}" if table.expect else ""
    return f"{table.kind}{by} <- {listed(reads)}{expects}{'; from nothing' if step.refresh else ''}"

"""The report as Markdown: targets, then every case beside the limits of the machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks import cases
from benchmarks.figures import number, share
from benchmarks.results import DRIVER, ECHO, ECHO_LARGE, Result, Results, large_of, limit_of, publishing_of
from benchmarks.targets import targets


def report(results: Results, plot: str) -> str:
    lines = ["# Benchmark", "", *_machine(results), ""]
    lines += [f"![Throughput and p99 over concurrency]({plot})", ""]
    lines += [*_targets(results), "", *_cases(results), "", *_writers(results)]
    lines += [*_limits(results), "", *_starts(results)]
    return "\n".join(lines).rstrip() + "\n"


def table(head: str, rows: Iterable[Iterable[str]]) -> list[str]:
    """`head` is the header row; names that begin with > are right-aligned."""
    names = [name.strip() for name in head.split("|")]
    marks = ["---:" if name.startswith(">") else "---" for name in names]
    lines = [[name.lstrip("> ") for name in names], marks, *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _machine(results: Results) -> Iterator[str]:
    machine, settings = results.machine, results.settings
    postgres = f", PostgreSQL {machine['postgresql']}" if "postgresql" in machine else ""
    yield (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, kernel {machine['kernel']}, "
        f"Python {machine['python']}, SQLite {machine['sqlite']}{postgres}; the disk syncs 4 KiB in "
        f"{machine['sync_ms']} ms. Driver, server and database share the machine."
    )
    yield ""
    yield (
        f"{settings['seconds']:g} s a case after {settings['warm_up_seconds']:g} s of warm-up, median of "
        f"{settings['repeats']}. Machines are noisy: trust the ratios, not the numbers."
    )


def _targets(results: Results) -> Iterator[str]:
    found = targets(results)
    if found:
        yield "## Targets"
        yield ""
        yield from table(
            "what | >measured | >wanted | ",
            (
                (
                    target.what,
                    target.shown(target.measured),
                    f"{'at least' if target.at_least else 'at most'} {target.shown(target.wanted)}",
                    target.verdict,
                )
                for target in found
            ),
        )


def _cases(results: Results) -> Iterator[str]:
    limits = {DRIVER, ECHO, ECHO_LARGE, limit_of("sqlite"), limit_of("postgresql")}
    yield "## Cases"
    yield ""
    yield (
        "A commit carries the report that the one before it is published, except where publishing is left to the "
        "server. Shares are of the echo limit and of the database limit at as many clients. CPU is for each thing "
        "done; the driver's is its share of a core: far below 100 % it slows nothing down."
    )
    yield ""
    head = "where | case | >clients | >per second | >p50 ms | >p99 ms | >of echo | >of database"
    head += " | >server CPU ms | >database CPU ms | >driver's CPU"
    ours = [result for result in results.found.values() if result.site not in limits]
    sites = list(dict.fromkeys(result.site for result in ours))
    ours.sort(key=lambda result: sites.index(result.site))
    yield from table(head, (_case_row(results, result) for result in ours))
    yield from _fairness(ours)
    if any(result.site == large_of(database) for result in ours for database in ("sqlite", "postgresql")):
        settings = results.settings
        commits = settings["large_tables"] * settings["large_commits_each"]
        yield ""
        yield (
            f"The large catalog holds {settings['large_tables']:,} tables and {commits:,} ratified commits, written "
            "directly into the database as copies of a real table's rows; so are the tables that are listed."
        )


def _case_row(results: Results, result: Result) -> tuple[str, ...]:
    case = result.case
    echo = results.rate(ECHO_LARGE if case.pending == 1000 else ECHO, cases.limit(case.clients))
    database = results.rate(limit_of(result.site.partition(",")[0]), case) if case.workload == "commit" else None
    return (
        result.site,
        case.title,
        str(case.clients),
        number(result.per_second),
        number(result.median("p50_ms")),
        number(result.median("p99_ms")),
        share(result.per_second, echo),
        share(result.per_second, database),
        number(result.cost_ms("server")),
        number(result.cost_ms("database")),
        _percent(result.median("driver_cpu_share")),
    )


def _fairness(results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        if result.case.workload == "contend":
            fewest, most = result.shares
            yield ""
            yield (
                f"{result.site}, {result.case.clients} contending writers: the unluckiest won {100 * fewest:.0f} % of "
                f"the mean, the luckiest {100 * most:.0f} %."
            )


def _writers(results: Results) -> Iterator[str]:
    sites = [publishing_of(database) for database in ("sqlite", "postgresql")]
    found = [results.get(site, cases.whole(how, 1)) for site in sites for how in ("staged", "inline")]
    if not any(found):
        return
    yield "## What a commit costs its writer"
    yield ""
    yield (
        "One client, which does everything for a commit itself: a staged one is written, proposed and published, the "
        "files synced as the Python client syncs them; of an inline one the server publishes what it has kept, after "
        "its answer. Requests, files and calls of fsync were counted."
    )
    yield ""
    head = "where | commit | >requests | >files written | >syncs | >p50 ms"
    yield from table(head, (_writer_row(result) for result in found if result is not None))
    yield ""


def _writer_row(result: Result) -> tuple[str, ...]:
    counted = [_count(result.each(what)) for what in ("requests", "files", "syncs")]
    return (result.site, result.case.title, *counted, number(result.median("p50_ms")))


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _limits(results: Results) -> Iterator[str]:
    yield "## Limits of this machine"
    yield ""
    yield (
        "Driver: a responder that answers without reading, the most that can be measured. Echo limit: an application "
        "that does nothing on our HTTP stack, with an answer as large as a load's. Database limit: the rows of "
        "commits, in synced groups as large as the number of clients, without a server; p50 and p99 are of a group."
    )
    yield ""
    limits = (DRIVER, ECHO, ECHO_LARGE, limit_of("sqlite"), limit_of("postgresql"))
    rows = [
        (
            site,
            str(result.case.clients),
            number(result.per_second),
            number(result.median("p50_ms")),
            number(result.median("p99_ms")),
            _percent(result.median("driver_cpu_share")),
        )
        for site in limits
        for result in results.found.values()
        if result.site == site
    ]
    yield from table("what | >clients | >per second | >p50 ms | >p99 ms | >driver's CPU", rows)


def _percent(value: float | None) -> str:
    return "" if value is None else share(value, 1)


def _starts(results: Results) -> Iterator[str]:
    if results.starts:
        yield "## Start and memory"
        yield ""
        rows = []
        for site, starts in results.starts.items():
            loaded = results.rss_max(site)
            rows.append(
                (
                    site,
                    f"{starts['first_seconds']:.2f}",
                    f"{starts['again_seconds']:.2f}",
                    f"{starts['idle_rss_bytes'] / 1e6:.0f}",
                    "" if loaded is None else f"{loaded / 1e6:.0f}",
                )
            )
        yield from table("where | >first start s | >start s | >idle MB | >under load MB", rows)

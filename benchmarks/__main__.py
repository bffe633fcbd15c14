"""`make bench`: commits, loads and all else that a catalog does, beside what this machine can do at all."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import markdown, plot
from benchmarks.arguments import positive
from benchmarks.cases import GROUPS
from benchmarks.drive import TOKEN_VARIABLE
from benchmarks.results import Results
from benchmarks.sites import CaseFailed, Site
from benchmarks.suite import Plan, run_elsewhere, run_suite
from benchmarks.targets import targets

DATABASES = ("sqlite", "postgresql")
_ABOUT = """\
Measures this checkout of Tidegate, beside the limits of this machine in the same run, and writes
report.md, results.json and plot.svg. With --url, the cases that need nothing but HTTP are driven on a server
that is there already: any server of Delta REST v1.0 whose tables lie on a disk that this machine can write to.
"""
_CASES = """\
cases:
  commit    over 64 tables, the publication report riding along; 1, 8, 32 and 128 clients; and the database limit
  publish   commits that the server publishes by itself
  inline    whole commits, with all that their writers do for them: staged, and with their content in the request,
            1 and 32 clients; and 32 clients that append to one table and leave the version open
  guards    commits of a user to whom they were granted, and of tables whose requests are trusted, beside those of the
            admin on tables whose commits are read
  load      with 0, 10 and 1000 unpublished commits
  mix       5 loads, then a commit
  contend   32 clients want the next version of one table
  create    create a table and drop it
  list      page through 10,000 tables
  large     commit and load again, with 100,000 tables and 1,000,000 ratified commits in the catalog
  servers   commit and load through two servers on one PostgreSQL
  start     nothing but starting: time to the first 200, idle memory (part of every run)

A server that keeps fewer than 1000 unpublished commits cannot run all of load. Data goes to $TMPDIR: point it
to the disk that shall be measured.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if not sys.platform.startswith("linux"):
        _tell("The benchmark needs Linux: it waits by epoll and reads /proc.")
        return 1
    plan = Plan(
        databases=DATABASES if given.database == "both" else (given.database,),
        groups=tuple(given.case or GROUPS),
        seconds=given.seconds or (0.5 if given.quick else 2),
        warm_up_seconds=0.2 if given.quick else 0.5,
        repeats=given.repeats or (1 if given.quick else 3),
        large_tables=given.large_tables or (10_000 if given.quick else 100_000),
        large_commits_each=10,
    )
    try:
        if given.url:
            site = Site(" and ".join(given.url), given.url, given.token, given.catalog)
            results = run_elsewhere(plan, site, _tell)
        else:
            results = run_suite(plan, _tell)
    except CaseFailed as error:
        _tell(str(error))
        return 1
    write(results, given.out)
    for target in targets(results):
        print(f"{target.verdict:12} {target.what}: {target.shown(target.measured)}")
    print(f"\n{given.out / 'report.md'}")
    return 0


def write(results: Results, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    found = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": results.machine,
        "settings": results.settings,
        "targets": [
            {"what": target.what, "measured": target.measured, "wanted": target.wanted, "reached": target.reached}
            for target in targets(results)
        ],
        "starts": results.starts,
        "results": [result.described() for result in results.found.values()],
    }
    (out / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    (out / "report.md").write_text(markdown.report(results, "plot.svg"))
    (out / "plot.svg").write_text(plot.over_concurrency(results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=_ABOUT,
        epilog=_CASES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--case", action="append", choices=GROUPS, help="only this one; several: give it again")
    parser.add_argument("--database", choices=[*DATABASES, "both"], default="both")
    parser.add_argument("--quick", action="store_true", help="about 2 minutes instead of 15; rough numbers")
    parser.add_argument("--seconds", type=positive(float), help="how long each case is measured (2)")
    parser.add_argument("--repeats", type=positive(int), help="how often; medians are reported (3)")
    parser.add_argument("--large-tables", type=positive(int), help="of the large catalog (100,000), 10 commits each")
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="folder of the report (build/bench)")
    parser.add_argument("--url", action="append", help="a server to drive; several: clients take turns")
    parser.add_argument("--catalog", default="main", help="its catalog, with a schema `default` (main)")
    parser.add_argument(
        "--token", default=os.environ.get(TOKEN_VARIABLE, ""), help=f"its bearer token; default: ${TOKEN_VARIABLE}"
    )
    return parser


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())

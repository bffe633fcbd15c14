"""Throughput and p99 over concurrency, drawn as SVG by hand: two panels, both axes logarithmic.

Colours follow the reader's scheme, light or dark; nothing is loaded from anywhere, so it shows wherever images do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from benchmarks import cases
from benchmarks.cases import CONCURRENCY, Case
from benchmarks.results import ECHO, Results, limit_of

WIDTH, HEIGHT = 900, 420
_PANEL_WIDTH, _PANEL_HEIGHT = 365, 270
_TOP, _LEFT, _GAP = 92, 62, 90
_STYLE = """
text { font: 12px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #59636e }
.title { font-size: 14px; font-weight: 600; fill: #1f2328 }
.value { font-size: 11px; fill: #1f2328 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.faint { stroke: #d1d9e0; stroke-width: 0.5; opacity: 0.6 }
.line { fill: none; stroke-width: 2.25; stroke-linejoin: round }
.limit { stroke-width: 1.5; stroke-dasharray: 5 4 }
.sqlite { stroke: #0969da } .dot.sqlite { fill: #0969da }
.postgresql { stroke: #bc4c00 } .dot.postgresql { fill: #bc4c00 }
.echo { stroke: #6e7781 } .dot.echo { fill: #6e7781 }
.dot { stroke: none }
@media (prefers-color-scheme: dark) {
  text { fill: #9198a1 } .title, .value { fill: #f0f6fc }
  .grid, .faint { stroke: #3d444d }
  .sqlite { stroke: #4493f8 } .dot.sqlite { fill: #4493f8 }
  .postgresql { stroke: #f0883e } .dot.postgresql { fill: #f0883e }
  .echo { stroke: #9198a1 } .dot.echo { fill: #9198a1 }
}
"""


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    classes: str
    """How it is drawn: the colour's class, and `limit` for what is not ours."""
    throughput: dict[int, float]
    p99_ms: dict[int, float]

    @property
    def is_limit(self) -> bool:
        return "limit" in self.classes.split()


def over_concurrency(results: Results) -> str:
    return draw(
        [
            series
            for name, classes, site, case_of in (
                ("echo limit", "echo limit", ECHO, cases.limit),
                ("SQLite limit", "sqlite limit", limit_of("sqlite"), cases.commit),
                ("PostgreSQL limit", "postgresql limit", limit_of("postgresql"), cases.commit),
                ("commits on SQLite", "sqlite", "sqlite", cases.commit),
                ("commits on PostgreSQL", "postgresql", "postgresql", cases.commit),
            )
            if (series := _series(results, name, classes, site, [case_of(clients) for clients in CONCURRENCY]))
        ]
    )


def draw(series: Sequence[Series]) -> str:
    title = "Throughput and p99 over concurrency"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}</style>",
        *_legend(series),
        *_panel("Throughput, per second", _LEFT, series, [one.throughput for one in series]),
        *_panel("p99, milliseconds", _LEFT + _PANEL_WIDTH + _GAP, series, [one.p99_ms for one in series]),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten that enclose the values, at least one apart."""
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def placed(value: float, low: float, high: float) -> float:
    """Where a value lies between two others on a logarithmic axis: 0 at the one, 1 at the other."""
    return math.log(value / low) / math.log(high / low)


def _series(results: Results, name: str, classes: str, site: str, wanted: Sequence[Case]) -> Series | None:
    throughput: dict[int, float] = {}
    p99_ms: dict[int, float] = {}
    for case in wanted:
        result = results.get(site, case)
        if result is not None and result.per_second > 0:
            throughput[case.clients] = result.per_second
            p99_ms[case.clients] = result.median("p99_ms") or math.nan
    return Series(name, classes, throughput, p99_ms) if throughput else None


def _legend(series: Sequence[Series]) -> list[str]:
    parts: list[str] = []
    x = _LEFT
    for one in series:
        parts.append(f'<path class="line {one.classes}" d="M{x} 28h26"/>')
        if not one.is_limit:
            parts.append(f'<circle class="dot {one.classes}" cx="{x + 13}" cy="28" r="3.5"/>')
        parts.append(f'<text x="{x + 32}" y="32">{escape(one.name)}</text>')
        x += 56 + round(6.6 * len(one.name))
    return parts


def _panel(title: str, left: int, series: Sequence[Series], points: Sequence[dict[int, float]]) -> list[str]:
    values = [value for of_one in points for value in of_one.values()]
    parts = [f'<text class="title" x="{left}" y="{_TOP - 20}">{escape(title)}</text>']
    if not values:
        return parts
    low, high = decades(values)
    parts += _axes(left, low, high)
    ours = [of_one for one, of_one in zip(series, points, strict=True) if not one.is_limit]
    for one, of_one in zip(series, points, strict=True):
        at = [(clients, value, _x(left, clients), _y(value, low, high)) for clients, value in sorted(of_one.items())]
        steps = " ".join(f"{x:.1f},{y:.1f}" for _, _, x, y in at)
        parts.append(f'<polyline class="line {one.classes}" points="{steps}"/>')
        for clients, value, x, y in at if not one.is_limit else ():
            # The highest has its number above, the others below: so they do not cover each other.
            above = value >= max(other.get(clients, value) for other in ours)
            parts.append(f'<circle class="dot {one.classes}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>')
            parts.append(_number(value, x, y - 8 if above else y + 17))
    return parts


def _number(value: float, x: float, y: float) -> str:
    return f'<text class="value" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{_short(value)}</text>'


def _axes(left: int, low: int, high: int) -> list[str]:
    parts: list[str] = []
    right, bottom = left + _PANEL_WIDTH, _TOP + _PANEL_HEIGHT
    for power in range(low, high + 1):
        y = _y(10**power, low, high)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{_tick(power)}</text>')
        for between in (2, 5) if power < high else ():
            y = _y(between * 10**power, low, high)
            parts.append(f'<path class="faint" d="M{left} {y:.1f}H{right}"/>')
    for clients in CONCURRENCY:
        x = _x(left, clients)
        parts.append(f'<path class="grid" d="M{x:.1f} {bottom}v5"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{clients}</text>')
    middle = left + _PANEL_WIDTH / 2
    parts.append(f'<text x="{middle:.1f}" y="{bottom + 40}" text-anchor="middle">clients, or commits in a group</text>')
    return parts


def _x(left: int, clients: int) -> float:
    inset = 22
    return left + inset + (_PANEL_WIDTH - 2 * inset) * placed(clients, CONCURRENCY[0], CONCURRENCY[-1])


def _y(value: float, low: int, high: int) -> float:
    return _TOP + _PANEL_HEIGHT * (1 - placed(value, 10.0**low, 10.0**high))


def _tick(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"

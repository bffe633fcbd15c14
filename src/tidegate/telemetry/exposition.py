"""Numbers as text, in the format that Prometheus reads (version 0.0.4).

# HELP tidegate_proposals_total Proposals by outcome.
# TYPE tidegate_proposals_total counter
tidegate_proposals_total{outcome="ratified"} 12
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tidegate.telemetry.measures import Family, Labels

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


def render(families: Iterable[Family], *, also: Labels = ()) -> str:
    """`also`: labels that every sample gets."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escape(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for sample in family.samples:
            labels = ",".join(f'{name}="{_quoted(value)}"' for name, value in (*also, *sample.labels))
            where = f"{{{labels}}}" if labels else ""
            lines.append(f"{family.name}{sample.suffix}{where} {_number(sample.value)}")
    return "\n".join(lines) + "\n" if lines else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escape(text).replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value) or math.isnan(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return str(int(value)) if value == int(value) else repr(value)

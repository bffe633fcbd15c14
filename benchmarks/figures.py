"""Numbers as people read them."""

from __future__ import annotations


def number(value: float | None) -> str:
    """Three significant digits, or all before the point; a missing one is empty."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def share(part: float, whole: float | None) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""

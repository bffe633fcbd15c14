"""What the doctor finds, as JSON."""

from __future__ import annotations

from msgspec import Struct


class Finding(Struct, frozen=True):
    problem: str
    subject: str
    message: str
    fixable: bool


class Findings(Struct, frozen=True):
    findings: list[Finding]

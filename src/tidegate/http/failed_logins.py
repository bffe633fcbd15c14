"""Failed logins are slowed down: whoever guesses waits for each answer, and the longer the more they have guessed.

Only the refusal waits. A token that is right is never held up, whoever else guesses from the same address.

    failures in a row     1 ... 10    11      12       13            16
    the refusal waits         0       50 ms   100 ms   200 ms  ...   1 s, the setting failed_login_ms_max
"""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic

FREE = 10
"""Failures that cost nothing: people mistype, and programs are configured wrongly."""
FORGIVEN_PER_SECOND = 1.0
FIRST_PAUSE_SECONDS = 0.05
KEPT_MAX = 10_000
"""Addresses, and beginnings of tokens, that are remembered; the oldest are forgotten first."""
PREFIX_LENGTH = 12


class FailedLogins:
    """At most `waiting_max` refusals wait at once; one more is given at once, so that a flood costs no memory."""

    def __init__(self, *, seconds_max: float, waiting_max: int) -> None:
        self._seconds_max = seconds_max
        self._waiting_max = waiting_max
        self._kept: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.waiting = 0

    def pause(self, remote: str, authorization: str) -> float:
        """How long the refusal of this header waits, in seconds."""
        if self._seconds_max <= 0:
            return 0.0
        token = authorization.partition(" ")[2].strip()[:PREFIX_LENGTH]
        worst = max(self._note(f"from {remote}"), self._note(f"with {token}"))
        if worst <= FREE or self.waiting >= self._waiting_max:
            return 0.0
        return min(self._seconds_max, FIRST_PAUSE_SECONDS * 2 ** min(worst - FREE - 1, 30))

    def _note(self, who: str) -> float:
        count, at = self._kept.pop(who, (0.0, 0.0))
        now = monotonic()
        count = max(0.0, count - (now - at) * FORGIVEN_PER_SECOND) + 1
        self._kept[who] = count, now
        if len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return count

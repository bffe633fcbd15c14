"""Webhooks over HTTP: one POST for each event, by httpx, which can give up at any moment.

The receiver has an event when it says so with a 2xx and its answer arrives whole. It has a while for that, all in all:
one that hangs, or answers a byte at a time, is cut off. Redirects are not followed; what it says beyond the status is
read, up to a bound, and thrown away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidegate.domain.subscriptions import DeliveryFailed

if TYPE_CHECKING:
    import httpx

ANSWER_BYTES_MAX = 64 * 1024
CONNECTIONS_MAX = 100
_NEARBY = ("all://localhost", "all://127.0.0.1", "all://[::1]")


class HttpWebhooks:
    """For one event loop."""

    def __init__(self, *, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self._client: httpx.AsyncClient | None = None

    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> None:
        # Not at the top: a start without webhooks does not wait for it.
        import httpx

        self._client = self._client or _client()
        try:
            async with asyncio.timeout(self._seconds_max):
                async with self._client.stream("POST", url, headers=dict(headers), content=body) as answer:
                    await _read(answer)
        except TimeoutError:
            raise DeliveryFailed(f"The receiver has not answered within {self._seconds_max:.0f} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            # Its message may quote the address, which may hold a token of the receiver's.
            raise DeliveryFailed(f"The receiver cannot be reached, or broke off ({type(error).__name__}).") from None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()


def _client() -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(
        timeout=None,  # noqa: S113 - there is one for the whole delivery
        follow_redirects=False,
        limits=httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX),
        # A proxy is for the world outside; the machine itself is reached without one.
        mounts=dict.fromkeys(_NEARBY),
    )


async def _read(answer: httpx.Response) -> None:
    if answer.is_redirect:
        raise DeliveryFailed(f"The receiver answered {answer.status_code}; redirects are not followed.")
    if not answer.is_success:
        raise DeliveryFailed(f"The receiver answered {answer.status_code}.")
    size = 0
    async for chunk in answer.aiter_raw():
        size += len(chunk)
        if size > ANSWER_BYTES_MAX:
            return  # it has said that it has it; leaving early closes the connection

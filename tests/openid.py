"""An OpenID provider as a process of its own, which logs anybody in as whomever they say they are.

Its key is new with every start: started again on the same port, it is a provider that has changed its keys.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import httpx

START_SECONDS_MAX = 60
CALLBACK = "http://127.0.0.1:1/callback"
CLIENT_SECRET = "of-the-client"


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@dataclass
class OpenIdProvider:
    port: int = field(default_factory=free_port)
    token_seconds: int = 3600
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> OpenIdProvider:
        command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(self.port)]
        command += ["--token-max-age", str(self.token_seconds)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/.well-known/openid-configuration").status_code == 200:
                    return self
            time.sleep(0.05)
        raise RuntimeError("the OpenID provider did not start")

    def stop(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def log_in(self, name: str, *, audience: str = "tidegate", **claims: object) -> str:
        """The ID token that a client called `audience` gets for this user, by the authorization code flow."""
        with httpx.Client(base_url=self.url, timeout=60) as http:
            http.put(f"/users/{name}", json={"email": name, **claims}).raise_for_status()
            asked = {"client_id": audience, "response_type": "code", "scope": "openid email", "redirect_uri": CALLBACK}
            allowed = http.post("/oauth2/authorize", params=asked, data={"sub": name})
            code = parse_qs(urlsplit(allowed.headers["location"]).query)["code"][0]
            wanted = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
            given = http.post("/oauth2/token", data=wanted, auth=(audience, CLIENT_SECRET))
            return given.raise_for_status().json()["id_token"]

    def public_key(self) -> dict[str, str]:
        return httpx.get(f"{self.url}/jwks").json()["keys"][0]


@contextlib.contextmanager
def openid_provider(**options: int) -> Iterator[OpenIdProvider]:
    provider = OpenIdProvider(**options).start()
    try:
        yield provider
    finally:
        provider.stop()

"""Tokens of identity providers: a real one, and one whose keys the test holds, to sign what no provider would."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.openid import OpenIdProvider, free_port, openid_provider
from tests.servers import ServerProcess
from tests.test_identities import API, add, make_token, whoami
from tests.waiting import wait_until
from tidegate.auth.issuers import read_issuers
from tidegate.domain.errors import InvalidRequest

CATALOG_USERS = ("ada@sea", "bob@sea")


@dataclass
class HandMadeIssuer:
    """Serves a discovery document and keys from a folder, by a process of its own; signs whatever it is told to."""

    folder: Path
    port: int = field(default_factory=free_port)
    keys: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "asked.log"

    def start(self) -> HandMadeIssuer:
        (self.folder / ".well-known").mkdir(parents=True)
        about = {"issuer": self.url, "jwks_uri": f"{self.url}/keys.json"}
        (self.folder / ".well-known" / "openid-configuration").write_text(json.dumps(about))
        self.use("first", rsa.generate_private_key(65537, 2048))
        command = [sys.executable, "-m", "http.server", str(self.port), "--bind", "127.0.0.1", "-d", str(self.folder)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self._answers, "the issuer answers")
        return self

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/keys.json").status_code == 200
        return False

    def use(self, kid: str, key: Any) -> None:
        self.keys = {kid: key}
        algorithm = jwt.algorithms.ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else None
        told = (algorithm or jwt.algorithms.RSAAlgorithm).to_jwk(key.public_key(), as_dict=True)
        (self.folder / "keys.json").write_text(json.dumps({"keys": [{**told, "kid": kid}]}))

    def claims(self, **changed: object) -> dict[str, object]:
        now = int(time.time())
        usual = {"iss": self.url, "aud": "tidegate", "exp": now + 600, "iat": now, "preferred_username": "ada@sea"}
        return {name: value for name, value in {**usual, **changed}.items() if value is not None}

    def sign(self, *, key: Any = None, kid: str | None = None, alg: str = "RS256", **changed: object) -> str:
        name = kid or next(iter(self.keys))
        return jwt.encode(self.claims(**changed), key or self.keys[name], algorithm=alg, headers={"kid": name})

    def asked(self) -> int:
        return self.log.read_text().count("GET /keys.json")

    def stop(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@dataclass
class Place:
    server: ServerProcess
    provider: OpenIdProvider
    hand_made: HandMadeIssuer

    def status(self, token: str) -> int:
        return whoami(self.server, token).status_code


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("openid")
    hand_made = HandMadeIssuer(folder / "issuer").start()
    with openid_provider() as provider, socket.create_server(("127.0.0.1", 0)) as hanging:
        issuers = folder / "oidc.toml"
        issuers.write_text(
            f"""
            [[issuer]]
            issuer = "{provider.url}"
            audience = "tidegate"
            groups_claim = "groups"
            clock_skew_seconds = 0
            refresh_seconds = 1

            [[issuer]]
            issuer = "{hand_made.url}"
            audience = ["another", "tidegate"]
            name_claim = "preferred_username"
            algorithms = ["RS256", "ES256"]
            clock_skew_seconds = 30
            unknown_users = "welcome"
            refresh_seconds = 1

            [[issuer]]
            issuer = "http://127.0.0.1:{hanging.getsockname()[1]}"
            audience = "tidegate"
            """
        )
        server = ServerProcess(folder / "home", settings={"oidc": str(issuers), "access_cache_ms": "100"}).start()
        with server.http() as http:
            for name in CATALOG_USERS:
                add(http, name)
            add(http, "crew", "group")
            add(http, "nightly", "service account")
        yield Place(server, provider, hand_made)
        assert server.stop() == 0, "".join(server.log[-50:])
        hand_made.stop()


def test_whom_a_provider_has_logged_in_is_that_user_with_groups_that_the_catalog_knows(place: Place) -> None:
    token = place.provider.log_in("ada@sea", groups=["crew", "bob@sea", "admin", "nobody", "no name!"])
    for _ in range(2):
        assert whoami(place.server, token).json() == {"name": "ada@sea", "kind": "user", "groups": ["crew"]}


def test_whom_the_catalog_does_not_know_is_refused_or_known_by_name_alone(place: Place) -> None:
    refused = whoami(place.server, place.provider.log_in("eve@sea"))
    assert refused.status_code == 401
    assert "no such user" in refused.json()["message"]
    token = place.hand_made.sign(preferred_username="eve@sea")
    assert whoami(place.server, token).json() == {"name": "eve@sea", "kind": None, "groups": []}
    with httpx.Client(base_url=place.server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as hers:
        assert hers.post(f"{API}/tokens", json={}).status_code == 403


def test_a_user_who_is_removed_is_nobody_whatever_the_provider_says(place: Place) -> None:
    with place.server.http() as http:
        add(http, "gone@sea")
        token = place.provider.log_in("gone@sea")
        assert place.status(token) == 200
        assert http.delete(f"{API}/identities/gone@sea").status_code == 204
    assert place.status(token) == 401


def test_a_provider_that_changes_its_key_is_asked_again_and_the_old_key_opens_nothing(place: Place) -> None:
    before = place.provider.log_in("ada@sea")
    assert place.status(before) == 200
    place.provider.stop()
    place.provider.start()
    after = place.provider.log_in("ada@sea")
    wait_until(lambda: place.status(after) == 200, "the new key is known")
    wait_until(lambda: place.status(before) == 401, "the old key is forgotten")


def test_a_provider_that_is_down_takes_nothing_from_tokens_whose_key_is_known(place: Place) -> None:
    tokens = [place.provider.log_in(name) for name in CATALOG_USERS]
    wait_until(lambda: place.status(tokens[0]) == 200, "the key is known")
    place.provider.stop()
    try:
        assert [place.status(token) for token in tokens] == [200, 200]
    finally:
        place.provider.start()


def test_a_provider_that_hangs_holds_up_nobody_else(place: Place) -> None:
    hanging = read_issuers(Path(place.server.settings["oidc"]))[2].issuer
    stuck = place.hand_made.sign(iss=hanging)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(whoami, place.server, stuck)
        others = [place.hand_made.sign(jti=str(number)) for number in range(3)]
        assert [place.status(token) for token in others] == [200] * 3
        assert not waiting.done()
        assert waiting.result().status_code == 503


def test_a_key_with_a_new_name_is_found_and_invented_names_do_not_make_a_storm(place: Place) -> None:
    issuer = place.hand_made
    assert place.status(issuer.sign()) == 200
    issuer.use("second", ec.generate_private_key(ec.SECP256R1()))
    wait_until(lambda: place.status(issuer.sign(alg="ES256")) == 200, "the new key is known")
    asked, begun = issuer.asked(), time.monotonic()
    key = issuer.keys["second"]
    assert {place.status(issuer.sign(key=key, kid=f"invented{n}", alg="ES256")) for n in range(100)} == {401}
    assert issuer.asked() - asked <= time.monotonic() - begun + 2
    issuer.use("first", rsa.generate_private_key(65537, 2048))
    wait_until(lambda: place.status(issuer.sign()) == 200, "back to the usual key")


def base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def unsigned(issuer: HandMadeIssuer) -> str:
    head = base64url(json.dumps({"alg": "none", "typ": "JWT"}).encode())
    return f"{head}.{base64url(json.dumps(issuer.claims()).encode())}."


def signed_with_the_public_key(issuer: HandMadeIssuer) -> str:
    """As a secret, which everybody has."""
    public = issuer.keys["first"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head = base64url(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "first"}).encode())
    signed = f"{head}.{base64url(json.dumps(issuer.claims()).encode())}"
    return f"{signed}.{base64url(hmac.new(public, signed.encode(), hashlib.sha256).digest())}"


def with_other_claims(issuer: HandMadeIssuer) -> str:
    """The signature is that of another token."""
    head, _, signature = issuer.sign().split(".")
    return f"{head}.{base64url(json.dumps(issuer.claims(preferred_username='bob@sea')).encode())}.{signature}"


def with_its_own_key(issuer: HandMadeIssuer) -> str:
    """In its header, where some would look for it."""
    key = rsa.generate_private_key(65537, 2048)
    told = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    headers = {"kid": "first", "jwk": told, "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/x"}
    return jwt.encode(issuer.claims(), key, algorithm="RS256", headers=headers)


NOW = int(time.time())
BAD: dict[str, Callable[[HandMadeIssuer], str]] = {
    "expired": lambda issuer: issuer.sign(exp=NOW - 3600),
    "without an end": lambda issuer: issuer.sign(exp=None),
    "with an end that is none": lambda issuer: issuer.sign(exp="soon"),
    "not valid yet": lambda issuer: issuer.sign(nbf=NOW + 86_400),
    "from the future": lambda issuer: issuer.sign(iat=NOW + 86_400),
    "for another audience": lambda issuer: issuer.sign(aud="somebody else"),
    "for no audience": lambda issuer: issuer.sign(aud=None),
    "of another issuer": lambda issuer: issuer.sign(iss="https://evil.example.org"),
    "of an issuer that is no text": lambda issuer: jwt.encode({"exp": NOW + 600}, issuer.keys["first"], "RS256"),
    "forged with another key": lambda issuer: issuer.sign(key=rsa.generate_private_key(65537, 2048)),
    "forged with other claims": with_other_claims,
    "forged with its own key": with_its_own_key,
    "signed by none": unsigned,
    "signed with the public key as a secret": signed_with_the_public_key,
    "signed in a way that is not allowed": lambda issuer: issuer.sign(alg="RS512"),
    "for the admin": lambda issuer: issuer.sign(preferred_username="admin"),
    "for anybody": lambda issuer: issuer.sign(preferred_username="anonymous"),
    "for a group": lambda issuer: issuer.sign(preferred_username="crew"),
    "for a service account": lambda issuer: issuer.sign(preferred_username="nightly"),
    "for nobody": lambda issuer: issuer.sign(preferred_username=None),
    "for a name that nobody has": lambda issuer: issuer.sign(preferred_username="../admin"),
    "for a list of names": lambda issuer: issuer.sign(preferred_username=["ada@sea"]),
    "of dots": lambda _issuer: "a.b.c",
    "cut off": lambda issuer: issuer.sign()[:-10],
}


@pytest.mark.parametrize("how", BAD)
def test_a_bad_token_opens_nothing_and_is_not_repeated(place: Place, how: str) -> None:
    token = BAD[how](place.hand_made)
    refused = whoami(place.server, token)
    assert (refused.status_code, refused.json()["error_code"]) == (401, "UNAUTHENTICATED")
    assert token not in refused.text
    assert token not in "".join(place.server.log)


def test_an_expired_token_of_the_real_provider_opens_nothing_but_clocks_may_differ_a_little(place: Place) -> None:
    short = OpenIdProvider(port=place.provider.port, token_seconds=1)
    place.provider.stop()
    short.start()
    try:
        token = short.log_in("ada@sea")
        wait_until(lambda: "expired" in whoami(place.server, token).text, "the token has expired")
    finally:
        short.stop()
        place.provider.start()
    assert place.status(place.hand_made.sign(exp=int(time.time()) - 5)) == 200


def test_personal_tokens_go_on_beside_those_of_providers(place: Place) -> None:
    with place.server.http() as http:
        assert place.status(make_token(http, principal="ada@sea")["token"]) == 200


ISSUER = '[[issuer]]\nissuer = "https://login.example.org"\naudience = "tidegate"\n'


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "[[issuer]]"),
        ("issuer = 3", "[[issuer]]"),
        ("a = 1\n" + ISSUER, "[[issuer]]"),
        ("= what", "TOML"),
        (ISSUER + ISSUER, "twice"),
        (ISSUER + "audienze = 'x'", "audience"),
        ("[[issuer]]\nissuer = 'https://x'", "needs both"),
        (ISSUER.replace("https", "http"), "https://"),
        (ISSUER + "algorithms = ['HS256']", "HS256"),
        (ISSUER + "algorithms = ['none']", "none"),
        (ISSUER + "algorithms = []", "algorithms"),
        (ISSUER + "clock_skew_seconds = 100000", "from 0 to 600"),
        (ISSUER + "name_claim = 3", "name_claim"),
        (ISSUER + "unknown_users = 'maybe'", "maybe"),
        (ISSUER + "ca = '/nowhere'", "/nowhere"),
    ],
)
def test_a_file_of_issuers_that_cannot_be_meant_is_refused(tmp_path: Path, content: str, told: str) -> None:
    file = tmp_path / "oidc.toml"
    file.write_text(content)
    with pytest.raises(InvalidRequest) as refused:
        read_issuers(file)
    assert told in refused.value.message

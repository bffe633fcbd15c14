"""Tables that the server may not read, or not write to, are not adopted; the refusal says what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lake import Lake
from tests.servers import ServerProcess
from tests.test_ownership import Plain, adopt, allow, promises

ORDINARY = """\
#!{python}
# Root may do everything, until it gives that up: from here on the modes of files count for it too.
import ctypes, os, sys

DROP_FROM_BOUNDING_SET, DAC_OVERRIDE, DAC_READ_SEARCH = 24, 1, 2
for capability in (DAC_OVERRIDE, DAC_READ_SEARCH) if os.geteuid() == 0 else ():
    if ctypes.CDLL(None, use_errno=True).prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
os.execv({python!r}, [{python!r}, *sys.argv[1:]])
"""


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """On a server for which the modes of files count, whoever runs the tests."""
    folder = tmp_path_factory.mktemp("ordinary")
    python = folder / "python"
    python.write_text(ORDINARY.format(python=sys.executable))
    python.chmod(0o755)
    server = ServerProcess(folder / "home", python=str(python)).start()
    with server.lake() as lake:
        yield lake
    assert server.stop() == 0


@pytest.mark.parametrize(
    ("part", "mode", "cannot"),
    [
        ("_delta_log", 0o555, "cannot write to"),
        ("_delta_log", 0o000, "cannot read"),
        ("_delta_log/00000000000000000001.json", 0o000, "cannot read"),
        (".", 0o000, "cannot read"),
    ],
    ids=["log not writable", "log not readable", "commit not readable", "folder not readable"],
)
def test_missing_rights_are_named(
    ordinary: Lake, tmp_path: Path, unique: str, part: str, mode: int, cannot: str
) -> None:
    allow(ordinary.http, tmp_path)
    plain = Plain(tmp_path / "t").create()
    path = plain.folder / part
    path.chmod(mode)
    try:
        for refused in (adopt(ordinary.http, plain, unique, dry_run=True), adopt(ordinary.http, plain, unique)):
            assert refused.status_code == 400, refused.text
            message = refused.json()["message"]
            assert f"The server {cannot} " in message
            assert "(Permission denied). Give its user the right" in message
    finally:
        path.chmod(0o755)
    assert promises(ordinary.http) == []
    assert [*plain.log.glob(".*")] == [], "nothing is left of the attempt"
    assert adopt(ordinary.http, plain, unique).status_code == 200

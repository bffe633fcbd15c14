"""What `pip install tidegate` brings, with and without extras: a wheel in fresh environments, and processes there."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

from tests.servers import ServerProcess
from tidegate import __version__
from tidegate.__main__ import SERVER_PACKAGES

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BASE = {"httpx", "msgspec"}


class Environment:
    """A virtual environment with the wheel, the extras that were asked for, and nothing else."""

    def __init__(self, folder: Path, wheel: Path, extras: str = "") -> None:
        self.bin = folder / "bin"
        self.python = str(self.bin / "python")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=120)
        constraints = folder / "constraints.txt"
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in installed_here().items()))
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "--constraint", constraints]
        subprocess.run([*pip, f"{wheel}{extras}"], check=True, timeout=300)

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Isolated (-I): no other folder of modules is looked at."""
        command = [self.python, "-I", "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def answer(self, program: str, *arguments: str) -> Any:
        ended = self.run(program, *arguments)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)


def installed_here() -> dict[str, str]:
    """The environments get the versions that the tests run with, and not what was released since."""
    return {plain(found.name): found.version for found in distributions() if plain(found.name) != "tidegate"}


def plain(requirement: str) -> str:
    """The name alone: psycopg[binary]>=3.2 is psycopg."""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def light(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """`pip install tidegate`"""
    return Environment(tmp_path_factory.mktemp("light"), wheel)


@pytest.fixture(scope="module")
def serving(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """`pip install 'tidegate[server]'`, and a server that runs on that."""
    heavy = Environment(tmp_path_factory.mktemp("heavy"), wheel, "[server]")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        server = ServerProcess(tmp_path_factory.mktemp("home"), python=heavy.python).start()
    yield server
    assert server.stop() == 0, "".join(server.log[-50:])


def test_the_base_is_httpx_and_msgspec_and_what_they_need(light: Environment) -> None:
    program = "import importlib.metadata, json; print(json.dumps([d.name for d in importlib.metadata.distributions()]))"
    installed = {plain(name) for name in light.answer(program)}
    asked = {plain(one) for extra in PROJECT["optional-dependencies"].values() for one in extra} - {"tidegate"}
    assert {plain(one) for one in PROJECT["dependencies"]} == BASE
    assert {"tidegate", *BASE} <= installed
    assert installed & asked == set()


def test_the_client_imports_nothing_of_tidegate_but_itself(light: Environment) -> None:
    program = "import sys, json, tidegate.client; print(json.dumps(list(sys.modules)))"
    loaded = [name for name in light.answer(program) if name.partition(".")[0] == "tidegate"]
    assert "tidegate.client.catalog" in loaded
    assert [name for name in loaded if name != "tidegate" and not f"{name}.".startswith("tidegate.client.")] == []


TALK = """
import json, sys
import tidegate.client as tidegate

with tidegate.connect(sys.argv[1], token=sys.argv[2]) as lake:
    table = lake.create_table("main.default.light", {"id": "long"})
    table.commit(1, [{"txn": {"appId": "harbour", "version": 7}}])
    told = []
    for write in (table.append, table.overwrite):
        try:
            write([{"id": 1}])
        except tidegate.ArrowMissing as missing:
            told.append(str(missing))
    try:
        table.scan()
    except tidegate.ArrowMissing as missing:
        told.append(str(missing))
    snapshot = table.snapshot()
    print(json.dumps([snapshot.version, snapshot.transactions["harbour"].version, told]))
"""


def test_a_light_client_works_with_a_server_and_says_what_rows_need(light: Environment, serving: ServerProcess) -> None:
    needed = "Reading and writing rows needs pyarrow: pip install 'tidegate[client]'."
    assert light.answer(TALK, serving.url, serving.token) == [1, 7, [needed, needed, needed]]


def told(missing: str) -> str:
    return f"tidegate: The command needs {missing}, which is not installed: pip install 'tidegate[server]'.\n"


@pytest.mark.parametrize("arguments", [(), ("serve",), ("--help",), ("nonsense",)])
def test_the_command_says_in_one_line_what_to_install(light: Environment, arguments: tuple[str, ...]) -> None:
    for command in ([light.bin / "tidegate"], [light.python, "-I", "-m", "tidegate"]):
        ended = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", told("typer"))


@pytest.mark.parametrize("missing", ["sqlalchemy", "uvicorn", "obstore", "httptools"])
def test_the_command_says_so_too_when_some_of_it_is_there(missing: str, tmp_path: Path) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; from tidegate.__main__ import main; main()"
    command = [sys.executable, "-c", program, "serve", "--home", str(tmp_path / "home")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", told(missing))
    assert not (tmp_path / "home").exists()


def test_the_command_of_an_environment_with_the_extra_runs(serving: ServerProcess) -> None:
    command = [Path(serving.python).parent / "tidegate", "version"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == f"{__version__}\n"


def test_a_server_starts_without_what_only_some_of_its_work_needs() -> None:
    late = ["alembic", "httpx", "jwt", "psycopg", "pyarrow", "pyspark", "tidegate.client"]
    program = f"import sys, tidegate.cli.serve; print([name for name in {late} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip() == "[]", ended.stderr


def test_the_packages_of_the_server_are_those_of_its_extra() -> None:
    by_other_names = {"pyjwt": "jwt"}
    packages = {plain(one) for one in PROJECT["optional-dependencies"]["server"]}
    assert {by_other_names.get(name, name) for name in packages} == SERVER_PACKAGES


def test_the_extra_all_has_every_extra() -> None:
    extras = set(PROJECT["optional-dependencies"]) - {"all", "arrow"}
    assert PROJECT["optional-dependencies"]["all"] == [f"tidegate[{','.join(sorted(extras))}]"]
    assert PROJECT["optional-dependencies"]["arrow"] == PROJECT["optional-dependencies"]["client"]


def test_every_package_that_is_imported_is_declared() -> None:
    extras = PROJECT["optional-dependencies"].values()
    declared = {plain(one) for extra in (PROJECT["dependencies"], *extras) for one in extra}
    declared |= {"opentelemetry", "py4j", "jwt"}  # By other names: opentelemetry-sdk, a part of PySpark, and PyJWT.
    imported = {name for path in (ROOT / "src").rglob("*.py") for name in imports_of(path)}
    assert BASE | SERVER_PACKAGES - {"uvloop"} <= imported
    assert imported - declared - set(sys.stdlib_module_names) == set()


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]

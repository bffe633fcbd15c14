"""Rules of the repository itself: what a newcomer and a clean machine rely on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tidegate.steps import STEPS

ROOT = Path(__file__).parent.parent


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt"])
def test_dependencies_are_locked_with_hashes_and_without_addresses(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    assert "://" not in text
    assert "index-url" not in text
    for requirement in re.findall(r"^[a-z0-9][^\s=]*==.*(?:\n    .*)*", text, re.MULTILINE):
        assert "--hash=sha256:" in requirement, requirement


def test_no_lock_file_with_download_addresses_is_kept() -> None:
    assert not [path for path in tracked() if path.name in {"uv.lock", "poetry.lock", "Pipfile.lock"}]


def test_no_module_hides_a_second_room() -> None:
    long = {str(path): len(path.read_text().splitlines()) for path in tracked("src/*.py")}
    assert {path: lines for path, lines in long.items() if lines > 600} == {}


def test_every_page_that_a_page_links_to_is_there() -> None:
    for page in tracked("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page} links to {target}"


def test_every_step_at_which_the_worst_can_happen_is_visited_by_a_test() -> None:
    tests = "".join(path.read_text() for path in tracked("tests/*.py"))
    families = set(re.findall(r"""(?:step\.startswith|steps_of)\("(\w+)\.?"\)""", tests))
    unvisited = [step for step in STEPS if step.partition(".")[0] not in families and f'"{step}' not in tests]
    assert unvisited == []


def path_without(*programs: str, folder: Path) -> str:
    """A PATH on which everything of the usual one is found, but for these programs."""
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            if program.name not in programs:
                link.unlink(missing_ok=True)
                link.symlink_to(program)
    return str(folder)


@pytest.mark.parametrize(
    ("program", "told"), [("git", "git"), ("java", "JDK 17"), ("javac", "JDK 17"), ("python3", "Python 3.11")]
)
def test_a_missing_prerequisite_is_one_clear_line(program: str, told: str, tmp_path: Path) -> None:
    environ = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
    environ["PATH"] = path_without(program, folder=tmp_path)
    bash = shutil.which("bash")
    assert bash is not None
    ended = subprocess.run([bash, "tools/prerequisites.sh"], cwd=ROOT, env=environ, capture_output=True, text=True)
    assert ended.returncode == 1
    assert len(ended.stderr.strip().splitlines()) == 1
    assert told in ended.stderr


def test_a_machine_that_has_everything_is_told_nothing() -> None:
    ended = subprocess.run(["bash", "tools/prerequisites.sh"], cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")

"""Metadata cleanup: what goes is what nobody needs, whatever is found in the log."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.domain.files import FoundFile
from tidegate.domain.log_cleanup import (
    DAY_MS,
    checkpoint_versions,
    checkpoints_to_read,
    plan_cleanup,
    sidecars_in,
    sidecars_to_remove,
)
from tidegate.domain.log_files import parse_log_file
from tidegate.domain.log_retention import DEFAULT_MS, log_retention_ms, parse_interval_ms
from tidegate.domain.names import Version

UUID = str(uuid.UUID(int=1))


def at(name: str, time: int = 0, size: int = 10) -> FoundFile:
    return FoundFile(f"_delta_log/{name}", size, time)


def commit(version: int, time: int = 0) -> FoundFile:
    return at(f"{version:020}.json", time)


def commits(*versions: int) -> list[FoundFile]:
    """Version v was published at moment v."""
    return [commit(version, version) for version in versions]


def checkpoint(version: int, kind: str = "classic") -> list[FoundFile]:
    stem = f"{version:020}.checkpoint"
    return {
        "classic": [at(f"{stem}.parquet")],
        "parts": [at(f"{stem}.{part:010}.{3:010}.parquet") for part in (1, 2, 3)],
        "v2 json": [at(f"{stem}.{UUID}.json")],
        "v2 parquet": [at(f"{stem}.{UUID}.parquet")],
    }[kind]


def names(paths: list[str] | tuple[str, ...]) -> list[str]:
    return [path.removeprefix("_delta_log/") for path in paths]


def plan(files: list[FoundFile], *, published: int, cut_off: int, times: dict[int, int] | None = None) -> list[str]:
    known = {Version(version): time for version, time in (times or {}).items()}
    made = plan_cleanup(files, published=Version(published), times=known, cut_off=cut_off)
    return [] if made is None else names(list(made.paths))


KINDS = ["classic", "parts", "v2 json", "v2 parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_everything_before_the_newest_checkpoint_that_is_not_newer_than_the_cut_off_goes(kind: str) -> None:
    old, kept = checkpoint(2, kind), [*checkpoint(4, kind), *checkpoint(8, kind)]
    files = [*commits(*range(10)), *old, *kept]
    going = plan(files, published=9, cut_off=6)
    assert sorted(going) == sorted(names([file.path for file in [*commits(0, 1, 2, 3), *old]]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_at_the_cut_off_will_do(kind: str) -> None:
    going = plan([*commits(*range(10)), *checkpoint(6, kind)], published=9, cut_off=6)
    assert going == names([file.path for file in commits(0, 1, 2, 3, 4, 5)])


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(commits(*range(10)), id="no checkpoint"),
        pytest.param([*commits(*range(10)), *checkpoint(7)], id="only a newer one"),
        pytest.param([*commits(*range(10)), *checkpoint(4, "parts")[:2]], id="a part is missing"),
        pytest.param([*commits(*range(10)), at(f"{4:020}.checkpoint.parquet", size=0)], id="an empty one"),
        pytest.param([*commits(*range(7), 8, 9), *checkpoint(4)], id="a later commit is missing"),
        pytest.param([*commits(*range(9)), *checkpoint(4)], id="the last commit is missing"),
        pytest.param([*commits(*range(20)), *checkpoint(15)], id="a checkpoint of what is not published"),
    ],
)
def test_nothing_goes_without_a_checkpoint_from_which_all_the_rest_can_be_read(files: list[FoundFile]) -> None:
    assert plan(files, published=9, cut_off=6) == []


def test_what_belongs_to_old_versions_goes_with_them() -> None:
    files = [
        *commits(*range(10)),
        *checkpoint(5),
        at(f"{4:020}.crc"),
        at(f"{5:020}.crc"),
        at(f"{1:020}.{5:020}.compacted.json"),
        at(f"{5:020}.{8:020}.compacted.json"),
        at(f"{6:020}.{8:020}.compacted.json"),
        at(f".{4:020}.json.crc"),
        at(f".{7:020}.json.crc"),
        at(f"_staged_commits/{5:020}.{UUID}.json"),
        at(f"_staged_commits/{4:020}.{UUID}.json", time=100),
        at(f"_staged_commits/{6:020}.{UUID}.json"),
        at("_last_checkpoint"),
        at("notes.txt"),
        at(f"{3:020}.json.bak"),
        at(f"{3:019}.json"),
    ]
    assert set(plan(files, published=9, cut_off=6)) == {
        *names([file.path for file in commits(0, 1, 2, 3, 4)]),
        f"{4:020}.crc",
        f"{1:020}.{5:020}.compacted.json",
        f"{5:020}.{8:020}.compacted.json",
        f".{4:020}.json.crc",
        f"_staged_commits/{5:020}.{UUID}.json",
    }


def test_the_catalogs_times_count_before_the_stores() -> None:
    files = [*commits(*range(10)), *checkpoint(4), *checkpoint(8)]
    assert plan(files, published=9, cut_off=6, times={4: 7, 8: 20}) == []
    assert len(plan(files, published=9, cut_off=6, times={8: 5})) == 9


def test_a_commit_is_never_older_than_the_one_before_it() -> None:
    files = [commit(0, 0), commit(1, 50), commit(2, 2), commit(3, 3), *checkpoint(2)]
    assert plan(files, published=3, cut_off=10) == []


def test_what_goes_goes_oldest_version_first() -> None:
    files = [*commits(*range(30)), *checkpoint(3), *checkpoint(25)]
    versions = [int(name[:20]) for name in plan(files, published=29, cut_off=26)]
    assert versions == sorted(versions)


# Whatever the log looks like

VERSIONS = st.integers(0, 12)
LISTINGS = st.builds(
    lambda there, whole, partial, others: (
        [*(commit(version, version) for version in there)]
        + [file for version, kind in whole for file in checkpoint(version, kind)]
        + [checkpoint(version, "parts")[part] for version, part in partial]
        + [at(name.format(version=version, end=version + length)) for name, version, length in others]
    ),
    st.one_of(st.just(set(range(13))), st.sets(VERSIONS)),
    st.sets(st.tuples(VERSIONS, st.sampled_from(KINDS))),
    st.sets(st.tuples(VERSIONS, st.integers(0, 2))),
    st.sets(
        st.tuples(
            st.sampled_from(["{version:020}.crc", "{version:020}.{end:020}.compacted.json", "{version}.txt", "x"]),
            VERSIONS,
            st.integers(0, 3),
        )
    ),
)


def can_be_read(version: int, files: list[FoundFile]) -> bool:
    """From a checkpoint, or from the beginning, and all published commits after it."""
    there = {parsed.version for file in files if (parsed := parse_log_file(file)) and file in commits(parsed.version)}
    starts = [start for start in (*checkpoint_versions(files), -1) if start <= version]
    return any(all(v in there for v in range(start + 1, version + 1)) for start in starts)


@given(files=LISTINGS, published=VERSIONS, cut_off=st.integers(-1, 14))
def test_every_version_within_the_retention_that_could_be_read_can_still_be_read(
    files: list[FoundFile], published: int, cut_off: int
) -> None:
    files = list(dict.fromkeys(files))
    times = {version: version for version in range(13)}
    going = set(plan(files, published=published, cut_off=cut_off, times=times))
    left = [file for file in files if file.path.removeprefix("_delta_log/") not in going]
    for version in range(max(min(cut_off, published), 0), published + 1):
        assert can_be_read(version, left) or not can_be_read(version, files), version
    assert plan(left, published=published, cut_off=cut_off, times=times) == [], "once is enough"
    assert all(name.startswith("0") for name in going), "names that say nothing stay"


# Sidecars


def test_sidecars_go_that_no_checkpoint_refers_to_and_that_are_older_than_a_day() -> None:
    now = 10 * DAY_MS + 5
    sidecars = [
        at("_sidecars/a.parquet", time=8 * DAY_MS),
        at("_sidecars/b.parquet", time=8 * DAY_MS),
        at("_sidecars/young.parquet", time=9 * DAY_MS),
        at("_sidecars/notes.txt", time=0),
    ]
    going = sidecars_to_remove(sidecars, referenced=frozenset({"a.parquet"}), now=now)
    assert names(going) == ["_sidecars/b.parquet"]


def test_sidecars_are_read_from_checkpoints_in_json() -> None:
    content = b'{"checkpointMetadata":{"version":1}}\n{"sidecar":{"path":"a.parquet","sizeInBytes":1}}\n\n'
    content += b'{"sidecar":{"path":"file:///t/_delta_log/_sidecars/b.parquet"}}\n'
    assert sidecars_in(content) == {"a.parquet", "b.parquet"}


@pytest.mark.parametrize("content", [b"PAR1", b"[1]", b'{"sidecar":{}}', b'{"sidecar":1}', b"\xff\xfe"])
def test_a_checkpoint_that_cannot_be_read_says_nothing(content: bytes) -> None:
    assert sidecars_in(content) is None


def test_where_a_checkpoint_takes_an_engine_to_read_sidecars_stay() -> None:
    assert checkpoints_to_read([*commits(1), *checkpoint(1, "parts"), at("_last_checkpoint")]) == []
    assert checkpoints_to_read(checkpoint(1, "v2 json")) == [checkpoint(1, "v2 json")[0].path]
    assert checkpoints_to_read([*checkpoint(1, "v2 json"), *checkpoint(2, "v2 parquet")]) is None
    assert checkpoints_to_read(checkpoint(1, "classic")) is None


# How long


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("interval 30 days", 30 * DAY_MS),
        ("30 days", 30 * DAY_MS),
        ("INTERVAL 1 WEEK 2 DAYS", 9 * DAY_MS),
        ("interval 1 day", DAY_MS),
        ("interval 36 hours", DAY_MS + DAY_MS // 2),
        ("interval 90 seconds", 90_000),
        ("interval 1 month", None),
        ("interval 2 years", None),
        ("interval -1 days", None),
        ("interval 0 days", None),
        ("interval", None),
        ("30", None),
        ("forever", None),
        ("", None),
    ],
)
def test_a_retention_that_is_not_understood_keeps_everything(text: str, ms: int | None) -> None:
    assert parse_interval_ms(text) == ms
    assert log_retention_ms({"delta.logRetentionDuration": text}) == ms


def test_tables_keep_30_days_unless_they_say_otherwise() -> None:
    assert log_retention_ms({}) == DEFAULT_MS == 30 * DAY_MS
    assert log_retention_ms({"delta.enableExpiredLogCleanup": "false"}) is None
    assert log_retention_ms({"delta.enableExpiredLogCleanup": "TRUE"}) == DEFAULT_MS

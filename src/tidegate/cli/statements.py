"""SQL statements in a text, told apart by their semicolons, and failures of Spark told in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What a semicolon may stand in without ending a statement, words (a script's BEGIN and END matter), and the semicolon.
# In r'...' a backslash is nothing special. What is never closed goes on to the end: Spark then says what is wrong.
_TOKEN = re.compile(
    r"""
      --(?:\\\n|[^\n])*
    | /\*
    | \b[rR]'[^']*(?:'|\Z) | \b[rR]"[^"]*(?:"|\Z)
    | '(?:[^'\\]|\\.)*(?:'|\Z) | "(?:[^"\\]|\\.)*(?:"|\Z) | `[^`]*(?:`|\Z)
    | \w+
    | ;
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ENDS_OF_OTHERS = {"IF", "LOOP", "WHILE", "REPEAT", "FOR"}


def split_statements(text: str) -> list[str]:
    """The statements, without their semicolons. Those that are only blanks and comments are left out.

    A script (BEGIN ... END) is one statement, with the semicolons in it.
    """
    statements: list[str] = []
    start = depth = 0
    words: list[str] = []
    for found, position in [*_tokens(text), (";", len(text))]:
        if found != ";":
            words.append(found.upper())
            depth += _depth_change(words) if words[0] == "BEGIN" else 0
        elif depth <= 0 or position == len(text):
            if words:
                statements.append(text[start:position].strip())
            start, depth, words = position + 1, 0, []
    return statements


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Words, quoted things and semicolons, with their places; no comments."""
    position = 0
    while (found := _TOKEN.search(text, position)) is not None:
        position = found.end()
        if found[0] == "/*":
            position = _end_of_comment(text, position)
        elif not found[0].startswith("--"):
            yield found[0], found.start()


def _end_of_comment(text: str, position: int) -> int:
    """Comments may hold comments."""
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(text, position)
        if edge is None:
            return len(text)
        depth += 1 if edge[0] == "/*" else -1
        position = edge.end()
    return position


def _depth_change(words: list[str]) -> int:
    """What the last word does to the nesting of a script. END closes BEGIN and CASE; END IF and its like, others."""
    word, before = words[-1], words[-2] if len(words) > 1 else ""
    if before == "END" and word in _ENDS_OF_OTHERS:
        return 1
    if word == "END":
        return -1
    return 1 if word == "BEGIN" or (word == "CASE" and before != "END") else 0


def in_one_line(error: BaseException) -> str:
    """The line of a failure that says what went wrong: no query plan, no Java stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
    for line in lines:
        coded = re.search(r"\[[A-Z][A-Z0-9_.]+\] .*", line)
        if coded is not None:
            return coded[0].rstrip(";")
    causes = [line for line in lines if line.startswith(("Caused by: ", ": "))]
    told = causes[-1] if causes else (lines or [type(error).__name__])[0]
    return re.sub(r"^(Caused by)?: ([\w$]+\.)+[\w$]+: ", "", told)

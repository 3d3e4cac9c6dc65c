"""diagnostics.py: fails for each diagnostic of the compiler and the runtime that no test provokes.

A diagnostic is known by the longest piece of text in the statement that makes it; a test has to quote that piece.
"""
import pathlib
import re
import sys

SOURCES = ["dialects", "compiler", "runtime", "tools/gdnc", "tools/gdn-opt"]
TESTS = ["tests/lit", "tests/cli", "tests/runtime"]
MAKER = re.compile(r"\b(?:emit\w*Error|fail|refuse|ConfigError|Failure|environmentFailure)\(|\berror = ")
TEXT = r'"((?:[^"\\\n]|\\.)*)"'
STATEMENT = re.compile(rf"(?:{TEXT}|[^;\"])*;")


def pieces(statement):
    """The string literals of a statement, adjacent ones joined, cut where a value goes in."""
    for adjacent in re.finditer(rf"(?:{TEXT}\s*)+", statement):
        text = "".join(re.findall(TEXT, adjacent.group()))
        yield from (piece.strip(" :") for piece in re.split(r"\{\}|%\w+|\\n|\\\"|'", text))


root = pathlib.Path(__file__).parents[2]
files = [f for folder in TESTS for f in (root / folder).rglob("*") if f.suffix in (".mlir", ".test", ".cpp")]
tests = re.sub(r'"\s*"', "", "\n".join(f.read_text() for f in files))
missing = []
for source in sorted(f for folder in SOURCES for f in (root / folder).rglob("*.cpp")):
    code = source.read_text()
    for maker in MAKER.finditer(code):
        longest = max(pieces(STATEMENT.match(code, maker.start()).group()), key=len, default="")
        if longest not in tests:
            line = code.count("\n", 0, maker.start()) + 1
            missing.append(f"{source.relative_to(root)}:{line}: no test quotes {longest!r}")
sys.exit("\n".join(missing) or 0)

"""The house stays in order: imports point one way, what is public is documented, no experiment is shipped."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import whyact
from scripts.measure_code import find_cycles, read_graph
from tests.support.paths import ROOT

PACKAGE = ROOT / "src" / "whyact"
# Each room may import from those before it.
ROOMS = (
    "version", "visible", "errors", "intervals", "demo", "plotting", "model", "simulation", "sampler", "scaling",
    "progress", "neighbours", "cut_policies", "cut_decisiveness", "strengths", "stacking", "matching", "posterior",
    "prediction", "fit_result", "storage", "tables", "explanation", "estimators", "alternatives", "comparison",
    "driving", "report", "cli", "__main__",
)  # fmt: skip


def test_no_import_closes_a_circle():
    """Imports inside functions and those for type checkers are counted as well."""
    graph, _ = read_graph(PACKAGE)
    assert find_cycles(graph) == []


def test_a_circle_would_be_found():
    assert find_cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_rooms_import_only_from_rooms_before_them():
    graph, _ = read_graph(PACKAGE)
    rooms = {module: module.split(".")[1] for module in graph if module != "whyact"}
    assert set(rooms.values()) == set(ROOMS)
    upwards = [
        f"{module} imports {target}"
        for module, targets in graph.items()
        if module != "whyact"
        for target in targets
        if target != "whyact" and ROOMS.index(rooms[target]) > ROOMS.index(rooms[module])
    ]
    assert upwards == []


def find_late_imports(path):
    """Imports of whyact inside functions: the line, and whether it or the lines above it hold a comment."""
    lines = path.read_text().splitlines()
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    for node in {id(node): node for function in functions for node in ast.walk(function)}.values():
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("whyact"):
            first = node.lineno - 1
            while re.match(r"\s*(from|import) |\s*\)|\s+\w+,$|\s*$", lines[first - 1]):
                first -= 1
            block = lines[first - 1 : node.end_lineno]
            yield node.lineno, any("#" in line for line in block)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_an_import_inside_a_function_says_why(path):
    assert [line for line, has_reason in find_late_imports(path) if not has_reason] == []


# --- documentation ------------------------------------------------------------------------------------------

# What a user imports, beside `whyact` itself.
PUBLIC_MODULES = ("whyact.report", "whyact.tables", "whyact.comparison")


def find_public():
    """Public classes and functions, and the public methods of classes, by name."""
    found = {}
    for module in (whyact, *map(importlib.import_module, PUBLIC_MODULES)):
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Warning | Exception)):
                continue
            found[f"{module.__name__}.{name}"] = thing
            if inspect.isclass(thing):
                found |= {f"{module.__name__}.{name}.{m.__name__}": m for m in find_methods(thing)}
    return found


def find_methods(kind):
    """Public methods that whyact itself defines."""
    members = inspect.getmembers(kind, inspect.isfunction)
    return [method for name, method in members if not name.startswith("_") and method.__module__.startswith("whyact")]


PUBLIC = find_public()


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_everything_public_is_documented(name):
    """One sentence, every parameter, what is returned, and an example."""
    thing = PUBLIC[name]
    text = inspect.getdoc(thing) or ""
    assert re.match(r"[A-Z][^\n]*\.", text), "the first line is a sentence"
    parameters = [p for p in inspect.signature(thing).parameters if p not in ("self", "args", "kwargs")]
    is_tuple = inspect.isclass(thing) and issubclass(thing, tuple)  # says it in comments, field by field
    for parameter in [] if is_tuple else parameters:
        assert re.search(rf"^\s*(\*\*)?(\w+, )*{parameter}(, \w+)* : |^\s*\*\*{parameter}$", text, re.MULTILINE), (
            parameter
        )
    if not inspect.isclass(thing) and inspect.signature(thing).return_annotation not in (None, "None"):
        assert re.search(r"^\s*(Returns|Yields)\n\s*---", text, re.MULTILINE), "what is returned"
    if not is_tuple:
        of_class = PUBLIC.get(name.rpartition(".")[0])
        assert ">>>" in text or ">>>" in (inspect.getdoc(of_class) or "" if of_class else ""), "an example"


# --- the wheel ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_wheel_holds_no_experiment(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)],
        check=True,
    )
    (wheel,) = tmp_path.glob("whyact-*.whl")
    names = [Path(name) for name in zipfile.ZipFile(wheel).namelist()]
    assert {name.parts[0] for name in names if not name.parts[0].endswith(".dist-info")} == {"whyact"}
    assert Path("whyact/py.typed") in names
    assert Path("whyact/report/templates/page.html") in names
    assert not [name for name in names if "studies" in name.parts or "experiments" in name.parts]


def test_no_clock_is_asked_that_can_be_set():
    """A clock that is put back must not let a checkpoint wait, or a file look old."""
    asked = re.compile(r"\btime\.(time|ctime|localtime|gmtime)(_ns)?\(|from time import|\.(now|today|utcnow)\(")
    assert [path.name for path in PACKAGE.rglob("*.py") if asked.search(path.read_text())] == []

"""Print figures about the code: modules, function lengths, imports inside functions, import cycles, docstrings.

python scripts/measure_code.py              # src/whyact
python scripts/measure_code.py FOLDER       # another tree, to compare
"""

import ast
import sys
from pathlib import Path

import numpy as np

PACKAGE = "whyact"


def name_module(path: Path, root: Path) -> str:
    parts = [PACKAGE, *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def find_imports(tree: ast.Module, module: str, modules: set[str]) -> list[tuple[str, bool]]:
    """Modules of the package that a module imports, and whether that happens inside a function."""
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            # `from whyact.a import b`: the module a.b if there is one, else a
            targets = [
                f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in modules else str(node.module)
                for alias in node.names
            ]
        else:
            continue
        found += [(target, id(node) in inside) for target in dict.fromkeys(targets) if target != module]
    return found


def find_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or not (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    cycles = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for target in sorted(graph.get(module, ())):
            if target not in order:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], order[target])
        if lowest[module] == order[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                cycles.append(sorted(group))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return cycles


def read_graph(root: Path) -> tuple[dict[str, set[str]], int]:
    """What each module imports, wherever the import stands, and how many imports stand inside functions."""
    trees = {name_module(path, root): ast.parse(path.read_text()) for path in sorted(root.rglob("*.py"))}
    imports = {module: find_imports(tree, module, set(trees)) for module, tree in trees.items()}
    n_inside = sum(is_inside for found in imports.values() for _, is_inside in found)
    return {module: {target for target, _ in found} for module, found in imports.items()}, n_inside


def count_lines(node: ast.stmt) -> int:
    """Lines of a statement, from its first to its last."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def count_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's docstring."""
    return count_lines(function.body[0]) if ast.get_docstring(function) is not None else 0


def main(root: Path) -> None:
    """Print the figures of one tree."""
    paths = sorted(root.rglob("*.py"))
    functions = [
        node
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = [count_lines(node) for node in functions]
    bare = [length - count_docstring(node) for node, length in zip(functions, lengths, strict=True)]
    public = [node for node in functions if not node.name.startswith("_")]
    documented = [node for node in public if ast.get_docstring(node)]
    graph, n_inside = read_graph(root)
    print(f"modules: {len(paths)}, of which at the top: {len(list(root.glob('*.py')))}")
    print(f"lines: {sum(len(path.read_text().splitlines()) for path in paths)}")
    print(f"functions: {len(functions)}")
    for name, counts in (("lines each", lengths), ("without docstrings", bare)):
        print(f"  {name}: median {np.median(counts):g}, 90% {np.quantile(counts, 0.9):g}")
    print(
        f"public functions with a docstring: {len(documented)} of {len(public)} ({len(documented) / len(public):.0%})"
    )
    print(f"imports of {PACKAGE} inside functions: {n_inside}")
    print(f"import cycles: {find_cycles(graph) or 'none'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "src/whyact"))

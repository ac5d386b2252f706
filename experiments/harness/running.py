"""Run the tasks of a study side by side, and write the rows of each as soon as it is finished."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

from experiments.harness.store import Row, RowStore, StudyError

Rows = dict[str, Row]  # by the name of their store


def try_task(task: Any, work: Callable[[Any], Rows]) -> tuple[Any, Rows | Exception]:
    """Do a task; one that fails must not stop the others."""
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            return task, work(task)
    except (ArithmeticError, RuntimeError, ValueError) as error:
        return task, error


def run_and_store(
    tasks: Sequence[Any],
    work: Callable[[Any], Rows],
    stores: dict[str, RowStore],
    folder: Path,
    n_jobs: int,
    on_done: Callable[[Any], None] | None = None,
) -> None:
    """Do the tasks, `n_jobs` at a time.

    `work(task)` returns the rows to append, by the name of their store. They are written in this order. The row that
    marks the task as done must come last, so that a kill in between leaves a surplus row, not a gap.
    """
    failed = []
    try:
        with ExitStack() as stack:
            files = {name: stack.enter_context(store.appending()) for name, store in stores.items()}
            results = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
                joblib.delayed(try_task)(task, work) for task in tasks
            )
            for task, rows in results:
                if isinstance(rows, Exception):
                    failed.append((task, rows))
                else:
                    for name, row in rows.items():
                        files[name].append(row)
                if on_done:
                    on_done(task)
    except OSError as error:
        raise StudyError(f"a row could not be written to {folder}: {error.strerror}.") from None
    if failed:
        task, reason = failed[0]
        raise StudyError(f"{len(failed)} of {len(tasks)} runs failed, the first one ({task}) with: {reason}")

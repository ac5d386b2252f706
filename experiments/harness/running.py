"""Run the tasks of a study side by side, and write the rows of each as soon as it is finished."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

from experiments.harness.store import RowStore, StudyError


def try_task(task: Any, work: Callable[[Any], dict[str, dict]]) -> tuple[Any, dict[str, dict] | Exception]:
    """Do a task; one that fails must not take the others with it."""
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            return task, work(task)
    except (ArithmeticError, RuntimeError, ValueError) as error:
        return task, error


def run_and_store(
    tasks: Sequence[Any],
    work: Callable[[Any], dict[str, dict]],
    stores: dict[str, RowStore],
    folder: Path,
    n_jobs: int,
    on_done: Callable[[Any], None] | None = None,
) -> None:
    """Do the tasks, `n_jobs` at a time.

    `work(task)` returns the rows to append, by the name of their store. They are written in this order: the row that
    tells that the task is done belongs at the end, so that a kill in between leaves a row too many, not a gap.
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

"""A run in a folder: what `whyact fit` was given, and its checkpoints, so that `whyact resume` needs nothing else.

The folder of the model NAME is NAME.run, beside where the model will be. It is removed once the model is written.
"""

import json
import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyact.errors import ClaimError, DamagedFileError, RunError
from whyact.storage.atomic import HIDDEN
from whyact.storage.checkpoint import RUN_FILE, is_our_name
from whyact.storage.codec import (
    FIRST_PARAMETERS,
    SCHEMA,
    check_texts,
    decode_available,
    decode_labels,
    decode_names,
    decode_settings,
    decode_shape,
    describe_file,
    encode_labels,
    encode_settings,
    take,
)
from whyact.storage.door import check_demonstrations, demand, is_number
from whyact.storage.folder import OpenFolder, find_inode
from whyact.storage.memory import ALLOWANCE_OF_RUN, BYTES, check_claim, find_limit
from whyact.storage.netcdf import Group, Variable, read_netcdf, write_netcdf

logger = logging.getLogger("whyact")

SUFFIX = ".run"
TITLE = "whyact run"
BYTES_PER_CHAIN = 2**14  # for what Python keeps of each


class Run(NamedTuple):
    """What is to be fitted."""

    parameters: dict[str, Any]
    observations: np.ndarray  # (N, D), NaN where missing
    columns: np.ndarray  # their names, (D,)
    classes: np.ndarray  # the actions, sorted, (U,)
    actions: np.ndarray  # index of `classes`, -1 where missing, (N,)
    shape: tuple[int, ...] | None
    every: float  # seconds between checkpoints
    source: str  # name of the file of demonstrations
    available: np.ndarray | None = None  # which actions can be taken in each row, (N, U); None: all


def find_folder(model_path: Path) -> Path:
    """The folder of the run that makes a model."""
    return model_path.with_name(model_path.name + SUFFIX)


def find_model_path(folder: Path) -> Path:
    """Where the model of a run goes; not stored, so that no folder can make anybody write elsewhere."""
    folder = Path(folder).absolute()
    if not folder.name.endswith(SUFFIX) or folder.name == SUFFIX:
        raise RunError(f"{folder.name} is not the folder of a run: its name must be that of the model plus {SUFFIX!r}.")
    return folder.with_name(folder.name.removesuffix(SUFFIX))


def begin_run(folder: Path, run: Run) -> None:
    """Write down what is to be fitted."""
    variables = {
        "observations": Variable(("row", "column"), np.ascontiguousarray(run.observations, dtype=np.float64)),
        "actions": Variable(("row",), run.actions),
        "column": Variable(("column",), check_texts("the column name", run.columns)),
    }
    if len(run.classes):
        variables["action"] = encode_labels("action", run.classes)
    if run.available is not None:
        variables["available"] = Variable(("row", "action"), run.available.astype(np.int8))
    about = describe_file("run") | {
        "settings": json.dumps(encode_settings(run.parameters)),
        "every": float(run.every),
        "source": run.source,
    }
    if run.shape is not None:
        about["shape"] = np.array(run.shape, dtype=np.int64)
    if folder.exists():
        raise RunError(
            f"{folder} already exists: `whyact resume {folder}` continues the run in it; delete it to start over."
        )
    # whole or not at all, as files are
    hidden = folder.with_name(f"{HIDDEN}{secrets.token_hex(8)}")
    try:
        hidden.mkdir()
        with OpenFolder(hidden) as opened:
            try:
                write_netcdf(hidden / RUN_FILE, {"/": Group(variables, about)})
                hidden.rename(folder)
            except BaseException:
                opened.remove(is_our_name)
                raise
    except OSError as error:
        raise RunError(f"the folder {folder} cannot be created: {error.strerror or error}.") from None


def open_run(folder: Path) -> OpenFolder:
    """Hold the folder of a run, so that at its end this one is removed and no other."""
    if folder.is_symlink():
        raise RunError(f"{folder} is a symbolic link; give the folder itself.")
    try:
        return OpenFolder(folder)
    except FileNotFoundError:
        raise RunError(f"{folder} holds no run: there is no file {folder / RUN_FILE}.") from None
    except OSError as error:
        raise RunError(f"{folder} cannot be opened: {error.strerror or error}.") from None


def remove_run(opened: OpenFolder) -> None:
    """Remove a folder that is no longer needed, with the files of the run and no others."""
    is_known = find_inode(opened.path) is not None  # or another process has finished the same run
    if not opened.remove(is_our_name) and is_known:
        logger.warning("%s was left, because other files are in it, or it is another folder than before.", opened.path)


def read_run(folder: Path, check: Callable[[dict[str, Any]], None]) -> Run:
    """What is to be fitted; `check` raises DamagedFileError if the parameters of the estimator are not legal."""
    path = folder / RUN_FILE
    try:
        run = decode_run(read_netcdf(path)["/"], check)
        check_claim(estimate_start(run), find_limit(path.stat().st_size, allowance=ALLOWANCE_OF_RUN), "to start")
        return run
    except FileNotFoundError:
        raise RunError(f"{folder} holds no run: there is no file {path}.") from None
    except ClaimError as error:
        raise RunError(f"{path} {error}.") from None
    except DamagedFileError as error:
        raise RunError(f"{path} is not a whyact run: {error}.") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from None


def estimate_start(run: Run) -> int:
    """Bytes that a run cannot do without when it starts: numbers for each sweep, and a first state of each chain."""
    n_rows, n_columns = run.observations.shape
    given = run.parameters
    n_sweeps = (given.get("n_burn_in") or 0) + (given.get("n_draws") or 0)
    # where chains start from rows, there are fewer features than rows
    n_features = given.get("n_components") or min(given.get("max_features") or 1, n_rows)
    of_chain = BYTES_PER_CHAIN + BYTES * n_features * (n_rows + n_columns + max(len(run.classes), 1) + n_features)
    return int(BYTES * n_sweeps + (given.get("n_chains") or 1) * of_chain)


def decode_run(group: Group, check: Callable[[dict[str, Any]], None]) -> Run:
    """The content of the file, checked."""
    about = group.attributes
    schema = about.get("whyact_schema")
    if about.get("title") != TITLE or not isinstance(schema, int):
        raise DamagedFileError("it is another kind of netCDF file")
    demand(1 <= schema <= SCHEMA, "a newer whyact has written it")
    observations = take(group, "observations", 2, "f")
    actions = take(group, "actions", 1, "i")
    classes, names = decode_labels(group), decode_names(group)
    check_demonstrations(observations, actions, len(classes))
    if names is None or len(names) != observations.shape[1]:
        raise DamagedFileError("'column' does not match 'observations'")
    demand(is_number(about.get("every")) and about["every"] >= 0, "'every' is wrong")
    return Run(
        # a run of the first schema has what was the default then
        parameters=(FIRST_PARAMETERS if schema == 1 else {}) | decode_settings(about, check),
        observations=observations,
        columns=names,
        classes=classes,
        actions=actions,
        shape=decode_shape(about, observations.shape[1]),
        every=float(about["every"]),
        source=str(about.get("source", "")),
        available=decode_available(group, actions, len(classes)),
    )

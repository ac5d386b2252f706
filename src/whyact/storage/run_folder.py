"""A run in a folder: what `whyact fit` was given, and its checkpoints, so that `whyact resume` needs nothing else.

The folder of the model NAME is NAME.run, beside where the model will be. It is removed once the model is written.
"""

import json
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyact.errors import DamagedFileError, RunError
from whyact.storage.atomic import HIDDEN
from whyact.storage.checkpoint import RUN_FILE
from whyact.storage.codec import (
    check_texts,
    decode_labels,
    decode_names,
    decode_settings,
    decode_shape,
    demand,
    describe_file,
    encode_labels,
    encode_settings,
    is_number,
    take,
)
from whyact.storage.model_file import FIRST_PARAMETERS, decode_available
from whyact.storage.netcdf import Group, Variable, read_netcdf, write_netcdf

SUFFIX = ".run"
TITLE = "whyact run"


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
        write_netcdf(hidden / RUN_FILE, {"/": Group(variables, about)})
        hidden.rename(folder)
    except OSError as error:
        raise RunError(f"the folder {folder} cannot be created: {error.strerror}.") from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def remove_run(folder: Path) -> None:
    """Remove a folder that is no longer needed; for others it disappears at once."""
    hidden = folder.with_name(f"{HIDDEN}{secrets.token_hex(8)}")
    try:
        folder.rename(hidden)
    except FileNotFoundError:  # another process has finished the same run
        return
    shutil.rmtree(hidden)


def read_run(folder: Path, check: Callable[[dict[str, Any]], None]) -> Run:
    """What is to be fitted; `check` raises DamagedFileError if the parameters of the estimator are not legal."""
    path = folder / RUN_FILE
    try:
        return decode_run(read_netcdf(path)["/"], check)
    except FileNotFoundError:
        raise RunError(f"{folder} holds no run: there is no file {path}.") from None
    except DamagedFileError as error:
        raise RunError(f"{path} is not a whyact run: {error}.") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from None


def decode_run(group: Group, check: Callable[[dict[str, Any]], None]) -> Run:
    """The content of the file, checked."""
    about = group.attributes
    demand(about.get("title") == TITLE, "it is another kind of netCDF file")
    observations = take(group, "observations", 2, "f")
    actions = take(group, "actions", 1, "i")
    classes, names = decode_labels(group), decode_names(group)
    demand(len(actions) == len(observations), "'actions' does not match 'observations'")
    demand((actions >= -1).all() and (actions < len(classes)).all(), "'actions' holds an action without a name")
    if names is None or len(names) != observations.shape[1]:
        raise DamagedFileError("'column' does not match 'observations'")
    demand(is_number(about.get("every")) and about["every"] >= 0, "'every' is wrong")
    return Run(
        # a run of the first schema has what was the default then
        parameters=(FIRST_PARAMETERS if about.get("whyact_schema") == 1 else {}) | decode_settings(about, check),
        observations=observations,
        columns=names,
        classes=classes,
        actions=actions,
        shape=decode_shape(about, observations.shape[1]),
        every=float(about["every"]),
        source=str(about.get("source", "")),
        available=decode_available(group, actions, len(classes)),
    )

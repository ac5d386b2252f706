"""A run in a folder: what `whyact fit` was given, and its checkpoints, so that `whyact resume` needs nothing else.

The folder of the model NAME is NAME.run, beside where the model will be. It goes away when the model is there.
"""

import json
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whyact.errors import CheckpointError, DamagedFileError, RunError
from whyact.estimators.settings_file import is_number
from whyact.storage.atomic import HIDDEN
from whyact.storage.checkpoint import RUN_FILE, STATE_FILE
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
    take,
)
from whyact.storage.netcdf import Group, Variable, read_netcdf, write_netcdf

if TYPE_CHECKING:
    import pandas

    from whyact.estimators.feature_policy import FeaturePolicyClassifier

SUFFIX = ".run"
TITLE = "whyact run"


class Run(NamedTuple):
    """What is to be fitted."""

    parameters: dict[str, Any]
    X: "pandas.DataFrame"
    y: np.ndarray | None
    shape: tuple[int, ...] | None
    every: float  # seconds between checkpoints
    source: str  # name of the file of demonstrations


def find_folder(model_path: Path) -> Path:
    return model_path.with_name(model_path.name + SUFFIX)


def find_model_path(folder: Path) -> Path:
    """Where the model of a run goes; not stored, so that no folder can make anybody write elsewhere."""
    folder = Path(folder).absolute()
    if not folder.name.endswith(SUFFIX) or folder.name == SUFFIX:
        raise RunError(f"{folder.name} is not the folder of a run: its name must be that of the model and {SUFFIX!r}.")
    return folder.with_name(folder.name.removesuffix(SUFFIX))


def begin_run(folder: Path, run: Run) -> None:
    """Put down what is to be fitted."""
    from whyact.estimators.feature_policy import FeaturePolicyClassifier

    estimator = FeaturePolicyClassifier(**run.parameters)
    classes, actions = estimator._check_actions(run.y, len(run.X))
    variables = {
        "observations": Variable(("row", "column"), np.ascontiguousarray(run.X.to_numpy(dtype=np.float64))),
        "actions": Variable(("row",), actions),
        "column": Variable(("column",), check_texts("the column name", run.X.columns)),
    }
    if len(classes):
        variables["action"] = encode_labels("action", classes)
    about = describe_file("run") | {
        "settings": json.dumps(encode_settings(run.parameters)),
        "every": float(run.every),
        "source": run.source,
    }
    if run.shape is not None:
        about["shape"] = np.array(run.shape, dtype=np.int64)
    if folder.exists():
        raise RunError(
            f"{folder} is there already: `whyact resume {folder}` goes on with the run in it; remove it to begin anew."
        )
    # whole or not at all, as files are
    hidden = folder.with_name(f"{HIDDEN}{secrets.token_hex(8)}")
    try:
        hidden.mkdir()
        write_netcdf(hidden / RUN_FILE, {"/": Group(variables, about)})
        hidden.rename(folder)
    except OSError as error:
        raise RunError(f"the folder {folder} cannot be made: {error.strerror}.") from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def remove_run(folder: Path) -> None:
    """Remove a folder that is no longer needed, from others' view all at once."""
    hidden = folder.with_name(f"{HIDDEN}{secrets.token_hex(8)}")
    try:
        folder.rename(hidden)
    except FileNotFoundError:  # another process has come to the end of the same run
        return
    shutil.rmtree(hidden)


def read_run(folder: Path) -> Run:
    """What is to be fitted."""
    import pandas

    path = folder / RUN_FILE
    try:
        group = read_netcdf(path)["/"]
        about = group.attributes
        demand(about.get("title") == TITLE, "it is another kind of netCDF file")
        observations = take(group, "observations", 2, "f")
        actions = take(group, "actions", 1, "i")
        classes, names = decode_labels(group), decode_names(group)
        demand(len(actions) == len(observations), "'actions' does not fit to 'observations'")
        demand((actions >= -1).all() and (actions < len(classes)).all(), "'actions' holds an action without a name")
        demand(names is not None and len(names) == observations.shape[1], "'column' does not fit to 'observations'")
        demand(is_number(about.get("every")) and about["every"] >= 0, "'every' is wrong")
        shape = decode_shape(about, observations.shape[1])
        return Run(
            decode_settings(about),
            pandas.DataFrame(observations, columns=list(names)),  # type: ignore[arg-type]
            label(classes, actions),
            shape,
            float(about["every"]),
            str(about.get("source", "")),
        )
    except FileNotFoundError:
        raise RunError(f"{folder} holds no run: there is no file {path}.") from None
    except DamagedFileError as error:
        raise RunError(f"{path} is not a run of whyact: {error}.") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from None


def label(classes: np.ndarray, actions: np.ndarray) -> np.ndarray | None:
    """The labels of the actions, None where one is missing."""
    if not len(classes):
        return None
    if (actions >= 0).all():
        return classes[actions]
    return np.array([classes[action] if action >= 0 else None for action in actions], dtype=object)


def carry_out(folder: Path, *, is_new: bool, n_jobs: int | None, verbose: int) -> "FeaturePolicyClassifier":
    """Fit, from the last checkpoint on, write the model beside the folder, and remove the folder."""
    from whyact.estimators.feature_policy import FeaturePolicyClassifier

    model_path = find_model_path(folder)
    if folder.is_symlink():
        raise RunError(f"{folder} is a symbolic link; give the folder itself.")
    run = read_run(folder)
    model = FeaturePolicyClassifier(**run.parameters | {"n_jobs": n_jobs, "verbose": verbose})
    try:
        model.fit(run.X, run.y, checkpoint=folder, checkpoint_every=run.every)
    except CheckpointError:  # perhaps because it is another's
        raise
    except ValueError:
        if is_new and not (folder / STATE_FILE).exists():  # it cannot begin, so there is nothing to go on with
            remove_run(folder)
        raise
    model.source_ = run.source
    if run.shape is not None:
        model.shape_ = run.shape
    model.save(model_path)
    remove_run(folder)
    return model

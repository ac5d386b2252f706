"""Fit what a run's folder describes: the one path of `whyact fit` and `whyact resume`."""

import math
from pathlib import Path

import numpy as np
import pandas

from whyact.errors import CheckpointError, ModelFileError, RunError
from whyact.estimators.feature_policy import FeaturePolicyClassifier
from whyact.estimators.inputs import CheckedInput
from whyact.estimators.stored_model import check_stored_parameters, load
from whyact.storage.checkpoint import STATE_FILE
from whyact.storage.run_folder import Run, find_model_path, open_run, read_run, remove_run


def fit_in_folder(folder: Path, *, is_new: bool, n_jobs: int | None, verbose: int) -> FeaturePolicyClassifier:
    """Fit from the last checkpoint on, write the model beside the folder, and remove the folder.

    It is removed only once the model can be read, and only if it is the folder that was opened at first.

    Parameters
    ----------
    folder : Path
    is_new : bool
        Whether the run was only just written down; if it then cannot start, nothing is left behind.
    n_jobs : int or None
        Processes for the chains.
    verbose : int
        1 shows progress.

    Returns
    -------
    FeaturePolicyClassifier
        Fitted.
    """
    model_path = find_model_path(folder)
    with open_run(folder) as opened:
        run = read_run(folder, check_stored_parameters)
        model = FeaturePolicyClassifier(**run.parameters | {"n_jobs": n_jobs, "verbose": verbose})
        try:
            fit_run(model, run, folder)
        except CheckpointError:  # perhaps because another process is running in the folder
            raise
        except ValueError:
            if is_new and not (folder / STATE_FILE).exists():  # it cannot start, so there is nothing to resume
                remove_run(opened)
            raise
        model.save(model_path, shape=run.shape, source=run.source)
        check_written(model_path, folder)
        remove_run(opened)
    return model


def fit_run(model: FeaturePolicyClassifier, run: Run, folder: Path) -> None:
    """Learn from what was written down, from the last checkpoint on."""
    observations, _ = model._check_rows_to_learn_from(pandas.DataFrame(run.observations, columns=list(run.columns)))
    # the actions were coded when the run was written down
    given = CheckedInput(observations, run.columns, run.classes, run.actions.astype(np.int64), run.available)
    model._fit(given, folder, run.every)


def check_written(model_path: Path, folder: Path) -> None:
    """The model must come back from its file before what it was made of is removed."""
    try:
        load(model_path, max_memory=math.inf)
    except ModelFileError as error:
        raise RunError(f"the model was written, but it cannot be read ({error}) The run is kept in {folder}.") from None

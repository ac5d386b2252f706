"""Fit what a run's folder describes: the one path of `whyact fit` and `whyact resume`."""

from pathlib import Path

import numpy as np
import pandas

from whyact.errors import CheckpointError, RunError
from whyact.estimators.feature_policy import FeaturePolicyClassifier
from whyact.estimators.inputs import CheckedInput
from whyact.estimators.stored_model import check_stored_parameters
from whyact.storage.checkpoint import STATE_FILE
from whyact.storage.run_folder import find_model_path, read_run, remove_run


def fit_in_folder(folder: Path, *, is_new: bool, n_jobs: int | None, verbose: int) -> FeaturePolicyClassifier:
    """Fit from the last checkpoint on, write the model beside the folder, and remove the folder.

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
    if folder.is_symlink():
        raise RunError(f"{folder} is a symbolic link; give the folder itself.")
    run = read_run(folder, check_stored_parameters)
    model = FeaturePolicyClassifier(**run.parameters | {"n_jobs": n_jobs, "verbose": verbose})
    try:
        observations, _ = model._check_rows_to_learn_from(pandas.DataFrame(run.observations, columns=list(run.columns)))
        # the actions were coded when the run was written down
        given = CheckedInput(observations, run.columns, run.classes, run.actions.astype(np.int64), run.available)
        model._fit(given, folder, run.every)
    except CheckpointError:  # perhaps because another process is running in the folder
        raise
    except ValueError:
        if is_new and not (folder / STATE_FILE).exists():  # it cannot start, so there is nothing to resume
            remove_run(folder)
        raise
    model.save(model_path, shape=run.shape, source=run.source)
    remove_run(folder)
    return model

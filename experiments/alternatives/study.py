"""The paper's arguments about other models (Sec. 2.4), put to the test.

Demonstrations are drawn as each model assumes them, and as the paper simulates; every model learns from all of them.
Whoever learns, a data set is given by its kind, the SNR and the number of the run.
"""

import time
import warnings
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from experiments.harness.running import run_and_store
from experiments.harness.store import RowStore, check_settings, locked, make_folder
from experiments.simulations.measures import match_features
from experiments.simulations.study import DataSet, fill_actions
from whyact.comparison import count_components
from whyact.comparison.classifiers import tune
from whyact.comparison.contestants import CONTESTANTS
from whyact.comparison.scoring import score
from whyact.version import __version__

N_TRAIN = 150
N_TEST = 60
N_DIMENSIONS = 30
N_ACTIONS = 4
SNR_DB = 20.0
# Where noise sets bits wrongly: the pattern model and ours on few patterns.
NOISY_SNR_DB = (0.0, 5.0, 10.0)

# Kinds of demonstrations, and which numbers of features (or clusters) the runs go through.
KINDS = {
    "features": (4, 6, 8),
    "patterns": (3, 4, 5),
    "few-patterns": (6, 7, 8),
    "clusters": (5, 8, 12),
    "per-action": (4, 6, 8),
    "single": (4, 6, 8),
    "paper": (5, 9, 15),
}
# The model whose assumption a kind is.
OWN_MODEL = {
    "features": "features",
    "patterns": "patterns",
    "few-patterns": "patterns",
    "clusters": "clusters",
    "per-action": "per-action",
}
# Patterns in use where there are few.
N_FEW = 20
SAMPLED = ("features", "patterns", "clusters", "per-action")
METHODS = (*SAMPLED, "pca", "nmf", "lr")
# Sweeps of each chain, half of them burn-in, and chains: a third of the estimators' defaults, for all models alike.
SWEEPS = 2000
N_CHAINS = 2


class Demos(NamedTuple):
    """Demonstrations and what they were made of."""

    observations: np.ndarray
    actions: np.ndarray
    features: np.ndarray  # (K, D); the means of clusters
    substates: np.ndarray  # (N, K)

    @property
    def n_train(self) -> int:
        return len(self.actions) - (N_TEST if len(self.actions) > 100 else 20)

    @property
    def train(self):
        return self.observations[: self.n_train], self.actions[: self.n_train]

    @property
    def test(self):
        return self.observations[self.n_train :], self.actions[self.n_train :]


def draw_features(rng, n_features: int) -> np.ndarray:
    """Sparse positive features, as in Sec. 5."""
    weights = rng.exponential(size=(n_features, N_DIMENSIONS))
    return np.where(rng.random(weights.shape) < 0.5, weights, 0.0)


def draw_present(rng, n_rows: int, n_features: int) -> np.ndarray:
    """Which features a row holds: each with probability 1/2, and at least one."""
    present = rng.random((n_rows, n_features)) < 0.5
    none = ~present.any(axis=1)
    present[none, rng.integers(n_features, size=none.sum())] = True
    return present


def draw_favourites(rng, n: int) -> np.ndarray:
    """A random action for each of n features, patterns or clusters; never one and the same for all."""
    favourites = rng.integers(N_ACTIONS, size=n)
    if np.all(favourites == favourites[0]):
        favourites[0] = (favourites[0] + 1) % N_ACTIONS
    return favourites


def draw_shared_features(rng, n_features, n_rows):
    """Our model's assumption: any amounts of shared features, and each speaks for its action as loudly as it is."""
    substates = draw_present(rng, n_rows, n_features) * rng.uniform(0.2, 1.0, (n_rows, n_features))
    votes = substates @ np.eye(N_ACTIONS)[draw_favourites(rng, n_features)]
    return substates, draw_features(rng, n_features), votes.argmax(axis=1)


def draw_patterns(rng, n_features, n_rows):
    """Features that are there or not, and an action for each pattern, with no regard to other patterns."""
    present = rng.random((n_rows, n_features)) < 0.5
    action_of_pattern = draw_favourites(rng, 2**n_features)
    return (
        present.astype(float),
        draw_features(rng, n_features),
        action_of_pattern[present @ 2 ** np.arange(n_features)],
    )


def draw_few_patterns(rng, n_features, n_rows):
    """As patterns, but only 20 of them occur: one wrong bit leads to a pattern that nobody has seen."""
    in_use = rng.choice(2**n_features, N_FEW, replace=False)
    which = rng.integers(N_FEW, size=n_rows)
    present = in_use[which, None] >> np.arange(n_features) & 1
    return present.astype(float), draw_features(rng, n_features), draw_favourites(rng, N_FEW)[which]


def draw_clusters(rng, n_clusters, n_rows):
    """One feature in each row, all of it: the clusters' means are the features."""
    cluster = rng.integers(n_clusters, size=n_rows)
    return np.eye(n_clusters)[cluster], draw_features(rng, n_clusters), draw_favourites(rng, n_clusters)[cluster]


def draw_per_action(rng, n_features, n_rows):
    """Two actions, each with half of the features for itself."""
    actions = rng.integers(2, size=n_rows)
    amounts = draw_present(rng, n_rows, n_features // 2) * rng.uniform(0.2, 1.0, (n_rows, n_features // 2))
    substates = np.zeros((n_rows, n_features))
    for action in (0, 1):
        own = slice(action * (n_features // 2), (action + 1) * (n_features // 2))
        substates[actions == action, own] = amounts[actions == action]
    return substates, draw_features(rng, n_features), actions


def draw_single(rng, n_features, n_rows):
    """One feature in each row, but any amount of it."""
    indicators, features, actions = draw_clusters(rng, n_features, n_rows)
    return indicators * rng.uniform(0.2, 1.0, (n_rows, 1)), features, actions


DRAW = {
    "features": draw_shared_features,
    "patterns": draw_patterns,
    "few-patterns": draw_few_patterns,
    "clusters": draw_clusters,
    "per-action": draw_per_action,
    "single": draw_single,
}


class Task(NamedTuple):
    """One model on one data set."""

    kind: str
    snr_db: float
    run: int
    method: str
    seed: int
    sweeps: int = SWEEPS

    def __str__(self) -> str:
        return f"{self.kind} data, {self.snr_db:g} dB, run {self.run}, {self.method}"

    def key(self) -> tuple:
        return (self.kind, self.snr_db, self.run, self.method)

    @property
    def n_true(self) -> int:
        numbers = KINDS[self.kind]
        return numbers[self.run % len(numbers)]

    def draw(self) -> Demos:
        if self.kind == "paper":
            truth = DataSet(self.n_true, self.snr_db, self.run, self.seed).draw()
            return Demos(truth.observations, truth.actions, truth.features, truth.substates)
        rng = np.random.default_rng([self.seed, list(KINDS).index(self.kind), round(1000 * self.snr_db), self.run])
        while True:
            substates, features, actions = DRAW[self.kind](rng, self.n_true, N_TRAIN + N_TEST)
            states = substates @ features
            noise = np.sqrt(np.mean(states**2) / 10 ** (self.snr_db / 10))
            demos = Demos(states + noise * rng.standard_normal(states.shape), actions, features, substates)
            if len(np.unique(demos.train[1])) > 1:
                return demos


def fit_model(method: str, sweeps: int, random_state: int, X, y):
    """Fit the model of this name; half of the sweeps are burn-in where there are chains."""
    from whyact.errors import ChainsDisagreeWarning

    candidate = CONTESTANTS[method].make()
    if method in SAMPLED:
        chains = {"n_burn_in": sweeps // 2, "n_draws": sweeps - sweeps // 2, "n_chains": N_CHAINS}
        candidate.estimator.set_params(**chains, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainsDisagreeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)  # a setting that does not converge is one that loses
        return tune(candidate, X, y, random_state)


def measure(task: Task) -> dict[str, dict]:
    """Fit and measure; return the rows of each file. The row that counts as done comes last."""
    demos = task.draw()
    X_new, y_new = demos.test
    start = time.perf_counter()
    model = fit_model(task.method, task.sweeps, task.run, *demos.train)
    fitted = time.perf_counter()
    probabilities = fill_actions(model.predict_proba(X_new), model.classes_, N_ACTIONS)
    predicted = time.perf_counter()
    scores = score(probabilities, y_new)
    row = {"kind": task.kind, "snr": task.snr_db, "run": task.run, "method": task.method}
    n_found = count_components(model)
    rows = {
        "timings": {
            **row, "sweeps": task.sweeps, "fit_seconds": round(fitted - start, 3),
            "predict_seconds": round(predicted - fitted, 3),
        },
    }  # fmt: skip
    if task.method == OWN_MODEL.get(task.kind) and task.method in ("patterns", "features"):
        rows["bits"] = {**row, **set_wrongly(model, demos, task.run)}
    rows["runs"] = {
        **row,
        "sweeps": task.sweeps,
        "n_true": task.n_true,
        "n_found": None if np.isnan(n_found) else int(n_found),
        "accuracy": scores["accuracy"],
        "log_score": scores["log_score"],
    }
    return rows


# --- one entry of the substates set wrongly -------------------------------------------------------------------------


def predict_from_substates(model, substates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the chosen draw says about given substates (N, K): the action, and whether it has seen the like."""
    from whyact.model import action_probabilities

    if not hasattr(model, "patterns_"):
        actions = action_probabilities(substates.T, model.policies_).argmax(axis=1)
        return model.classes_[actions], substates.sum(axis=1) > 0
    same = ((substates > 0)[:, None, :] == model.patterns_).all(axis=2)
    known = same.any(axis=1)
    policies = np.where(known[:, None], model.policies_[same.argmax(axis=1)], 1.0 / len(model.classes_))
    return model.classes_[policies.argmax(axis=1)], known


def set_wrongly(model, demos: Demos, seed: int) -> dict[str, float | None]:
    """How the most probable substates of new rows compare with the truth, and what one wrong entry in each does."""
    rng = np.random.default_rng([seed, 1])
    X_new, y_new = demos.test
    substates = model.set_params(prediction="map").transform(X_new)
    model.set_params(prediction="mmse")
    actions, known = predict_from_substates(model, substates)
    correct = actions == y_new
    # the present become absent, the absent appear as strong as they usually are
    rows, flipped = np.arange(len(substates)), rng.integers(substates.shape[1], size=len(substates))
    usual = np.array([column[column > 0].mean() if column.any() else 1.0 for column in model.substates_.T])
    changed = substates.copy()
    changed[rows, flipped] = np.where(substates[rows, flipped] > 0, 0.0, usual[flipped])
    actions_changed, known_changed = predict_from_substates(model, changed)
    true_present = demos.substates[demos.n_train :] > 0
    true_index, index = match_features(
        model.components_, model.substates_, demos.features, demos.substates[: demos.n_train]
    )
    found = np.zeros_like(true_present)
    found[:, true_index] = substates[:, index] > 0
    surplus = np.delete(substates, index, axis=1).any(axis=1)
    right = (found == true_present).all(axis=1) & ~surplus
    return {
        "accuracy_map": float(correct.mean()),
        "share_all_bits_right": float(right.mean()),
        "accuracy_if_right": float(correct[right].mean()) if right.any() else None,
        "accuracy_if_wrong": float(correct[~right].mean()) if not right.all() else None,
        "share_unseen": float(1 - known.mean()),
        "accuracy_one_flipped": float(np.mean(actions_changed == y_new)),
        "share_unseen_one_flipped": float(1 - known_changed.mean()),
    }


# --- the study ------------------------------------------------------------------------------------------------------


class Design(NamedTuple):
    """What to run."""

    n_runs: int = 3
    kinds: tuple[str, ...] = tuple(KINDS)
    methods: tuple[str, ...] = METHODS
    sweeps: int = SWEEPS
    seed: int = 0

    def tasks(self) -> list[Task]:
        """Run by run through all kinds, so that a study stopped early has seen every kind about equally often."""
        tasks = []
        for run in range(self.n_runs):
            for kind in self.kinds:
                tasks += [Task(kind, SNR_DB, run, method, self.seed, self.sweeps) for method in self.methods]
                if kind == "few-patterns":
                    noisy = [method for method in self.methods if method in ("features", "patterns")]
                    tasks += [
                        Task(kind, snr_db, run, method, self.seed, self.sweeps)
                        for snr_db in NOISY_SNR_DB
                        for method in noisy
                    ]
        return tasks

    def settings(self) -> dict:
        """What all rows of a folder share."""
        return {"study": "alternatives", "version": __version__, "seed": self.seed, "sweeps": self.sweeps}


KEY = {"kind": str, "snr": float, "run": int, "method": str}
UNITS = {"snr": "dB", "accuracy": "share", "log_score": "nats", "fit_seconds": "s", "predict_seconds": "s"}


def make_stores(folder: Path) -> dict[str, RowStore]:
    """One row for each run of a model; what wrong bits do; how long it took (no two studies agree on that)."""
    runs = {**KEY, "sweeps": int, "n_true": int, "n_found": int, "accuracy": float, "log_score": float}
    bits = {
        **KEY, "accuracy_map": float, "share_all_bits_right": float, "accuracy_if_right": float,
        "accuracy_if_wrong": float, "share_unseen": float, "accuracy_one_flipped": float,
        "share_unseen_one_flipped": float,
    }  # fmt: skip
    timings = {**KEY, "sweeps": int, "fit_seconds": float, "predict_seconds": float}
    return {
        name: RowStore(folder / f"{name}.csv", columns, tuple(KEY), UNITS)
        for name, columns in (("runs", runs), ("bits", bits), ("timings", timings))
    }


def run_study(folder: Path, design: Design, *, n_jobs: int = -1, on_start=None, on_done=None) -> None:
    """Do what is not done yet, `n_jobs` runs at a time, and write each run's rows as soon as it is finished."""
    make_folder(folder)
    with locked(folder):
        check_settings(folder, design.settings())
        stores = make_stores(folder)
        done = {stores["runs"].key(row) for row in stores["runs"].read()}
        tasks = design.tasks()
        undone = [task for task in tasks if task.key() not in done]
        if on_start:
            on_start(tasks, undone)
        if joblib.effective_n_jobs(n_jobs) > 1:  # compile once, so that the processes find the kernels in the cache
            for method in {task.method for task in undone} & set(SAMPLED):
                measure(Task("paper", SNR_DB, 0, method, 0, sweeps=10))
        run_and_store(undone, measure, stores, folder, n_jobs, on_done)

"""What keeps features from explaining noise: noise that is held, a floor under it, or observations that count less.

    python benchmarks/noise.py --tables iris,wine,modechoice,cartpole,anes96

Every table of `experiments.decisions` is split once and fitted in five ways, all with policies that multiply:

- held: the noise is held at 5% of a column's range, as by default for a table (without trials of larger ones);
- floor: a prior worth as many entries as there are, all off by 5%, so that the variance is that of these 5% and of the
  residual together, at least;
- coarsened: as "held", and the likelihood of the N observations to the power of 100 / (100 + N) (Miller & Dunson);
- free: the paper's noise;
- free, coarsened: both.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `experiments`
from experiments.decisions.contestants import Lesson, fit_ours, predict
from experiments.decisions.study import ALL, Design, make_lesson
from experiments.decisions.tables import DATA, load_tables
from whyact import FeaturePolicyClassifier, Priors
from whyact.comparison.scoring import score
from whyact.scaling import USUAL_TOLERANCE

ENOUGH_ROWS = 100  # at which an observation counts half
SHARP = 1e6
PRODUCT = {"combination": "product"}


def set_floor(X: np.ndarray) -> Priors:
    """Priors under which the noise variance is that of the tolerance and of the residual together."""
    scaling = FeaturePolicyClassifier(tolerance=USUAL_TOLERANCE)._make_scaling(X)
    squares = np.sum(~np.isnan(X)) * (scaling.noise / scaling.unit) ** 2
    return Priors(noise_shape=(SHARP, SHARP), noise_rate=(SHARP, SHARP / (squares / 2)))


def make_options(lesson: Lesson) -> dict[str, dict[str, Any]]:
    """What each way sets."""
    weight = ENOUGH_ROWS / (ENOUGH_ROWS + len(lesson.X))
    held: dict[str, Any] = {**PRODUCT, "tolerance": USUAL_TOLERANCE}
    free: dict[str, Any] = {**PRODUCT, "tolerance": "free"}
    return {
        "held": held,
        "floor": {**free, "priors": set_floor(lesson.X)},
        "coarsened": {**held, "observation_weight": weight},
        "free": free,
        "free, coarsened": {**free, "observation_weight": weight},
    }


def main() -> None:
    """Fit, and print a line for each table and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="iris,wine,modechoice,cartpole,anes96")
    parser.add_argument("--seed", type=int, default=151)
    parser.add_argument("--n-jobs", type=int, default=None)
    options = parser.parse_args()
    tables, _ = load_tables(tuple(options.tables.split(",")), DATA)
    design = Design(n_train=400, n_test=1000, seed=options.seed)
    header = ("table", "way", "features", "of chains", "in common", "distance", "noise", "accuracy", "log score", "s")
    print("{:12s} {:16s} {:>8s} {:>16s} {:>9s} {:>8s} {:>6s} {:>8s} {:>9s} {:>4s}".format(*header))
    scores: dict[str, list[float]] = {}
    for name, table in tables.items():
        split = design.split(tables, name, 0)
        lesson = make_lesson(table, split, ALL)
        available = None if table.available is None else table.available[split.test]
        for way, extra in make_options(lesson).items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fit_ours("ours", lesson, {**extra, "n_jobs": options.n_jobs})
            seconds = time.perf_counter() - start
            predicted = predict(model, table.X[split.test], len(table.classes), available)
            judged = score(predicted, table.actions[split.test])
            posterior = model.posterior_
            modes = [int(np.bincount(row.astype(int)).argmax()) for row in posterior.traces["n_features"]]
            scores.setdefault(way, []).append(judged["log_score"])
            print(
                f"{name:12s} {way:16s} {model.n_components_:8d} {' '.join(map(str, modes)):>16s} "
                f"{posterior.share_in_common:9.2f} {posterior.distance:8.3f} {np.sqrt(model.noise_variance_):6.3f} "
                f"{judged['accuracy']:8.3f} {judged['log_score']:9.3f} {seconds:4.0f}",
                flush=True,
            )
    for way, values in scores.items():
        print(f"{'mean':12s} {way:16s} {'':61s} {np.mean(values):19.3f}")


if __name__ == "__main__":
    main()

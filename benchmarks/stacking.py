"""Predictions with weights of the chains by stacking, against all chains alike.

    python benchmarks/stacking.py
    python benchmarks/stacking.py --versions ours-mixture,ours-product --seeds 20,21,22 --burn-in 60 --draws 300

Log score on rows held out of the decisions study's tables, one split for each seed, the same chains for both. The
second command stops the burn-in so early that chains end in different modes.
"""

import argparse
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `experiments`
from experiments.decisions.__main__ import prepare
from experiments.decisions.contestants import fit_ours
from experiments.decisions.study import ALL, Design, make_lesson
from whyact import FeaturePolicyClassifier
from whyact.comparison.scoring import score
from whyact.prediction import Predictor, ProductPredictor


def weigh_alike(model: FeaturePolicyClassifier) -> Predictor:
    """What would predict if all chains had the same weight."""
    result = replace(model._result, chain_weights=None)
    predictor = model._make_predictor(replace(result, cut=None), model._summarise(result))
    if not isinstance(predictor, ProductPredictor):
        return predictor
    return predictor.learn(result.observations, result.actions, result.available)


def main() -> None:
    """Print both for each fit, and the mean difference with its standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="iris,wine,modechoice,cartpole,anes96")
    parser.add_argument("--versions", default="ours")
    parser.add_argument("--seeds", default="8,9")
    parser.add_argument("--burn-in", type=int)
    parser.add_argument("--draws", type=int)
    given = parser.parse_args()
    tables, _ = prepare(given.tables, ("ours",), None)
    options = {"n_burn_in": given.burn_in, "n_draws": given.draws}
    gains = []
    for seed in map(int, given.seeds.split(",")):
        design = Design(n_runs=1, seed=seed)
        for name, table in tables.items():
            split = design.split(tables, name, 0)
            available = None if table.available is None else table.available[split.test]
            for version in given.versions.split(","):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # chains that disagree are what this is about
                    model = fit_ours(version, make_lesson(table, split, ALL), options)
                rows = model._check_new_rows(table.X[split.test])
                stacked, alike = (
                    score(
                        predictor.predict(rows, one_draw=False, maximise=False, available=available).probabilities,
                        table.actions[split.test],
                    )["log_score"]
                    for predictor in (model._predictor, weigh_alike(model))
                )
                gains.append(stacked - alike)
                weights = " ".join(f"{weight:.2f}" for weight in model.posterior_.chain_weights)
                print(
                    f"{name}, seed {seed}, {model.combination_}: weights {weights}; log score {stacked:.4f}, "
                    f"with equal weights {alike:.4f}",
                    flush=True,
                )
    error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
    print(f"mean gain in log score over {len(gains)} fits: {np.mean(gains):+.4f} (standard error {error:.4f})")


if __name__ == "__main__":
    main()

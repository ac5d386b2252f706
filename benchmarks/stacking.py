"""Predictions with weights of the chains by stacking, against all chains alike.

    python benchmarks/stacking.py
    python benchmarks/stacking.py --seeds 20,21,22 --burn-in 60 --draws 300

Log score on rows held out of the decisions study's tables, one split for each seed, the same chains for all. The second
command stops the burn-in so early that chains end in different modes. At the end also: what other pseudo-counts of the
prior gain, and weights that are always used, with the predictions of each chain averaged exactly by the weights.
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
from experiments.decisions.decision_table import DecisionTable
from experiments.decisions.splits import Split
from experiments.decisions.study import ALL, Design, make_lesson
from whyact import FeaturePolicyClassifier
from whyact.comparison.scoring import score
from whyact.cut_policies import spread_out
from whyact.prediction import N_KEPT, Predictor, ProductPredictor
from whyact.stacking import PSEUDO_COUNT, SURELY, weigh_chains

AS_IT_IS = "as the model predicts, with draws in proportion"
ALIKE = "with equal weights"
# Name: pseudo-count of the prior, and by how many standard errors weights must be better than equal ones.
WAYS = {
    "always, pseudo-count 0.01": (0.01, -np.inf),
    "always, pseudo-count 1": (1.0, -np.inf),
    "always, pseudo-count 10": (10.0, -np.inf),
    "if surely better": (PSEUDO_COUNT, SURELY),
}


def weigh_alike(model: FeaturePolicyClassifier) -> Predictor:
    """What would predict if all chains had the same weight."""
    result = replace(model._result, chain_weights=None)
    predictor = model._make_predictor(replace(result, cut=None), model._summarise(result))
    assert isinstance(predictor, ProductPredictor)
    return predictor.learn(result.observations, result.actions, result.available)


def find_weights(model: FeaturePolicyClassifier) -> dict[str, np.ndarray]:
    """The weights by each of the ways."""
    result = replace(model._result, chain_weights=None, cut=None)
    rows = result.observations, result.actions, result.available
    posterior = model._summarise(result)
    product = model._make_predictor(result, posterior)
    draws, probabilities = product.chains_of_draws, product.hold_out(*rows).probabilities
    chains = draws[spread_out(len(draws), len(probabilities))]
    return {name: weigh_chains(probabilities, chains, posterior.n_chains, *way) for name, way in WAYS.items()}


def measure(model: FeaturePolicyClassifier, table: DecisionTable, split: Split) -> dict[str, float]:
    """Log scores as the model predicts, with equal weights, and by each of the ways."""
    rows = model._check_new_rows(table.X[split.test])
    available = None if table.available is None else table.available[split.test]
    alike = weigh_alike(model)
    both = {AS_IT_IS: model._predictor, ALIKE: alike}
    predictions = {
        name: predictor.predict(rows, one_draw=False, maximise=False, available=available).probabilities
        for name, predictor in both.items()
    }
    n_kept = N_KEPT if alike.draws_substates else 0
    of_chains = [alike._run(rows, draws, n_kept, None, available)[0].probabilities for draws in alike.split_by_chain()]
    predictions |= {name: np.tensordot(weights, of_chains, 1) for name, weights in find_weights(model).items()}
    return {name: score(found, table.actions[split.test])["log_score"] for name, found in predictions.items()}


def main() -> None:
    """Print both for each fit, and the mean differences with their standard errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="iris,wine,modechoice,cartpole,anes96")
    parser.add_argument("--versions", default="ours-product")
    parser.add_argument("--seeds", default="8,9")
    parser.add_argument("--burn-in", type=int)
    parser.add_argument("--draws", type=int)
    given = parser.parse_args()
    tables, _ = prepare(given.tables, ("ours",), None)
    options = {"n_burn_in": given.burn_in, "n_draws": given.draws}
    gains: dict[str, list[float]] = {name: [] for name in (AS_IT_IS, *WAYS)}
    for seed in map(int, given.seeds.split(",")):
        design = Design(n_runs=1, seed=seed)
        for name, table in tables.items():
            split = design.split(tables, name, 0)
            for version in given.versions.split(","):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # chains that disagree are what this is about
                    model = fit_ours(version, make_lesson(table, split, ALL), options)
                scores = measure(model, table, split)
                for way, found in gains.items():
                    found.append(scores[way] - scores[ALIKE])
                weights = " ".join(f"{weight:.2f}" for weight in model.posterior_.chain_weights)
                print(
                    f"{name}, seed {seed}, {model.combination_}: weights {weights}; log score {scores[AS_IT_IS]:.4f}, "
                    f"with equal weights {scores[ALIKE]:.4f}",
                    flush=True,
                )
    for way, found in gains.items():
        error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
        print(
            f"{way}: mean gain in log score over {len(found)} fits {np.mean(found):+.4f} "
            f"(standard error {error:.4f}, worst {min(found):+.4f})"
        )


if __name__ == "__main__":
    main()

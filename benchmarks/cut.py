"""A product's policies for predictions, learned from what a new row can show, against those that were sampled.

    python benchmarks/cut.py --tables iris,wine,cartpole,modechoice --seed 8

Log score and accuracy on rows held out of the decisions study's tables, one split each, the same draws for both.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `experiments`
from experiments.decisions.__main__ import prepare
from experiments.decisions.contestants import fit_ours
from experiments.decisions.study import ALL, Design, make_lesson
from whyact.comparison.scoring import score
from whyact.prediction import ProductPredictor


def main() -> None:
    """Print both for each table, and the mean difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="iris,wine,cartpole,modechoice")
    parser.add_argument("--seed", type=int, default=8)
    options = parser.parse_args()
    tables, _ = prepare(options.tables, ("ours-product",), None)
    design = Design(n_runs=1, seed=options.seed)
    gains = []
    for name, table in tables.items():
        split = design.split(tables, name, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chains that disagree are not the question
            model = fit_ours("ours-product", make_lesson(table, split, ALL), {})
        result = model._result
        joint = ProductPredictor(model.posterior_, result.target, model.max_prediction_draws, 0, None)
        rows = model._check_new_rows(table.X[split.test])
        available = None if table.available is None else table.available[split.test]
        scores = [
            score(
                predictor.predict(rows, one_draw=False, maximise=False, available=available).probabilities,
                table.actions[split.test],
            )
            for predictor in (model._predictor, joint)
        ]
        gains.append(scores[0]["log_score"] - scores[1]["log_score"])
        told = [f"log score {one['log_score']:.3f}, accuracy {one['accuracy']:.3f}" for one in scores]
        print(f"{name}: learned for predictions: {told[0]}; as sampled: {told[1]}", flush=True)
    print(f"mean gain in log score over {len(gains)} tables: {np.mean(gains):+.3f}")


if __name__ == "__main__":
    main()

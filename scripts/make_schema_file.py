"""Write the model file that later versions of whyact must be able to read, and what it says.

Run once for each version of the schema, never again for an old one:

    python scripts/make_schema_file.py tests/data
"""

import json
import sys
import warnings
from pathlib import Path

from whyact import DoubtfulFitWarning, FeaturePolicyClassifier, Priors, load_demo
from whyact.storage.model_file import SCHEMA


def main(folder: Path) -> None:
    demo = load_demo(n_rows=40)
    warnings.simplefilter("ignore", DoubtfulFitWarning)
    model = FeaturePolicyClassifier(
        n_burn_in=60, n_draws=10, n_chains=2, random_state=5, priors=Priors(ibp_mass=(1, 2)), missing_action="none"
    ).fit(demo.X[:30], demo.y[:30])
    path = folder / f"model-schema-{SCHEMA}.nc"
    model.save(path, shape=(6, 6))
    said = {
        "classes": model.classes_.tolist(),
        "n_burn_in": model.n_burn_in,
        "decisiveness": model.decisiveness_,
        "components": model.components_.tolist(),
        "policies": model.policies_.tolist(),
        "X": demo.X[30:33].tolist(),
        "probabilities": model.predict_proba(demo.X[30:33]).tolist(),
    }
    path.with_suffix(".json").write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

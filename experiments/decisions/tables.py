"""The data sets of the study by name, and how each is loaded."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sklearn import datasets

from experiments.decisions.controllers import load_simulated_driver, record_controller
from experiments.decisions.decision_table import DecisionTable
from experiments.decisions.people import (
    MTC_FILE,
    SWISSMETRO_FILE,
    load_anes96,
    load_fair,
    load_modechoice,
    read_mtc,
    read_swissmetro,
)

# Beside the repository, for development; a user's copy may be anywhere.
DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "decisions"


class Source(NamedTuple):
    """A data set that is known by name."""

    label: str
    kind: str  # people, controllers or classics
    load: Callable[..., DecisionTable]  # of the path of the file, if it needs one
    file: str | None = None


def load_classic(name: str, about: str) -> DecisionTable:
    """A data set of scikit-learn: nobody decides anything in it, its classes stand in for actions."""
    bunch = getattr(datasets, f"load_{name}")()
    columns = [str(column) for column in bunch.feature_names]
    return DecisionTable(bunch.data, bunch.target_names[bunch.target].astype(str), columns, about)


SOURCES = {
    "swissmetro": Source("Swissmetro", "people", read_swissmetro, SWISSMETRO_FILE),
    "mtc": Source("MTC work trips", "people", read_mtc, MTC_FILE),
    "modechoice": Source("travel modes", "people", load_modechoice),
    "fair": Source("affairs", "people", load_fair),
    "anes96": Source("votes", "people", load_anes96),
    "cartpole": Source("CartPole", "controllers", partial(record_controller, "cartpole")),
    "mountaincar": Source("MountainCar", "controllers", partial(record_controller, "mountaincar")),
    "acrobot": Source("Acrobot", "controllers", partial(record_controller, "acrobot")),
    "traffic": Source("simulated traffic", "controllers", load_simulated_driver),
    "iris": Source("iris", "classics", partial(load_classic, "iris", "Species of iris flowers.")),
    "wine": Source("wine", "classics", partial(load_classic, "wine", "Growers of wines, by chemical analysis.")),
    "cancer": Source(
        "breast cancer", "classics", partial(load_classic, "breast_cancer", "Benign and malignant tumours of a breast.")
    ),
    "digits": Source("digits", "classics", partial(load_classic, "digits", "Handwritten digits of 8 x 8 pixels.")),
}


def load_tables(names: tuple[str, ...], folder: Path) -> tuple[dict[str, DecisionTable], list[str]]:
    """The data sets by name, and why each of the others is left out."""
    tables, left_out = {}, []
    for name in names:
        source = SOURCES[name]
        if source.file is None:
            tables[name] = source.load()
        elif (folder / source.file).exists():
            tables[name] = source.load(folder / source.file)
        else:
            left_out.append(say_where_to_get(name, folder))
    return tables, left_out


def say_where_to_get(name: str, folder: Path) -> str:
    """How to come by a file that whyact may not ship, in one sentence."""
    return (
        f"{name} is left out because there is no {SOURCES[name].file} in {folder}; it is in the folder data_warehouse/ "
        "of the wheel of larch, version 6 (pip download --no-deps 'larch==6.*'), which is a zip archive."
    )

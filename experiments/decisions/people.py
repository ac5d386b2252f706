"""Decisions of people: how they travel and vote, and what they admit to."""

from pathlib import Path

import numpy as np
import pandas

from experiments.decisions.decision_table import DecisionTable, import_extra, make_table

SWISSMETRO_FILE, MTC_FILE = "swissmetro.csv.gz", "MTCwork.csv.gz"

# Codes of the alternatives. The names are the actions; sorted, they are the columns of the availability.
SWISSMETRO_MODES = {1: "train", 2: "swissmetro", 3: "car"}
SWISSMETRO_PREFIXES = {"train": "TRAIN_", "swissmetro": "SM_", "car": "CAR_"}
MTC_MODES = {1: "drive alone", 2: "shared ride 2", 3: "shared ride 3+", 4: "transit", 5: "bike", 6: "walk"}
GREENE_MODES = {1: "air", 2: "train", 3: "bus", 4: "car"}

# What differs by alternative.
MTC_VALUES = ["ivtt", "ovtt", "tottime", "totcost"]
GREENE_VALUES = ["ttme", "invc", "invt", "gc"]
# The waiting time of a mode that was not taken is one of two round figures for all (69 or 64 minutes by air), that of
# the mode taken is what the traveller said: the column tells the action, and nobody knows it before.
GREENE_LEAK = "ttme"

SWISSMETRO_BOOKKEEPING = ["GROUP", "SURVEY", "SP", "ID"]
# `vocc` is how many sat in the vehicle on the trip that was taken: 1 if driven alone, 2 if shared by two, 0 in transit.
# It tells the action, and nobody knows it before.
MTC_BOOKKEEPING = ["hhid", "perid", "wkzone", "hmzone", "wgt", "vocc"]

SWISSMETRO_ABOUT = (
    "Stated choices between train, car and a planned magnetic train (Bierlaire, Axhausen and Abay, 2001), nine by each "
    "person; split by person."
)
MTC_ABOUT = (
    "Trips to work in the San Francisco Bay Area, 1990, by car, shared car, transit, bike or on foot; split by "
    "household, of which all members have many columns in common."
)
GREENE_ABOUT = "Trips between Sydney, Canberra and Melbourne by air, train, bus or car (Greene), one by each person."
FAIR_ABOUT = "Whether a woman says that she had an affair, by her marriage, age, faith and work (Fair, 1978)."
ANES96_ABOUT = "Whether a person expects to vote for Clinton or Dole (American National Election Study, 1996)."


# --- files that the user brings -------------------------------------------------------------------------------------


def read_swissmetro(path: Path) -> DecisionTable:
    """Swissmetro, without the questions that were not answered."""
    answers = pandas.read_csv(path)
    answers = answers[answers["CHOICE"] > 0]
    availability = {mode: answers[f"{prefix}AV"] == 1 for mode, prefix in SWISSMETRO_PREFIXES.items()}
    flags = [f"{prefix}AV" for prefix in SWISSMETRO_PREFIXES.values()]
    observed = answers.drop(columns=[*SWISSMETRO_BOOKKEEPING, *flags, "CHOICE"]).astype(float)
    for mode, prefix in SWISSMETRO_PREFIXES.items():
        own = [name for name in observed if name.startswith(prefix)]
        observed.loc[~availability[mode], own] = np.nan
    y = np.array([SWISSMETRO_MODES[choice] for choice in answers["CHOICE"]])
    available = np.column_stack([availability[mode] for mode in sorted(availability)])
    return make_table(observed, y, SWISSMETRO_ABOUT, answers["ID"].to_numpy(), available)


def read_mtc(path: Path) -> DecisionTable:
    """Work trips around San Francisco, one row a commuter; an alternative without a row could not be taken."""
    trips = pandas.read_csv(path)
    observed, y = make_wide(trips, "casenum", "altnum", "chose", MTC_VALUES, MTC_MODES)
    households = observed["hhid"].to_numpy()
    available = np.column_stack([observed[f"tottime {mode}"].notna() for mode in sorted(MTC_MODES.values())])
    return make_table(observed.drop(columns=MTC_BOOKKEEPING), y, MTC_ABOUT, households, available)


def make_wide(
    rows: pandas.DataFrame, case: str, alternative: str, chosen: str, values: list[str], modes: dict[int, str]
) -> tuple[pandas.DataFrame, np.ndarray]:
    """One row a decision from one row an alternative: what is known before the decision, and the action taken."""
    rows = rows.sort_values([case, alternative])
    by_mode = rows.pivot(index=case, columns=alternative, values=values)
    by_mode.columns = pandas.Index([f"{value} {modes[int(code)]}" for value, code in by_mode.columns])
    shared = rows.drop_duplicates(case).set_index(case).drop(columns=[alternative, chosen, *values])
    taken = rows[rows[chosen] == 1].set_index(case)[alternative].loc[shared.index]
    return shared.join(by_mode), np.array([modes[int(code)] for code in taken])


# --- what comes with statsmodels ------------------------------------------------------------------------------------


def load_statsmodels(name: str) -> pandas.DataFrame:
    """A data set that is part of statsmodels."""
    # an extra that nothing but this study needs
    datasets = import_extra("statsmodels.datasets", "experiments")
    return getattr(datasets, name).load_pandas().data


def load_modechoice() -> DecisionTable:
    """Greene's trips, one row a person; everyone could take all four modes."""
    rows = load_statsmodels("modechoice")
    observed, y = make_wide(rows, "individual", "mode", "choice", GREENE_VALUES, GREENE_MODES)
    leaks = [name for name in observed if name.startswith(GREENE_LEAK)]
    return make_table(observed.drop(columns=leaks), y, GREENE_ABOUT)


def load_fair() -> DecisionTable:
    """Fair's survey: whether there was an affair, not how much of it."""
    rows = load_statsmodels("fair")
    return make_table(rows.drop(columns="affairs"), np.where(rows["affairs"] > 0, "yes", "no"), FAIR_ABOUT)


def load_anes96() -> DecisionTable:
    """The election study; of the population, which it has twice, only the logarithm."""
    rows = load_statsmodels("anes96")
    return make_table(
        rows.drop(columns=["vote", "popul"]), np.where(rows["vote"] == 1, "Dole", "Clinton"), ANES96_ABOUT
    )

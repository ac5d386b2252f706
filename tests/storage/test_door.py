"""The one door: what comes from a file and reaches a kernel fits, whatever file it comes from."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.support.forging import add_values, forge, put, set_attribute, set_values
from tests.support.paths import ROOT
from tests.support.plain import PLAIN
from tests.support.stand_in import make_model
from whyact import ClusterPolicyClassifier, FeaturePolicyClassifier, PatternPolicyClassifier
from whyact.errors import CheckpointError, DamagedFileError
from whyact.storage import door

pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")
STATE, DRAWS = "state.nc", "draws-00000.nc"
CHAINS = {"n_burn_in": 6, "n_draws": 4, "thin": 1, "n_chains": 1, "random_state": 0}
LONGER = {"n_draws": 6}
MODELS = {
    "exact": FeaturePolicyClassifier(**PLAIN | CHAINS, n_components=3),
    "product": FeaturePolicyClassifier(**PLAIN | CHAINS | {"combination": "product"}, max_features=4),
    "patterns": PatternPolicyClassifier(**CHAINS),
    "clusters": ClusterPolicyClassifier(**CHAINS),
}


@pytest.fixture(scope="module")
def runs(demo, tmp_path_factory):
    """Folders with the checkpoints of a run of each model."""
    from sklearn.base import clone

    found = {}

    def get(name):
        if name not in found:
            found[name] = tmp_path_factory.mktemp(name) / "run"
            clone(MODELS[name]).fit(demo.X[:30], demo.y[:30], checkpoint=found[name])
        return found[name]

    return get


def move_one(values):
    """One feature of the first draw belongs to the second."""
    values[:2] += [-1, 1]


def cut_column(values):
    return values[:, :-1].copy()


def add_column(values):
    return np.column_stack([values, values[:, :1]])


HOSTILE = [
    # another width than the number of actions reached the kernels, which read and wrote beyond the array
    ("exact", STATE, set_values("chain-0", "policies", cut_column), "'policies' does not match"),
    ("exact", STATE, set_values("chain-0", "policies", add_column), "'policies' does not match"),
    ("exact", STATE, set_values("chain-0", "policies", put((0, 0), np.nan)), "'policies' has an unexpected type"),
    ("exact", STATE, set_values("chain-0", "policies", put((0, 0), 3.0)), "'policies' does not hold probabilities"),
    ("exact", STATE, set_values("chain-0", "policies", lambda v: v / 2), "'policies' does not sum to one"),
    ("exact", STATE, set_values("chain-0", "substates", put((0, 0), 2.0)), "'substates' are not on their grid"),
    ("exact", STATE, set_values("chain-0", "substates", put((0, 0), 0.123456)), "'substates' are not on their grid"),
    ("exact", STATE, set_values("chain-0", "substates", cut_column), "'substates' does not match"),
    ("exact", STATE, set_values("chain-0", "substates", lambda v: v.astype("f4")), "'substates' have an unexpected"),
    ("exact", STATE, set_values("chain-0", "features", put((0, 0), -1.0)), "'features' are not positive"),
    ("exact", STATE, set_values("chain-0", "features", put((0, 0), 1e200)), "'features' are too large"),
    ("exact", STATE, set_values("chain-0", "scalars", put(0, 1e-200)), "'noise_variance' is not positive"),
    ("exact", STATE, set_values("chain-0", "scalars", put(3, np.inf)), "is not a number"),
    ("exact", STATE, add_values("chain-0", "base_policy", np.full(5, 0.2)), "'base_policy' does not match"),
    ("exact", STATE, set_attribute("entropy", 3), "'entropy' is wrong"),
    ("exact", STATE, lambda groups: groups["/"].attributes.pop("entropy"), "'entropy' is wrong"),
    ("product", STATE, set_values("chain-0", "base_policy", lambda v: v[:-1].copy()), "'base_policy' does not match"),
    ("product", STATE, set_values("chain-0", "base_policy", put(0, 0.0)), "'base_policy' does not hold"),
    ("product", STATE, lambda groups: groups["chain-0"].variables.pop("base_policy"), "'base_policy' does not match"),
    ("patterns", STATE, set_values("chain-0", "policies", lambda v: np.ones((len(v), 5))), "'policies' does not match"),
    ("clusters", STATE, set_values("chain-0", "substates", lambda v: np.ones_like(v) - v), "one cluster|not match"),
    ("clusters", STATE, set_values("chain-0", "substates", lambda v: 0 * v), "one cluster for each row"),
    # draws were taken as they are, and a model that no loader accepts was made of them
    ("exact", DRAWS, set_values("chain-0", "policies", put((0, 0), np.nan)), "'policies' has an unexpected type"),
    ("exact", DRAWS, set_values("chain-0", "policies", cut_column), "'policies' does not match"),
    ("exact", DRAWS, set_values("chain-0", "levels", put((0, 0), 255)), "'substates' are not on their grid"),
    ("exact", DRAWS, set_values("chain-0", "levels", lambda v: v.astype("u2")), "'substates' have an unexpected type"),
    ("exact", DRAWS, set_values("chain-0", "sizes", move_one), "'sizes' is wrong"),
    ("product", DRAWS, set_values("chain-0", "sizes", move_one), "'n_features' does not match|'sizes' is wrong"),
    ("product", DRAWS, set_values("chain-0", "sizes", put(0, -1)), "'sizes' is wrong"),
    ("product", DRAWS, set_values("chain-0", "sizes", put(0, 2**62)), "'sizes' is wrong"),
    ("product", DRAWS, set_values("chain-0", "base_policy", lambda v: v[:-1].copy()), "'base_policy' does not match"),
    ("exact", DRAWS, set_values("chain-0", "features", put((0, 0), np.inf)), "'features' are not all numbers"),
    ("exact", DRAWS, set_values("chain-0", "traces", put((0, 2), np.nan)), "'traces' is not a number in each draw"),
    ("exact", DRAWS, set_values("chain-0", "traces", put((0, 4), -1.0)), "'noise_variance' is not positive"),
    ("exact", DRAWS, set_values("chain-0", "traces", cut_column), "'traces' does not match"),
    ("exact", DRAWS, lambda groups: groups["chain-0"].variables.pop("levels"), "'levels' is missing"),
    ("exact", DRAWS, lambda groups: groups.pop("chain-0"), "does not match the run"),
    ("clusters", DRAWS, set_values("chain-0", "levels", lambda v: 1 - v), "one cluster|not match"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "file", "edit", "sentence"), HOSTILE)
def test_a_hostile_checkpoint_reaches_no_kernel(name, file, edit, sentence, runs, demo, tmp_path):
    from sklearn.base import clone

    folder = tmp_path / "run"
    shutil.copytree(runs(name), folder)
    forge(folder / file, edit)
    with pytest.raises(CheckpointError, match=sentence) as error:
        clone(MODELS[name]).set_params(**LONGER).fit(demo.X[:30], demo.y[:30], checkpoint=folder)
    assert file in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", list(MODELS))
def test_an_honest_checkpoint_passes(name, runs, demo, tmp_path):
    from sklearn.base import clone

    folder = tmp_path / "run"
    shutil.copytree(runs(name), folder)
    for file in (STATE, DRAWS):
        forge(folder / file, lambda groups: None)
    model = clone(MODELS[name]).set_params(**LONGER).fit(demo.X[:30], demo.y[:30], checkpoint=folder)
    assert model.posterior_.n_draws == 6


# --- warm starts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"policies": np.full((3, 4), 0.25)}, "'policies' does not match"),
        ({"substates": np.full((3, 30), 0.123)}, "'substates' are not on their grid"),
        ({"features": np.full((3, 36), 1e300)}, "'features' are too large"),
        ({"noise_variance": 1e-290}, "'noise_variance' is not positive"),
    ],
)
def test_a_warm_start_goes_on_only_from_what_fits(change, sentence, demo):
    from sklearn.base import clone

    model = clone(MODELS["exact"]).set_params(warm_start=True).fit(demo.X[:30], demo.y[:30])
    before = model.posterior_
    end = model._result.end
    states = [end.states[0]._replace(**change)]
    model._result = replace(model._result, end=end._replace(states=states))
    with pytest.raises(ValueError, match=rf"warm_start=True cannot go on from the last fit, because {sentence}"):
        model.set_params(**LONGER).fit(demo.X[:30], demo.y[:30])
    assert model.posterior_ is before


# --- the door by itself -------------------------------------------------------------------------------------


@pytest.fixture
def frame():
    model = make_model()
    return door.make_frame(model._result.target, 30, 6), model.posterior_.chains[0]


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e301, 1e-301])
def test_no_single_number_is_out_of_range(number, frame):
    frame, chain = frame
    state = chain.state(0)
    door.check_state(state, frame)
    for name in state._fields[3:-1]:
        with pytest.raises(DamagedFileError, match=name):
            door.check_state(state._replace(**{name: number}), frame)


def test_no_array_of_draws_may_be_shorter_than_the_others(frame):
    frame, chain = frame
    arrays = chain.to_arrays()
    door.check_draws(arrays, frame)
    for name, values in arrays.items():
        with pytest.raises(DamagedFileError):
            door.check_draws(arrays | {name: values[:-1]}, frame)
        with pytest.raises(DamagedFileError):
            door.check_draws(arrays | {name: np.concatenate([values, values[:1]])}, frame)


def test_the_number_of_features_is_within_its_bounds(frame):
    frame, chain = frame
    for bounds in ({"min_features": 4}, {"max_features": 2}):
        with pytest.raises(DamagedFileError, match="'sizes' is wrong"):
            door.check_draws(chain.to_arrays(), frame._replace(**bounds))
        with pytest.raises(DamagedFileError, match="'sizes' is wrong"):
            door.check_state(chain.state(0), frame._replace(**bounds))


@pytest.mark.parametrize(
    ("observations", "actions", "n_classes"),
    [
        (np.zeros((0, 3)), np.zeros(0, int), 2),
        (np.full((2, 3), np.inf), np.zeros(2, int), 2),
        (np.zeros((2, 3)), np.array([0, 2]), 2),
        (np.zeros((2, 3)), np.array([0, -2]), 2),
        (np.zeros((2, 3)), np.zeros(3, int), 2),
        (np.zeros((2, 3)), np.zeros(2, int), 0),
    ],
)
def test_demonstrations_fit(observations, actions, n_classes):
    with pytest.raises(DamagedFileError):
        door.check_demonstrations(observations, actions, n_classes)


# --- with the kernels' bounds checked -----------------------------------------------------------------------


@pytest.mark.long
def test_no_kernel_leaves_its_arrays(tmp_path):
    """All that is loaded and resumed here and in the suites of the loaders, with numba's bounds checks on.

    In a process of its own, with a cache of its own: kernels that are compiled already would not check.
    """
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    beyond = "import numpy\nfrom whyact.sampler.compiling import kernel\nkernel(lambda x: x[5])(numpy.zeros(2))"
    checked = subprocess.run(
        [sys.executable, "-c", beyond], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert "IndexError: index is out of bounds" in checked.stderr
    suites = ["test_door.py", "test_model_file.py", "test_checkpoint.py"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/storage/{name}" for name in suites)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-3000:]

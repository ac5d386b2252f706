"""Which observations are held out: a fifth of them, in two ways.

Random rows, as in the paper: most of them have a neighbour among the rows to learn from, a tenth of a second away.
Blocks of consecutive frames: these are situations never seen.
"""

import numpy as np

from experiments.driving.scenes import DrivingScene
from whyact.comparison.folds import SPLITS, Fold, make_folds

N_PARTS = 5  # one of which is held out
BLOCK_LENGTH = 15  # in frames
N_TRIES = 1000


def hold_out(scene: DrivingScene, split: str, run: int, seed: int) -> Fold:
    """The rows of a run: the same for every model, and for every study with this seed."""
    random = np.random.RandomState([seed, SPLITS.index(split), run])
    if split == "blocked":
        return hold_out_blocks(scene.actions, scene.frames, run, random)
    codes = np.unique(scene.actions, return_inverse=True)[1]
    return make_folds(codes, None, ("random",), N_PARTS, 1, random)[0]._replace(repeat=run)


def hold_out_blocks(actions: np.ndarray, frames: np.ndarray, run: int, random: np.random.RandomState) -> Fold:
    """Hold out a fifth of the blocks of consecutive frames, chosen at random.

    Rows that share a frame with a row held out are not learned from either. Blocks are drawn again if only one action
    would be left to learn from.
    """
    blocks = (frames - frames[0]) // BLOCK_LENGTH
    names = np.unique(blocks)
    n_held = max(1, round(len(names) / N_PARTS))
    for _ in range(N_TRIES):
        held = np.isin(blocks, random.choice(names, n_held, replace=False))
        shares = np.isin(frames - 1, frames[held]) | np.isin(frames + 1, frames[held])
        train = np.flatnonzero(~held & ~shares)
        if len(np.unique(actions[train])) > 1:
            seed = int(random.randint(2**31 - 1))
            return Fold("blocked", run, 0, train, np.flatnonzero(held), blocks[train], seed)
    raise ValueError("whichever blocks are held out, only one action is left to learn from.")

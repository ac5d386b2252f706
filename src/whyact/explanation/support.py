"""How many features there are, and who finds them: the sentences of `print(model)`, `info` and the report."""

from typing import Any

import numpy as np


def say_support(model: Any, noun: str) -> str:
    """Who finds the features of a fitted model, and how many the draws have, in one sentence."""
    posterior = model.posterior_
    told = [say_who_finds_them(posterior)] if model.n_components_ and finds_features(posterior) else []
    if getattr(model, "n_components", None) is None:  # otherwise all draws have as many, which says nothing
        low, high = posterior.n_features_interval()
        told.append(f"draws have {low}" + f" to {high}" * (high > low) + f" {noun}{'s' * (high != 1)}")
    sentence = "; ".join([*told, f"noise {np.sqrt(model.noise_variance_):.3g}."])
    return sentence[0].upper() + sentence[1:]


def finds_features(posterior: Any) -> bool:
    """Whether there is anything to say about who finds them: as published, one draw is shown as it is."""
    return bool(posterior.representative != "joint" and posterior.n_chains > 1)


def say_who_finds_them(posterior: Any) -> str:
    """Whether the chains have found the same features, without a full stop; there is at least one feature."""
    aligned = posterior.aligned
    in_all = aligned.in_all_chains
    in_most = ~in_all & (aligned.presence > 0.5)
    count, n_in_all, n_in_most = len(in_all), int(in_all.sum()), int(in_most.sum())
    n_in_few = count - n_in_all - n_in_most
    if n_in_few == count:
        return "the draws have no feature in common, so these are only those of one draw"
    if posterior.n_chains == 1:
        told = [f"more than half of the draws hold {name_part(n_in_all, count)}"]
    else:
        n_counting = int(posterior.counts.sum())
        find = "finds" if n_counting == 1 else "find"
        told = [f"{name_chains(posterior.n_chains, n_counting)} {find} {name_part(n_in_all, count)}"]
    if n_in_most:
        told.append(f"more than half of the draws hold {name_others(n_in_most, count - n_in_all, n_in_all)}")
    if n_in_few:
        are, them = ("is", "it") if n_in_few == 1 else ("are", "them")
        told.append(f"{n_in_few} {are} in less than half of the draws, so do not rely on {them}")
    return "; ".join(told)


def name_part(number: int, count: int) -> str:
    """So many of all features, in words."""
    if number == count:
        return "it" if count == 1 else "all of them"
    return f"{number or 'none'} of them"


def name_others(number: int, n_left: int, n_told: int) -> str:
    """So many of the features that are left, if some were told about."""
    if number < n_left:
        return f"{number} more" if n_told else f"{number} of them"
    if not n_told:
        return "it" if number == 1 else "all of them"
    return "the other one" if number == 1 else f"the other {number}"


def name_chains(n_chains: int, n_with_weight: int) -> str:
    """All chains that have weight, in words; there are at least two chains."""
    which = " that have weight" if n_with_weight < n_chains else ""
    if n_with_weight == 1:
        return "the only chain that has weight"
    return ("both chains" if n_with_weight == 2 else f"all {n_with_weight} chains") + which

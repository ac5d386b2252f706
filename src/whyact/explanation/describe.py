"""What a fitted model says, in a few lines of text."""

import numpy as np

# Entries below this share of the strongest one are not worth naming.
WORTH_NAMING = 0.05


def describe(model, *, column_names=None, n_entries: int = 4) -> str:
    """Describe each feature: what it looks like, what it makes the teacher do, how sure.

    `column_names` default to those of the data frame that the model was fitted to, else x0, x1, ...
    """
    names = find_names(model, column_names)
    aligned = model.posterior_.aligned
    lines = [say_how_many(model, "feature")]
    for k in range(model.n_components_):
        lines.append(f"  feature {k}: {say_looks(aligned.features['mean'][k], names, n_entries)}")
        rows = np.mean(model.substates_[:, k] > 0)
        lines.append(
            f"    -> {say_policy(model, k)}in {rows:.0%} of the rows, found in {aligned.presence[k]:.0%} of the draws"
        )
    lines.append(model.posterior_.agreement())
    return "\n".join(lines)


def find_names(model, column_names):
    """Names of the columns of X."""
    if column_names is not None:
        return column_names
    return getattr(model, "feature_names_in_", [f"x{d}" for d in range(model.n_features_in_)])


def say_how_many(model, what: str) -> str:
    count = model.n_components_
    probability = model.posterior_.n_features_probabilities[count]
    return (
        f"{count} {what}{'s' * (count != 1)} explain{'s' * (count == 1)} {len(model.substates_)} demonstrations "
        f"(P(K = {count}) = {probability:.2f}); noise {np.sqrt(model.noise_variance_):.3g}."
    )


def find_strongest(entries) -> list[int]:
    """The entries worth naming, strongest first."""
    order = np.argsort(-np.abs(entries))
    return [d for d in order if abs(entries[d]) > WORTH_NAMING * abs(entries[order[0]])]


def say_looks(entries, names, n_entries: int, form: str = "{:.2f}") -> str:
    """Name the strongest entries with their values."""
    named = find_strongest(entries)
    rest = f" and {len(named) - n_entries} more" if len(named) > n_entries else ""
    return ", ".join(f"{names[d]} {form.format(entries[d])}" for d in named[:n_entries]) + rest


def name_strongest(entries, names, n_entries: int) -> str:
    """Name the strongest entries, in few words."""
    named = find_strongest(entries)
    return ", ".join(str(names[d]) for d in named[:n_entries]) + (", ..." if len(named) > n_entries else "")


def say_policy(model, k: int) -> str:
    """Name the favourite action of a feature or cluster with its interval; nothing if no action was ever seen."""
    if not len(model.classes_):
        return ""
    aligned = model.posterior_.aligned
    best = int(np.argmax(aligned.policies["mean"][k]))
    mean, low, high = (aligned.policies[name][k, best] for name in ("mean", "low", "high"))
    return f"{model.classes_[best]} with {mean:.2f} ({aligned.interval:.0%} interval {low:.2f} to {high:.2f}); "

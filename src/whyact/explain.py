"""What a fitted model says, in a few lines of text."""

import numpy as np

# Entries below this share of the strongest one are not worth naming.
WORTH_NAMING = 0.05


def describe(model, *, column_names=None, n_entries: int = 4) -> str:
    """Describe each feature: what it looks like, what it makes the teacher do, how sure.

    `column_names` default to those of the data frame that the model was fitted to, else x0, x1, ...
    """
    posterior = model.posterior_
    aligned = posterior.aligned
    names = column_names
    if names is None:
        names = getattr(model, "feature_names_in_", [f"x{d}" for d in range(model.n_features_in_)])
    count = model.n_components_
    probability = posterior.n_features_probabilities[count]
    n_rows = len(model.substates_)
    lines = [
        f"{count} feature{'s' * (count != 1)} explain{'s' * (count == 1)} {n_rows} demonstrations "
        f"(P(K = {count}) = {probability:.2f}); noise {np.sqrt(model.noise_variance_):.3g}."
    ]
    for k in range(count):
        entries = aligned.features["mean"][k]
        order = np.argsort(-np.abs(entries))
        named = [d for d in order if abs(entries[d]) > WORTH_NAMING * abs(entries[order[0]])]
        looks = ", ".join(f"{names[d]} {entries[d]:.2f}" for d in named[:n_entries])
        rest = f" and {len(named) - n_entries} more" if len(named) > n_entries else ""
        rows = np.mean(model.substates_[:, k] > 0)
        lines.append(f"  feature {k}: {looks}{rest}")
        policy = ""
        if len(model.classes_):
            best = int(np.argmax(aligned.policies["mean"][k]))
            mean, low, high = (aligned.policies[name][k, best] for name in ("mean", "low", "high"))
            policy = (
                f"{model.classes_[best]} with {mean:.2f} ({aligned.interval:.0%} interval {low:.2f} to {high:.2f}); "
            )
        lines.append(f"    -> {policy}in {rows:.0%} of the rows, found in {aligned.presence[k]:.0%} of the draws")
    lines.append(posterior.agreement())
    return "\n".join(lines)

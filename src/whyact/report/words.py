"""The findings of a report in plain sentences."""

from whyact.report.plain import Plain, count_of

MUCH_LESS_SURE = 0.15  # the teacher seems decisive if accuracy exceeds mean confidence by more than this,
LEAST_ROWS = 30  # measured on at least this many rows
DECISIVE = 10.0  # the value that the page suggests
OTHER_WAY = {
    "product": "in a mixture features would share the decision, each voting for its actions",
    "mixture": "in a product features would multiply, so that one can also speak against an action",
}


def say_number(summary: Plain) -> Plain:
    """How many features there are, how many of them are enough to predict, and how sure that is."""
    number, demonstrations = summary["number"], count_of(summary["fit"]["n_rows"], "demonstration")
    count = number["count"]
    if count == 0:
        finding = f"No feature was found in {demonstrations}."
    else:
        finding = f"{count_of(count, 'feature')} {'explains' if count == 1 else 'explain'} {demonstrations}."
    return {"finding": finding, "how_sure": say_how_sure(number), "matters": summary["matters"]}


def say_how_sure(number: Plain) -> str:
    """How far the number of features can be trusted."""
    sentences = ["The number was given (n_components), so it is no finding."] if number["is_given"] else []
    if number["who_finds_them"]:
        sentences.append(f"{number['who_finds_them'][0].upper()}{number['who_finds_them'][1:]}.")
    if number["is_given"]:
        return " ".join(sentences)
    low, high = number["low"], number["high"]
    if low == high:
        sentences.append(f"At least 90% of the draws have {count_of(low, 'feature')}.")
    else:
        sentences.append(f"90% of the draws have {low:,} to {high:,} features.")
    if number["count"] and high > number["count"] and number["n_confirmed"]:
        sentences.append("Those that at most half of the draws hold are not shown.")
    if number["most_frequent"] == number["most_allowed"]:
        sentences.append("More than this maximum are not allowed (max_features), so there may be more.")
    return " ".join(sentences)


def say_accuracy(summary: Plain) -> list[str]:
    """How well actions are predicted, compared with always predicting the most frequent one."""
    quality = summary["quality"]
    if not summary["actions"]:
        return ["No actions were given, so it is not known what the features make the teacher do."]
    if quality["accuracy"] is None:
        return ["None of these demonstrations has a known action, so predictions could not be checked."]
    accuracy, usual = quality["accuracy"], quality["usual_action"]
    which = {
        "none": "demonstrations that the model had not seen",
        "some": "demonstrations given as new",
        "all": "demonstrations that the model learned from",
    }[how_many_seen(quality)]
    sentences = [
        f"The predicted action matched the teacher's in {accuracy['n_correct']:,} of {accuracy['n']:,} {which}: "
        f"accuracy {accuracy['value']:.2f} (95% interval {accuracy['low']:.2f} to {accuracy['high']:.2f})."
    ]
    if how_many_seen(quality) == "all":
        sentences.append(
            "This is too optimistic, because the model has seen them before. Expect less on new demonstrations."
        )
    elif how_many_seen(quality) == "some":
        sentences[0] += " " + say_seen(quality)
    usual_name = summary["actions"][usual["action"]]
    if usual["accuracy"] >= accuracy["low"]:
        sentences.append(
            f"This is not clearly better than always predicting “{usual_name}”, "
            f"which has an accuracy of {usual['accuracy']:.2f}."
        )
    else:
        sentences.append(
            f"For comparison: always predicting “{usual_name}” would have an accuracy of {usual['accuracy']:.2f}."
        )
    return sentences


def how_many_seen(quality: Plain) -> str:
    """How many of the rows that quality is measured on the model learned from: "none", "some" or "all"."""
    if quality["rows"] != "new" or quality["n_seen"] == quality["n_rows"]:
        return "all"
    return "some" if quality["n_seen"] else "none"


def say_seen(quality: Plain) -> str:
    """How many of the rows given as new the model learned from, and what that means."""
    n_seen = quality["n_seen"]
    return (
        f"{n_seen:,} of the {count_of(quality['n_rows'], 'row')} {'is' if n_seen == 1 else 'are'} among those the "
        "model learned from (equal in every column and in the action), so these figures flatter it."
    )


def say_rows(summary: Plain) -> Plain:
    """On which rows quality is measured, what that means, and whether it flatters the model."""
    quality, has_actions = summary["quality"], bool(summary["actions"])
    rows = count_of(quality["n_rows"], "demonstration")
    seen = how_many_seen(quality)
    sentences = []
    if not has_actions:
        sentences.append("No actions were given, so there is nothing to predict.")
    if seen == "none":
        sentences.append(f"Measured on {rows} that the model did not learn from.")
    elif seen == "some":
        sentences.append(f"Measured on {rows} that were given as new. {say_seen(quality)}")
    else:
        why = (
            "because no others were given"
            if quality["rows"] != "new"
            else "although they were given as new: each is equal to one of those"
        )
        worse = " It is like an exam with known questions: the model will do worse on new demonstrations." * has_actions
        sentences.append(f"Measured on {rows} that the model learned from, {why}.{worse}")
    if quality["n_rows"] < quality["n_available"]:
        sentences.append(
            f"They are evenly spread among {quality['n_available']:,}; to save time, the others were not predicted."
        )
    if has_actions and quality["n_known"] < quality["n_rows"]:
        sentences.append(f"In {quality['n_rows'] - quality['n_known']:,} of them, the action is not known.")
    return {"flatters": has_actions and seen != "none", "words": " ".join(sentences)}


def say_sureness(summary: Plain) -> str:
    """Advice if the teacher seems more decisive than the user has told the model; otherwise an empty text."""
    quality, fit = summary["quality"], summary["fit"]
    accuracy = quality["accuracy"]
    if fit["combination"] != "mixture" or fit["is_decisiveness_learned"]:
        return ""
    if accuracy is None or accuracy["n"] < LEAST_ROWS:
        return ""
    if accuracy["value"] - quality["mean_confidence"] <= MUCH_LESS_SURE:
        return ""
    decisiveness = fit["decisiveness"]
    example = f" (--decisiveness {DECISIVE:g} on the command line)" if decisiveness < DECISIVE else ""
    return (
        f"The model is right {accuracy['value']:.0%} of the time but, on average, only "
        f"{quality['mean_confidence']:.0%} sure. The teacher seems decisive; try a decisiveness above "
        f"{max(decisiveness, 1):g}{example}, or let it be learned."
    )


def say_combination(summary: Plain) -> list[str]:
    """How the features in an observation act together, for readers who know neither mixtures nor log odds."""
    fit = summary["fit"]
    if not summary["actions"]:
        return []
    if fit["combination"] == "product":
        sentences = [
            "Features multiply: each one that is present makes some actions more likely and others less likely. Say "
            "one feature makes the first of two actions 3 times as likely, relative to the second, and another feature "
            "makes it 2 times as likely: where both are present in full, it is 6 times as likely. With less of a "
            "feature, it counts less.",
        ]
    else:
        sentences = [
            "Features share the decision: each one that is present votes for its actions, with as much weight as there "
            "is of it."
        ]
        if fit["adds_up"]:
            sentences.append(
                "Features are taken for parts of a whole: what an observation holds is weighed so that it adds up to "
                "one. This predicts the demonstrations' actions better."
            )
        if fit["decisiveness"] != 1:
            how = "This was learned from the demonstrations." if fit["is_decisiveness_learned"] else "This was set."
            sentences.append(
                f"The teacher is {'more' if fit['decisiveness'] > 1 else 'less'} decisive than these votes: "
                f"probabilities are taken to the power of {fit['decisiveness']:.3g} (decisiveness). {how}"
            )
    return [*sentences, *say_choice(fit)]


def say_choice(fit: Plain) -> list[str]:
    """Why features act together in this way, if it was tried out."""
    if not fit["why"]:
        return []
    other = OTHER_WAY[fit["combination"]]
    return [f"This is called a {fit['combination']}; {other}. Both were tried: {fit['why']}."]


def say_chains(summary: Plain) -> str:
    """That independent runs found the same answer; if not, or if nobody can tell, that is the first of the doubts."""
    diagnostics = summary["diagnostics"]
    if diagnostics["verdict"] != "agree":
        return ""
    runs = count_of(diagnostics["n_chains"], "independent run")
    if diagnostics["n_chains_with_weight"] < diagnostics["n_chains"]:
        runs = f"{diagnostics['n_chains_with_weight']} of {runs}"
    found = f"{runs} of the computation found the same features" + " and predict alike" * diagnostics["predict_alike"]
    if diagnostics["is_growing"]:
        return f"So far, {found}."
    if is_number_mixed(diagnostics):
        return f"{found}."
    return f"{found}; the number of small features still differs."


def is_number_mixed(diagnostics: Plain) -> bool:
    """Whether the numbers of features of the chains cannot be told apart."""
    (row,) = [row for row in diagnostics["quantities"] if row["name"] == "n_features"]
    return not row["is_stuck"] and (row["r_hat"] is None or row["r_hat"] <= diagnostics["r_hat_limit"])

"""The findings of a report in plain sentences."""

from whyact.report.plain import count_of

FIRM = 0.3  # the headline gives one number of features only if it is at least so probable
MUCH_LESS_SURE = 0.15  # the teacher seems decisive if predictions are right so much more often than they are sure,
LEAST_ROWS = 30  # in so many rows or more
DECISIVE = 10.0  # the value that the page proposes


def say_number(summary: dict) -> dict:
    """How many features, and how sure."""
    number, demonstrations = summary["number"], count_of(summary["fit"]["n_rows"], "demonstration")
    count = number["count"]
    if not is_firm(number):
        finding = f"Between {number['low']:,} and {number['high']:,} features explain {demonstrations}."
    elif count == 0:
        finding = f"No feature was found in {demonstrations}."
    else:
        finding = f"{count_of(count, 'feature')} {'explains' if count == 1 else 'explain'} {demonstrations}."
    return {"finding": finding, "how_sure": say_how_sure(number, summary["diagnostics"]["verdict"])}


def is_firm(number: dict) -> bool:
    return max(bar["probability"] for bar in number["probabilities"]) >= FIRM


def say_how_sure(number: dict, verdict: str) -> str:
    """How much the probability of the number of features means."""
    sentences = []
    if not is_firm(number):
        sentences.append(say_most_frequent(number))
    if number["count"] == number["most_allowed"]:
        sentences.append("That is the most that was allowed (max_features), so there may be more.")
    elif number["is_growing"]:
        sentences.append(
            "The number was still growing when the computation ended, so more draws would find more features. "
            "max_features bounds it, a lower observation_weight keeps it down "
            "(on the command line --max-features and --observation-weight)."
        )
    elif is_firm(number):
        sentences.append(say_probability(number, verdict))
    elif verdict != "agree":
        sentences.append("See below how far this can be trusted.")
    return " ".join(sentences)


def say_most_frequent(number: dict) -> str:
    shares = {bar["count"]: bar["probability"] for bar in number["probabilities"]}
    most_frequent = number["most_frequent"]
    share = shares[most_frequent]
    has_equals = sum(other == share for other in shares.values()) > 1
    sentence = (
        f"90% of the draws lie in that range; {most_frequent:,} is {'among ' * has_equals}the most frequent "
        f"number{'s' * has_equals} ({share:.0%})"
    )
    if number["count"] == most_frequent:
        return f"{sentence}, and shown here."
    return f"{sentence}. A draw with {number['count']:,} is shown here."


def say_probability(number: dict, verdict: str) -> str:
    probability = f"{number['probability']:.2f}"
    if verdict != "agree":
        return (
            f"The computation gives this number the probability {probability}, but see below how far it can be trusted."
        )
    if number["probability"] >= 0.9:
        return f"That number is almost certain: its probability is {probability}."
    if number["probability"] >= 0.5:
        return f"That number is likely: its probability is {probability}."
    return f"That number is far from certain: its probability is {probability}."


def say_accuracy(summary: dict) -> list[str]:
    """How well actions are predicted, next to the least that anyone can do."""
    quality = summary["quality"]
    if not summary["actions"]:
        return ["No action was given, so what the features make the teacher do is not known."]
    if quality["accuracy"] is None:
        return ["None of these demonstrations has a known action, so predictions could not be checked."]
    accuracy, usual = quality["accuracy"], quality["usual_action"]
    which = {
        "none": "demonstrations that it had not seen",
        "some": "demonstrations given as new ones",
        "all": "demonstrations that it learned from",
    }[how_many_seen(quality)]
    sentences = [
        f"In {accuracy['n_correct']:,} of {accuracy['n']:,} {which}, the predicted action was the teacher's: "
        f"accuracy {accuracy['value']:.2f} (95% interval {accuracy['low']:.2f} to {accuracy['high']:.2f})."
    ]
    if how_many_seen(quality) == "all":
        sentences.append("That is too optimistic, because it has seen these before. Expect less on new demonstrations.")
    elif how_many_seen(quality) == "some":
        sentences[0] += " " + say_seen(quality)
    usual_name = summary["actions"][usual["action"]]
    if usual["accuracy"] >= accuracy["low"]:
        sentences.append(
            f"That is not clearly better than always saying “{usual_name}”, which has accuracy {usual['accuracy']:.2f}."
        )
    else:
        sentences.append(f"For comparison: always saying “{usual_name}” would have accuracy {usual['accuracy']:.2f}.")
    return sentences


def how_many_seen(quality: dict) -> str:
    """Of the rows that quality is measured on, how many the model has learned from: none, some or all."""
    if quality["rows"] != "new" or quality["n_seen"] == quality["n_rows"]:
        return "all"
    return "some" if quality["n_seen"] else "none"


def say_seen(quality: dict) -> str:
    n_seen = quality["n_seen"]
    return (
        f"{n_seen:,} of the {count_of(quality['n_rows'], 'row')} {'is' if n_seen == 1 else 'are'} among those it has "
        "learned from, equal in every column and action, so this flatters."
    )


def say_rows(summary: dict) -> dict:
    """On which rows quality is measured, what that means, and whether it flatters."""
    quality, has_actions = summary["quality"], bool(summary["actions"])
    rows = count_of(quality["n_rows"], "demonstration")
    seen = how_many_seen(quality)
    sentences = []
    if not has_actions:
        sentences.append("No action was given, so there is nothing to predict.")
    if seen == "none":
        sentences.append(f"Measured on {rows} that the model has not learned from.")
    elif seen == "some":
        sentences.append(f"Measured on {rows} that were given as new ones. {say_seen(quality)}")
    else:
        why = (
            "because no others were given"
            if quality["rows"] != "new"
            else "although they were given as new ones: each is equal to one of those"
        )
        worse = " This is like an exam with questions known before: the model will do worse on new ones." * has_actions
        sentences.append(f"Measured on {rows} that the model has learned from, {why}.{worse}")
    if quality["n_rows"] < quality["n_available"]:
        sentences.append(
            f"These are evenly spread among {quality['n_available']:,}; more were not asked, to save time."
        )
    if has_actions and quality["n_known"] < quality["n_rows"]:
        sentences.append(f"In {quality['n_rows'] - quality['n_known']:,} of them the action is not known.")
    return {"flatters": has_actions and seen != "none", "words": " ".join(sentences)}


def say_sureness(summary: dict) -> str:
    """That the teacher seems more decisive than the model takes it for; nothing if it does not."""
    quality, decisiveness = summary["quality"], summary["fit"]["decisiveness"]
    accuracy = quality["accuracy"]
    if accuracy is None or accuracy["n"] < LEAST_ROWS:
        return ""
    if accuracy["value"] - quality["mean_confidence"] <= MUCH_LESS_SURE:
        return ""
    example = f" (on the command line --decisiveness {DECISIVE:g})" if decisiveness < DECISIVE else ""
    return (
        f"The model is right in {accuracy['value']:.0%} but only {quality['mean_confidence']:.0%} sure, on average: "
        f"the teacher seems decisive, and a decisiveness above {max(decisiveness, 1):g}{example} describes such a "
        "teacher."
    )


def say_chains(summary: dict) -> dict:
    """Whether independent runs found the same, and what that means for the reader."""
    diagnostics = summary["diagnostics"]
    runs = count_of(diagnostics["n_chains"], "independent run")
    if diagnostics["verdict"] == "agree":
        return {"verdict": "agree", "sentence": f"{runs} of the computation found the same answer."}
    if diagnostics["verdict"] == "disagree":
        sentence = f"{runs} of the computation did not find the same answer: take what follows with care."
        return {"verdict": "disagree", "sentence": sentence}
    sentence = "There are too few runs or draws to tell whether the computation has settled: take this with care."
    return {"verdict": "unknown", "sentence": sentence}

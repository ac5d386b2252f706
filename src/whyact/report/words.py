"""The findings of a report in plain sentences."""

from whyact.report.plain import count_of


def say_number(summary: dict) -> dict:
    """How many features, and how sure."""
    number, n_rows = summary["number"], summary["fit"]["n_rows"]
    count = number["count"]
    if count == 0:
        finding = f"No feature was found in {count_of(n_rows, 'demonstration')}."
    else:
        verb = "explains" if count == 1 else "explain"
        finding = f"{count_of(count, 'feature')} {verb} {count_of(n_rows, 'demonstration')}."
    return {"finding": finding, "how_sure": say_how_sure(number, summary["diagnostics"]["verdict"])}


def say_how_sure(number: dict, verdict: str) -> str:
    """How much the probability of the number of features means."""
    probability = f"{number['probability']:.2f}"
    if number["count"] == number["most_allowed"]:
        return "That is the most that was allowed (max_features), so there may be more."
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
    which = "demonstrations that it had not seen" if quality["rows"] == "new" else "demonstrations that it learned from"
    sentences = [
        f"In {accuracy['n_correct']:,} of {accuracy['n']:,} {which}, the predicted action was the teacher's: "
        f"accuracy {accuracy['value']:.2f} (95% interval {accuracy['low']:.2f} to {accuracy['high']:.2f})."
    ]
    if quality["rows"] != "new":
        sentences.append("That is too optimistic, because it has seen these before. Expect less on new demonstrations.")
    usual_name = summary["actions"][usual["action"]]
    if usual["accuracy"] >= accuracy["low"]:
        sentences.append(
            f"That is not clearly better than always saying “{usual_name}”, which has accuracy {usual['accuracy']:.2f}."
        )
    else:
        sentences.append(f"For comparison: always saying “{usual_name}” would have accuracy {usual['accuracy']:.2f}.")
    return sentences


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

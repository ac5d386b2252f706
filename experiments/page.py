"""The command that writes the page of any study: `python -m experiments.page FOLDER`.

What stands on the page is decided by `page.py` in the folder of each study.
"""

from pathlib import Path
from typing import Annotated

import typer

from experiments.harness.commands import make_app, run_app
from experiments.harness.store import SETTINGS_FILE, StudyError, read_settings
from whyact.cli.arguments import Refusal

app = make_app()


@app.command()
def main(
    folder: Annotated[Path, typer.Argument(help="Folder of a study.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The Markdown file to write; the figures go beside it.", show_default="the name of the study"
        ),
    ] = None,
) -> None:
    """Write the page of results from the rows of a study."""
    try:
        written = write_page_of(folder, out)
    except StudyError as error:
        raise Refusal(str(error)) from None
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise Refusal("the figures need matplotlib; install whyact[plot].") from None
    typer.echo(f"Written: {', '.join(str(path) for path in written)}")


def write_page_of(folder: Path, out: Path | None) -> list[Path]:
    """Write the page of whichever study the folder holds; return what was written."""
    # pandas and scikit-learn take seconds, which --help need not wait for
    from experiments.alternatives.page import write_page as write_alternatives
    from experiments.decisions.page import write_page as write_decisions
    from experiments.driving.page import write_page as write_driving
    from experiments.simulations.page import write_page as write_simulations

    if not (folder / SETTINGS_FILE).exists():
        raise StudyError(f"the folder {folder} holds no study.")
    name = str(read_settings(folder).get("study"))
    writers = {
        "simulations": write_simulations,
        "alternatives": write_alternatives,
        "driving": write_driving,
        "decisions": write_decisions,
    }
    if name not in writers:
        raise StudyError(f"the folder {folder} holds the study {name!r}, which has no page.")
    return writers[name](folder, out or Path(f"{name}.md"))


if __name__ == "__main__":
    run_app(app)

"""Write the page of results of a study: `python -m experiments.page FOLDER`."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.harness.commands import make_app, run_app

app = make_app()


@app.command()
def page(
    folder: Annotated[Path, typer.Argument(help="Folder of a study.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The Markdown file to write; the figure goes beside it.", show_default="name of the study"),
    ] = None,
) -> None:
    """Write the page of results from the rows of a study."""
    from experiments.alternatives import page as alternatives_page
    from experiments.driving import page as driving_page
    from experiments.harness.store import SETTINGS_FILE, StudyError, read_settings
    from experiments.simulations import page as results_page

    writers = {
        "simulations": results_page.write_page,
        "alternatives": alternatives_page.write_page,
        "driving": driving_page.write_page,
    }
    try:
        if not (folder / SETTINGS_FILE).exists():
            raise StudyError(f"the folder {folder} holds no study.")
        name = str(read_settings(folder).get("study"))
        if name not in writers:
            raise StudyError(f"the folder {folder} holds the study {name!r}, of which there is no page.")
        written = writers[name](folder, out or Path(f"{name}.md"))
    except StudyError as error:
        raise typer.BadParameter(str(error), param_hint="FOLDER or --out") from None
    except ImportError:
        raise typer.BadParameter("the figure needs matplotlib: install whyact[plot].", param_hint="--out") from None
    typer.echo(f"Written: {', '.join(str(path) for path in written)}")


if __name__ == "__main__":
    run_app(app)

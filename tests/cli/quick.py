"""Options of a fit that is quick, and of the paper's own model, so that nothing has to be chosen first."""

from tests.support import command_line

PAPER = ["--combination", "mixture", "--decisiveness", "1", "--scale-columns", "no"]
QUICK = [*PAPER, *command_line.QUICK]

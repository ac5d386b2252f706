"""Which model predicts a teacher best: many models, the same folds, and what is only luck called a tie."""

from whyact.comparison.crossvalidation import compare, count_components
from whyact.comparison.results import Comparison

__all__ = ["Comparison", "compare", "count_components"]

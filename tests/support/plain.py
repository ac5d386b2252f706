"""The options of the paper's own model, for tests whose statement is about it.

The estimator's defaults choose how policies are combined and learn the decisiveness, which takes more chains.
"""

PLAIN = {"combination": "mixture", "decisiveness": 1.0, "scale_columns": False}

"""The paper's studies, one folder each; not part of the package. `harness` has what they share."""

"""The paper's studies and what else is measured; not part of the package."""

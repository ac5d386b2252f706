"""The paper's simulation study (Sec. 5)."""

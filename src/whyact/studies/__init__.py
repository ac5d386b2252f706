"""What reproduces the paper's experiments (Sec. 5 and 6)."""

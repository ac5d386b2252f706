"""Files that last: written whole, read with suspicion."""

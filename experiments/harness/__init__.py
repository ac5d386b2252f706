"""What the studies share: rows on disk, runs side by side, tables and figures."""

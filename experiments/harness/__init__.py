"""What the studies share: commands, data sets of the paper's design, rows on disk, runs side by side, pages."""

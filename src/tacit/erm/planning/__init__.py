"""Plans: the mechanism, its settings and its predicted risk."""

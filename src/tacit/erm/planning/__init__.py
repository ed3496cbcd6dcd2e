"""Plans: which mechanism, with which settings, at which expected risk."""

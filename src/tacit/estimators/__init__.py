"""What all estimators share: parameters, tables, weights, base classes, summaries."""

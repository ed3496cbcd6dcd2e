"""The common part of all estimators: parameters, tables, weights, base classes, summaries."""

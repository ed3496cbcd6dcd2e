"""Standard errors of released weights, and the asymptotic laws of estimators."""

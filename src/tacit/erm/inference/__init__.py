"""Standard errors of released weights, and the law of an estimator."""

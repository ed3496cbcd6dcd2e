"""Selection: the exponential mechanism on finite sets, lines and balls."""

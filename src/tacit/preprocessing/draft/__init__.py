"""A first draft of a schema, guessed from the data for somebody to confirm."""

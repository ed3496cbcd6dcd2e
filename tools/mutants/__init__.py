"""Break the privacy code in small ways and see whether the tests notice."""

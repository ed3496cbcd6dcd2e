"""The figures and tables of the five source documents, run again: one file a figure."""

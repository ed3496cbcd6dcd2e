"""Convert facts to markup: one module per section of the report."""

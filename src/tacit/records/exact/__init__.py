"""Sums of records that are exact: rows on a public lattice, added as whole numbers."""

"""What is declared about a table: columns, target, and the file that says so."""

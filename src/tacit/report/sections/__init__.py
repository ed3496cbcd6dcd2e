"""The parts of a report, one file each: from facts to markup."""

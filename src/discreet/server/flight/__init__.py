"""Arrow Flight SQL as a door: the same questions, keys and limits, with answers as Arrow."""

"""The curator: the order of events, from a question to its answer, here or over HTTP."""

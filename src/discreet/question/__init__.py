"""The question: from text or Python to a relation whose every row has an owner; reads no data."""

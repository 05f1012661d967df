"""The airlock and what leaves it: noise, the answer, its words and its one recorded form."""

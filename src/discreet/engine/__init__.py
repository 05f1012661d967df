"""The data: run an exact plan, return integers that nobody may see."""

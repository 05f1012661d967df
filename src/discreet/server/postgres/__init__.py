"""PostgreSQL's protocol as a door: questions to the curator, catalogue questions to a database
that holds nothing, nothing else anywhere.
"""

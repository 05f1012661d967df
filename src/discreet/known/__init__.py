"""What is already known is free: released answers as the source of others.

``derive`` says how a question is read off one released answer, or why not; ``combine`` makes one
answer of several derivations.  Nothing here opens a truth or draws noise: a function of what
was released costs nobody anything.  Lemmas: ``docs/proofs/known.md``.
"""

"""Blocks: who can be touched by a question, and who cannot.

The curator declares block columns; each person lies in one block, and the
account is kept for each block.  :class:`Space` lists the blocks of a dataset,
:func:`reach` says which of them a question can touch, as an :class:`Area`.
Lemmas: ``docs/proofs/blocks.md``.
"""

from discreet.question.blocks.reachability import reach
from discreet.question.blocks.space import Area, Axis, Part, Space

__all__ = ["Area", "Axis", "Part", "Space", "reach"]

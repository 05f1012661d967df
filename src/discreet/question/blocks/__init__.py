"""Blocks: who can be touched by a question, and who cannot.

The curator declares block columns; each person lies in one block, and the
account is kept for each block.  :class:`Space` lists the blocks of a dataset,
:func:`reach` says which of them a question can touch, as an :class:`Area`.
Lemmas: ``docs/proofs/blocks.md``.
"""

from typing import TYPE_CHECKING, Any

from discreet.question.blocks.space import Area, Axis, Part, Space

if TYPE_CHECKING:
    from discreet.question.blocks.reachability import reach


def __getattr__(name: str) -> Any:
    if name == "reach":  # when a schema declares blocks
        from discreet.question.blocks.reachability import reach

        return reach
    raise AttributeError(f"module 'discreet.question.blocks' has no attribute {name!r}")


__all__ = ["Area", "Axis", "Part", "Space", "reach"]

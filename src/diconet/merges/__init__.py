"""Merge networks (section 4.2 of the paper): put partial answers together."""

from diconet.merges.pointer import PointerMerge
from diconet.merges.triples import TripleJudge, TripleMerge

__all__ = ["PointerMerge", "TripleJudge", "TripleMerge"]

"""Merge networks (section 4.2 of the paper): put partial answers together."""

from diconet.merges.pointer import PointerMerge
from diconet.merges.triples import TripleJudge, TripleMerge
from diconet.merges.views import BestOfViews

__all__ = ["BestOfViews", "PointerMerge", "TripleJudge", "TripleMerge"]

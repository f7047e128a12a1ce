"""Merge networks (section 4.2 of the paper): put partial answers together."""

from diconet.merges.pointer import PointerMerge

__all__ = ["PointerMerge"]

"""Split networks (section 4.1 of the paper): divide a set in two, whatever its size."""

from diconet.splits.classic import Balanced, MedianSplit
from diconet.splits.coin import RandomSplit, SetSplit, coin_cut

__all__ = ["Balanced", "MedianSplit", "RandomSplit", "SetSplit", "coin_cut"]

"""Training: the loop, its settings, losses and run folders."""

from diconet.learn.batches import Batch
from diconet.learn.config import TrainConfig
from diconet.learn.diagnose import Report, diagnose
from diconet.learn.estimators import Loss, branch_loss, label_loss, node_loss, paper_loss, tree_loss
from diconet.learn.general import best_of, general_loss
from diconet.learn.loop import train

__all__ = [
    "Batch",
    "Loss",
    "Report",
    "TrainConfig",
    "best_of",
    "branch_loss",
    "diagnose",
    "general_loss",
    "label_loss",
    "node_loss",
    "paper_loss",
    "train",
    "tree_loss",
]

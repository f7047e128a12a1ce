"""The networks with the textbook's coefficients and rules put in by hand."""

from __future__ import annotations

import torch

from diconet.core.model import DiCoNet
from diconet.nets.forms import DescentSplit, Forms
from diconet.nets.rules import RuleMerge
from diconet.problems.algorithms.networks import NETWORKS

BEST, WHOLE, START, END, NOTHING = range(5)
RULES = [
    (BEST, BEST, NOTHING),
    (BEST, NOTHING, BEST),
    (BEST, END, START),
    (WHOLE, WHOLE, WHOLE),
    (START, START, NOTHING),
    (START, WHOLE, START),
    (END, NOTHING, END),
    (END, END, WHOLE),
]


def set_form(forms: Forms, *rows: dict[tuple[int, int], float]) -> None:
    """Coefficients by the two inputs they multiply, from 1; 0 is the constant."""
    pairs = [tuple(pair) for pair in forms.pairs.tolist()]
    with torch.no_grad():
        forms.weight.zero_()
        for weight, row in zip(forms.weight, rows, strict=True):
            for pair, value in row.items():
                weight[pairs.index(pair)] = value


def textbook(name: str) -> DiCoNet:
    torch.manual_seed(0)
    model = NETWORKS[name]()
    merge = model.merge
    if name == "sort":
        set_form(merge.form, {(0, 1): -1, (0, 2): 1})
    elif name == "skyline":
        set_form(merge.form, {(0, 1): 1, (0, 3): -1}, {(0, 2): 1, (0, 4): -1})
    elif name == "closest":
        set_form(merge.form, {(3, 3): 1, (4, 4): 1})
        merge.log_reach.data.fill_(0.0)
    elif name == "select":
        split = model.split
        assert isinstance(split, DescentSplit)
        split.split.direction.data.fill_(1.0)
        set_form(split.gate, {(0, 0): -0.5, (0, 1): 1, (0, 2): -1})
        set_form(split.asked, {(0, 1): 1}, {(0, 1): 1, (0, 2): -1})
    else:
        assert isinstance(merge, RuleMerge)
        model.merge = merge.settled(0)
        model.merge.rules.data.fill_(-5.0)
        for rule in RULES:
            model.merge.rules.data[0][rule] = 5.0
    return model.eval()

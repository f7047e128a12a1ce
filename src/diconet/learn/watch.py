"""An eye on a run: now and then it looks for signs that the network does not learn."""

from __future__ import annotations

from diconet.core.model import DiCoNet
from diconet.core.task import Task
from diconet.learn.batches import Batch
from diconet.learn.signs import Signs, complaints, read_signs

_UNREADABLE = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""A loss of one's own may train what gives no trees, or a task that rewards something else; a look
must not be what stops that training."""

_LOOKS = 20
"""How often it looks in a run, so that the looks cost next to nothing."""


class Watch:
    """Looks at a network as training begins, about 20 times on the way, and in the end.

    In the end it compares with the beginning on the inputs of the first batch; a resumed run, whose
    beginning it did not see, is only looked at as it is.
    """

    def __init__(self, model: DiCoNet, task: Task) -> None:
        self._model, self._task = model, task
        self._first: tuple[Batch, Signs | None] | None = None
        self._next = 0.0
        self.complaints: list[str] = []
        self.numbers: dict[str, float] = {}

    def before(self, batch: Batch) -> None:
        """As a step is about to be made."""
        if batch.step == 0:
            self._first = batch, self._read(batch)

    def after(self, batch: Batch, is_last: bool) -> None:
        """As a step was made."""
        self.numbers, begun = {}, None
        if is_last and self._first is not None:
            batch, begun = self._first
        elif not is_last and batch.share < self._next:
            return
        self._next = batch.share + 1 / _LOOKS
        signs = self._read(batch)
        if signs is not None:
            self.numbers, self.complaints = signs.numbers(), list(complaints(signs, begun))

    def _read(self, batch: Batch) -> Signs | None:
        seeds = batch.seeds.reshape(len(batch.sets), -1)[:, 0]
        try:
            return read_signs(self._model, self._task, batch.sets, seeds, batch.target)
        except _UNREADABLE:
            return None

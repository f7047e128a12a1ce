from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """Three workers in processes of their own, one thread each: one may die, and two go on."""
    from diconet.scale.cluster import connected

    with connected(3, memory="2GB") as found:
        found.run(_warm)
        yield found


def _warm() -> None:
    """What a worker needs anyway, imported before anything is timed or killed."""
    import diconet.scale.clusters
    import diconet.scale.hulls
    import diconet.scale.packings
    import diconet.scale.tours  # noqa: F401

"""The page under load: how long quick requests take while slow ones are in progress."""

from __future__ import annotations

import argparse
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import httpx2
import numpy as np
import uvicorn

from diconet.web.app import create_app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", default="tsp", help="the problem of the slow requests")
    parser.add_argument("--items", type=int, default=500, help="items of a slow request")
    parser.add_argument("--at-once", type=int, default=2, help="number of slow requests at once")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    place = socket.socket()
    place.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{place.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(create_app(), log_level="warning"))
    Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True).start()

    def ask(task: str, size: int) -> float:
        start = time.monotonic()
        points = np.random.default_rng(size).random((size, 2)).tolist()
        body = {"task": task, "points": points}
        reply = httpx2.post(f"{address}/api/solve", json=body, timeout=600)
        assert reply.status_code == 200, reply.text
        return time.monotonic() - start

    for task in (options.slow, "hull"):
        ask(task, 60)  # loads and compiles
    alone = [ask("hull", 60) for _ in range(10)]
    with ThreadPoolExecutor(options.at_once) as pool:
        slow = [pool.submit(ask, options.slow, options.items) for _ in range(options.at_once)]
        time.sleep(0.5)
        beside = []
        while not all(one.done() for one in slow):
            beside.append(ask("hull", 60))
    took = [one.result() for one in slow]
    record = {
        "quick, alone": round(float(np.median(alone)), 3),
        "quick, beside": round(float(np.median(beside)), 3),
        "the slowest of them": round(max(beside), 3),
        "how many": len(beside),
        "slow": [round(seconds, 1) for seconds in took],
    }
    print(json.dumps([record]) if options.json else record)
    server.should_exit = True


if __name__ == "__main__":
    main()

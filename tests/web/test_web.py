from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

pytest.importorskip("fastapi", reason="the web extra is not installed")
pytest.importorskip("httpx2", reason="the test client needs httpx2")

from fastapi.testclient import TestClient

from diconet.cli import main
from diconet.problems.catalog import built_in, find_problem
from diconet.problems.networks import shipped_names
from diconet.web.app import MOST_ITEMS, create_app


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(create_app())


def needs(task: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(task not in shipped_names(), reason=f"no shipped weights {task}")


def test_the_page_stands_on_its_own(client: TestClient) -> None:
    """No script, style, font or picture comes from anywhere else."""
    for path in ("/", "/page.css", "/page.js", "/points.js", "/panels.js"):
        reply = client.get(path)
        assert reply.status_code == 200
        text = reply.text.replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text
        assert "@import" not in text
        assert "default-src 'self'" in reply.headers["content-security-policy"]


def test_the_same_seed_draws_the_same_points(client: TestClient) -> None:
    def drawn(seed: int) -> list[list[float]]:
        return client.get("/api/sample", params={"task": "tsp", "n": 9, "seed": seed}).json()[
            "points"
        ]

    assert drawn(1) == drawn(1) != drawn(2)
    assert np.array(drawn(1)).shape == (9, 2)


@needs("hull")
def test_a_hull_comes_with_every_step(client: TestClient) -> None:
    points = client.get("/api/sample", params={"task": "hull", "n": 40}).json()["points"]
    found = client.post("/api/solve", json={"task": "hull", "points": points}).json()
    last = found["stages"][-1]
    assert set(last["cycles"][0]["items"]) == set(ConvexHull(points).vertices.tolist())
    assert found["value"] == pytest.approx(ConvexHull(points).volume)
    sizes = [len(set(stage["parts"])) for stage in found["stages"]]
    deepest = sizes.index(max(sizes))
    assert sizes[: deepest + 1] == sorted(sizes[: deepest + 1])
    assert sizes[deepest:] == sorted(sizes[deepest:], reverse=True)
    for stage in found["stages"]:
        for cycle in stage["cycles"]:
            assert {stage["parts"][i] for i in cycle["items"]} == {cycle["part"]}


@needs("kmeans")
def test_clusters_end_with_their_centres(client: TestClient) -> None:
    points = client.get("/api/sample", params={"task": "kmeans", "n": 60, "k": 5}).json()["points"]
    found = client.post(
        "/api/solve", json={"task": "kmeans", "points": points, "fields": {"k": 5}}
    ).json()
    last = found["stages"][-1]
    assert len(last["marks"]) == len(set(last["parts"])) == 5


@needs("knapsack")
def test_a_knapsack_fills_up(client: TestClient) -> None:
    body = {
        "task": "knapsack",
        "points": [[1, 1], [2, 5], [3, 3], [9, 99]],
        "fields": {"capacity": 5},
    }
    found = client.post("/api/solve", json=body).json()
    assert found["value"] == 8
    assert [part >= 0 for part in found["stages"][-1]["parts"]] == [False, True, True, False]


@needs("tsp")
def test_a_tour_visits_all(client: TestClient) -> None:
    points = client.get("/api/sample", params={"task": "tsp", "n": 30}).json()["points"]
    found = client.post("/api/solve", json={"task": "tsp", "points": points}).json()
    assert sorted(found["stages"][-1]["cycles"][0]["items"]) == list(range(30))


@needs("kmeans")
def test_what_cannot_be_solved_is_said_in_a_line(client: TestClient) -> None:
    body = {"task": "kmeans", "points": [[0, 0], [1, 1]], "fields": {"k": 3}}
    reply = client.post("/api/solve", json=body)
    assert reply.status_code == 422
    assert reply.json()["detail"] == "k must be at most the number of points, 2; got 3."


@pytest.mark.parametrize(
    "body",
    [
        {"task": "sudoku", "points": []},
        {"task": "hull", "points": [[0, "a"]]},
        {"task": "hull", "points": [[0, 0, 0]]},
        {"task": "hull", "points": [[0, 0]] * (MOST_ITEMS + 1)},
        {"task": "hull"},
    ],
    ids=["unknown task", "no number", "three columns", "too many", "no points"],
)
def test_nonsense_is_refused(client: TestClient, body: dict[str, object]) -> None:
    assert client.post("/api/solve", json=body).status_code == 422


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("diconet.cli.see.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="2"):
        main(["web"])
    complaint = capsys.readouterr().err
    assert complaint.startswith("diconet: the page needs fastapi and uvicorn; install them with")
    assert complaint.count("\n") == 1


def test_ports_have_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["web", "--port", "65536"])
    assert "--port must be at most 65535; got 65536." in capsys.readouterr().err


def test_the_page_goes_over_the_problems(client: TestClient) -> None:
    """What it knows of a problem is what the problem says of itself; none is named in it."""
    listed = {one["name"]: one for one in client.get("/api/problems").json()}
    assert {name for name, one in built_in().items() if one.page is not None} <= set(listed)
    for name, one in listed.items():
        problem = find_problem(name)
        assert problem.page is not None
        assert one["summary"] == problem.summary
        assert (one["items"], one["value"]) == (problem.page.items, problem.page.value)
        assert [field["name"] for field in one["fields"]] == [f.name for f in problem.page.fields]
        assert one["networks"][:1] == [name]
    script = "".join(client.get(f"/{name}.js").text for name in ("page", "points", "panels"))
    code = "\n".join(line for line in script.splitlines() if not line.startswith("//"))
    assert [name for name in listed if name in code] == []


@pytest.mark.parametrize(
    ("task", "fields", "message"),
    [
        ("kmeans", {"k": 2.5}, "k must be a whole number from 1 to 64; got 2.5."),
        ("kmeans", {"k": 65}, "k must be a whole number from 1 to 64; got 65.0."),
        ("knapsack", {"capacity": -1}, "capacity must be a number from 0 to 1e+09; got -1.0."),
        ("hull", {"k": 4}, "fields must be among repair; got 'k'."),
        ("kmeans", {"search": 2}, "search must be a whole number from 0 to 1; got 2.0."),
    ],
)
def test_fields_are_checked(
    client: TestClient, task: str, fields: dict[str, float], message: str
) -> None:
    body = {"task": task, "points": [[0, 0], [1, 1], [0, 1]], "fields": fields}
    reply = client.post("/api/solve", json=body)
    assert (reply.status_code, reply.json()["detail"]) == (422, message)
    assert client.get("/api/sample", params={"task": task, **fields}).status_code == 422


def test_fields_decide_what_is_drawn(client: TestClient) -> None:
    def drawn(**fields: int) -> dict[str, object]:
        return client.get("/api/sample", params={"task": "kmeans", "n": 9, **fields}).json()

    assert drawn() == drawn(k=4) != drawn(k=1)
    assert client.get("/api/sample", params={"task": "knapsack"}).json()["capacity"] > 0


def test_some_problems_only() -> None:
    client = TestClient(create_app([find_problem("tsp")]))
    assert [one["name"] for one in client.get("/api/problems").json()] == ["tsp"]
    assert client.get("/api/sample", params={"task": "hull"}).json()["detail"] == (
        "task must be one of tsp; got 'hull'."
    )


@pytest.mark.parametrize("seed", ["-1", str(2**63)])
def test_seeds_have_limits(client: TestClient, seed: str) -> None:
    assert client.get("/api/sample", params={"task": "tsp", "seed": seed}).status_code == 422


@needs("knapsack")
def test_values_beyond_all_bounds_are_refused(client: TestClient) -> None:
    body = {"task": "knapsack", "points": [[1, 1e308], [1, 1e308]], "fields": {"capacity": 5}}
    reply = client.post("/api/solve", json=body)
    assert reply.status_code == 422
    assert reply.json()["detail"].startswith("values must add up to less than")


@needs("hull")
def test_a_value_beyond_all_bounds_is_null(client: TestClient) -> None:
    body = {"task": "hull", "points": [[0, 0], [1e200, 0], [1e200, 1e200]]}
    reply = client.post("/api/solve", json=body)
    assert reply.status_code == 200
    assert reply.json()["value"] is None


@pytest.mark.parametrize(
    "body",
    [
        '{"task": "kmeans", "points": [[0, 0], [1, 1]], "fields": {"k": 1e400}}',
        '{"task": "kmeans", "points": [[0, 0], [1, 1]], "k": 1e400, "fields": {"k": "x"}}',
        '{"points": [[1e400, 0], [1, 1]], "k": 1e400}',
        '{"task": "hull", "points": [[1e400, 0], [1, 1]]}',
        '{"task": "hull", "points": [[NaN, 0], [1, 1]]}',
        '{"task": 1e400, "points": []}',
        "1e400",
        "[",
    ],
)
def test_numbers_beyond_all_numbers_are_refused(client: TestClient, body: str) -> None:
    reply = client.post("/api/solve", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    assert isinstance(reply.json()["detail"], str)


def test_a_refusal_repeats_nothing_of_a_huge_body(client: TestClient) -> None:
    long = "x" * 100_000
    for body in (
        {"task": long, "points": []},
        {"task": "hull", "points": long},
        {"task": "hull", "points": [[0, 0]], "fields": {long: 1}},
        {"task": "hull", "points": [[0, 0]], "network": long},
        {"task": "kmeans", "points": [[0, 0]], "fields": {"k": long}},
    ):
        reply = client.post("/api/solve", json=body)
        assert reply.status_code == 422
        assert len(reply.content) < 600
    assert len(client.get("/api/sample", params={"task": long[:50_000]}).content) < 600
    large = client.post("/api/solve", json={"task": "hull", "points": [[0.123456, 0.5]] * 40_000})
    assert large.status_code == 413
    assert len(large.content) < 600


def test_a_body_without_a_length_is_refused(client: TestClient) -> None:
    reply = client.post("/api/solve", content=iter([b"{", b"}"]))
    assert reply.status_code == 411


@pytest.mark.parametrize("task", ["hull", "kmeans", "knapsack", "tsp"])
def test_three_ways_to_divide_the_same_points(client: TestClient, task: str) -> None:
    """All answers are valid; without division there is nothing to step down through."""
    drawn = client.get("/api/sample", params={"task": task, "n": 30, "seed": 3}).json()
    points = drawn.pop("points")
    cuts = {}
    for division in ("learned", "random", "none"):
        body = {"task": task, "points": points, "fields": drawn, "division": division}
        found = client.post("/api/solve", json=body).json()
        assert found["stages"][-1]["kind"] == "answer"
        cuts[division] = [stage["parts"] for stage in found["stages"] if stage["kind"] == "cut"]
    if task != "knapsack":
        assert max((len(set(parts)) for parts in cuts["none"]), default=1) == 1
        if task != "tsp":  # whose 30 cities are one leaf
            assert cuts["learned"] != cuts["random"]


def test_random_division_is_worse_where_no_search_follows(client: TestClient) -> None:
    points = client.get("/api/sample", params={"task": "kmeans", "n": 60, "k": 5}).json()["points"]

    def cost(division: str, search: int) -> float:
        body = {"task": "kmeans", "points": points, "division": division}
        fields = {"k": 5, "search": search}
        return float(client.post("/api/solve", json={**body, "fields": fields}).json()["value"])

    assert cost("random", 0) > 2 * cost("learned", 0)
    assert cost("learned", 1) <= cost("learned", 0)


def test_no_division_has_a_limit_that_says_why(client: TestClient) -> None:
    points = client.get("/api/sample", params={"task": "hull", "n": 200}).json()["points"]
    body = {"task": "hull", "points": points, "division": "none"}
    reply = client.post("/api/solve", json=body)
    assert reply.status_code == 422
    assert reply.json()["detail"].startswith("without division at most 150 points are solved here")


def test_a_network_is_chosen_by_name_and_no_file_is_read(client: TestClient) -> None:
    points = client.get("/api/sample", params={"task": "hull", "n": 12}).json()["points"]
    body = {"task": "hull", "points": points}
    other = client.post("/api/solve", json={**body, "network": "hull_diconet"})
    assert other.status_code == 200
    for name in ("/etc/passwd", "../hull.safetensors", "kmeans", "live"):
        reply = client.post("/api/solve", json={**body, "network": name})
        assert reply.status_code == 422
        assert "network" in reply.json()["detail"]

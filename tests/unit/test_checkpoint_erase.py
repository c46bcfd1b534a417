"""Which checkpoints go: the choices alone, without a server."""

from checkpoint.erase import Stored, choose_older, choose_runs, choose_turns


def item(id_: str, parent: str = "", namespace: str = "", **more: object) -> Stored:
    plain = {"run_id": "", "source": "loop", "anchor": "", "unseeded": (), "seeds": frozenset()}
    return Stored(namespace=namespace, id=id_, parent=parent, **(plain | more))  # type: ignore[arg-type]


def turn(number: int, parent: str) -> list[Stored]:
    """A turn of two checkpoints: `1a` where it begins, `1b` where it ends."""
    return [item(f"{number}a", parent, source="input"), item(f"{number}b", f"{number}a")]


LONG = [one for number in range(1, 6) for one in turn(number, f"{number - 1}b" if number > 1 else "")]


def left(stored: list[Stored], doomed: set[tuple[str, str]]) -> list[str]:
    return [each.id for each in stored if (each.namespace, each.id) not in doomed]


def test_runs_by_id_and_never_the_unnamed() -> None:
    stored = [item("1", run_id="a"), item("2"), item("3", run_id="b"), item("3", namespace="n", run_id="a")]
    assert choose_runs(stored, {"a", ""}) == {("", "1"), ("n", "3")}


def test_older_keeps_the_latest_of_each_namespace() -> None:
    stored = [item("1"), item("3", "1"), item("2", "1"), item("1", namespace="n"), item("0", namespace="n")]
    assert choose_older(stored) == {("", "1"), ("", "2"), ("n", "0")}


def test_older_keeps_what_delta_channels_need() -> None:
    stored = [
        item("1", seeds=frozenset({"log", "other"})),
        item("2", "1", unseeded=("log", "other"), seeds=frozenset({"other"})),
        item("3", "2", unseeded=("log", "other")),
        item("4", "3", unseeded=("log", "other")),
        item("5", "3", unseeded=("log",), seeds=frozenset({"x"})),
    ]
    assert left(stored, choose_older(stored)) == ["1", "2", "3", "5"]
    assert left(stored[:3], choose_older(stored[:3])) == ["1", "2", "3"]


def test_older_keeps_a_whole_chain_without_a_seed() -> None:
    stored = [item("1"), item("2", "1", unseeded=("log",)), item("3", "2", unseeded=("log",))]
    assert choose_older(stored) == set()


def test_a_ring_of_parents_ends() -> None:
    ring = [item("1", "2", unseeded=("log",)), item("2", "1", unseeded=("log",)), item("3", "3")]
    assert choose_older(ring[:2]) == set()
    assert left(ring, choose_turns(ring, 1)) == ["3"]
    assert left(ring[:2], choose_turns(ring[:2], 1)) == ["1", "2"]


def test_turns_keeps_the_last_ones() -> None:
    assert left(LONG, choose_turns(LONG, 2)) == ["4a", "4b", "5a", "5b"]
    assert choose_turns(LONG, 5) == choose_turns(LONG, 9) == set()
    assert choose_turns([], 1) == set()


def test_turns_keeps_an_unfinished_turn_and_the_ones_before() -> None:
    stored = [*LONG, item("6a", "5b", source="input")]
    assert left(stored, choose_turns(stored, 2)) == ["5a", "5b", "6a"]


def test_turns_keeps_every_branch() -> None:
    fork = [item("6a", "2b", source="input"), item("6b", "6a")]
    stored = [*LONG, *fork]
    assert left(stored, choose_turns(stored, 1)) == ["5a", "5b", "6a", "6b"]
    assert left(stored, choose_turns(stored, 2)) == ["2a", "2b", "4a", "4b", "5a", "5b", "6a", "6b"]


def test_turns_takes_subgraphs_along() -> None:
    stored = [
        *LONG,
        item("x", namespace="n", anchor="1a"),
        item("y", namespace="n", anchor="5a"),
        item("z", namespace="m"),
    ]
    assert left(stored, choose_turns(stored, 1)) == ["5a", "5b", "y", "z"]


def test_turns_keeps_what_delta_channels_need() -> None:
    stored = [
        *turn(1, ""),
        item("2a", "1b", source="input", unseeded=("log",)),
        item("2b", "2a", unseeded=("log",)),
    ]
    stored[0] = stored[0]._replace(seeds=frozenset({"log"}))
    assert left(stored, choose_turns(stored, 1)) == ["1a", "1b", "2a", "2b"]

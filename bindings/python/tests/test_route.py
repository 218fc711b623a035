"""Routes: those of C, and how many keys move if a node leaves."""

from collections import Counter

import pytest
from tollbar import route


def test_routes_never_change():
    """The same routes as in Rust and C."""
    nodes = {"a": 1, "b": 2, "c": 3, "10.0.0.4:8080": 4}
    keys = ["alice", "bob", "carol", "dave", "erin", "frank", "", "192.0.2.1"]
    names = list(nodes)
    wanted = [names[n] for n in (1, 3, 2, 3, 3, 2, 2, 2)]
    assert [route(nodes, key, 42) for key in keys] == wanted
    assert [route(nodes, key.encode(), seed=42) for key in keys] == wanted


def test_s35_of_four_nodes_one_leaves():
    """A quarter of the keys moves, and no other. The keys and the seed are those of the test in
    Rust."""
    before, after = ["a", "b", "c", "10.0.0.4:8080"], ("a", "b", "10.0.0.4:8080")
    keys = [n.to_bytes(4, "little") for n in range(100_000)]
    pairs = [(route(before, key, 7), route(after, key, 7)) for key in keys]
    moved = [was for was, now in pairs if was != now]
    assert 24_000 <= len(moved) <= 26_000 and set(moved) == {"c"}


def test_shares_follow_the_weights():
    weights = {b"a": 1, b"b": 2, b"c": 4, b"d": 13}
    found = Counter(route(weights, n) for n in range(20_000))
    assert all(abs(found[node] - weight * 1000) < 250 for node, weight in weights.items()), found
    # The order of the nodes does not matter, and the seed does.
    turned = dict(reversed(weights.items()))
    assert Counter(route(turned, n) for n in range(20_000)) == found
    assert any(route(weights, n) != route(weights, n, 1) for n in range(100))


def test_the_node_itself_comes_back():
    nodes = [10, 11, 12]
    assert {route(iter(nodes), n) for n in range(100)} == set(nodes)
    assert route([bytearray(b"a")], "k") == b"a"


def test_nobody_to_go_to_and_wrong_arguments():
    assert route([], "k") is None and route({"a": 0, "b": 0},
                                            "k") is None and route({"a": 0, "b": 1}, "k") == "b"
    assert route((f"node {n}" for n in range(1024)), "k").startswith("node ")
    for nodes in ([f"node {n}" for n in range(1025)], {"a": -1}, {"a": 2**32}, [-1]):
        with pytest.raises(ValueError):
            route(nodes, "k")
    for arguments in (("abc", "k"), (b"abc", "k"), (5, "k"), ([1.5], "k"), ({"a": "1"}, "k"),
                      (["a"],), (["a"], 1.5), (["a"], "k", "s")):
        with pytest.raises(TypeError):
            route(*arguments)
    with pytest.raises(ZeroDivisionError):
        route((1 // n for n in (1, 0)), "k")

"""What a limit is counted by."""

import pytest

from harness.client import count, statuses
from harness.config import CONTENT


def parts(key, limit="limit_req zone=z burst=1 nodelay;", more=""):
    return {
        "http": f"limit_req_zone {key} zone=z:1m rate=1r/m; {more}",
        "server": f"location / {{ {limit} {CONTENT} }}",
    }


def test_each_value_has_its_own_budget(launch):
    nginx = launch(**parts("$arg_k"))
    found = [statuses(nginx.each(*[f"/?k={k}"] * 3)) for k in range(100)]
    assert found == [[200, 200, 503]] * 100


def test_an_empty_key_is_not_limited(launch):
    nginx = launch(**parts("$arg_k"))
    assert count(nginx.volley("/", 6)) == 6
    assert count(nginx.volley("/?k=", 6)) == 6
    assert count(nginx.volley("/?k=a", 6)) == 2


@pytest.mark.parametrize("key", ["$binary_remote_addr", "$remote_addr", "constant", "$host$server_port", '"$host fixed"'])
def test_keys_that_are_the_same_for_all_these_requests(launch, key):
    nginx = launch(**parts(key))
    assert statuses(nginx.each("/?k=a", "/?k=b", "/other", "/?k=c")) == [200, 200, 503, 503]


def test_an_address_is_a_key_of_its_own(launch):
    # Through realip the addresses can be chosen.
    nginx = launch(**parts("$binary_remote_addr", more="set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;"))
    addresses = ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"]
    for address in addresses:
        found = nginx.each(*["/"] * 3, headers=[f"X-Real-IP: {address}"])
        assert statuses(found) == [200, 200, 503], address


def test_a_key_of_several_variables(launch):
    nginx = launch(**parts("$arg_a$arg_b"))
    assert statuses(nginx.each("/?a=xy&b=z", "/?a=x&b=yz", "/?a=xyz", "/?a=xy&b=y")) == [200, 200, 503, 200]


def test_a_key_with_text_between_its_variables(launch):
    nginx = launch(**parts('"$arg_a|$arg_b"'))
    assert count(nginx.each(*["/?a=xy&b=z"] * 3)) == 2
    assert count(nginx.each(*["/?a=x&b=yz"] * 3)) == 2
    # A key with text between its variables is never empty.
    assert count(nginx.each(*["/"] * 3)) == 2


def test_keys_are_compared_byte_by_byte(launch):
    nginx = launch(**parts("$arg_k"))
    similar = ["a", "A", "a%00", "%61", "a+", "aa", "b"]
    assert [count(nginx.each(*[f"/?k={k}"] * 3)) for k in similar] == [2] * len(similar)


def test_a_key_through_a_map_that_exempts(launch):
    nginx = launch(**parts("$limited", more='map $arg_k $limited { default $arg_k; staff ""; }'))
    assert count(nginx.volley("/?k=staff", 6)) == 6
    assert count(nginx.volley("/?k=guest", 6)) == 2


def test_keys_that_differ_only_at_their_ends(launch):
    nginx = launch(**parts("$arg_k"))
    for length in (1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 1000, 4000):
        for value in ("a" + "x" * length, "x" * length + "a", "x" * length):
            assert count(nginx.each(*[f"/?k={value}"] * 3)) == 2, value


def test_keys_of_one_byte_repeated_are_different_keys(launch):
    nginx = launch(**parts("$arg_k"))
    wrong = [n for n in range(1, 200) if count(nginx.each(*["/?k=" + "x" * n] * 3)) != 2]
    assert wrong == [], "lengths that share a budget with a shorter key"


def test_all_short_keys_are_different_keys(launch):
    nginx = launch(**parts("$arg_k"))
    keys = [a + b + c for a in "abc" for b in ("", *"abc") for c in ("", *"abc") if b or not c]
    wrong = [k for k in keys if count(nginx.each(*[f"/?k={k}"] * 3)) != 2]
    assert wrong == []


def long_key(repeats):
    # A line of a request may have 8 KiB, so the variable is repeated.
    return parts('"' + "$arg_k" * repeats + '"')


def test_the_longest_key_is_limited(launch):
    nginx = launch(**long_key(15))
    assert statuses(nginx.each(*["/?k=" + "x" * 4369] * 3)) == [200, 200, 503]
    assert nginx.said("is more than 65535 bytes") == []


def test_a_key_that_is_too_long_is_not_limited_and_logged(launch):
    nginx = launch(**long_key(16))
    path = "/?k=" + "x" * 4096
    assert statuses(nginx.each(*[path] * 4)) == [200] * 4
    found = nginx.said("is more than")
    assert [level for level, _ in found] == ["error"] * 4
    # The line of a log is cut off after 2048 bytes.
    beginning = 'the value of the "' + "$arg_k" * 16 + '" key is more than 65535 bytes: "' + "x" * 1000
    assert all(message.startswith(beginning) for _, message in found)
    # A shorter value of the same key is limited.
    assert statuses(nginx.each(*["/?k=short"] * 3)) == [200, 200, 503]


def test_a_key_that_is_too_long_leaves_the_other_limits_in_force(launch):
    nginx = launch(
        http='limit_req_zone "' + "$arg_k" * 16 + '" zone=long:1m rate=1r/m;'
             "limit_req_zone $arg_o zone=other:1m rate=1r/m;",
        server=f"location / {{ limit_req zone=long; limit_req zone=other burst=1 nodelay; {CONTENT} }}"
               f"location /turned {{ limit_req zone=other burst=1 nodelay; limit_req zone=long; {CONTENT} }}")
    long = "x" * 4096
    assert statuses(nginx.each(*[f"/?o=a&k={long}"] * 3)) == [200, 200, 503]
    assert statuses(nginx.each(*[f"/turned?o=b&k={long}"] * 3)) == [200, 200, 503]


def test_many_keys_in_a_small_zone(launch):
    """The least zone there may be; more keys than it can hold. Nobody is refused for that, and
    nothing is said."""
    nginx = launch(http="limit_req_zone $arg_k zone=z:32k rate=100r/s;",
                   server=f"location / {{ limit_req zone=z burst=10 nodelay; {CONTENT} }}")
    found = []
    for i in range(0, 4000, 100):
        found += [nginx.volley(f"/?k=key{i + j}", 1)[0].status for j in range(100)]
    assert found == [200] * 4000

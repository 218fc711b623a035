"""Tables that processes share, and forks."""

import errno
import os
import subprocess
import sys
import threading
import time

import pytest
import tollbar
from tollbar import Limiter, Table


@pytest.fixture
def path():
    """Where a shared table would be; a directory of the machine's memory."""
    name = f"/dev/shm/tollbar-python-{os.getpid()}-{time.monotonic_ns()}"
    yield name
    if os.path.exists(name):
        os.unlink(name)


def forked(run):
    """What `run` returns, a small number, from a child."""
    pid = os.fork()
    if pid == 0:
        status = 255
        try:
            status = run()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_shared_table_is_one_on_both_sides_of_a_fork():
    table = Table("5/h", capacity=100, shared=True)
    assert table.allow("a")
    assert forked(lambda: sum(table.allow("a") for _ in range(9))) == 4
    assert not table.allow("a")


def test_a_private_table_and_a_limiter_are_two_after_a_fork():
    table = Table("5/h", capacity=100)
    limiter = Limiter("5/h")
    assert table.allow("a") and limiter.allow()
    assert forked(lambda: sum(table.allow("a") + 16 * limiter.allow() for _ in range(9))) == 4 + 16 * 4
    assert sum(table.allow("a") for _ in range(9)) == 4
    assert sum(limiter.allow() for _ in range(9)) == 4


def test_a_fork_beside_threads():
    table = Table("1000000/s", capacity=1000, shared=True)
    stop = threading.Event()

    def run():
        while not stop.is_set():
            table.check_many([b"a"] * 100)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        # Python 3.12 warns of every fork of a process with threads. The test shows that such a fork
        # works.
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for _ in range(5):
                assert forked(lambda: int(table.allow("b"))) == 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()


PROGRAM = """
import sys, tollbar
with tollbar.Table.open(sys.argv[1], {"logins": "500/day"}, 1000) as table:
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    print(sum(table.allow("key", policy="logins") for _ in range(400)))
"""


def test_two_programs_on_one_table(path):
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for program in programs:
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        program.stdin.write("go\n")
        program.stdin.flush()
    passed = [int(program.communicate(timeout=60)[0]) for program in programs]
    assert [program.returncode for program in programs] == [0, 0]
    assert sum(passed) == 500 and max(passed) <= 400
    with Table.open(path) as table:
        assert not table.allow("key") and table.policy().limit == 500
        table.sync()


def test_a_file_that_is_another_table_is_refused(path):
    Table.open(path, "5/h", 100).close()
    for policies, capacity, name in (
        ("6/h", 100, "TOLLBAR_E_OTHER_POLICIES"),
        ("5/h", 999_999, "TOLLBAR_E_OTHER_CAPACITY"),
    ):
        with pytest.raises(tollbar.TableError) as caught:
            Table.open(path, policies, capacity)
        assert caught.value.name == name and path in str(caught.value)
    with Table.open(path, "5/h", 100) as table:
        assert table.allow("a")


def test_files_that_cannot_be_opened(path, tmp_path):
    with pytest.raises(tollbar.TableError) as caught:
        Table.open(path)
    assert caught.value.errno == errno.ENOENT and caught.value.filename == path
    assert isinstance(caught.value, OSError) and isinstance(caught.value, ValueError)
    assert not os.path.exists(path)
    other = tmp_path / "other"
    other.write_bytes(b"no table" * 10_000)
    with pytest.raises(tollbar.TableError) as caught:
        Table.open(other, "5/h", 100)
    assert caught.value.name == "TOLLBAR_E_NOT_A_TABLE"
    assert other.read_bytes() == b"no table" * 10_000
    with pytest.raises(TypeError):
        Table.open(path, "5/h")
    with pytest.raises(TypeError):
        Table.open(5, "5/h", 100)
    with pytest.raises(ValueError):
        Table.open("a\0b", "5/h", 100)


def test_the_mode_of_a_file(path):
    Table.open(path, "5/h", 100, mode=0o640).close()
    assert os.stat(path).st_mode & 0o777 == 0o640


def test_closing_beside_threads():
    """Some see the table closed, none sees more."""
    for _ in range(20):
        table = Table("1000000/s", capacity=1000)
        odd = []

        def run(table=table, odd=odd):
            try:
                while True:
                    table.check_many([b"a"] * 10)
                    table.validate()
            except ValueError as error:
                if "closed" not in str(error):
                    odd.append(error)
            except BaseException as error:
                odd.append(error)

        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.002)
        table.close()
        for thread in threads:
            thread.join()
        assert odd == []

"""Send windows: the trace of a window of four, random operations beside a model, threads."""

import random
import threading
from collections import deque

import pytest
from tollbar import Error, SendWindow, SendWindowState

MODULUS = 1 << 22
MOST = (1 << 20) - 1


def test_a_window_of_four():
    window = SendWindow(4)
    assert [window.acquire() for _ in range(5)] == [1, 2, 3, 4, None]
    # A cumulative acknowledgement of two frees two.
    assert window.acknowledge(2) and window.read().usable == 2
    assert not window.acknowledge(2) and not window.acknowledge(5)
    assert window.acquire() == 5
    # With 3 in flight a limit of 2 refuses until two of them are acknowledged.
    window.resize(2)
    assert window.acquire() is None
    assert window.acknowledge(3) and window.acquire() is None
    assert window.acknowledge(4)
    assert window.read() == SendWindowState(limit=2, in_flight=1, usable=1, sent=5, acknowledged=4)
    assert not window.release(2)
    assert window.acquire(permits=1) == 6 and window.release() and window.release(permits=1)
    assert repr(window) == "<SendWindow, limit=2, in_flight=0>"


class Model:
    """The definition: the numbers in flight, the oldest first. Number 0 is 2**22."""

    def __init__(self, limit, sent):
        self.limit, self.sent, self.acknowledged, self.flying = limit, sent, sent, deque()

    def acquire(self, permits):
        if permits > max(self.limit - len(self.flying), 0):
            return None
        for _ in range(permits):
            self.sent = self.sent % MODULUS + 1
            self.flying.append(self.sent)
        return self.sent

    def release(self, permits):
        if permits > len(self.flying):
            return False
        for _ in range(permits):
            self.acknowledged = self.flying.popleft()
        return True

    def acknowledge(self, number):
        return number in self.flying and self.release(self.flying.index(number) + 1)


def test_random_operations_equal_a_sequential_model():
    rng = random.Random(5)
    # The numbers begin again after 2**22: the window starts just before that.
    window = SendWindow(MOST)
    for _ in range(4):
        assert window.acquire(MOST) and window.release(MOST)
    window.resize(4)
    model = Model(4, MODULUS - 4)
    seen = {"admitted": 0, "refused": 0, "late": 0, "again": 0}
    for step in range(100_000):
        kind = rng.randrange(10)
        if kind < 5:
            permits = rng.randrange(4)
            want, got = model.acquire(permits), window.acquire(permits)
            seen["refused" if want is None else "admitted"] += 1
            seen["again"] += want == MODULUS
        elif kind < 7:
            number = (model.acknowledged + rng.randrange(12) - 1) % MODULUS + 1
            want, got = model.acknowledge(number), window.acknowledge(number)
            seen["late"] += not want
        elif kind < 9:
            permits = rng.randrange(4)
            want, got = model.release(permits), window.release(permits)
        else:
            model.limit = rng.randrange(12)
            want, got = None, window.resize(model.limit)
        assert got == want, step
        flying = len(model.flying)
        usable = max(model.limit - flying, 0)
        assert window.read() == (model.limit, flying, usable, model.sent % MODULUS,
                                 model.acknowledged % MODULUS), step
    assert seen["admitted"] > 10_000 and seen["refused"] > 10_000 and seen["late"] > 1_000 and seen["again"], seen


def test_threads_share_a_window():
    """No more than the limit at one time, and each permit comes back."""
    window, inside, most, lock = SendWindow(3), 0, 0, threading.Lock()

    def work():
        nonlocal inside, most
        done = 0
        while done < 2_000:
            if window.acquire():
                with lock:
                    inside += 1
                    most = max(most, inside)
                with lock:
                    inside -= 1
                assert window.release()
                done += 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most <= 3 and window.read()[1:4] == (0, 3, 8_000)


def test_wrong_arguments():
    window = SendWindow(0)
    assert window.acquire() is None and window.acquire(2**40) is None and not window.release(2**64 - 1)
    for bad in (lambda: SendWindow(MOST + 1), lambda: SendWindow(2**40),
                lambda: window.resize(MOST + 1)):
        with pytest.raises(Error) as raised:
            bad()
        assert raised.value.name == "TOLLBAR_E_OUT_OF_RANGE"
    for bad in (lambda: window.acquire(-1), lambda: window.acknowledge(2**64),
                lambda: window.release(-1)):
        with pytest.raises(ValueError):
            bad()
    for bad in (lambda: SendWindow(), lambda: SendWindow("1"), lambda: window.acquire(1.5),
                lambda: window.acknowledge(None)):
        with pytest.raises(TypeError):
            bad()
    assert window.read() == (0, 0, 0, 0, 0)

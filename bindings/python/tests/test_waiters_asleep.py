"""Callers that sleep in threads and event loops: how many checks they make, in which order they
wake, and how they leave."""

import asyncio
import dis
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from edges import Late, again_if_late
from tollbar import Limiter, Table, _queue, _waiters

SECOND = 1_000_000_000


class Counted(Table):
    """Counts what is asked of it."""

    __slots__ = ("checks", "peeks")

    def check(self, *args, **named):
        self.checks = getattr(self, "checks", 0) + 1
        return super().check(*args, **named)

    def peek(self, *args, **named):
        self.peeks = getattr(self, "peeks", 0) + 1
        return super().peek(*args, **named)


@pytest.fixture(autouse=True)
def nobody_is_left_in_a_queue():
    yield
    assert not _queue._queues


def threads(count, function):
    """Starts threads one after the other, in the order of their numbers, and lets them end."""
    all_of_them = [threading.Thread(target=function, args=(n,), name=str(n)) for n in range(count)]
    for thread in all_of_them:
        thread.start()
    return all_of_them


def join(all_of_them):
    for thread in all_of_them:
        thread.join(60)
        assert not thread.is_alive()


def in_queues():
    return sum(len(queue.waiters) for queue in list(_queue._queues.values()))


def queued(count, *threads):
    """Until so many wait. These threads are among them; one that has ended got its permit before
    the others came."""
    deadline = time.monotonic() + 30
    while in_queues() != count:
        if not all(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(60)
            raise Late
        assert time.monotonic() < deadline
        time.sleep(0.0005)


@pytest.fixture
def served(monkeypatch):
    """The names of the threads that waited, in the order in which the queue gave them their
    permits. They may wake in another order."""
    order, names = [], {}
    join, remove = _waiters._Waiter.join, _queue.Queue._remove

    def joined(waiter, turn):
        names[waiter] = threading.current_thread().name
        join(waiter, turn)

    def removed(queue, waiter):
        if waiter.outcome is True and waiter in names:
            order.append(names.pop(waiter))
        remove(queue, waiter)

    monkeypatch.setattr(_waiters._Waiter, "join", joined)
    monkeypatch.setattr(_queue.Queue, "_remove", removed)
    return order


def one_after_the_other(count, start, served):
    """Starts threads with the numbers from 0 on, each when the one before it waits, or has its
    permit."""
    all_of_them = []
    for n in range(count):
        all_of_them.append(start(n))
        deadline = time.monotonic() + 30
        while len(served) + in_queues() <= n and all_of_them[-1].is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.0002)
    return all_of_them


@pytest.mark.parametrize("timeout", [None, 60])
def test_a_hundred_threads_make_two_checks_each(timeout):
    table = Counted("1/2ms algo interval anchor first", capacity=10)
    got = []
    started = time.monotonic()
    join(threads(100, lambda n: got.append(table.wait("key", timeout))))
    assert got == [True] * 100
    # 99 permits come back in 198 ms; not even one is taken that is not there.
    assert time.monotonic() - started >= 0.197
    # The head checks, and checks again when it is its turn. On a busy machine some threads start so
    # late that they need not wait. A sleep may end some nanoseconds early by the table's clock:
    # then there is one more.
    assert 50 < table.checks <= 230
    # Each that comes while others wait looks once whether it can be in time.
    assert getattr(table, "peeks", 0) <= 200


def test_a_hundred_tasks_make_two_checks_each():
    table = Counted("1/2ms algo interval anchor first", capacity=10)

    async def run():
        return await asyncio.gather(*(table.wait_async("key", 60) for _ in range(100)))

    assert asyncio.run(run()) == [True] * 100
    assert 50 < table.checks <= 230


# A permit takes longer than to start a thread.
@pytest.mark.parametrize("policy", ["1/10ms algo fixed-window", "20/200ms algo sliding-log"])
def test_limiters_that_cannot_book(policy):
    class CountedLimiter(Limiter):
        __slots__ = ("asked",)

        def check(self, *args):
            self.asked += 1
            return super().check(*args)

    limiter = CountedLimiter(policy)
    limiter.asked = 0
    got = []
    join(threads(100, lambda n: got.append(limiter.wait())))
    assert got == [True] * 100 and 50 < limiter.asked <= 230
    limiter.asked = 0

    async def run():
        return await asyncio.gather(*(limiter.wait_async() for _ in range(100)))

    assert asyncio.run(run()) == [True] * 100 and 50 < limiter.asked <= 230


def test_who_comes_first_goes_first(served):
    table = Table("1/5ms algo interval anchor first", capacity=10)
    assert table.allow("key")
    order = []

    def one():
        assert table.wait("key")
        name = threading.current_thread().name
        if name not in served:
            served.append(name)

    def start(n):
        thread = threading.Thread(target=one, name=str(n))
        thread.start()
        return thread

    join(one_after_the_other(10, start, served))
    assert served == [str(n) for n in range(10)]

    async def tasks():
        async def one(n):
            assert await table.wait_async("key")
            order.append(n)

        await asyncio.gather(*map(one, range(10)))

    asyncio.run(tasks())
    assert order == list(range(10))


@again_if_late()
def test_a_large_cost_is_not_overtaken(served):
    served.clear()
    table = Table("10/500ms algo fixed-window anchor first", capacity=10)
    assert table.allow("key", 10)

    def one(cost):
        assert table.wait("key", cost=cost)

    large = threading.Thread(target=one, args=(10,), name="large")
    large.start()
    queued(1, large)
    # Each permit that comes back would be enough for the small ones.
    small = threads(5, lambda n: one(1))
    try:
        queued(6, large)
    finally:
        join([large, *small])
    assert served[0] == "large" and sorted(served[1:]) == [str(n) for n in range(5)]


def out_of_patience():
    """What the second and the third caller got. Late, if this process slept so long that the first
    one got a permit."""
    table = Table("1/500ms algo interval anchor first", capacity=10)
    assert table.allow("key")
    first = threading.Thread(target=table.wait, args=("key",))
    first.start()
    queued(1, first)
    # When the second begins to wait, its patience is enough. Then another caller takes the permit
    # of the first, so all move back.
    answers = {}
    second = threading.Thread(target=lambda: answers.update(second=(table.wait("key", 1.2), first.is_alive())))
    second.start()
    queued(2, first)
    third = threading.Thread(target=lambda: answers.update(third=table.wait("key")))
    third.start()
    queued(3, first)
    deadline = time.monotonic() + 2.4
    while time.monotonic() < deadline:
        table.allow("key")
    join([first, second, third])
    if not answers["second"][1]:
        raise Late
    return answers["second"][0], answers["third"]


@again_if_late()
def test_who_runs_out_of_patience_leaves():
    queued(0)
    assert out_of_patience() == (False, True)


@again_if_late()
def test_a_signal_lets_the_next_one_go_on():
    """The handler's exception ends the first's wait; the second gets its turn."""
    table = Table("1/s algo interval anchor first", capacity=10)
    assert table.allow("key")
    got = []

    def interrupt(*_):
        raise InterruptedError

    def until(count):
        """Whether so many wait before the first has its permit."""
        while in_queues() != count and not ended.is_set():
            time.sleep(0.0005)
        return not ended.is_set()

    ended = threading.Event()
    second = threading.Thread(target=lambda: until(1) and got.append(table.wait("key")))
    bell = threading.Thread(target=lambda: until(2) and signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM))
    old = signal.signal(signal.SIGALRM, interrupt)
    interrupted = False
    try:
        second.start(), bell.start()
        table.wait("key", cost=1)
        ended.set()
        # A signal that comes this late finds the handler still.
        join([second, bell])
    except InterruptedError:
        interrupted = not ended.is_set()
    finally:
        ended.set()
        join([second, bell])
        signal.signal(signal.SIGALRM, old)
    if not interrupted:
        raise Late
    assert got == [True]


@pytest.mark.parametrize("which", [0, 1, 2])
@again_if_late()
def test_a_cancelled_task_lets_the_next_one_go_on(which):
    table = Table("1/50ms algo interval anchor first", capacity=10)
    assert table.allow("key")

    async def run():
        tasks = [asyncio.create_task(table.wait_async("key", 30)) for _ in range(3)]
        await asyncio.sleep(0)
        in_time = in_queues() == 3 and tasks[which].cancel()
        return in_time, await asyncio.gather(*tasks, return_exceptions=True)

    in_time, answers = asyncio.run(run())
    if not in_time:
        raise Late
    assert [type(a) for a in answers] == [asyncio.CancelledError if n == which else bool for n in range(3)]
    assert all(a is True for n, a in enumerate(answers) if n != which)


def test_leaving_at_random():
    """Threads with all kinds of patience: none is forgotten in the queue, and none takes what is
    not there."""
    table = Table({"a": "1/500us algo interval anchor first", "b": "1/1ms algo interval anchor first"}, capacity=10)
    random.seed(5)
    patiences = [random.choice([None, 0, 0.001, 0.01, 0.05]) for _ in range(400)]
    granted = [0, 0]
    lock = threading.Lock()

    def one(n):
        policy = n % 2
        if table.wait("key", patiences[n], policy="ab"[policy]):
            with lock:
                granted[policy] += 1

    started = time.monotonic()
    join(threads(len(patiences), one))
    took = time.monotonic() - started
    assert granted[0] <= 3 + 2000 * took + 1 and granted[1] <= 1 + 1000 * took + 1
    for policy in (0, 1):
        assert granted[policy] >= sum(1 for n, p in enumerate(patiences) if p is None and n % 2 == policy)


@again_if_late()
def test_a_child_has_no_waiters():
    table = Table("1/s algo interval anchor first", capacity=10, shared=True)
    assert table.allow("key")
    waiting = threading.Thread(target=table.wait, args=("key",))
    waiting.start()
    queued(1, waiting)
    child = os.fork()
    if child == 0:
        # Behind a thread that is not in this process it would wait for ever.
        os._exit(0 if not _queue._queues and table.wait("key", 60) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    join([waiting])


def test_it_keeps_nothing():
    table = Table("1/500us algo interval anchor first", capacity=1000)
    before = len(gc.get_objects())
    for n in range(200):
        table.allow(n)
        assert table.wait(n)
    gc.collect()
    assert len(gc.get_objects()) - before < 100


def in_a_loop(limiter, answers, name):
    """A thread with an event loop in which one task waits."""

    async def main():
        answers.append((name, await limiter.wait_async()))

    thread = threading.Thread(target=asyncio.run, args=(main(),), name=str(name))
    thread.start()
    return thread


@again_if_late()
def test_a2_threads_and_event_loops_wait_in_one_queue(served):
    served.clear()
    limiter = Limiter("20/s burst 1")
    assert limiter.allow()
    answers = []
    started = time.monotonic()

    def start(n):
        if n % 2:
            return in_a_loop(limiter, answers, n)
        thread = threading.Thread(target=lambda: answers.append((n, limiter.wait())), name=str(n))
        thread.start()
        return thread

    join(one_after_the_other(8, start, served))
    if len(served) < 8:
        # One of them need not wait.
        raise Late
    assert served == [str(n) for n in range(8)] and sorted(answers) == [(n, True) for n in range(8)]
    assert limiter.counts().allowed == 9 and limiter.counts().denied == 0
    assert time.monotonic() - started >= 0.399


@pytest.mark.parametrize("policy", ["100/s burst 1", "1/10ms algo fixed-window"])
@again_if_late()
def test_a2_threads_that_give_up_at_random(policy):
    """Handlers of signals end the waits of the main thread at all points, while other threads wait.
    None sleeps for ever, none takes what is not there."""
    limiter = Limiter(policy)
    random.seed(policy)
    taken, ended, late = [], threading.Event(), []

    def watch():
        """How late the machine wakes a thread that sleeps for as long as a permit takes. A permit
        that nobody is awake to take is lost."""
        while not ended.is_set():
            due = time.monotonic() + 0.01
            time.sleep(0.01)
            late.append(time.monotonic() - due)

    def others():
        while not ended.is_set():
            if limiter.wait(random.choice([None, 0.005, 0.02])):
                taken.append(1)

    def interrupt(*_):
        raise InterruptedError

    old = signal.signal(signal.SIGALRM, interrupt)
    started = time.monotonic()
    beside = [threading.Thread(target=target) for target in (others, others, others, watch)]
    for thread in beside:
        thread.start()
    interrupted = 0
    try:
        while time.monotonic() - started < 1.5:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.choice([0.00002, 0.0001, 0.001, 0.01]))
                if limiter.wait():
                    taken.append(1)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except InterruptedError:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        ended.set()
    join(beside)
    took = time.monotonic() - started
    # A window's permits may be taken at its end and at the beginning of the next.
    assert len(taken) <= took * 100 + 2
    # Permits lost to the interrupts of this thread: those that it has got and not counted.
    if interrupted <= 20 or len(taken) < (took - 2 * sum(late)) * 100 - interrupted - 10:
        raise Late(f"{len(taken)} taken and {interrupted} interrupted in {took} s, late by {sum(late)} s")


class Interrupting:
    """Raises an exception as a signal's handler does: at the n-th point in tollbar's code at which
    Python runs handlers, which is behind a call, at the beginning of a function, and at the end of
    a loop's round."""

    def __init__(self, at):
        self.left = at
        self.last = {}

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before = self.last.get(frame, "")
            self.last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before.startswith(("CALL", "RESUME", "JUMP_BACKWARD")):
                self.left -= 1
                if self.left == 0:
                    raise InterruptedError
        return self


PACKAGE = os.path.dirname(_queue.__file__)


@pytest.mark.parametrize("policy", ["100/s burst 1", "1/10ms algo fixed-window"])
@pytest.mark.parametrize("first", [True, False])
def test_a2_a_signal_at_any_point_of_a_wait_leaves_the_others_alone(policy, first):
    """Whatever a handler's exception ends, nobody stays behind in the queue, and those who wait
    there get their permits. The interrupted caller is the first that waits, or the second. Once, an
    exception within the constructor of a waiter left it in the queue as the one that rings for all
    threads."""
    interrupted, early = 0, 0
    # On a busy machine the permit may come before the caller sleeps. Then the wait ends without
    # reaching the point, and the test tries the same point again.
    while early < 20:
        at = interrupted + 1
        limiter = Limiter(policy)
        assert limiter.allow()
        begun, answers = threading.Event(), []

        def other():
            if first:
                # The other one comes when this one waits, or has been interrupted.
                while not _queue._queues and not begun.is_set():
                    time.sleep(0)
            answers.append(limiter.wait(60))

        thread = threading.Thread(target=other)
        thread.start()
        while not first and not _queue._queues and thread.is_alive():
            time.sleep(0)
        trace = Interrupting(at)
        try:
            sys.settrace(trace)
            ended = limiter.wait()
        except InterruptedError:
            ended = None
        finally:
            sys.settrace(None)
            begun.set()
        thread.join(30)
        assert answers == [True] and limiter.wait(30), f"an exception at point {at} holds up the others"
        assert not _queue._queues and not limiter._places.taken, f"an exception at point {at} leaves a caller behind"
        if ended is None:
            interrupted, early = interrupted + 1, 0
        else:
            assert ended
            early += 1
    assert interrupted > 30


@again_if_late()
def test_a2_a_coroutine_that_is_collected_leaves():
    """Its loop was closed while it waited. Those behind it go on."""
    limiter = Limiter("1/s burst 1")
    assert limiter.allow()
    loop = asyncio.new_event_loop()

    async def begin():
        task = loop.create_task(limiter.wait_async())
        await asyncio.sleep(0)
        # asyncio would report it as destroyed while it was pending.
        task._log_destroy_pending = False

    loop.run_until_complete(begin())
    behind = threading.Thread(target=limiter.wait)
    behind.start()
    queued(2, behind)
    loop.close()
    del loop, begin
    gc.collect()
    join([behind])
    assert limiter.counts().denied == 0


def test_a2_a_child_of_a_process_whose_threads_wait():
    """The fork comes while another thread has the queues' lock."""
    limiter = Limiter("20/s burst 1")
    has, ended = threading.Event(), threading.Event()

    def other():
        with _queue._lock:
            has.set()
            ended.wait(60)

    beside = threading.Thread(target=other)
    beside.start()
    has.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if all(limiter.wait(10) for _ in range(3)) else 1)
    ended.set()
    join([beside])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


ENDS = """
import asyncio, gc, sys, threading, tollbar
limiter = tollbar.Limiter("1/h")
assert limiter.allow()
threading.Thread(target=limiter.wait, daemon=True).start()
loop = asyncio.new_event_loop()
async def begin():
    for _ in range(3):
        task = loop.create_task(limiter.wait_async())
        task._log_destroy_pending = False
    await asyncio.sleep(0.05)
loop.run_until_complete(begin())
if sys.argv[1] == "close":
    loop.close()
"""


@pytest.mark.parametrize("how", ["close", "leave"])
def test_a2_the_interpreter_ends_with_waiters(how):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", ENDS, how], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "tollbar" not in done.stderr, done.stderr


@again_if_late()
def test_a2_a_closed_table_tells_its_waiters():
    table = Table("1/s burst 1", 10)
    assert table.allow("key")
    answers = []

    def one():
        try:
            answers.append(table.wait("key"))
        except ValueError as error:
            answers.append(str(error))

    waiting = []
    for n in range(3):
        waiting += threads(1, lambda _: one())
        queued(n + 1, *waiting)
    table.close()
    join(waiting)
    # The head has its booking. The others cannot book any more.
    assert sorted(answers, key=str) == [True, *[answers[-1]] * 2] and "closed" in answers[-1]


@again_if_late()
def test_a2_a_handler_that_waits_in_the_midst_of_a_wait():
    """It cannot be served before the call that it has interrupted, and is told so."""
    limiter, told = Limiter("1/h"), []
    assert limiter.allow()

    class Interrupted(Limiter):
        __slots__ = ()

        def _book(self, cost, patience, at=None):
            if not told and _queue._busy:
                try:
                    limiter.wait()
                except RuntimeError as error:
                    told.append(str(error))
            return super()._book(cost, patience)

    interrupted = Interrupted("1/s burst 1")
    assert interrupted.allow()
    waiting = []
    for n in range(2):
        waiting += threads(1, lambda _: interrupted.wait())
        queued(n + 1, *waiting)
    join(waiting)
    assert "has interrupted a call that does" in told[0]


@again_if_late()
def test_a2_a_handlers_exception_is_that_of_the_thread_that_it_interrupts():
    """A thread departs and books for the next one. A handler that raises then ends the first one's
    call, whose permit is the next one's."""

    class Interrupted(Limiter):
        __slots__ = ()
        raised = False

        def _book(self, cost, patience, at=None):
            if _queue._busy and not Interrupted.raised:
                Interrupted.raised = True
                raise InterruptedError
            return super()._book(cost, patience)

    limiter, answers = Interrupted("1/s burst 1"), []
    assert limiter.allow()

    def one(n):
        try:
            answers.append((n, limiter.wait()))
        except InterruptedError:
            answers.append((n, "interrupted"))

    waiting = []
    for n in range(2):
        waiting.append(threading.Thread(target=one, args=(n,)))
        waiting[-1].start()
        queued(n + 1, *waiting)
    join(waiting)
    assert sorted(answers, key=str) == [(0, "interrupted"), (1, True)]

"""The same program as hammer.c, in Python."""

import mmap
import sys
import time

import tollbar

READY, GO, STOP, FIRST, EACH, KEYS = 0, 1, 2, 8, 3, 4

with open(sys.argv[2], "r+b") as file:
    board = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
keys = [b"key-%d" % k for k in range(KEYS)]
with tollbar.Table.open(sys.argv[1], sys.argv[3], 1000) as table:
    board[READY] = 1
    while not board[GO]:
        time.sleep(0.0001)
    while not board[STOP]:
        for k, key in enumerate(keys):
            at = FIRST + EACH * k
            board[at] += 1
            if table.allow(key):
                board[at + 1] += 1
            else:
                board[at + 2] += 1

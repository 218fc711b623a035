"""Words of 64 bits, and sums of them that do not wrap."""

import z3

MOST = 2**64 - 1


def word(name):
    return z3.BitVec(name, 64)


def wide(value):
    """The word as a number that sums of four words do not wrap."""
    return z3.ZeroExt(2, value)


def at_most(a, b):
    return z3.ULE(a, b)


def saturating_add(a, b):
    return z3.If(z3.BVAddNoOverflow(a, b, False), a + b, z3.BitVecVal(MOST, 64))


def greater(a, b):
    return z3.If(z3.UGE(a, b), a, b)

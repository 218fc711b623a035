"""src/units.rs: division by a multiplication."""

from z3 import And, Ints

from restated import restates
from words import MOST


def the_divisor(fault):
    """Divisor::div_rem is the quotient and the remainder, of all words by all others but 0."""
    restates(
        "src/units.rs",
        "div_rem",
        """
        let q = ((n as u128 * self.reciprocal as u128) >> 64) as u64;
        let r = n.wrapping_sub(q.wrapping_mul(self.by.get()));
        if r >= self.by.get() { (q + 1, r - self.by.get()) } else { (q, r) }
        """,
    )
    n, by, reciprocal, rest, q, low = Ints("n by reciprocal rest q low")
    two = MOST + 1
    known = [
        n >= 0,
        n <= MOST,
        by >= 1,
        by <= MOST,
        # `reciprocal` is MOST / by, and `q` the upper half of its product with n.
        reciprocal * by + rest == MOST,
        rest >= 0,
        rest < by,
        q * two + low == n * reciprocal,
        low >= 0,
        low < two,
        q >= 0,
    ]
    # Both sides times `by`.
    times = [q * by * two + low * by == n * (two - 1 - rest)]
    # 1 + rest <= by.
    bounds = [
        n * (1 + rest) <= n * by,
        n * by < two * by,
        low * by < two * by,
        n * (1 + rest) >= 0,
        low * by >= 0,
    ]
    for fact in times + bounds:
        yield known, fact if not fault else And(fact, n * rest > n * by)
    # Divided by 2^64: the remainder of the estimate is below twice the divisor.
    r, product = Ints("r product")
    scaled = [r * two == low * by + n * (1 + rest)]
    yield times + [product == q * by, r == n - product], (scaled if not fault else [r < 0])[0]
    few = scaled + [by >= 1] + bounds
    yield few, And(r >= 0, r < (1 if fault else 2) * by)
    yield (
        [r >= by, r < 2 * by, n == q * by + r],
        And(n == (q + 1) * by + (r - by), r - by >= 0, r - by < (1 if fault else by)),
    )


THEOREMS = [the_divisor]

"""What a trusted shuffler adds: n local reports, mixed, hide each other."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from discreet.accounting.loss import Loss, failure_mass
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, enclose, exp_up, log_up
from discreet.exact.numbers import Exact, positive, whole


def shuffled(epsilon: Exact, *, respondents: int, delta: Exact) -> Loss:
    """The loss of n ``epsilon``-private local reports to whoever sees them only after a shuffler.

    There are n = ``respondents`` reports, and ``delta`` is that of the loss.

    Feldman, McMillan and Talwar (2021), Theorem 3.1 (docs/proofs/local.md, Lemma 6), in ball
    arithmetic and rounded up; ``epsilon`` itself where the theorem gives no less or does not
    apply.  The shuffler is trusted: towards it, and towards whoever reads the reports before
    they are mixed, each respondent still loses ``epsilon``.

    >>> loss = shuffled(1, respondents=50_000, delta="1e-6")
    >>> round(float(loss.epsilon), 4), float(loss.delta)
    (0.1012, 1e-06)
    >>> shuffled(1, respondents=30, delta="1e-6").epsilon
    Fraction(1, 1)
    """
    local = positive(epsilon, name="epsilon")
    n = whole(respondents, name="respondents", least=1)
    chance = failure_mass(delta)
    if chance == 0:
        raise InvalidParameter(
            "P2",
            "delta must be greater than 0.",
            why="by chance nobody else may report what a person did: then nothing hides them.",
            fix="pass a small probability such as delta='1e-9'.",
        )
    # e**epsilon <= n / (16 ln(2 / delta)), both sides rounded against us.
    if local > 40 or exp_up(local) * 16 * log_up(2 / chance) > n:
        return Loss.pure(local)

    def bound() -> arb:
        growth = ball(local).exp()
        logarithm = ball(4 / chance).log()
        spread = 8 * (growth * logarithm / n).sqrt() + 8 * growth / n
        return ((growth - 1) / (growth + 1) * spread).log1p()

    amount: Fraction = enclose(bound)[1]
    return Loss.approximate(amount, chance) if amount < local else Loss.pure(local)


__all__ = ["shuffled"]

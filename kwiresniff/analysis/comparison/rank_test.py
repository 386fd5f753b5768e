"""Statistical tests that distinguish a change from noise in captures of unequal length.

Latencies that follow each other are alike, and so are errors: a thousand of them are not a thousand independent
observations. So what is compared is few: blocks of consecutive exchanges, or seconds with an error in them; and of
blocks that resemble their neighbours fewer count (N. L. Johnson et al. call the number that is left the effective
sample size; it follows from the autocorrelation at lag 1). H. B. Mann and D. R. Whitney, "On a test of whether one of
two random variables is stochastically larger than the other", Annals of Mathematical Statistics 18(1), 1947.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import erfc, exp, lgamma, log, sqrt
from typing import Final

#: Blocks that resemble their neighbours more than this count as if they resembled them so much.
_MOST_ALIKE: Final = 0.9
#: Trials up to which binomial probabilities are added up one by one.
_EXACT_TRIALS: Final = 10_000


def rank_test(before: Sequence[float], after: Sequence[float], *, independent: bool = False) -> float:
    """The probability that like captures differ so much by chance (two-sided p-value), from observations in order.

    With ``independent`` they count as such, however much neighbours resemble each other. 1.0 where there is nothing to
    compare.
    """
    n, m = len(before), len(after)
    if not n or not m:
        return 1.0
    ranks, ties = _ranks([*before, *after])
    total = n + m
    # The probability that one after is greater than one before, ties counted half.
    greater = (sum(ranks[n:]) - m * (m + 1) / 2) / (n * m)
    spread = 1.0 - ties / (total**3 - total) if total > 1 else 0.0
    n_own, m_own = (float(n), float(m)) if independent else (_effective(ranks[:n]), _effective(ranks[n:]))
    variance = spread * (n_own + m_own + 1) / (12 * n_own * m_own)
    off = abs(greater - 0.5) - 0.5 / (n * m)
    if variance <= 0 or off <= 0:
        return 1.0
    return erfc(off / sqrt(2 * variance))


def count_test(before: int, after: int, before_exposure: float, after_exposure: float) -> float:
    """The probability that like captures differ so much by chance (two-sided p-value), from how often something
    happened in so much time, or in so many trials.
    """
    trials = before + after
    exposure = before_exposure + after_exposure
    if not trials or before_exposure <= 0 or after_exposure <= 0:
        return 1.0
    share = after_exposure / exposure
    if trials > _EXACT_TRIALS:
        off = abs(after - trials * share) - 0.5
        return 1.0 if off <= 0 else erfc(off / sqrt(2 * trials * share * (1 - share)))
    # Everything that is no more probable than what was seen; a little more than it, since these are floats.
    limit = _binomial(after, trials, share) * (1 + 1e-9)
    every = (_binomial(count, trials, share) for count in range(trials + 1))
    return min(sum(one for one in every if one <= limit), 1.0)


def _binomial(count: int, trials: int, share: float) -> float:
    ways = lgamma(trials + 1) - lgamma(count + 1) - lgamma(trials - count + 1)
    return exp(ways + count * log(share) + (trials - count) * log(1 - share))


def _ranks(values: Sequence[float]) -> tuple[list[float], int]:
    """The rank of each value, the mean of those that equal ones have, and the sum of ``t ** 3 - t`` over ties of t."""
    places: dict[float, float] = {}
    ties = below = 0
    for value, count in sorted(Counter(values).items()):
        places[value] = below + (count + 1) / 2
        below += count
        ties += count**3 - count
    return [places[value] for value in values], ties


def _effective(ranks: Sequence[float]) -> float:
    """How many independent observations these are worth, at least one."""
    n = len(ranks)
    mean = sum(ranks) / n
    off = [rank - mean for rank in ranks]
    variance = sum(one * one for one in off)
    if n < 3 or variance <= 0:
        return float(n)
    alike = sum(one * two for one, two in pairwise(off)) / variance
    alike = min(max(alike, 0.0), _MOST_ALIKE)
    return max(n * (1 - alike) / (1 + alike), 1.0)

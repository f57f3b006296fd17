"""The model as slowly and as literally as the paper has it, for small numbers."""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict


def binomial(n, p, j):
    return math.comb(n, j) * p**j * (1 - p) ** (n - j) if 0 <= j <= n else 0.0


def p_x(rate, window):
    """Equation 1."""
    return 1 - math.exp(-rate * window)


def p_o(n_subjects, p, z):
    """Equation 3."""
    return 1 - sum(binomial(n_subjects - 1, p, i) for i in range(z - 1))


def p_y(scenario):
    exposure = [p_x(rate, scenario.window) for rate in scenario.rates]
    return [p * p_o(scenario.n_subjects, p, scenario.z) for p in exposure]


def realization(publication, y):
    """Equation 4."""
    return math.prod(p if one else 1 - p for p, one in zip(publication, y, strict=True))


def all_sets(n):
    return itertools.product((0, 1), repeat=n)


def p_k_anon(publication, n_subjects, k):
    """Equation 5."""
    total = 0.0
    for y in all_sets(len(publication)):
        p = realization(publication, y)
        total += p * (1 - sum(binomial(n_subjects - 1, p, j) for j in range(k - 1)))
    return total


def entropy(publication):
    """Equation 6."""
    likely = [realization(publication, y) for y in all_sets(len(publication))]
    return -sum(p * math.log(p) for p in likely if p > 0)


def combinations(classes, z):
    """The set C(z): counts of each class whose sum doesn't exceed z - 2."""
    counts = itertools.product(range(max(0, z - 1)), repeat=len(classes))
    return [one for one in counts if sum(one) <= z - 2]


def p_o_of_class(classes, a, c, *, slip=False):
    """p_O of class c; with the slip, B_{i,c,a} has the probability of class c, as printed."""
    total = 0.0
    for counts in combinations(classes, classes[0].z):
        total += math.prod(
            binomial(
                one.n_subjects - (i == c),
                p_x(classes[c if slip else i].rates[a], one.window),
                counts[i],
            )
            for i, one in enumerate(classes)
        )
    return 1 - total


def p_k_anon_of_class(classes, publication, c):
    """publication[i][a] is p_Y of class i."""
    total = 0.0
    for y in all_sets(len(publication[0])):
        likely = [realization(line, y) for line in publication]
        fewer = sum(
            math.prod(
                binomial(one.n_subjects - (i == c), likely[i], counts[i])
                for i, one in enumerate(classes)
            )
            for counts in combinations(classes, classes[0].k)
        )
        total += (1 - fewer) * likely[c]
    return total


def counters(events, window, *, in_rows=False):
    """Algorithm 1: the counter of each event, after those that are too old have left."""
    table = {}
    found = []
    for t, u, a in events:
        users = table.setdefault(a, OrderedDict())
        users.pop(u, None)
        users[u] = t
        for v, seen in list(users.items()):
            too_old = seen <= t - window if in_rows else seen < t - window
            if not too_old:
                break
            del users[v]
        found.append(len(users))
    return found


def anonymity_sets(events, window, z, n_windows, n_subjects=None):
    """How many subjects publish each set, in each window but the first."""
    passed = [count >= z for count in counters(events, window)]
    found = []
    for w in range(1, n_windows):
        sets = {u: set() for u in range(n_subjects or 0)}
        for (t, u, a), is_passed in zip(events, passed, strict=True):
            if w * window <= t < (w + 1) * window:
                sets.setdefault(u, set())
                if is_passed:
                    sets[u].add(a)
        alike = {}
        for published in sets.values():
            alike[frozenset(published)] = alike.get(frozenset(published), 0) + 1
        found += alike.values()
    return sorted(found)

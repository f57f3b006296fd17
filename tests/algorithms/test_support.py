"""An anonymizer that can't enforce a policy names those that can."""

from __future__ import annotations

import dataclasses

import pytest

from shoal.algorithms import registry
from shoal.algorithms.castle import Castle
from shoal.algorithms.fast import Fast
from shoal.algorithms.registry import check_support
from shoal.errors import UnsupportedError
from shoal.spec.policy import Criterion, Delay, EntropyLDiversity, KAnonymity, Policy


@dataclasses.dataclass(frozen=True)
class Luck(Criterion):
    """A criterion that no anonymizer enforces."""

    name = "luck"


def test_an_anonymizer_refuses_what_it_can_not_enforce(monkeypatch):
    policy = Policy(KAnonymity(2), Luck(), delay=Delay(rows=5))
    with pytest.raises(UnsupportedError, match=r"'castle' can't enforce luck. No anonymizer can"):
        check_support(Castle(), policy)

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Lucky(Castle):
        name = "lucky"
        enforces = (KAnonymity, Luck)

    find = registry.find
    monkeypatch.setattr(registry, "names", lambda: ["castle", "lucky"])
    monkeypatch.setattr(registry, "find", lambda name: Lucky if name == "lucky" else find(name))
    with pytest.raises(UnsupportedError, match=r"can't enforce luck. These can: lucky"):
        check_support(Castle(), policy)


def test_who_would_refuse_for_another_reason_is_not_named(monkeypatch):
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Picky(Castle):
        name = "picky"

        def check(self, policy):
            raise UnsupportedError("'picky' never can")

    find = registry.find
    monkeypatch.setattr(registry, "names", lambda: ["castle", "fast", "picky"])
    monkeypatch.setattr(registry, "find", lambda name: Picky if name == "picky" else find(name))
    policy = Policy(EntropyLDiversity(3), delay=Delay(rows=5))
    with pytest.raises(UnsupportedError, match=r"'fast' can't enforce entropy.* can: castle\.$"):
        check_support(Fast(), policy)


def test_a_refusal_that_says_how_to_fix_it_stays():
    with pytest.raises(UnsupportedError, match=r"no bound on it\. Set policy\.delay"):
        check_support(Castle(), Policy(KAnonymity(2)))


def test_who_can_is_not_refused():
    check_support(Castle(), Policy(KAnonymity(2), delay=Delay(rows=5)))

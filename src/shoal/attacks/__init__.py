"""Attacks on a release: what an attacker of the threat model achieves.

The audit proves on paper that a promise is kept; this package attacks on purpose. One attack is one
file; `registry` finds them. An attack gets a `Setting`, attacks a sample of people, and yields an
`AttackResult` for each grade of what the attacker knows: successes among people with a Wilson
interval, beside guessing from the published marginals (*baseline*), the same attack on people who
aren't in the stream (*control*), and the bound that the promise gives.

`shoal.job.attacking.attack` takes jobs, files and frames of any kind.
"""

from shoal.attacks.base import Attack
from shoal.attacks.lab import attack
from shoal.attacks.registry import entries, find, names
from shoal.attacks.result import AttackReport, AttackResult
from shoal.attacks.setting import Run, Setting
from shoal.attacks.shares import Share, wilson

__all__ = [
    "Attack",
    "AttackReport",
    "AttackResult",
    "Run",
    "Setting",
    "Share",
    "attack",
    "entries",
    "find",
    "names",
    "wilson",
]

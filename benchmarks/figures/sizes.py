"""How much is measured for the figures."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Sizes"]


@dataclass(frozen=True)
class Sizes:
    """The parameters of the experiments; those of the thesis where it names them."""

    rows: int = 30_162
    k: int = 100
    delay: int = 10_000
    seeds: int = 3
    jobs: int = 2
    clusters: tuple[int, ...] = (10, 25, 50, 75, 100, 150, 200)
    recent: tuple[int, ...] = (10, 50, 100, 150, 200)
    n_quasi: tuple[int, ...] = tuple(range(2, 11))
    orders: int = 8
    ks: tuple[int, ...] = (25, 50, 100, 150, 200, 300, 400)
    alphas: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    deltas: tuple[int, ...] = (2_000, 5_000, 10_000, 20_000)
    power_ks: tuple[int, ...] = (50, 100, 200, 400)
    columns: int = 4
    largest: int = 1_000
    customers: int = 12_000
    dups: tuple[int, ...] = (5, 10, 15)
    transaction_n_quasi: int = 4
    query_k: int = 200
    query_delay: int = 20_000
    n_queries: int = 5_000
    selectivity: float = 0.1
    selectivities: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25)
    query_n_quasi: tuple[int, ...] = (2, 3, 4, 5, 6, 7)
    diverse_n_quasi: int = 5
    diverse_ks: tuple[int, ...] = (50, 100, 200)
    ages: tuple[int, ...] = (2, 10, 20, 30, 40)
    occupations: tuple[int, ...] = (2, 4, 6, 8, 10)

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=150, k=5, delay=60, seeds=2, jobs=1, clusters=(5, 50), recent=(100, 150),
            n_quasi=(2, 4), orders=2, ks=(5, 10), alphas=(0.0, 2.0), deltas=(30, 60),
            power_ks=(5, 10), columns=2, largest=100, customers=40, dups=(5, 10), query_k=5,
            query_delay=60, n_queries=200, selectivities=(0.1, 0.25), query_n_quasi=(2, 3),
            diverse_n_quasi=2, diverse_ks=(5, 10), ages=(2, 3), occupations=(2, 3),
        )  # fmt: skip

"""Say more about two mistakes on the command line that newcomers make."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

__all__ = ["CommandWithHints"]

#: What is said in the job, so that a run can't promise less by a slip on the command line.
KEYS = frozenset(
    {"--algorithm", "--beta", "--delay", "--k", "--l", "--seed", "--t", "--window", "--z"}
)


class CommandWithHints(TyperCommand):
    """A command that says where data and promises belong, if they are in the wrong place."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; add a hint to what is wrong with them."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            message = getattr(error, "message", "")
            options = {word for parameter in self.params for word in parameter.opts}
            if message.startswith("Got unexpected extra argument") and "--input" in options:
                error.message = f"{message}. Give the data with -i."  # type: ignore[attr-defined]
            elif getattr(error, "option_name", None) in KEYS:
                error.message = f"{message}. Set it in the job file."  # type: ignore[attr-defined]
                error.possibilities = None  # type: ignore[attr-defined]
            raise

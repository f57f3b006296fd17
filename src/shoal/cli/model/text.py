"""The text of ``shoal model z``: sentences, and a chart of characters."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.models.z import Choice, Point

__all__ = ["as_json", "chart", "choice_lines", "information_text", "percent", "window_text"]

#: The longest bar of the chart, in characters, and the parts of a character.
WIDTH = 40
EIGHTHS = " ▏▎▍▌▋▊▉"


def percent(share: float) -> str:
    """Return a share as text.

    >>> percent(0.4247)
    '42.5 %'
    """
    return f"{100 * share:.1f} %"


def information_text(entropy: float, loss: float) -> str:
    """Return a sentence about the information in a published set.

    >>> information_text(8.05, 1.949)
    'a published set reveals 8.05 nats, 1.95 less than an exposed one'
    >>> information_text(0.5, -0.2), information_text(0.0, -1e-17)  # doctest: +NORMALIZE_WHITESPACE
    ('a published set reveals 0.50 nats, 0.20 more than an exposed one',
     'a published set reveals 0.00 nats, as much as an exposed one')
    """
    compared = f"{abs(loss):.2f} {'less' if loss > 0 else 'more'} than"
    return (
        f"a published set reveals {entropy:.2f} nats, "
        f"{'as much as' if round(loss, 2) == 0 else compared} an exposed one"
    )


def window_text(window: float, *, in_rows: bool) -> str:
    """Return the length of a window as text.

    >>> window_text(3600, in_rows=False), window_text(5000, in_rows=True)
    ('3,600 seconds', '5,000 rows')
    """
    return f"{window:,.12g} {'rows' if in_rows else 'seconds'}"


def chart(points: Sequence[Point]) -> list[str]:
    """Return lines with a bar for each z: the counted share, or that of the model.

    >>> from shoal.models.z import Bounds
    >>> print("\\n".join(chart([Point(1, Bounds(0.1, 0.1)), Point(20, Bounds(0.5, 0.5))])))
           z     model
           1    10.0 % ████
          20    50.0 % ████████████████████
    """
    counted = points[0].measured is not None
    lines = [f"{'z':>8}{'model':>10}" + f"{'counted':>10}" * counted]
    for point in points:
        share = point.model.middle if point.measured is None else point.measured
        measured = f"{percent(point.measured):>10}" if point.measured is not None else ""
        lines.append(
            f"{point.z:>8,}{percent(point.model.middle):>10}{measured} {_bar(share)}".rstrip()
        )
    return lines


def _bar(share: float) -> str:
    eighths = round(8 * WIDTH * share)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def choice_lines(choice: Choice, *, k: int, in_rows: bool) -> list[str]:
    """Return the lines of a window: the sample, the model, and the counted share."""
    found = choice.estimate
    lines = [
        f"window of {window_text(found.window, in_rows=in_rows)}: {found.n_subjects:,} subjects "
        f"in a window, {found.n_attributes:,} attributes, {found.n_windows:,} "
        f"window{'s' * (found.n_windows != 1)}"
    ]
    model = choice.by_model
    share = percent(model.model.lower)
    if model.model.upper - model.model.lower >= 0.001:
        share += f" to {percent(model.model.upper)}"
    lines.append(
        f"  model    z = {model.z:,}: {share} of subjects are {k}-anonymous" + _none(choice)
    )
    count = choice.by_count
    if count is None or count.measured is None or count.published is None:
        lines.append(f"  counted  nothing: {_why(found.n_windows)}")
    else:
        lines.append(
            f"  counted  z = {count.z:,}: {percent(count.measured)} of subjects were "
            f"{k}-anonymous, {percent(count.published)} of events published"
        )
    return lines


def _why(n_windows: int) -> str:
    if n_windows < 2:
        return "the sample is shorter than two windows"
    return "after the first window nobody exposes anything"


def _none(choice: Choice) -> str:
    is_none = choice.by_model.z > choice.estimate.n_subjects
    return ", since nothing is published" if is_none else ""


def as_json(point: Point) -> dict[str, float | int | None]:
    """Return a point as a dictionary, for JSON."""
    return {
        "z": point.z,
        "model_lower": point.model.lower,
        "model_upper": point.model.upper,
        "counted": point.measured,
        "published": point.published,
    }

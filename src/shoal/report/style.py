"""The style of pages and charts: light and dark, on desk and phone, on paper."""

from __future__ import annotations

__all__ = ["PALETTE_SIZE", "STYLE"]

#: How many colours series have before they repeat; then marks are open.
PALETTE_SIZE = 6

# The palette follows Okabe and Ito, whose colours stay apart for colour-blind readers; each is
# darkened for white and lightened for black until it has a contrast of 3 to 1 at least.
_LIGHT = """
--back: #ffffff; --panel: #f3f5f7; --ink: #1b1f24; --soft: #525b66; --rule: #d5dae0;
--link: #0b5394; --good: #0b6b3a; --bad: #a3270f; --open: #7a5400;
--c1: #0072b2; --c2: #c44f00; --c3: #007a5a; --c4: #a8437f; --c5: #8f6a00; --c6: #4d4d4d;
"""
_DARK = """
--back: #14181d; --panel: #1e242b; --ink: #e8ebee; --soft: #b0b8c1; --rule: #3a434d;
--link: #8cc4ff; --good: #6fd39b; --bad: #ff9c85; --open: #f2c14e;
--c1: #56b4e9; --c2: #ff9a4d; --c3: #35c99b; --c4: #e79ac8; --c5: #f0e442; --c6: #c4c4c4;
"""
_SERIES = "".join(
    f".shoal .s{i} {{ --series: var(--c{i}); }}\n" for i in range(1, PALETTE_SIZE + 1)
)

STYLE = f"""
.shoal {{ {_LIGHT} color-scheme: light dark;
  color: var(--ink); background: var(--back); font: 1rem/1.5 system-ui, sans-serif; }}
@media (prefers-color-scheme: dark) {{ .shoal {{ {_DARK} }} }}
.shoal.page {{ max-width: 70rem; margin: 0 auto; padding: 1rem; }}
html:has(.page) {{ background: #ffffff; }}
@media (prefers-color-scheme: dark) {{ html:has(.page) {{ background: #14181d; }} }}
.shoal h1, .shoal h2, .shoal h3 {{ line-height: 1.25; text-wrap: balance; }}
.shoal h2 {{ margin-top: 2.5rem; border-bottom: 1px solid var(--rule); padding-bottom: .25rem; }}
.shoal p, .shoal li {{ max-width: 46rem; overflow-wrap: anywhere; }}
.shoal a {{ color: var(--link); }}
.shoal code {{ overflow-wrap: anywhere; }}
.shoal nav ul {{ list-style: none; padding: 0; }}
.shoal .box {{ background: var(--panel); padding: .6rem .9rem;
  border-left: .3rem solid var(--c1); }}
.shoal .box.warning {{ border-color: var(--bad); }}
.shoal .scroll {{ overflow-x: auto; margin: 1rem 0; scrollbar-width: thin;
  scrollbar-color: var(--soft) var(--panel); }}
.shoal table {{ border-collapse: collapse; font-size: .95rem; text-align: left; }}
.shoal caption {{ text-align: left; font-weight: 600; padding: .3rem 0; color: var(--ink); }}
.shoal th, .shoal td {{ padding: .35rem .8rem .35rem 0; vertical-align: top; text-align: left;
  border-bottom: 1px solid var(--rule); max-width: 34rem; background: var(--back);
  color: var(--ink); }}
.shoal thead th {{ color: var(--soft); }}
.shoal tbody th {{ font-weight: 600; }}
.shoal .number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
.shoal .kept {{ color: var(--good); font-weight: 600; }}
.shoal .broken {{ color: var(--bad); font-weight: 600; }}
.shoal .unverifiable {{ color: var(--open); font-weight: 600; }}
.shoal .side {{ display: grid; gap: 1rem 2rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }}
.shoal .side > * {{ max-width: 33rem; min-width: 0; }}
.shoal figure {{ margin: 1rem 0; max-width: 33rem; }}
.shoal figcaption {{ font-weight: 600; }}
.shoal figcaption span {{ display: block; font-weight: 400; color: var(--soft); font-size: .9rem; }}
.shoal svg {{ width: 100%; height: auto; display: block; }}
.shoal svg text {{ fill: var(--ink); font: 14px system-ui, sans-serif; }}
.shoal svg text.soft {{ fill: var(--soft); }}
.shoal .axis {{ stroke: var(--soft); fill: none; }}
.shoal .grid {{ stroke: var(--rule); fill: none; }}
{_SERIES}.shoal .fill {{ fill: var(--series); stroke: none; }}
.shoal .line {{ stroke: var(--series); fill: none; stroke-width: 2; }}
.shoal .mark {{ fill: var(--series); stroke: var(--back); stroke-width: 1; }}
.shoal .mark.open {{ fill: var(--back); stroke: var(--series); stroke-width: 2; }}
.shoal svg text.name {{ paint-order: stroke; stroke: var(--back); stroke-width: 3; }}
.shoal .ring {{ fill: none; stroke: var(--ink); stroke-width: 1.5; }}
.shoal .front {{ fill: none; stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 5 3; }}
@media (max-width: 40rem) {{
  /* Words need some room; a table that is wider than the screen scrolls, and shows that it does. */
  .shoal td:not(.number):not(:empty) {{ min-width: 8.5rem; }}
  .shoal .scroll {{ border-right: 2px dotted var(--soft); }}
}}
@media print {{
  .shoal, .shoal.page {{ {_LIGHT} font-size: 10pt; max-width: none; padding: 0; }}
  html:has(.page) {{ background: #ffffff; }}
  .shoal nav {{ display: none; }}
  .shoal h2, .shoal h3, .shoal caption {{ break-after: avoid; }}
  .shoal figure, .shoal tr, .shoal .box {{ break-inside: avoid; }}
  .shoal .scroll {{ overflow: visible; }}
  .shoal * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
}}
"""

"""Comparisons and reports as one offline HTML file, and as JSON.

`build` makes the report of a `Release`; ``shoal.report`` itself can be called with a job and files
(see `shoal.job.reporting.report`). `charts` draws, `page` frames; `parts` has one module for each
part of a report.
"""

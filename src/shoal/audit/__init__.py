"""The independent check of what was published.

The audit reads the output of a run, and the private trace and the original if they are given, and
judges every promise. It imports no engine, no kernel and no algorithm: a bug there can't repeat
itself here. Each verdict is *kept*, *broken* or *unverifiable*; what the audit can't see is never
called kept.

The package can be called: ``shoal.audit(...)`` is `shoal.job.auditing.audit`, which takes files and
frames of any kind.
"""

from shoal.audit.changes import changes_in, without_changes
from shoal.audit.parts import Part, audit_parts
from shoal.audit.report import Report, Verdict
from shoal.audit.run import audit

__all__ = [
    "Part",
    "Report",
    "Verdict",
    "audit",
    "audit_parts",
    "changes_in",
    "without_changes",
]

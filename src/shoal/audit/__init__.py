"""The independent check of what was published.

The audit looks at the output of a run, and at the private trace and the original where it is given
them, and judges every promise by itself. It imports no engine, no kernel and no algorithm: a bug
there can't hide itself here. Each verdict is *kept*, *broken* or *unverifiable*; what the audit
can't see is never called kept.
"""

from shoal.audit.report import Report, Verdict
from shoal.audit.run import audit

__all__ = ["Report", "Verdict", "audit"]

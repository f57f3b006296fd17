"""One run of a job: threads, clock, recovery.

The package can be called: ``shoal.run(job)`` is `shoal.job.running.run`.
"""

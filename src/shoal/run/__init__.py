"""One run of a job: threads, clock, recovery."""

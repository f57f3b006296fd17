"""The state of a job on disk, from which a run resumes: checkpoints, journal, and seals."""

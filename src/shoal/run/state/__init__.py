"""What a job keeps on disk so that a run can go on: checkpoints, the journal, and their seals."""

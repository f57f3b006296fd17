"""The figures of Zhou and others (EDBT 2009): delay as a part of the loss."""

"""The figures of BUREL (chapter 4 of the thesis)."""

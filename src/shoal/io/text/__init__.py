"""Lines of text: split into rows, read and written; shared by text formats and messages."""

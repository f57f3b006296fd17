"""Files and folders as sources and sinks: read, followed, replayed, appended, replaced."""

"""Its full name is tests.io."""  # noqa: A005 - nothing here is imported as io

"""Mutation testing: small changes of the code that a promise hangs on, which the tests must notice.

``python -m tests.mutants`` changes one place at a time (`changes`) in the modules of `modules`, and
runs the tests of that module. A change that no test notices is a *survivor*: a test is missing, or
the change makes no difference, which ``explained.toml`` must then say.
"""

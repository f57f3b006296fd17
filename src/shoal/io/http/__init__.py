"""Rows by HTTP: each POST that was answered with 200 is taken in, once if it has a key.

A request is answered when the journal has its rows on the disk, so a crash loses none of them. A
client that gets no answer can't know what became of its rows. It sends them again with the same
``Idempotency-Key``, by which they are recognized, also after a restart. What was published is read
again from the output.

There is no ``CONNECTOR``: `shoal serve` takes rows in place of the input of a job. This package
knows rows and keys, and no sockets; the server of the live page has those.
"""

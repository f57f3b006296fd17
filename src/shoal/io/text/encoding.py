"""Read text of any encoding as UTF-8."""

from __future__ import annotations

import codecs

from shoal.io.streams import Input

__all__ = ["DecodedInput", "decode"]

#: The error handler that makes bytes without a meaning into what isn't UTF-8, so that the row with
#: them, and no other, is a bad row.
_BROKEN = "shoal.broken"


def _broken(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error(_BROKEN, _broken)


def decode(data: bytes, encoding: str) -> bytes:
    r"""Return text as UTF-8; bytes without a meaning become bytes that aren't UTF-8.

    >>> decode("é".encode("latin-1"), "latin-1").decode()
    'é'
    """
    return data.decode(encoding, _BROKEN).encode("utf-8", "surrogatepass")


class DecodedInput(Input):
    """The text of an input as UTF-8. Positions in it count bytes of UTF-8.

    Parameters
    ----------
    inner
        The input; closed with this one.
    encoding
        Its encoding.
    """

    def __init__(self, inner: Input, encoding: str) -> None:
        self.name = inner.name
        self._inner = inner
        self._decoder = codecs.getincrementaldecoder(encoding)(_BROKEN)
        self._ahead = b""
        self._ended = False
        self.closed = False

    @property
    def seekable_file(self) -> None:
        """None: the bytes of the file aren't those of the text."""
        return

    @property
    def live(self) -> bool:
        """Whether the bytes come from a process that may still be writing."""
        return self._inner.live

    def read(self, n_bytes: int) -> bytes:
        """Read at most ``n_bytes`` of UTF-8; nothing only at the end."""
        while not self._ahead and not self._ended:
            raw = self._inner.read(n_bytes)
            self._ended = not raw
            text = self._decoder.decode(raw, self._ended)
            self._ahead = text.encode("utf-8", "surrogatepass")
        data, self._ahead = self._ahead[:n_bytes], self._ahead[n_bytes:]
        return data

    def close(self) -> None:
        """Close the input."""
        self._inner.close()
        self.closed = True

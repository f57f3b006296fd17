"""Full-domain generalization for t-closeness, window by window.

What it does as Mondrian does is tested beside that.
"""

from __future__ import annotations

from shoal import TIncognitoW
from tests.algorithms.tables import keeps_promises
from tests.algorithms.test_t_mondrian_w import WINDOWS

test_drawn_streams_keep_the_promise = keeps_promises(TIncognitoW, WINDOWS)

"""Ask the run on this machine how it is, and exit with 0 if it is well: for containers and probes.

    health.py               well: /health answers 200
    health.py --hangs 300   well, unless nothing answers or the loop stood still for 300 seconds

The second is for what restarts a run. A restart brings no broker back; it costs a replay.

SHOAL_HEALTH_URL is where the run answers, http://127.0.0.1:9464/health unless it is set. With
--page-token, SHOAL_HEALTH_TOKEN is the file that holds the token. Certificates are not checked, so
the address must be one of loopback.
"""

import json
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

URL = "http://127.0.0.1:9464/health"
SECONDS = 4.0


def ask() -> tuple[int, bytes]:
    """Return the status and the body of the answer."""
    url = os.environ.get("SHOAL_HEALTH_URL", URL)
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.hostname not in ("127.0.0.1", "::1"):
        sys.exit("SHOAL_HEALTH_URL must be http or https on 127.0.0.1 or [::1]")
    request = urllib.request.Request(url)
    token = os.environ.get("SHOAL_HEALTH_TOKEN")
    if token is not None:
        request.add_header("Authorization", f"Bearer {Path(token).read_text().strip()}")
    context = ssl._create_unverified_context() if parts.scheme == "https" else None
    try:
        with urllib.request.urlopen(request, timeout=SECONDS, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def main(words: list[str]) -> int:
    """Ask, say what is wrong, and return the exit code."""
    hangs = None
    if words:
        if words[0] != "--hangs" or len(words) != 2 or not words[1].isdecimal():
            sys.exit(__doc__)
        hangs = int(words[1])
    try:
        status, body = ask()
    except OSError as error:
        print(f"no answer: {type(error).__name__}")
        return 1
    if status not in (200, 503):
        print(f"answered with {status}")
        return 1
    verdict = json.loads(body)
    if hangs is not None:
        age = verdict["loop_age_seconds"]
        if age is not None and age > hangs:
            print(f"the main loop of the run has not advanced for {age} s")
            return 1
        return 0
    if verdict["reasons"]:
        print("; ".join(verdict["reasons"]))
    return 0 if status == 200 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

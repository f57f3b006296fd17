"""What the tests of outputs that survive a crash share."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pyarrow as pa

SCHEMA = pa.schema([("n", pa.int64()), ("label", pa.string())])

# A job in small: rows are decided by their places, committed every 100, and a file keeps the mark.
CHILD = """
import json, os, random, sys
import pyarrow as pa
from shoal.io import open_durable
path, state, n_rows, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
schema = pa.schema([("n", pa.int64()), ("label", pa.string())])
known = json.load(open(state)) if os.path.exists(state) else {"mark": {}, "rows": 0}
draw = random.Random(known["rows"] + os.getpid())
sink = open_durable(path, schema, known["mark"], **options)
print("begun", flush=True)
at = known["rows"]
while at < n_rows:
    end = min(n_rows, at // 100 * 100 + 100, at + draw.randrange(1, 40))
    labels = [f"[{n % 7}, {n % 7 + 9})" for n in range(at, end)]
    columns = [pa.array(range(at, end), pa.int64()), pa.array(labels).dictionary_encode()]
    sink.write(pa.record_batch(columns, ["n", "label"]))
    sink.flush()
    at = end
    if at % 100 == 0:
        mark = sink.commit()
        with open(state + "~", "w") as file:
            json.dump({"mark": mark, "rows": at}, file)
        os.replace(state + "~", state)
sink.close()
"""


def run_child(path, state, n_rows, *, kill_after=None, **options):
    """Run the small job; kill it this many seconds after it has begun. Give whether it finished."""
    command = [sys.executable, "-c", CHILD, str(path), str(state), str(n_rows), json.dumps(options)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"begun\n", child.stderr.read().decode()
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child.pid, signal.SIGKILL)
    _, said = child.communicate(timeout=600)
    assert child.returncode in (0, -signal.SIGKILL), said.decode()
    return child.returncode == 0


def run_killed(path, state, n_rows, seed, **options):
    """Run the small job to its end, killing it now and then; give how often it was killed."""
    draw = random.Random(seed)
    n_killed = 0
    while n_killed < 4 and not run_child(
        path, state, n_rows, kill_after=draw.random() * 0.015, **options
    ):
        n_killed += 1
    assert run_child(path, state, n_rows, **options)
    return n_killed


def batch(first, end):
    """Rows by their places in the output, with labels in a dictionary."""
    labels = pa.array([f"[{n % 7}, {n % 7 + 9})" for n in range(first, end)], pa.string())
    columns = [pa.array(range(first, end), pa.int64()), labels.dictionary_encode()]
    return pa.record_batch(columns, ["n", "label"])


def files(folder):
    """What lies in a folder, hidden and unfinished files too."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}

"""Print the rows of a CSV file as JSON lines.

python to_json.py ../anonymize_a_csv/people.csv > rows.jsonl
"""

import csv
import json
import sys
from pathlib import Path


def main(path: str) -> None:
    with Path(path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            values = {name: value or None for name, value in row.items()}
            age = values["age"]
            print(json.dumps(values | {"age": None if age is None else int(age)}))


if __name__ == "__main__":
    main(*sys.argv[1:])

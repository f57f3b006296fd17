#!/bin/sh
# Between two commands: rows come in compressed, groups go out as soon as they are decided.
# Here the producer is gzip and the consumer counts diagnoses; yours may be psql and a loader.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/anonymize_a_csv/*.csv "$here"/anonymize_a_csv/job.toml "$work"

gzip -c "$work/people.csv" |
    shoal run "$work/job.toml" --from csv.gz --to tsv --quiet |
    tail -n +2 | cut -f 5 | sort | uniq -c | sort -rn

"""Publish the rows of a CSV file, one to a message, at QoS 1; the sex is a level of the topic.

python send.py ../anonymize_a_csv/people.csv 127.0.0.1 1883
"""

import csv
import json
import sys
from pathlib import Path

import paho.mqtt.client as mqtt


def number(text: str) -> int | None:
    return int(text) if text else None


def main(path: str, host: str, port: str) -> None:
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.connect(host, int(port))
    client.loop_start()
    sent = []
    with Path(path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            topic = f"admissions/{row.pop('sex')}"
            patient = {"age": number(row.pop("age")), "profession": row.pop("profession") or None}
            sent.append(client.publish(topic, json.dumps({**row, "patient": patient}), qos=1))
    for message in sent:
        message.wait_for_publish(60)
    client.disconnect()
    client.loop_stop()
    print(f"{len(sent)} rows are published.")


if __name__ == "__main__":
    main(*sys.argv[1:])

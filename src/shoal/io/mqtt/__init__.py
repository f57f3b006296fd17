"""MQTT topics: no message at QoS 1 is lost, and one that is delivered again is recognized.

A message is acknowledged only when the journal has it on the disk. So the broker keeps each message
until the job has it, and a crash loses none. MQTT has no offsets: what was delivered and not
acknowledged comes again, with a flag and its former packet identifier, and is dropped if the
journal has it. With a broker that gives out packet identifiers in turn (Mosquitto) each message is
taken in exactly once. ``docs/mqtt.md`` says what is promised with others. Rows are published at
least once, with numbers by which a reader drops doubles.
"""

from shoal.io.mqtt.connector import CONNECTOR

__all__ = ["CONNECTOR"]

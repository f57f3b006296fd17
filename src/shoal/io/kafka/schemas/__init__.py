"""Messages whose schema is in a schema registry: Avro and Protobuf, in and out."""

"""Formats whose schemas are in a schema registry: Avro and Protobuf, as Confluent's serializers write them."""

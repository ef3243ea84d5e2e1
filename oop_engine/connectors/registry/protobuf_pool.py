"""Protobuf pool: the message types of a schema of a registry, and of the schemas that it refers to."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any

from oop_engine.connectors.library import library

__all__ = ["is_descriptor", "known_files", "message_types"]

_KNOWN = (
    "google.protobuf.any_pb2", "google.protobuf.duration_pb2", "google.protobuf.empty_pb2",
    "google.protobuf.field_mask_pb2", "google.protobuf.struct_pb2", "google.protobuf.timestamp_pb2",
    "google.protobuf.wrappers_pb2", "google.type.date_pb2", "google.type.decimal_pb2", "google.type.timeofday_pb2",
    "google.type.money_pb2", "google.type.latlng_pb2", "google.type.datetime_pb2",
    "confluent_kafka.schema_registry.confluent.meta_pb2",
    "confluent_kafka.schema_registry.confluent.types.decimal_pb2",
)  # fmt: skip
"""Modules of files that schemas import without a reference."""


def message_types(text: str, references: dict[str, str], place: str) -> Any:
    """Return the file of a schema, whose ``message_types_by_name`` has its messages.

    ``text``, and those of ``references`` by the names of their files: descriptors in Base64, as registries give them in
    the form ``serialized``.  Raises ``ValueError`` if it is no such descriptor, or refers to files that are not there.
    """
    pool = library("google.protobuf.descriptor_pool", "protobuf", place).DescriptorPool()
    known = known_files()
    added = set[str]()
    for name, each in references.items():
        _add(pool, _descriptor(each, name, place), known, added)
    file = _descriptor(text, "", place)
    file.name = file.name or "schema.proto"
    _add(pool, file, known, added)
    return pool.FindFileByName(file.name)


def _descriptor(text: str, name: str, place: str) -> Any:
    descriptor = library("google.protobuf.descriptor_pb2", "protobuf", place).FileDescriptorProto()
    errors = library("google.protobuf.message", "protobuf", place)
    try:
        descriptor.ParseFromString(b64decode(text, validate=True))
    except (Base64Error, errors.DecodeError, UnicodeError) as error:
        msg = "it is no descriptor of Protobuf"
        raise ValueError(msg) from error
    if name:
        descriptor.name = name
    return descriptor


def _add(pool: Any, file: Any, known: dict[str, Any], added: set[str]) -> None:
    """Add a file, behind those that it imports."""
    if file.name in added:
        return
    for name in file.dependency:
        if name not in added:
            if name not in known:
                msg = f"it imports {name!r}, which the registry does not refer to"
                raise ValueError(msg)
            _add(pool, known[name], known, added)
    added.add(file.name)
    try:
        pool.Add(file)
    except TypeError as error:
        msg = f"its descriptor is wrong: {error}"
        raise ValueError(msg) from error


def is_descriptor(text: str) -> bool:
    """Return whether a schema is a descriptor in Base64, not the text of a ``.proto`` file."""
    try:
        _descriptor(text, "", "Protobuf")
    except ValueError:
        return False
    return True


def known_files() -> dict[str, Any]:
    """Return the descriptors of files that schemas import without a reference, by name."""
    descriptors = library("google.protobuf.descriptor_pb2", "protobuf", "Protobuf")
    files: dict[str, Any] = {}
    waiting = [library(name, "protobuf", "Protobuf").DESCRIPTOR for name in _KNOWN]
    while waiting:
        file = waiting.pop()
        if file.name not in files:
            files[file.name] = descriptors.FileDescriptorProto.FromString(file.serialized_pb)
            waiting += file.dependencies
    return files

"""Protobuf text: schemas that a registry gives as ``.proto`` files become descriptors, by the compiler of Protobuf.

The package grpcio-tools has the compiler for all systems; it runs in a process of its own, for it writes to stderr.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from oop_engine.connectors.library import library
from oop_engine.connectors.registry.protobuf_pool import is_descriptor, known_files
from oop_engine.connectors.registry.schemas import Given

__all__ = ["as_descriptors"]

_COMPILER_S = 30.0
_OWN = "oop_engine_schema.proto"  # which no reference is called


def as_descriptors(given: Given) -> Given | str:
    """Return a schema whose texts are descriptors, or the reason why it has none.  Takes 0.2 s if one is a text."""
    text, kind, references = given
    files = {**references, _OWN: text}
    texts = {name: each for name, each in files.items() if not is_descriptor(each)}
    if kind != "PROTOBUF" or not texts:
        return given
    if find_spec("grpc_tools") is None:
        return "the registry gives it as text, and no compiler is there: pip install grpcio-tools"
    try:
        made = _compiled(texts, {name: each for name, each in files.items() if name not in texts})
    except (ValueError, OSError, subprocess.SubprocessError) as error:
        return " ".join(str(error).split())
    files |= made
    return files.pop(_OWN), kind, {name: files[name] for name in references}


def _compiled(texts: dict[str, str], others: dict[str, str]) -> dict[str, str]:
    """Return descriptors of texts, which may import each other, files that all know, and ``others``."""
    descriptors = library("google.protobuf.descriptor_pb2", "protobuf", "Protobuf")
    with tempfile.TemporaryDirectory(prefix="oop-engine-proto-") as place:
        folder = Path(place)
        known, made = folder / "known", folder / "made"
        known.write_bytes(_set_of(others, descriptors).SerializeToString())
        for name, text in texts.items():
            _write(folder / "texts", name, text)
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(folder / "texts")]
        options = [f"--descriptor_set_in={known}", f"--descriptor_set_out={made}", *texts]
        done = subprocess.run(
            [*command, *options], capture_output=True, text=True, timeout=_COMPILER_S, check=False
        )
        if done.returncode:
            raise ValueError(done.stderr.replace(f"{folder / 'texts'}/", "") or "it cannot be compiled")
        files = descriptors.FileDescriptorSet.FromString(made.read_bytes()).file
    return {file.name: b64encode(file.SerializeToString()).decode() for file in files}


def _set_of(others: dict[str, str], descriptors: Any) -> Any:
    """Return the descriptors of files that texts may import."""
    files = descriptors.FileDescriptorSet()
    files.file.extend(known_files().values())
    for name, each in others.items():
        file = descriptors.FileDescriptorProto.FromString(b64decode(each))
        file.name = name
        files.file.append(file)
    return files


def _write(folder: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or name.startswith("-"):
        msg = f"it refers to {name!r}, which is no name of a file"
        raise ValueError(msg)
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, encoding="utf-8")

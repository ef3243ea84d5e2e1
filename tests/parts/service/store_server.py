"""A server on loopback that answers as S3 does, with its objects in memory: put, get, head, list and delete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

__all__ = ["served_store"]


@contextmanager
def served_store(objects: dict[str, bytes], port: int = 0) -> Iterator[int]:
    """Answer for a bucket with ``objects``, as long as the block takes; return the port."""

    class Answers(BaseHTTPRequestHandler):
        @property
        def key(self) -> str:
            return unquote(urlsplit(self.path).path).partition("/")[2].partition("/")[2]

        def answer(self, code: int, body: bytes = b"") -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{md5(body).hexdigest()}"')
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("If-None-Match") == "*" and self.key in objects:
                return self.answer(412)
            objects[self.key] = data
            return self.answer(200)

        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            if "list-type" in asked:
                return self.answer(200, listed(objects, asked.get("prefix", [""])[0]))
            if self.key not in objects:
                return self.answer(404)
            return self.answer(200, objects[self.key])

        do_HEAD = do_GET

        def do_POST(self) -> None:
            """Delete the keys of a list."""
            data = self.rfile.read(int(self.headers["Content-Length"])).decode()
            keys = re.findall("<Key>(.*?)</Key>", data)
            for key in keys:
                objects.pop(unescape(key), None)
            gone = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            self.answer(200, f"<DeleteResult>{gone}</DeleteResult>".encode())

        def log_message(self, *what: object) -> None:
            """Write no line about it."""

    with ThreadingHTTPServer(("127.0.0.1", port), Answers) as server:
        server.daemon_threads = True
        answering = Thread(target=server.serve_forever, args=(0.02,))
        answering.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            answering.join()


def listed(objects: dict[str, bytes], prefix: str) -> bytes:
    """Return the answer to a list by delimiters."""
    keys = [key for key in sorted(objects) if key.startswith(prefix)]
    folders = sorted(
        {prefix + key[len(prefix) :].partition("/")[0] + "/" for key in keys if "/" in key[len(prefix) :]}
    )
    found = [
        f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[key])}</Size>"
        "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
        for key in keys
        if "/" not in key[len(prefix) :]
    ]
    found += [f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders]
    return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(found)}</ListBucketResult>".encode()

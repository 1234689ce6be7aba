"""A collector of OpenTelemetry spans, as a server on a thread of its own."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

DEADLINE = 30.0


class Collector:
    """An OTLP/HTTP collector on a thread of its own; `requests` are decoded."""

    def __init__(self, url: str, requests: "Queue[ExportTraceServiceRequest]") -> None:
        self.url, self.requests = url, requests

    def spans(self, count: int) -> list[Span]:
        """So many spans, once they have come, by name."""
        found: list[Span] = []
        while len(found) < count:
            (resource,) = self.requests.get(timeout=DEADLINE).resource_spans
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            assert names["service.name"] == "eclectus"
            found += [span for scope in resource.scope_spans for span in scope.spans]
        return sorted(found, key=lambda span: span.name)


@contextmanager
def collecting(tls: ssl.SSLContext | None = None) -> Iterator[Collector]:
    requests: Queue[ExportTraceServiceRequest] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
            requests.put(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        if tls is not None:
            serving.socket = tls.wrap_socket(serving.socket, server_side=True)
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            scheme = "http" if tls is None else "https"
            yield Collector(f"{scheme}://127.0.0.1:{serving.server_port}/v1/traces", requests)
        finally:
            serving.shutdown()
            thread.join()

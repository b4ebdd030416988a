"""Serves a handler as the template python3-http does, on one machine: handle(event,
context) of handler.py beside this file. It stands in for template and watchdog."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

from handler import handle


class Function(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        self.answer(200, "OK")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        event = SimpleNamespace(body=body, headers=self.headers, method="POST", path=self.path)
        answer = handle(event, SimpleNamespace(hostname=os.uname().nodename))
        self.answer(answer.get("statusCode", 200), answer["body"])

    def answer(self, status, value):
        body = (value if isinstance(value, str) else json.dumps(value)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(value, str) else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_):
        pass


host, port = os.environ["farmhand_listen"].rsplit(":", 1)
ThreadingHTTPServer((host, int(port)), Function).serve_forever()

#!/usr/bin/env python3
"""An example worker without any library: it counts the words of a text.

The task is the text, the result a JSON object: {"words": 2, "distinct": 1}.
docs/workers.md says how to deploy it.
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Worker(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer goes out in one piece: otherwise it can take 40 ms longer

    def do_GET(self):
        """Answer whether we are ready."""
        self.answer(200, {"ready": True})

    def do_POST(self):
        """Do a task. A 4xx makes it a dead letter with this reason, a 5xx is tried again."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            words = body.decode().lower().split()
        except UnicodeDecodeError as e:
            self.answer(422, {"detail": f"the task is no UTF-8 text: {e}"})
            return
        print("counting", len(words), "words of", self.headers.get("X-Farm-Task"), flush=True)
        self.answer(200, {"words": len(words), "distinct": len(set(words))})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_):
        """Log no line for every call."""


host, port = os.environ["farmhand_listen"].rsplit(":", 1)
ThreadingHTTPServer((host, int(port)), Worker).serve_forever()

"""An endpoint of webhooks, for tests: prints its port, and appends each event that it takes to a file, a line of JSON each.

webhook.py SECRET MODE-FILE EVENT-FILE

The first word of MODE-FILE tells how requests are answered: fine, hang, close, or a status such as 500. Signatures are verified by the reference
library of Standard Webhooks, and events are read by the SDK of CloudEvents. A request that either refuses becomes a line with an "error".
"""

import http.server
import json
import sys
import time

from cloudevents.core.bindings.http import HTTPMessage, from_http
from cloudevents.core.formats.json import JSONFormat
from standardwebhooks import Webhook

SECRET, MODES, EVENTS = sys.argv[1:]


class Endpoint(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(MODES) as file:
            mode = file.read().split()[0]
        if mode == "hang":
            time.sleep(3600)
        if mode == "close":
            self.close_connection = True
            return
        if mode == "fine":
            self.take(body)
        self.send_response(204 if mode == "fine" else int(mode))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def take(self, body):
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            Webhook(SECRET).verify(body, headers)
            event = from_http(HTTPMessage(headers=headers, body=body), JSONFormat())
            line = {
                "path": self.path,
                "webhook-id": headers["webhook-id"],
                "id": event.get_id(),
                "type": event.get_type(),
                "source": event.get_source(),
                "subject": event.get_subject(),
                "time": event.get_time().isoformat(),
                "data": event.get_data(),
            }
        except Exception as error:
            line = {"error": repr(error), "body": body.decode()}
        with open(EVENTS, "a") as file:
            file.write(json.dumps(line) + "\n")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
print(server.server_port, flush=True)
server.serve_forever()

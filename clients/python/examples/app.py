"""Adds a job a second and works on them, whichever node of the cluster dies.

    python3 examples/app.py 127.0.0.1:7300,127.0.0.1:7310,127.0.0.1:7320
"""

import sys
import threading
import time

from tarry import Client, Reserved, TarryError, Worker


def send(job: Reserved) -> None:
    print(f"mail to {job.body['to']}, attempt {job.attempts}", flush=True)


def produce(client: Client) -> None:
    number = 0
    while True:
        number += 1
        try:
            client.add("mail", {"to": f"user{number}"}, delay=2)
        except TarryError as e:  # no node could be reached for 30 s
            print(f"user{number}: {e} (outcome: {e.outcome})", flush=True)
        time.sleep(1)


with Client(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7300") as client:
    threading.Thread(target=produce, args=(client,), daemon=True).start()
    Worker(client, "mail", send, concurrency=4, ttr=10).run()  # until SIGTERM or Ctrl-C

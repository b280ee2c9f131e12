"""The driver of the Python client for the cases that every client must pass.

clients/conformance/README.md of the repository says what it reads and writes. With ``--asyncio`` first it drives the
client for asyncio.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import inspect
import json
import logging
import ssl
import sys
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any, Callable, Dict, Optional

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import tarry
from tarry.types import encode_body, instant, instant_text

Args = Dict[str, Any]

writing = threading.Lock()


def say(value: Any) -> None:
    with writing:
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def plain(value: Any) -> Any:
    """A result as the harness reads it."""
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tarry.TarryError):
        return failure(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made: Args = {}
        for f in dataclasses.fields(value):
            if f.name == "body":
                raw = getattr(value, "raw")
                if "body" in raw or "body_base64" in raw:
                    made.update(encode_body(getattr(value, f.name)))
            elif f.name != "raw":
                made[f.name] = plain(getattr(value, f.name))
        return made
    return value


def failure(e: tarry.TarryError) -> Args:
    made: Args = {"code": e.code, "outcome": e.outcome, "message": e.message}
    if e.field:
        made["field"] = e.field
    return made


def pick(a: Args, *names: str) -> Args:
    return {n: a[n] for n in names if n in a}


def backoff(value: Any) -> Any:
    return tarry.Backoff(**value) if isinstance(value, dict) else value


def value(name: str, given: Any) -> Any:
    """An argument as the client takes it."""
    if name in INSTANTS and given != "never":
        return instant(given)
    if name == "backoff":
        return backoff(given)
    if name == "quotas":
        return tarry.Quotas(**given)
    if name == "rules":
        return [tarry.Rule(**rule) for rule in given]
    return given


def values(a: Args) -> Args:
    """The members of an object as the client takes them."""
    made = {name: value(name, given) for name, given in a.items() if name != "body_base64"}
    if "body_base64" in a:
        made["body"] = base64.b64decode(a["body_base64"])
    return made


def new_job(a: Args) -> tarry.NewJob:
    given: Args = {"body": None, **values(a)}
    return tarry.NewJob(**given)


INSTANTS = ("due_at", "expires_at", "until", "start", "end", "after")

# Parameters that have another name than the argument.
RENAMED = {
    "finish_and_reserve": {"finish": "jobs"},
    "pause": {"for": "duration"},
    "set_settings": {"settings": "values"},
    "topic": {"topic": "name"},
}


def keywords(call: str, method: Callable[..., Any], a: Args) -> Args:
    """The arguments of a method, which are named as those of the call."""
    if "found" in a and "max" in a["found"]:
        a["max"] = a["found"].pop("max")
    if call == "update_batch":
        return {"updates": {job.pop("id"): values(job) for job in a["jobs"]}}
    if call == "change_settings":
        a.update(a.pop("settings"))
    if call == "update_jobs":
        a.update(a.pop("changes"))
    made = {RENAMED.get(call, {}).get(name, name): given for name, given in values(a).items()}
    for p in inspect.signature(method).parameters.values():
        if p.annotation == "JobLike":
            made[p.name] = tarry.Ref(made.pop("id"), made.pop("token", None))
        elif p.annotation == "Iterable[JobLike]":
            made[p.name] = [tarry.Ref(job["id"], job.get("token")) for job in made[p.name]]
        elif p.annotation == "Iterable[NewJob]":
            made[p.name] = [new_job(job) for job in made[p.name]]
    return made


def ssl_context(a: Optional[Args]) -> Optional[ssl.SSLContext]:
    if a is None:
        return None
    context = ssl.create_default_context(cafile=a.get("ca"))
    if a.get("insecure"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "cert" in a:
        context.load_cert_chain(a["cert"], a["key"])
    return context


class Driver:
    """The client of a case, its calls made by threads or by asyncio."""

    def __init__(self, loop: Optional[asyncio.AbstractEventLoop]) -> None:
        self.loop = loop
        self.client: Any = None  # a Client, or an AsyncClient whose calls are awaited
        self.stream: Any = None
        self.next: Optional["asyncio.Future[Any]"] = None

    def await_(self, value: Any) -> Any:
        """The result of a call, all elements of a listing: asyncio's are waited for."""
        if inspect.isgenerator(value):
            return list(value)

        async def wait() -> Any:
            return [one async for one in value] if inspect.isasyncgen(value) else await value

        waits = inspect.isawaitable(value) or inspect.isasyncgen(value)
        return self.loop.run_until_complete(wait()) if self.loop is not None and waits else value

    def step(self, call: str, a: Args) -> Any:
        own = getattr(self, "do_" + call, None)
        if own is not None:
            return own(a)
        client = self.client.within(a.pop("deadline")) if "deadline" in a else self.client
        method = getattr(client, call, None)
        if method is None:
            raise tarry.TarryError("unknown_call", call)
        return plain(self.await_(method(**keywords(call, method, a))))

    def do_open(self, a: Args) -> Args:
        self.close()
        made = tarry.Client if self.loop is None else tarry.AsyncClient
        options = pick(a, "timeout", "patience", "token", "token_file", "token_over_http")
        try:
            self.client = made(a["addresses"], ssl_context=ssl_context(a.get("tls")), **options)
        except ValueError as e:
            raise tarry.TarryError("invalid_argument", str(e)) from None
        return {}

    def do_stream_open(self, a: Args) -> Args:
        self.do_stream_close({})
        given = pick(a, "credit", "max", "ttr", "heartbeat", "consumer")
        self.stream = self.client.stream(a["topics"], release_on_close=a.get("on_close") == "release", **given)
        return {}

    def do_stream_next(self, a: Args) -> Args:
        if self.loop is None:
            try:
                job = self.stream.next(a.get("deadline"))
            except TimeoutError:
                return {"timeout": True}
        else:
            pending = self.next or asyncio.ensure_future(self.stream.next(), loop=self.loop)
            done, _ = self.loop.run_until_complete(asyncio.wait({pending}, timeout=a.get("deadline")))
            self.next = None if done else pending
            if not done:
                return {"timeout": True}
            job = pending.result()
        return {"end": True} if job is None else {"job": plain(job)}

    def do_stream_close(self, a: Args) -> Args:
        if self.next is not None and self.loop is not None:
            self.next.cancel()
            self.loop.run_until_complete(asyncio.wait({self.next}))
            self.next = None
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        return {}

    def close(self) -> None:
        self.do_stream_close({})
        if self.client is not None:
            self.client.close()


def run(loop: Optional[asyncio.AbstractEventLoop]) -> None:
    driver = Driver(loop)
    for line in sys.stdin:
        step = json.loads(line)
        try:
            reply: Args = {"ok": driver.step(step["call"], step.get("args") or {})}
        except tarry.TarryError as e:
            reply = {"error": failure(e)}
        except Exception as e:  # a defect: of the driver or of the client
            logging.exception("step failed: %s", line)
            reply = {"error": {"code": "driver", "message": f"{type(e).__name__}: {e}"}}
        say(reply)
    driver.close()


def task(job: tarry.Reserved) -> Args:
    say({"event": "start", "id": job.id, "attempts": job.attempts})
    made: Args = job.body
    return made


def end(job: tarry.Reserved, a: Args) -> None:
    say({"event": "end", "id": job.id})
    if "bury" in a:
        raise tarry.Permanent(a["bury"])
    if "fail" in a:
        raise RuntimeError(a["fail"])


def work(job: tarry.Reserved) -> None:
    a = task(job)
    time.sleep(a.get("work", 0))
    end(job, a)


async def work_async(job: tarry.Reserved) -> None:
    a = task(job)
    await asyncio.sleep(a.get("work", 0))
    end(job, a)


def run_worker(a: Args, use_asyncio: bool) -> None:
    options = {**pick(a, "concurrency", "ttr", "timeout"), "backoff": backoff(a.get("backoff"))}

    async def main() -> None:
        async with tarry.AsyncClient(a["addresses"]) as client:
            worker = tarry.AsyncWorker(client, a["topic"], work_async, **options)
            asyncio.get_running_loop().call_soon(say, {"event": "ready"})  # once run has taken the signals
            await worker.run()

    if use_asyncio:
        asyncio.run(main())
    else:
        with tarry.Client(a["addresses"]) as client:
            worker = tarry.Worker(client, a["topic"], work, **options)
            threading.Timer(0.1, say, [{"event": "ready"}]).start()  # by then run has taken the signals
            worker.run()
    say({"event": "stopped"})


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr)
    arguments = sys.argv[1:]
    asynchronous = arguments[:1] == ["--asyncio"]
    if asynchronous:
        arguments = arguments[1:]
    if arguments[:1] == ["worker"]:
        run_worker(json.loads(arguments[1]), asynchronous)
    else:
        run(asyncio.new_event_loop() if asynchronous else None)

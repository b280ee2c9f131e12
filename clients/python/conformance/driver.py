"""The driver of the Python client for the cases that every client must pass.

clients/conformance/README.md of the repository says what it reads and writes. With ``--asyncio`` first it drives the
client for asyncio.
"""

from __future__ import annotations

import asyncio
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
from typing import Any, Callable, Dict, List, Optional, Union

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import tarry
from tarry._calls import UNSET
from tarry.types import encode_body, instant, instant_text

Args = Dict[str, Any]
AnyClient = Any  # Client, or AsyncClient whose calls are awaited

writing = threading.Lock()


def say(value: Any) -> None:
    with writing:
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def plain(value: Any) -> Any:
    """A result as the harness reads it."""
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, list):
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


def ref(a: Args) -> tarry.Ref:
    return tarry.Ref(a["id"], a.get("token"))


def body(a: Args) -> Any:
    if "body_base64" in a:
        import base64

        return base64.b64decode(a["body_base64"])
    return a.get("body")


def backoff(value: Any) -> Any:
    return tarry.Backoff(**value) if isinstance(value, dict) else value


def new_job(a: Args) -> tarry.NewJob:
    given = {k: v for k, v in a.items() if k not in ("body", "body_base64", "deadline")}
    for name in ("due_at", "expires_at"):
        if name in given and given[name] != "never":
            given[name] = instant(given[name])
    if "backoff" in given:
        given["backoff"] = backoff(given["backoff"])
    return tarry.NewJob(body=body(a), **given)


def pick(a: Args, *names: str) -> Args:
    return {n: a[n] for n in names if n in a}


def at(a: Args, name: str) -> Optional[datetime]:
    return instant(a[name]) if name in a else None


def add(c: AnyClient, a: Args) -> Any:
    job = new_job(a)
    given = {f.name: getattr(job, f.name) for f in dataclasses.fields(job)}
    return c.add(given.pop("topic"), given.pop("body"), **given)


def changes(a: Args) -> Args:
    given = {k: v for k, v in a.items() if k not in ("id", "body", "body_base64", "deadline")}
    if "backoff" in given:
        given["backoff"] = backoff(given["backoff"])
    given["body"] = body(a) if "body" in a or "body_base64" in a else UNSET
    return given


def put_namespace(c: AnyClient, a: Args) -> Any:
    quotas = tarry.Quotas(**a["quotas"]) if "quotas" in a else None
    return c.put_namespace(a["name"], a["topic_prefix"], quotas=quotas, **pick(a, "id_prefix", "description"))


def put_token(c: AnyClient, a: Args) -> Any:
    given = pick(a, "description", "id_prefix")
    return c.put_token(a["id"], [tarry.Rule(**r) for r in a["rules"]], expires_at=at(a, "expires_at"), **given)


def found(a: Args) -> Args:
    return {k: v for k, v in a["found"].items() if k != "max"}


def changed(name: str) -> Callable[[tarry.ChangedFound], Args]:
    return lambda r: {name: r.count, "skipped": r.skipped, "more": r.more, "next": r.next}


def swept(name: str) -> Callable[[tarry.Swept], Args]:
    return lambda s: {name: s.count, "more": s.more}


Verb = Callable[[AnyClient, Args], Any]
Then = Callable[[Any], Any]

# A call for each verb, and what makes the result of it.
verbs: Dict[str, Union[Verb, "tuple[Verb, Then]"]] = {
    "add": add,
    "add_batch": (
        lambda c, a: c.add_batch([new_job(j) for j in a["jobs"]]),
        lambda r: {"results": r},
    ),
    "add_all": (lambda c, a: c.add_all([new_job(j) for j in a["jobs"]]), lambda r: {"results": r}),
    "get": lambda c, a: c.get(a["id"]),
    "get_batch": (lambda c, a: c.get_batch(a["ids"], **pick(a, "body")), lambda r: {"results": r}),
    "history": lambda c, a: c.history(a["id"]),
    "explain": lambda c, a: c.explain(a["id"]),
    "update": lambda c, a: c.update(a["id"], **changes(a)),
    "delete_jobs": (lambda c, a: c.delete_jobs(found(a), **pick(a["found"], "max")), changed("deleted")),
    "update_jobs": (
        lambda c, a: c.update_jobs(found(a), **pick(a["found"], "max"), **a["changes"]),
        changed("updated"),
    ),
    "kick_jobs": (
        lambda c, a: c.kick_jobs(found(a), **pick(a["found"], "max"), **pick(a, "to_topic")),
        changed("kicked"),
    ),
    "delete": lambda c, a: c.delete(ref(a), **pick(a, "if_revision", "if_state")),
    "reserve": (
        lambda c, a: c.reserve(a["topics"], **pick(a, "max", "wait", "ttr", "consumer")),
        lambda r: {"jobs": r},
    ),
    "finish_and_reserve": (
        lambda c, a: c.finish_and_reserve(
            [ref(j) for j in a["finish"]], a["topics"], **pick(a, "max", "wait", "ttr", "consumer")
        ),
        lambda r: {"finished": [e or {} for e in r[1]], "jobs": r[0]},
    ),
    "finish": lambda c, a: c.finish(ref(a)),
    "finish_batch": (
        lambda c, a: c.finish_batch([ref(j) for j in a["jobs"]]),
        lambda r: {"results": [e or {} for e in r]},
    ),
    "delete_batch": (
        lambda c, a: c.delete_batch([ref(j) for j in a["jobs"]]),
        lambda r: {"results": [e or {} for e in r]},
    ),
    "kick_batch": (lambda c, a: c.kick_batch(a["ids"]), lambda r: {"results": r}),
    "update_batch": (
        lambda c, a: c.update_batch({j["id"]: changes(j) for j in a["jobs"]}),
        lambda r: {"results": r},
    ),
    "finish_then": (lambda c, a: c.finish_then(ref(a), [new_job(j) for j in a["then"]]), lambda r: {"results": r}),
    "touch": lambda c, a: c.touch(ref(a), a.get("ttr")),
    "release": lambda c, a: c.release(ref(a), **pick(a, "delay", "priority", "reason")),
    "bury": lambda c, a: c.bury(ref(a), **pick(a, "priority", "reason")),
    "kick": lambda c, a: c.kick(a["id"], **pick(a, "to_topic")),
    "move": lambda c, a: c.move(ref(a), a["to"]),
    "kick_topic": (
        lambda c, a: c.kick_topic(a["topic"], **pick(a, "max", "filter", "rate", "to_topic")),
        swept("kicked"),
    ),
    "purge": (lambda c, a: c.purge(a["topic"], a["state"], **pick(a, "max", "filter")), swept("deleted")),
    "move_topic": (
        lambda c, a: c.move_topic(a["topic"], a["to"], **pick(a, "states", "max", "filter", "cursor")),
        lambda r: {**plain(r), "moved": r.count},
    ),
    "topic": lambda c, a: c.topic(a["topic"]),
    "topics": (
        lambda c, a: c.topics_page(after=a.get("after", ""), page=a.get("max")),
        lambda p: {"topics": p.items, "next": p.next},
    ),
    "stats": lambda c, a: c.stats(),
    "forecast": lambda c, a: c.forecast(a.get("topic"), start=at(a, "start"), **pick(a, "step", "steps")),
    "forecast_topics": lambda c, a: c.forecast_topics(start=at(a, "start"), **pick(a, "step", "max")),
    "rates": lambda c, a: c.rates(a.get("topic")),
    "release_topic": (
        lambda c, a: c.release_topic(a["topic"], **pick(a, "consumer", "max", "filter", "reason")),
        swept("released"),
    ),
    "reschedule": (
        lambda c, a: c.reschedule(a["topic"], a["filter"], **pick(a, "spread", "earlier", "postpone", "max", "cursor")),
        lambda r: {**plain(r), "rescheduled": r.count},
    ),
    "dead": lambda c, a: c.dead(a.get("topic"), **pick(a, "max")),
    "dead_topics": lambda c, a: c.dead_topics(a["reason"], **pick(a, "max")),
    "kick_dead": (lambda c, a: c.kick_dead(a["reason"], **pick(a, "max", "rate", "to_topic")), swept("kicked")),
    "purge_dead": (lambda c, a: c.purge_dead(a["reason"], **pick(a, "max")), swept("deleted")),
    "pause": lambda c, a: c.pause(a["topic"], a.get("for"), until=at(a, "until")),
    "resume": lambda c, a: c.resume(a["topic"]),
    "settings": lambda c, a: c.settings(a["topic"]),
    "set_settings": lambda c, a: c.set_settings(a["topic"], a["settings"]),
    "change_settings": lambda c, a: c.change_settings(a["topic"], **a["settings"]),
    "delete_settings": lambda c, a: c.delete_settings(a["topic"]),
    "put_schedule": lambda c, a: c.put_schedule(a["name"], a["schedule"]),
    "schedule": lambda c, a: c.schedule(a["name"]),
    "delete_schedule": lambda c, a: c.delete_schedule(a["name"]),
    "pause_schedule": lambda c, a: c.pause_schedule(a["name"]),
    "resume_schedule": lambda c, a: c.resume_schedule(a["name"]),
    "run_schedule": lambda c, a: c.run_schedule(a["name"], key=a.get("key")),
    "schedule_runs": (lambda c, a: c.schedule_runs(a["name"]), lambda r: {"runs": r}),
    "preview_schedule": (lambda c, a: c.preview_schedule(a["name"], count=a.get("count")), lambda r: {"runs": r}),
    "preview_spec": (
        lambda c, a: c.preview_spec(
            a["spec"], start=at(a, "start"), end=at(a, "end"), after=at(a, "after"), **pick(a, "zone", "count")
        ),
        lambda r: {"runs": r},
    ),
    "whoami": lambda c, a: c.whoami(),
    "token": lambda c, a: c.token(a["id"]),
    "put_token": put_token,
    "rotate_token": lambda c, a: c.rotate_token(a["id"], a.get("overlap")),
    "delete_token": lambda c, a: c.delete_token(a["id"]),
    "namespaces": (lambda c, a: c.namespaces(), lambda r: {"namespaces": r}),
    "namespace": lambda c, a: c.namespace(a["name"]),
    "put_namespace": put_namespace,
    "delete_namespace": lambda c, a: c.delete_namespace(a["name"]),
    "members": (lambda c, a: c.members(), lambda r: {"members": r}),
    "health": lambda c, a: c.health(),
    "clocks": lambda c, a: c.clocks(),
    "verify": lambda c, a: c.verify(),
    "transfer_leadership": (lambda c, a: c.transfer_leadership(a.get("id")), lambda r: {"moved": r}),
    "remove_member": lambda c, a: c.remove_member(a["id"]),
    "join": lambda c, a: c.join(a["addresses"]),
    "leave": lambda c, a: c.leave(),
    "reset_clock": lambda c, a: c.reset_clock(),
}


def list_arguments(a: Args) -> Args:
    given = pick(a, "topic", "state", "id_prefix", "reason", "exact_reason", "headers", "body")
    return {**given, "page": a.get("max")}


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
        self.client: AnyClient = None
        self.stream: Any = None
        self.next: Optional["asyncio.Future[Any]"] = None

    def await_(self, value: Any) -> Any:
        """The result of a call: asyncio's is waited for."""
        if self.loop is None or not inspect.isawaitable(value):
            return value

        async def wait() -> Any:
            return await value

        return self.loop.run_until_complete(wait())

    def step(self, verb: str, a: Args) -> Any:
        own = getattr(self, "do_" + verb, None)
        if own is not None:
            return own(a)
        if verb not in verbs:
            raise tarry.TarryError("unknown_verb", verb)
        entry = verbs[verb]
        call, then = entry if isinstance(entry, tuple) else (entry, lambda r: r)
        limit = a.pop("deadline", None)
        client = self.client if limit is None else self.client.within(limit)
        result = plain(then(self.await_(call(client, a))))
        return {} if result is None else result

    def do_open(self, a: Args) -> Args:
        self.close()
        made = tarry.Client if self.loop is None else tarry.AsyncClient
        options = pick(a, "timeout", "patience", "token", "token_file", "token_over_http")
        try:
            self.client = made(a["addresses"], ssl_context=ssl_context(a.get("tls")), **options)
        except ValueError as e:
            raise tarry.TarryError("invalid_argument", str(e)) from None
        return {}

    def do_list(self, a: Args) -> Args:
        return {"jobs": self.collect(self.client.jobs(**list_arguments(a)))}

    def do_all_settings(self, a: Args) -> Args:
        return {"topics": self.collect(self.client.all_settings(after=a.get("after", ""), page=a.get("max")))}

    def do_schedules(self, a: Args) -> Args:
        return {"schedules": self.collect(self.client.schedules(after=a.get("after", ""), page=a.get("max")))}

    def do_tokens(self, a: Args) -> Args:
        return {"tokens": self.collect(self.client.tokens(page=a.get("max")))}

    def collect(self, found: Any) -> Any:
        """All elements of a listing."""
        if self.loop is None:
            return plain(list(found))

        async def elements() -> List[Any]:
            return [one async for one in found]

        return plain(self.await_(elements()))

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
            reply: Args = {"ok": driver.step(step["verb"], step.get("args") or {})}
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

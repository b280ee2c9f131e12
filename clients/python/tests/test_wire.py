import random
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, List, Tuple, Type

from tarry import AsyncClient, AsyncWorker, Client, Worker
from tarry._calls import change_settings, delete, delete_jobs, encode_job, finish, get, purge, put_schedule, set_settings
from tarry._wire import Response, WireError, encode_request
from tarry._worker import delay_after, reason
from tarry.errors import TarryError
from tarry.types import Backoff, Job, NewJob, Reserved, decode, decode_body, encode_body

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTarry-Leader: a:1\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
CLOSED = b"HTTP/1.1 500 Oops\r\n\r\nhello"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class ResponseTest(unittest.TestCase):
    def test_a_reply_is_the_same_in_pieces_of_any_size(self) -> None:
        for data, status, body in (
            (LENGTH, 200, b"hello"), (CHUNKED, 201, b"hello"), (INTERIM, 200, b"hello"), (CLOSED, 500, b"hello"), (EMPTY, 200, b""),
        ):  # fmt: skip
            for size in (1, 2, 3, 7, len(data)):
                with self.subTest(data=data, size=size):
                    r = Response()
                    got = b"".join(r.feed(data[i : i + size]) for i in range(0, len(data), size))
                    if data is CLOSED:
                        self.assertFalse(r.done)
                        r.eof()
                    self.assertEqual((r.status, got, r.done), (status, body, True))
                    self.assertEqual(r.keep, data is not CLOSED)

    def test_a_reply_that_is_cut_off_is_an_error(self) -> None:
        for data in (LENGTH, CHUNKED, INTERIM):
            for size in range(len(data)):
                r = Response()
                r.feed(data[:size])
                with self.assertRaises(WireError):
                    r.eof()

    def test_noise_is_an_error_or_not_finished(self) -> None:
        rand = random.Random(1)
        for _ in range(2000):
            data = bytearray(rand.choice((LENGTH, CHUNKED, INTERIM)))
            for _ in range(rand.randint(1, 4)):
                data[rand.randrange(len(data))] = rand.randrange(256)
            try:
                Response().feed(bytes(data))
            except WireError:
                pass

    def test_a_connection_that_closes_is_not_kept(self) -> None:
        r = Response()
        r.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        self.assertFalse(r.keep)

    def test_a_request_has_a_host_and_a_length(self) -> None:
        data = encode_request("http://a:1", "POST", "/x", b"{}")
        self.assertTrue(data.startswith(b"POST /x HTTP/1.1\r\nHost: a:1\r\n"))
        self.assertTrue(data.endswith(b"Content-Length: 2\r\n\r\n{}"))
        self.assertIn(b"Content-Length: 0\r\n", encode_request("http://a:1", "POST", "/x", None))


class ValuesTest(unittest.TestCase):
    def test_bodies_come_back_as_they_were(self) -> None:
        for body in ("text", "", b"\x00\xff", {"n": [1, None]}, 5, None, True):
            self.assertEqual(decode_body(encode_body(body)), body)
        self.assertEqual(decode_body(encode_body(b"text")), "text")

    def test_durations_and_instants(self) -> None:
        at = datetime(2050, 1, 31, 13, 0, 0, 250000, timezone(timedelta(hours=1)))
        sent = encode_job(NewJob("t", 1, delay=timedelta(milliseconds=1500), due_at=at, backoff=[1, timedelta(minutes=1)], expires_at=at, push_url="https://a.example/"))
        self.assertEqual(sent["expires_at"], "2050-01-31T12:00:00.250Z")
        self.assertEqual(sent["push_url"], "https://a.example/")
        self.assertEqual([sent["delay"], sent["due_at"], sent["backoff"]], [1.5, "2050-01-31T12:00:00.250Z", [1, 60.0]])
        got = decode(Reserved, {"id": "a", "token": "0-1-1", "due_at": "2050-01-31T12:00:00.250Z", "future": 1, "body_base64": "/wA="})
        self.assertEqual((got.due_at, got.body, got.raw["future"]), (at, b"\xff\x00", 1))

    def test_what_is_no_duration_or_instant_is_named(self) -> None:
        naive, hour = datetime(2050, 1, 1), timedelta(hours=1)
        client = Client("a:1")
        wrong: List[Tuple[Type[Exception], str, Callable[[Any], Any], Any]] = [
            (ValueError, "due_at: give a datetime with a time zone, such as", lambda v: client.add("t", 1, due_at=v), naive),
            (TypeError, "due_at: .*not timedelta; for a time from now there is delay", lambda v: client.add("t", 1, due_at=v), hour),
            (TypeError, "due_at: .*not str", lambda v: client.update("a", due_at=v), "2050-01-01"),
            (ValueError, "expires_at: ", lambda v: client.add("t", 1, expires_at=v), naive),
            (ValueError, "expires_at: ", lambda v: client.update_jobs({"id_prefix": "a"}, expires_at=v), naive),
            (ValueError, "died_to: ", lambda v: list(client.jobs("t", died_to=v)), naive),
            (ValueError, "due_from: ", lambda v: client.delete_jobs({"id_prefix": "a", "due_from": v}), naive),
            (ValueError, "due_from: ", lambda v: client.kick_topic("t", filter={"due_from": v}), naive),
            (ValueError, "start: ", lambda v: client.put_schedule("s", {"spec": "@daily", "start": v, "job": {"topic": "t", "body": ""}}), naive),
            (TypeError, "delay: .*not datetime; for an instant there is due_at", lambda v: client.add("t", 1, delay=v), naive),
            (TypeError, "delay: .*not str", lambda v: client.release("a", delay=v), "5"),
            (TypeError, "delay: .*not bool", lambda v: client.release("a", delay=v), True),
            (ValueError, "ttr: give a finite number", lambda v: client.touch("a", v), float("nan")),
            (TypeError, "wait: ", lambda v: client.reserve("t", wait=v), "5"),
            (TypeError, "backoff: ", lambda v: client.add("t", 1, backoff=v), 5),
            (TypeError, r"backoff\[1\]: ", lambda v: client.add("t", 1, backoff=v), [1, "2"]),
            (TypeError, "backoff.base: ", lambda v: client.add("t", 1, backoff=Backoff(base=v)), "2"),
            (TypeError, "duration: ", lambda v: client.pause("t", v), "2"),
            (TypeError, "limit: ", client.within, None),
            (TypeError, "timeout: ", lambda v: Client("a:1", timeout=v), "2"),
            (TypeError, "heartbeat: ", lambda v: client.stream("t", heartbeat=v), "2"),
            (TypeError, "ttr: ", lambda v: Worker(client, "t", print, ttr=v), "2"),
            (TypeError, "backoff: ", lambda v: Worker(client, "t", print, backoff=v), "2"),
            (TypeError, "grace: ", lambda v: AsyncWorker(AsyncClient("a:1"), "t", print, grace=v), "2"),  # type: ignore[arg-type]
            (TypeError, "job: give an id, a Ref or a job, not int", client.finish, 5),
            (TypeError, "an id or a name is a str, not int", client.get, 5),
        ]
        for kind, message, call, value in wrong:
            with self.subTest(message, value=value), self.assertRaisesRegex(kind, "^" + message):
                call(value)

    def test_settings_schedules_and_filters_take_durations_and_instants(self) -> None:
        at, minute = datetime(2050, 1, 31, 13, tzinfo=timezone.utc), timedelta(minutes=1)
        self.assertEqual(set_settings("t", {"ttr": minute, "push": {"timeout": minute}}, None).body, {"ttr": 60.0, "push": {"timeout": 60.0}})
        self.assertEqual(change_settings("t", backoff=Backoff(minute)).body, {"backoff": Backoff(60.0).encode()})
        job = {"topic": "t", "body": b"\xff", "ttr": minute, "backoff": [minute], "headers": {"a": "b"}}
        sent = put_schedule("s", {"spec": "@daily", "start": at, "jitter": minute, "job": job}, None).body or {}
        self.assertEqual([sent["start"], sent["jitter"]], ["2050-01-31T13:00:00.000Z", 60.0])
        self.assertEqual(sent["job"], {"topic": "t", "body_base64": "/w==", "ttr": 60.0, "backoff": [60.0], "headers": {"a": "b"}})
        self.assertIn("due_to=2050-01-31T13%3A00%3A00.000Z", delete_jobs({"id_prefix": "a", "due_to": at}, 1).path)
        self.assertEqual((purge("t", "dead", None, {"died_to": at}).body or {})["filter"], {"died_to": "2050-01-31T13:00:00.000Z"})

    def test_a_job_that_was_read_names_itself(self) -> None:
        self.assertEqual(delete(Job(id="a"), None, None).path, "/v1/jobs/a")
        self.assertEqual(finish(Reserved(id="a", token="0-1-1")).body, {"token": "0-1-1"})

    def test_ids_are_escaped_in_paths(self) -> None:
        self.assertEqual(get("a/b ?ü").path, "/v1/jobs/a%2Fb%20%3F%C3%BC")
        self.assertEqual(get("..").path, "/v1/jobs/%2E%2E")
        with self.assertRaises(TarryError):
            get("")

    def test_the_wait_of_a_failed_job(self) -> None:
        def wait(backoff: object, attempts: int) -> object:
            return delay_after(backoff, Reserved(attempts=attempts))  # type: ignore[arg-type]

        b = Backoff(base=1, factor=2, max=5)
        self.assertEqual([wait(b, n) for n in (1, 2, 3, 4, 5000)], [1, 2, 4, 5, 5])
        self.assertEqual([wait([1, 9], n) for n in (1, 2, 3)], [1, 9, 9])
        self.assertIsNone(wait(None, 1))
        self.assertIsNone(wait([], 1))

    def test_a_reason_fits(self) -> None:
        self.assertEqual(reason(ValueError("why")), "why")
        self.assertEqual(reason(ValueError()), "ValueError")
        self.assertLessEqual(len(reason(ValueError("ü" * 2000)).encode()), 1000)

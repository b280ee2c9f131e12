"""Which attempts a call makes."""

import json
import math
import unittest
from unittest import mock
from typing import Any, Dict, List, Optional, Tuple

from tarry import _calls
from tarry._nodes import Nodes
from tarry._policy import Attempt, HTTPReply, Outcome, Sleep, attempts, lost, unreachable, wait_end
from tarry.errors import IdConflict, NotApplied, NotFound, TarryError, TopicFull, UnknownOutcome
from tarry.types import NewJob, Ref


def reply(status: int, headers: Optional[Dict[str, str]] = None, **body: Any) -> HTTPReply:
    return HTTPReply(status, headers or {}, json.dumps({"success": status < 300, **body}).encode())


ADDED = reply(201, id="a", seq=1, state="ready", revision=1, existing=False)
NO_LEADER = reply(503, code="not_applied", error="no leader", outcome="not_applied")
OVERLOADED = reply(429, {"retry-after": "1"}, code="overloaded", error="too much", outcome="not_applied")
FULL = reply(429, code="topic_full", error="full", outcome="not_applied")
NOT_FOUND = reply(404, code="not_found", error="no such job")
LOST = lost("node", "reset")
DOWN = unreachable("node", "refused")


class Script:
    """Plays the network for one call."""

    def __init__(
        self,
        request: Any,
        *outcomes: Outcome,
        patience: float = 30,
        nodes: Optional[Nodes] = None,
        deadline: Optional[float] = None,
        each: float = 0.0,
    ) -> None:
        """``deadline`` is in seconds from now; each attempt takes ``each`` seconds."""
        self.now = 1000.0
        with mock.patch("tarry._policy.time.monotonic", lambda: self.now):
            self.play(request, *outcomes, patience=patience, nodes=nodes, deadline=deadline, each=each)

    def play(
        self,
        request: Any,
        *outcomes: Outcome,
        patience: float,
        nodes: Optional[Nodes],
        deadline: Optional[float],
        each: float,
    ) -> None:
        self.nodes = nodes or Nodes(["a:1", "b:1"])
        self.attempts: List[Attempt] = []
        self.pauses: List[float] = []
        self.left = list(outcomes)
        self.result: Any = None
        self.failure: Optional[TarryError] = None
        steps = attempts(request, self.nodes, 10, patience, None if deadline is None else self.now + deadline)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Sleep):
                    self.pauses.append(step.seconds)
                    self.now += step.seconds
                    step = steps.send(None)
                else:
                    self.attempts.append(step)
                    self.now += min(each, step.limit)
                    step = steps.send(self.left.pop(0))
        except StopIteration as done:
            self.result = done.value
        except TarryError as e:
            self.failure = e


def add() -> Any:
    return _calls.add(NewJob("t", "x"))


def release() -> Any:
    return _calls.release(Ref("a", "0-1-1"), None, None, None)


class PolicyTest(unittest.TestCase):
    def check(self, s: Script, failure: Optional[type], tries: int) -> None:
        self.assertEqual([s.left, len(s.attempts)], [[], tries])
        self.assertIs(type(s.failure) if s.failure else None, failure, s.failure)

    def test_the_next_node_is_asked_at_once(self) -> None:
        refusals: List[Outcome] = [DOWN, NO_LEADER, OVERLOADED, LOST]
        for refusal in refusals:
            with self.subTest(refusal):
                s = Script(add(), refusal, ADDED)
                self.check(s, None, 2)
                self.assertNotEqual(s.attempts[0].node, s.attempts[1].node)
                self.assertEqual(s.pauses, [])

    def test_an_add_keeps_the_id_that_the_client_gave_it(self) -> None:
        s = Script(add(), LOST, ADDED)
        first, second = (json.loads(a.body or b"")["id"] for a in s.attempts)
        self.assertTrue(first)
        self.assertEqual(first, second)

    def test_after_each_round_there_is_a_pause(self) -> None:
        s = Script(add(), DOWN, OVERLOADED, DOWN, DOWN, ADDED)
        self.check(s, None, 5)
        self.assertEqual(s.pauses, [1.0, 0.1], "Retry-After, then a backoff")

    def test_patience_has_an_end(self) -> None:
        self.check(Script(add(), NO_LEADER, NO_LEADER, patience=0), NotApplied, 2)
        self.check(Script(add(), DOWN, DOWN, patience=0), NotApplied, 2)

    def test_what_is_refused_for_good_is_not_sent_again(self) -> None:
        self.check(Script(add(), FULL), TopicFull, 1)
        self.check(Script(add(), reply(409, code="id_conflict", error="taken")), IdConflict, 1)

    def test_an_unknown_outcome_is_sent_again_where_that_does_no_harm(self) -> None:
        self.check(Script(release(), LOST), UnknownOutcome, 1)
        self.check(Script(release(), DOWN, reply(200, id="a", state="ready")), None, 2)
        self.check(Script(_calls.reserve("t", max=1, wait=1, ttr=None, consumer=None), LOST, reply(200, jobs=[])), None, 2)

    def test_an_error_promises_no_more_than_is_known(self) -> None:
        self.check(Script(add(), LOST, NO_LEADER, patience=0), UnknownOutcome, 2)
        self.check(Script(add(), NO_LEADER, LOST, patience=0), UnknownOutcome, 2)
        self.check(Script(_calls.get("a"), LOST, NO_LEADER, patience=0), NotApplied, 2)
        self.check(Script(_calls.get("a"), LOST, LOST, patience=0), NotApplied, 2)

    def test_a_job_that_an_earlier_attempt_ended_is_success(self) -> None:
        for request in (_calls.finish(Ref("a", "0-1-1")), _calls.delete("a", None, None)):
            self.check(Script(request, LOST, NOT_FOUND), None, 2)
            self.check(Script(request, DOWN, NOT_FOUND), NotFound, 2)
        batch = _calls.finish_batch([Ref("a"), Ref("b")])
        results = [{"success": False, "code": "not_found", "error": ""}, {"success": True, "id": "b"}]
        gone = reply(200, success=False, results=results)
        self.assertEqual(Script(batch, LOST, gone).result, [None, None])
        self.assertIsInstance(Script(batch, gone).result[0], NotFound)

    def test_a_reply_that_is_not_the_servers(self) -> None:
        self.check(Script(release(), HTTPReply(502, {}, b"<html>")), UnknownOutcome, 1)
        self.check(Script(release(), HTTPReply(200, {}, b"<html>")), UnknownOutcome, 1)
        self.check(Script(release(), HTTPReply(404, {}, b"<html>")), TarryError, 1)

    def test_a_reply_that_is_not_what_the_call_returns_is_no_success(self) -> None:
        a, job = Ref("a", "0-1-1"), NewJob("t", 1)
        item = {"success": True}
        no_token = {"jobs": [{"id": "a"}]}
        found: Dict[str, Any] = {"id_prefix": "a"}
        writes: List[Tuple[Any, Dict[str, Any]]] = [
            (_calls.add(job), {}),
            (_calls.add(job), {"id": "a", "seq": "1", "state": "ready"}),
            (_calls.add(job), {"id": "a", "seq": 1, "state": "ready", "due_at": "soon"}),
            (_calls.add(job), {"success": False, "id": "a", "seq": 1, "state": "ready"}),
            (_calls.add_batch([job]), {}),
            (_calls.add_batch([job]), {"results": []}),
            (_calls.add_batch([job]), {"results": [{}]}),
            (_calls.add_batch([job]), {"results": [item]}),
            (_calls.add_all([job]), {"results": [None]}),
            (_calls.finish_then(a, [job]), {"results": [item]}),
            (_calls.update("a", {}), {}),
            (_calls.delete(a, None, None), {}),
            (_calls.reserve("t", max=1, wait=0, ttr=None, consumer=None), {}),
            (_calls.reserve("t", max=1, wait=0, ttr=None, consumer=None), no_token),
            (_calls.finish(a), {}),
            (_calls.finish_batch([a]), {"results": [item]}),
            (_calls.delete_batch([a]), {"results": [item]}),
            (_calls.kick_batch(["a"]), {"results": [item]}),
            (_calls.update_batch({"a": {"delay": 1}}), {"results": [item]}),
            (_calls.touch(a, None), {}),
            (_calls.release(a, None, None, None), {}),
            (_calls.bury(a, None, None), {}),
            (_calls.kick("a", None), {}),
            (_calls.move(a, "u"), {}),
            (_calls.delete_jobs(found, None), {}),
            (_calls.update_jobs(found, None, {}), {}),
            (_calls.kick_jobs(found, None, None), {}),
            (_calls.kick_topic("t", None, None, None, None), {}),
            (_calls.purge("t", "dead", None, None), {}),
            (_calls.move_topic("t", "u", None, None, None, None), {}),
            (_calls.pause("t", None, None), {}),
            (_calls.resume("t"), {}),
            (_calls.set_settings("t", {}, None), {}),
            (_calls.change_settings("t"), {}),
            (_calls.put_schedule("s", {}, None), {}),
            (_calls.delete_schedule("s", None), {}),
            (_calls.pause_schedule("s"), {}),
            (_calls.resume_schedule("s"), {}),
            (_calls.run_schedule("s", None), {}),
        ]
        nothing: Dict[str, Any] = dict.fromkeys(
            "state id_prefix reason exact_reason headers due_from due_to died_from died_to page".split()
        )
        reads: List[Tuple[Any, Dict[str, Any]]] = [
            (_calls.get("a"), {}),
            (_calls.get_batch(["a"], True), {"results": [item]}),
            (_calls.history("a"), {}),
            (_calls.explain("a"), {}),
            (_calls.jobs_page("t", **nothing, body=False, cursor=""), {}),
            (_calls.jobs_page("t", **nothing, body=False, cursor=""), {"jobs": [{}]}),
            (_calls.topics_page("", None), {}),
            (_calls.schedules_page("", None), {}),
            (_calls.topic("t"), {}),
            (_calls.stats(), {}),
            (_calls.settings("t"), {}),
            (_calls.schedule("s"), {}),
            (_calls.schedule_runs("s"), {}),
            (_calls.preview_schedule("s", None), {}),
            (_calls.members(), {}),
            (_calls.health(), {}),
        ]
        for requests, failure in ((writes, UnknownOutcome), (reads, NotApplied)):
            for request, body in requests:
                with self.subTest(request.path, body=body):
                    s = Script(request, reply(200, **body), patience=0, nodes=Nodes(["a:1"]))
                    self.check(s, failure, 1)
                    self.assertIn("is not understood", str(s.failure))

    def test_members_are_asked_for_before_the_second_call(self) -> None:
        nodes = Nodes(["a:1"])
        named = HTTPReply(201, {"tarry-leader": "b:1"}, ADDED.data)
        self.check(Script(add(), named, nodes=nodes), None, 1)
        members = reply(200, members=[{"id": a, "http_address": a + ":1"} for a in "abc"])
        s = Script(add(), members, named, nodes=nodes)
        self.check(s, None, 2)
        self.assertEqual([a.path for a in s.attempts], ["/v1/cluster/members", "/v1/jobs"])
        self.assertEqual(nodes.order(), ["http://b:1", "http://c:1", "http://a:1"])
        self.check(Script(add(), named, nodes=nodes), None, 1)

    def test_a_further_attempt_asks_for_the_rest_of_the_wait(self) -> None:
        request = _calls.reserve("t", max=1, wait=60, ttr=None, consumer=None)
        s = Script(request, LOST, NO_LEADER, reply(200, jobs=[]), each=25)
        self.check(s, None, 3)
        self.assertEqual([json.loads(a.body or b"")["wait"] for a in s.attempts], [60, 35, 9.95])
        self.assertEqual([round(a.limit, 3) for a in s.attempts], [70, 45, 19.95])

    def test_a_worker_learns_soon_that_no_node_can_be_reached(self) -> None:
        def reserve(soon: float) -> Script:
            request = _calls.reserve("t", max=1, wait=30, ttr=None, consumer=None, soon=soon)
            return Script(request, *[DOWN] * 200)

        for soon, least, most in (5.0, 5, 7), (math.inf, 60, 62):
            played = reserve(soon)
            self.assertIsInstance(played.failure, NotApplied)
            self.assertTrue(least <= sum(played.pauses) <= most, played.pauses)

    def test_a_wait_ends_before_the_deadline(self) -> None:
        with mock.patch("tarry._policy.time.monotonic", lambda: 1000.0):
            self.assertEqual(wait_end(60, None), 1060)
            self.assertEqual(wait_end(60, 2000.0), 1060)
            self.assertEqual(wait_end(60, 1010.0), 1009.5)
            self.assertEqual(wait_end(60, 1001.0), 1000.75)

    def test_the_deadline_that_ends_a_call_is_named(self) -> None:
        for s, failure, tries in (
            (Script(add(), LOST, deadline=5, each=5), UnknownOutcome, 1),
            (Script(release(), LOST, deadline=5, each=5), UnknownOutcome, 1),
            (Script(_calls.get("a"), LOST, deadline=5, each=5), NotApplied, 1),
            (Script(add(), DOWN, deadline=5, each=5), NotApplied, 1),
            (Script(add(), OVERLOADED, OVERLOADED, deadline=0.5), NotApplied, 2),
            (Script(add(), OVERLOADED, LOST, deadline=0.04), UnknownOutcome, 2),
            (Script(add(), deadline=0), NotApplied, 0),
        ):
            self.check(s, failure, tries)
            self.assertIn("the deadline ended the call", str(s.failure))
            self.assertTrue(all(a.limit <= 5 for a in s.attempts))
        self.check(Script(add(), FULL, deadline=5, each=5), TopicFull, 1)
        self.assertNotIn("deadline", str(Script(add(), FULL, deadline=5, each=5).failure))

    def test_a_body_that_json_does_not_have(self) -> None:
        for body in (object(), float("nan"), {1, 2}):
            s = Script(_calls.add(NewJob("t", body)))
            assert s.failure is not None
            self.assertEqual(s.failure.code, "bad_json")

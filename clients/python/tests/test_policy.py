"""Which attempts a call makes."""

import json
import unittest
from typing import Any, Dict, List, Optional

from tarry import _calls
from tarry._nodes import Nodes
from tarry._policy import Attempt, HTTPReply, Outcome, Sleep, attempts, lost, unreachable
from tarry.errors import IdConflict, NotApplied, NotFound, TarryError, TopicFull, UnknownOutcome
from tarry.types import NewJob, Ref


def reply(status: int, headers: Optional[Dict[str, str]] = None, **body: Any) -> HTTPReply:
    return HTTPReply(status, headers or {}, json.dumps(body).encode())


ADDED = reply(201, success=True, id="a", seq=1, state="ready", revision=1, existing=False)
NO_LEADER = reply(503, code="not_applied", error="no leader", outcome="not_applied")
OVERLOADED = reply(429, {"retry-after": "1"}, code="overloaded", error="too much", outcome="not_applied")
FULL = reply(429, code="topic_full", error="full", outcome="not_applied")
NOT_FOUND = reply(404, code="not_found", error="no such job")
LOST = lost("node", "reset")
DOWN = unreachable("node", "refused")


class Script:
    """Plays the network for one call."""

    def __init__(self, request: Any, *outcomes: Outcome, patience: float = 30, nodes: Optional[Nodes] = None) -> None:
        self.nodes = nodes or Nodes(["a:1", "b:1"])
        self.attempts: List[Attempt] = []
        self.pauses: List[float] = []
        self.left = list(outcomes)
        self.result: Any = None
        self.failure: Optional[TarryError] = None
        steps = attempts(request, self.nodes, 10, patience, None)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Sleep):
                    self.pauses.append(step.seconds)
                    step = steps.send(None)
                else:
                    self.attempts.append(step)
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
        self.check(Script(release(), DOWN, reply(200, state="ready")), None, 2)
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
        gone = reply(200, results=[{"success": False, "code": "not_found", "error": ""}, {"success": True}])
        self.assertEqual(Script(batch, LOST, gone).result, [None, None])
        self.assertIsInstance(Script(batch, gone).result[0], NotFound)

    def test_a_reply_that_is_not_the_servers(self) -> None:
        self.check(Script(release(), HTTPReply(502, {}, b"<html>")), UnknownOutcome, 1)
        self.check(Script(release(), HTTPReply(200, {}, b"<html>")), UnknownOutcome, 1)
        self.check(Script(release(), HTTPReply(404, {}, b"<html>")), TarryError, 1)

    def test_members_are_asked_for_before_the_second_call(self) -> None:
        nodes = Nodes(["a:1"])
        named = HTTPReply(201, {"tarry-leader": "b:1"}, ADDED.data)
        self.check(Script(add(), named, nodes=nodes), None, 1)
        members = reply(200, members=[{"http_address": "a:1"}, {"http_address": "b:1"}, {"http_address": "c:1"}])
        s = Script(add(), members, named, nodes=nodes)
        self.check(s, None, 2)
        self.assertEqual([a.path for a in s.attempts], ["/v1/cluster/members", "/v1/jobs"])
        self.assertEqual(nodes.order(), ["http://b:1", "http://c:1", "http://a:1"])
        self.check(Script(add(), named, nodes=nodes), None, 1)

    def test_a_body_that_json_does_not_have(self) -> None:
        for body in (object(), float("nan"), {1, 2}):
            s = Script(_calls.add(NewJob("t", body)))
            assert s.failure is not None
            self.assertEqual(s.failure.code, "bad_json")

"""The calls on namespaces: what they send, and what they make of a reply."""

import unittest

from tarry import Quotas, _namespaces
from tarry.types import NotUnderstood


class TestNamespaces(unittest.TestCase):
    def test_what_is_sent(self) -> None:
        put = _namespaces.put_namespace("a", "a.", "a-", None, Quotas(jobs=0, rate=0.5), 3)
        self.assertEqual((put.method, put.path), ("PUT", "/v1/namespaces/a?if_revision=3"))
        self.assertEqual(put.body, {"topic_prefix": "a.", "quotas": {"jobs": 0, "rate": 0.5}, "id_prefix": "a-"})
        bare = _namespaces.put_namespace("a/b", "a.", None, None, None, None)
        self.assertEqual((bare.path, bare.body), ("/v1/namespaces/a%2Fb", {"topic_prefix": "a.", "quotas": {}}))
        self.assertTrue(put.repeat and _namespaces.delete_namespace("a").repeat and _namespaces.delete_namespace("a").gone)

    def test_what_a_reply_is(self) -> None:
        one = {"name": "a", "revision": 2, "topic_prefix": "a.", "quotas": {"jobs": 3}, "use": {"jobs": 1, "bytes": 5, "topics": 1}}
        got = _namespaces.namespaces().read({"namespaces": [one]}, False)
        self.assertEqual([(n.name, n.quotas.jobs, n.quotas.bytes, n.use.bytes, n.id_prefix) for n in got], [("a", 3, None, 5, "")])
        with self.assertRaises(NotUnderstood):
            _namespaces.namespace("a").read({**one, "use": None}, False)

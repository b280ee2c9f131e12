"""The calls on tokens: what they send, and what they make of a reply."""

import unittest
from datetime import datetime, timezone

from tarry import Rule, _tokens


class TestTokens(unittest.TestCase):
    def test_what_is_sent(self) -> None:
        at = datetime(2030, 1, 2, tzinfo=timezone.utc)
        put = _tokens.put_token("a", [Rule(topics=["b.*"], verbs=["add"])], None, "x-", at, 3)
        self.assertEqual((put.method, put.path), ("PUT", "/v1/tokens/a?if_revision=3"))
        sent = {"rules": [{"topics": ["b.*"], "verbs": ["add"]}], "id_prefix": "x-", "expires_at": "2030-01-02T00:00:00.000Z"}
        self.assertEqual(put.body, sent)
        rotate = _tokens.rotate_token("a", 0)
        self.assertEqual((rotate.path, rotate.body), ("/v1/tokens/a/rotate", {"overlap": 0}))
        # A text that is lost with its reply cannot be had again; what is gone stays gone.
        self.assertFalse(put.repeat or rotate.repeat)
        self.assertTrue(_tokens.delete_token("a").repeat and _tokens.delete_token("a").gone)

    def test_what_a_reply_is(self) -> None:
        rules = [{"topics": ["*"], "verbs": ["read"]}]
        page = _tokens.tokens_page("", None).read({"tokens": [{"id": "a", "revision": 2, "rules": rules}], "next": "a"}, False)
        self.assertEqual([(t.id, t.rules[0].verbs) for t in page.items], [("a", ["read"])])
        self.assertEqual(page.next, "a")
        who = _tokens.whoami().read({"mode": "enforce", "rules": []}, False)
        self.assertEqual((who.mode, who.id, who.rules), ("enforce", "", []))

    def test_the_text_is_not_printed(self) -> None:
        put = _tokens.rotate_token("a", None).read({"id": "a", "revision": 1, "token": "s3cret"}, False)
        self.assertEqual(put.token, "s3cret")
        self.assertNotIn("s3cret", repr(put))

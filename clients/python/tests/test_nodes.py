import unittest

from tarry._nodes import AVOID_FAILED, AVOID_UNREACHABLE, MAX_NODES, MEMBERS_EVERY, Nodes, base_url

A, B, C = "http://a:1", "http://b:1", "http://c:1"


class NodesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.now = 100.0

    def nodes(self, *given: str) -> Nodes:
        return Nodes(given, clock=lambda: self.now)

    def test_addresses_are_checked(self) -> None:
        self.assertEqual(base_url("a:1"), A)
        self.assertEqual(base_url("https://a:1/"), "https://a:1")
        for wrong in ("a", ":1", "a:x", "ftp://a:1", "a:1/path", "a:1?q", "u@a:1", ""):
            with self.subTest(wrong), self.assertRaises(ValueError):
                base_url(wrong)
        with self.assertRaises(ValueError):
            Nodes([])

    def test_the_leader_is_asked_first(self) -> None:
        n = self.nodes("a:1", "b:1")
        n.replied(A, "b:1")
        self.assertEqual(n.order(), [B, A])
        n.replied(B, "c:1")
        self.assertEqual(n.order(), [C, A, B])
        n.replied(A, None)
        self.assertEqual(n.order()[0], A, "without a leader: who replied")
        n.replied(A, "no address")
        self.assertEqual(n.order(), [A, B, C])

    def test_a_leader_that_failed_is_not_preferred_for_a_while(self) -> None:
        n = self.nodes("a:1", "b:1")
        n.failed(A, True)
        n.replied(B, "a:1")
        self.assertEqual(n.order()[0], B)
        self.now += AVOID_FAILED
        n.replied(B, "a:1")
        self.assertEqual(n.order()[0], A)

    def test_after_a_node_that_failed_the_next_one_is_asked_first(self) -> None:
        nodes = Nodes(["a:1", "b:1", "c:1"])
        for node in ("http://b:1", "http://c:1"):
            nodes.replied(node, None)
            nodes.failed(node, True)
        self.assertEqual(nodes.order(), ["http://a:1", "http://b:1", "http://c:1"])

    def test_an_address_that_nobody_can_reach_is_forgotten(self) -> None:
        n = self.nodes("a:1")
        n.meet(["a:1", "b:1", ""])
        self.assertEqual(n.order(), [A, B])
        n.failed(B, True)
        self.assertEqual(n.order(), [A, B], "it was reached")
        n.failed(B, False)
        n.failed(A, False)
        self.assertEqual(n.order(), [A], "given addresses stay")
        n.meet(["b:1"])
        self.assertEqual(n.order(), [A])
        self.now += AVOID_UNREACHABLE
        n.meet(["b:1"])
        self.assertEqual(n.order(), [A, B])
        n.failed(B, False)
        self.now += AVOID_UNREACHABLE
        n.meet(["b:1"])
        self.assertEqual(n.order(), [A], "the second pause is longer")

    def test_the_members_are_asked_for_once(self) -> None:
        n = self.nodes("a:1")
        self.assertFalse(n.wants_members(), "before the first reply")
        n.replied(A, None)
        self.assertFalse(n.wants_members(), "not of a server that names no leader")
        n.replied(A, "a:1")
        self.assertTrue(n.wants_members())
        self.assertFalse(n.wants_members(), "while it is tried")
        self.now += MEMBERS_EVERY
        self.assertTrue(n.wants_members(), "it failed")
        n.meet([])
        self.now += MEMBERS_EVERY
        self.assertFalse(n.wants_members())

    def test_a_bounded_number_is_learned(self) -> None:
        n = self.nodes("a:1")
        n.meet(f"b:{i + 1}" for i in range(2 * MAX_NODES))
        self.assertEqual(len(n.order()), MAX_NODES)

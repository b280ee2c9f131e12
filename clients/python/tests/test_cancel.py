import asyncio
import unittest

from tarry._aiohttp import limited


class LimitedTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_result_in_time(self) -> None:
        async def work() -> int:
            return 7

        self.assertEqual(await limited(work(), 30), 7)

    async def test_late_work_is_cancelled(self) -> None:
        cancelled = False

        async def work() -> None:
            nonlocal cancelled
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled = True
                raise

        with self.assertRaises(asyncio.TimeoutError):
            await limited(work(), 0.01)
        self.assertTrue(cancelled)

    async def test_a_cancellation_is_kept_although_the_work_has_just_ended(self) -> None:
        reply: "asyncio.Future[int]" = asyncio.get_running_loop().create_future()

        async def work() -> int:
            return await reply

        async def call() -> None:
            await limited(work(), 30)
            await asyncio.sleep(60)

        task = asyncio.ensure_future(call())
        await asyncio.sleep(0.01)
        reply.set_result(7)
        await asyncio.sleep(0)  # work ends in this round, its waiter in the next
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=5)
        self.assertTrue(done, "the cancellation was swallowed")
        self.assertTrue(task.cancelled())

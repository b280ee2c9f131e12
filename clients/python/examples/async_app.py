"""The same as app.py with asyncio, and a stream that shows what is delivered of another topic.

    python3 examples/async_app.py 127.0.0.1:7300,127.0.0.1:7310,127.0.0.1:7320
"""

import asyncio
import sys

from tarry import AsyncClient, AsyncWorker, Reserved


async def main() -> None:
    async with AsyncClient(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7300") as client:

        async def send(job: Reserved) -> None:
            await asyncio.sleep(0.1)
            await client.add("sent", f"mail to {job.body['to']}")

        async def produce() -> None:
            for number in range(1, 1_000_000):
                await client.add("mail", {"to": f"user{number}"}, delay=2)
                await asyncio.sleep(1)

        async def show() -> None:
            async with client.stream("sent", credit=10) as stream:
                async for job in stream:
                    print(job.body, flush=True)
                    await client.finish(job)

        tasks = [asyncio.ensure_future(produce()), asyncio.ensure_future(show())]
        await AsyncWorker(client, "mail", send, concurrency=4, ttr=10).run()  # until SIGTERM or Ctrl-C
        for task in tasks:
            task.cancel()


asyncio.run(main())

"""Live events, against the real server."""

from __future__ import annotations

import asyncio

from support import Line, Server, codeq
import support


class Watch(support.Case):
    async def asyncSetUp(self) -> None:  # the figures of a test-server stand still with its clock
        asyncio.get_running_loop().slow_callback_duration = 10
        self.real = self.enterContext_(Server())
        self.client = await self.enterAsync(codeq.Client(self.real.url))

    async def next(self, news: codeq.Watch, *kinds: str) -> codeq.News:
        async def find() -> codeq.News:
            async for one in news:
                if one.kind in kinds:
                    return one
            raise AssertionError("the watch ended")

        return await asyncio.wait_for(find(), support.PATIENCE)

    async def test_events_go_on_behind_the_last_one_after_a_cut_and_later(self) -> None:
        async with Line(self.real.url) as line, codeq.Client(line.url) as client:
            async with client.watch("events", commands=["a"], causes=["enqueue"]) as news:
                first = asyncio.create_task(self.next(news, "event"))
                await self.eventually(lambda: news.since["positions"])
                one = await self.client.enqueue("a", 1)
                self.assertEqual((await first).data["task"], one.id)
                line.cut()
                two = await self.client.enqueue("a", 2)
                self.assertEqual((await self.next(news, "event", "gap")).data["task"], two.id)
                since = news.since
            three = await self.client.enqueue("a", 3)
            async with client.watch("events", commands=["a"], since=since) as news:
                self.assertEqual((await self.next(news, "event", "gap", "snapshot")).data["task"], three.id)

    async def test_another_database_is_said(self) -> None:
        async with self.client.watch("events", since={"creationId": "019b76da-a800-7000-8000-000000000000", "positions": {"0": 7}}) as news:
            one = await self.next(news, "gap")
            self.assertEqual(one.data["reason"], "replaced")

    async def test_events_that_the_server_has_no_more_are_a_gap(self) -> None:
        await self.client.enqueue("a", 1)
        async with self.client.watch("events") as news:
            event = asyncio.create_task(self.next(news, "event"))
            await self.eventually(lambda: news.since["positions"])
            await self.client.enqueue("a", 2)
            await event
            since = news.since
        await self.client.close()
        await self.client.enqueue("a", 3)
        await asyncio.to_thread(self.real.terminate)
        await asyncio.to_thread(self.real.start)
        async with self.client.watch("events", since=since) as news:
            gap = await self.next(news, "gap")
            self.assertEqual((gap.data["reason"], gap.data["missed"] > 0), ("evicted", True))

    async def test_the_figures_of_queues_have_names(self) -> None:
        await self.client.enqueue_many([codeq.NewTask("mail", i) for i in range(3)])
        async with self.client.watch("queues", commands=["mail"], everyMs=250) as news:
            one = await self.next(news, "snapshot")
            self.assertEqual(one.queues[("default", "mail")]["ready"], 3)
            await self.client.enqueue("mail", 4)
            one = await self.next(news, "tick")
            self.assertEqual((one.queues[("default", "mail")]["ready"], one.queues[("", "")]["ready"]), (4, 4))

    async def test_a_wrong_filter_is_an_error(self) -> None:
        async with self.client.watch("events", commands=[7]) as news:
            error = await self.raises("invalid_argument", self.next(news, "event"))
            self.assertFalse(error.retryable)

    async def test_a_watch_is_used_in_its_block(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "async with"):
            async for _ in self.client.watch("server"):
                pass
        async with self.client.watch("server") as news:
            async for one in news:
                self.assertIn("version", one.data["server"])
                break

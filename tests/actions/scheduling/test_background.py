"""Background work ends by itself or with the server, and its log messages reveal no data."""

import asyncio
import logging

import pytest

from app.actions.scheduling.background import Background
from app.errors import QuestionForfeited


async def fails(error: Exception) -> None:
    raise error


def test_work_continues_when_its_caller_is_cancelled() -> None:
    async def main() -> None:
        background = Background()
        go_on = asyncio.Event()
        work = background.start(go_on.wait(), "a_1")
        waiting = asyncio.create_task(asyncio.wait([work]))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert len(background) == 1
        go_on.set()
        assert await work
        await asyncio.sleep(0)
        assert len(background) == 0

    asyncio.run(main())


def test_a_stopping_server_cancels_unfinished_work() -> None:
    async def main() -> None:
        background = Background()
        work = background.start(asyncio.sleep(60), "a_1")
        await background.stop()
        assert work.cancelled()
        assert len(background) == 0

    asyncio.run(main())


def test_only_the_kind_of_an_unawaited_failure_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        background = Background()
        background.start(fails(QuestionForfeited("as it should be")), "a_1")
        background.start(fails(ValueError("SECRET-4711")), "a_1")
        while len(background):
            await asyncio.sleep(0)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    assert caplog.messages[-1] == "unexpected ValueError"
    assert "SECRET-4711" not in caplog.text
    assert "QuestionForfeited" not in caplog.text

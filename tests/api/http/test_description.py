"""The interface description is written once, for all readers."""

import asyncio

from fastapi import FastAPI
from typing_extensions import override

from app.api.http.openapi import InterfaceDescription


class CountedApp(FastAPI):
    described = 0

    @override
    def openapi(self) -> dict[str, str]:
        self.described += 1
        return {"openapi": "3.1.0"}


def test_all_readers_share_one_text() -> None:
    app = CountedApp()
    description = InterfaceDescription(app)

    async def read() -> list[bytes]:
        first = await asyncio.gather(*(description.text() for _ in range(20)))
        return [*first, await description.text()]

    texts = asyncio.run(read())
    assert set(texts) == {b'{"openapi":"3.1.0"}'}
    assert all(text is texts[0] for text in texts)
    assert app.described == 1

"""The bare endpoint: the same framework, body and reply as a charged count, doing nothing.

It is the ceiling for `POST /v1/queries`. pydantic reads the query and writes an answer of the same
shape; there is no key, no plan, no charge, no data, no noise.
"""

from fastapi import FastAPI

from app.api.queries import AnswerResponse
from app.planning.request import Question

ANSWER = {
    "id": "q_01a1e2b3540e1327bfcacb0030670835",
    "status": "answered",
    "value": 5463,
    "mechanism": {
        "kind": "laplace",
        "noise": [{"measure": "count", "sensitivity": 1, "scale": 10.0, "grid": 1}],
    },
    "interval": {"low": 5433, "high": 5493, "confidence": 0.95, "covers": "noise"},
    "charged": {
        "epsilon": 0.1,
        "delta": 0.0,
        "cells": None,
        "accounts": [
            {
                "holder": "analyst-1",
                "spent": {"epsilon": 0.1, "delta": 0.0},
                "remaining": {"epsilon": 2.9, "delta": 0.0},
            },
            {"holder": "*", "spent": None, "remaining": None},
        ],
    },
    "theorem": "x" * 160,
    "receipt": {"entry": 5, "hash": "0" * 64},
}


def application() -> FastAPI:
    app = FastAPI(telemetry={"logs": False})

    @app.post("/bare")
    async def bare(question: Question) -> AnswerResponse:
        return AnswerResponse.model_validate(ANSWER)

    return app

"""The text of an answer: written once, stored, and sent as stored."""

import json
from typing import Any

from app.ledger.protocol import Charged
from app.planning.plan import Plan


def answer_text(charge: Charged, plan: Plan, answer: dict[str, Any]) -> str:
    paid = json.loads(charge.charged)
    body = {
        "id": charge.charge_id,
        "status": "answered",
        "value": answer["value"],
        "mechanism": plan.release.describe(),
        "interval": answer["interval"],
        "charged": paid["charged"],
        "theorem": f"{plan.release.theorem}; {paid['composition']}",
        "receipt": paid["receipt"],
    }
    return json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":"))

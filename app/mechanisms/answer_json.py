"""JSON encoding of answers: the text that is stored and sent, and whose size padding equalises."""

import json

ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))

"""Texts about Python's parameters, as texts about the options of the command."""

import re

# Parameters whose option has another name.
NAMES = {"mechanism": "mechanism", "holder": "as"}
PARAMETER = re.compile(
    r"\b(epsilon|delta|rho|within|confidence|mechanism|holder|rows)=([^\s,;)]*[^\s,;.)])"
)
PHRASES = {
    "fresh=True": "--fresh",
    "connect(verify='ca.pem')": "bursar login --ca ca.pem, or BURSAR_CA=ca.pem",
    "Leave out where() or by().": "Leave out -w or --by.",
    "Leave out where().": "Leave out -w.",
}


def as_options(text: str) -> str:
    """`--epsilon 0.1` instead of `epsilon=0.1`."""
    for phrase, option in PHRASES.items():
        text = text.replace(phrase, option)
    return PARAMETER.sub(lambda m: f"--{NAMES.get(m[1], m[1])} {m[2]}", text)

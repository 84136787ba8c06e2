"""Small charts as SVG: they need no script, and survive printing.

Sizes are attributes, because the policy of the pages forbids styles inside the page.
"""

from collections.abc import Sequence

from markupsafe import Markup

SPARK_WIDTH, SPARK_HEIGHT = 120, 28
MUCH = 0.75  # share of a budget from which its bar warns
NEARLY_ALL = 0.9


def level(used: float) -> str:
    """The class of a bar: `ok`, `much` or `most`."""
    return "most" if used >= NEARLY_ALL else "much" if used >= MUCH else "ok"


def bar(used: float, label: str) -> Markup:
    """How much of a budget is used, from 0 to 1."""
    width = 100 * min(max(used, 0.0), 1.0)
    return Markup(
        '<svg class="bar {level}" role="img" aria-label="{label}" viewBox="0 0 100 4" '
        'preserveAspectRatio="none"><rect class="rest" width="100" height="4" rx="1"/>'
        '<rect class="used" width="{width:.2f}" height="4" rx="1"/></svg>'
    ).format(level=level(used), label=label, width=width)


def sparkline(values: Sequence[float], label: str, low: float = 0.0, high: float = 1.0) -> Markup:
    """Values as steps from left to right, between `low` and `high`."""
    if len(values) < 2:
        return Markup('<span class="quiet">-</span>')
    span = (high - low) or 1.0
    wide = SPARK_WIDTH / (len(values) - 1)
    path, last = [], None
    for index, value in enumerate(values):
        x = index * wide
        y = 1 + (SPARK_HEIGHT - 2) * (1 - (min(max(value, low), high) - low) / span)
        path.append(f"M{x:.1f},{y:.1f}" if last is None else f"H{x:.1f}V{y:.1f}")
        last = y
    return Markup(
        '<svg class="spark" role="img" aria-label="{label}" width="{width}" height="{height}" '
        'viewBox="0 0 {width} {height}"><path d="{path}"/></svg>'
    ).format(label=label, width=SPARK_WIDTH, height=SPARK_HEIGHT, path="".join(path))


def stacked(used: float, parts: Sequence[float], label: str) -> Markup:
    """The used share of a budget, and the share that each question of a plan adds."""
    rects, at = [], 0.0
    for index, part in enumerate([used, *parts]):
        width = max(0.0, min(part, 1.0 - at))
        name = "used" if index == 0 else f"part{index % 2}"
        rects.append(
            Markup('<rect class="{}" x="{:.2f}" width="{:.2f}" height="6"/>').format(
                name, 100 * at, 100 * width
            )
        )
        at += width
    return Markup(
        '<svg class="bar stacked" role="img" aria-label="{}" viewBox="0 0 100 6" '
        'preserveAspectRatio="none"><rect class="rest" width="100" height="6"/>{}</svg>'
    ).format(label, Markup("").join(rects))

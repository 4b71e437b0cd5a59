"""Which numbers a page shows, and whether the results have them."""

import re

CURVES = ("examples", "fits")
"""Parts of the results with so many numbers that any would be found among them."""


def numbers(value):
    """All leaves of plain values."""
    if isinstance(value, dict):
        return [n for own in value.values() for n in numbers(own)]
    if isinstance(value, list):
        return [n for own in value for n in numbers(own)]
    return [value]


FOLLOWED = ("users", "everybody", "treatment", "errors", "calibration")
"""Sections of the page about users who are followed for it."""


def decimals(page, results):
    """Decimals in the tables of a page, and those that the results lack; seconds may be shown as milliseconds."""
    told = {name: value for name, value in results.items() if name not in CURVES}
    told["tables"] = {name: rows for name, rows in results["tables"].items() if name not in CURVES}
    known = numbers(told)
    floats = [v for v in known if isinstance(v, float)]
    floats += [1e3 * v for v in floats]
    texts = " ".join(v for v in known if isinstance(v, str)).replace("−", "-")
    # Users who are followed for the page are no part of the results: their effects and errors are shown there alone.
    text = page.read_text(encoding="utf-8")
    for section in FOLLOWED:
        text = re.sub(rf'<section id="{section}">.*?</section>', "", text, flags=re.DOTALL)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", text)
    shown = {n for cell in cells for n in re.findall(r"-?\d+\.\d+", cell.replace("−", "-"))}

    def is_known(text):
        half = 0.5 * 10.0 ** -len(text.split(".")[1]) * 1.0001
        return text in texts or any(abs(value - float(text)) <= half for value in floats)

    return shown, {n for n in shown if not is_known(n)}

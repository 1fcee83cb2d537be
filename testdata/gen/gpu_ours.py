"""Figures of internal/testing/gpubench, for the tables of its peers."""

import json
import re


def figures(path):
    """µs of whole tests by (shape, test), from figures.json.

    Tests: "nN@D" is N tokens one after the other, the first at position D; "pN" a prompt of N tokens, or a step of so many. Of the
    forms in which one test was measured the fastest counts.
    """
    out = {}
    if not path:
        return out
    try:
        rows = json.load(open(path))
    except (OSError, ValueError):
        return out
    for row in rows:
        if not isinstance(row, dict) or "microseconds" not in row:
            continue
        shape = row.get("shape")
        row_of = re.fullmatch(r"(\d+) tokens from position (\d+)", row.get("what", ""))
        if row_of and shape:
            n = int(row_of[1])
            key, took = (shape, f"n{n}@{row_of[2]}"), row["microseconds"] * n
        elif (row.get("what") == "prompt" or "step" in row) and shape:
            key, took = (shape, f"p{row['tokens']}"), row["microseconds"]
        elif shape:  # by other plans
            continue
        elif "position" in row and "dispatches" in row:
            n = 2 * row["position"]
            key, took = ("SmolLM2-135M", f"n{n}@0"), row["microseconds"] * n
        else:
            continue
        out[key] = min(took, out.get(key, took))
    return out


def beside(ours, shape, test, tokens, peer):
    """The last two columns of a row: our tokens a second and our speed in terms of the peer's, which took
    peer µs for the test."""
    took = ours.get((shape, test))
    if took is None:
        return "not measured in this run | "
    return f"{1e6 * tokens / took:.0f} | {peer / took:.2f}"

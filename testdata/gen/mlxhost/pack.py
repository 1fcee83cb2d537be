"""Writes testdata/mlxhost/captures.jsonl.gz from what the program of cases.cpp printed, once a chip.

    pack.py OUT CHIP=FILE …

A line is a case, as cases.cpp says it, but for "sent": what was sent is a map from chips to lists, and chips that were sent
the same share one, their names joined by "+".
"""

import gzip
import json
import sys


def main():
    out, files = sys.argv[1], [a.split("=", 1) for a in sys.argv[2:]]
    lines = []
    for cases in zip(*(open(f, encoding="utf-8") for _, f in files), strict=True):
        cases = [json.loads(c) for c in cases]
        sent = {}
        for (chip, _), c in zip(files, cases):
            key = json.dumps([c.pop("out", None), c.pop("sent", None)], separators=(",", ":"))
            sent.setdefault(key, []).append(chip)
        assert all(c == cases[0] for c in cases), cases
        case = cases[0]
        if "error" not in case:
            case["sent"] = {}
            for key, chips in sent.items():
                made, messages = json.loads(key)
                while messages and messages[-1] == "commit":  # the wait of the program that asked
                    messages.pop()
                case["sent"]["+".join(chips)] = {"out": made, "messages": messages}
        lines.append(json.dumps(case, separators=(",", ":")))
    with gzip.GzipFile(out, "wb", compresslevel=9, mtime=0) as f:
        f.write(("\n".join(lines) + "\n").encode())
    print(f"{len(lines)} cases, {sum('error' in json.loads(l) for l in lines)} of them errors")


main()

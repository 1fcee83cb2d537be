"""Packs the log of a program that was captured, without the code of compiled libraries, which is large and whose files tests fetch.

	strip.py LOG OUTPUT.gz
"""
import gzip
import struct
import sys

log, output = sys.argv[1:]
with open(log, "rb") as f:
    data = f.read()
out, at = [data[:16]], 16
while at + 8 <= len(data):
    size, code = struct.unpack_from("<II", data, at)
    payload = data[at + 8 : at + 8 + size]
    if code == 2:  # library: a number, kind, name, code, options
        parts, i = [payload[:8]], 8
        for field in range(4):
            (n,) = struct.unpack_from("<I", payload, i)
            text = payload[i + 4 : i + 4 + n]
            i += 4 + n
            parts.append(text)
        if parts[1] == b"metallib":
            parts[2], parts[3] = parts[2].rsplit(b"/", 1)[-1], b""
        payload = parts[0] + b"".join(struct.pack("<I", len(p)) + p for p in parts[1:])
    out.append(struct.pack("<II", len(payload), code) + payload + bytes(-len(payload) % 8))
    at += 8 + (size + 7) // 8 * 8
with open(output, "wb") as f:
    with gzip.GzipFile("", "wb", 9, f, 0) as z:
        z.write(b"".join(out))

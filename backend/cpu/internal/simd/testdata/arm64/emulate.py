"""Runs functions of an arm64 program in an emulator, for emulate_test.go.

Reads lines of JSON. The first has the program: {"segments": [{"at", "data"}]}.
Each one after it is a call, answered by a line:

    {"pc", "frame": hex of the arguments and results, "buffers": [{"data": hex,
     "end": whether it ends at a page, else it begins at one}],
     "pointers": [[offset in the frame, number of a buffer, offset in it]]}
    -> {"frame": hex, "buffers": [hex]} or {"error"}

Every buffer has pages of its own with nothing mapped around them, so that an
access outside is an error.
"""

import json
import struct
import sys

import unicorn
from unicorn import arm64_const as arm

PAGE = 0x10000
STACK = 0x7000_0000_0000
BUFFERS = 0x1000_0000_0000
RETURN = 0x7FFF_0000_0000  # where a function returns to: nothing is there to run


def up(n):
    return (n + PAGE - 1) // PAGE * PAGE


def start(segments):
    cpu = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    cpu.ctl_set_cpu_model(arm.UC_CPU_ARM64_MAX)
    for s in segments:
        data = bytes.fromhex(s["data"])
        cpu.mem_map(s["at"], up(len(data)))
        cpu.mem_write(s["at"], data)
    cpu.mem_map(STACK, PAGE)
    cpu.mem_map(RETURN, PAGE)
    return cpu


def call(cpu, pc, frame, buffers, pointers):
    frame = bytearray.fromhex(frame)
    places, at, mapped = [], BUFFERS, []
    try:
        for b in buffers:
            data = bytes.fromhex(b["data"])
            size = up(len(data))
            if size:
                cpu.mem_map(at, size)
                mapped.append((at, size))
            place = at + size - len(data) if b["end"] else at
            cpu.mem_write(place, data)
            places.append((place, len(data)))
            at += size + PAGE
        for offset, number, within in pointers:
            struct.pack_into("<Q", frame, offset, places[number][0] + within)
        # Go's stack: arguments begin 8 bytes above the stack pointer.
        sp = STACK + PAGE - up16(len(frame) + 8)
        cpu.mem_write(sp + 8, bytes(frame))
        cpu.reg_write(arm.UC_ARM64_REG_SP, sp)
        cpu.reg_write(arm.UC_ARM64_REG_X30, RETURN)
        for v in range(32):  # what an earlier call left must not matter
            cpu.reg_write(arm.UC_ARM64_REG_Q0 + v, (1 << 128) - 1)
        cpu.emu_start(pc, RETURN, count=200_000_000)
        if cpu.reg_read(arm.UC_ARM64_REG_PC) != RETURN:
            return {"error": "it does not return"}
        if cpu.reg_read(arm.UC_ARM64_REG_SP) != sp:
            return {"error": "it moves the stack pointer"}
        return {
            "frame": bytes(cpu.mem_read(sp + 8, len(frame))).hex(),
            "buffers": [bytes(cpu.mem_read(p, n)).hex() if n else "" for p, n in places],
        }
    except unicorn.UcError as e:
        return {"error": f"{e}, at {cpu.reg_read(arm.UC_ARM64_REG_PC):#x}"}
    finally:
        for at, size in mapped:
            cpu.mem_unmap(at, size)


def up16(n):
    return (n + 15) // 16 * 16


cpu = None
for line in sys.stdin:
    request = json.loads(line)
    if cpu is None:
        cpu = start(request["segments"])
        continue
    print(json.dumps(call(cpu, **request)), flush=True)

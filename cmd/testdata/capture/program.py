"""Sends kernels to Metal from Python, captured, and prints what it computes. Its argument is the library in place of Metal, whose device
is served as fakemetal.ServeProcess says. With a third argument it dies before it has committed what that many steps send."""

import ctypes
import mmap
import os
import signal
import struct
import sys

import mlxc_capture

metal = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
memory = mmap.mmap(4, 0)
memory[:8] = struct.pack("<Q", ctypes.addressof(ctypes.c_char.from_buffer(memory)))
metal.fakemetal_reset()
metal.fakemetal_connect(3)
for f in (metal.objc_msgSend, metal.objc_getClass, metal.sel_registerName, metal.MTLCreateSystemDefaultDevice):
    f.restype = ctypes.c_void_p


def send(to, selector, *arguments):
    words = [a if isinstance(a, bytes) or hasattr(a, "_obj") or hasattr(a, "_length_") else ctypes.c_uint64(a) for a in arguments]
    return metal.objc_msgSend(ctypes.c_void_p(to), ctypes.c_void_p(metal.sel_registerName(selector.encode())), *words)


def text(s):
    return send(metal.objc_getClass(b"NSString"), "stringWithCString:encoding:", s.encode(), 4)


def size(*n):
    return (ctypes.c_uint64 * 3)(*n)


SOURCE = """#include <metal_stdlib>
kernel void advance(device uint *x [[buffer(0)]], constant uint2 &f [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  x[i] = x[i] * f.x + f.y;
}
"""


def run():
    # Errors are errors: nothing is captured yet, and there is no such folder.
    for wrong in (mlxc_capture.stop, lambda: mlxc_capture.start("missing/log.mlxtrace"), lambda: mlxc_capture.param("pos", 1 << 32)):
        try:
            wrong()
        except (OSError, ValueError) as e:
            print("refused:", e)
    mlxc_capture.start(sys.argv[2])
    try:
        mlxc_capture.start(sys.argv[2])
    except OSError as e:
        print("refused:", e)
    device = metal.MTLCreateSystemDefaultDevice()
    error = ctypes.c_void_p()
    library = send(device, "newLibraryWithSource:options:error:", text(SOURCE), 0, ctypes.byref(error))
    function = send(library, "newFunctionWithName:", text("advance"))
    pipeline = send(device, "newComputePipelineStateWithFunction:error:", function, ctypes.byref(error))
    queue = send(device, "newCommandQueue")
    buffer = send(device, "newBufferWithLength:options:", 16, 0)
    words = (ctypes.c_uint32 * 4).from_address(send(buffer, "contents"))
    words[:] = [1, 2, 3, 4]

    def once(pos):
        commands = send(queue, "commandBuffer")
        encoder = send(commands, "computeCommandEncoder")
        send(encoder, "setComputePipelineState:", pipeline)
        send(encoder, "setBuffer:offset:atIndex:", buffer, 0, 0)
        send(encoder, "setBytes:length:atIndex:", struct.pack("<II", 10 + pos, 7), 8, 1)
        send(encoder, "dispatchThreads:threadsPerThreadgroup:", size(4, 1, 1), size(4, 1, 1))
        send(encoder, "endEncoding")
        if sys.argv[3:] == [str(pos + 1)]:
            os.kill(os.getpid(), signal.SIGKILL)
        send(commands, "commit")
        send(commands, "waitUntilCompleted")

    for pos in range(3):
        with mlxc_capture.step("advance", pos=pos):
            once(pos)
    mlxc_capture.stop()
    once(3)  # is not in the log
    print(*words)


run()
metal.fakemetal_disconnect()

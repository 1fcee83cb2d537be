// The engine of engine.c in Swift. NEVER COMPILED: no machine that this was written on has a Swift compiler.
//
//   cc -c -x c -DMLXREC_IMPLEMENTATION ../../capture/mlxrec.h -o mlxrec.o
//   swiftc -O -import-objc-header ../../capture/mlxrec.h engine.swift mlxrec.o -o engine && ./engine engine.metal engine.mlxtrace

import Foundation

let e = 256, f = 512, layers = 2, context = 64, steps: UInt32 = 4

func halves(_ pattern: UInt16) -> [UInt16] { (0..<e * f).map { pattern + UInt16($0 * 7 % 61) } }

guard CommandLine.arguments.count == 3, let text = try? String(contentsOfFile: CommandLine.arguments[1], encoding: .utf8),
  let r = mlxrec_open(CommandLine.arguments[2], "engine")
else {
  FileHandle.standardError.write("usage: engine engine.metal engine.mlxtrace\n".data(using: .utf8)!)
  exit(2)
}

func words(_ slot: UInt32, _ values: [UInt32]) { mlxrec_bytes(r, slot, values, 4 * values.count) }

let lib = mlxrec_source(r, "engine.metal", text, text.utf8.count, nil)
let kernels = ["my_rms", "my_mv", "my_mean", "my_silu_mul", "my_add"].map { mlxrec_kernel(r, lib, $0, nil, 0) }
let (rms, mv, mean, siluMul, add) = (kernels[0], kernels[1], kernels[2], kernels[3], kernels[4])
let x = mlxrec_buffer(r, UInt64(4 * e), "x", "input", nil), y = mlxrec_buffer(r, UInt64(4 * e), "y", "output", nil)
let scratch = [("h", e), ("t", e), ("d", e), ("g", f), ("u", f), ("s", f)].map { mlxrec_buffer(r, UInt64(4 * $0.1), $0.0, nil, nil) }
let (h, t, d, g, u, s) = (scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5])
let ones = [Float](repeating: 1, count: e)
let weights = (0..<layers).map { l -> [UInt64] in
  let norm = mlxrec_buffer(r, UInt64(4 * e), "norm\(l)", nil, ones)
  let cache = mlxrec_buffer(r, UInt64(4 * e * context), "cache\(l)", nil, nil)
  return [norm, cache]
    + [("gate", UInt16(0x2400)), ("up", 0xa400), ("down", 0x2800)].map { mlxrec_buffer(r, UInt64(2 * e * f), "\($0.0)\(l)", nil, halves($0.1)) }
}
for pos in 0..<steps {
  let input = (0..<e).map { Float(($0 * 5 + Int(pos) * 3) % 17) / 8 - 1 }
  mlxrec_step(r, "step", Int32(MLXREC_SERIAL))
  mlxrec_param(r, "pos", pos)
  mlxrec_write(r, x, 0, input, 4 * e)
  mlxrec_copy(r, x, 0, h, 0, UInt64(4 * e))
  for w in weights {
    var eps: Float = 1e-5
    mlxrec_use(r, rms); mlxrec_bind(r, 0, h, 0); mlxrec_bind(r, 1, w[0], 0); mlxrec_bind(r, 2, w[1], UInt64(4 * e) * UInt64(pos))
    words(3, [UInt32(e)]); mlxrec_bytes(r, 4, &eps, 4); mlxrec_threadgroups(r, 1, 1, 1, 256, 1, 1)
    mlxrec_use(r, mean); mlxrec_bind(r, 0, w[1], 0); mlxrec_bind(r, 1, t, 0); words(2, [UInt32(e), pos + 1]); mlxrec_threads(r, UInt32(e), 1, 1, 256, 1, 1)
    mlxrec_use(r, mv); mlxrec_bind(r, 0, w[2], 0); mlxrec_bind(r, 1, t, 0); mlxrec_bind(r, 2, g, 0); words(3, [UInt32(f), UInt32(e)])
    mlxrec_threadgroups(r, UInt32(f), 1, 1, 32, 1, 1)
    mlxrec_bind(r, 0, w[3], 0); mlxrec_bind(r, 2, u, 0); mlxrec_threadgroups(r, UInt32(f), 1, 1, 32, 1, 1)
    mlxrec_use(r, siluMul); mlxrec_bind(r, 0, g, 0); mlxrec_bind(r, 1, u, 0); mlxrec_bind(r, 2, s, 0); mlxrec_threads(r, UInt32(f), 1, 1, 256, 1, 1)
    mlxrec_use(r, mv); mlxrec_bind(r, 0, w[4], 0); mlxrec_bind(r, 1, s, 0); mlxrec_bind(r, 2, d, 0); words(3, [UInt32(e), UInt32(f)])
    mlxrec_threadgroups(r, UInt32(e), 1, 1, 32, 1, 1)
    mlxrec_use(r, add); mlxrec_bind(r, 0, h, 0); mlxrec_bind(r, 1, d, 0); mlxrec_bind(r, 2, h, 0); mlxrec_threads(r, UInt32(e), 1, 1, 256, 1, 1)
  }
  mlxrec_copy(r, h, 0, y, 0, UInt64(4 * e))
  mlxrec_end(r)
}
exit(mlxrec_close(r) == 0 ? 0 : 1)

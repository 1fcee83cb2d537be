// Package ptxrun runs PTX, slowly and plainly, for tests: the part of the language that our generated
// kernels and products of matrices consist of. What it does not know is an error.
//
//	m := &ptxrun.Memory{}
//	in := m.Add(bytes)                          // an address
//	p, err := ptxrun.Parse(text)                // of one entry
//	err = p.Run(m, ptxrun.Launch{Params: []uint64{in, out, …}, Grid: [3]uint32{4, 1, 1}, Block: 256})
//
// Blocks run one after another, and so do the threads of a warp, each to its end or to what it does together
// with others: shuffles, votes, products of matrices, barriers. Instructions mean what NVIDIA's PTX ISA
// says; where that leaves a NaN open, it is the one that the GPUs make; how mma adds, it leaves open, and
// that is what GPUs of compute capability 8.0 do, which are the least exact. An access outside of what was
// added is an error with its instruction.
package ptxrun

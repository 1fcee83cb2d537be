// Package ptxrun runs PTX, slowly and plainly, for tests: the part of the language that kernels without
// exchange between threads consist of. What it does not know is an error.
//
//	m := &ptxrun.Memory{}
//	in := m.Add(bytes)                          // an address
//	p, err := ptxrun.Parse(text)                // of one entry
//	err = p.Run(m, ptxrun.Launch{Params: []uint64{in, out, …}, Grid: [3]uint32{4, 1, 1}, Block: 256})
//
// Threads run one after another. Instructions mean what NVIDIA's PTX ISA says; where that leaves a NaN
// open, it is the one that the GPUs make. An access outside of what was added is an error with its
// instruction.
package ptxrun

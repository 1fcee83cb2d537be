// Package ptxrun runs PTX, slowly and plainly, for tests: the part of the language that our generated
// kernels and products of matrices consist of. What it does not know is an error.
//
//	m := &ptxrun.Memory{}
//	in := m.Add(bytes)                          // an address
//	p, err := ptxrun.Parse(text)                // of one entry
//	err = p.Run(m, ptxrun.Launch{Params: []uint64{in, out, …}, Grid: [3]uint32{4, 1, 1}, Block: 256})
//
// Blocks run one after another, those of a cluster (.reqnctapercluster) together, and so do the threads of a warp, each to its end or to an instruction that threads
// execute together: shuffles, votes, products of matrices, barriers. Instructions do what NVIDIA's PTX ISA says.
// Where that leaves the bits of a NaN open, they are those that the GPUs make; where it leaves open how mma adds, it
// is as on GPUs of compute capability 8.0, which are the least exact; wgmma adds as on those of 9.0. An access outside
// of what was added is an error with its instruction.
//
// In programs with asynchronous instructions (cp.async, bulk copies, mbarriers, wgmma) it is an error to do what nothing
// orders: to read or write shared memory that a copy is on its way to, or that another thread has used with no barrier
// between; to let wgmma read what has been written without fence.proxy.async; to use a register of a wgmma before it is
// waited for. Copies and results come as late as they may. Of a cluster it is an error to reach the shared memory of a block that may
// not have begun, or may have ended.
package ptxrun

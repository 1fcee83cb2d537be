// Package ptxcode finds the PTX of a graph's kernels, for GPUs of NVIDIA's:
//
//	s := ptxcode.New(cache, "")
//	c, err := s.Find(ctx, &g.Kernels[i])
//	text, err := c.PTX(ctx, nvptx.Launch{})       // whose parameters are those of c.Kernel (nvptx.Compile)
//
// Our own kernels were compiled beforehand (backend/internal/prebuilt), and generated ones are written by
// backend/internal/ptxwrite. All others, and those whose prebuilt code is out of date, are compiled by clang, which is
// looked for when the first such kernel is asked for; its absence is an error of that kernel. Compiled texts are
// kept in a cache.
package ptxcode

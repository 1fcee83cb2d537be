package cpu

func init() { Register(arange("arangeuint32"), arange("arangeint32")) }

// arange makes out[i] = start + i·step, modulo 2³². Arguments: 0 start, 1 step, 2 out, of u32 or i32.
func arange(name string) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return c.Threads[0] },
		Run: func(c *Call, _ *Worker, lo, hi int) {
			start, step, out := uint32(c.Uint(0)), uint32(c.Uint(1)), c.U32(2)
			for i := lo; i < hi; i++ {
				out[i] = start + uint32(i)*step
			}
		},
		Cost: func(*Call) float64 { return 1 },
	}
}

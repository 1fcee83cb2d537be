//go:build unix

package softmetal

import "time"

// A request is looked after each lookAfter. It hangs if nothing of the executor has run between so many looks in a row, and
// all its threads sleep.
const (
	lookAfter = 200 * time.Millisecond
	looks     = 3
)

// watch ends an executor that sleeps when it should work, as kernels never do.
func (p *process) watch(c *channel, executor runner, ended <-chan struct{}) {
	tick := time.NewTicker(p.look)
	defer tick.Stop()
	var request, used int64
	still := 0
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		now := p.busy.Load()
		if now == 0 || now != request {
			request, still = now, 0
			continue
		}
		ran, asleep := executor.Idle()
		if !asleep || ran != used {
			used, still = ran, 0
			continue
		}
		if still++; still < looks || c.pending() {
			continue
		}
		why := "the executor hangs: all its threads sleep, and it has not answered"
		p.caught.Store(&why)
		executor.Kill()
		return
	}
}

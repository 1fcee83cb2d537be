//go:build unix

package softmetal

import "time"

// A watchdog looks at a pending request every lookAfter. The executor hangs if at so many looks in a row all its
// threads sleep and have not run since the look before.
const (
	lookAfter = 200 * time.Millisecond
	looks     = 3
)

// watch kills an executor whose threads all sleep during a request, which kernels never do.
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

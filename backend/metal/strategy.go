package metal

// Plan is how replays are encoded.
type Plan uint8

// The plans.
const (
	// Concurrent: an encoder of concurrent dispatches, with the graph's barriers.
	Concurrent Plan = iota
	// Serial: an encoder that runs one dispatch after another, whatever the graph allows. What then
	// changes its results has a race.
	Serial
	// Parallel: several command buffers ([Options.Encoders]), encoded by as many threads, the first
	// of them committed at once.
	Parallel
	// Indirect: indirect command buffers that are encoded once, of which a replay executes a part
	// for each epoch, with barriers between.
	Indirect
	// IndirectBarriers: the same, with the barriers inside. Only for chips of which `mlxreplay
	// doctor` has found that such barriers hold for what comes after.
	IndirectBarriers
)

var plans = [...]string{"concurrent", "serial", "parallel", "indirect", "indirect-barriers"}

func (p Plan) String() string { return plans[p] }

func (p Plan) indirect() bool { return p == Indirect || p == IndirectBarriers }

// mostEncoders is how many command buffers are encoded side by side at most: more have never paid.
const mostEncoders = 8

// encoders is how many are.
func (d *Device) encoders() int {
	if d.options.Plan != Parallel {
		return 1
	}
	if d.options.Encoders == 0 {
		return 2
	}
	return d.options.Encoders
}

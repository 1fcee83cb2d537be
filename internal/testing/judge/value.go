package judge

// value is what one cell holds. A cell is a run of bytes that all commands touch only as
// a whole. A value is a hash of the term that computed it, so that equal computations
// have equal values, and different ones have different values, but for a chance of one
// in 2⁶² a pair. The lowest bit says that the term depends on undefined bytes that a
// command of known effects certainly reads.
type value uint64

const (
	none    value = 0 // no term has it
	tainted value = 1
)

// hash mixes x into h: the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
func hash(h, x uint64) uint64 {
	h ^= x
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return (h ^ h>>31) + 0x9e3779b97f4a7c15
}

// made returns a hash as a value.
func made(h uint64, taint value) value { return value(h)&^tainted | 2 | taint }

// The sorts of values that no command computed.
const (
	ofWeight = iota // cell is a byte
	ofRun           // a whole run of bytes of a weight: cell is its first byte, and replay its length
	ofInput
	ofState   // what it holds before the first replay
	undefined // what nothing has written in this replay
)

// leaf returns the value of a cell of the named memory that no command computed and, if
// that changes from replay to replay, in which replay.
func leaf(sort uint64, name value, cell int64, replay int) value {
	taint := none
	if sort == undefined {
		taint = tainted
	}
	return made(hash(hash(hash(uint64(name), sort), uint64(cell)), uint64(replay)), taint)
}

// ofText returns the value of known bytes, such as a name.
func ofText[T string | []byte](s T) value {
	h := uint64(len(s))
	for i := range len(s) {
		h = hash(h, uint64(s[i]))
	}
	return made(h, none)
}

// list returns the value of an ordered list of values under a name, such as the code of
// a command that reads them. If certain is set, the reads certainly happen, so that
// tainted values taint the result.
func list(name value, in []value, certain bool) value {
	h, taint := hash(uint64(name), uint64(len(in))), none
	for _, v := range in {
		h = hash(h, uint64(v))
		taint |= v & tainted
	}
	if !certain {
		taint = none
	}
	return made(h, taint)
}

// result returns the value of cell i of what a command computed from in. If the command
// must write the cell, old is none, else it is the former value of the cell. If certain
// is set, the effects of the command are known, so that a tainted old value taints the
// result.
func result(in value, i int, old value, certain bool) value {
	taint := in & tainted
	if certain {
		taint |= old & tainted
	}
	return made(hash(hash(uint64(in), uint64(i)), uint64(old)), taint)
}

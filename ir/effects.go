package ir

// Write is a region that a dispatch writes.
type Write struct {
	Region
	// Must says that every byte of the region is written, whatever the params and the
	// inputs. Without it some bytes may keep their old values, so that reads behind the
	// write may see either.
	Must bool
	// Atomic says that the bytes are written by atomic operations. They conflict with every
	// other access to the same bytes, also with other atomic ones.
	Atomic bool
}

// Effects are the bytes that a dispatch may touch. If they are nil or not Complete, they are
// unknown: the dispatch conflicts with every memory, and no command may be moved across it.
type Effects struct {
	Complete bool // the dispatch touches no other bytes
	Reads    []Region
	Writes   []Write
}

// Known reports whether e lists every byte that is touched. It is false for nil.
func (e *Effects) Known() bool { return e != nil && e.Complete }

// Equal reports whether e and o list the same expressions in the same order.
func (e *Effects) Equal(o *Effects) bool {
	if e == nil || o == nil {
		return e == o
	}
	if e.Complete != o.Complete || len(e.Reads) != len(o.Reads) || len(e.Writes) != len(o.Writes) {
		return false
	}
	for i := range e.Reads {
		if !e.Reads[i].Equal(o.Reads[i]) {
			return false
		}
	}
	for i, w := range e.Writes {
		x := o.Writes[i]
		if w.Must != x.Must || w.Atomic != x.Atomic || !w.Region.Equal(x.Region) {
			return false
		}
	}
	return true
}

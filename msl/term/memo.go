package term

// memo remembers the values of an abbreviation: a hash table with open
// addressing. Calls are the most frequent thing that terms do after loads, and a
// map would cost most of their time.
type memo struct {
	slots []memoSlot // their number is a power of two; at most half of them are used
	n     int
}

type memoSlot struct {
	key  [MaxParams]int64
	v    Value
	used bool
}

// slot returns the slot that holds a key, or the one where it would be put.
func (m *memo) slot(key [MaxParams]int64) *memoSlot {
	h := uint64(0)
	for _, k := range key {
		h = (h ^ uint64(k)) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	for mask := uint64(len(m.slots) - 1); ; h++ {
		if s := &m.slots[h&mask]; !s.used || s.key == key {
			return s
		}
	}
}

func (m *memo) get(key [MaxParams]int64) (Value, bool) {
	if m.n == 0 {
		return Value{}, false
	}
	s := m.slot(key)
	return s.v, s.used
}

// put stores the value of a key that has none yet.
func (m *memo) put(key [MaxParams]int64, v Value) {
	if 2*m.n >= len(m.slots) {
		old := m.slots
		m.slots = make([]memoSlot, max(16, 4*len(old)))
		for i := range old {
			if old[i].used {
				*m.slot(old[i].key) = old[i]
			}
		}
	}
	*m.slot(key) = memoSlot{key, v, true}
	m.n++
}

package bitcode

// The abbreviation numbers that have a fixed meaning, and the first that is defined in the file.
const (
	endBlock = iota
	enterSubblock
	defineAbbrev
	unabbrevRecord
	firstAbbrev
)

// blockInfo is the id of the block that defines abbreviations of other blocks.
const blockInfo = 0

// encoding is how an abbreviation writes one operand.
type encoding uint8

const (
	literal encoding = iota // the value itself, which takes no bits
	fixedWidth
	variableWidth
	array
	character
	blob
)

type part struct {
	encoding
	value uint64 // of a literal, or the width
}

type abbreviation []part

// block is a block that is being read.
type block struct {
	top   bool // the file itself, which consists of blocks
	id    uint64
	width uint   // bits of an abbreviation's number
	end   uint64 // position behind the block
	outer uint64 // the end of the enclosing block
	// Abbreviations that BLOCKINFO defines, and those that the block itself defines. The first list is shared, so
	// that nothing is copied when a block begins.
	given, own []abbreviation
}

// record is a record, which is valid until the next one is read.
type record struct {
	code  uint64
	ops   []uint64 // at most maxOperands
	count uint64   // how many operands the file has
	blob  []byte
	at    uint64 // position of blob in bytes
}

// stream is a sequence of blocks and records.
type stream struct {
	cursor
	info     map[uint64][]abbreviation
	abbrevs  int
	fetched  record // the record that next read
	entering struct {
		id    uint64
		width uint
		end   uint64
	}
}

// item is the kind of what comes next in a block.
type item uint8

const (
	blockEnds item = iota
	subblock
	isRecord
)

// next reads up to the next item of the block. After subblock the caller must call enter or skipBlock.
func (s *stream) next(b *block) item {
	for {
		if b.top && s.pos == b.end {
			return blockEnds
		}
		switch a := s.fixed(b.width); a {
		case endBlock:
			if b.top {
				s.fail("a block ends outside of every block")
			}
			s.align()
			if s.pos != b.end {
				s.fail("block %d ends here, its length says %d bytes further on", b.id, int64(b.end-s.pos)/8)
			}
			s.end = b.outer
			return blockEnds
		case enterSubblock:
			e := &s.entering
			e.id = s.vbr(8)
			e.width = uint(s.vbr(4))
			s.align()
			words := s.fixed(32)
			if e.width < 2 || e.width > 32 {
				s.fail("block %d has abbreviation numbers of %d bits", e.id, e.width)
			}
			if words*32 > s.left() {
				s.fail("block %d has %d bytes, %d are left", e.id, words*4, s.left()/8)
			}
			e.end = s.pos + words*32
			return subblock
		case defineAbbrev:
			b.own = append(b.own, s.abbreviation())
		default:
			if b.top {
				s.fail("a record stands outside of every block")
			}
			s.read(b, a)
			return isRecord
		}
	}
}

// enter begins the block that next has found, and returns it.
func (s *stream) enter() *block {
	e := &s.entering
	b := &block{id: e.id, width: e.width, end: e.end, outer: s.end, given: s.info[e.id]}
	s.end = e.end
	return b
}

// skipBlock skips the block that next has found.
func (s *stream) skipBlock() { s.pos = s.entering.end }

// abbreviation reads the definition of an abbreviation.
func (s *stream) abbreviation() abbreviation {
	if s.abbrevs++; s.abbrevs > maxAbbreviations {
		s.fail("there are more than %d abbreviations", maxAbbreviations)
	}
	n := s.vbr(5)
	if n == 0 || n > maxAbbrevParts {
		s.fail("an abbreviation has %d operands, 1 to %d are expected", n, maxAbbrevParts)
	}
	a := make(abbreviation, n)
	for i := range a {
		p := &a[i]
		if s.fixed(1) == 1 {
			p.value = s.vbr(8)
			continue
		}
		switch p.encoding = encoding(s.fixed(3)); p.encoding {
		case fixedWidth, variableWidth:
			p.value = s.vbr(5)
			switch {
			case p.value == 0:
				*p = part{} // no bits, always 0
			case p.encoding == fixedWidth && p.value > 64, p.encoding == variableWidth && (p.value < 2 || p.value > 32):
				s.fail("an operand of an abbreviation has %d bits", p.value)
			}
		case array:
			if i != len(a)-2 || i == 0 {
				s.fail("an array of an abbreviation is not its last operand but one, or is its first")
			}
		case character:
		case blob:
			if i != len(a)-1 || i == 0 || a[i-1].encoding == array {
				s.fail("a blob of an abbreviation is not its last operand, or is its first, or lies in an array")
			}
		default:
			s.fail("an operand of an abbreviation has the unknown encoding %d", p.encoding)
		}
	}
	// An array whose elements take no bits could be of any length.
	if n := len(a); n >= 2 && a[n-2].encoding == array && a[n-1].encoding == literal {
		s.fail("an array of an abbreviation has elements without bits")
	}
	return a
}

// read reads a record by the abbreviation with number a.
func (s *stream) read(b *block, a uint64) {
	r := &s.fetched
	*r = record{ops: r.ops[:0]}
	if a == unabbrevRecord {
		r.code = s.vbr(6)
		r.count = s.vbr(6)
		if r.count > s.left()/6 {
			s.fail("a record of %d operands has %d bits", r.count, s.left())
		}
		for range r.count {
			r.keep(s.vbr(6))
		}
		return
	}
	var parts abbreviation
	switch i := a - firstAbbrev; {
	case i < uint64(len(b.given)):
		parts = b.given[i]
	case i < uint64(len(b.given)+len(b.own)):
		parts = b.own[i-uint64(len(b.given))]
	default:
		s.fail("block %d has no abbreviation %d", b.id, a)
	}
	r.code = s.scalar(parts[0])
	for i := 1; i < len(parts); i++ {
		switch p := parts[i]; p.encoding {
		case array:
			s.array(parts[i+1])
			return
		case blob:
			n := s.vbr(6)
			s.align()
			if n > s.left()/8 {
				s.fail("a blob has %d bytes, %d are left", n, s.left()/8)
			}
			r.at = s.pos / 8
			r.blob = s.data[r.at : r.at+n : r.at+n]
			s.skip(n * 8)
			s.align()
			return
		default:
			r.count++
			r.keep(s.scalar(p))
		}
	}
}

func (s *stream) scalar(p part) uint64 {
	switch p.encoding {
	case fixedWidth:
		return s.fixed(uint(p.value))
	case variableWidth:
		return s.vbr(uint(p.value))
	case character:
		return uint64(char6[s.fixed(6)])
	}
	return p.value
}

func (s *stream) array(p part) {
	r := &s.fetched
	n := s.vbr(6)
	width := uint64(6)
	if p.encoding != character {
		width = p.value
	}
	if n > s.left()/width {
		s.fail("an array of %d elements has %d bits", n, s.left())
	}
	r.count += n
	for ; n > 0; n-- {
		if len(r.ops) == maxOperands && p.encoding != variableWidth {
			s.skip(n * width)
			return
		}
		r.keep(s.scalar(p))
	}
}

func (r *record) keep(v uint64) {
	if len(r.ops) < maxOperands {
		r.ops = append(r.ops, v)
	}
}

// readInfo reads a BLOCKINFO block.
func (s *stream) readInfo() {
	b := s.enter()
	const setBID = 1
	var of uint64
	known := false
	// Definitions belong to the block that was named last.
	take := func() {
		if len(b.own) == 0 {
			return
		}
		if !known {
			s.fail("BLOCKINFO defines abbreviations of no block")
		}
		s.info[of] = append(s.info[of], b.own...)
		b.own = nil
	}
	// The abbreviations that are defined here are not those of BLOCKINFO's own records.
	b.given = nil
	for {
		switch s.next(b) {
		case blockEnds:
			take()
			return
		case subblock:
			s.skipBlock()
		case isRecord:
			take()
			if r := &s.fetched; r.code == setBID {
				if len(r.ops) != 1 {
					s.fail("BLOCKINFO names a block with %d numbers", r.count)
				}
				of, known = r.ops[0], true
			}
		}
	}
}

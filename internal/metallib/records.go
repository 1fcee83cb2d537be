package metallib

import "encoding/binary"

// records is a position in a sequence of tagged records in the file.
type records struct {
	lib     *Library
	kernel  string // for errors
	at, end int64
}

var order = binary.LittleEndian

// next returns a record and the offset of its bytes. ok is false at the end of the records,
// which ENDT marks.
func (r *records) next() (tag string, payload []byte, at int64, ok bool, err error) {
	data := r.lib.data
	if r.end-r.at < 4 {
		return "", nil, 0, false, r.lib.errorf(r.at, r.kernel, "records end without ENDT")
	}
	tag = string(data[r.at : r.at+4])
	if tag == "ENDT" {
		r.at += 4
		return tag, nil, r.at, false, nil
	}
	if r.end-r.at < 6 {
		return "", nil, 0, false, r.lib.errorf(r.at, r.kernel, "record %q has no length", tag)
	}
	n := int64(order.Uint16(data[r.at+4:]))
	at = r.at + 6
	if n > r.end-at {
		return "", nil, 0, false, r.lib.errorf(r.at, r.kernel, "record %q has %d bytes, %d are left", tag, n, r.end-at)
	}
	r.at = at + n
	return tag, data[at : at+n], at, true, nil
}

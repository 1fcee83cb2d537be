package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mlxc/mlxc/internal/files/mmap"
)

// Magic begins every log.
const Magic = "MLXTRACE"

const (
	headerSize = 16
	version    = 1
	// maxSchema bounds the text of code 0, and maxFields the fields of an event.
	maxSchema, maxFields = 1 << 16, 64
	schemaCode           = 0
)

// Log is an open log.
type Log struct {
	Name string // for messages
	data []byte
	file *mmap.Map // nil: data is the caller's
	// Cut is how many bytes at the end belong to a record that was not finished.
	Cut int64
}

// Error says what is wrong with a log, and where.
type Error struct {
	File   string
	Offset int64
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, e.Reason) }

// Open opens the log at path. Log.Close must be called.
func Open(path string) (*Log, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	l, err := Read(path, m.Bytes())
	if err != nil {
		m.Close()
		return nil, err
	}
	l.file = m
	return l, nil
}

// Read is Open for bytes that are in memory, which must not change. name is for messages.
func Read(name string, data []byte) (*Log, error) {
	l := &Log{Name: name, data: data}
	if len(data) < headerSize || string(data[:8]) != Magic {
		return nil, l.fault(0, "is no log: it does not begin with %q", Magic)
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != version {
		return nil, l.fault(8, "is of version %d, this program reads version %d", v, version)
	}
	return l, nil
}

// Close unmaps the file.
func (l *Log) Close() error {
	l.data = nil
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

func (l *Log) fault(offset int, format string, args ...any) error {
	return &Error{l.Name, int64(offset), fmt.Sprintf(format, args...)}
}

// field is what a log says of a field: its place among those of the table, or -1 for one that does not matter.
type field struct {
	at   int
	kind byte
}

// shape is what a log says of an event.
type shape struct {
	kind   Kind
	ignore bool
	fields []field
}

// record is one event of a log. The fields are those of the table of [Events], in its order.
type record struct {
	kind    Kind
	offset  int // in the file
	numbers [maxFields]uint64
	texts   [maxFields][]byte
}

// n returns field i as a number, s and b as text and bytes.
func (r *record) n(i int) uint64 { return r.numbers[i] }
func (r *record) s(i int) string { return string(r.texts[i]) }
func (r *record) b(i int) []byte { return r.texts[i] }

// each calls do with every record, in order. What it gets is valid until it returns.
func (l *Log) each(do func(r *record) error) error {
	shapes := map[uint32]*shape{}
	var r record
	for at := headerSize; at < len(l.data); {
		rest := l.data[at:]
		if len(rest) < 8 {
			l.Cut = int64(len(rest))
			return nil
		}
		size, code := int64(binary.LittleEndian.Uint32(rest)), binary.LittleEndian.Uint32(rest[4:])
		if size > int64(len(rest))-8 {
			l.Cut = int64(len(rest))
			return nil
		}
		payload := rest[8 : 8+size]
		if code == schemaCode {
			if err := l.schema(at, payload, shapes); err != nil {
				return err
			}
		} else {
			s := shapes[code]
			if s == nil {
				return l.fault(at, "event %d is not described before it (code 0 does that)", code)
			}
			if !s.ignore {
				if err := l.read(&r, s, at, payload); err != nil {
					return err
				}
				if err := do(&r); err != nil {
					return err
				}
			}
		}
		at += int(8 + (size+7)&^7)
	}
	return nil
}

// schema reads what code 0 says of events.
func (l *Log) schema(at int, payload []byte, shapes map[uint32]*shape) error {
	if len(payload) > maxSchema || !utf8.Valid(payload) {
		return l.fault(at, "the description of events has %d bytes or is no UTF-8, want at most %d", len(payload), maxSchema)
	}
	for line := range strings.Lines(string(payload)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		code, err := strconv.ParseUint(words[0], 10, 32)
		if err != nil || code == schemaCode || len(words) < 2 || len(words) > maxFields {
			return l.fault(at, "the description of events has the line %.60q, want CODE NAME FIELD:TYPE…", line)
		}
		if shapes[uint32(code)] != nil {
			return l.fault(at, "code %d is described twice", code)
		}
		s := &shape{}
		shapes[uint32(code)] = s
		if strings.HasPrefix(words[1], "x-") {
			s.ignore = true
			continue
		}
		kind, ok := kindNamed(words[1])
		if !ok {
			return l.fault(at, "has the event %.40q, which this program does not know: a newer one may", words[1])
		}
		s.kind = kind
		want := Events[kind].Fields
		seen := make([]bool, len(want))
		for _, w := range words[2:] {
			name, typ, _ := strings.Cut(w, ":")
			if typ != "n" && typ != "s" && typ != "b" {
				return l.fault(at, "field %.40q of the event %s has the type %.10q, want n, s or b", name, words[1], typ)
			}
			f := field{-1, typ[0]}
			for i, x := range want {
				if x.Name == name {
					f.at = i
				}
			}
			switch {
			case f.at >= 0 && (seen[f.at] || want[f.at].Type != typ[0]):
				return l.fault(at, "field %s of the event %s is there twice, or is not of the type %c", name, words[1], want[f.at].Type)
			case f.at >= 0:
				seen[f.at] = true
			case !strings.HasPrefix(name, "x-"):
				return l.fault(at, "the event %s has the field %.40q, which this program does not know: a newer one may", words[1], name)
			}
			s.fields = append(s.fields, f)
		}
		for i, ok := range seen {
			if !ok && !want[i].Optional {
				return l.fault(at, "the event %s has no field %s", words[1], want[i].Name)
			}
		}
	}
	return nil
}

// read reads the fields of an event. Optional ones that are not there are zero.
func (l *Log) read(r *record, s *shape, at int, payload []byte) error {
	fields := Events[s.kind].Fields
	clear(r.numbers[:len(fields)])
	clear(r.texts[:len(fields)])
	r.kind, r.offset = s.kind, at
	rest := payload
	for _, f := range s.fields {
		n := 8
		if f.kind != 'n' {
			n = 4
		}
		if len(rest) < n {
			return l.fault(at, "event %s ends within its fields", Events[s.kind].Name)
		}
		if f.kind == 'n' {
			if f.at >= 0 {
				r.numbers[f.at] = binary.LittleEndian.Uint64(rest)
			}
			rest = rest[8:]
			continue
		}
		size := int64(binary.LittleEndian.Uint32(rest))
		if rest = rest[4:]; size > int64(len(rest)) {
			return l.fault(at, "a field of the event %s has %d bytes, the event has %d more", Events[s.kind].Name, size, len(rest))
		}
		text := rest[:size:size]
		if f.kind == 's' && !utf8.Valid(text) {
			return l.fault(at, "a text of the event %s is no UTF-8", Events[s.kind].Name)
		}
		if f.at >= 0 {
			r.texts[f.at] = text
		}
		rest = rest[size:]
	}
	if len(rest) != 0 {
		return l.fault(at, "the event %s has %d bytes behind its fields", Events[s.kind].Name, len(rest))
	}
	return nil
}

// Writer writes a log, for programs in Go.
type Writer struct {
	w   io.Writer
	err error
	buf []byte
}

// NewWriter begins a log with all events.
func NewWriter(w io.Writer) *Writer {
	out := &Writer{w: w}
	out.buf = binary.LittleEndian.AppendUint32([]byte(Magic), version)
	out.buf = binary.LittleEndian.AppendUint32(out.buf, 0)
	out.record(schemaCode, []byte(Schema()))
	return out
}

func (w *Writer) record(code uint32, payload []byte) {
	if w.err != nil {
		return
	}
	w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(len(payload)))
	w.buf = binary.LittleEndian.AppendUint32(w.buf, code)
	w.buf = append(w.buf, payload...)
	for len(w.buf)%8 != 0 {
		w.buf = append(w.buf, 0)
	}
	_, w.err = w.w.Write(w.buf)
	w.buf = w.buf[:0]
}

// Event writes an event. values are its fields in the order of [Events]: uint64, string or []byte.
func (w *Writer) Event(k Kind, values ...any) {
	fields := Events[k].Fields
	var p []byte
	for i, f := range fields {
		var v any
		if i < len(values) {
			v = values[i]
		}
		switch v := v.(type) {
		case uint64:
			p = binary.LittleEndian.AppendUint64(p, v)
		case string:
			p = append(binary.LittleEndian.AppendUint32(p, uint32(len(v))), v...)
		case []byte:
			p = append(binary.LittleEndian.AppendUint32(p, uint32(len(v))), v...)
		case nil:
			p = append(p, make([]byte, map[byte]int{'n': 8, 's': 4, 'b': 4}[f.Type])...)
		default:
			w.err = errors.Join(w.err, fmt.Errorf("trace: field %s of %s is a %T", f.Name, Events[k].Name, v))
		}
	}
	w.record(uint32(k), p)
}

// Err returns the first error.
func (w *Writer) Err() error { return w.err }

package cost

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// maxProfile bounds the size in bytes of a profile file.
const maxProfile = 16 << 20

// LoadProfile reads a measured profile, a JSON object; what it leaves out is
// that of its chip ([DefaultChip] if it names none):
//
//	{
//	  "chip": "m3-max",
//	  "bandwidth_gbs": 312, "arithmetic_gops": 6500, "cores": 40,
//	  "launch_ns": 1300, "concurrent_launch_ns": 500, "barrier_ns": 4500,
//	  "command_buffer_ns": 20000, "event_ns": 1250, "encode_ns": 160, "latency_ns": 0,
//	  "kernels": {"rmsfloat32": {"fixed_ns": 2000, "ns_per_byte": 0.004, "points": [[4096, 2100], [8388608, 31000]]}},
//	  "device": "Apple M3 Max",
//	  "litmus": {"fences": true, "indirect_barriers": false},
//	  "plans": {"concurrent": {"encode_ns": 160, "launch_ns": 500, "barrier_ns": 4500}}
//	}
//
// Bandwidth and arithmetic are what was attained. [Model.WriteProfile] writes one. Errors name the
// file, the byte offset and the field.
func LoadProfile(path string) (Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return Model{}, fmt.Errorf("profile: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProfile+1))
	if err != nil {
		return Model{}, fmt.Errorf("profile: %w", err)
	}
	if len(data) > maxProfile {
		return Model{}, fmt.Errorf("%s: profile has more than %d bytes", path, maxProfile)
	}
	return ParseProfile(path, data)
}

// ParseProfile is LoadProfile on bytes; name is for errors.
func ParseProfile(name string, data []byte) (Model, error) {
	p := &profileReader{d: json.NewDecoder(bytes.NewReader(data)), name: name, size: len(data)}
	return p.model()
}

// figure is a number of a profile.
type figure struct {
	name  string
	unit  float64
	least float64
	of    func(*Model) *float64
}

// figures are the numbers of a profile, except cores and kernels, in the order in which they are written.
var figures = [...]figure{
	{"bandwidth_gbs", 1e9, 1e-3, func(m *Model) *float64 { return &m.Bandwidth }},
	{"arithmetic_gops", 1e9, 1e-3, func(m *Model) *float64 { return &m.Rate }},
	{"launch_ns", ns, 0, func(m *Model) *float64 { return (*float64)(&m.Launch) }},
	{"concurrent_launch_ns", ns, 0, func(m *Model) *float64 { return (*float64)(&m.ConcurrentLaunch) }},
	{"barrier_ns", ns, 0, func(m *Model) *float64 { return (*float64)(&m.Barrier) }},
	{"command_buffer_ns", ns, 0, func(m *Model) *float64 { return (*float64)(&m.CommandBuffer) }},
	{"event_ns", ns, 0, func(m *Model) *float64 { return (*float64)(&m.Event) }},
	{"encode_ns", ns, 0, func(m *Model) *float64 { return (*float64)(&m.Encode) }},
	{"latency_ns", ns, 0, func(m *Model) *float64 { return (*float64)(&m.Latency) }},
}

const ns = 1e-9

type profileReader struct {
	d    *json.Decoder
	name string
	size int
}

func (p *profileReader) fail(at int64, format string, args ...any) error {
	return fmt.Errorf("%s: byte %d: %s", p.name, at, fmt.Sprintf(format, args...))
}

// token returns the next token and the offset behind it.
func (p *profileReader) token() (json.Token, int64, error) {
	t, err := p.d.Token()
	at := p.d.InputOffset()
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, at, p.fail(int64(p.size), "the profile ends too soon: it is one JSON object")
	}
	if err != nil {
		if s, ok := err.(*json.SyntaxError); ok {
			at = s.Offset
		}
		return nil, at, p.fail(at, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return t, at, nil
}

// object reads a JSON object and calls field with each key, whose value field must read.
func (p *profileReader) object(what string, field func(key string, at int64) error) error {
	t, at, err := p.token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return p.fail(at, "%s is %v, want an object", what, t)
	}
	seen := map[string]bool{}
	for p.d.More() {
		t, at, err := p.token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return p.fail(at, "%s: %v is no name", what, t)
		}
		if seen[key] {
			return p.fail(at, "%s has %q twice", what, key)
		}
		seen[key] = true
		if err := field(key, at); err != nil {
			return err
		}
	}
	_, _, err = p.token() // the closing brace
	return err
}

func (p *profileReader) number(key string, least float64) (float64, error) {
	t, at, err := p.token()
	if err != nil {
		return 0, err
	}
	v, ok := t.(float64)
	if !ok || v < least || math.IsInf(v, 0) || v > 1e18 {
		return 0, p.fail(at, "%q is %v, want a number from %g on", key, t, least)
	}
	return v, nil
}

func (p *profileReader) model() (Model, error) {
	chip, kernels, cores := "", map[string]Kernel{}, 0
	device, litmus, plans := "", Litmus{}, map[string]PlanTimes{}
	set := map[*figure]float64{}
	err := p.object("the profile", func(key string, at int64) error {
		for i := range figures {
			if f := &figures[i]; f.name == key {
				v, err := p.number(key, f.least)
				set[f] = v
				return err
			}
		}
		switch key {
		case "chip":
			s, err := p.text(key)
			if err != nil {
				return err
			}
			if _, err := Chip(s); err != nil {
				return p.fail(p.d.InputOffset(), "%v", err)
			}
			chip = s
		case "kernels":
			return p.object(`"kernels"`, func(function string, _ int64) (err error) {
				kernels[function], err = p.kernel(function)
				return err
			})
		case "device":
			s, err := p.text(key)
			device = s
			return err
		case "litmus":
			return p.litmus(&litmus)
		case "plans":
			return p.object(`"plans"`, func(name string, _ int64) (err error) {
				plans[name], err = p.plan(name)
				return err
			})
		case "cores":
			v, err := p.number(key, 1)
			if err == nil && v != math.Trunc(v) || v > 1<<20 {
				return p.fail(p.d.InputOffset(), `"cores" is %g, want a whole number up to %d`, v, 1<<20)
			}
			cores = int(v)
			return err
		default:
			return p.fail(at, "a profile has no field %q", key)
		}
		return nil
	})
	if err != nil {
		return Model{}, err
	}
	if _, err := p.d.Token(); err != io.EOF {
		return Model{}, p.fail(p.d.InputOffset(), "something stands behind the profile")
	}
	m, err := Chip(chip)
	if err != nil {
		return Model{}, err
	}
	m.Name, m.Kernels = p.name, kernels
	m.Device, m.Litmus, m.Plans = device, litmus, plans // the base chip's are not those of this device
	for f, v := range set {
		*f.of(&m) = v * f.unit
	}
	if cores > 0 {
		m.Cores = cores
	}
	return m, nil
}

func (p *profileReader) text(key string) (string, error) {
	t, at, err := p.token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", p.fail(at, "%q is %v, want a name", key, t)
	}
	return s, nil
}

// litmusFields and planFields are the fields of those objects, in the order in which they are written.
var litmusFields = [...]struct {
	name string
	of   func(*Litmus) *bool
}{
	{"fences", func(l *Litmus) *bool { return &l.Fences }},
	{"indirect_barriers", func(l *Litmus) *bool { return &l.IndirectBarriers }},
}

var planFields = [...]struct {
	name string
	of   func(*PlanTimes) *Seconds
}{
	{"encode_ns", func(t *PlanTimes) *Seconds { return &t.Encode }},
	{"launch_ns", func(t *PlanTimes) *Seconds { return &t.Launch }},
	{"barrier_ns", func(t *PlanTimes) *Seconds { return &t.Barrier }},
	{"replay_ns", func(t *PlanTimes) *Seconds { return &t.Replay }},
}

func (p *profileReader) litmus(l *Litmus) error {
	return p.object(`"litmus"`, func(key string, at int64) error {
		for _, f := range litmusFields {
			if f.name != key {
				continue
			}
			t, at, err := p.token()
			if err != nil {
				return err
			}
			b, ok := t.(bool)
			if !ok {
				return p.fail(at, "%q is %v, want true or false", key, t)
			}
			*f.of(l) = b
			return nil
		}
		return p.fail(at, `"litmus" has no field %q, but fences and indirect_barriers`, key)
	})
}

func (p *profileReader) plan(name string) (t PlanTimes, err error) {
	err = p.object(fmt.Sprintf("plan %q", name), func(key string, at int64) error {
		for _, f := range planFields {
			if f.name == key {
				v, err := p.number(key, 0)
				*f.of(&t) = Seconds(v * ns)
				return err
			}
		}
		return p.fail(at, "plan %q has no field %q, but encode_ns, launch_ns, barrier_ns and replay_ns", name, key)
	})
	return t, err
}

func (p *profileReader) kernel(function string) (Kernel, error) {
	var k Kernel
	err := p.object(fmt.Sprintf("kernel %q", function), func(key string, at int64) error {
		to := &k.Fixed
		switch key {
		case "fixed_ns":
		case "ns_per_byte":
			to = &k.PerByte
		case "points":
			var err error
			k.Points, err = p.points(function)
			return err
		default:
			return p.fail(at, "kernel %q has no field %q, but fixed_ns, ns_per_byte and points", function, key)
		}
		v, err := p.number(key, 0)
		*to = Seconds(v * ns)
		return err
	})
	return k, err
}

// points reads the points of a kernel: pairs of bytes and nanoseconds, fewer bytes first.
func (p *profileReader) points(function string) (out []Point, err error) {
	list := func(each func() error) error {
		if t, at, err := p.token(); err != nil || t != json.Delim('[') {
			return cmp.Or(err, p.fail(at, "points of kernel %q: %v, want lists of two numbers in a list", function, t))
		}
		for p.d.More() {
			if err := each(); err != nil {
				return err
			}
		}
		_, _, err := p.token()
		return err
	}
	err = list(func() error {
		var v []float64
		if err := list(func() error {
			n, err := p.number("points", 0)
			v = append(v, n)
			return err
		}); err != nil {
			return err
		}
		if at := p.d.InputOffset(); len(v) != 2 {
			return p.fail(at, "points of kernel %q: a list of %d numbers, want bytes and nanoseconds", function, len(v))
		} else if n := len(out); n > 0 && v[0] <= out[n-1].Bytes {
			return p.fail(at, "points of kernel %q: %g bytes behind %g, want more", function, v[0], out[n-1].Bytes)
		} else if n == mostSizes {
			return p.fail(at, "points of kernel %q: more than %d", function, mostSizes)
		}
		out = append(out, Point{v[0], Seconds(v[1] * ns)})
		return nil
	})
	return out, err
}

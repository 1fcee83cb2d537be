package backend

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlxc/mlxc/cost"
)

// Option is something that can be set of a device.
type Option struct {
	Name    string
	Type    OptionType
	Help    string
	Default string // what holds if it is not set, in words
	Flag    string // the flag of the commands that sets it too, as "--metal-plan"; "": there is none

	Choices  []string // of a Choice
	Min, Max int      // of a Count
	Contents string   // what is in a File, for errors: "the library"
}

// OptionType is what values an option takes.
type OptionType uint8

// The types.
const (
	Text     OptionType = iota
	Switch              // true or false; without a value it is true
	Count               // a whole number from Min to Max
	Bytes               // a number of bytes of at least 1, with a unit: see [ParseBytes]
	Duration            // more than 0, as [time.ParseDuration] reads it
	File                // the path of a file that is read
	Choice              // one of Choices
)

// String is the type for people.
func (t OptionType) String() string {
	return [...]string{"text", "switch", "number", "size", "time", "file", "choice"}[t]
}

// Takes says which values the option takes.
func (o *Option) Takes() string {
	switch o.Type {
	case Count:
		return fmt.Sprintf("%d to %d", o.Min, o.Max)
	case Choice:
		return strings.Join(o.Choices, ", ")
	}
	return o.Type.String()
}

// value reads the value of an option.
func (o *Option) value(g Given) (v any, err error) {
	switch o.Type {
	case Switch:
		if g.Value == "" {
			return true, nil
		}
		if v, err = strconv.ParseBool(g.Value); err != nil {
			return nil, fmt.Errorf("%s is %q, want true or false", g.As, g.Value)
		}
		return v, nil
	case Count:
		n, err := strconv.Atoi(g.Value)
		if err != nil || n < o.Min || n > o.Max {
			return nil, fmt.Errorf("%s is %s, want %d to %d", g.As, g.Value, o.Min, o.Max)
		}
		return n, nil
	case Bytes:
		if v, err = ParseBytes(g.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", g.As, err)
		}
		return v, nil
	case Duration:
		d, err := time.ParseDuration(g.Value)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("%s is %s, want a time of more than 0, as 90s or 1h", g.As, g.Value)
		}
		return d, nil
	case Choice:
		if !slices.Contains(o.Choices, g.Value) {
			return nil, fmt.Errorf("%s is %q, want one of %s", g.As, g.Value, strings.Join(o.Choices, ", "))
		}
	}
	if g.Value == "" {
		return nil, fmt.Errorf("%s has no value", g.As)
	}
	return g.Value, nil
}

// ParseBytes parses a number of bytes with an optional unit.
func ParseBytes(s string) (int64, error) {
	digits := strings.TrimRight(s, "KMGTiB")
	units := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
	unit, ok := units[s[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 1 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size (want bytes, or KiB, MiB, GiB, TiB, as 8GiB)", s)
	}
	return n * unit, nil
}

// FormatBytes formats a number of bytes in a unit that suits them.
func FormatBytes(n int64) string {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.bytes {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func (d *Driver) option(name string) *Option {
	i := slices.IndexFunc(d.Options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Options[i]
}

// unknown is the error for an option that does not exist.
func (d *Driver) unknown(name string) error {
	var all []string
	for _, o := range d.Options {
		all = append(all, o.Name)
	}
	return fmt.Errorf("device %s has no option %q (it has %s)", d.Name, name, strings.Join(all, ", "))
}

// get returns the value of an option; the zero value if it is not given. It panics if the driver has no such option of
// that type, which is a mistake of the program.
func get[T any](s Settings, name string) (v T) {
	if s.driver != nil && s.driver.option(name) == nil {
		panic(s.driver.unknown(name))
	}
	if x, ok := s.values[name]; ok {
		return x.(T)
	}
	return v
}

// Text returns the value of a Text, File or Choice.
func (s Settings) Text(option string) string { return get[string](s, option) }

// On returns the value of a Switch.
func (s Settings) On(option string) bool { return get[bool](s, option) }

// Count returns the value of a Count.
func (s Settings) Count(option string) int { return get[int](s, option) }

// Bytes returns the value of a Bytes.
func (s Settings) Bytes(option string) int64 { return get[int64](s, option) }

// Duration returns the value of a Duration.
func (s Settings) Duration(option string) time.Duration { return get[time.Duration](s, option) }

// Index returns the place of the value of a Choice among the choices, that of fallback if it is not given.
func (s Settings) Index(option, fallback string) int {
	v := s.Text(option)
	if v == "" {
		v = fallback
	}
	return slices.Index(s.driver.option(option).Choices, v)
}

// Profile loads the profile that a File names. If it is not given, the result is Measured.
func (s Settings) Profile(option string) (*cost.Model, error) {
	path := s.Text(option)
	if path == "" {
		return s.Measured, nil
	}
	m, err := cost.LoadProfile(path)
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// Given reports whether an option was given.
func (s Settings) Given(option string) bool { return s.given[option] != "" }

// Named is how an option was given or, if it was not, how it can be, for errors.
func (s Settings) Named(option string) string {
	if as := s.given[option]; as != "" {
		return as
	}
	if o := s.driver.option(option); o.Flag != "" {
		return o.Flag
	}
	return "--device " + s.driver.Name + ":" + option
}

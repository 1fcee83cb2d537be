package backend

import (
	"context"
	"errors"
	"io"

	"github.com/mlxc/mlxc/cost"
)

// Driver lists and opens the devices of one kind. A backend exports one, and programs have a table of them: they know
// a kind of device by what is said here alone.
type Driver struct {
	// Name is that of the devices: "cuda". What says in a few words what they are, for help texts.
	Name, What string
	// Missing says why this program cannot drive such devices; nil: it can. A driver that has it has nothing else but
	// Name, What, GPU and Instead.
	Missing error
	// Instead says what to do where no such device can be opened: "use --device cpu".
	Instead string
	// GPU: a program that may choose takes such a device rather than the CPU.
	GPU bool
	// Options are what can be set of a device.
	Options []Option
	// Check, if not nil, returns an error if settings do not fit one another.
	Check func(s Settings) error
	// Open opens a device.
	Open func(ctx context.Context, s Settings) (Closer, error)
	// List returns the devices of this machine, of which there is at least one if there is no error. It is nil if
	// there is only one, which is always there.
	List func() ([]Found, error)
	// Variants are the ways to run replays that are measured and tested one by one, the usual one first.
	Variants []Variant
	// Learn: devices choose among their variants by measured times, which are measured once for each GPU and kept. Such
	// a driver has the options "gpu" and "profile".
	Learn bool
}

// Closer is a device that can be closed. The device must not be used after that, nor what it has made.
type Closer interface {
	Device
	io.Closer
}

// Found is a device of this machine.
type Found struct {
	Name             string // of the chip
	Text             string // a line that describes it
	Default          bool   // it is opened if nothing is said
	ThreadgroupBytes int    // 0: that of [Info]
	Facts            any    // a struct for JSON
}

// Variant is a way to run replays.
type Variant struct {
	Name string
	Set  []Given // the settings that choose it
	// Launched: commands are launches that run one after another on the device, without barriers (CUDA).
	// Edges: commands that the edges of a graph do not order overlap.
	Launched, Edges bool
}

// Counted is a Device that counts what it does.
type Counted interface {
	// Counts returns the counts as half a line for people, and by their names for programs.
	Counts() (text string, byName map[string]any)
}

// Settings are the values of a driver's options. The zero value has none.
type Settings struct {
	driver *Driver
	values map[string]any    // by option; those that were given
	given  map[string]string // how they were given
	// Measured is what was measured of the device, if no profile is given; nil: nothing.
	Measured *cost.Model
	// Warn, if not nil, is told what is done in another way than was asked for.
	Warn func(text string)
}

// Given is an option that somebody has set.
type Given struct {
	Option, Value string
	As            string // how it was given, for errors: "--metal-plan"; "": as in --device NAME:OPTION=VALUE
}

// With returns the settings of a driver from given options, and an error if one is unknown, is given twice or has a
// value that its option does not take.
func (d *Driver) With(given ...Given) (Settings, error) {
	s := Settings{driver: d, values: map[string]any{}, given: map[string]string{}}
	for _, g := range given {
		o := d.option(g.Option)
		if o == nil {
			return s, d.unknown(g.Option)
		}
		if g.As == "" {
			g.As = "--device " + d.Name + ":" + g.Option
		}
		if before, twice := s.given[g.Option]; twice {
			return s, errors.New(before + " and " + g.As + " are two ways to say the same: give one of them")
		}
		v, err := o.value(g)
		if err != nil {
			return s, err
		}
		s.values[g.Option], s.given[g.Option] = v, g.As
	}
	if d.Check == nil {
		return s, nil
	}
	return s, d.Check(s)
}

// FlagOption returns the option that a flag of the commands sets; nil if there is none.
func (d *Driver) FlagOption(flag string) *Option {
	for i := range d.Options {
		if d.Options[i].Flag == flag {
			return &d.Options[i]
		}
	}
	return nil
}

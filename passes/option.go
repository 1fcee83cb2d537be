package passes

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/msl/term"
)

// Option describes an option of a pass for people.
type Option struct {
	Name    string
	Default string
	Help    string
}

// Setting declares an option of a pass: its name, type, default, bounds and help, and the field of
// O, the struct of the pass's options, that holds it. [Int], [Bool], [Parsed] and [Modelled] make
// settings.
type Setting[O any] struct {
	options []Option
	read    func(to *O, from *source) error
}

// source is where the options of one step come from.
type source struct {
	values Values   // of the step
	run    *Options // of the whole pipeline
	allow  []string // names of the rewrites that the step may use
}

// Parsed declares an option whose texts, the default included, are read by parse. An error of parse
// says what was expected: "want a power of two".
func Parsed[O, T any](name, def, help string, parse func(text string) (T, error), field func(*O) *T) Setting[O] {
	return Setting[O]{[]Option{{name, def, help}}, func(to *O, from *source) (err error) {
		*field(to), err = read(name, def, parse, from)
		return err
	}}
}

func read[T any](name, def string, parse func(string) (T, error), from *source) (T, error) {
	text, ok := from.values[name]
	if !ok {
		text = def
	}
	v, err := parse(text)
	if err != nil {
		err = fmt.Errorf("%s=%s: %w", name, text, err)
	}
	return v, err
}

// Int declares an option that is a whole number in [least, most].
func Int[O any](name string, def, least, most int, help string, field func(*O) *int) Setting[O] {
	return Parsed(name, strconv.Itoa(def), help, within(least, most), field)
}

func within(least, most int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		switch {
		case err == nil && n >= least && n <= most:
			return n, nil
		case most == math.MaxInt32:
			return 0, fmt.Errorf("want a number from %d on", least)
		}
		return 0, fmt.Errorf("want a number from %d to %d", least, most)
	}
}

// Bool declares an option that is a bool.
func Bool[O any](name string, def bool, help string, field func(*O) *bool) Setting[O] {
	return Parsed(name, strconv.FormatBool(def), help, func(s string) (bool, error) {
		b, err := strconv.ParseBool(s)
		if err != nil {
			return b, errors.New("want true or false")
		}
		return b, nil
	}, field)
}

// Modelled declares the options chip and profile of a pass that compares times. The field gets the
// model of the profile if there is one, else that of the chip. A step that sets neither uses the
// model of the run ([Options.Model]).
func Modelled[O any](chip, help string, field func(*O) *cost.Model) Setting[O] {
	const none = "none"
	return Setting[O]{[]Option{{"chip", chip, help}, {"profile", none, "a file of measured figures, which replace the chip's"}}, func(to *O, from *source) (err error) {
		m := field(to)
		if from.values["chip"] == "" && from.values["profile"] == "" && from.run.Model.Bandwidth > 0 {
			*m = from.run.Model
			return nil
		}
		if *m, err = read("chip", chip, cost.Chip, from); err != nil {
			return err
		}
		if p := from.values["profile"]; p != "" && p != none {
			*m, err = cost.LoadProfile(p)
		}
		return err
	}}
}

// chipHelp lists the chips.
var chipHelp = func() string {
	all := cost.Chips()
	return fmt.Sprintf("the chip whose figures are modelled: %s to %s, or %s", all[0], all[len(all)-2], all[len(all)-1])
}()

// allowing declares the option allow: the rewrites that may change bits and that the step may use.
// A step that does not set it may use those of the run.
func allowing[O any](field func(*O) *[]string) Setting[O] {
	const none = "none"
	o := Option{"allow", none, "rewrites that may change bits and may be used, joined by + (docs/terms.md)"}
	return Setting[O]{[]Option{o}, func(to *O, from *source) (err error) {
		names := from.run.Allow
		if text, ok := from.values[o.Name]; ok {
			if names = nil; text != none {
				names = strings.Split(text, "+")
			}
		}
		if err := term.CheckAllowed(names); err != nil {
			return fmt.Errorf("%s=%s: %w", o.Name, strings.Join(names, "+"), err)
		}
		*field(to), from.allow = names, slices.Concat(from.allow, names)
		return nil
	}}
}

package mlxreplay

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
)

// samplingFlags say how tokens are chosen, and where a text ends.
type samplingFlags struct {
	Temp          float64  `default:"0" help:"Temperature; 0 takes the most likely token."`
	TopP          float64  `default:"1" help:"Sample from the most likely tokens of this total probability."`
	TopK          int      `default:"0" placeholder:"K" help:"Sample from the K most likely tokens; 0: from all. With --top-k, --min-p or --repeat-penalty the host chooses tokens as llama.cpp does: penalty, top-k, top-p, min-p, and the temperature last; without them --top-p is of the probabilities at the temperature."`
	MinP          float64  `default:"0" help:"Sample from tokens that have at least this share of the most likely one's probability."`
	RepeatPenalty float64  `default:"1" help:"Make tokens that were there before less likely: divide positive logits by this, multiply others; 1: do not."`
	RepeatLast    last     `default:"64" placeholder:"N" help:"How many of the last tokens, of prompt and answer, --repeat-penalty looks at; all, or -1: at all of them."`
	Seed          uint64   `default:"0" help:"Seed of the sampler: with the position it alone decides the random number."`
	Stop          []string `sep:"none" placeholder:"STRING" help:"End the text before this string. Repeatable."`
}

// last is a number of last tokens; -1 is all of them.
type last int

// Decode implements kong's MapperValue. The usual mapper of numbers takes a -1 for another flag.
func (l *last) Decode(ctx *kong.DecodeContext) error {
	token := ctx.Scan.Pop()
	given := token.String()
	n, err := strconv.Atoi(given)
	switch {
	case token.IsEOL():
		return errors.New("a value is missing")
	case given == "all":
		n = -1
	case err != nil && strings.HasPrefix(given, "-"):
		return fmt.Errorf("a value is missing (%q looks like another flag)", given)
	case err != nil || n < -1:
		return fmt.Errorf("%q is no number of tokens: want 0 or more, or all (-1)", given)
	}
	*l = last(n)
	return nil
}

// options checks the flags, and returns them as options for n tokens.
func (f *samplingFlags) options(n, burst int) (o textgen.Options, err error) {
	switch {
	case n < 1:
		return o, cli.BadUsage("-n is %d, want at least 1", n)
	case !(f.Temp >= 0) || math.IsInf(f.Temp, 0):
		return o, cli.BadUsage("--temp is %v, want 0 or more", f.Temp)
	case !(f.TopP > 0 && f.TopP <= 1):
		return o, cli.BadUsage("--top-p is %v, want more than 0 and at most 1", f.TopP)
	case f.TopK < 0:
		return o, cli.BadUsage("--top-k is %d, want 0 or more", f.TopK)
	case !(f.MinP >= 0 && f.MinP <= 1):
		return o, cli.BadUsage("--min-p is %v, want 0 to 1", f.MinP)
	case !(float32(f.RepeatPenalty) > 0) || math.IsInf(float64(float32(f.RepeatPenalty)), 0):
		return o, cli.BadUsage("--repeat-penalty is %v, want more than 0", f.RepeatPenalty)
	}
	for _, s := range f.Stop {
		if s == "" || !utf8.ValidString(s) {
			return o, cli.BadUsage("--stop %s: want a text that is not empty, in UTF-8", cli.Quote(s))
		}
	}
	o = textgen.Options{
		N: n, Temp: f.Temp, TopP: f.TopP, TopK: f.TopK, MinP: f.MinP, Penalty: f.RepeatPenalty, PenaltyLast: int(f.RepeatLast), Seed: f.Seed, Burst: burst,
	}
	if burst > 1 && o.OnHost() {
		return o, cli.BadUsage("--burst %d with --top-k, --min-p or --repeat-penalty: these need the host after each token", burst)
	}
	return o, nil
}

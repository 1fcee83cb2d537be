package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
)

// Report is the result of an examination.
type Report struct {
	Program string         `json:"program"`
	Device  string         `json:"device"`
	Name    string         `json:"name"` // of the chip, as the device describes itself
	Facts   []backend.Fact `json:"facts"`
	Quick   bool           `json:"quick"`
	// Stuck: a test did not end, and may still use the device.
	Stuck bool `json:"stuck"`

	// Failures are the things that are wrong; the exit code is 1 if there are any.
	Failures []Failure `json:"failures"`
	// Unsupported are the parts that could not be examined, with what to do about it.
	Unsupported []Failure `json:"unsupported"`

	Litmus   []verdict.Result `json:"litmus"`
	Numerics []Numeric        `json:"numerics"`
	// Shown has the deviations from IEEE 754 that were seen, Claims those that the device says it may have.
	Shown   backend.Numerics `json:"numerics_shown"`
	Claims  backend.Numerics `json:"numerics_claimed"`
	SimdSum string           `json:"simd_sum,omitempty"`
	// Kernels and Conformance count the tests of package conformance: those of kernels, and the others.
	Kernels     Tally       `json:"kernels"`
	Conformance Tally       `json:"conformance"`
	Times       []PlanTimes `json:"times"`
	// Launched: the times are those of launches that follow one another (Launched of [Plan]).
	Launched  bool          `json:"launched"`
	Bandwidth *Distribution `json:"bandwidth_gbs,omitempty"`
}

// Failure is something that is wrong: the part of the examination, the test, what was seen and what to do next.
type Failure struct {
	Part string `json:"part"`
	What string `json:"what"`
	Saw  string `json:"saw"`
	Next string `json:"next"`
}

// Tally counts tests.
type Tally struct {
	Passed      int `json:"passed"`
	Failed      int `json:"failed"`
	Unsupported int `json:"unsupported"`
}

// Distribution has the median and range of a quantity that was measured several times.
type Distribution struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// PlanTimes are the times of a plan, a way to encode, in nanoseconds.
type PlanTimes struct {
	Plan          string       `json:"plan"`
	Encode        Distribution `json:"encode_ns"`         // to encode a dispatch, on the host
	Launch        Distribution `json:"launch_ns"`         // a dispatch among others, without barriers
	Alone         Distribution `json:"alone_ns"`          // a dispatch after a barrier, including the barrier
	Barrier       Distribution `json:"barrier_ns"`        // the time that a barrier adds to a dispatch
	CommandBuffer Distribution `json:"command_buffer_ns"` // the time that one more command buffer adds
}

// next tells users what to do about a failure.
const next = "send the report (docs/metal.md says how)"

// OK reports whether nothing has failed.
func (r *Report) OK() bool { return len(r.Failures) == 0 }

// WriteText writes the report as text for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	head := func(s string) { p("\n%s\n%s", s, strings.Repeat("-", len([]rune(s)))) }
	p("%s doctor: %s, %s", r.Program, r.Device, r.Name)
	for _, f := range r.Facts {
		p("  %-24s %s", f.Name, f.Value)
	}
	if len(r.Litmus) > 0 {
		head("Orders (wrong of runs with the order; and without it)")
		for _, x := range r.Litmus {
			without := ""
			if x.Without != nil {
				without = fmt.Sprintf("; %d of %d", x.Without.Wrong, x.Without.Trials)
			}
			p("  %-11s %-24s %d of %d%s", x.Verdict, x.Name, x.With.Wrong, x.With.Trials, without)
			if x.Verdict != verdict.Passed {
				p("              %s", x.Says)
				p("              needed by: %s", x.For)
				if x.Detail != "" {
					p("              %s", x.Detail)
				}
				if x.Next != "" {
					p("              next: %s", x.Next)
				}
			}
		}
	}
	if len(r.Numerics) > 0 {
		head("Numbers")
		counts := map[string]int{}
		for _, n := range r.Numerics {
			counts[n.Is]++
		}
		for _, is := range []string{isExact, isNear, isFlushed, isNaN, isOnce, isWrong} {
			if counts[is] > 0 {
				p("  %4d  %s", counts[is], is)
			}
		}
		for _, n := range r.Numerics {
			if n.Is != isExact && n.Is != isNear {
				p("  %-40s %s gives %s, not %s: %s", n.Name, n.In, n.Got, n.Want, n.Is)
			}
		}
		p("  simd_sum: %s", r.SimdSum)
		p("  seen:     %s", numericsText(r.Shown))
		p("  may be:   %s", numericsText(r.Claims))
	}
	if n := r.Kernels; n != (Tally{}) || r.Conformance != (Tally{}) {
		head("Kernels and conformance")
		p("  kernels:     %d passed, %d failed, %d not supported", n.Passed, n.Failed, n.Unsupported)
		n = r.Conformance
		p("  conformance: %d passed, %d failed, %d not supported", n.Passed, n.Failed, n.Unsupported)
	}
	if len(r.Times) > 0 {
		head("Times, ns: median [min–max]")
		for _, t := range r.Times {
			p("  plan %s", t.Plan)
			if r.Launched {
				p("    launch, host        %v", t.Encode)
				p("    behind another      %v", t.Launch)
				if t.Barrier.Max > 0 {
					p("    fork, beside that   %v", t.Barrier)
				}
				continue
			}
			p("    encode a dispatch   %v", t.Encode)
			p("    launch, beside      %v", t.Launch)
			p("    launch, alone       %v", t.Alone)
			p("    barrier             %v", t.Barrier)
			p("    command buffer      %v", t.CommandBuffer)
		}
	}
	if r.Bandwidth != nil {
		p("  bandwidth of a copy   %v GB/s", *r.Bandwidth)
	}
	list := func(title string, all []Failure) {
		if len(all) == 0 {
			return
		}
		head(title)
		for _, f := range all {
			p("  %s: %s", f.Part, f.What)
			for _, line := range strings.Split(f.Saw, "\n") {
				p("      %s", line)
			}
			p("      next: %s", f.Next)
		}
	}
	list("Not examined", r.Unsupported)
	list(fmt.Sprintf("Failures: %d", len(r.Failures)), r.Failures)
	if r.OK() {
		p("\nNothing has failed.")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d Distribution) String() string {
	return fmt.Sprintf("%.4g [%.4g–%.4g]", d.Median, d.Min, d.Max)
}

func numericsText(n backend.Numerics) string {
	var out []string
	if n.FlushesDenormals {
		out = append(out, "denormals count as zero")
	}
	if n.Contracts {
		out = append(out, "a·b + c is rounded once")
	}
	if n.ManyNaNs {
		out = append(out, "NaNs of any bits")
	}
	if len(out) == 0 {
		return "IEEE 754 to the bit"
	}
	return strings.Join(out, ", ")
}

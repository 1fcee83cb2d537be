package optimize

import (
	"context"
	"errors"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// Options are the settings of a run.
type Options struct {
	Pipeline passes.Pipeline
	// Passes are the options of each pass. Their Model is used for the figures too, where the zero
	// value stands for the default chip.
	Passes passes.Options
	Proof  prove.Options
	// Progress, if not nil, is called with the number of finished passes of the pipeline.
	Progress func(done int)
}

// Row is what one pass of the pipeline did.
type Row struct {
	*passes.Report
	After Figures `json:"after"`
	// Undone says why the pass was undone. It is empty if the pass was not undone; otherwise the
	// report is empty.
	Undone string `json:"undone,omitempty"`
}

// Result is the outcome for one graph.
type Result struct {
	Graph      string        `json:"graph"`
	Model      string        `json:"model"` // the chip or profile of modelled times
	ModelledAt []ParamValue  `json:"modelled_at"`
	Before     Figures       `json:"before"`
	After      Figures       `json:"after"`
	Rows       []Row         `json:"passes"`
	Fused      []Fused       `json:"fused"` // which dispatches were fused, by operations
	Proof      *prove.Result `json:"proof"`

	// Optimized is the rewritten graph; nil unless Proof.Verdict is [prove.Proved].
	Optimized *ir.Graph `json:"-"`
	// OfRecording is the verdict of proving the recording equal to itself. It is computed only if
	// the proof fails. If it is not [prove.Proved], no pass is at fault.
	OfRecording prove.Verdict `json:"-"`
}

// Undone returns the rows of the passes that were undone.
func (r *Result) Undone() (out []Row) {
	for _, x := range r.Rows {
		if x.Undone != "" {
			out = append(out, x)
		}
	}
	return out
}

// ErrNoMeaning is wrapped by the error of [Run] if the recording is ambiguous: two commands race,
// or one reads bytes that nothing wrote. The error says which command and where.
var ErrNoMeaning = errors.New("the recording has no one meaning")

// noMeaning is an error that says what is ambiguous and wraps ErrNoMeaning.
type noMeaning struct{ error }

func (e noMeaning) Unwrap() []error { return []error{e.error, ErrNoMeaning} }

// Run optimizes a copy of recorded. An error means that the recording is ambiguous
// ([ErrNoMeaning]), or that a pass failed or broke the graph. Without an error the result may still
// not be proved, see [Result.Proof]: it is refused, or it is "cannot tell" although every pass was
// undone, or because the proof took more than its budget.
func Run(ctx context.Context, recorded *ir.Graph, o Options) (*Result, error) {
	allowed, err := o.Pipeline.Allowed(o.Passes)
	if err != nil {
		return nil, err
	}
	o.Proof.Allow = slices.Concat(o.Proof.Allow, allowed)
	found, err := meaning.Of(ctx, recorded)
	if err != nil {
		return nil, err
	}
	if err := found.Err(); err != nil {
		return nil, noMeaning{err}
	}
	out := &Result{Graph: recorded.Name, Model: o.Passes.Model.OrDefault().Name, ModelledAt: ModelledAt(recorded, o.Passes.Model)}
	if out.Before, err = Compare(ctx, recorded, o.Passes.Model); err != nil {
		return nil, err
	}
	defer func() {
		if out.Proof == nil || out.Proof.Verdict != prove.Proved {
			out.Optimized = nil
		}
	}()
	undone := make([]string, len(o.Pipeline))
	for first := true; ; first = false {
		if err := out.run(ctx, recorded, o, undone, first); err != nil {
			return nil, err
		}
		out.Proof = prove.Check(ctx, recorded, out.Optimized, o.Proof)
		if out.Proof.Err != nil {
			return nil, out.Proof.Err
		}
		if out.Proof.Verdict == prove.Proved {
			return out, nil
		}
		if out.Proof.OverBudget() {
			return out, nil // each proof in a search for the pass at fault would take as long
		}
		out.OfRecording = prove.Check(ctx, recorded, recorded.Clone(), o.Proof).Verdict
		if out.Proof.Verdict == prove.Refused && !ofFusions(out.Proof) {
			return out, nil
		}
		at, found, err := offender(ctx, recorded, o, undone, out.OfRecording, out.Proof)
		if err != nil {
			return nil, err
		}
		if at < 0 { // no pass is left to undo
			return out, nil
		}
		if found.Verdict == prove.Refused && (o.Pipeline[at].Pass.Name != "fuse" || !ofFusions(found)) {
			// A later pass may hide it, but a pass has a bug.
			out.Proof = found
			return out, nil
		}
		undone[at] = reason(found)
	}
}

// ofFusions reports whether a proof was refused only because of the terms of fusions. Terms count
// as different unless known rewrites make them equal, so this need not be a bug of the pass that
// fuses. Without that pass the rest may be proved.
func ofFusions(r *prove.Result) bool {
	return !slices.ContainsFunc(r.Findings, func(f prove.Finding) bool { return f.Verdict == prove.Refused && f.Point != prove.Fusion })
}

// reason returns the first finding, on one line.
func reason(r *prove.Result) string {
	if len(r.Findings) == 0 {
		return r.Verdict.String()
	}
	return r.Findings[0].String()
}

// left returns the pipeline without the undone passes, and the index of each remaining pass in the
// whole pipeline.
func left(p passes.Pipeline, undone []string) (out passes.Pipeline, index []int) {
	for i, s := range p {
		if undone[i] == "" {
			out, index = append(out, s), append(index, i)
		}
	}
	return out, index
}

// run runs the passes that are not undone. It adds one row for each pass, also for undone ones.
func (r *Result) run(ctx context.Context, recorded *ir.Graph, o Options, undone []string, first bool) error {
	r.Optimized = recorded.Clone()
	pipeline, index := left(o.Pipeline, undone)
	var figures []Figures
	po := o.Passes
	po.After = func(s passes.Step, g *ir.Graph) error {
		if first && o.Passes.After != nil { // it is printed only once
			if err := o.Passes.After(s, g); err != nil {
				return err
			}
		}
		f, err := Compare(ctx, g, o.Passes.Model)
		if err != nil {
			return err
		}
		figures = append(figures, f)
		if o.Progress != nil {
			o.Progress(index[len(figures)-1] + 1)
		}
		return ctx.Err()
	}
	reports, err := passes.Run(ctx, r.Optimized, pipeline, po)
	var over *passes.OverBudget
	if errors.As(err, &over) {
		undone[index[over.Step]] = over.Error()
		return r.run(ctx, recorded, o, undone, first)
	}
	if err != nil {
		return err
	}
	now := r.Before
	r.Rows = make([]Row, 0, len(o.Pipeline))
	for i, s := range o.Pipeline {
		if undone[i] != "" {
			r.Rows = append(r.Rows, Row{Report: undoneReport(s, now.Stats, undone[i]), After: now, Undone: undone[i]})
			continue
		}
		now = figures[0]
		if reports[0].Remarks == nil {
			reports[0].Remarks = []passes.Remark{} // JSON then has an empty list, not null
		}
		r.Rows = append(r.Rows, Row{Report: reports[0], After: now})
		reports, figures = reports[1:], figures[1:]
	}
	r.After, r.Fused = now, fusedOf(recorded, r.Optimized)
	if len(index) > 0 {
		if n := passes.DropKernels(r.Optimized); n > 0 {
			r.Rows[index[len(index)-1]].About("kernels", "%d that no dispatch uses are left out", n)
		}
	}
	return nil
}

func undoneReport(s passes.Step, now ir.Stats, why string) *passes.Report {
	r := &passes.Report{Pass: s.String(), Before: now, After: now}
	r.NotAbout("the pass", "undone: %s: %s", s.Pass.Name, why)
	return r
}

// offender finds the pass because of which the result is not proved. It returns the index of the
// pass and the failed proof, or −1 if no pass is at fault.
func offender(ctx context.Context, recorded *ir.Graph, o Options, undone []string, ofRecording prove.Verdict, failed *prove.Result) (int, *prove.Result, error) {
	if ofRecording != prove.Proved {
		// If the recording races, a pass may mend it, so that the results of single passes say
		// nothing.
		return leaveOneOut(ctx, recorded, o, undone, failed)
	}
	at, found := -1, failed
	pipeline, index := left(o.Pipeline, undone)
	po := o.Passes
	po.Budget = passes.Budget{} // each pass has kept its budget before
	done := 0
	po.After = func(_ passes.Step, g *ir.Graph) error {
		r := prove.Check(ctx, recorded, g, o.Proof)
		if r.Err != nil {
			return r.Err
		}
		if r.Verdict != prove.Proved {
			at, found = index[done], r
			return errStop
		}
		done++
		return ctx.Err()
	}
	if _, err := passes.Run(ctx, recorded.Clone(), pipeline, po); err != nil && !errors.Is(err, errStop) {
		return -1, nil, err
	}
	return at, found, nil
}

// errStop ends a pipeline once its offender is found.
var errStop = errors.New("stop")

// leaveOneOut looks for a pass without which the result is proved, beginning with the last pass.
func leaveOneOut(ctx context.Context, recorded *ir.Graph, o Options, undone []string, failed *prove.Result) (int, *prove.Result, error) {
	for i := len(undone) - 1; i >= 0; i-- {
		if undone[i] != "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return -1, nil, err
		}
		without := append([]string(nil), undone...)
		without[i] = "left out"
		pipeline, _ := left(o.Pipeline, without)
		if o.verdict(ctx, recorded, pipeline) == prove.Proved {
			return i, failed, nil
		}
	}
	return -1, nil, nil
}

// verdict runs a pipeline on a copy and proves the result. If a pass fails, the verdict is
// [prove.CannotTell].
func (o Options) verdict(ctx context.Context, recorded *ir.Graph, p passes.Pipeline) prove.Verdict {
	return o.proof(ctx, recorded, p).Verdict
}

func (o Options) proof(ctx context.Context, recorded *ir.Graph, p passes.Pipeline) *prove.Result {
	g := recorded.Clone()
	po := o.Passes
	po.After, po.Budget = nil, passes.Budget{}
	if _, err := passes.Run(ctx, g, p, po); err != nil {
		return &prove.Result{Verdict: prove.CannotTell}
	}
	return prove.Check(ctx, recorded, g, o.Proof)
}

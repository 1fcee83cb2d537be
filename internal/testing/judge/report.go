package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Label is the judge's answer for a mutation, as a report counts it.
type Label uint8

// The labels.
const (
	HarmfulLabel   Label = iota
	HarmlessLabel        // without any remark
	RemarkedLabel        // harmless, but a stricter judge would object: see [Judgement.Remarks]
	UndecidedLabel       // before leaves the result undefined, or it is equal by terms only
	labels
)

func (l Label) String() string {
	return [...]string{"harmful", "harmless", "remarked", "undecided"}[l]
}

// Counts counts answers by label: Counts[label][answer].
type Counts [labels][3]int

// Of returns how many cases have the label.
func (c Counts) Of(l Label) int { return c[l][Accepted] + c[l][Refused] + c[l][CannotTell] }

// Total returns how many cases there are.
func (c Counts) Total() (n int) {
	for l := range labels {
		n += c.Of(l)
	}
	return n
}

// ClassReport is the outcome of one class of mutations.
type ClassReport struct {
	Name string
	Counts
}

// Example is a case worth looking at, with both graphs as text.
type Example struct {
	Class         string
	Answer        Answer
	Reason        string // the prover's
	Judgement     Judgement
	Before, After string
}

func (e Example) String() string {
	return fmt.Sprintf("%s: %s (%s); judged %s %s %q, replays %s\n--- before ---\n%s--- after ---\n%s",
		e.Class, e.Answer, e.Reason, e.Judgement.Verdict, e.Judgement.Reason, e.Judgement.Remarks, e.Judgement.Replays, e.Before, e.After)
}

// Report is the outcome of a campaign.
type Report struct {
	Graphs  int
	Classes []ClassReport // in the order of [Mutations]
	Waited  int           // cases that were judged with replays that wait for one another
	// Missed lists harmful changes that the prover accepted, the smallest one of each
	// class.
	Missed []Example
	// Unproved lists harmless changes that the prover did not accept, the smallest one
	// of each class and reason (apart from numbers and names).
	Unproved []Example
	names    []string
}

func newReport(ms []Mutation) *Report {
	r := &Report{}
	for _, m := range ms {
		r.Classes = append(r.Classes, ClassReport{Name: m.Name})
	}
	return r
}

// particulars matches what differs between reasons that say the same.
var particulars = regexp.MustCompile(`#?[0-9]+|[%@$]"?[\w.]+"?`)

func (r *Report) add(x testCase) {
	c := &r.Classes[x.class]
	l := x.label()
	c.Counts[l][x.answer]++
	if x.judgement.Replays == Waited {
		r.Waited++
	}
	e := Example{Class: c.Name, Answer: x.answer, Reason: x.reason, Judgement: x.judgement, After: x.after}
	switch {
	case l == HarmfulLabel && x.answer == Accepted:
		e.Before = text(x.before)
		r.Missed = keep(r.Missed, e, false)
	case l == HarmlessLabel && x.answer != Accepted:
		e.Before = text(x.before)
		r.Unproved = keep(r.Unproved, e, true)
	}
}

func keep(es []Example, e Example, reasons bool) []Example {
	kind := func(x Example) string { return particulars.ReplaceAllString(x.Reason, "_") }
	for i, x := range es {
		if x.Class == e.Class && (!reasons || x.Answer == e.Answer && kind(x) == kind(e)) {
			if byText(e, x) < 0 {
				es[i] = e
			}
			return es
		}
	}
	return append(es, e)
}

// Sum adds up all classes.
func (r *Report) Sum() (out Counts) {
	for _, c := range r.Classes {
		for l := range c.Counts {
			for a, n := range c.Counts[l] {
				out[l][a] += n
			}
		}
	}
	return out
}

// String returns the table of counts: for each class and label, how many cases were
// accepted, refused and left open.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s", "mutation")
	for l := range labels {
		fmt.Fprintf(&b, " | %-19s", l)
	}
	fmt.Fprintf(&b, "\n%-28s", "accepted/refused/cannot tell")
	for range labels {
		fmt.Fprintf(&b, " | %6s %6s %5s", "acc", "ref", "?")
	}
	b.WriteString("\n")
	row := func(name string, c Counts) {
		fmt.Fprintf(&b, "%-28s", name)
		for l := range labels {
			fmt.Fprintf(&b, " | %6d %6d %5d", c[l][Accepted], c[l][Refused], c[l][CannotTell])
		}
		b.WriteString("\n")
	}
	for _, c := range r.Classes {
		row(c.Name, c.Counts)
	}
	sum := r.Sum()
	row("all", sum)
	total := max(sum.Total(), 1)
	fmt.Fprintf(&b, "%d mutations of %d graphs, %d judged with replays that wait: %d%% harmful, %d%% harmless, %d%% harmless with remarks, %d%% undecided; %d harmful accepted, %d of %d harmless accepted\n",
		sum.Total(), r.Graphs, r.Waited, 100*sum.Of(HarmfulLabel)/total, 100*sum.Of(HarmlessLabel)/total, 100*sum.Of(RemarkedLabel)/total, 100*sum.Of(UndecidedLabel)/total,
		sum[HarmfulLabel][Accepted], sum[HarmlessLabel][Accepted], sum.Of(HarmlessLabel))
	return b.String()
}

// Unaccepted lists the examples of harmless changes that were not accepted, one in a
// line.
func (r *Report) Unaccepted() string {
	var lines []string
	for _, e := range r.Unproved {
		lines = append(lines, fmt.Sprintf("%-28s %-11s %s", e.Class, e.Answer, e.Reason))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

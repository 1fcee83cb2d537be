package profile

import (
	"context"
	_ "embed" // the parts of a page
	"fmt"
	"io"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/page"
	"github.com/mlxc/mlxc/ir"
)

var (
	//go:embed run.html
	frame string
	//go:embed run.css
	style string
	//go:embed run.js
	script string
	// uPlot 1.6.32 (MIT, Leon Sorokin: uplot.LICENSE) draws the chart of replays.
	//go:embed uplot.min.js
	chart string
	//go:embed uplot.min.css
	chartStyle string
	//go:embed uplot.LICENSE
	chartLicence string
)

// Bounds of what a page shows. What is left out is said.
const (
	mostShown  = 100_000 // commands of all graphs
	mostPoints = 4_000   // replays in the chart of one graph
)

// The types below are the JSON in a page, which run.js reads.
type (
	document struct {
		Title    string        `json:"title"`
		Device   string        `json:"device"`
		About    string        `json:"about"`
		Model    modelOf       `json:"model"`
		Ceilings ceilingsOf    `json:"ceilings"`
		Families []string      `json:"families"`
		Notes    []string      `json:"notes"`
		Cut      string        `json:"cut,omitempty"`
		Graphs   []*graphShown `json:"graphs"`
	}
	modelOf struct {
		Name   string `json:"name"`
		Fitted bool   `json:"fitted"`
	}
	ceilingsOf struct {
		Bandwidth float64 `json:"bandwidth"`
		Rate      float64 `json:"rate"`
	}
	graphShown struct {
		*Summary
		Kernels []kernelShown  `json:"kernels"`
		Epochs  []Epoch        `json:"epochs"`
		Command []commandShown `json:"command"`
		Series  seriesShown    `json:"series"`
	}
	kernelShown struct {
		Kernel
		Family int `json:"family"`
	}
	commandShown struct {
		Name     string  `json:"name"`
		Label    string  `json:"label,omitempty"`
		Kernel   int     `json:"kernel"`
		Us       float64 `json:"us"`
		Modelled float64 `json:"modelled"`
	}
	seriesShown struct {
		Number   []int     `json:"number"`
		Us       []float64 `json:"us"`
		Modelled []float64 `json:"modelled"`
		Params   []string  `json:"params"`
		Every    int       `json:"every"`
		Left     bool      `json:"left"`
	}
)

// Page writes the report as an HTML page that needs no network and no other file.
func (r *Report) Page(ctx context.Context, w io.Writer) error {
	all := r.Summaries()
	c := r.ceilings(all)
	d := &document{Title: page.Shown(r.Title), Device: page.Shown(r.Device), About: page.Shown(r.About), Model: modelOf{r.modelName(), r.Fitted},
		Ceilings: ceilingsOf{finite(c.bandwidth), finite(c.rate)}, Families: page.Families(), Notes: []string{}, Graphs: []*graphShown{}}
	d.Notes = append(d.Notes, r.Notes...)
	left := mostShown
	for i, s := range all {
		g := r.Graphs[i]
		if len(g.commands) > left {
			d.Cut = fmt.Sprintf("This page has room for %d commands: epochs and commands of graphs behind them are left out.", mostShown)
		}
		d.Graphs = append(d.Graphs, r.graph(ctx, g, s, len(g.commands) <= left))
		if len(g.commands) <= left {
			left -= len(g.commands)
		}
	}
	return (&page.Document{Title: r.Title, Frame: frame, Style: chartStyle + style, Script: "/*\n" + chartLicence + "*/\n" + chart + "\n" + script, Data: d}).Write(ctx, w)
}

// graph returns what the page has of one graph; whole says that it has its commands.
func (r *Report) graph(ctx context.Context, g *Graph, s *Summary, whole bool) *graphShown {
	s.Graph = page.Shown(s.Graph)
	out := &graphShown{Summary: s, Kernels: []kernelShown{}, Epochs: []Epoch{}, Command: []commandShown{}}
	number := map[string]int{}
	for i, k := range s.Kernels {
		number[k.Name] = i
		k.Name = page.Shown(k.Name)
		k.Bytes, k.Operations, k.Modelled, k.Bandwidth, k.Rate, k.Roofline = finite(k.Bytes), finite(k.Operations), finite(k.Modelled), finite(k.Bandwidth), finite(k.Rate), finite(k.Roofline)
		out.Kernels = append(out.Kernels, kernelShown{k, k.family})
	}
	s.Bytes, s.Modelled = finite(s.Bytes), finite(s.Modelled)
	if whole {
		for i := range g.commands {
			e := &s.each[i]
			out.Command = append(out.Command, commandShown{g.shown(int32(i)), page.Shown(ir.LabelOf(g.commands[i])), number[g.kernels[i]], e.us, finite(e.modelled)})
		}
		for _, e := range s.Epochs {
			e.From, e.To = finite(e.From), finite(e.To)
			out.Epochs = append(out.Epochs, e)
		}
	}
	works := g.works(r.Model)
	n := &out.Series
	n.Number, n.Us, n.Modelled, n.Params = []int{}, []float64{}, []float64{}, []string{}
	n.Every = (len(g.replays) + mostPoints - 1) / mostPoints
	n.Left = n.Every > 1
	for i := range g.replays {
		if i%max(1, n.Every) != 0 {
			continue
		}
		if ctx.Err() != nil {
			break // writing will report it
		}
		t := &g.replays[i]
		n.Number, n.Us = append(n.Number, i), append(n.Us, micros(t.Duration()))
		n.Modelled = append(n.Modelled, finite(layOut(&r.Model, g.epochs, works(t.Params)).whole.Microseconds()))
		var params []string
		for k, v := range t.Params {
			if p := &g.IR.Params[k]; p.Type == ir.U32 {
				params = append(params, fmt.Sprintf("$%s = %d", page.Shown(p.Name), v))
			}
		}
		n.Params = append(n.Params, strings.Join(params, ", "))
	}
	return out
}

// finite returns x, or a number that JSON has where x is beyond it: absurd sizes may make a model's figures infinite.
func finite(x float64) float64 {
	if !(x >= 0) {
		return 0
	}
	return min(x, 1e300)
}

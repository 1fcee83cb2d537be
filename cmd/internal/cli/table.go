package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table is a table for people: columns of numbers align right. On a terminal it
// fits the width: texts are wrapped and, where that is not enough, the columns
// come in several tables, each with the first column. Through a pipe every row is
// one line.
type Table struct {
	Header []string
	Rows   [][]any
}

// Add appends a row.
func (t *Table) Add(cells ...any) { t.Rows = append(t.Rows, cells) }

// narrowest is the width that a column of text keeps at least.
const narrowest = 16

// padding is what stands around a cell.
const padding = 2

// column is a column as it is printed.
type column struct {
	header string
	cells  []string
	number bool
	width  int // of its widest cell; then what it is given
}

// Print writes the table to w; if w is a [Screen], as wide as that.
func (t *Table) Print(w io.Writer) error {
	columns := t.columns()
	width := 0
	if s, ok := w.(interface{ Width() int }); ok {
		width = s.Width()
	}
	for i, block := range blocks(columns, width) {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(w, render(block)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) columns() []column {
	out := make([]column, len(t.Header))
	for i, h := range t.Header {
		c := &out[i]
		c.header, c.number = line(h), len(t.Rows) > 0
		c.width = text.StringWidthWithoutEscSequences(c.header)
		for _, r := range t.Rows {
			switch r[i].(type) {
			case int, int64, float64, Bytes, Micros:
			default:
				c.number = false
			}
			cell := line(fmt.Sprint(r[i]))
			c.cells = append(c.cells, cell)
			c.width = max(c.width, text.StringWidthWithoutEscSequences(cell))
		}
	}
	return out
}

// line makes one line of a cell, whatever a file has put into it.
func line(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Escape(s))
}

func total(columns []column) (n int) {
	for _, c := range columns {
		n += c.width + padding
	}
	return n
}

// blocks wraps columns of text and distributes columns so that each block is at
// most width wide, as far as that can be; 0 means any.
func blocks(columns []column, width int) [][]column {
	if width <= 0 || total(columns) <= width {
		return [][]column{columns}
	}
	if wrapped := wrap(columns, width); total(wrapped) <= width {
		return [][]column{wrapped}
	}
	// Several tables: a text may have all the room that the first column leaves.
	columns = slices.Clone(columns)
	limit := func(c *column, to int) {
		if !c.number {
			c.width = min(c.width, max(to, narrowest))
		}
	}
	limit(&columns[0], width/3)
	for i := range columns[1:] {
		limit(&columns[i+1], width-columns[0].width-2*padding)
	}
	var out [][]column
	for rest := columns[1:]; len(rest) > 0; {
		block := []column{columns[0]}
		for len(rest) > 0 && (len(block) == 1 || total(block)+rest[0].width+padding <= width) {
			block, rest = append(block, rest[0]), rest[1:]
		}
		out = append(out, block)
	}
	if out == nil {
		out = [][]column{columns}
	}
	return out
}

// wrap takes from the widest texts what the columns are too wide together.
func wrap(columns []column, width int) []column {
	columns = slices.Clone(columns)
	for over := total(columns) - width; over > 0; over-- {
		widest := -1
		for i, c := range columns {
			if !c.number && c.width > narrowest && (widest < 0 || c.width > columns[widest].width) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		columns[widest].width--
	}
	return columns
}

func render(columns []column) string {
	p := table.NewWriter()
	p.SetStyle(table.StyleLight)
	p.Style().Options.DrawBorder = false
	p.Style().Options.SeparateColumns = false
	p.Style().Format.Header = text.FormatDefault
	var header table.Row
	var configs []table.ColumnConfig
	for i, c := range columns {
		header = append(header, c.header)
		k := table.ColumnConfig{Number: i + 1, WidthMax: c.width, WidthMaxEnforcer: text.WrapSoft}
		if c.number {
			k.Align, k.AlignHeader = text.AlignRight, text.AlignRight
		}
		configs = append(configs, k)
	}
	p.AppendHeader(header)
	p.SetColumnConfigs(configs)
	rows := 0
	for _, c := range columns {
		rows = max(rows, len(c.cells))
	}
	for i := range rows {
		row := make(table.Row, len(columns))
		for k, c := range columns {
			row[k] = c.cells[i]
		}
		p.AppendRow(row)
	}
	return p.Render()
}

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table is a table for people, whose columns of numbers are aligned to the right. On a
// terminal it fits the width: texts are wrapped and, if that is not enough, the columns
// are distributed over several tables, each of which repeats the first column. On
// anything else every row is one line.
type Table struct {
	Header []string
	Rows   [][]any
}

// Add appends a row.
func (t *Table) Add(cells ...any) { t.Rows = append(t.Rows, cells) }

// narrowest is the least width to which a column of text is wrapped.
const narrowest = 16

// padding is the number of spaces around a cell.
const padding = 2

// column is a column as it is printed.
type column struct {
	header string
	cells  []string
	number bool
	width  int // the width of its widest cell, then the width that it is given
}

// Print writes the table to w. If w is a [Screen], the table fits its width.
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

// line returns s as one line, whatever a file has put into it.
func line(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Escape(s))
}

func total(columns []column) (n int) {
	for _, c := range columns {
		n += c.width + padding
	}
	return n
}

// blocks wraps columns of text and distributes the columns over blocks that are at most
// width wide, if that is possible; 0 means any width.
func blocks(columns []column, width int) [][]column {
	if width <= 0 || total(columns) <= width {
		return [][]column{columns}
	}
	if wrapped := wrap(columns, width); total(wrapped) <= width {
		return [][]column{wrapped}
	}
	// Several tables are needed, so a text may take all the room that the first column
	// leaves.
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

// wrap narrows the widest columns of text until all columns together fit width.
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

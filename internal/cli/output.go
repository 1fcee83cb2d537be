package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// JSON prints v as indented JSON.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Table is a table for people: columns of numbers align right.
type Table struct {
	Header []string
	Rows   [][]any
}

// Add appends a row.
func (t *Table) Add(cells ...any) { t.Rows = append(t.Rows, cells) }

// Print writes the table.
func (t *Table) Print(w io.Writer) error {
	p := table.NewWriter()
	p.SetStyle(table.StyleLight)
	p.Style().Options.DrawBorder = false
	p.Style().Options.SeparateColumns = false
	p.Style().Format.Header = text.FormatDefault
	p.AppendHeader(row(t.Header))
	var columns []table.ColumnConfig
	for i := range t.Header {
		number := len(t.Rows) > 0
		for _, r := range t.Rows {
			switch r[i].(type) {
			case int, int64, float64, Bytes, Micros:
			default:
				number = false
			}
		}
		if number {
			columns = append(columns, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	p.SetColumnConfigs(columns)
	for _, r := range t.Rows {
		p.AppendRow(table.Row(r))
	}
	_, err := fmt.Fprintln(w, p.Render())
	return err
}

func row(cells []string) table.Row {
	out := make(table.Row, len(cells))
	for i, c := range cells {
		out[i] = c
	}
	return out
}

// Bytes is a size that prints with a binary unit.
type Bytes int64

func (b Bytes) String() string {
	switch {
	case b < 10<<10:
		return fmt.Sprintf("%d B", int64(b))
	case b < 10<<20:
		return fmt.Sprintf("%.1f KiB", float64(b)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(b)/(1<<20))
}

// Micros is a time in microseconds that prints with one digit behind the point.
type Micros float64

func (m Micros) String() string { return fmt.Sprintf("%.1f µs", float64(m)) }

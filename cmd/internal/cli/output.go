package cli

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON prints v as indented JSON.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Bytes is a size in bytes, which prints with a binary unit.
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

// Micros is a time in microseconds, which prints with one digit after the point.
type Micros float64

func (m Micros) String() string { return fmt.Sprintf("%.1f µs", float64(m)) }

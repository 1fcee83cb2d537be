package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// JSON prints v as indented JSON. It returns when the context ends, although the encoder does not know contexts: the
// encoder then goes on in its goroutine, where it only reads v.
func JSON(ctx context.Context, w io.Writer, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	encoded := make(chan error, 1)
	go func() { encoded <- e.Encode(v) }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-encoded:
		if err != nil {
			return err
		}
	}
	for w := Until(ctx, w); text.Len() > 0; {
		if _, err := w.Write(text.Next(1 << 20)); err != nil {
			return err
		}
	}
	return nil
}

// Until returns a writer to w that fails once the context has ended. It makes code stoppable that writes a long
// text in many pieces and does not look at a context itself.
func Until(ctx context.Context, w io.Writer) io.Writer { return until{ctx, w} }

type until struct {
	ctx context.Context
	w   io.Writer
}

func (u until) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.w.Write(p)
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

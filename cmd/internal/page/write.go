package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the parts of a page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/mlxc/mlxc/internal/interrupt"
)

var (
	//go:embed page.html
	frame string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
	//go:embed common.js
	common string
)

// Write writes the page. The error is that of w or of an ended ctx.
func (p *Page) Write(ctx context.Context, w io.Writer) error {
	d, err := p.data(ctx)
	if err != nil {
		return err
	}
	return (&Document{Title: p.Title, Frame: frame, Script: script, Data: d}).Write(ctx, w)
}

// Document is a page with the look and the policy of this package's, whatever it shows.
type Document struct {
	Title string
	// Frame is the page's HTML. {{policy}}, {{title}}, {{style}}, {{script}} and {{data}} stand in it once each, in this order
	// but for the last two.
	Frame string
	// Script is what stands behind the script that pages have in common (common.js), and Style behind the style of this package.
	Script, Style string
	// Data is what the script finds in the element of {{data}}, as JSON. Texts in it are those of [Shown].
	Data any
}

// Write writes the document. The error is that of w or of an ended ctx.
func (d *Document) Write(ctx context.Context, w io.Writer) error {
	// Marshal writes <, > and & as \u003c and so on, so that no text ends the element that it stands
	// in, and U+2028 and U+2029, which it shares with JavaScript's line ends, likewise.
	text, err := json.Marshal(d.Data)
	if err != nil {
		return fmt.Errorf("the page's data: %w", err)
	}
	w = interrupt.Writer(ctx, w)
	// The frame is cut before anything is put into it, because a title may be called as a place is.
	head, tail, _ := strings.Cut(d.Frame, "{{data}}")
	look, run := style+d.Style, common+d.Script
	fill := strings.NewReplacer(
		"{{policy}}", "default-src 'none'; style-src '"+digest(look)+"'; script-src '"+digest(run)+"'; base-uri 'none'; form-action 'none'",
		"{{title}}", html.EscapeString(shown(d.Title)),
		"{{style}}", look,
		"{{script}}", run,
	)
	for _, part := range [][]byte{[]byte(fill.Replace(head)), text, []byte(fill.Replace(tail))} {
		if _, err := io.Copy(w, bytes.NewReader(part)); err != nil {
			return err
		}
	}
	return nil
}

// digest names an inline script or style to a policy.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

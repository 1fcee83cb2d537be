package page_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/cmd/internal/page"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/chromium"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// pan is how a page draws while it is moved by wheel events, one a frame: frames a second, and the
// longest frame in milliseconds.
const pan = `new Promise(done => {
  const view = document.getElementById("view"), start = performance.now();
  let n = 0, last = start, longest = 0;
  requestAnimationFrame(function step(now) {
    longest = Math.max(longest, now - last); last = now;
    if (n++ === 60) return done({ Second: 1000 * 60 / (performance.now() - start), Longest: longest });
    view.dispatchEvent(new WheelEvent("wheel", { deltaX: n % 60 < 30 ? 90 : -70, clientX: 400, clientY: 300, cancelable: true, bubbles: true }));
    requestAnimationFrame(step);
  });
})`

// A page of 50,000 commands is drawn within two seconds of its opening, and moves by thirty frames a
// second at every zoom. A browser draws in software here, on a machine that does other things too, so
// that the test asks for half.
func TestLargePageInABrowser(t *testing.T) {
	sample.Seldom(t)
	chromium.Find(t)
	p := &page.Page{Title: "large.mlxg", Graphs: []page.Graph{optimized(t, benchgraphs.Decode(50_000))}}
	path := written(t, p)
	b := newTab(t, 1440, 900)
	start := time.Now()
	b.Open(path, "")
	opened := time.Since(start)
	var paint float64
	b.Eval(`new Promise(done => { const look = () => { const e = performance.getEntriesByName("first-contentful-paint")[0]; if (e) done(e.startTime); else setTimeout(look, 50); }; look(); })`, &paint)
	t.Logf("ready after %v, first paint after %.0f ms", opened, paint)
	assert.Less(t, opened, 4*time.Second)
	for _, zoom := range []struct{ name, key string }{{"near", ""}, {"whole", "0"}, {"between", "+++"}, {"between", "+++"}, {"between", "+++"}} {
		for _, k := range zoom.key {
			b.Key(string(k), string(k))
		}
		b.Settle()
		var r struct{ Second, Longest float64 }
		drawn := b.state().Frames
		b.Eval(pan, &r)
		now := b.state()
		t.Logf("%s, %.3f pixels a column: %.0f frames a second, the longest %.0f ms", zoom.name, now.Scale, r.Second, r.Longest)
		assert.Greater(t, now.Frames-drawn, 50, "it was drawn anew in each")
		assert.Greater(t, r.Second, 15.0)
	}
	b.shoot("large")
	assert.Empty(t, b.Complaints())
}

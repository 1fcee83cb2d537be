// Package chromium drives a headless Chromium in tests of the pages that commands write.
package chromium

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Find finds a Chromium: the one that CHROMIUM names, the one that scripts/fetch-chromium.sh has
// fetched, or one in PATH.
func Find(t testing.TB) string {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	// Tests run in the folder of their package: the module's is one of those above.
	for dir := "."; ; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			path, err := filepath.Abs(filepath.Join(dir, "out/chromium/run"))
			if _, missing := os.Stat(path); err == nil && missing == nil {
				return path
			}
			break
		} else if len(dir) > 64 {
			break
		}
	}
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium: scripts/fetch-chromium.sh fetches one; or install one, or say where it is in CHROMIUM")
	return ""
}

// Tab is one page in a headless Chromium, driven by the DevTools protocol over two pipes.
type Tab struct {
	T       testing.TB
	to      io.Writer
	answers chan Message
	Events  []Message // of the page, so far
	session string
	last    int
}

// Message is one of the DevTools protocol.
type Message struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"Message"`
	} `json:"error,omitempty"`
}

// New starts a Chromium without a network with an empty page of width × height.
func New(t testing.TB, width, height int) *Tab {
	program, folder := Find(t), t.TempDir()
	fromUs, toIt, err := os.Pipe()
	require.NoError(t, err)
	fromIt, toUs, err := os.Pipe()
	require.NoError(t, err)
	args := []string{"--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
		"--host-resolver-rules=MAP * ~NOTFOUND", "--force-device-scale-factor=1", "--user-data-dir=" + folder, fmt.Sprintf("--window-size=%d,%d", width, height)}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // the cage of Chromium needs another user, and the pages are ours
	}
	cmd := exec.Command(program, append(args, "about:blank")...)
	cmd.ExtraFiles = []*os.File{fromUs, toUs} // descriptors 3 and 4
	require.NoError(t, cmd.Start())
	fromUs.Close()
	toUs.Close()
	b := &Tab{T: t, to: toIt, answers: make(chan Message, 1024)}
	t.Cleanup(func() {
		// Asked to close, it ends its processes, which write to its folder until then.
		b.session, b.last = "", b.last+1
		fmt.Fprintf(toIt, `{"id":%d,"method":"Browser.close"}`+"\x00", b.last)
		kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // how it ended does not matter
		kill.Stop()
		toIt.Close()
		fromIt.Close()
	})
	go func() {
		defer close(b.answers)
		r := bufio.NewReaderSize(fromIt, 1<<16)
		for {
			line, err := r.ReadBytes(0)
			if err != nil {
				return
			}
			var m Message
			if json.Unmarshal(line[:len(line)-1], &m) == nil {
				b.answers <- m
			}
		}
	}()
	var targets struct {
		Infos []struct {
			ID   string `json:"targetId"`
			Type string `json:"type"`
		} `json:"targetInfos"`
	}
	b.Call("Target.getTargets", nil, &targets)
	id := ""
	for _, x := range targets.Infos {
		if x.Type == "page" {
			id = x.ID
		}
	}
	var attached struct {
		Session string `json:"sessionId"`
	}
	b.Call("Target.attachToTarget", map[string]any{"targetId": id, "flatten": true}, &attached)
	b.session = attached.Session
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.Call(domain+".enable", nil, nil)
	}
	return b
}

// Call waits for the answer to one command; out may be nil.
func (b *Tab) Call(method string, params any, out any) {
	b.T.Helper()
	b.last++
	m := Message{ID: b.last, Method: method, Session: b.session}
	if params != nil {
		text, err := json.Marshal(params)
		require.NoError(b.T, err)
		m.Params = text
	}
	text, err := json.Marshal(m)
	require.NoError(b.T, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(b.T, err)
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case a, ok := <-b.answers:
			require.True(b.T, ok, "Chromium ended")
			if a.ID == 0 {
				b.Events = append(b.Events, a)
				continue
			}
			if a.ID != b.last {
				continue
			}
			require.Nil(b.T, a.Error, "%s: %+v", method, a.Error)
			if out != nil {
				require.NoError(b.T, json.Unmarshal(a.Result, out))
			}
			return
		case <-deadline:
			b.T.Fatalf("no answer to %s", method)
		}
	}
}

// Eval returns the value of a JavaScript expression, which may be a promise.
func (b *Tab) Eval(expression string, out any) {
	b.T.Helper()
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	require.Nil(b.T, r.Exception, "%s: %+v", expression, r.Exception)
	if out != nil {
		require.NoError(b.T, json.Unmarshal(r.Result.Value, out), "%s", expression)
	}
}

// Open loads a file and waits until the page has drawn itself.
func (b *Tab) Open(path, hash string) {
	b.T.Helper()
	b.Call("Page.navigate", map[string]any{"url": "file://" + filepath.ToSlash(path) + hash}, nil)
	for range 600 {
		ready := false
		b.Eval(`!!document.body && document.body.dataset.ready === "true" && mlxcPage.state().frames > 0`, &ready)
		if ready {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.T.Fatalf("%s is not ready: %s", path, b.Complaints())
}

// Complaints are what the console, the page's policy or the network said.
func (b *Tab) Complaints() (out []string) {
	for _, e := range b.Events {
		switch e.Method {
		case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Network.loadingFailed", "Page.javascriptDialogOpening":
			out = append(out, e.Method+" "+string(e.Params))
		}
	}
	return out
}

// Click clicks at a point of the window.
func (b *Tab) Click(x, y float64) {
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		b.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}, nil)
	}
}

// Key presses a key, which types a text if that is not empty.
func (b *Tab) Key(key, text string) {
	b.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": map[string]int{"Enter": 13, "Escape": 27}[key]}, nil)
	b.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Write types a text.
func (b *Tab) Write(text string) {
	for _, r := range text {
		b.Key(string(r), string(r))
	}
	time.Sleep(120 * time.Millisecond) // the page waits for the end of typing
}

// Settle waits until nothing moves any more.
func (b *Tab) Settle() {
	b.Eval(`new Promise(done => { let last = -1; (function look() { const n = mlxcPage.state().frames; if (n === last) done(0); else { last = n; setTimeout(look, 60); } })(); })`, nil)
}

// Picture writes a screenshot.
func (b *Tab) Picture(path string) {
	b.Settle()
	var shot struct {
		Data string `json:"data"`
	}
	b.Call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.T, err)
	require.NoError(b.T, os.WriteFile(path, png, 0o644))
}

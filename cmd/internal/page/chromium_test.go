package page_test

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

// browser finds a Chromium: the one that CHROMIUM names, the one that scripts/fetch-chromium.sh has
// fetched, or one in PATH.
func browser(t *testing.T) string {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	if path, err := filepath.Abs("../../../out/chromium/run"); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
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

// tab is one page in a headless Chromium, driven by the DevTools protocol over two pipes.
type tab struct {
	t       *testing.T
	to      io.Writer
	answers chan message
	events  []message // of the page, so far
	session string
	last    int
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// newTab starts a Chromium without a network with an empty page of width × height.
func newTab(t *testing.T, width, height int) *tab {
	program, folder := browser(t), t.TempDir()
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
	b := &tab{t: t, to: toIt, answers: make(chan message, 1024)}
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
			var m message
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
	b.call("Target.getTargets", nil, &targets)
	id := ""
	for _, x := range targets.Infos {
		if x.Type == "page" {
			id = x.ID
		}
	}
	var attached struct {
		Session string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": id, "flatten": true}, &attached)
	b.session = attached.Session
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call waits for the answer to one command; out may be nil.
func (b *tab) call(method string, params any, out any) {
	b.t.Helper()
	b.last++
	m := message{ID: b.last, Method: method, Session: b.session}
	if params != nil {
		text, err := json.Marshal(params)
		require.NoError(b.t, err)
		m.Params = text
	}
	text, err := json.Marshal(m)
	require.NoError(b.t, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(b.t, err)
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case a, ok := <-b.answers:
			require.True(b.t, ok, "Chromium ended")
			if a.ID == 0 {
				b.events = append(b.events, a)
				continue
			}
			if a.ID != b.last {
				continue
			}
			require.Nil(b.t, a.Error, "%s: %+v", method, a.Error)
			if out != nil {
				require.NoError(b.t, json.Unmarshal(a.Result, out))
			}
			return
		case <-deadline:
			b.t.Fatalf("no answer to %s", method)
		}
	}
}

// eval returns the value of a JavaScript expression, which may be a promise.
func (b *tab) eval(expression string, out any) {
	b.t.Helper()
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
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	require.Nil(b.t, r.Exception, "%s: %+v", expression, r.Exception)
	if out != nil {
		require.NoError(b.t, json.Unmarshal(r.Result.Value, out), "%s", expression)
	}
}

// open loads a file and waits until the page has drawn itself.
func (b *tab) open(path, hash string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": "file://" + filepath.ToSlash(path) + hash}, nil)
	for range 600 {
		ready := false
		b.eval(`!!document.body && document.body.dataset.ready === "true" && mlxcPage.state().frames > 0`, &ready)
		if ready {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("%s is not ready: %s", path, b.complaints())
}

// complaints are what the console, the page's policy or the network said.
func (b *tab) complaints() (out []string) {
	for _, e := range b.events {
		switch e.Method {
		case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Network.loadingFailed", "Page.javascriptDialogOpening":
			out = append(out, e.Method+" "+string(e.Params))
		}
	}
	return out
}

func (b *tab) click(x, y float64) {
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}, nil)
	}
}

func (b *tab) key(key, text string) {
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": map[string]int{"Enter": 13, "Escape": 27}[key]}, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

func (b *tab) write(text string) {
	for _, r := range text {
		b.key(string(r), string(r))
	}
	time.Sleep(120 * time.Millisecond) // the page waits for the end of typing
}

// settle waits until nothing moves any more.
func (b *tab) settle() {
	b.eval(`new Promise(done => { let last = -1; (function look() { const n = mlxcPage.state().frames; if (n === last) done(0); else { last = n; setTimeout(look, 60); } })(); })`, nil)
}

// picture writes a screenshot.
func (b *tab) picture(path string) {
	b.settle()
	var shot struct {
		Data string `json:"data"`
	}
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(path, png, 0o644))
}

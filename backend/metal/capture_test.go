//go:build linux

package metal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/record"
)

// enable is the variable that must be in C's environment when Metal is loaded, or nothing can be captured.
const enable = "MTL_CAPTURE_ENABLED"

// captured is the contents of the stand-in's capture file for n command buffers, all of which began and ended
// within the capture, with nothing else in flight.
func captured(n int) string {
	return fmt.Sprintf("%d command buffers of software Metal, in flight before: 0, after: 0\n", n)
}

// TestCaptureOfTheNthReplay: the capture that the environment asks for has all command buffers of the N-th
// replay, or the N-th live command buffer, and no others, though earlier and later ones end late.
func TestCaptureOfTheNthReplay(t *testing.T) {
	g := adding(t, 2, 2)
	for name, live := range map[string]bool{"replay": false, "live": true} {
		t.Run(name, func(t *testing.T) {
			unset(t, enable)
			file := filepath.Join(t.TempDir(), "third.gputrace")
			t.Setenv("MLXC_METAL_CAPTURE", file+":3")
			r := gpu(t, fakemetal.Options{Late: 3 * time.Millisecond}, metal.Options{Capture: "of the program.gputrace"})
			if live {
				s := record.New("live", record.Live(r.Device))
				for range 2 { // each has three command buffers
					add(s, 2, 2)
					_, err := s.Finish()
					require.NoError(t, err)
				}
				require.NoError(t, s.Close())
				require.Equal(t, captured(1), text(t, file))
			} else {
				p := r.replaying(g)
				f, err := p.NewFrame(t.Context())
				require.NoError(t, err)
				for range 5 {
					_, err := f.Run(t.Context())
					require.NoError(t, err)
				}
				require.Equal(t, captured(3), text(t, file))
			}
			require.Contains(t, r.log.String(), "captured "+file)
		})
	}
}

// TestCaptureInFlight: if one submission has several replays in flight, exactly the N-th is captured, however
// they are encoded.
func TestCaptureInFlight(t *testing.T) {
	for _, way := range []metal.Plan{metal.Concurrent, metal.Parallel, metal.Indirect} {
		t.Run(way.String(), func(t *testing.T) {
			unset(t, enable)
			file := filepath.Join(t.TempDir(), "fourth.gputrace")
			r := gpu(t, fakemetal.Options{Late: 3 * time.Millisecond, Seed: 3}, metal.Options{Capture: file + ":4", Plan: way})
			f, err := r.replaying(adding(t, 2, 2)).NewBurstFrame(t.Context(), 6)
			require.NoError(t, err)
			run, err := f.SubmitBurst(t.Context(), 6, nil)
			require.NoError(t, err)
			require.NoError(t, run.Result().Err)
			each := len(run.Result().Times.Buffers) / 6
			require.GreaterOrEqual(t, each, 3)
			require.Equal(t, captured(each), text(t, file))
		})
	}
}

// TestCapture: Device.Capture captures everything that its function submits, waited for or not, and nothing
// that was submitted before.
func TestCapture(t *testing.T) {
	unset(t, enable)
	r := gpu(t, fakemetal.Options{Late: 3 * time.Millisecond}, metal.Options{Captures: true})
	p := r.replaying(adding(t, 2, 2))
	f, err := p.NewFrame(t.Context())
	require.NoError(t, err)
	before, err := f.Submit(t.Context())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "some.gputrace")
	reason := errors.New("of the function")
	other, err := p.NewFrame(t.Context())
	require.NoError(t, err)
	err = r.Capture(file, func() error {
		require.True(t, before.Status().Ended(), "nothing is in flight when it begins")
		_, err := other.Submit(t.Context())
		require.NoError(t, err)
		return reason
	})
	require.ErrorIs(t, err, reason)
	require.NotErrorIs(t, err, metal.ErrNotCaptured)
	require.Equal(t, captured(3), text(t, file))
}

// TestNoCapture: if a capture cannot be made, a warning or error says why and what to do, and the work is
// done without it.
func TestNoCapture(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken.gputrace")
	require.NoError(t, os.WriteFile(taken, nil, 0o600))
	good := filepath.Join(dir, "good.gputrace")
	for name, c := range map[string]struct {
		file, want string
		options    fakemetal.Options
	}{
		"is there":  {taken, "taken.gputrace is there already: Metal overwrites no capture, so remove it or name another file", fakemetal.Options{}},
		"folder":    {filepath.Join(dir, "no", "x.gputrace"), "there is no folder for the capture", fakemetal.Options{}},
		"refused":   {good, "the disk is full", fakemetal.Options{Faults: []fakemetal.Fault{{On: fakemetal.Capture, Nth: 1, Text: "the disk is full"}}}},
		"extension": {filepath.Join(dir, "x.trace"), "the name of a capture ends with .gputrace", fakemetal.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			unset(t, enable)
			o := metal.Options{Captures: true}
			if name != "extension" {
				o.Capture = c.file
			}
			r := gpu(t, c.options, o)
			if name != "extension" {
				r.run(r.replaying(adding(t, 1, 1)), 3)
				require.Contains(t, r.log.String(), "warning: metal: nothing is captured: ")
				return
			}
			ran := false
			err := r.Capture(c.file, func() error { ran = true; return nil })
			require.ErrorIs(t, err, metal.ErrNotCaptured)
			require.ErrorContains(t, err, c.want)
			require.True(t, ran)
		})
	}
	for text, want := range map[string]string{"a.trace": "ends with .gputrace", "a.gputrace:0": "count from 1 on", "a.gputrace:x": "ends with .gputrace"} {
		_, err := metal.Open(metal.Options{Capture: text})
		require.ErrorContains(t, err, want)
	}
}

// TestCaptureTooLate: if Metal was loaded without the variable, the error says so, and how to run the program.
func TestCaptureTooLate(t *testing.T) {
	unset(t, enable)
	r := gpu(t, fakemetal.Options{}, metal.Options{})
	err := r.Capture(filepath.Join(t.TempDir(), "x.gputrace"), func() error { return nil })
	require.ErrorIs(t, err, metal.ErrNotCaptured)
	require.ErrorContains(t, err, "MTL_CAPTURE_ENABLED=1 has to be in the environment when Metal starts")
	require.ErrorContains(t, err, "run the program as `MTL_CAPTURE_ENABLED=1 program`")
	// Now it is set, and Metal has long started.
	d := open(t, metal.Options{Captures: true, Log: r.log})
	err = d.Capture(filepath.Join(t.TempDir(), "x.gputrace"), func() error { return nil })
	require.ErrorIs(t, err, metal.ErrNotCaptured)
	require.NoError(t, d.Close())
	require.NoError(t, objc.Setenv(enable, "0"))
}

//go:build linux

package objc_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// The methods of the stand-in's test class Probe.
var (
	digits  = objc.Probe("digits::::::", "QQQQQQQ")
	half    = objc.Probe("half", "d")
	another = objc.Probe("another", "@")
	newOne  = objc.Probe("newOne", "@")
	volume  = objc.Probe("volume:", "QS")
	inRange = objc.Probe("range:", "QR")
	fails   = objc.Probe("failsWithError:", "B^")
)

// load loads the stand-in. At the end of the test it checks that no rule was broken and that there are as
// many objects as before.
func load(t testing.TB) *fakemetal.Library {
	l := open(t)
	live := l.Live("NSObject")
	t.Cleanup(func() {
		assert.Empty(t, l.Failures())
		assert.Equal(t, live, l.Live("NSObject"), "objects leak")
	})
	return l
}

func open(t testing.TB) *fakemetal.Library {
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	objc.RegisterProbes()
	return l
}

func TestSend(t *testing.T) {
	load(t)
	p := objc.New("Probe")
	defer objc.Release(p)
	assert.EqualValues(t, 123456, digits.Send(p, 1, 2, 3, 4, 5, 6))
	assert.Equal(t, 0.5, half.SendDouble(p))
	assert.EqualValues(t, 3004, inRange.Send(p, 3, 4))
	assert.Zero(t, digits.Send(0, 1, 2, 3, 4, 5, 6), "to nil")
	assert.True(t, objc.Responds(p, half))
	assert.False(t, objc.Responds(p, objc.Contents))
	assert.Zero(t, objc.New("NoSuchClass"))
}

func TestPool(t *testing.T) {
	l := load(t)
	p := objc.New("Probe")
	var kept objc.ID
	objc.Pool(func() {
		another.Send(p)
		kept = objc.Retain(another.SendID(p))
		objc.Pool(func() { another.Send(p) })
		assert.Equal(t, 3, l.Live("Probe"))
	})
	assert.Equal(t, 2, l.Live("Probe"))
	objc.Release(kept)
	objc.Release(newOne.SendID(p)) // its name says that the caller owns it
	objc.Release(p)
	assert.Zero(t, l.Live("Probe"))
}

func TestText(t *testing.T) {
	load(t)
	objc.Pool(func() {
		for _, s := range []string{"", "Metal", "größer ≥ 1", strings.Repeat("x", 1<<16)} {
			assert.Equal(t, s, objc.GoString(objc.String(s)))
		}
		assert.Empty(t, objc.GoString(0))
		assert.Nil(t, objc.Objects(0))
	})
}

// TestNoText: String replaces bytes that are not UTF-8, which NSString cannot hold; Text and FileURL return
// an error with their position.
func TestNoText(t *testing.T) {
	load(t)
	objc.Pool(func() {
		assert.Equal(t, "a\uFFFDb", objc.GoString(objc.String("a\xb5\xffb")))
		assert.Equal(t, "µ\uFFFD𝄞", objc.GoString(objc.String("µ\uFFFD𝄞")))
	})
	assert.NoError(t, objc.Text("µ\uFFFD𝄞"))
	assert.ErrorContains(t, objc.Text("µ\xb5"), "byte 2 is no UTF-8")
	assert.ErrorContains(t, objc.Text("ab\x00"), "byte 2 is no UTF-8")
	_, err := objc.FileURL("/tmp/\xff")
	assert.ErrorContains(t, err, `the path "/tmp/\xff": byte 5 `)
}

func TestErrors(t *testing.T) {
	load(t)
	p := objc.New("Probe")
	defer objc.Release(p)
	objc.Pool(func() {
		_, err := objc.WithError(fails, func(slot uintptr) uintptr { return fails.Send(p, slot) })
		assert.Equal(t, &objc.Error{Domain: "ProbeDomain", Code: 7, Description: "it fails"}, err)
		_, err = objc.WithError(fails, func(uintptr) uintptr { return 0 })
		assert.EqualError(t, err, "-[Probe failsWithError:] failed and said no reason")
		r, err := objc.WithError(fails, func(uintptr) uintptr { return 5 })
		assert.NoError(t, err)
		assert.EqualValues(t, 5, r)
	})
}

// TestBatch: messages arrive in order with all their arguments, also those to results of earlier messages, by
// one call from Go to C.
func TestBatch(t *testing.T) {
	l := load(t)
	p := objc.New("Probe")
	defer objc.Release(p)
	var b objc.Batch
	defer func() { require.NoError(t, b.Close()) }()
	for range 3 {
		objc.Pool(func() {
			b.Reset()
			calls, sent := objc.Transitions()
			first := b.Send(digits, p, 9, 8, 7, 6, 5, 4)
			object := b.Send(another, p)
			second := b.SendTo(digits, object, 1, 2, 3)
			size := b.SendTo(volume, object, b.Size(2, 3, 1<<40))
			third := b.SendTo(half, b.SendTo(another, object))
			require.Equal(t, 6, b.Len())
			require.NoError(t, b.Run())
			assert.EqualValues(t, 987654, first.Value())
			assert.EqualValues(t, 123000, second.Value())
			assert.EqualValues(t, 6<<40, size.Value())
			assert.Equal(t, 3, l.Live("Probe"))
			_ = third
			after, all := objc.Transitions()
			assert.EqualValues(t, 1, after-calls)
			assert.EqualValues(t, 6, all-sent)
		})
	}
	assert.Equal(t, 1, l.Live("Probe"))
}

// TestBatchInPool: the pool is part of the same call, objects that messages return are released at its end
// unless a message retains them, and doubles are returned too.
func TestBatchInPool(t *testing.T) {
	l := load(t)
	p := objc.New("Probe")
	defer objc.Release(p)
	for _, messages := range []int{1, 30_000} { // by one call, and by several
		var b objc.Batch
		n := b.Send(half, p)
		first := b.Send(another, p)
		for range messages {
			b.SendTo(another, first)
		}
		kept := b.SendTo(another, first)
		b.SendTo(objc.RetainObject, kept)
		m := b.SendTo(half, kept)
		calls, _ := objc.Transitions()
		require.NoError(t, b.RunInPool())
		after, _ := objc.Transitions()
		if messages == 1 {
			assert.EqualValues(t, 1, after-calls)
		}
		assert.Equal(t, 0.5, n.Double())
		assert.Equal(t, 0.5, m.Double())
		assert.Equal(t, 2, l.Live("Probe"))
		objc.Release(objc.ID(kept.Value()))
		assert.Equal(t, 1, l.Live("Probe"))
		require.NoError(t, b.Close())
	}
}

// TestLargeBatch: a batch may take several chunks of memory, with messages to results in another chunk;
// filled again it allocates nothing.
func TestLargeBatch(t *testing.T) {
	load(t)
	p := objc.New("Probe")
	defer objc.Release(p)
	var b objc.Batch
	defer func() { require.NoError(t, b.Close()) }()
	const n = 40_000
	refs := make([]objc.Ref, n)
	fill := func() {
		b.Reset()
		object := b.Send(another, p)
		for i := range refs {
			refs[i] = b.SendTo(volume, object, b.Size(uint64(i), 1, 1))
		}
	}
	objc.Pool(func() {
		fill()
		calls, _ := objc.Transitions()
		require.NoError(t, b.Run())
		after, _ := objc.Transitions()
		assert.Less(t, after-calls, uint64(8))
		for i, r := range refs {
			require.EqualValues(t, i, r.Value())
		}
		assert.Zero(t, testing.AllocsPerRun(3, fill))
		data := make([]byte, 3<<20)
		data[len(data)-1] = 7
		at := b.Bytes(data)
		assert.Equal(t, data, objc.Bytes(at, len(data)))
		require.NoError(t, b.Run())
	})
}

// TestThreads: many goroutines send messages, each in its own pools, while the garbage collector runs.
func TestThreads(t *testing.T) {
	load(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 200 {
				objc.Pool(func() {
					s := fmt.Sprintf("thread %d, round %d", i, k)
					assert.Equal(t, s, objc.GoString(objc.String(s)))
					if k%50 == 0 {
						runtime.GC()
					}
				})
			}
		})
	}
	all.Wait()
}

// TestMistakes: the stand-in notes unknown selectors, missing pools and uses of freed objects.
func TestMistakes(t *testing.T) {
	l := open(t)
	p := objc.New("Probe")
	objc.Contents.Send(p)
	leaked := another.SendID(p) // without a pool
	objc.Release(p)
	objc.Release(p)
	half.Send(p)
	objc.Pool(func() { objc.UTF8String.Send(0) })
	assert.Equal(t, []string{
		"Probe does not understand contents",
		"a Probe is autoreleased on a thread without a pool",
		"an object that was freed is released",
		"half is sent to an object that was freed",
	}, l.Failures())
	assert.Equal(t, 1, l.Live("Probe"))
	// The leaked object is released, so that other tests count as many objects as before.
	objc.Pool(func() { objc.Release(leaked) })
	assert.Zero(t, l.Live("Probe"))
}

// TestLoadTwice: a process can load one set of libraries.
func TestLoadTwice(t *testing.T) {
	l := load(t)
	assert.NoError(t, objc.Load(l.Path))
	assert.ErrorContains(t, objc.Load(), "Metal is on Macs alone")
	assert.ErrorContains(t, objc.Load("/nowhere.so"), "is loaded, and a process loads one")
}

// BenchmarkSend compares messages one by one with a batch of them.
func BenchmarkSend(b *testing.B) {
	load(b)
	p := objc.New("Probe")
	defer objc.Release(p)
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			for range 1000 {
				digits.Send(p, 1, 2, 3)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/message")
	})
	b.Run("collected", func(b *testing.B) { // without being sent
		var batch objc.Batch
		defer batch.Close()
		for b.Loop() {
			batch.Reset()
			for range 1000 {
				batch.Send(digits, p, 1, 2, 3)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/message")
	})
	b.Run("batch", func(b *testing.B) {
		var batch objc.Batch
		defer batch.Close()
		for b.Loop() {
			batch.Reset()
			for range 1000 {
				batch.Send(digits, p, 1, 2, 3)
			}
			if err := batch.Run(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/message")
	})
}

package mlxt_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir/mlxt"
)

const hostileBytes = 1 << 20

func graph(body string) string { return "mlxt 1\ngraph g {\n" + body + "\n}\n" }

func repeat(s string) string { return strings.Repeat(s, hostileBytes/len(s)) }

// lines repeats format with 0, 1, 2, … until there are enough bytes.
func lines(format string) string {
	var b strings.Builder
	for i := 0; b.Len() < hostileBytes; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// few repeats format n times.
func few(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// A text of 1 MB can cost only seconds, and memory in proportion to its length.
func TestHostileText(t *testing.T) {
	const kernel = "kernel @k builtin \"k\" args(0 n: constant u32, 1 f: constant f32, 2 h: constant f16)\n"
	const dispatch = "#0 @k (%s) grid threads [1, 1, 1] of [1, 1, 1]"
	const someMemory = "memory %x scratch 64\n"
	ones := repeat("1")
	manyParams := few(64, "param $p%d u32 in [0, 1]\n")
	sum := few(64, " + $p%d")[3:]
	cases := map[string]string{
		"zero bytes":                repeat("\x00"),
		"parentheses":               repeat("("),
		"parentheses in a graph":    graph(repeat("(")),
		"parentheses of arguments":  graph(kernel + "#0 @k " + repeat("(")),
		"brackets":                  graph(kernel + "#0 @k (n = " + repeat("[")),
		"minus signs":               graph(kernel + "#0 @k (n = " + repeat("-")),
		"plus signs":                graph(someMemory + "#0 fill %x[" + repeat("+")),
		"spaces":                    repeat(" "),
		"newlines":                  repeat("\n"),
		"comment":                   "mlxt 1\n//" + repeat("/"),
		"comments":                  repeat("//\n"),
		"open string":               `mlxt 1 graph "` + repeat("a"),
		"backslashes":               `mlxt 1 graph "` + repeat(`\`),
		"escapes":                   `mlxt 1 graph "` + repeat(`\u00e9`) + `" {}`,
		"long name":                 "mlxt 1 graph " + repeat("a") + " {}",
		"long unknown memory":       graph(someMemory + "#0 fill %" + repeat("x")),
		"long number":               "mlxt " + ones,
		"long id":                   graph("#" + ones + " copy"),
		"long float":                graph(kernel + fmt.Sprintf(dispatch, "f = 0."+ones)),
		"long half":                 graph(kernel + fmt.Sprintf(dispatch, "h = 0."+ones)),
		"long large float":          graph(kernel + fmt.Sprintf(dispatch, "f = "+ones)),
		"long exponent":             graph(kernel + fmt.Sprintf(dispatch, "f = 1e"+ones)),
		"long hexadecimal":          graph(kernel + fmt.Sprintf(dispatch, "n = 0x"+ones)),
		"long digest":               graph(`memory %w weight 1 = file "f" offset 0 length 1 sha256 ` + ones),
		"broken base64":             graph(`memory %w weight 1 = blob base64"` + repeat("A") + `*"`),
		"contents of another size":  graph(`memory %w weight 1 = blob base64"` + strings.Repeat("A", hostileBytes) + `"`),
		"inline values":             graph(kernel + fmt.Sprintf(dispatch, "n = ["+repeat("1,")+"1]")),
		"inline bytes":              graph(kernel + fmt.Sprintf(dispatch, `n = hex"`+strings.Repeat("00", hostileBytes/2)+`"`)),
		"open groups":               graph(repeat("group \"\"\n")),
		"closed groups":             graph(strings.Repeat("group \"\"\n", 1e6) + strings.Repeat("end\n", 1e6)),
		"ends":                      graph(repeat("end\n")),
		"barriers":                  graph(repeat("barrier\n")),
		"graphs":                    "mlxt 1\n" + lines("graph g%d {}\n"),
		"graphs of one name":        "mlxt 1\n" + repeat("graph g {}\n"),
		"data":                      "mlxt 1\n" + lines("data d%d = blob base64\"\"\n") + "graph g {}",
		"params":                    graph(lines("param $p%d u32 in [0, 1]\n")),
		"constraints":               graph("param $p u32 in [0, 9]\n" + repeat("require $p <= 5\n")),
		"terms":                     graph("param $p u32 in [0, 9]\n" + someMemory + "#0 fill %x[" + repeat("$p + ") + "$p:64]"),
		"terms of many params":      graph(few(2e5, "param $p%d u32 in [0, 1]\n") + someMemory + "#0 fill %x[" + few(2e5, "$p%d + ") + "1:64] 0"),
		"expressions under bounds":  graph(manyParams + strings.Repeat("require "+sum+" <= 60\n", 64) + "memory %x scratch 64\n" + strings.Repeat("#0 fill %x["+sum+":64] 0\n", 2000)),
		"ranges under bounds":       graph(manyParams + strings.Repeat("require "+sum+" <= 60\n", 64) + someMemory + few(1e5, "#%d fill %%x[$p0:$p1 + 1] 0\n")),
		"memories":                  graph(lines("memory %%m%d scratch 1\n")),
		"memories of one name":      graph(repeat(someMemory)),
		"near misses":               graph(few(3e5, "memory %%memory_with_a_name_%d scratch 1\n") + "#0 fill %memory_with_a_nam_x"),
		"chain of aliases":          graph("memory %m0 scratch 64\n" + chain(1e5) + few(1e5, "#%d copy %%m99999[0:1] -> %%m99998[1:2]\n")),
		"shape":                     graph("memory %x scratch 64 u8[" + repeat("1, ") + "1]"),
		"shape that overflows":      graph("memory %x scratch 64 u8[" + repeat("9, ") + "9]"),
		"kernels":                   graph(lines("kernel @k%d builtin \"k\"\n")),
		"arguments of a kernel":     graph("kernel @k builtin \"k\" args(" + lines("0 a%d: device u8 read, ") + "0 z: device u8 read)"),
		"function constants":        graph("kernel @k builtin \"k\" constants(" + repeat("0: u8 0, ") + "0: u8 0)"),
		"arguments":                 graph(kernel + "#0 @k (" + repeat("n = 1, ")),
		"threadgroup memory":        graph(kernel + "#0 @k () threadgroup(" + repeat("1 = 16, ")),
		"clauses":                   graph(kernel + "#0 @k () " + repeat("op a ")),
		"dispatches of one id":      graph(kernel + strings.Repeat(fmt.Sprintf(dispatch, "")+"\n", hostileBytes/50)),
		"from":                      graph(someMemory + "#0 fill %x 0 from " + repeat("#1, ") + "#1"),
		"edges of one command":      "mlxt 1\ngraph g edges {\n#0 join\n#1 join after " + repeat("#0, ") + "#0\n}\n",
		"edges from nowhere":        "mlxt 1\ngraph g edges {\n" + lines("#%d join after #4000000000\n") + "}\n",
		"edges between joins":       "mlxt 1\ngraph g edges {\n" + lines("#%[1]d join after previous #%[1]d\n") + "}\n",
		"joins of large ids":        "mlxt 1\ngraph g edges {\n" + few(4e5, "#4%09d join after previous #4000000007\n") + "}\n",
		"edges without an ordering": graph(strings.Replace(repeat("#1 join after #0\n"), "1", "2", 1)),
		"reads":                     graph(kernel + someMemory + fmt.Sprintf(dispatch, "") + " effects complete reads " + repeat("%x[0:1], ") + "%x"),
		"dimensions":                graph(kernel + someMemory + fmt.Sprintf(dispatch, "") + " effects complete reads %x[0:1" + repeat("; 1 x 1") + "]"),
		"defects":                   graph(someMemory + lines("#%d fill %%x[0:65] 0\n")),
		"words":                     graph(repeat("word ")),
		"sigils":                    graph(repeat("%")),
		"quoted names that are bad": graph(lines("memory %%\"\\x00%d\" scratch 1\n")),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := processorTime(t)
			m, err := mlxt.Parse(context.Background(), "hostile.mlxt", []byte(text))
			if err == nil {
				err = mlxt.Print(io.Discard, m)
				require.NoError(t, err)
			} else {
				require.Less(t, len(err.Error()), 4*len(text)+4096)
			}
			took := processorTime(t) - start
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes: %v, %d MB allocated", len(text), took, allocated>>20)
			// The bounds are loose, for slow machines. They still catch work that grows with a
			// power of the length.
			require.Less(t, took, 30*time.Second)
			require.Less(t, allocated, uint64(200*(len(text)+1<<20)))
		})
	}
}

// processorTime returns the processor time of this process. Unlike a clock, it does not run while
// other processes have the processors.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func chain(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "memory %%m%d alias %%m%d + 0 size 64\n", i, i-1)
	}
	return b.String()
}

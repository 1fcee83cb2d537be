package frontend_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/tokenizer"
)

// A front end is one package and one row of the commands' table of sources. Here the package is this file: it reads models whose next
// token depends on the last one alone, from files that have a line "BIGRAM" and a table as JSON.

const bigramMagic = "BIGRAM\n"

var bigramSource = frontend.Source{
	Name: "bigram", Holds: "tables of scores",
	Match: func(f *frontend.File) bool { return f.Begins(bigramMagic) },
	Open:  openBigram,
}

type bigram struct {
	name   string
	Tokens []string
	Scores [][]float32 // of the next token, by the last one
}

func openBigram(f *frontend.File) (frontend.Model, error) {
	read := f.Read
	if f.Path != "" {
		read = func() ([]byte, error) { return os.ReadFile(f.Path) }
	}
	data, err := read()
	if err != nil {
		return nil, err
	}
	m := &bigram{name: f.Name}
	if err := json.Unmarshal(data[len(bigramMagic):], m); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	// Everything that is wrong is one error.
	var faults []string
	if n := len(m.Tokens); len(m.Scores) != n || n == 0 {
		faults = append(faults, fmt.Sprintf("%s: %d rows of scores for %d tokens", f.Name, len(m.Scores), n))
	}
	for i, row := range m.Scores {
		if len(row) != len(m.Tokens) {
			faults = append(faults, fmt.Sprintf("%s: row %d has %d scores for %d tokens", f.Name, i, len(row), len(m.Tokens)))
		}
	}
	return m, frontend.Faults(faults)
}

func (m *bigram) Tokenizer() (*tokenizer.Spec, error) {
	s := &tokenizer.Spec{Model: "gpt2", Pre: "smollm", Tokens: m.Tokens}
	return s, s.Check()
}

func (*bigram) Context() int64    { return 2048 }
func (*bigram) Remarks() []string { return nil }
func (*bigram) Close() error      { return nil }

// Record makes the graph of one token. There is none for several: a prompt goes through this one.
func (m *bigram) Record(ctx context.Context, o frontend.Options) (*ir.Module, error) {
	n := int64(len(m.Tokens))
	var table []byte
	for _, row := range m.Scores {
		for _, v := range row {
			table = binary.LittleEndian.AppendUint32(table, math.Float32bits(v))
		}
	}
	s := record.New("decode")
	s.SetContext(ctx)
	tokens := s.Input("tokens", ir.U32, 1)
	s.Param("pos", 0, uint32(m.Context()-1)) // every language model has a position
	logits, token := s.Output("logits", ir.F32, 1, n), s.Output("token", ir.U32, 1)
	row := s.Embed(tokens, record.Dense(s.Weight("scores", ir.NewBlob(table), ir.F32, n, n)))
	s.Argmax(row, record.Into(token))
	s.CopyTo("logits", logits, row)
	g, err := s.Graph()
	if err != nil {
		return nil, err
	}
	spec, err := m.Tokenizer()
	if err != nil {
		return nil, err
	}
	out := &ir.Module{Graphs: []*ir.Graph{g}}
	return out, frontend.Describe(out, spec, frontend.Usual(out))
}

// TestNewSource: the front end above needs nothing else: its module is that of a language model, whose interface names the graph.
func TestNewSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abc.bigram")
	write := func(text string) *frontend.File {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return &frontend.File{Name: "abc.bigram", Path: path, Head: []byte(text)[:16]}
	}
	f := write(bigramMagic + `{"Tokens": ["a","b","c"], "Scores": [[0,1,0],[0,0,1],[1,0,0]]}`)
	require.True(t, bigramSource.Match(f))
	model, err := bigramSource.Open(f)
	require.NoError(t, err)
	defer model.Close()
	module, err := model.Record(t.Context(), frontend.Options{})
	require.NoError(t, err)
	require.NoError(t, module.Check())
	require.True(t, frontend.IsLanguageModel(module))
	x, err := frontend.InterfaceOf(module)
	require.NoError(t, err)
	require.Equal(t, frontend.Interface{Decode: frontend.Step{Graph: "decode", Tokens: "tokens", Position: "pos", Logits: "logits", Token: "token"}}, x)

	_, err = bigramSource.Open(write(bigramMagic + `{"Tokens": ["a","b"], "Scores": [[0,1,0]]}`))
	require.Error(t, err)
	require.Contains(t, err.Error(), "1 rows of scores for 2 tokens")
	require.Contains(t, err.Error(), "row 0 has 3 scores for 2 tokens")
}

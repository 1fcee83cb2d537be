// Package decoder records language models of one kind: a transformer whose layers have attention with rotary positions
// and a gated feed-forward network, or a mixture of such. [Config] says what a model computes, and every front end that
// reads such models fills it; [Weight] is a weight, however its file has it. Weights go by the names that GGUF files use
// ([Config.LayerTensors]), whatever a file calls them.
//
//	d := decoder.New(config, weights, options)
//	module, err := d.Module() // the graphs decode and prefill
//
// An engine that dispatches by itself records with [Decoder.Decode] and [Decoder.Prefill]. [Synthetic] is a model of any
// shape with made-up weights, for measurements.
package decoder

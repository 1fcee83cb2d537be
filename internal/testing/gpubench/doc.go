// Command gpubench measures what a GPU does with graphs and kernels of ours, in one run, and prints
// tables, whose figures docs/benchmarks.md has:
//
//		gpubench --device cuda --write-profile gpu.json --out FOLDER
//
//	  - costs: a copy's bandwidth, what the smallest kernel takes on a stream, in a CUDA graph, with
//	    programmatic dependent launches, and in epochs that fork and join. These make a profile for the
//	    cost model (mlxc optimize --profile).
//	  - kernels: products and norms at the sizes of models, each on so much memory that the caches of the
//	    GPU cannot hold it; and what they move in a second, as a share of what a copy does.
//	  - decode: a language model of SmolLM2-135M's shapes, in each form: recorded, on a stream and as a
//	    graph; with the passes one after another; with each fused kernel one after another. Before that
//	    kernels are measured one by one until the forms have none that was not measured.
//	  - alone: each kernel of that decode by itself, in all layers.
//	  - large: a model with the shapes of one of 8 billion parameters.
//	  - half: both with activations of f16, at longer contexts, and steps that verify guesses.
//	  - fusions: the large one with each pass and each fused kernel, one after another: a token, and a step of eight.
//	  - dense: the large one with weights of f16.
//	  - caches: the large one with a KV cache of f16 and one of 8 bits, at long contexts.
//
// Weights are made up (decoder.Synthetic). A figure that cannot be had is a row that says why, so that a
// run gives what it can; the exit code is 1 then. With --tiny everything is small: to try it on devices
// cpu and softmetal.
package main

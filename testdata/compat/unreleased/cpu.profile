{
  "cores": 2,
  "bandwidth_gbs": 101.782,
  "arithmetic_gops": 6553.6,
  "launch_ns": 109.337,
  "concurrent_launch_ns": 79.6667,
  "barrier_ns": 0.829787,
  "command_buffer_ns": 9.33333,
  "event_ns": 1250,
  "encode_ns": 160,
  "latency_ns": 0,
  "kernels": {

  },
  "device": "linux/amd64, pure Go and avx512 assembly",
  "litmus": {"fences": false, "indirect_barriers": false},
  "plans": {
    "cpu": {"encode_ns": 0, "launch_ns": 79.6667, "barrier_ns": 0.829787, "replay_ns": 0}
  }
}

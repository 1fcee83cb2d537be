{
  "cores": 2,
  "bandwidth_gbs": 103.511,
  "arithmetic_gops": 6553.6,
  "launch_ns": 84.4911,
  "concurrent_launch_ns": 77.7381,
  "barrier_ns": 0.425532,
  "command_buffer_ns": 0,
  "event_ns": 1250,
  "encode_ns": 160,
  "latency_ns": 0,
  "kernels": {

  },
  "device": "linux/amd64, pure Go and avx512 assembly",
  "litmus": {"fences": false, "indirect_barriers": false},
  "plans": {
    "cpu": {"encode_ns": 0, "launch_ns": 77.7381, "barrier_ns": 0.425532, "replay_ns": 0}
  }
}

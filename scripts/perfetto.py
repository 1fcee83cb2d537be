#!/usr/bin/env python3
"""Opens a trace of `mlxreplay profile --trace` with Perfetto's trace processor, and prints what it reads.

    pip install perfetto
    scripts/perfetto.py trace.json

Nothing else needs this: the tests hold traces against the format by a reader of their own. It is for whoever has the
processor, which the Python package fetches when it is first used, or which PERFETTO_TRACE_PROCESSOR names. The exit code is 1
where the processor reports that it dropped or misread something, or the sums of kernels are not those of the trace's text.
"""
import collections
import json
import os
import sys

try:
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
except ImportError:
    sys.exit("the Python package perfetto is missing: pip install perfetto")

if len(sys.argv) != 2:
    sys.exit(__doc__)
config = TraceProcessorConfig(bin_path=os.environ.get("PERFETTO_TRACE_PROCESSOR"))
processor = TraceProcessor(trace=sys.argv[1], config=config)

wrong = list(processor.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0"))
for row in wrong:
    print(f"the trace processor counts {row.value} of {row.name}")

# By kernel, in nanoseconds: as the processor has it, and as the text says it.
read = {
    row.kernel: (row.count, row.dur)
    for row in processor.query(
        "select extract_arg(arg_set_id, 'args.kernel') as kernel, count(*) as count, sum(dur) as dur from slice"
        " where category = 'command' and extract_arg(arg_set_id, 'args.kernel') is not null group by 1 order by 3 desc"
    )
}
said = collections.defaultdict(lambda: [0, 0])
with open(sys.argv[1], encoding="utf-8") as file:
    for event in json.load(file)["traceEvents"]:
        if event.get("cat") == "command" and "kernel" in event.get("args", {}):
            said[event["args"]["kernel"]][0] += 1
            said[event["args"]["kernel"]][1] += round(1000 * event["dur"])
for kernel, (count, dur) in read.items():
    print(f"{dur / 1000:12.1f} µs  {count:7d}  {kernel}")
# The processor may round each time to another nanosecond.
differ = {
    k
    for k in said.keys() | read.keys()
    if said.get(k, (0, 0))[0] != read.get(k, (0, 0))[0] or abs(said.get(k, (0, 0))[1] - read.get(k, (0, 0))[1]) > said.get(k, (0, 0))[0]
}
for kernel in sorted(differ):
    print(f"{kernel}: the trace processor has {read.get(kernel)}, the text {said.get(kernel)}")
for row in processor.query("select count(*) as flows from flow"):
    print(f"{row.flows} flows")
sys.exit(1 if wrong or differ else 0)

//! The engine of engine.c in Rust: it writes the same log, byte for byte.
//!
//! ```sh
//! cc -c -x c -DMLXREC_IMPLEMENTATION ../../capture/mlxrec.h -o mlxrec.o
//! rustc --edition 2021 -O -C link-arg=mlxrec.o engine.rs && ./engine engine.metal engine.mlxtrace
//! ```

#[path = "../../capture/mlxrec.rs"]
mod mlxrec;

use std::io::Error;

const E: u32 = 256;
const F: u32 = 512;
const LAYERS: usize = 2;
const CONTEXT: u64 = 64;
const STEPS: u32 = 4;

fn halves(pattern: u16) -> Vec<u8> {
    (0..E * F).flat_map(|i| (pattern + (i * 7 % 61) as u16).to_le_bytes()).collect()
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 3 {
        eprintln!("usage: engine engine.metal engine.mlxtrace");
        std::process::exit(2);
    }
    let (e, f) = (u64::from(E), u64::from(F));
    let mut r = mlxrec::Recorder::open(&arguments[2], "engine")?;
    let lib = r.source("engine.metal", &std::fs::read_to_string(&arguments[1])?, None);
    let [rms, mv, mean, silu_mul, add] = ["my_rms", "my_mv", "my_mean", "my_silu_mul", "my_add"].map(|name| r.kernel(lib, name, &[]));
    let (x, y) = (r.buffer(4 * e, "x", Some("input"), None), r.buffer(4 * e, "y", Some("output"), None));
    let [h, t, d, g, u, s] = [("h", e), ("t", e), ("d", e), ("g", f), ("u", f), ("s", f)].map(|(name, n)| r.buffer(4 * n, name, None, None));
    let layers: Vec<[u64; 5]> = (0..LAYERS)
        .map(|l| {
            let norm = r.buffer(4 * e, &format!("norm{l}"), None, Some(&floats((0..E).map(|_| 1.0))));
            let cache = r.buffer(4 * e * CONTEXT, &format!("cache{l}"), None, None);
            let [gate, up, down] =
                [("gate", 0x2400), ("up", 0xa400), ("down", 0x2800)].map(|(name, p)| r.buffer(2 * e * f, &format!("{name}{l}"), None, Some(&halves(p))));
            [norm, cache, gate, up, down]
        })
        .collect();
    for pos in 0..STEPS {
        r.step("step", false);
        r.param("pos", pos);
        r.write(x, 0, &floats((0..E).map(|i| ((i * 5 + pos * 3) % 17) as f32 / 8.0 - 1.0)));
        r.copy((x, 0), (h, 0), 4 * e);
        for &[norm, cache, gate, up, down] in &layers {
            let at = 4 * e * u64::from(pos);
            r.kernel_is(rms).bind(0, h, 0).bind(1, norm, 0).bind(2, cache, at).bytes(3, &words(&[E])).bytes(4, &1e-5f32.to_le_bytes());
            r.threadgroups([1, 1, 1], [256, 1, 1]);
            r.kernel_is(mean).bind(0, cache, 0).bind(1, t, 0).bytes(2, &words(&[E, pos + 1])).threads([E, 1, 1], [256, 1, 1]);
            r.kernel_is(mv).bind(0, gate, 0).bind(1, t, 0).bind(2, g, 0).bytes(3, &words(&[F, E])).threadgroups([F, 1, 1], [32, 1, 1]);
            r.bind(0, up, 0).bind(2, u, 0).threadgroups([F, 1, 1], [32, 1, 1]);
            r.kernel_is(silu_mul).bind(0, g, 0).bind(1, u, 0).bind(2, s, 0).threads([F, 1, 1], [256, 1, 1]);
            r.kernel_is(mv).bind(0, down, 0).bind(1, s, 0).bind(2, d, 0).bytes(3, &words(&[E, F])).threadgroups([E, 1, 1], [32, 1, 1]);
            r.kernel_is(add).bind(0, h, 0).bind(1, d, 0).bind(2, h, 0).threads([E, 1, 1], [256, 1, 1]);
        }
        r.copy((h, 0), (y, 0), 4 * e);
        r.end();
    }
    r.close()
}

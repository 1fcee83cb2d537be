"""Fourier transforms: by Stockham's steps, Rader's and Bluestein's algorithms, and in four steps."""
import numpy as np

from cases import Group

RADICES = (13, 11, 8, 7, 6, 5, 4, 3, 2)
WHY = "twiddle factors and sums of float32 in each of a few steps, against the largest result"


def plan(n):
    """How often each radix is used."""
    first, steps = n, [0] * len(RADICES)
    for i, r in enumerate(RADICES):
        if first & (first - 1) == 0 and first < 512 and r > 4:
            continue
        while n > 1 and n % r == 0:
            steps[i] += 1
            n //= r
    assert n == 1
    return steps


def elements(*plans):
    used = sorted({r for p in plans for r, s in zip(RADICES, p) if s})
    if 7 in used and (11 in used or 13 in used):
        return 7
    if len(used) == 1:
        return used[0]
    if len(used) == 2 and (11 in used or 13 in used):
        return sum(used) // 2
    return used[1]


def constants(size, steps, per, inverse, rader=None, m=1):
    c = {"inv_": inverse, "is_power_of_2_": size & (size - 1) == 0, "elems_per_thread_": per, "rader_m_": m, "use_bluestein_twiddle_table_": 0}
    for r, s, q in zip(RADICES, steps, rader or [0] * 9):
        c[f"radix_{r}_steps_"], c[f"rader_{r}_steps_"] = s, q
    return c


def power(n):
    p = 1
    while p < n:
        p *= 2
    return p


def launch(c, size, per, rows, real=False, least=1):
    batch = max(256 // size, least)
    groups = -(-rows // batch)
    if real:
        groups = -(-groups // 2)
    c.groups((groups, 1, 1), (1, batch, -(-size // per)))


def tolerated(y):
    return {"abs": float(np.abs(y).max()) * 1e-6, "rel": 2e-6, "why": WHY}


def complexes(c, rows, n):
    return c.draw("in", "c64", (rows, n), -64, 64, 1 / 16).astype(np.complex128)


def root(p):
    for r in range(2, p):
        if len({pow(r, k, p) for k in range(p - 1)}) == p - 1:
            return r


def transforms():
    g = Group("fft")
    for n, rows in ((256, 3), (60, 5), (1024, 2), (343, 1), (2048, 1)):
        for inverse in (0, 1):
            steps = plan(n)
            per = elements(steps)
            c = g.case(f"fft_mem_{power(max(256 // n, 1) * n)}_float2_float2", f"{rows} of {n}{' back' if inverse else ''}", **constants(n, steps, per, inverse))
            x = complexes(c, rows, n)
            y = np.fft.ifft(x) if inverse else np.fft.fft(x)
            c.want("out", "c64", y, **tolerated(y))
            c.value("n", "i32", n)
            c.value("batch_size", "i32", rows)
            launch(c, n, per, rows)
    for n, rows in ((512, 3), (90, 4)):
        steps = plan(n)
        per = elements(steps)
        size = power(max(256 // n, 1) * n)
        c = g.case(f"fft_mem_{size}_float_float2", f"{rows} of {n}", **constants(n, steps, per, 0))
        x = np.float64(c.draw("in", "f32", (rows, n), -64, 64, 1 / 16))
        y = np.fft.rfft(x)
        c.want("out", "c64", y, **tolerated(y))
        c.value("n", "i32", n)
        c.value("batch_size", "i32", rows)
        launch(c, n, per, rows, True)
        c = g.case(f"fft_mem_{size}_float2_float", f"{rows} of {n}", **constants(n, steps, per, 1))
        z = np.complex64(np.fft.rfft(np.float64(np.arange(rows * n).reshape(rows, n) * 37 % 101)))
        z = c.give("in", "c64", z).astype(np.complex128)
        y = np.fft.irfft(z, n)
        c.want("out", "f32", y, **tolerated(y))
        c.value("n", "i32", n)
        c.value("batch_size", "i32", rows)
        launch(c, n, per, rows, True)
    for n, prime, rows in ((17, 17, 4), (34, 17, 3), (19 * 12, 19, 2)):
        for inverse in (0, 1):
            m = n // prime
            steps, rader = plan(m), plan(prime - 1)
            per = elements(steps, rader)
            c = g.case(f"rader_fft_mem_{power(max(256 // n, 1) * n)}_float2_float2", f"{rows} of {n}{' back' if inverse else ''}", **constants(n, steps, per, inverse, rader, m))
            x = complexes(c, rows, n)
            r = root(prime)
            back = pow(r, prime - 2, prime)
            q = np.array([pow(r, k, prime) for k in range(prime - 1)])
            minus = np.array([pow(back, k, prime) for k in range(prime - 1)])
            c.give("raders_b_q", "c64", np.fft.fft(np.exp(-2j * np.pi * minus / prime)))
            c.give("raders_g_q", "i16", q)
            c.give("raders_g_minus_q", "i16", minus)
            y = np.fft.ifft(x) if inverse else np.fft.fft(x)
            c.want("out", "c64", y, **tolerated(y))
            c.value("n", "i32", n)
            c.value("batch_size", "i32", rows)
            c.value("rader_n", "i32", prime)
            launch(c, n, per, rows)
    for n, rows in ((47, 3), (167, 2)):
        for inverse in (0, 1):
            size = power(2 * n - 1)
            steps = plan(size)
            per = elements(steps)
            c = g.case(f"bluestein_fft_mem_{power(max(256 // size, 1) * size)}_float2_float2", f"{rows} of {n}{' back' if inverse else ''}", **constants(size, steps, per, inverse))
            x = complexes(c, rows, n)
            k = np.arange(-n + 1, n)
            w = np.zeros(size, complex)
            w[:2 * n - 1] = np.exp(1j * np.pi * k**2 / n)
            c.give("w_q", "c64", np.fft.fft(w))
            c.give("w_k", "c64", np.exp(-1j * np.pi * np.arange(n) ** 2 / n))
            y = np.fft.ifft(x) if inverse else np.fft.fft(x)
            c.want("out", "c64", y, **{**tolerated(y), "abs": float(np.abs(y).max()) * 4e-6})
            c.value("length", "i32", n)
            c.value("n", "i32", size)
            c.value("batch_size", "i32", rows)
            launch(c, size, per, rows)
    # In two halves: columns first, then rows of what they left, with the twiddle factors between.
    n1, n2 = 128, 64
    for inverse in (0, 1):
        for step, n in ((0, n1), (1, n2)):
            steps = plan(n)
            per = elements(steps)
            batch = max(256 // n, 4)
            c = g.case(f"four_step_mem_{power(batch * n)}_float2_float2_{step}_false", f"{n1} by {n2}{' back' if inverse else ''}", **constants(n, steps, per, inverse))
            x = complexes(c, 1, n1 * n2).reshape(n1, n2)
            # The way back is the conjugate of the way there, of the conjugate: one of both in each step.
            if step == 0:
                y = np.fft.fft(x.conj() if inverse else x, axis=0)
                y = y * np.exp(-2j * np.pi * np.arange(n1)[:, None] * np.arange(n2)[None, :] / (n1 * n2))
            else:  # what step 0 left, of which each row has one frequency of the columns
                y = np.fft.fft(x, axis=1).T
                y = y.conj() / (n1 * n2) if inverse else y
            c.want("out", "c64", y, **{**tolerated(y), "abs": float(np.abs(y).max()) * 2e-6})
            c.value("n1", "i32", n1)
            c.value("n2", "i32", n2)
            c.value("batch_size", "i32", n1 * n2 // n)
            launch(c, n, per, n1 * n2 // n, False, 4)
    c = g.case("generate_bluestein_twiddles")
    y = np.concatenate([np.exp(-2j * np.pi * np.arange(n // 8) / n) for n in (64, 512, 4096)])
    c.want("twiddles", "c64", y, abs=1e-6, why="fast sin and cos of an angle below one")
    c.grid(len(y), 73)
    return g


GROUPS = (transforms,)

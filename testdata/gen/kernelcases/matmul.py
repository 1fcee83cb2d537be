"""Products of matrices and vectors: gemv and its kin, and steel's gemm in all its forms."""
import numpy as np

from cases import MLX, Group


def small(c, name, t, shape):
    """Values of which sums of some hundred products are exact in the type itself."""
    r = {"f32": 8, "f16": 2, "bf16": 1, "c64": 4}[t]
    x = c.draw(name, t, shape, -r, r)
    return x.astype(np.complex128) if t == "c64" else np.float64(x)


def gemv_case(g, t, out, inner, shape, batch=(), axpby=False, transposed=False, note=""):
    bm, bn, sm, sn, tm, tn = shape
    nc = int(len(batch) > 1)
    c = g.case(f"gemv_{'t_' if transposed else ''}{MLX[t]}_bm{bm}_bn{bn}_sm{sm}_sn{sn}_tm{tm}_tn{tn}_nc{nc}_axpby{int(axpby)}", f"{out} by {inner}{note}")
    batch = batch or (1,)
    ld = (out if transposed else inner) + 3  # rows with something behind
    rows = inner if transposed else out
    m = small(c, "mat", t, (*batch, rows, ld))
    v = small(c, "in_vec", t, (*batch, inner))
    w = m[..., :out] if transposed else m[..., :inner]
    y = np.einsum("...ko,...k->...o" if transposed else "...ok,...k->...o", w, v)
    if axpby:
        b = small(c, "bias", t, (*batch, out, 2))[..., 0]
        y = 2 * y + 3 * b
        c.value("alpha", "f32", 2)
        c.value("beta", "f32", 3)
        c.value("bias_stride", "i32", 2)
    c.want("out_vec", t, y)
    c.value("in_vec_size", "i32", inner)
    c.value("out_vec_size", "i32", out)
    c.value("marix_ld", "i32", ld)

    def strides(size):
        s = [size]
        for n in batch[:0:-1]:
            s.insert(0, s[0] * n)
        return s

    if nc:
        c.value("batch_ndim", "i32", len(batch))
        c.value("batch_shape", "i32", *batch)
    c.value("vector_batch_stride", "i64", *strides(inner))
    c.value("matrix_batch_stride", "i64", *strides(rows * ld))
    if axpby:
        c.value("bias_batch_stride", "i64", *strides(2 * out))
    per = bn * sn * tn if transposed else bm * sm * tm
    c.groups((-(-out // per), 1, np.prod(batch)), (32, bn, bm))


def gather(c, t, kind, out, inner, rows, ld, transposed, M=1):
    """Arguments of the gather forms: matrices and vectors are chosen by indices."""
    mats, vecs, n = 3, 4, 6
    m = small(c, "mat", t, (mats, rows, ld))
    v = small(c, "in_vec", t, (vecs, M, inner))
    vi, mi = np.arange(n) * 3 % vecs, np.arange(n) * 2 % mats
    c.give("vec_indices", "u32", vi)
    c.give("mat_indices", "u32", mi)
    w = m[:, :, :out] if transposed else m[:, :, :inner]
    y = np.stack([v[i] @ (w[j] if transposed else w[j].T) for i, j in zip(vi, mi)])
    c.want("out_vec", t, y)
    c.value("in_vec_size", "i32", inner)
    c.value("out_vec_size", "i32", out)
    c.value("batch_ndim", "i32", 1)
    c.value("batch_shape", "i32", n)
    c.value("index_batch_strides", "i64", 1, 1)
    c.value("vector_batch_ndim", "i32", 1)
    c.value("vector_batch_shape", "i32", vecs)
    c.value("vector_batch_stride", "i64", M * inner)
    c.value("matrix_batch_ndim", "i32", 1)
    c.value("matrix_batch_shape", "i32", mats)
    c.value("matrix_batch_stride", "i64", rows * ld)
    return n


def gemvs():
    g = Group("gemv")
    for t, out, inner, shape, batch, axpby in (
        ("f32", 67, 200, (4, 1, 1, 32, 4, 4), (), False), ("f32", 3, 50, (4, 1, 1, 32, 1, 4), (), True), ("f16", 40, 129, (4, 1, 1, 32, 4, 4), (3,), True), ("bf16", 33, 64, (8, 1, 1, 32, 4, 4), (2, 2), False),
        ("f32", 21, 33, (1, 1, 8, 4, 4, 4), (), False), ("f16", 9, 61, (1, 1, 8, 4, 1, 4), (2,), False), ("c64", 18, 40, (4, 1, 1, 32, 4, 4), (), False), ("f32", 12, 700, (1, 8, 1, 32, 1, 4), (), False),
        ("bf16", 16, 128, (4, 1, 1, 32, 4, 4), (), True), ("f32", 4, 1100, (1, 8, 1, 32, 4, 4), (), True),
    ):
        gemv_case(g, t, out, inner, shape, batch, axpby)
    for t, out, inner, shape, batch, axpby in (
        ("f32", 67, 200, (1, 2, 8, 4, 4, 4), (), False), ("f32", 3, 50, (1, 2, 8, 4, 4, 1), (), True), ("f16", 140, 129, (1, 4, 8, 4, 4, 4), (3,), True), ("bf16", 300, 64, (1, 16, 8, 4, 4, 4), (2, 2), False),
        ("f32", 530, 33, (1, 16, 4, 8, 4, 4), (), False), ("c64", 18, 40, (1, 2, 8, 4, 4, 4), (), False),
    ):
        gemv_case(g, t, out, inner, shape, batch, axpby, transposed=True)
    for t, transposed, out, inner, shape in (("f32", 0, 37, 130, (4, 1, 1, 32, 4, 4)), ("f16", 0, 3, 70, (4, 1, 1, 32, 1, 4)), ("bf16", 0, 40, 50, (8, 1, 1, 32, 4, 4)),
                                             ("f32", 1, 37, 130, (1, 2, 8, 4, 4, 4)), ("f16", 1, 3, 70, (1, 2, 8, 4, 4, 1)), ("bf16", 1, 70, 50, (1, 4, 8, 4, 4, 4))):
        bm, bn, sm, sn, tm, tn = shape
        c = g.case(f"gemv_{'t_' if transposed else ''}gather_{MLX[t]}_bm{bm}_bn{bn}_sm{sm}_sn{sn}_tm{tm}_tn{tn}")
        rows, ld = (inner, out) if transposed else (out, inner)
        n = gather(c, t, "gemv", out, inner, rows, ld, transposed)
        c.value("marix_ld", "i32", ld)
        per = bn * sn * tn if transposed else bm * sm * tm
        c.groups((-(-out // per), 1, n), (32, bn, bm))
    # Several vectors at once.
    k = 0
    for nv in (2, 3, 4, 5):
        for kl in (16, 32):
            t = ("f16", "bf16")[k // 2 % 2]
            name = f"gemv_wide_{MLX[t]}_nv{nv}_kl{kl}"
            batch, axpby = k % 2, k % 3 == 0
            k += 1
            M, out, inner, n = nv * 2 - 1, 21, 96 + 32 * kl // 8, 4 if batch else 2
            c = g.case(name, f"{M} vectors", gemv_wide_has_batch=batch, gemv_wide_do_axpby=axpby)
            ld = inner + 4
            m = small(c, "mat", t, (n, out, ld))[..., :inner]
            v = small(c, "in_vec", t, (n, M, inner))
            y = v @ m.transpose(0, 2, 1)
            if axpby:
                b = small(c, "bias", t, (n, M, out))
                y = 2 * y + 3 * b
                c.value("alpha", "f32", 2)
                c.value("beta", "f32", 3)
                c.value("bias_batch_stride", "i64", *((2 * M * out, M * out) if batch else (M * out,)))
                c.value("bias_ld", "i32", out)
                c.value("bias_fd", "i32", 1)
            c.want("out_vec", t, y)
            for key, x in (("in_vec_size", inner), ("out_vec_size", out), ("M", M), ("matrix_ld", ld), ("vector_ld", inner)):
                c.value(key, "i32", x)
            c.value("batch_ndim", "i32", 2 if batch else 1)
            c.value("batch_shape", "i32", *((2, 2) if batch else (n,)))
            c.value("vector_batch_stride", "i64", *((2 * M * inner, M * inner) if batch else (M * inner,)))
            c.value("matrix_batch_stride", "i64", *((2 * out * ld, out * ld) if batch else (out * ld,)))
            rows = 32 // kl * (kl // 8)
            c.groups((-(-M // nv), -(-out // rows), n), (32 * (kl // 8), 1, 1))
            c = g.case(name.replace("wide", "wide_gather"), f"{M} vectors", gemv_wide_has_batch=0, gemv_wide_do_axpby=0)
            n = gather(c, t, "wide", out, inner, out, inner, 0, M)
            small(c, "bias", t, 1)  # bound and not read
            c.value("M", "i32", M)
            c.value("matrix_ld", "i32", inner)
            c.value("vector_ld", "i32", inner)
            c.groups((-(-M // nv), -(-out // rows), n), (32 * (kl // 8), 1, 1))
    # Blocks of operands and results are masked.
    for k, (t, transposed, masks, out, inner, block, shape) in enumerate((
        ("f32", 0, ("bool", "bool"), 70, 100, 32, (2, 1, 4, 8, 4, 4)), ("f16", 0, ("f16", "f16"), 64, 96, 32, (2, 1, 4, 8, 4, 4)), ("f32", 0, (None, "bool"), 45, 64, 32, (2, 1, 4, 8, 4, 4)), ("bf16", 0, ("bool", None), 64, 33, 64, (2, 1, 2, 16, 4, 4)),
        ("f32", 1, ("bool", "bool"), 70, 100, 32, (1, 2, 8, 4, 4, 4)), ("f16", 1, ("bool", "f16"), 64, 96, 32, (1, 2, 8, 4, 4, 4)), ("f32", 1, (None, "f32"), 45, 64, 32, (1, 2, 8, 4, 4, 4)), ("bf16", 1, ("bf16", "bool"), 132, 64, 64, (1, 2, 8, 4, 8, 4)),
    )):
        bm, bn, sm, sn, tm, tn = shape
        word = lambda m: MLX[m] if m else "nomask"
        c = g.case(f"gemv_{'t_' if transposed else ''}outmask_{word(masks[0])}_opmask_{word(masks[1])}_{MLX[t]}_bm{bm}_bn{bn}_sm{sm}_sn{sn}_tm{tm}_tn{tn}_nc0", f"{out} by {inner}")
        rows, columns = (inner, out) if transposed else (out, inner)
        m = small(c, "mat", t, (2, rows, columns))
        v = small(c, "in_vec", t, (2, inner))
        strides, batches = [], []

        def mask(name, dtype, a, b, of):
            shape = (2, -(-a // block), -(-b // block))
            x = np.float64(c.draw(name, dtype, shape, 0, 1 if dtype == "bool" else 2))
            strides.extend([1, shape[2]])
            batches.append(shape[1] * shape[2])
            return x.repeat(block, 1).repeat(block, 2)[:, :a, :b]

        scale = mask("out_mask", masks[0], out, 1, None)[..., 0] if masks[0] else 1
        if masks[1]:
            m = m * mask("mat_mask", masks[1], rows, columns, None)
            v = v * mask("vec_mask", masks[1], inner, 1, None)[..., 0]
        y = np.einsum("bko,bk->bo" if transposed else "bok,bk->bo", m, v) * scale
        c.want("out_vec", t, y)
        for key, x in (("in_vec_size", inner), ("out_vec_size", out), ("marix_ld", columns), ("batch_ndim", 1)):
            c.value(key, "i32", x)
        c.value("vector_batch_stride", "i64", inner)
        c.value("matrix_batch_stride", "i64", rows * columns)
        c.value("mask_strides", "i32", *strides)
        c.value("mask_batch_strides", "i64", *batches)
        per = bn * sn * tn if transposed else bm * sm * tm
        c.groups((-(-out // per), 1, 2), (32, bn, bm))
    return g



def gemm_params(c, m, n, k, lda, ldb, ldd, bm, bn, bk, a=0, b=0, d=0, swizzle=0, ndim=0, name="params"):
    tiles_n, tiles_m = -(-n // bn), -(-m // bm)
    c.value(name, "8i3q3i4x", m, n, k, lda, ldb, ldd, tiles_n, tiles_m, a, b, d, swizzle, k // bk, ndim)
    tile = 1 << swizzle
    return tiles_n * tile, -(-tiles_m // tile)


def operand(c, name, t, batch, rows, columns, transposed):
    """A matrix as it lies, and the distance of its rows."""
    if transposed:
        return np.swapaxes(small(c, name, t, (*batch, columns, rows)), -1, -2), rows
    return small(c, name, t, (*batch, rows, columns)), columns


def gemms():
    g = Group("gemm")
    letters = ("nn", "nt", "tn", "tt")
    k_ = 0
    for t, bm, bn, bk, wm, wn in (("f32", 32, 32, 16, 2, 2), ("f16", 64, 64, 16, 2, 2), ("bf16", 64, 32, 32, 2, 2), ("f32", 64, 32, 8, 4, 1), ("f16", 32, 64, 16, 1, 2), ("c64", 32, 32, 16, 2, 2), ("bf16", 64, 64, 16, 1, 2)):
        for form in range(2 if t != "f32" else 4):
            letter = letters[(k_ + form) % 4]
            m, n, k = ((bm, bn * 2, bk * 2), (bm + 7, bn + 13, 37), (bm * 2, bn - 3, bk), (5, bn, bk * 3 - 1))[(k_ + form) % 4]
            batch = ((), (2,), (2, 2))[(k_ + form) % 3]
            source = (k_ + form) % 3 if t != "c64" else 0  # MLX's loses the imaginary part of a complex sum
            k_ += 1
            name = f"steel_gemm_fused_{letter}_{MLX[t]}_{MLX[t]}_bm{bm}_bn{bn}_bk{bk}_wm{wm}_wn{wn}"
            if name in {x.kernel for x in g.cases}:
                continue
            c = g.case(name, f"{m}x{n}x{k}", has_batch=len(batch) > 1, use_out_source=source > 0, do_axpby=source > 1, align_M=m % bm == 0, align_N=n % bn == 0, align_K=k % bk == 0)
            a, lda = operand(c, "A", t, batch, m, k, letter[0] == "t")
            b, ldb = operand(c, "B", t, batch, k, n, letter[1] == "t")
            y = a @ b
            count = int(np.prod(batch, dtype=int))
            if source:
                z = small(c, "C", t, (*batch, m, n))
                y = 2 * y + 3 * z if source > 1 else y + z
                c.value("addmm_params", "iiqff", n, 1, m * n, 2 if source > 1 else 1, 3 if source > 1 else 1)
            c.want("D", t, y)
            swizzle = form % 2
            nx, ny = gemm_params(c, m, n, k, lda, ldb, n, bm, bn, bk, m * k, k * n, m * n, swizzle, len(batch))
            if len(batch) > 1:
                c.value("batch_shape", "i32", *batch)
                c.value("batch_strides", "i64", *[s for size in (m * k, k * n) + ((m * n,) if source else ()) for s in (2 * size, size)])
            c.groups((nx, ny, count), (32, wn, wm))
    for t, letter, m, n, k, parts in (("f32", "nn", 32, 32, 128, 4), ("f16", "nt", 20, 45, 101, 3), ("bf16", "tn", 33, 16, 96, 3), ("f32", "tt", 40, 10, 75, 2), ("f16", "nn", 16, 64, 64, 2)):
        bm, bn, bk = 16 if m < 40 else 32, 16 if n < 40 else 32, 16
        aligned = lambda x: "t" if x else "n"
        out = "f32"
        name = f"steel_gemm_splitk_{letter}_{MLX[t]}_{MLX[out]}_bm{bm}_bn{bn}_bk{bk}_wm2_wn2_MN_{aligned(m % bm == 0 and n % bn == 0)}aligned_K_{aligned(k % bk == 0)}aligned"
        c = g.case(name, f"{m}x{n}x{k} in {parts}")
        a, lda = operand(c, "A", t, (), m, k, letter[0] == "t")
        b, ldb = operand(c, "B", t, (), k, n, letter[1] == "t")
        iterations = k // bk // parts
        size = iterations * bk
        y = np.stack([a[:, i * size:(i + 1) * size if i < parts - 1 else k] @ b[i * size:(i + 1) * size if i < parts - 1 else k] for i in range(parts)])
        c.want("C", out, y)
        tiles_n, tiles_m = -(-n // bn), -(-m // bm)
        c.value("params", "13i", m, n, k, lda, ldb, n, tiles_n, tiles_m, parts, m * n, size, 0, iterations)
        c.groups((tiles_n, tiles_m, parts), (32, 2, 2))
    for t, out in (("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("c64", "c64")):
        for axpby in (False, True):
            m, n, parts = 7, 19, 3
            c = g.case(f"steel_gemm_splitk_accum_{MLX[t]}_{MLX[out]}{'_axbpy' if axpby else ''}")
            x = small(c, "C_split", out, (parts, m, n))
            y = x.sum(0)
            if axpby:
                z = small(c, "C", t, (m, n))
                y = 2 * y + 3 * z
                c.value("ldc", "i32", n)
                c.value("fdc", "i32", 1)
                c.value("alpha", "f32", 2)
                c.value("beta", "f32", 3)
            c.want("D", t, y)
            c.value("k_partitions", "i32", parts)
            c.value("partition_stride", "i32", m * n)
            c.value("ldd", "i32", n)
            c.grid((n, m), (8, 4))
    for t, letter, bm, bn, bk, wm, wn, m, n, k, batched in (("f32", "nn", 32, 32, 16, 2, 2, 40, 32, 32, 0), ("f16", "nt", 64, 64, 16, 2, 2, 20, 70, 30, 1), ("bf16", "tn", 64, 32, 32, 2, 2, 64, 32, 50, 0), ("f32", "tt", 32, 64, 16, 1, 2, 32, 64, 16, 1)):
        c = g.case(f"steel_gather_mm_{letter}_{MLX[t]}_{MLX[t]}_bm{bm}_bn{bn}_bk{bk}_wm{wm}_wn{wn}", f"{m}x{n}x{k}", has_batch=batched, align_M=m % bm == 0, align_N=n % bn == 0, align_K=k % bk == 0)
        a, lda = operand(c, "A", t, (3,), m, k, letter[0] == "t")
        b, ldb = operand(c, "B", t, (4,), k, n, letter[1] == "t")
        ia, ib = np.arange(6) % 3, np.arange(6) * 3 % 4
        c.give("lhs_indices", "u32", ia)
        c.give("rhs_indices", "u32", ib)
        c.want("C", t, np.stack([a[i] @ b[j] for i, j in zip(ia, ib)]))
        nx, ny = gemm_params(c, m, n, k, lda, ldb, n, bm, bn, bk, 1, 1, m * n, 0, 2 if batched else 1)
        c.value("indices_shape", "i32", *((2, 3) if batched else (6,)))
        c.value("lhs_strides", "i64", *((3, 1) if batched else (1,)))
        c.value("rhs_strides", "i64", *((3, 1) if batched else (1,)))
        for side, count, size in (("a", 3, m * k), ("b", 4, k * n)):
            c.value("batch_ndim_" + side, "i32", 1)
            c.value("batch_shape_" + side, "i32", count)
            c.value("batch_strides_" + side, "i64", size)
        c.groups((nx, ny, 6), (32, wn, wm))
    for t, letter, n, k in (("f32", "nn", 70, 32), ("f16", "nt", 64, 41), ("bf16", "nn", 128, 16)):
        bm, bn, bk, wm, wn, m, experts = 16, 64, 16, 1, 2, 75, 5
        sizes = (20, 0, 33, 21, 1)  # rows of each expert
        index = np.repeat(np.arange(experts), sizes)
        c = g.case(f"steel_gather_mm_rhs_{letter}_{MLX[t]}_{MLX[t]}_bm{bm}_bn{bn}_bk{bk}_wm{wm}_wn{wn}", f"{m}x{n}x{k}", align_N=n % bn == 0, align_K=k % bk == 0)
        a, lda = operand(c, "A", t, (), m, k, False)
        b, ldb = operand(c, "B", t, (experts,), k, n, letter[1] == "t")
        c.give("offsets", "i32", np.searchsorted(index, np.arange(experts)))
        c.want("C", t, np.stack([a[i] @ b[e] for i, e in enumerate(index)]))
        gemm_params(c, m, n, k, lda, ldb, n, bm, bn, bk, 0, k * n, 0)
        c.value("num_groups", "i32", experts)
        c.groups((-(-n // bn), -(-m // bm) + experts - 1), (32, wn, wm))
    for m, groups in ((75, 5), (33, 40)):
        index = np.sort(np.arange(m) * 13 % groups)
        c = g.case("gather_mm_offsets", f"{m} of {groups}")
        c.give("indices", "u32", index)
        c.want("offsets", "i32", np.searchsorted(index, np.arange(groups)))
        c.value("M", "i32", m)
        c.grid(groups, groups)
    for t, letter, bm, bn, bk, wm, wn, m, n, contiguous in (("f32", "nn", 32, 32, 16, 2, 2, 40, 45, 1), ("f16", "nt", 64, 64, 16, 2, 2, 64, 64, 0), ("bf16", "tn", 64, 32, 32, 2, 2, 30, 32, 1), ("f32", "tt", 32, 64, 16, 1, 2, 32, 50, 0)):
        k = 100
        c = g.case(f"steel_segmented_mm_{letter}_{MLX[t]}_{MLX[t]}_bm{bm}_bn{bn}_bk{bk}_wm{wm}_wn{wn}", f"{m}x{n}", segments_contiguous=contiguous, align_M=m % bm == 0, align_N=n % bn == 0)
        a, lda = operand(c, "A", t, (), m, k, letter[0] == "t")
        b, ldb = operand(c, "B", t, (), k, n, letter[1] == "t")
        cuts = [0, 16, 50, 50, 93]
        pairs = [(0, 16), (10, 43), (99, 100), (64, 64)] if contiguous else list(zip(cuts, cuts[1:]))
        c.give("segments", "u32", pairs if contiguous else cuts)
        c.want("C", t, np.stack([a[:, i:j] @ b[i:j] for i, j in pairs]))
        nx, ny = gemm_params(c, m, n, k, lda, ldb, n, bm, bn, bk, 0, 0, m * n)
        c.groups((nx, ny, len(pairs)), (32, wn, wm))
    for t, letter, block, masks, m, n, k in (("f32", "nn", 32, ("bool", "bool"), 64, 32, 64), ("f16", "nt", 64, ("f16", "f16"), 70, 64, 80), ("bf16", "tn", 32, (None, "bool"), 40, 33, 50), ("f32", "tt", 32, ("bool", None), 32, 64, 41), ("f32", "nt", 32, ("f32", "bool"), 45, 64, 96), ("f16", "nn", 32, ("bool", "f16"), 33, 35, 64)):
        word = lambda x: MLX[x] if x else "nomask"
        aligned = lambda x: "t" if x else "n"
        c = g.case(f"steel_gemm_block_outmask_{word(masks[0])}_opmask_{word(masks[1])}_{letter}_{MLX[t]}_{MLX[t]}_bm{block}_bn{block}_bk16_wm2_wn2_MN_{aligned(m % block == 0 and n % block == 0)}aligned_K_{aligned(k % 16 == 0)}aligned", f"{m}x{n}x{k}")
        a, lda = operand(c, "A", t, (2,), m, k, letter[0] == "t")
        b, ldb = operand(c, "B", t, (2,), k, n, letter[1] == "t")
        strides, batches = [], [m * k, k * n]

        def mask(name, dtype, p, q):
            shape = (2, -(-p // block), -(-q // block))
            x = np.float64(c.draw(name, dtype, shape, 0, 1 if dtype == "bool" else 2))
            strides.extend([1, shape[2]])
            batches.append(shape[1] * shape[2])
            return x.repeat(block, 1).repeat(block, 2)[:, :p, :q]

        scale = mask("out_mask", masks[0], m, n) if masks[0] else 1
        if masks[1]:
            a, b = a * mask("lhs_mask", masks[1], m, k), b * mask("rhs_mask", masks[1], k, n)
        c.want("D", t, a @ b * scale)
        nx, ny = gemm_params(c, m, n, k, lda, ldb, n, block, block, 16, m * k, k * n, m * n, 0, 1)
        c.value("batch_shape", "i32", 2)
        c.value("batch_strides", "i64", *batches)
        c.value("mask_strides", "i32", *strides)
        c.groups((nx, ny, 2), (32, 2, 2))
    return g


GROUPS = (gemvs, gemms)

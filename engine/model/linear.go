package model

import "bmoe/engine/kernel"

// A part of a product is large enough that its kernels prefetch what the same
// worker will read next: what they ask for beyond the part's end goes into the
// cache of a core that does not need it. With parts of 32 KiB two workers decode at
// three quarters of the rate that they reach with 512 (docs/performance.md).
const (
	leastPart = 128 << 10 // bytes of weights
	mostPart  = 512 << 10 // bytes of weights
	// partsPerWorker is how many parts a worker should find in a job, so that all
	// finish together though one core may be slower.
	partsPerWorker = 4
)

// rowsPerPart returns how many rows of rowBytes make a part of a job that reads
// jobBytes of weights: a multiple of 16, so that kernels which take several rows
// at once have no remainder.
func rowsPerPart(rowBytes, jobBytes, workers int) int {
	part := min(max(jobBytes/(partsPerWorker*workers), leastPart), mostPart)
	return max(16, part/max(rowBytes, 1)/16*16)
}

// product is one of the matrices of a linear step: dst[t*stride+r] = w[r] . x[t].
type product struct {
	w      *Weight
	dst    []float32
	stride int
}

// mostProducts is how many matrices one step has at most.
const mostProducts = 6

// linear multiplies one batch of activations by one or more matrices in one
// job of the pool.
type linear struct {
	acts     *kernel.Acts
	products [mostProducts]linearPart
	n        int
}

type linearPart struct {
	product
	form kernel.Form
	rows int // of a part
	from int // number of the first part
}

// prepare brings tokens t0 to t1-1 of x into every form that the weights want.
func prepare(a *kernel.Acts, num kernel.Numerics, x []float32, t0, t1 int, ws ...*Weight) {
	var done [8]bool
	for _, w := range ws {
		f := formOf(w, num)
		if !done[f] {
			done[f] = true
			a.Prepare(f, x, a.Cols(), t0, t1)
		}
	}
}

// formOf returns the form for a weight that the loader has accepted.
func formOf(w *Weight, num kernel.Numerics) kernel.Form {
	f, err := kernel.FormOf(w.Type, num)
	if err != nil {
		panic(err) // the loader refuses such types
	}
	return f
}

// run computes all products of the activations in l.acts.
func (l *linear) run(c *Compute, acts *kernel.Acts, ps ...product) {
	l.acts, l.n = acts, len(ps)
	parts, bytes := 0, 0
	for _, p := range ps {
		bytes += p.w.Rows * p.w.RowBytes()
	}
	for i, p := range ps {
		rows := rowsPerPart(p.w.RowBytes(), bytes, c.Pool.Workers())
		l.products[i] = linearPart{p, formOf(p.w, c.Numerics), rows, parts}
		parts += (p.w.Rows + rows - 1) / rows
	}
	c.Pool.Run(parts, l)
}

// Do implements pool.Task.
func (l *linear) Do(_, i int) {
	k := l.n - 1
	for l.products[k].from > i {
		k--
	}
	p := &l.products[k]
	r0 := (i - p.from) * p.rows
	r1 := min(r0+p.rows, p.w.Rows)
	kernel.MatMul(p.dst, p.stride, &p.w.Matrix, r0, r1, l.acts, p.form, nil)
	p.w.affine().ApplyAll(p.dst, p.stride, l.acts.Len(), r0, r1)
}

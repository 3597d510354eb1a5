package attn

import (
	"fmt"
	"math"
	"unsafe"

	"bmoe/engine/kernel/vec"
)

// KVType is how keys and values are stored.
type KVType uint8

const (
	KVF16  KVType = iota // half precision, the default
	KVF32                // as computed
	KVQ8_0               // 8-bit integers with one scale for 32 entries of a head
)

var kvTypeNames = [...]string{KVF16: "f16", KVF32: "f32", KVQ8_0: "q8_0"}

// String returns the name that --kv-type takes.
func (t KVType) String() string {
	if int(t) < len(kvTypeNames) {
		return kvTypeNames[t]
	}
	return fmt.Sprintf("kv type %d", uint8(t))
}

// ParseKVType returns the type of the given name.
func ParseKVType(name string) (KVType, error) {
	for t, n := range kvTypeNames {
		if n == name {
			return KVType(t), nil
		}
	}
	return 0, fmt.Errorf("unknown KV type %q: want f16, f32 or q8_0", name)
}

const (
	// kvBlock is how many positions lie together. Blocks begin at absolute
	// positions, so what is summed with what depends on nothing but the position.
	kvBlock = vec.SoftmaxLen
	// kvGroup is how many entries of a head share a scale in KVQ8_0.
	kvGroup = 32
	// windowBatch is how many positions may be appended to a windowed cache before
	// their queries are computed.
	windowBatch = 64
	// kvTiny is the magnitude below which a group is stored as zeros, so that no
	// product with it can be subnormal.
	kvTiny = 1e-25
)

// KVSpec is the shape of one layer's cache.
type KVSpec struct {
	Heads  int // key-value heads
	KeyDim int // entries of a head's key
	ValDim int // entries of a head's value
	Ctx    int // positions
	Window int // positions that a query sees, its own included; 0: all
	// Whole keeps every position though queries see a window: for queries that come
	// when later keys are there already.
	Whole bool
	Type  KVType
}

func (s KVSpec) check() error {
	const limit = 1 << 24
	if s.Heads < 1 || s.KeyDim < 1 || s.ValDim < 1 || s.Ctx < 1 || s.Window < 0 || s.Heads > limit || s.KeyDim > limit || s.ValDim > limit || s.Ctx > 1<<30 {
		return fmt.Errorf("KV cache of %d heads, keys of %d, values of %d, %d positions: out of range", s.Heads, s.KeyDim, s.ValDim, s.Ctx)
	}
	if int(s.Type) >= len(kvTypeNames) {
		return fmt.Errorf("KV cache of unknown %v", s.Type)
	}
	return nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

func (s KVSpec) valStride() int { return roundUp(s.ValDim, panel) }

// blocks returns how many blocks of positions are kept at once. With a window
// they are a ring: what a batch of windowBatch queries sees, wherever it begins.
func (s KVSpec) blocks() int {
	all := (s.Ctx + kvBlock - 1) / kvBlock
	if s.Window == 0 || s.Whole {
		return all
	}
	return int(min(int64(all), spanned(int64(s.Window)-1+windowBatch)))
}

// spanned returns how many blocks n positions in a row can lie in.
func spanned(n int64) int64 { return (n+kvBlock-2)/kvBlock + 1 }

// MarkBytes returns the size of what Save keeps: the window's keys and values.
func (s KVSpec) MarkBytes() int {
	k, ks, v, vs := s.parts()
	return s.Heads * s.marked() * (k + ks + v + vs)
}

// marked returns how many blocks a mark holds: those of the positions that the
// next query sees.
func (s KVSpec) marked() int {
	if s.Window == 0 || s.Whole {
		return 0
	}
	return int(min(int64(s.blocks()), spanned(max(1, int64(s.Window)-1))))
}

func groups(dim int) int { return (dim + kvGroup - 1) / kvGroup }

// parts returns the sizes in bytes of a block's four parts: keys, scales of
// keys, values, scales of values.
func (s KVSpec) parts() (k, ks, v, vs int) {
	k, v = s.KeyDim*kvBlock, s.valStride()*kvBlock
	switch s.Type {
	case KVF32:
		return 4 * k, 0, 4 * v, 0
	case KVQ8_0:
		return k, 4 * groups(s.KeyDim) * kvBlock, v, 4 * groups(s.valStride()) * kvBlock
	}
	return 2 * k, 0, 2 * v, 0
}

// Bytes returns the memory that NewKV needs for the spec.
func (s KVSpec) Bytes() (int64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	k, ks, v, vs := s.parts()
	block, n := int64(k+ks+v+vs), int64(s.Heads)*int64(s.blocks())
	if block > math.MaxInt64/n {
		return 0, fmt.Errorf("KV cache of %d positions is too large", s.Ctx)
	}
	return block * n, nil
}

// KV holds the keys and values of one layer. Memory is in blocks of 64
// positions, all blocks of a head one after the other, and only blocks that
// positions have reached are touched. In a block the keys are transposed, as 4
// panels [KeyDim x 16 keys], and the values are panels [64 keys x 16 entries], ValDim
// being padded to whole ones: both products of attention, queries x keys and
// weights x values, run down panels.
//
// With a window only the latest blocks are kept: a block takes the place of the
// one that lies a whole ring before it.
type KV struct {
	KVSpec
	mem       []byte
	headBytes int
	blkBytes  int
	kBytes    int // where the scales of keys begin
	vOff      int // where values begin
	vsOff     int // where the scales of values begin
	ring      int // blocks of a head
	n         int
	from      int // the first position that is still there; 0 without a window
}

// NewKV makes an empty cache in mem, which must be aligned to 4 bytes and at
// least as long as Bytes says. It is not touched before Append.
func NewKV(s KVSpec, mem []byte) (*KV, error) {
	need, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	if int64(len(mem)) < need {
		return nil, fmt.Errorf("KV cache needs %d bytes, has %d", need, len(mem))
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%4 != 0 {
		return nil, fmt.Errorf("KV cache memory is not aligned to 4 bytes")
	}
	k, ks, v, vs := s.parts()
	return &KV{
		KVSpec: s, mem: mem[:need],
		headBytes: (k + ks + v + vs) * s.blocks(), blkBytes: k + ks + v + vs,
		kBytes: k, vOff: k + ks, vsOff: k + ks + v, ring: s.blocks(),
	}, nil
}

// Len returns the number of positions stored.
func (kv *KV) Len() int { return kv.n }

// Truncate forgets positions n and later. What lies before n may be gone already:
// Reaches tells.
func (kv *KV) Truncate(n int) {
	if kv.n = min(max(n, 0), kv.n); kv.n == 0 {
		kv.from = 0
	}
}

// Reaches reports whether all positions that a query at position n sees are still
// there. It is true of 0.
func (kv *KV) Reaches(n int) bool { return n == 0 || kv.from <= kv.seenFrom(n) }

// seenFrom returns the first position that a query at pos sees.
func (kv *KV) seenFrom(pos int) int {
	if kv.Window == 0 {
		return 0
	}
	return max(0, pos-kv.Window+1)
}

// Batch returns how many positions may be appended before their queries are
// computed: more would overwrite keys that the first of them see.
func (kv *KV) Batch() int {
	if kv.Window == 0 || kv.Whole {
		return kv.Ctx
	}
	return windowBatch
}

// SavedBytes returns the size of what Save copies at length n.
func (kv *KV) SavedBytes(n int) int {
	size := 0
	kv.eachMarked(n, func(block []byte) { size += len(block) })
	return size
}

// Save copies what a query at position Len sees to dst, of SavedBytes.
func (kv *KV) Save(dst []byte) {
	kv.eachMarked(kv.n, func(block []byte) { dst = dst[copy(dst, block):] })
}

// Load brings a cache of the same shape to the length n that another had at Save.
func (kv *KV) Load(src []byte, n int) {
	kv.n, kv.from = n, kv.seenFrom(n)/kvBlock*kvBlock
	kv.eachMarked(n, func(block []byte) { src = src[copy(block, src):] })
}

// eachMarked visits the blocks of the positions that a query at position n sees
// of those before it.
func (kv *KV) eachMarked(n int, visit func(block []byte)) {
	for h := range kv.Heads {
		for b := kv.seenFrom(n) / kvBlock; b*kvBlock < n; b++ {
			visit(kv.block(h, b))
		}
	}
}

// block returns the memory of a head's positions from b*kvBlock on.
func (kv *KV) block(head, b int) []byte {
	return kv.mem[head*kv.headBytes+b%kv.ring*kv.blkBytes:][:kv.blkBytes]
}

// view returns bytes as numbers; KV memory is aligned for it.
func view[T int8 | uint16 | float32](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// Append stores the key [Heads x KeyDim] and value [Heads x ValDim] of position
// pos, which is at most Len, and makes it the last one. It is an error if pos
// leaves a hole or is beyond the context.
func (kv *KV) Append(pos int, k, v []float32) error {
	if pos < 0 || pos > kv.n || pos >= kv.Ctx {
		return fmt.Errorf("position %d does not follow the %d stored in a KV cache for %d", pos, kv.n, kv.Ctx)
	}
	if len(k) != kv.Heads*kv.KeyDim || len(v) != kv.Heads*kv.ValDim {
		return fmt.Errorf("key of %d and value of %d entries for a KV cache of %d x (%d, %d)", len(k), len(v), kv.Heads, kv.KeyDim, kv.ValDim)
	}
	j := pos % kvBlock
	if j == 0 { // the block overwrites the one a ring before
		kv.from = max(kv.from, pos-(kv.ring-1)*kvBlock)
	}
	keyAt := j/panel*kv.KeyDim*panel + j%panel // where entry 0 of the key goes; entries are a panel's width apart
	valAt := j * panel                         // where entries 0..15 of the value go; the next ones follow a panel later
	for h := range kv.Heads {
		b := kv.block(h, pos/kvBlock)
		key, val := k[h*kv.KeyDim:][:kv.KeyDim], v[h*kv.ValDim:][:kv.ValDim]
		switch kv.Type {
		case KVF32:
			kd, vd := view[float32](b[:kv.kBytes])[keyAt:], view[float32](b[kv.vOff:])[valAt:]
			for i, x := range key {
				kd[i*panel] = x
			}
			for i := 0; i < len(val); i += panel {
				copy(vd[i*kvBlock:][:panel], val[i:])
			}
		case KVF16:
			kd, vd := view[uint16](b[:kv.kBytes])[keyAt:], view[uint16](b[kv.vOff:])[valAt:]
			var half [8 * panel]uint16 // rounded a piece at a time
			for len(key) > 0 {
				n := min(len(key), len(half))
				vec.ToHalf(half[:n], key[:n])
				for i, x := range half[:n] {
					kd[i*panel] = x
				}
				key, kd = key[n:], kd[min(n*panel, len(kd)):]
			}
			for i := 0; i < len(val); i += panel {
				vec.ToHalf(vd[i*kvBlock:][:panel], val[i:min(i+panel, len(val))])
			}
		case KVQ8_0:
			kd, ks := view[int8](b[:kv.kBytes])[keyAt:], view[float32](b[kv.kBytes:kv.vOff])
			vd, vs := view[int8](b[kv.vOff:kv.vsOff])[valAt:], view[float32](b[kv.vsOff:])
			var q [kvGroup]int8
			for g := 0; g*kvGroup < len(key); g++ {
				part := key[g*kvGroup : min((g+1)*kvGroup, len(key))]
				ks[g*kvBlock+j] = quantGroup(&q, part)
				for i := range part {
					kd[(g*kvGroup+i)*panel] = q[i]
				}
			}
			for g := 0; g*kvGroup < len(val); g++ {
				part := val[g*kvGroup : min((g+1)*kvGroup, len(val))]
				vs[g*kvBlock+j] = quantGroup(&q, part)
				for i := 0; i < len(part); i += panel {
					copy(vd[(g*kvGroup+i)*kvBlock:][:panel], q[i:])
				}
			}
		}
	}
	kv.n = pos + 1
	return nil
}

// quantGroup turns x into integers and returns their scale. The integers beyond
// len(x) are 0.
func quantGroup(q *[kvGroup]int8, x []float32) float32 {
	clear(q[:])
	var bits uint32 // of the largest magnitude; a NaN is larger than all
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&^(1<<31))
	}
	top := math.Float32frombits(bits)
	if !(top > kvTiny) {
		return top * 0
	}
	d := top / 127
	inv := 1 / d
	for i, v := range x {
		q[i] = int8(math.Float32bits(float32(v*inv) + vec.RoundMagic)) // the integer is in the low bits
	}
	return d
}

package policy

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkVisit takes a token of 48 layers through a directory that hits half.
func BenchmarkVisit(b *testing.B) {
	shape := Shape{Experts: 128, Used: 8}
	for range 48 {
		shape.Bytes, shape.Slots = append(shape.Bytes, 10), append(shape.Slots, 10)
	}
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			p, _ := New(name, shape)
			d := NewDirectory(shape, 3*shape.TokenCycle(), p)
			var plan Plan
			r := rand.New(rand.NewPCG(1, 1))
			ids := make([]int32, 8)
			b.ReportAllocs()
			for b.Loop() {
				for layer := range 48 {
					for i := range ids {
						for again := true; again; {
							ids[i], again = int32(r.ExpFloat64()*20)%128, false
							for _, e := range ids[:i] {
								again = again || e == ids[i]
							}
						}
					}
					d.Visit(layer, 1, ids, &plan)
				}
			}
		})
	}
}

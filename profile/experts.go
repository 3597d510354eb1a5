package profile

// ExpertState says where an expert lies.
type ExpertState uint8

// The states of an expert.
const (
	ExpertAway     ExpertState = iota // on the drive
	ExpertReading                     // on its way into a slot
	ExpertResident                    // in a slot
)

// ExpertMap tells where every expert of a model lies at one instant. A caller
// that keeps it from call to call saves the allocation.
type ExpertMap struct {
	Layers, Experts int           // MoE layers, experts in each
	State           []ExpertState // [Layers x Experts]
}

package expert

// Predictor says early which experts layers will need. Each is a file of this package
// and a line of Predictors, from which its setting, its account in results and its
// number in traces follow.
type Predictor struct {
	Setting string // the name of what switches it
	Help    string
	Most    int // how far it can be turned up; 1: it is on or off
	Default int
	Kinds   []Kind // of its guesses
	// start makes what guesses in a streamer; nil: the model says what its routers
	// think, through Expect.
	start func(*Streamer) guesser

	first Origin // of the guesses of its first kind
}

// Kind is a kind of guesses.
type Kind struct {
	Name   string  // in results
	Traced int     // its number in route traces
	right  float32 // how often the demo model showed it to be right (docs/streaming.md); from there on it is measured
}

// guesser hears what there is to guess from, and tells the streamer of its guesses with
// expect. The streamer's mu is held.
type guesser interface {
	// token tells that the next pass is of one token.
	token(id int32)
	// visited tells what the tokens of a batch were given in a layer, [tokens x k]; quiet
	// says that nothing is to be guessed of it.
	visited(layer, tokens int, ids []int32, quiet bool)
}

// Predictors are all of them, in the order of their settings.
var Predictors = [...]*Predictor{ByToken: &byToken, ByRouters: &byRouters, ByTokenBefore: &byTokenBefore}

// Their places in Predictors and in Foresight, for who means a certain one.
const (
	ByToken = iota
	ByRouters
	ByTokenBefore
)

// mostPredictors and mostKinds are for how many there is room.
const (
	mostPredictors = 8
	mostKinds      = 16
)

// Foresight says how far every predictor is turned up; 0: it is off.
type Foresight [mostPredictors]int

// Origin says who made a guess: an index into Kinds.
type Origin uint8

// Whole is the origin of guesses for a prompt's batch, which needs nearly all experts of
// the next layer.
const Whole Origin = 0

// Kinds are the kinds of guesses, by Origin.
var Kinds = func() []Kind {
	all := []Kind{{Name: "prompt", right: 0.99}}
	for _, p := range Predictors {
		p.first = Origin(len(all))
		all = append(all, p.Kinds...)
	}
	return all
}()

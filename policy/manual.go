package policy

// manual leaves the count to people: it never asks for another one. The farm is
// observed, and what the rule would have done stands in each receipt.
var manual = Law{
	Name: "manual",
	Doc:  "the count is set by hand",
	make: func(p Params) Policy { return byHand{} },
}

type byHand struct{}

func (byHand) Name() string { return "manual" }

func (byHand) Decide(o *Observation, _ Memory) Decision { return Hold(o, "scaled by hand") }

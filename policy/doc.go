// Package policy decides how many workers a farm should have.
//
// A Policy looks at an Observation and returns a Decision; it actuates nothing,
// reads no clock and draws no randomness. The live controller, the simulator, the
// learning environment and the evaluation all call the same policies on the same
// observations, so what was measured in one is what runs in the other. A law wishes;
// the bounds of a farm, its budget and the pace of changes are the guard's.
//
// There is one file for each law, from static (the baseline) over threshold and the
// published reactive rules to staffing, the default. Laws lists them with their
// parameters; New makes one from a specification such as "staffing" or
// "static:n=4". What the laws share stands beside them: queueing.go knows queues,
// rate.go arrivals, hold.go past wishes. Observation.Vector is what learners see.
package policy

// Package policy decides how many workers a farm should have.
//
// A Policy looks at an Observation and returns a Decision; it actuates nothing,
// reads no clock and draws no randomness. The live controller, the simulator, the
// learning environment and the evaluation all call the same policies on the same
// observations, so what was measured in one is what runs in the other.
//
// There is one file for each law. Laws lists them with their parameters; New
// makes one from a specification such as "staffing" or "static:n=4".
package policy

// Package policy decides how many workers a farm should have.
//
// A Policy looks at an Observation and returns a Decision; it actuates nothing,
// reads no clock and draws no randomness. The live controller, the simulator, the
// learning environment and the evaluation all call the same policies on the same
// observations, so what was measured in one is what runs in the other. A law wishes;
// the bounds of a farm, its budget and the pace of changes are the guard's.
//
// There is one file for each law. Some are made for farms, from static (the baseline)
// to staffing, the default; others decide as published autoscalers do (hpa, keda, kpa,
// openfaas-ce …), so that a farm can be compared with what people would use instead.
// Laws lists them with their parameters; New makes one from a specification such as
// "staffing" or "static:n=4"; Tunables says which parameters calibration may search, and
// Tune sets them.
//
// What the laws share stands beside them: queueing.go knows queues, sizing.go how many
// replicas a load asks for, rate.go arrivals, hold.go past wishes, memory.go what is
// remembered. The decisions of the autoscalers of Kubernetes and Knative are functions of
// the inputs that these read (horizontal.go, pods.go, buckets.go) and replay what the
// originals decided (testdata/golden). Observation.Vector is what learners see.
package policy

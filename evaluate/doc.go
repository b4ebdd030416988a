// Package evaluate is the referee: it runs policies against one another on the
// same work and says what each cost and how late it was.
//
// What it compares is a Contender: a policy, made anew for each run. A Study runs
// contenders × scenarios × seeds with common random numbers: the tasks of a
// scenario and seed are drawn once, and all contenders serve the very same ones on
// a platform with the same luck. A Row sums an entry up, with confidence intervals
// over the seeds; Paired and Front.Compare set two side by side, seed by seed.
//
// A peer is only worth beating when it is well tuned. A Calibrator searches the
// parameters of a Family for the fewest worker-seconds that keep enough tasks on
// time, on seeds that no evaluation uses. The bounds say what is left to win: the
// best fixed count below, and above two oracles, of which Regime knows when the
// load will change, and Plan all that will happen. Replay answers the same question
// for the past of a live farm.
//
// The package reads no clock and no files; what was computed can be kept in a Store.
package evaluate

// Package guard stands between what a policy wishes and what is done. The
// controller, the simulator and the evaluation send every wish through the same
// guard, so that published figures are those of the guarded policy.
//
// It is pure: it reads no clock and draws no randomness. Time is the
// observation's, and what has to be remembered is a State that goes in and comes
// out. The same settings, observation, wishes and state give the same outcome,
// bit for bit, before and after the state went through JSON.
//
// # Limits
//
// They are taken in this order, each on what the one before has left. "The count"
// is the desired number of replicas that the observation read back.
//
//	limit    binds when                            then
//	wish     the wish is negative or beyond         keep the count
//	         2³¹, as a NaN made an integer is
//	stale    signals are old or unknown             keep the count, but one where tasks
//	                                                wait for none; skip to min
//	rule     a learned policy wishes less than      the rule's wish
//	         the rule while a task is overdue or
//	         waits for over half the deadline, or
//	         while that is unknown
//	window   the wish is below the count before     keep the count
//	         one long window of data
//	max      the wish is above max (0: none of      max
//	         its own; no farm goes above Ceiling)
//	budget   the day's worker-hours are used up     min, until midnight UTC
//	min      the wish is below min; max wins        min
//	         where it is smaller
//	actions  an action has no token                 keep the count
//
// What a user asked for (max, budget, min) comes after what is judged from data
// (rule, window): a lowered max is obeyed in the first second, an exhausted budget
// in a crisis. Missing data alone is stronger, because it is not known what a
// replica is busy with: on stale signals nothing is ever scaled down, to no end.
// The step to min is taken even then. There is no limit on the size of a step.
//
// An exhausted budget does not only forbid starts. Workers that stay are paid, so
// a farm that merely kept its count could use many times its budget; it drains to
// min, and its tasks wait. An alarm is raised at 80 %.
//
// # Actions
//
// An action is an outcome that differs from the count. It takes a token from a
// bucket; 480 come back in an hour, and 10 fit in. Two kinds always pass: from
// zero while tasks wait, and from outside min…max (or above an exhausted budget)
// back inside. They take their token too and may leave a debt, at most one bucket
// deep, which ordinary actions wait for. So a farm that swings between zero and one
// still makes 480 actions an hour, not 960, and only somebody else's changes of the
// count, or of the limits, can cause more.
//
// Apply spends the token, whatever the call then does. The caller saves the state
// first and calls the platform after: a controller that crashes in between has lost
// a token, worth 7.5 s, while one that saved after the call would begin each life
// with a full bucket, and a crash loop would be a storm of calls. A call that the
// platform clamps away is paid too: it is the calls that are limited.
//
// # Time
//
// The wall clock may step, and controllers may differ: one with +30 s may follow
// one with −30 s. The state therefore holds no moment to wait for, only amounts,
// which each observation advances by the time since the last:
//
//   - Tokens come back for one interval at most, and for none on a step back: no
//     step mints tokens, and none is waited out. A farm that is stepped from
//     outside, as by cron, sets its interval to that period.
//   - The budget is charged for all of the time, also that of a controller that was
//     down, and for one interval on a step back: a step ahead is charged once, as if
//     it were work, and no step charges too little.
//   - A day once begun is not begun again when the clock steps back over midnight by
//     less than an hour. A farther step back renames the day and keeps what was used.
//   - A long window of data is either one that the observation covers, to within an
//     interval, or as long a run of fresh observations. A stale observation ends the
//     run, and so does a pause or a step ahead that is longer than signals stay
//     fresh; a step back adds nothing to it.
//
// # Hand-back
//
// Whether a learned policy may speak at all is settled before Apply, by Hand.Consult:
// where it is handed back, the wish that Apply limits is that of its fallback, which its
// file names. It is what "the rule" means below; above, it is what advises the policy.
//
//	cause    when                                         and then
//	nan      what it computes is no number                at once
//	slow     an inference takes longer than 5 ms          at once
//	version  it has learned from other observations       at once, unasked
//	strange  a feature lies farther outside of its        for 3 decisions in a row
//	         0.1…99.9 % range in training than half
//	         the width of that range
//	late     fewer on time than the target, and by over   in 2 trials in a row
//	         a point fewer than under the rule
//	costly   over 10 % more worker-seconds than under     in 2 trials in a row
//	         the rule, and no more on time
//
// A trial plays the farm's last minutes again in a model, once with the counts that
// there were and once under the rule, so that what the model gets wrong is wrong on
// both sides; only whether the target was met is as measured. A policy comes back
// after half an hour, and after twice as long each further time, to a day at most;
// another policy begins anew. Handed back, it is not asked.
package guard

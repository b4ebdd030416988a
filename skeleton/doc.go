// Package skeleton holds the words of a task farm and its pure rules: what a
// task and a job are, what describes a farm, what a worker's answer means, how
// long a failed attempt backs off.
//
// It knows no network, no files, no clock and no global random source. What
// keeps tasks is skeleton/ledger, what hands them to workers skeleton/dispatch,
// what order they are served in skeleton/order, the HTTP API skeleton/jobapi.
package skeleton

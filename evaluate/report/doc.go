// Package report shows what evaluations have found: tables for a terminal, for
// documents and for other programs, and drawings.
package report

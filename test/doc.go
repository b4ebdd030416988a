// Package test is Farmhand's fault suite: real processes under load, and faults.
package test

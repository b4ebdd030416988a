// Package words is a package of the worker's own.
package words

const Whole = "whole"

// Package telemetry holds what a farm's past is kept in, for training and for
// calibration: a Row for every tick, and a histogram of service times for every
// five minutes.
//
// Many rows become a block: column by column, small whole numbers that say how a
// value differs from the one before, deflated, with a checksum. Eight days of a
// row every two seconds fit into 16 MB, thirty days of histograms into 4 MB.
//
// The package knows no network, no files and no clock. blocklog keeps anything
// in Redis, redistelemetry rows and histograms.
package telemetry

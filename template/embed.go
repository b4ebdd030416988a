// Package template carries the template of workers, for farmhand new. The folders
// beside it are what faas-cli looks for in ./template.
package template

import (
	"embed"
	"io/fs"
)

// Worker is the name of the template of workers.
const Worker = "farm-worker"

//go:embed all:farm-worker
var files embed.FS

// WorkerFiles are the files of the template of workers.
func WorkerFiles() fs.FS {
	sub, err := fs.Sub(files, Worker)
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}

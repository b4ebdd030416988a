// Command primes is an example worker that uses nothing but the standard
// library: it counts the primes below a number.
//
// The task is {"below": 100}, the result {"primes": 25}. docs/workers.md says
// how to deploy it.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
)

const most = 50_000_000 // about a second

func main() {
	http.HandleFunc("POST /", count)
	log.Fatal(http.ListenAndServe(os.Getenv("farmhand_listen"), nil))
}

// count does a task. A 4xx makes it a dead letter with the answer as its
// reason, a 5xx is tried again.
func count(w http.ResponseWriter, r *http.Request) {
	var task struct{ Below int }
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&task); err != nil || task.Below < 0 || task.Below > most {
		http.Error(w, `want {"below": N}, N from 0 to 50,000,000`, http.StatusUnprocessableEntity)
		return
	}
	log.Print("counting primes for ", r.Header.Get("X-Farm-Task"))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"primes": primes(task.Below)}) // a client that went away needs no answer
}

// primes sieves.
func primes(below int) (n int) {
	composite := make([]bool, below)
	for i := 2; i < below; i++ {
		if composite[i] {
			continue
		}
		n++
		for k := i * i; k < below; k += i {
			composite[k] = true
		}
	}
	return n
}

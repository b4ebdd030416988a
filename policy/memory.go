package policy

import "strconv"

// due reports whether something that is done every so many seconds is to be done
// now, and remembers under key when it is to be done next. The beat is kept: where
// decisions come every 2 s, what is due every 15 s is due after 16, 14, 16 … s. It
// begins at once, and anew where the clock stepped or a whole beat was missed.
func due(m Memory, key string, now, every float64) bool {
	next, begun := m[key]
	if begun && next > now+1e-6 && next <= now+every {
		return false
	}
	if next += every; !begun || next <= now || next > now+every {
		next = now + every
	}
	m[key] = next
	return true
}

// mark is a value and the time it belongs to, in seconds.
type mark struct{ at, value float64 }

// trail is a list of marks that stands in Memory, oldest first, under two names for
// each: memories are numbers by name.
type trail [][2]string

// roomiest is the most marks that any trail has room for.
const roomiest = 64

// trailOf names a trail of at most n marks.
func trailOf(name, value string, n int) trail {
	t := make(trail, n)
	for i := range t {
		t[i] = [2]string{name + "at" + strconv.Itoa(i), name + value + strconv.Itoa(i)}
	}
	return t
}

// load appends the marks to list.
func (t trail) load(m Memory, list []mark) []mark {
	for _, key := range t {
		at, ok := m[key[0]]
		if !ok {
			break
		}
		list = append(list, mark{at, m[key[1]]})
	}
	return list
}

// save puts the newest marks of list, as many as there is room for, into the place
// of what stood there.
func (t trail) save(m Memory, list []mark) {
	list = list[max(0, len(list)-len(t)):]
	for i, key := range t {
		if i < len(list) {
			m[key[0]], m[key[1]] = list[i].at, list[i].value
			continue
		}
		if _, ok := m[key[0]]; !ok {
			break
		}
		delete(m, key[0])
		delete(m, key[1])
	}
}

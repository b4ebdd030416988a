package memledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"farmhand/skeleton/ledger"
)

// letter is a dead letter. task is nil once it was redriven or forgotten.
type letter struct {
	task           *task
	died, seq      int64
	index          int32
	job            string
	reason         string
	answer         string
	status         int
	attempts, lost int
}

func (l *letter) compare(o *letter) int {
	return cmp.Or(cmp.Compare(l.died, o.died), cmp.Compare(l.seq, o.seq), cmp.Compare(l.index, o.index))
}

func (l *letter) public() ledger.DeadLetter {
	return ledger.DeadLetter{Ref: l.task.ref(), Job: l.job, Index: int(l.index), Reason: l.reason, Status: l.status,
		Attempts: l.attempts, Lost: l.lost, Answer: l.answer, Died: instant(l.died)}
}

// graveyard is the dead letters, oldest first.
type graveyard struct {
	list []*letter
	gone int // of list, without a task
}

// add puts a letter at its place: at the end but for others of that instant.
func (g *graveyard) add(l *letter) {
	at := len(g.list)
	for at > 0 && l.compare(g.list[at-1]) < 0 {
		at--
	}
	g.list = slices.Insert(g.list, at, l)
}

// from returns the letters from the first that is not before l on.
func (g *graveyard) from(l *letter) []*letter {
	at, _ := slices.BinarySearchFunc(g.list, l, (*letter).compare)
	return g.list[at:]
}

// remove forgets the letter of a dead task.
func (g *graveyard) remove(t *task) {
	for _, l := range g.from(&letter{died: t.at, seq: t.run.seq, index: t.index}) {
		if l.task == t {
			l.task = nil
			g.gone++
			break
		}
	}
	if g.gone > len(g.list)/2+16 {
		g.list = slices.DeleteFunc(g.list, func(l *letter) bool { return l.task == nil })
		g.gone = 0
	}
}

// Dead implements ledger.Producer.
func (f *farm) Dead(ctx context.Context, after string, limit int) (letters []ledger.DeadLetter, next string, err error) {
	if limit <= 0 {
		return nil, after, nil
	}
	var at letter
	if after != "" {
		if at, err = parseCursor(after); err != nil {
			return nil, "", err
		}
		at.index++
	}
	err = f.do(ctx, func(int64) error {
		var last *letter
		for _, l := range f.dead.from(&at) {
			if l.task == nil {
				continue
			}
			if len(letters) == limit {
				next = cursorOf(last)
				break
			}
			letters = append(letters, l.public())
			last = l
		}
		return nil
	})
	return letters, next, err
}

// Redrive implements ledger.Producer.
func (f *farm) Redrive(ctx context.Context, refs []string, limit int) (n int, err error) {
	for _, ref := range refs {
		if _, _, ok := parseRef(ref); !ok {
			return 0, fmt.Errorf("%w: %q", ledger.ErrRef, ref)
		}
	}
	err = f.do(ctx, func(now int64) error {
		for _, t := range f.redrivable(refs, limit) {
			if t.state == dead { // not named twice
				f.redrive(now, t)
				n++
			}
		}
		if n > 0 {
			f.wakeUp()
		}
		return nil
	})
	return n, err
}

// redrivable lists dead tasks. Those of a cancelled job stay dead.
func (f *farm) redrivable(refs []string, limit int) (tasks []*task) {
	for _, ref := range refs {
		if t := f.find(ref); t != nil && t.state == dead && !t.run.job.Cancel {
			tasks = append(tasks, t)
		}
	}
	if refs != nil {
		return tasks
	}
	for _, l := range f.dead.list {
		if len(tasks) >= limit {
			break
		}
		if l.task != nil && !l.task.run.job.Cancel {
			tasks = append(tasks, l.task)
		}
	}
	return tasks
}

// redrive makes a dead task wait again, as a run of its own at the tail, with
// fresh budgets and a fresh due.
func (f *farm) redrive(now int64, t *task) {
	old := t.run
	j := old.job
	f.dead.remove(t)
	if r := j.out.at(int(t.slot)); r != nil {
		*r = result{index: r.index, state: dropped}
	}
	due := old.due
	if due > 0 {
		due = now + max(0, old.due-old.accepted)
	}
	t.failures, t.lost = 0, 0
	off := int(t.index) - old.first
	f.n.Dead--
	j.Dead--
	f.shift(j, len(t.body), -len(t.body))
	f.enqueue(now, j, old.shape, due, int(t.index), old.tasks[off:off+1:off+1])
	j.Ended, j.Expires, j.expires, j.owed = time.Time{}, time.Time{}, 0, 0
	f.touch(j)
}

package main

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"farmhand/controller"
	"farmhand/trainer"
)

// topHistory is how many looks the line of a farm's replicas goes back.
const topHistory = 30

var (
	bold   = ansi.NewStyle().Bold()
	faint  = ansi.NewStyle().Faint()
	red    = ansi.NewStyle().ForegroundColor(ansi.Red)
	yellow = ansi.NewStyle().ForegroundColor(ansi.Yellow)
)

// topSeen is what a look has seen, or why it has seen nothing.
type topSeen struct {
	view controller.Overview
	err  error
	at   time.Time

	trainings []trainer.Run
}

// topTick says that it is time to look.
type topTick struct{}

// topModel is the screen of farmhand top. While nothing answers it keeps what
// it has seen last.
type topModel struct {
	gateway string
	every   time.Duration
	look    tea.Cmd

	view        *controller.Overview // nil = nothing seen yet
	good, at    time.Time            // of the last look that saw something, and of the last
	err         error                // of the last look
	history     map[string][]int     // replicas ready, oldest first
	width       int                  // 0 = unknown
	height      int
	trainings   []trainer.Run // of the last look
	first       int           // line of the list at the top
	interrupted bool
}

// Init implements tea.Model.
func (m topModel) Init() tea.Cmd { return m.look }

// Update implements tea.Model.
func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.press(msg.String())
	case topTick:
		return m, m.look
	case topSeen:
		m.at, m.err, m.trainings = msg.at, msg.err, msg.trainings
		if hopeless(msg.err) {
			return m, tea.Quit
		}
		if msg.err == nil {
			m.view, m.good = &msg.view, msg.at
			m.history = remembered(m.history, msg.view.Farms)
		}
		return m, tea.Tick(m.every, func(time.Time) tea.Msg { return topTick{} })
	}
	return m, nil
}

func (m topModel) press(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "esc":
		return m, tea.Quit
	case "ctrl+c":
		m.interrupted = true
		return m, tea.Quit
	case "down", "j":
		m.first++
	case "up", "k":
		m.first--
	case "pgdown", "space":
		m.first += m.height / 2
	case "pgup":
		m.first -= m.height / 2
	}
	m.first = max(0, min(m.first, len(m.list())-1))
	return m, nil
}

// remembered adds the replicas of now, and forgets farms that are gone.
func remembered(old map[string][]int, farms []controller.FarmView) map[string][]int {
	next := map[string][]int{}
	for _, f := range farms {
		line := append(append([]int(nil), old[f.Name]...), f.Ready)
		next[f.Name] = line[max(0, len(line)-topHistory):]
	}
	return next
}

// View implements tea.Model.
func (m topModel) View() tea.View {
	list := m.list()
	lines := append(m.head(), list[min(m.first, len(list)):]...)
	if m.height > 0 && len(lines) > m.height {
		lines = lines[:m.height]
		lines[m.height-1] = faint.Styled("… more below: ↓")
	}
	for i, line := range lines {
		if m.width > 0 {
			lines[i] = ansi.Truncate(line, m.width, "…")
		}
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}

// head is what stands above the list.
func (m topModel) head() []string {
	title := bold.Styled("farmhand top") + "  " + m.gateway
	var lines []string
	switch {
	case m.view == nil && m.err == nil:
		lines = append(lines, "asking the controller…")
	case m.view == nil:
		lines = append(lines, red.Styled(oneLine(m.err.Error())))
	case m.err != nil:
		lines = append(lines, red.Styled(fmt.Sprintf("as of %s: %s", m.good.Local().Format(time.TimeOnly), oneLine(m.err.Error()))))
	default:
		var status strings.Builder
		if tellStatus(&status, m.view.Status); status.Len() > 0 {
			lines = append(lines, yellow.Styled(oneLine(status.String())))
		}
	}
	if m.view != nil {
		title += fmt.Sprintf("  %d farms  %s", len(m.view.Farms), m.at.Local().Format(time.TimeOnly))
	}
	return append(append([]string{title + faint.Styled("  q quits")}, lines...), "")
}

// list has a few lines for each farm: numbers, the last decision, what is not as it
// should be, and what others would have come to.
func (m topModel) list() []string {
	if m.view == nil {
		return nil
	}
	rows := [][]string{{"FARM", "POLICY", "MODE", "WAITING", "RUNNING", "OLDEST WAIT", "ON TIME", "READY", "REPLICAS"}}
	for i, cell := range rows[0] {
		rows[0][i] = bold.Styled(cell)
	}
	for _, f := range m.view.Farms {
		rows = append(rows, m.row(f))
	}
	var lines []string
	for i, line := range columns(rows) {
		lines = append(lines, line)
		if i == 0 {
			continue
		}
		f := m.view.Farms[i-1]
		decision := "nothing has been decided yet"
		if l := f.Last; l != nil {
			decision = fmt.Sprintf("%s  %s ago  %s", stepText(l.Before, l.Replicas), secondsText(max(0, m.good.Sub(l.At).Seconds())), oneLine(l.Why))
		}
		lines = append(lines, "  "+faint.Styled(decision))
		if out := standsOut(f); out != unknown {
			lines = append(lines, "  "+yellow.Styled(out))
		}
		if text := reviewText(f.Review); text != "" {
			lines = append(lines, "  "+faint.Styled(text))
		}
	}
	for _, r := range m.trainings {
		lines = append(lines, "training "+runText(r))
	}
	return lines
}

func (m topModel) row(f controller.FarmView) []string {
	ready := fmt.Sprintf("%d/%d", f.Ready, f.Desired)
	if f.Ready != f.Desired {
		ready = yellow.Styled(ready)
	}
	waiting, running, wait, onTime := unknown, unknown, unknown, unknown
	if l := f.Last; l != nil {
		waiting, running, wait, onTime = numberText(l.Waiting), numberText(l.Running), waitText(l), shareText(l.OnTime)
		if l.Deadline > 0 && float64(l.OldestWait) > l.Deadline {
			wait = red.Styled(wait)
		}
	}
	return []string{bold.Styled(f.Name), oneLine(f.Policy), string(f.Mode), waiting, running, wait, onTime, ready, sparkline(m.history[f.Name])}
}

// columns makes lines of rows whose cells stand below one another.
func columns(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		for j, cell := range row {
			if j > 0 {
				lines[i] += strings.Repeat(" ", widths[j-1]-ansi.StringWidth(row[j-1])+2)
			}
			lines[i] += cell
		}
	}
	return lines
}

// sparkline draws counts from 0 to the largest of them.
func sparkline(counts []int) string {
	const bars = "▁▂▃▄▅▆▇█"
	most := 1
	for _, n := range counts {
		most = max(most, n)
	}
	var b strings.Builder
	for _, n := range counts {
		b.WriteRune([]rune(bars)[max(0, n)*(len([]rune(bars))-1)/most])
	}
	return b.String()
}

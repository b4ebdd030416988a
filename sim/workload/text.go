package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// flow writes a kind and its parameters, names and values in turn, as a scenario
// file has them.
func flow(kind string, fields ...any) string { return "{" + kind + ": " + pairs(fields...) + "}" }

// pairs writes names and values, in turn, as a mapping.
func pairs(fields ...any) string {
	var items []string
	for i := 0; i < len(fields); i += 2 {
		items = append(items, fmt.Sprintf("%v: %s", fields[i], value(fields[i+1])))
	}
	return "{" + strings.Join(items, ", ") + "}"
}

// list is a sequence of items that are written already.
type list []string

func (l list) text() string { return "[" + strings.Join(l, ", ") + "]" }

// value writes a parameter so that reading it gives the same bits.
func value(v any) string {
	switch v := v.(type) {
	case float64:
		return number(v)
	case []float64:
		items := make(list, len(v))
		for i, x := range v {
			items[i] = number(x)
		}
		return items.text()
	case list:
		return v.text()
	default:
		return fmt.Sprint(v)
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// round to nine digits: what a person wrote, without the errors of computing.
func round(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64)
	if err != nil {
		return x
	}
	return y
}

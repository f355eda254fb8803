package docs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
)

// values are the labels of a family of series, each with all its values.
type values map[string]map[string]bool

// exposed are the families of a /metrics. Prometheus adds labels and a series of
// its own.
type exposed map[string]values

var (
	// added are the labels that Prometheus gives every series that it scrapes.
	added = []string{"job", "instance"}
	// overTime are the functions in use that take series over a time, behind
	// which [5m] or the like must stand. The library also knows other functions,
	// which Prometheus does not have.
	overTime = []string{"rate", "increase", "delta", "changes", "predict_linear"}
	// atOnce are the other functions in use.
	atOnce = []string{"abs", "histogram_quantile", "time"}
)

func readExposed(t *testing.T, page string) exposed {
	t.Helper()
	all := exposed{"up": values{}}
	for line := range strings.Lines(page) {
		series, _, found := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, "#") || !found {
			continue
		}
		if at := strings.LastIndexByte(line, '}'); at >= 0 {
			series = line[:at+1]
		}
		parsed, err := metricsql.Parse(series)
		if err != nil {
			t.Fatalf("%s: %v", series, err)
		}
		filters := parsed.(*metricsql.MetricExpr).LabelFilterss[0]
		family := filters[0].Value
		if all[family] == nil {
			all[family] = values{}
		}
		for _, f := range filters[1:] {
			if all[family][f.Label] == nil {
				all[family][f.Label] = map[string]bool{}
			}
			all[family][f.Label][f.Value] = true
		}
	}
	// A queue has a series for each cause that it had, and the server one for each.
	if queue := all["codeq_queue_transitions_total"]; queue != nil {
		queue["cause"] = all["codeq_transitions_total"]["cause"]
	}
	return all
}

// check finds what a query names and no series has.
func (x exposed) check(q *query) error {
	parsed, err := metricsql.Parse(q.expr)
	if err != nil {
		return err
	}
	labels, err := x.result(parsed)
	for _, label := range q.shows {
		if err == nil && !slices.Contains(labels, label) {
			err = fmt.Errorf("the label %s is shown, and the result has only %v", label, labels)
		}
	}
	return err
}

// result are the labels of what an expression gives.
func (x exposed) result(parsed metricsql.Expr) (labels []string, err error) {
	switch e := parsed.(type) {
	case *metricsql.MetricExpr:
		return x.series(e)
	case *metricsql.NumberExpr:
		return nil, nil
	case *metricsql.FuncExpr:
		return x.function(e)
	case *metricsql.AggrFuncExpr:
		return x.aggregate(e)
	case *metricsql.BinaryOpExpr:
		left, err := x.result(e.Left)
		if err != nil {
			return nil, err
		}
		right, err := x.result(e.Right)
		if slices.Sort(left); err == nil && left != nil && right != nil && !slices.Equal(left, slices.Sorted(slices.Values(right))) {
			err = fmt.Errorf("both sides of %s must have the same labels to match: %v, %v", e.Op, left, right)
		}
		if left == nil {
			left = right
		}
		return left, err
	}
	return nil, fmt.Errorf("Prometheus does not take %s here", parsed.AppendString(nil))
}

func (x exposed) function(e *metricsql.FuncExpr) (labels []string, err error) {
	for i, arg := range e.Args {
		if window, ok := arg.(*metricsql.RollupExpr); ok && i == 0 && slices.Contains(overTime, e.Name) && window.Window != nil {
			arg = window.Expr
		} else if i == 0 && !slices.Contains(atOnce, e.Name) {
			return nil, fmt.Errorf("%s is unknown, or has no [5m] or the like behind its series", e.Name)
		}
		got, err := x.result(arg)
		if err != nil {
			return nil, err
		}
		labels = append(labels, got...)
	}
	if e.Name == "histogram_quantile" {
		if !slices.Contains(labels, "le") {
			return nil, fmt.Errorf("a quantile needs the label le, and here are only %v", labels)
		}
		labels = slices.DeleteFunc(labels, func(label string) bool { return label == "le" })
	}
	return labels, nil
}

func (x exposed) aggregate(e *metricsql.AggrFuncExpr) (labels []string, err error) {
	if !slices.Contains([]string{"sum", "max"}, e.Name) || e.Modifier.Op == "without" || len(e.Args) != 1 {
		return nil, fmt.Errorf("%s is not known to this test", e.AppendString(nil))
	}
	inner, err := x.result(e.Args[0])
	for _, label := range e.Modifier.Args {
		if err == nil && !slices.Contains(inner, label) {
			err = fmt.Errorf("the sum is by %s, and its series have only %v", label, inner)
		}
	}
	return append([]string{}, e.Modifier.Args...), err
}

// series checks one selector.
func (x exposed) series(e *metricsql.MetricExpr) (labels []string, err error) {
	if len(e.LabelFilterss) != 1 || e.LabelFilterss[0][0].Label != "__name__" {
		return nil, fmt.Errorf("%s must name one family of series", e.AppendString(nil))
	}
	family := e.LabelFilterss[0][0].Value
	known, found := x[family]
	if !found {
		return nil, fmt.Errorf("there is no series %s", family)
	}
	for _, f := range e.LabelFilterss[0][1:] {
		if slices.Contains(added, f.Label) {
			continue
		}
		for _, value := range strings.Split(f.Value, "|") {
			if value != ".*" && !known[f.Label][value] || known[f.Label] == nil {
				return nil, fmt.Errorf("no series of %s has %s=%q", family, f.Label, value)
			}
		}
	}
	return append(slices.Sorted(maps.Keys(known)), added...), nil
}

// Each mistake that somebody can make in an expression is found.
func TestE17AnExpressionOverWhatIsNotThereIsFound(t *testing.T) {
	x := readExposed(t, "# HELP a_total Help } with a brace.\na_total{cause=\"nack\",kind=\"} x\"} 3\n"+
		"a_total{cause=\"grant\",kind=\"x\"} 3\nb_seconds 1\nc_bucket{le=\"+Inf\"} 1\n")
	for _, good := range []query{
		{"", `sum by (cause) (rate(a_total{cause=~"nack|grant"}[5m])) > 0.5`, []string{"cause"}},
		{"", `a_total{kind=~".*", job="codeq"} / 2 > 1`, []string{"kind"}},
		{"", `histogram_quantile(0.9, rate(c_bucket[5m]))`, added},
		{"", `time() - b_seconds > 26 * 3600 or up == 0`, added},
	} {
		if err := x.check(&good); err != nil {
			t.Errorf("%s: %v", good.expr, err)
		}
	}
	for _, bad := range []query{
		{"", `a_total >`, nil},
		{"", `d_total`, nil},
		{"", `b_seconds{cause="nack"}`, nil},
		{"", `a_total{cause="due"}`, nil},
		{"", `a_total{cause!~"nack|due"}`, nil},
		{"", `rate(a_total)`, nil},
		{"", `b_seconds[5m]`, nil},
		{"", `median_over_time(b_seconds[5m])`, nil},
		{"", `sum by (le) (b_seconds)`, nil},
		{"", `sum(b_seconds)`, []string{"instance"}},
		{"", `b_seconds`, []string{"cause"}},
		{"", `sum by (cause) (a_total) > sum by (kind) (a_total)`, nil},
		{"", `histogram_quantile(0.9, sum(rate(c_bucket[5m])))`, nil},
		{"", `{job="codeq"}`, nil},
	} {
		if x.check(&bad) == nil {
			t.Errorf("%s is taken, showing %v", bad.expr, bad.shows)
		}
	}
}

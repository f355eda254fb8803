package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const metricsEvery = 500 * time.Millisecond

// watched are the figures of a server that were seen since a first look: the
// most of each gauge, and what counters and histograms grew by.
type watched struct {
	// before is nil until the first look.
	before, most map[string]float64
}

// watchMetrics reads /metrics of a server now and then, until the returned
// function is called, which gives a line for each figure about mailboxes and
// batches since the first reading.
func watchMetrics(ctx context.Context, url string) func() []string {
	inner, cancel := context.WithCancel(ctx)
	w := &watched{most: map[string]float64{}}
	failed := w.read(ctx, url)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(metricsEvery)
		defer ticker.Stop()
		for failed == nil {
			select {
			case <-inner.Done():
				return
			case <-ticker.C:
				failed = w.read(inner, url)
			}
		}
	}()
	return func() []string {
		cancel()
		<-ended
		if lines := w.tell(); len(lines) > 0 {
			return lines
		}
		return []string{"depth, batch size and time in mailbox are not shown: " + whyNoMetrics(failed)}
	}
}

// tell is one line for each figure, and one for each histogram.
func (w *watched) tell() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(w.most)) {
		family, labels, _ := strings.Cut(name, "{")
		value := w.most[name]
		if !grows(family) {
			lines = append(lines, fmt.Sprintf("%s at most %g", name, value))
			continue
		}
		value -= w.before[name]
		whole, isSum := strings.CutSuffix(family, "_sum")
		switch {
		case strings.HasSuffix(family, "_total"):
			lines = append(lines, fmt.Sprintf("%s %g", name, value))
		case isSum:
			lines = append(lines, w.histogram(whole, labels, value))
		}
	}
	return lines
}

// histogram tells a histogram by its mean and the bucket that 99 of a hundred
// are in.
func (w *watched) histogram(whole, labels string, sum float64) string {
	if labels != "" {
		labels = "{" + labels
	}
	count := whole + "_count" + labels
	n := w.most[count] - w.before[count]
	if n == 0 {
		return whole + labels + " of none"
	}
	line := fmt.Sprintf("%s%s %.4g on average, of %g", whole, labels, sum/n, n)
	if labels != "" {
		return line
	}
	return line + w.upTo(whole+"_bucket", 0.99*n)
}

// upTo is the bound below which so many are.
func (w *watched) upTo(bucket string, enough float64) string {
	bound := math.Inf(1)
	for name, value := range w.most {
		family, labels, _ := strings.Cut(name, "{")
		text, isBound := strings.CutPrefix(labels, `le="`)
		le, err := strconv.ParseFloat(strings.TrimSuffix(text, `"}`), 64)
		if family == bucket && isBound && err == nil && value-w.before[name] >= enough {
			bound = min(bound, le)
		}
	}
	if math.IsInf(bound, 1) {
		return ""
	}
	return fmt.Sprintf(", 99 %% up to %.4g", bound)
}

// grows says that a figure only grows, and is told as what it grew by.
func grows(family string) bool {
	for _, end := range []string{"_total", "_sum", "_count", "_bucket"} {
		if strings.HasSuffix(family, end) {
			return true
		}
	}
	return false
}

func whyNoMetrics(failed error) string {
	if failed != nil && !strings.Contains(failed.Error(), "context canceled") {
		return failed.Error()
	}
	return "the server's /metrics has none of them"
}

func (w *watched) read(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return fmt.Errorf("ask for metrics: %w", err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask for metrics: %w", err)
	}
	defer func() {
		_ = response.Body.Close() // it is not used again
	}()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server has no /metrics (it answered %d)", response.StatusCode)
	}
	return w.note(response.Body)
}

// note takes one reading of the figures about mailboxes and batches, for all
// shards in one.
func (w *watched) note(text io.Reader) error {
	now := map[string]float64{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		series, rest, ok := strings.Cut(lines.Text(), " ")
		name, _, _ := strings.Cut(series, "{")
		if !ok || strings.HasPrefix(name, "#") ||
			!strings.Contains(name, "mailbox") && !strings.Contains(name, "batch") {
			continue
		}
		if value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64); err == nil {
			fold(now, series, value)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read metrics: %w", err)
	}
	if w.before == nil {
		w.before = now
	}
	for name, value := range now {
		w.most[name] = max(w.most[name], value)
	}
	return nil
}

// ofShard is the label that tells shards apart.
var ofShard = regexp.MustCompile(`\{shard="[^"]*"\}|shard="[^"]*",|,shard="[^"]*"`)

// fold joins the value of one shard to those of the others: what is counted
// adds up, of anything else the fullest shard is told.
func fold(now map[string]float64, series string, value float64) {
	series = ofShard.ReplaceAllString(series, "")
	name, _, _ := strings.Cut(series, "{")
	if grows(name) {
		now[series] += value
		return
	}
	now[series] = max(now[series], value)
}

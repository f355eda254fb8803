package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const metricsEvery = 500 * time.Millisecond

// watchMetrics reads /metrics of a server now and then, until the returned
// function is called, which gives a line for each figure about mailboxes and
// batches: the most that was seen of it.
func watchMetrics(ctx context.Context, url string) func() []string {
	ctx, cancel := context.WithCancel(ctx)
	most := map[string]float64{}
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(metricsEvery)
		defer ticker.Stop()
		for failed == nil {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				failed = readMetrics(ctx, url, most)
			}
		}
	}()
	return func() []string {
		cancel()
		<-ended
		if len(most) == 0 {
			return []string{"depth, batch size and time in mailbox are not shown: " + whyNoMetrics(failed)}
		}
		return tellMetrics(most)
	}
}

// tellMetrics is one line for each figure, and one for each histogram.
func tellMetrics(most map[string]float64) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(most)) {
		whole, isSum := strings.CutSuffix(name, "_sum")
		if _, isCount := strings.CutSuffix(name, "_count"); isCount {
			continue // told with the sum
		}
		if count := most[whole+"_count"]; isSum && count > 0 {
			lines = append(lines, fmt.Sprintf("%s %.4g on average, of %g", whole, most[name]/count, count))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s at most %g", name, most[name]))
	}
	return lines
}

func whyNoMetrics(failed error) string {
	if failed != nil && !strings.Contains(failed.Error(), "context canceled") {
		return failed.Error()
	}
	return "the server's /metrics has none of them"
}

func readMetrics(ctx context.Context, url string, most map[string]float64) error {
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
	return noteMetrics(response.Body, most)
}

// noteMetrics keeps the largest value of each figure about mailboxes and
// batches, for all shards in one. Histogram buckets are left out.
func noteMetrics(text io.Reader, most map[string]float64) error {
	now := map[string]float64{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		series, rest, ok := strings.Cut(lines.Text(), " ")
		name, _, _ := strings.Cut(series, "{")
		if !ok || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "_bucket") ||
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
	for name, value := range now {
		most[name] = max(most[name], value)
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
	if strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count") {
		now[series] += value
		return
	}
	now[series] = max(now[series], value)
}

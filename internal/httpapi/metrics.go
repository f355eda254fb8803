package httpapi

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"codeq/internal/meter"
	"codeq/wire"
)

const (
	// scrapeFor is how long one page answers all requests: making it reads a key for each
	// queue and takes locks of the database.
	scrapeFor = time.Second
	// TopQueues bounds the queues with series of their own; they are the largest ones, of
	// counts of events those with the most events.
	TopQueues = 100
	// OtherQueues is the label of the sum over the remaining queues. A queue of that name is
	// always one of them, so that no series appears twice.
	OtherQueues = "other"
)

// scrape is the last page.
type scrape struct {
	mu     sync.Mutex
	text   []byte
	madeAt time.Time
}

// page is a page that is not older than scrapeFor. Requests wait while it is made.
func (s *scrape) page(write func(p *meter.Page)) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == nil || time.Since(s.madeAt) >= scrapeFor {
		var p meter.Page
		write(&p)
		s.text, s.madeAt = p.Text(), time.Now()
	}
	return s.text
}

// getMetrics answers with the figures of the whole server in the text of Prometheus.
func (a *api) getMetrics(c *call) answer {
	c.w.Header().Set("Content-Type", meter.ContentType)
	return okay(a.scrape.page(a.writeMetrics))
}

func (a *api) writeMetrics(p *meter.Page) {
	p.One("codeq_clock_difference_seconds", meter.Gauge, "How far the engine's clock is ahead of the wall.",
		float64(a.o.NowMs()-a.o.WallMs())/1000)
	p.One("codeq_sessions", meter.Gauge, "Sessions that are open.", float64(a.o.Sessions.Count()))
	a.writeQueues(p)
	a.o.Engine.WriteMetrics(p)
	a.writeLimits(p)
	a.writeWebhooks(p)
	a.o.Store.WriteMetrics(p)
	a.writeOwnMetrics(p)
}

// writeOwnMetrics writes the figures of the process, which a node that does not lead has too.
func (a *api) writeOwnMetrics(p *meter.Page) {
	p.Family("codeq_build_info", meter.Gauge, "The version that runs.")
	p.Put(1, meter.Label{Name: "version", Value: a.o.Version})
	p.One("codeq_ready", meter.Gauge, "1 while the server takes work, 0 while it shuts down.", meter.OneIf(a.o.Ready == nil || a.o.Ready()))
	if a.o.WriteMetrics != nil {
		a.o.WriteMetrics(p)
	}
	p.Add(&a.requests)
	p.AddProcess()
}

// writeQueues writes the figures of the largest queues one by one and of the remaining ones
// together. It leaves out queues without a task that waits, is in progress or is dead.
func (a *api) writeQueues(p *meter.Page) {
	all, err := a.o.Store.ReadAllQueues()
	if err != nil {
		// The other figures are needed all the more.
		a.o.Log.Error().Err(err).Msg("metrics: queues cannot be read")
		return
	}
	shown, others := largest(all)
	nowMs := a.o.NowMs()
	p.One("codeq_queues", meter.Gauge, "Queues with a task that waits, is in progress or dead.", float64(len(all)))
	p.One("codeq_queues_in_other", meter.Gauge, "Queues that are only counted under the name other.", float64(others))
	for _, family := range queueFamilies {
		p.Family(family.name, meter.Gauge, family.help)
		for i := range shown {
			q := &shown[i]
			p.Put(family.value(q, nowMs), meter.Label{Name: "tenant", Value: q.TenantID}, meter.Label{Name: "command", Value: q.Command})
		}
	}
}

// queueFamilies are the figures of a queue.
var queueFamilies = []struct {
	name, help string
	value      func(q *wire.QueueFigures, nowMs int64) float64
}{
	{"codeq_queue_ready_tasks", "Tasks that wait for a worker.",
		func(q *wire.QueueFigures, _ int64) float64 { return float64(q.Ready) }},
	{"codeq_queue_limited_tasks", "Tasks that wait for their concurrency key.",
		func(q *wire.QueueFigures, _ int64) float64 { return float64(q.Limited) }},
	{"codeq_queue_delayed_tasks", "Tasks whose time has not come.",
		func(q *wire.QueueFigures, _ int64) float64 { return float64(q.Delayed) }},
	{"codeq_queue_in_progress_tasks", "Tasks that a worker has in hand.",
		func(q *wire.QueueFigures, _ int64) float64 { return float64(q.InProgress) }},
	{"codeq_queue_dead_tasks", "Dead letters.",
		func(q *wire.QueueFigures, _ int64) float64 { return float64(q.Dead) }},
	{"codeq_queue_failed_tasks", "Dead letters that a worker ended FAILED.",
		func(q *wire.QueueFigures, _ int64) float64 { return float64(q.DeadBy[wire.DeadFailed]) }},
	{"codeq_queue_oldest_ready_age_seconds", "How long the oldest task that is ready has been so, 0 without one.",
		func(q *wire.QueueFigures, nowMs int64) float64 {
			if q.OldestReadyAtMs == 0 {
				return 0
			}
			return float64(max(0, nowMs-q.OldestReadyAtMs)) / 1000
		}},
}

// largest are the queues with series of their own, the largest first, and then the sum of the
// others, if there are any.
func largest(all []wire.QueueFigures) (shown []wire.QueueFigures, others int) {
	bySize := make([]*wire.QueueFigures, len(all))
	for i := range all {
		bySize[i] = &all[i]
	}
	slices.SortStableFunc(bySize, func(a, b *wire.QueueFigures) int { return cmp.Compare(size(b), size(a)) })
	rest := wire.QueueFigures{Command: OtherQueues, TenantID: OtherQueues}
	for _, q := range bySize {
		if len(shown) < TopQueues && (q.Command != OtherQueues || q.TenantID != OtherQueues) {
			shown = append(shown, *q)
			continue
		}
		others++
		addQueue(&rest, q)
	}
	if others > 0 {
		shown = append(shown, rest)
	}
	return shown, others
}

func size(q *wire.QueueFigures) int64 { return q.Ready + q.Limited + q.Delayed + q.InProgress + q.Dead }

func addQueue(sum, q *wire.QueueFigures) {
	sum.Ready += q.Ready
	sum.Limited += q.Limited
	sum.Delayed += q.Delayed
	sum.InProgress += q.InProgress
	sum.Dead += q.Dead
	for cause, n := range q.DeadBy {
		sum.DeadBy[cause] += n
	}
	if q.OldestReadyAtMs != 0 && (sum.OldestReadyAtMs == 0 || q.OldestReadyAtMs < sum.OldestReadyAtMs) {
		sum.OldestReadyAtMs = q.OldestReadyAtMs
	}
}

// route counts the answers of a path. Log lines and figures have its pattern, never the path
// of a request.
type route struct {
	pattern  string
	answered [len(statusClasses)]*meter.Counter
}

// statusClasses are the classes of answers. none is for requests without an answer: the client
// left, or the connection became a session.
var statusClasses = [...]string{"2xx", "4xx", "5xx", "none"}

// newRoute makes the counters of a pattern. All unknown paths share the empty pattern.
func (a *api) newRoute(pattern string) *route {
	r := &route{pattern: pattern}
	for i, class := range statusClasses {
		r.answered[i] = a.requests.Counter("codeq_http_requests_total", "Requests by route and class of status.",
			meter.Label{Name: "route", Value: cmp.Or(pattern, "none")}, meter.Label{Name: "class", Value: class})
	}
	return r
}

func (r *route) count(status int) {
	switch status / 100 {
	case 2:
		r.answered[0].Inc()
	case 4:
		r.answered[1].Inc()
	case 5:
		r.answered[2].Inc()
	default:
		r.answered[3].Inc()
	}
}

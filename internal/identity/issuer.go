package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"codeq/internal/yamlfile"
)

const (
	// refreshAtMost is how often an unknown key may cause a further read.
	refreshAtMost = 10 * time.Second
	// unknownWaits is how long a token with an unknown key waits for that read.
	unknownWaits = 200 * time.Millisecond
	// unknownFor is how long an unknown key causes no read again, for maxUnknown of them.
	unknownFor = 60 * time.Second
	maxUnknown = 1024
	// staleFor is how long keys are good while they cannot be read again.
	staleFor = 24 * time.Hour
	// fetchFor is how long an issuer may take for its keys.
	fetchFor = 5 * time.Second

	maxKidBytes = 200
)

// issuer has the keys of a provider.
type issuer struct {
	*provider
	set atomic.Pointer[keySet] // nil before the first read

	mu sync.Mutex
	// reading is closed when the read that runs has ended; nil while none runs.
	reading chan struct{}
	triedMs int64
	// unknown has the ids of keys that were not in the set, and when.
	unknown map[string]int64
}

// errUnknownKey and errNoKeys say why there is no key for a token.
var (
	errUnknownKey = errors.New("its issuer has no such key for this algorithm")
	errNoKeys     = errors.New("the keys of its issuer cannot be read now")
)

// keyFor is the key of a token.
func (i *issuer) keyFor(ctx context.Context, id, alg string) (*key, error) {
	if len(id) > maxKidBytes {
		return nil, errUnknownKey
	}
	set := i.fresh()
	if set != nil {
		if k := set.find(id, alg); k != nil {
			return k, nil
		}
	}
	if i.mayRead(id, set) {
		i.readSoon(ctx)
	}
	if set = i.fresh(); set == nil {
		return nil, errNoKeys
	}
	if k := set.find(id, alg); k != nil {
		return k, nil
	}
	i.noteUnknown(id)
	return nil, errUnknownKey
}

// fresh are the keys that are good now, nil if there are none.
func (i *issuer) fresh() *keySet {
	set := i.set.Load()
	if set == nil || i.nowMs()-set.readMs > staleFor.Milliseconds() {
		return nil
	}
	return set
}

// mayRead reports whether an unknown key may cause a read.
func (i *issuer) mayRead(id string, set *keySet) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	nowMs := i.nowMs()
	at, known := i.unknown[id]
	return i.reading != nil || nowMs-i.triedMs >= refreshAtMost.Milliseconds() && !(set != nil && known && nowMs-at < unknownFor.Milliseconds())
}

// noteUnknown remembers an unknown key; when there are too many, it forgets all others.
func (i *issuer) noteUnknown(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.unknown == nil || len(i.unknown) >= maxUnknown {
		i.unknown = map[string]int64{}
	}
	i.unknown[id] = i.nowMs()
}

// readSoon waits a short time for a read.
func (i *issuer) readSoon(ctx context.Context) {
	timer := time.NewTimer(unknownWaits)
	defer timer.Stop()
	select {
	case <-i.begin():
	case <-timer.C:
	case <-ctx.Done():
	}
}

// begin begins a read unless one runs. The channel is closed at its end.
func (i *issuer) begin() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.reading == nil {
		done := make(chan struct{})
		i.reading = done
		i.owner.running.Go(func() { i.read(done) })
	}
	return i.reading
}

// read reads the keys, and closes done.
func (i *issuer) read(done chan struct{}) {
	set, err := i.fetchKeys()
	nowMs := i.nowMs()
	if err == nil {
		set.readMs = nowMs
		i.set.Store(set)
	}
	i.told(err)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reading, i.triedMs = nil, nowMs
	close(done)
}

// fetchKeys gets the key set, from a file or from the issuer.
func (i *issuer) fetchKeys() (*keySet, error) {
	if i.keysFile != "" {
		text, err := yamlfile.Read(i.keysFile)
		if err != nil {
			return nil, err
		}
		return parseKeys(text)
	}
	ctx, cancel := context.WithTimeout(i.owner.ctx, fetchFor)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, i.keysURL, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Accept", "application/json")
	text, err := i.owner.answer(r, maxKeysBytes)
	if err != nil {
		return nil, err
	}
	return parseKeys(text)
}

// answer sends a request to a provider and reads an answer of at most so many bytes. It follows
// no redirect: another address would be one that nobody has configured.
func (p *Providers) answer(r *http.Request, most int64) ([]byte, error) {
	response, err := p.http.Do(r)
	if err != nil {
		if r.Context().Err() != nil {
			return nil, errors.New("it did not answer in time")
		}
		return nil, errors.New("it can not be reached")
	}
	// It was only read.
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered with status %d, and not 200", response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return nil, errors.New("its answer broke off or came too slowly")
	case int64(len(text)) > most:
		return nil, fmt.Errorf("its answer is over the limit of %d bytes", most)
	}
	return text, nil
}

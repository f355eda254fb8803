package identity

import (
	"crypto/sha256"
	"sync"
)

// digest is the SHA-256 of a token.
type digest = [sha256.Size]byte

// mostKept is how many tokens each of the two halves of a cache has.
const mostKept = 8192

// cache remembers what is known of tokens, up to twice mostKept. The zero value is empty.
type cache[T any] struct {
	mu         sync.RWMutex
	young, old map[digest]*T
}

// get is what is known of a token, nil for nothing. What is used stays.
func (c *cache[T]) get(d digest) *T {
	c.mu.RLock()
	v, old := c.young[d], c.old[d]
	c.mu.RUnlock()
	if v == nil && old != nil {
		c.put(d, old)
		v = old
	}
	return v
}

// put remembers what is known of a token.
func (c *cache[T]) put(d digest, v *T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= mostKept || c.young == nil {
		c.young, c.old = map[digest]*T{}, c.young
	}
	c.young[d] = v
}

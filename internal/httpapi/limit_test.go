//go:build !race

package httpapi

// manyQueues is how many the tests of a page make.
const manyQueues = 10_000

// Package meter keeps figures about the server and writes them down in the text
// format of Prometheus.
//
// A Set holds counters and histograms that are made once and then only added
// to: whoever counts keeps the pointer, and no name is looked up or built while
// work is done. A Page is one answer to one scrape: whole sets, and values that
// are read at that moment. Families come with their help and type, once.
//
// This is the only package that knows the library behind it, whose names are
// text that panics when it is not well formed: label values are escaped here,
// whatever they hold. It knows nothing of tasks. How many series there are is
// the business of who makes them, and nothing that users make without bound,
// such as a task, a worker or a key, may be a label.
//
// Set, Counter and Histogram may be used from any goroutine; a Page belongs to
// one. The package starts none.
package meter

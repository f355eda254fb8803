// Package mail holds the tests that docs/testing-your-code.md shows. They are run with all others,
// and a test compares the page with the file. A program that sends mail would have such tests
// beside its handlers; here the handlers are in the tests.
package mail

// Package paced writes to connections for as long as the other side takes
// anything, however slowly.
//
// A write of many bytes over a slow connection takes long and is no sign that
// anything is wrong; one over a connection whose other side takes nothing never
// ends. So what counts is not how long a write takes but what the other side took
// meanwhile: at least LeastBytes in each Window, or all of it. Where the system
// says what the other side has acknowledged, which is on Linux for TCP, that is
// counted; elsewhere what the system has taken to send.
//
// The package must not know what is written, nor close anything.
package paced

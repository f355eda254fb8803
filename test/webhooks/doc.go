// Package webhooks has a library of Standard Webhooks that nobody here wrote, the one of npm,
// verify what the built program posts. It needs Node and `npm ci` in this directory.
package webhooks

// Package rolling restarts codeq and its workers while both are at work, one
// after another, as an upgrade does, and holds every task against what that may
// cost it: nothing. It has no code but tests, and no program imports it.
//
// Producers post with keys through the SDK, workers take the tasks through the
// SDK, the server is the built program and is told to end with SIGTERM. Each
// task must have an outcome, its handler must have begun once, no attempt may be
// counted, and it must not have waited longer than the restart itself takes; the
// longest wait is told.
package rolling

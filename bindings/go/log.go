// SPDX-License-Identifier: Apache-2.0

package weir

// #include <stdint.h>
import "C"

import (
	"log"
	"runtime/cgo"
)

// Level is how much a line matters.
type Level int

// Levels of lines.
const (
	Info    Level = iota // what was wrong is right again
	Warning              // a later version refuses it; names in requests that no rule knows
	Problem              // decisions are not those of the state, or of standing
)

const linesMax = 64 // that wait to be logged; more are dropped

type line struct {
	level Level
	text  string
}

// Lines come on threads of C, in the middle of calls; the goroutine of a Weir logs them.
type sink struct {
	lines  chan line
	log    func(Level, string)
	handle cgo.Handle
}

func newSink(to func(Level, string)) *sink {
	if to == nil {
		to = func(_ Level, text string) { log.Print("weir: ", text) }
	}
	s := &sink{lines: make(chan line, linesMax), log: to}
	s.handle = cgo.NewHandle(s)
	return s
}

// Logs what is there.
func (s *sink) flush() {
	for {
		select {
		case one := <-s.lines:
			s.log(one.level, one.text)
		default:
			return
		}
	}
}

// When C has no more to say.
func (s *sink) close() {
	s.handle.Delete()
	s.flush()
}

//export weirGoSay
func weirGoSay(handle C.uintptr_t, level C.int, text *C.char) {
	s := cgo.Handle(handle).Value().(*sink)
	select {
	case s.lines <- line{Level(level), C.GoString(text)}:
	default:
	}
}

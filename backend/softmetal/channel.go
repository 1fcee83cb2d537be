//go:build unix

package softmetal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// channel is this end of the socket to an executor. The other end may be in the hands of whoever wrote a kernel:
// what comes from there is a claim, whose form is checked here and whose contents are where they are used.
type channel struct {
	conn *net.UnixConn
	in   *bufio.Reader
}

// Requests, as enum request of host/main.c has them.
const (
	requestMap = 1 + iota
	requestUnmap
	requestLoad
	requestRun
	requestStart
	requestCheck
)

// What an answer begins with.
const (
	answerWell  = 0 // what was asked for follows
	answerWrong = 1 // a message follows, and the executor goes on
	answerEnd   = 2 // a message follows, and the executor has ended
)

// maxMessage is the most bytes of a message.
const maxMessage = 4 << 10

// newChannel returns both ends of a channel; the second is for the executor.
func newChannel() (*channel, *os.File, error) {
	pair, err := socketpair()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	mine, theirs := os.NewFile(uintptr(pair[0]), "executor"), os.NewFile(uintptr(pair[1]), "executor")
	conn, err := net.FileConn(mine) // which has a descriptor of its own
	if err = errors.Join(err, mine.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	u := conn.(*net.UnixConn)
	return &channel{conn: u, in: bufio.NewReader(u)}, theirs, nil
}

// errBelief says that the executor has sent an answer which no executor of ours sends.
var errBelief = errors.New("the executor answers what cannot be")

// errLost says that the executor has closed its end of the channel, or has ended.
var errLost = errors.New("the executor has ended without a word")

// send sends a request, with a file if that is not nil.
func (c *channel) send(op uint32, payload []byte, file *os.File) error {
	message := binary.LittleEndian.AppendUint32(make([]byte, 0, 8+len(payload)), op)
	message = append(binary.LittleEndian.AppendUint32(message, uint32(len(payload))), payload...)
	if file == nil {
		_, err := c.conn.Write(message)
		return err
	}
	n, _, err := c.conn.WriteMsgUnix(message, unix.UnixRights(int(file.Fd())), nil)
	if err == nil && n < len(message) {
		_, err = c.conn.Write(message[n:])
	}
	return err
}

// receive returns the status of the next answer and what follows it, of which there may be most bytes. Its errors are
// errLost and errBelief, with what was wrong.
func (c *channel) receive(most int) (uint32, []byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, errLost
	}
	status, n := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	switch status {
	case answerWell:
	case answerWrong, answerEnd:
		most = maxMessage
	default:
		return 0, nil, fmt.Errorf("%w: its status is %d", errBelief, status)
	}
	if int64(n) > int64(most) {
		return 0, nil, fmt.Errorf("%w: it has %d bytes, where %d are the most", errBelief, n, most)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(c.in, data); err != nil {
		return 0, nil, errLost
	}
	return status, data, nil
}

// pending reports whether something has come that nobody has read yet.
func (c *channel) pending() bool {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return true
	}
	there := true
	if err := raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		there = n > 0 || err != nil
	}); err != nil {
		return true
	}
	return there
}

// printable is a message as a terminal may show it: a line of text.
func printable(message []byte) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, string(message))
}

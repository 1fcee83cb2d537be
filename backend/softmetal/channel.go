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

// channel is this process's end of the socket to the executor. A malicious kernel may control the other end, so
// answers are untrusted: their form is checked here, and their contents where they are used.
type channel struct {
	conn *net.UnixConn
	in   *bufio.Reader
}

// Requests; the values are those of enum request in host/main.c.
const (
	requestMap = 1 + iota
	requestUnmap
	requestLoad
	requestRun
	requestStart
	requestCheck
)

// Statuses of answers.
const (
	answerWell  = 0 // success: the result follows
	answerWrong = 1 // an error message follows, and the executor goes on
	answerEnd   = 2 // an error message follows, and the executor has ended
)

// maxMessage is the maximum length of an error message, in bytes.
const maxMessage = 4 << 10

// newChannel returns both ends of a channel; the second is for the executor.
func newChannel() (*channel, *os.File, error) {
	pair, err := socketpair()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	mine, theirs := os.NewFile(uintptr(pair[0]), "executor"), os.NewFile(uintptr(pair[1]), "executor")
	conn, err := net.FileConn(mine) // FileConn duplicates the descriptor
	if err = errors.Join(err, mine.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	u := conn.(*net.UnixConn)
	return &channel{conn: u, in: bufio.NewReader(u)}, theirs, nil
}

// errBelief reports an answer that an intact executor never sends: a kernel may have tampered with it.
var errBelief = errors.New("the executor answers what cannot be")

// errLost says that the executor has closed its end of the channel, or has ended.
var errLost = errors.New("the executor has ended without a word")

// send sends a request, together with a file descriptor if file is not nil.
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

// receive returns the status and the payload of the next answer. A payload of more than most bytes is an error; an
// error message may have maxMessage bytes. Errors are errLost, or errBelief with what was wrong.
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

// pending reports whether bytes have arrived that were not read yet, or that cannot be found out.
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

// printable returns a message as a line of text for a terminal: other characters become question marks.
func printable(message []byte) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, string(message))
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
)

// Mails that the limit refuses go into a stream of Redis. A worker, a process of its own, sends
// them later and keeps the limit: the instances and the worker share its table.
//
// The worker sends each mail of the stream at least once, in the order of the stream. It
// acknowledges a mail after it has sent it. If it dies between sending and acknowledging, Redis
// keeps the mail on the group's list of pending entries, and the next worker begins with that list.
// So that mail is sent twice. A receiver that must not act on it twice needs a number in the mail.
// An instance sends a mail that the limit admits at once, before the mails that wait in the stream.
// If Redis loses its data, the mails of the stream are lost.
const (
	mailPolicy = "10/s burst 5"
	mailStream = "shop:mails"
	mailGroup  = "senders"
	mailWorker = "sender"
)

// outbox sends mails: in the example it writes each as a line of a file.
type outbox struct {
	limit *tollbar.Table
	file  *os.File
	store string
}

// openOutbox opens the table of the limit and the file.
func openOutbox(store, table, file string) (*outbox, error) {
	limit, err := tollbar.OpenTable(table, tollbar.TableOptions{Capacity: 100}, mailPolicy)
	if err != nil {
		return nil, err
	}
	sent, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return &outbox{limit: limit, file: sent, store: strings.TrimPrefix(store, "unix:")}, err
}

// send writes a mail with the time. A short line reaches the file whole or not at all.
func (o *outbox) send(mail, by string) error {
	_, err := fmt.Fprintf(o.file, "%d %s %s\n", time.Now().UnixMilli(), by, mail)
	return err
}

// mail sends a mail at once, or later if the limit refuses it.
func (s *shop) mail(w http.ResponseWriter, r *http.Request) {
	mail := strings.ReplaceAll(r.FormValue("text"), "\n", " ")
	if limit, err := s.mails.limit.Under(0).Check("mails", 1); err == nil && limit.Verdict == tollbar.Allowed {
		if s.mails.send(mail, "shop") != nil {
			http.Error(w, "the mail cannot be sent", http.StatusInternalServerError)
			return
		}
		answer(w, http.StatusOK, "sent\n", 0)
		return
	}
	queue, err := dial(s.mails.store)
	if err == nil {
		defer queue.Close()
		_, err = queue.do("XADD", mailStream, "*", "text", mail)
	}
	if err != nil {
		log.Print(err)
		answer(w, http.StatusServiceUnavailable, "too many mails, and no place for them to wait\n", time.Second)
		return
	}
	answer(w, http.StatusAccepted, "will be sent\n", 0)
}

// work sends the mails of the stream until `stop` ends. Each error is returned: the service manager
// starts the worker again. Only one worker runs at a time, because two would mix the order.
func (o *outbox) work(stop context.Context) error {
	queue, err := dial(o.store)
	if err != nil {
		return err
	}
	defer queue.Close()
	_, err = queue.do("XGROUP", "CREATE", mailStream, mailGroup, "0", "MKSTREAM")
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return err
	}
	// First the mails that a former worker has read and not acknowledged, then new ones.
	from := "0"
	for stop.Err() == nil {
		reply, err := queue.do("XREADGROUP", "GROUP", mailGroup, mailWorker,
			"COUNT", "1", "BLOCK", "500", "STREAMS", mailStream, from)
		if err != nil {
			return err
		}
		id, mail, found := entry(reply)
		if !found {
			from = ">"
			continue
		}
		if err := o.limit.Under(0).Wait(stop, "mails"); err != nil {
			return err
		}
		if err := o.send(mail, "worker"); err != nil {
			return err
		}
		for _, command := range [][]string{
			{"MULTI"}, {"XACK", mailStream, mailGroup, id}, {"XDEL", mailStream, id}, {"EXEC"},
		} {
			if _, err := queue.do(command...); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry returns the id and the text of the first entry in a reply of XREADGROUP, if there is one:
// [[stream, [[id, [field, text]]]]].
func entry(reply any) (id, text string, found bool) {
	at := func(list any, n int) any {
		if of, _ := list.([]any); n < len(of) {
			return of[n]
		}
		return nil
	}
	first := at(at(at(reply, 0), 1), 0)
	id, found = at(first, 0).(string)
	text, _ = at(at(first, 1), 1).(string)
	return id, text, found
}

// redisConn is as much of a client of Redis as the example needs. A service has one of its own.
type redisConn struct {
	net.Conn
	in *bufio.Reader
}

func dial(socket string) (*redisConn, error) {
	network := "unix"
	if rest, isTCP := strings.CutPrefix(socket, "redis://"); isTCP {
		network, socket = "tcp", rest
		if !strings.Contains(rest, ":") {
			socket = rest + ":6379"
		}
	}
	conn, err := net.DialTimeout(network, socket, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &redisConn{conn, bufio.NewReader(conn)}, nil
}

// do sends a command and returns its reply: nil, a string, an int64 or a list of replies.
func (c *redisConn) do(command ...string) (any, error) {
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("*%d\r\n", len(command))
	for _, word := range command {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(c, text); err != nil {
		return nil, err
	}
	return c.reply()
}

func (c *redisConn) reply() (any, error) {
	line, err := c.in.ReadString('\n')
	if err != nil || len(line) < 3 {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	kind, line := line[0], line[1:len(line)-2]
	switch kind {
	case '-':
		return nil, errors.New(line)
	case '+':
		return line, nil
	}
	n, err := strconv.ParseInt(line, 10, 64)
	if err != nil || kind == ':' {
		return n, err
	}
	if n < 0 {
		return nil, nil
	}
	if kind == '$' {
		text := make([]byte, n+2)
		_, err = io.ReadFull(c.in, text)
		return string(text[:n]), err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = c.reply(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

package chat

import (
	"fmt"
	"strings"
	"time"
)

// layouts translates the directives of strftime (C99, and Python's %f) to Go's layouts,
// for the C locale.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'c': "Mon Jan _2 15:04:05 2006",
	'd': "02", 'D': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'H': "15", 'I': "03", 'j': "002", 'm': "01",
	'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05", 'T': "15:04:05", 'x': "01/02/06",
	'X': "15:04:05", 'y': "06", 'Y': "2006",
}

// strftime formats t. An unknown directive is an error, because implementations differ
// on it.
func strftime(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		if i == len(format) {
			return "", fmt.Errorf("strftime_now: format %q ends in %%", format)
		}
		// %-d is %d without padding (glibc).
		c, bare := format[i], false
		if c == '-' && i+1 < len(format) {
			i++
			c, bare = format[i], true
		}
		s, err := directive(t, c)
		if err != nil {
			return "", fmt.Errorf("strftime_now: format %q: %w", format, err)
		}
		if bare {
			if s = strings.TrimLeft(s, "0 "); s == "" {
				s = "0"
			}
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func directive(t time.Time, c byte) (string, error) {
	if layout, ok := layouts[c]; ok {
		return t.Format(layout), nil
	}
	switch c {
	case '%':
		return "%", nil
	case 'n':
		return "\n", nil
	case 't':
		return "\t", nil
	case 'f': // microseconds
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), nil
	case 'u': // Monday is 1
		return fmt.Sprint((int(t.Weekday())+6)%7 + 1), nil
	case 'w': // Sunday is 0
		return fmt.Sprint(int(t.Weekday())), nil
	case 's':
		return fmt.Sprint(t.Unix()), nil
	case 'U': // week of the year, weeks from Sunday
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7), nil
	case 'W': // weeks from Monday
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7), nil
	case 'G', 'V':
		y, w := t.ISOWeek()
		if c == 'G' {
			return fmt.Sprintf("%04d", y), nil
		}
		return fmt.Sprintf("%02d", w), nil
	}
	return "", fmt.Errorf("directive %%%c is not supported", c)
}

package tollhttp

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LoadConfig reads limits from a section of an application's own configuration. get returns the
// section at a path, such as viper's Get, koanf's Get or [Settings] of a decoded file. The section
// is a list of limits, or one limit:
//
//	server:
//	  rate-limits:
//	    - name: by-api-key
//	      interval: 1s
//	      max-requests: 30
//	      header-key-name: X-API-KEY
//	      exception-keys: [the-key-of-our-tests]
//	    - policy: 100/min burst 20
//
// The names are those of [Config], with or without "-" and "_", in upper or lower case. A limit with
// "enabled: false" is left out. The error names the place, the value, and what is expected there.
func LoadConfig(get func(keyPath string) any, keyPath string) ([]Config, error) {
	section := get(keyPath)
	list, ok := listOf(section)
	if !ok {
		if _, one := mapOf(section); !one {
			return nil, mistake(keyPath, section, "a list of limits")
		}
		list = []any{section}
	}
	configs := make([]Config, 0, len(list))
	for i, one := range list {
		place := fmt.Sprintf("%s[%d]", keyPath, i)
		config, enabled, err := configOf(place, one)
		if err == nil && enabled {
			if _, err = config.PolicyText(); err == nil {
				_, err = config.Keys()
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", place, err)
			}
			configs = append(configs, config)
		}
		if err != nil {
			return nil, err
		}
	}
	return configs, nil
}

// Settings returns the function for [LoadConfig] that follows a path such as "server.rate-limits"
// through a configuration that a decoder of JSON, YAML or TOML has stored in a map. It returns nil
// if the map has no such path.
func Settings(decoded map[string]any) func(keyPath string) any {
	return func(keyPath string) any {
		var at any = decoded
		for _, name := range strings.Split(keyPath, ".") {
			inside, ok := mapOf(at)
			if !ok {
				return nil
			}
			at = inside[name]
		}
		return at
	}
}

// mistake is the error for a value at a place.
func mistake(place string, found any, expected string) error {
	text := fmt.Sprintf("%#v", found)
	if found == nil {
		text = "nothing"
	}
	return fmt.Errorf("tollhttp: %s: %s; expected %s", place, text, expected)
}

// configOf reads one limit.
func configOf(place string, from any) (c Config, enabled bool, err error) {
	fields, ok := mapOf(from)
	if !ok {
		return c, false, mistake(place, from, "a limit")
	}
	enabled = true
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at, value := place+"."+name, fields[name]
		switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name)) {
		case "name":
			c.Name, err = stringOf(at, value)
		case "description":
			c.Description, err = stringOf(at, value)
		case "policy":
			c.Policy, err = stringOf(at, value)
		case "algorithm":
			c.Algorithm, err = stringOf(at, value)
		case "headerkeyname":
			c.HeaderKeyName, err = stringOf(at, value)
		case "interval":
			c.Interval, err = intervalOf(at, value)
		case "maxrequests":
			c.MaxRequests, err = wholeOf(at, value)
		case "exceptionkeys":
			c.ExceptionKeys, err = stringsOf(at, value)
		case "enabled":
			enabled, err = boolOf(at, value)
		default:
			err = mistake(place, name,
				"name, description, policy, algorithm, interval, max-requests, header-key-name, "+
					"exception-keys or enabled")
		}
		if err != nil {
			return c, false, err
		}
	}
	return c, enabled, nil
}

func mapOf(value any) (map[string]any, bool) {
	switch value := value.(type) {
	case map[string]any:
		return value, true
	case map[any]any:
		named := make(map[string]any, len(value))
		for name, one := range value {
			named[fmt.Sprint(name)] = one
		}
		return named, true
	}
	return nil, false
}

func listOf(value any) (list []any, ok bool) {
	switch value := value.(type) {
	case []any:
		return value, true
	case []map[string]any:
		for _, one := range value {
			list = append(list, one)
		}
		return list, true
	case []string:
		for _, one := range value {
			list = append(list, one)
		}
		return list, true
	}
	return nil, false
}

func stringOf(place string, value any) (string, error) {
	if text, ok := value.(string); ok {
		return text, nil
	}
	return "", mistake(place, value, "a text")
}

func stringsOf(place string, value any) (texts []string, err error) {
	list, ok := listOf(value)
	if !ok && value != nil {
		return nil, mistake(place, value, "a list of texts")
	}
	for i, one := range list {
		text, err := stringOf(fmt.Sprintf("%s[%d]", place, i), one)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func boolOf(place string, value any) (bool, error) {
	switch value := value.(type) {
	case bool:
		return value, nil
	case string:
		// A variable of the environment.
		if read, err := strconv.ParseBool(value); err == nil {
			return read, nil
		}
	}
	return false, mistake(place, value, "true or false")
}

func intervalOf(place string, value any) (time.Duration, error) {
	switch value := value.(type) {
	case time.Duration:
		return value, nil
	case string:
		if read, err := time.ParseDuration(value); err == nil {
			return read, nil
		}
	}
	return 0, mistake(place, value, `a time such as "1s" or "1m30s"`)
}

func wholeOf(place string, value any) (int64, error) {
	switch value := value.(type) {
	case int:
		return int64(value), nil
	case int64:
		return value, nil
	case uint64:
		if value <= math.MaxInt64 {
			return int64(value), nil
		}
	case float64:
		// JSON has no other numbers.
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value), nil
		}
	case string:
		// A variable of the environment.
		if read, err := strconv.ParseInt(value, 10, 64); err == nil {
			return read, nil
		}
	}
	return 0, mistake(place, value, "a whole number")
}

package tollecho

import (
	"github.com/labstack/echo/v4"

	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// LoadConfig reads limits from a section of the application's own configuration, as
// [tollhttp.LoadConfig] says.
func LoadConfig(get func(keyPath string) any, keyPath string) ([]Config, error) {
	read, err := tollhttp.LoadConfig(get, keyPath)
	configs := make([]Config, 0, len(read))
	for _, one := range read {
		configs = append(configs, Config{
			Name: one.Name, Description: one.Description, Policy: one.Policy, MaxRequests: one.MaxRequests,
			Interval:  one.Interval,
			Algorithm: one.Algorithm, HeaderKeyName: one.HeaderKeyName, ExceptionKeys: one.ExceptionKeys,
		})
	}
	return configs, err
}

// Router is an [echo.Echo] or an [echo.Group].
type Router interface{ Use(...echo.MiddlewareFunc) }

// LoadConfigForEcho puts the limits of a section of the application's own configuration before the
// routes of a server, or before those that a group gets after this call:
//
//	err := tollecho.LoadConfigForEcho(viper.Get, "server.rate-limits", server.Group("/api"))
//
// With an error it has put none there.
func LoadConfigForEcho(get func(keyPath string) any, keyPath string, router Router) error {
	configs, err := LoadConfig(get, keyPath)
	if err != nil {
		return err
	}
	var all []echo.MiddlewareFunc
	for _, config := range configs {
		middleware, err := New(config)
		if err != nil {
			return err
		}
		all = append(all, middleware)
	}
	router.Use(all...)
	return nil
}
